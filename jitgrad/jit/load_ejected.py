"""Loads modules that `JitFunction.eject` wrote, edited or not, and checks them against the recorded eager results."""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import re
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np
import optree

from jitgrad.core.context import current_interpreter, grad_enabled
from jitgrad.core.errors import ArgumentError, EjectedMismatchError
from jitgrad.core.origin import Origin
from jitgrad.core.requirements import require_numba
from jitgrad.core.tensor import Tensor
from jitgrad.jit.records import NAMESPACE
from jitgrad.jit.suspects import distance
from jitgrad.ops.creation import asarray


class EjectedFunction:
    """The ``run`` of an ejected module on Tensors.

    Attributes:
        module: the module itself; ``module.run`` takes NumPy arrays, and on CUDA arrays on the device.
    """

    def __init__(self, module: ModuleType, about: Mapping[str, Any], path: str) -> None:
        self.module = module
        self.path = path
        self._about = about
        self.__name__: str = str(about["name"])
        self.__doc__ = module.run.__doc__
        self.__signature__: inspect.Signature = inspect.signature(module.run)

    def __repr__(self) -> str:
        return f"<ejected {self.__name__} from {self.path}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function's result. Tensors that the function changes get their new values, and gradients are set."""
        if current_interpreter.get().tracing:
            raise ArgumentError(f"{self!r} runs on arrays and cannot be traced: call it outside @jit functions")
        leaves, treedef = optree.tree_flatten((args, kwargs), none_is_leaf=True, namespace=NAMESPACE)
        self._check_gradients(leaves)
        replaced = [leaves[k] for k in self._about.get("replaced_arguments", ())]
        replaced += [kwargs[name] for name in self._about.get("replaced_state", ())]
        # written to by the module; who shares the old memory keeps its contents
        own = {id(x): x.detach().clone() for x in replaced if isinstance(x, Tensor)}
        given = [own.get(id(x), x) for x in leaves]
        tensors = {id(a): x for x, y in zip(leaves, given, strict=True) if isinstance(x, Tensor) for a in (y, y._data)}
        arrays = [x._data if isinstance(x, Tensor) and x.device == "cpu" else x for x in given]
        new_args, new_kwargs = optree.tree_unflatten(treedef, arrays)
        result = self.module.run(*new_args, **new_kwargs)
        for x in leaves:
            if (new := own.pop(id(x), None)) is not None:
                current_interpreter.eager.replace(x, new)
        if self._about["gradients"]:
            result, gradients = result
            for name, key in self._about["gradients"].items():
                target = leaves[key] if isinstance(key, int) else kwargs[key]
                if isinstance(target, Tensor):
                    target._grad = None if gradients[name] is None else _as_tensor(gradients[name], {})
        changed = [leaves[k] for k in self._about["changed_arguments"]]
        changed += [kwargs[name] for name in self._about["changed_state"]]
        for x in changed:
            if isinstance(x, Tensor):
                x._storage.bump(Origin.of_code_of(self.module.run))
        return optree.tree_map(lambda x: _as_tensor(x, tensors), result, none_is_leaf=True)

    def _check_gradients(self, leaves: list[Any]) -> None:
        wanted = any(isinstance(x, Tensor) and x._requires_grad for x in leaves)
        if wanted and self._about["differentiable"] and grad_enabled.get():
            raise ArgumentError(
                f"{self!r}: no gradient can flow through an ejected module. Eject jg.value_and_grad of the function, or call "
                "it under jg.no_grad()."
            )


def _as_tensor(x: Any, tensors: Mapping[int, Tensor]) -> Any:
    if (tensor := tensors.get(id(x))) is not None:
        return tensor
    if hasattr(x, "__cuda_array_interface__") and not isinstance(x, Tensor):
        return asarray(x)
    return Tensor(np.asarray(x)) if isinstance(x, (np.ndarray, np.generic)) else x


