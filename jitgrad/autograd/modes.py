"""Grad modes: no_grad, enable_grad, inference_mode, set_grad_enabled, as context managers and decorators."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, Token
from functools import wraps
from types import TracebackType
from typing import ParamSpec, TypeVar

from jitgrad.scope import anomaly_detection, grad_enabled

P = ParamSpec("P")
R = TypeVar("R")


class _Mode:
    """Sets a flag while entered; re-entrant, and usable as a decorator."""

    _variable: ContextVar[bool] = grad_enabled

    def __init__(self, flag: bool) -> None:
        self._flag = flag
        self._tokens: list[Token[bool]] = []

    def __enter__(self) -> None:
        self._tokens.append(self._variable.set(self._flag))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._variable.reset(self._tokens.pop())

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
            with self._copy():
                return function(*args, **kwargs)

        return wrapped

    def _copy(self) -> _Mode:
        new = object.__new__(type(self))
        new._flag, new._tokens = self._flag, []
        return new


class no_grad(_Mode):
    """Within it, ops are not recorded on the tape."""

    def __init__(self) -> None:
        super().__init__(False)


class enable_grad(_Mode):
    """Within it, ops are recorded on the tape."""

    def __init__(self) -> None:
        super().__init__(True)


class inference_mode(_Mode):
    """As ``no_grad``, and says that no result will ever be used in autograd."""

    def __init__(self, mode: bool = True) -> None:
        super().__init__(not mode)


class set_grad_enabled(_Mode):
    """Sets the grad mode at once; as a context manager, until the end of the block."""

    def __init__(self, mode: bool) -> None:
        super().__init__(bool(mode))
        self._before = grad_enabled.set(self._flag)

    def __enter__(self) -> None:
        self._tokens.append(self._before)


class detect_anomaly(_Mode):
    """Within it, every op remembers where it was made and backward checks every gradient for NaN and Inf.

    The AnomalyError names the op and the user's lines that made it.
    """

    _variable = anomaly_detection

    def __init__(self) -> None:
        super().__init__(True)


def is_grad_enabled() -> bool:
    """Whether ops are recorded on the tape now."""
    return grad_enabled.get()
