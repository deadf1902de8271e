"""Grad modes, as context managers and decorators."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator
from contextvars import ContextVar, Token
from functools import wraps
from types import TracebackType
from typing import Any, TypeVar

from jitgrad.core.context import anomaly_detection, grad_enabled

_F = TypeVar("_F", bound=Callable[..., Any])


class _Mode:
    """Sets a flag while entered; re-entrant, and a decorator of functions and generators."""

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

    def __call__(self, function: _F) -> _F:
        """``function`` with its body in this mode, also each time that a generator resumes."""
        if inspect.isgeneratorfunction(function):

            @wraps(function)
            def resumed(*args: Any, **kwargs: Any) -> Any:
                return self._drive(function(*args, **kwargs))

            return resumed  # type: ignore[return-value]
        if inspect.iscoroutinefunction(function):

            @wraps(function)
            async def awaited(*args: Any, **kwargs: Any) -> Any:
                with self._fresh():
                    return await function(*args, **kwargs)

            return awaited  # type: ignore[return-value]

        @wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with self._fresh():
                return function(*args, **kwargs)

        return wrapped  # type: ignore[return-value]

    def _fresh(self) -> _Mode:
        """The same mode with its own tokens, because calls may overlap in threads."""
        new = _Mode(self._flag)
        new._variable = self._variable
        return new

    def _drive(self, generator: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """Resume ``generator`` in this mode; between two items the caller's mode applies."""
        try:
            with self._fresh():
                item = next(generator)
            while True:
                try:
                    sent = yield item
                except GeneratorExit:
                    with self._fresh():
                        generator.close()
                    raise
                except BaseException as error:
                    with self._fresh():
                        item = generator.throw(error)
                else:
                    with self._fresh():
                        item = generator.send(sent)
        except StopIteration as stop:
            return stop.value


class no_grad(_Mode):
    """Within it, ops are not recorded on the tape."""

    def __init__(self) -> None:
        super().__init__(False)


class enable_grad(_Mode):
    """Within it, ops are recorded on the tape."""

    def __init__(self) -> None:
        super().__init__(True)


class inference_mode(_Mode):
    """Like ``no_grad``, for results that are never used in autograd."""

    def __init__(self, mode: bool = True) -> None:
        super().__init__(not mode)


class set_grad_enabled(_Mode):
    """Sets the grad mode at once; as a context manager until the end of the block, as a decorator
    for the function."""

    def __init__(self, mode: bool) -> None:
        super().__init__(bool(mode))
        self._before: Token[bool] | None = grad_enabled.set(self._flag)

    def __enter__(self) -> None:
        if self._before is None:
            super().__enter__()
        else:
            self._tokens.append(self._before)
            self._before = None

    def __call__(self, function: _F) -> _F:
        if self._before is not None:
            grad_enabled.reset(self._before)
            self._before = None
        return super().__call__(function)


class detect_anomaly(_Mode):
    """Within it, ops record their call stacks, and backward checks gradients for NaN and Inf.

    The AnomalyError names the op and the user's lines of its stack. Calls of @jit functions check
    their results as well. If one has a NaN or Inf that the arguments do not have, the error names
    the op that first made it, its line, the element and the values of its operands, forward or
    backward; the call has changed nothing then.
    """

    _variable = anomaly_detection

    def __init__(self) -> None:
        super().__init__(True)


def is_grad_enabled() -> bool:
    """Whether ops are recorded on the tape now."""
    return grad_enabled.get()