def load_ejected(path: str | os.PathLike[str], *, check: str = "recorded") -> EjectedFunction:
    """Load a module that ``f.eject(path, ...)`` wrote, and that may have been edited since.

    The result takes and returns what ``f`` does, with the state that ``f`` reads from outside as keyword arguments
    (``f.eject(...)`` returned it as ``.state``).

    Args:
        check: "recorded" runs the module on the recorded arguments and compares with the recorded eager results;
            "off" does not, for a module that is meant to compute something else.

    Raises:
        EjectedMismatchError: the module computes something else.
        ArgumentError: there is no such module, or nothing was recorded for it.
    """
    path = os.path.abspath(os.fspath(path))
    if check not in ("recorded", "off"):
        raise ArgumentError(f"load_ejected(check={check!r}): expected one of recorded, off")
    data = os.path.splitext(path)[0] + ".npz"
    for needed in (path, data):
        if not os.path.exists(needed):
            raise ArgumentError(f"load_ejected: there is no file {needed}; f.eject({path!r}, ...) writes it")
    with np.load(data) as file:
        recorded = dict(file)
    if "about" not in recorded:
        raise ArgumentError(f"load_ejected: {data} is not what f.eject({path!r}, ...) wrote; eject the function again")
    about = json.loads(str(recorded["about"]))
    module = _import(path)
    if check == "recorded":
        from jitgrad.jit.ejection import recorded_calls

        for call in recorded_calls(recorded):
            _check(module, call, about, path)
    return EjectedFunction(module, about, path)


def _import(path: str) -> ModuleType:
    require_numba(f"load_ejected: {path}")
    spec = importlib.util.spec_from_file_location(os.path.splitext(os.path.basename(path))[0], path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if missing := [name for name in ("run", "example") if not hasattr(module, name)]:
        raise ArgumentError(f"load_ejected: {path} defines no function {missing[0]!r}; eject the function again")
    return module


def _check(module: ModuleType, recorded: Mapping[str, Any], about: Mapping[str, Any], path: str) -> None:
    """Raise EjectedMismatchError if a result is further from the recorded one than rounding takes it."""
    with np.errstate(all="ignore"):
        results = module.example(recorded)
    expected_names = [name.removeprefix("expected ") for name in recorded if name.startswith("expected ")]
    for name in expected_names:
        if name not in results:
            raise EjectedMismatchError(f"{path}: example() returns no {name!r}; eject the function again")
        found, expected = np.asarray(results[name]), recorded[f"expected {name}"]
        limit = np.broadcast_to(recorded[f"limit {name}"], expected.shape)
        writer = about["writers"].get(name, "")
        if found.shape != expected.shape or found.dtype != expected.dtype:
            what = f"{name} is {found.dtype}{list(found.shape)}, not {expected.dtype}{list(expected.shape)}"
            raise EjectedMismatchError(_message(path, what, writer))
        apart = distance(found, expected)
        if np.any(beyond := ~(apart <= limit)):
            excess = np.where(beyond, apart - limit, -np.inf)
            at = np.unravel_index(int(np.argmax(excess)), expected.shape)
            place = ", ".join(str(int(k)) for k in at)
            what = (
                f"{name}{f' at [{place}]' if place else ''} is {found[at]!r}, and eager execution gave {expected[at]!r} "
                f"(off by {apart[at]:.3g}, rounding explains {limit[at]:.3g})"
            )
            raise EjectedMismatchError(_message(path, what, writer))


def _message(path: str, what: str, writer: str) -> str:
    with open(path, encoding="utf-8") as file:
        text = file.read()
    match = re.search(rf"^def {re.escape(writer)}\(", text, re.MULTILINE) if writer else None
    where = f"\n  {path}:{text.count(chr(10), 0, match.start()) + 1}: {writer} computes it" if match else f"\n  {path}"
    return (
        f"the ejected module computes something else than the function: {what}{where}\n"
        'Correct it, eject the function again, or load it with check="off" if this is meant.'
    )
