"""Memory of the large arrays that NumPy makes within eager ops: freed blocks are kept for later arrays.

The C library gives large blocks back to the system, and the page faults of a fresh one cost more than most ops. NumPy asks a
memory handler of the current context (NEP 49); that of `jitgrad.backends.array_memory`, above this module, registers itself.
It is compiled while ops run without it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context, ContextVar, Token
from typing import Any

from jitgrad.core.op import REGISTRY

_VARIABLE = "current_allocator"  # NumPy's name of it


class _Kept:
    """How to get a handler, whether there are plans without one, and once there is one, NumPy's variable and the handler."""

    maker: Callable[[], Any] | None = None
    missed = False
    variable: ContextVar[Any] | None = None
    handler: Any = None


def make_handler_by(maker: Callable[[], Any]) -> None:
    """Let ``maker`` set a handler in the context in which it is called, and return it, or None if it has none yet."""
    _Kept.maker = staticmethod(maker)


def keeps_memory(context: Context) -> bool:
    """Whether large arrays made in ``context``, and within `kept_memory`, lie in kept memory from now on."""
    if _Kept.variable is None and _Kept.maker is not None:
        try:
            handler = context.run(_Kept.maker)
        except RuntimeError:  # another thread is within the context
            return False
        if handler is None:
            _Kept.missed = True
            return False
        _Kept.handler = handler
        _Kept.variable = next(variable for variable in context if variable.name == _VARIABLE)
        if _Kept.missed:
            _forget_plans()
    return _Kept.variable is not None


def _forget_plans() -> None:
    """Forget the plans of ops that were made without kept memory."""
    for op in REGISTRY.values():
        op.plans.clear()


def kept_memory() -> Token[Any] | None:
    """Let large arrays that NumPy makes lie in kept memory until `restore_memory`; None before there is any."""
    return None if _Kept.variable is None else _Kept.variable.set(_Kept.handler)


def restore_memory(token: Token[Any]) -> None:
    """Undo `kept_memory`."""
    _Kept.variable.reset(token)  # type: ignore[union-attr]
