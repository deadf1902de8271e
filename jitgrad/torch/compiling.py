"""torch.compile, and the names of torch.jit: all of them are `jitgrad.jit`, or change nothing."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Final

from jitgrad.nn.module import Module
from jitgrad.on_demand.public_names import jit


class OptimizedModule(Module):
    """A module that runs compiled; ``_orig_mod`` is the module, as its state dict says, and has all other attributes."""

    def __init__(self, module: Module) -> None:
        super().__init__()
        self._orig_mod = module
        self.training = module.training
        self.__dict__["_run"] = jit(lambda *args, **kwargs: module(*args, **kwargs))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module does with these arguments."""
        return self.__dict__["_run"](*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "_orig_mod" not in self.__dict__:
            raise AttributeError(f"OptimizedModule has no {name!r}", name=name)
        return getattr(self.__dict__["_orig_mod"], name)

    def __deepcopy__(self, memo: dict[int, Any]) -> OptimizedModule:
        return OptimizedModule(copy.deepcopy(self._orig_mod, memo))


def compile(model: Any = None, **options: Any) -> Any:
    """`jitgrad.jit` of a function, or a module that runs compiled, with the same parameters.

    Options of torch's, such as ``mode`` and ``backend``, choose among its compilers and change nothing here.
    """
    if model is None:
        return lambda model: compile(model, **options)
    if options.get("disable"):
        return model
    return OptimizedModule(model) if isinstance(model, Module) else jit(model)


def script(obj: Any, *_args: Any, **_kwargs: Any) -> Any:
    """torch.jit.script and torch.jit.trace: `compile`. A class stays what it is."""
    return obj if isinstance(obj, type) else compile(obj)


def _kept(function: Any = None, **_options: Any) -> Any:
    return function if callable(function) else lambda function: function


def _never() -> bool:
    return False


SCRIPTING: Final[dict[str, Callable[..., Any]]] = {
    "script": script, "trace": script, "ignore": _kept, "unused": _kept, "export": _kept, "script_method": _kept,
    "is_scripting": _never, "is_tracing": _never, "freeze": _kept, "interface": _kept, "optimize_for_inference": _kept,
    "ScriptModule": Module,
}  # fmt: skip


def install_scripting(function: Any) -> None:
    """Give ``function``, which is `jitgrad.jit`, the names of the module torch.jit."""
    for name, value in SCRIPTING.items():
        setattr(function, name, value)
    function.Final = Final
