"""Modules as functions of their parameters, and the parameters of several modules as one stack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from jitgrad.core.errors import ArgumentError
from jitgrad.core.tensor import Tensor
from jitgrad.nn.module import Module
from jitgrad.ops.creation import asarray
from jitgrad.ops.joining import stack

AttributeOf = tuple[Module, str]  # a module and the name of its attribute


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    args: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """``module(*args, **kwargs)`` with other parameters and buffers, by dotted name; the module keeps its own.

    Args:
        parameter_and_buffer_dicts: names, as in ``named_parameters()`` and ``named_buffers()``, with the tensors to use;
            several dicts count as one.
        args: the positional arguments as a tuple, or the only one.
        tie_weights: a tensor that the module has under several names is replaced under all of them.
        strict: every parameter and buffer must be given.

    Raises:
        ArgumentError: the module has no such name, ``strict`` and one is missing, or two are given for one tensor.
    """
    given = _as_one(parameter_and_buffer_dicts)
    positional = () if args is None else args if isinstance(args, tuple) else (args,)
    with _replaced(_places(module, given, tie_weights, strict)):
        return module(*positional, **(kwargs or {}))


def _as_one(dicts: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for one in [dicts] if isinstance(dicts, Mapping) else dicts:
        if twice := sorted(given.keys() & one.keys()):
            raise ArgumentError(f"functional_call: {', '.join(twice)} is in several of the dicts")
        given.update(one)
    return given


def _places(module: Module, given: Mapping[str, Any], tie_weights: bool, strict: bool) -> list[tuple[AttributeOf, Tensor]]:
    """Where each tensor of ``given`` goes."""
    own: dict[str, AttributeOf] = {}
    for path, part in module.named_modules(remove_duplicate=False):
        for name in (*part._parameter_names, *part._buffer_names):
            own[f"{path}.{name}" if path else name] = (part, name)
    unknown = sorted(given.keys() - own.keys())
    missing = sorted(own.keys() - given.keys()) if strict else []
    if unknown or missing:
        parts = [f"no {', '.join(unknown)} in it"] * bool(unknown) + [f"{', '.join(missing)} not given"] * bool(missing)
        raise ArgumentError(f"functional_call of {type(module).__name__}: {'; '.join(parts)}. It has {', '.join(own)}")
    chosen: dict[tuple[int, str], tuple[AttributeOf, Tensor]] = {}
    for name, value in given.items():
        part, attribute = own[name]
        before = part.__dict__[attribute]
        tied = [p for p in own.values() if before is not None and p[0].__dict__[p[1]] is before]
        new = asarray(value)
        for place in tied if tie_weights and tied else [own[name]]:
            key = id(place[0]), place[1]
            if key in chosen and chosen[key][1] is not new:
                raise ArgumentError(
                    f"functional_call of {type(module).__name__}: {name} is one tensor with another given name; give one, or "
                    "pass tie_weights=False"
                )
            chosen[key] = place, new
    return list(chosen.values())


@contextmanager
def _replaced(places: Sequence[tuple[AttributeOf, Tensor]]) -> Iterator[None]:
    """Within it, the attributes of the modules are the given tensors."""
    before = [(part, name, part.__dict__[name]) for (part, name), _ in places]
    try:
        for (part, name), new in places:
            part.__dict__[name] = new
        yield
    finally:
        for part, name, tensor in before:
            part.__dict__[name] = tensor


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """``(parameters, buffers)`` of modules of one kind, by dotted name, stacked along a new axis 0.

    They are new tensors; the parameters require grad.

    Raises:
        ArgumentError: there are no modules, or they differ in kind or in names.
    """
    if not models or any(type(m) is not type(models[0]) for m in models):
        kinds = ", ".join(sorted({type(m).__name__ for m in models})) or "none"
        raise ArgumentError(f"stack_module_state: expected modules of one kind, got {kinds}")
    parameters = _stacked([dict(m.named_parameters()) for m in models])
    buffers = _stacked([dict(m.named_buffers()) for m in models])
    return {name: x.requires_grad_(x.dtype.kind == "f") for name, x in parameters.items()}, buffers


def _stacked(states: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    names = list(states[0])
    if any(list(state) != names for state in states):
        raise ArgumentError("stack_module_state: the modules have different parameters")
    return {name: stack([state[name].detach() for state in states]) for name in names}
