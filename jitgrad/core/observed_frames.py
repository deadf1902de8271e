"""Pauses the observer of Python frames where no code but jitgrad's own runs, which it does not follow."""

from __future__ import annotations

import sys
from typing import Any

from jitgrad.core.op import REGISTRY, OpDef

# CPython 3.12 rewrites the bytecode of all that runs when tracing starts or ends, which takes longer than it saves.
_CAN_PAUSE = sys.version_info < (3, 12)

_observers: set[Any] = set()


def may_pause(tracer: Any) -> None:
    """Let `pause` stop ``tracer``, which `sys.settrace` gets: it follows no frame of jitgrad's core."""
    if _CAN_PAUSE:
        _observers.add(tracer)


def may_not_pause(tracer: Any) -> None:
    """The end of `may_pause`."""
    _observers.discard(tracer)


def is_own(op: OpDef) -> bool:
    """Whether ``op`` is one of jitgrad's own, whose functions call none of the user."""
    return REGISTRY.get(op.name) is op


def pause() -> Any:
    """Stop the observer of this thread, if there is one that may be; `go_on` takes the result.

    Python calls an observer for every frame that begins: 60 times for each op that is traced, two thirds of the time.
    """
    tracer = sys.gettrace()
    if tracer is None or tracer not in _observers:
        return None
    sys.settrace(None)
    return tracer


def go_on(paused: Any) -> None:
    """Observe again what `pause` stopped."""
    if paused is not None:
        sys.settrace(paused)
