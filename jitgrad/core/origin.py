"""The user's line of an op, for printing."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType
from typing import Any

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STDLIB = sysconfig.get_paths()["stdlib"] + os.sep
_DEMO = os.path.join(_PACKAGE, "cli", "demo.py")  # counts as user code
_INTERNAL: dict[str, bool] = {}


def _is_internal(filename: str) -> bool:
    """Whether ``filename`` belongs to jitgrad or to the standard library."""
    internal = _INTERNAL.get(filename)
    if internal is None:
        path = os.path.abspath(filename)
        own = path.startswith(_PACKAGE) and path != _DEMO
        standard = path.startswith(_STDLIB) and "site-packages" not in path
        internal = _INTERNAL[filename] = own or standard or filename.startswith("<frozen")
    return internal


@dataclass(frozen=True, slots=True)
class Origin:
    """A line of user code: ``file`` and ``line``, or nothing (line 0).

    Origins of a line are equal, but ``gradient`` tells those of ops that backward added for it.
    """

    file: str = ""
    line: int = 0
    gradient: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        return f"{os.path.basename(self.file)}:{self.line}" if self.line else ""

    def full(self) -> str:
        """``path:line`` as editors understand it, or ``an unknown line``."""
        return f"{self.file}:{self.line}" if self.line else "an unknown line"

    def described(self) -> str:
        """`full`, in words that say whether backward added the op."""
        return f"the gradient of the op at {self.full()}" if self.gradient else self.full()

    def of_gradient(self) -> Origin:
        """The origin of the gradient of an op with this one."""
        return Origin(self.file, self.line, gradient=True)

    @staticmethod
    def capture() -> Origin:
        """The innermost line of the user, or the origin that `at_origin` set."""
        pinned = _pinned.get()
        if pinned is not None:
            return pinned
        frame = sys._getframe(1)
        while frame is not None:
            filename = frame.f_code.co_filename
            # saves a call: this runs for every op, and most frames are internal
            internal = _INTERNAL.get(filename)
            if internal is None:
                internal = _is_internal(filename)
            if not internal:
                return _at(filename, frame.f_lineno)
            frame = frame.f_back  # type: ignore[assignment]
        return NO_ORIGIN

    @staticmethod
    def of_code(code: CodeType) -> Origin:
        """Where ``code`` was defined."""
        return Origin(code.co_filename, code.co_firstlineno)

    @staticmethod
    def of_code_of(function: Any) -> Origin:
        """Where ``function`` was defined; an unknown line for a callable without code."""
        code = getattr(function, "__code__", None)
        return Origin.of_code(code) if code is not None else Origin()


def users_frame() -> int:
    """The ``stacklevel`` at which a warning of the calling function names the user's innermost line."""
    frame, level = sys._getframe(1), 1
    while _is_internal(frame.f_code.co_filename) and frame.f_back is not None:
        frame, level = frame.f_back, level + 1
    return level


CallPlace = Origin | tuple[CodeType, int]  # a line, or the instruction of code whose line is looked up when it is printed


def place_of_call(depth: int) -> CallPlace:
    """The user's innermost instruction, or the origin that `at_origin` set.

    ``depth``: of the first frame that may be the user's. Finding the line takes longer than many an op.
    """
    pinned = _pinned.get()
    if pinned is not None:
        return pinned
    frame = sys._getframe(depth)
    while frame is not None:
        code = frame.f_code
        internal = _INTERNAL.get(code.co_filename)
        if internal is None:
            internal = _is_internal(code.co_filename)
        if not internal:
            return code, frame.f_lasti
        frame = frame.f_back  # type: ignore[assignment]
    return NO_ORIGIN


def origin_of(place: CallPlace) -> Origin:
    """The line of ``place``."""
    if isinstance(place, Origin):
        return place
    code, instruction = place
    for start, end, line in code.co_lines():
        if start <= instruction < end and line is not None:
            return _at(code.co_filename, line)
    return _at(code.co_filename, code.co_firstlineno)


_at = lru_cache(maxsize=4096)(Origin)  # the ops of a loop come from few lines
NO_ORIGIN = Origin()
_pinned: ContextVar[Origin | None] = ContextVar("pinned_origin", default=None)


@contextmanager
def at_origin(origin: Origin) -> Iterator[None]:
    """Within it, ops have the given origin: a replayed op and the gradient of an op belong to the
    op's line."""
    token = _pinned.set(origin if origin.line else _pinned.get())
    try:
        yield
    finally:
        _pinned.reset(token)


@dataclass(frozen=True, slots=True)
class UsersCall:
    """What the user called that came to an op: its name, with the op's in brackets if that is another, and what the
    parameters hold now."""

    name: str
    arguments: Mapping[str, Any]

    @staticmethod
    def to(inner: str) -> UsersCall:
        """The call that came to the op ``inner``.

        It is the outermost function of this package below the user's innermost line that has a public name; of a layer, its
        class. Functions within functions wrap others.
        """
        frame = sys._getframe(1)
        name, arguments = inner, dict[str, Any]()
        while frame is not None and _is_internal(frame.f_code.co_filename):
            code = frame.f_code
            wrapper = "<locals>" in code.co_qualname or code.co_name in _PROTOCOLS
            if not wrapper and code.co_filename.startswith(_PACKAGE) and not code.co_name.startswith(("_", "<")):
                layer = frame.f_locals.get("self") if code.co_name == "forward" else None
                name = code.co_name if layer is None else type(layer).__name__
                names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
                arguments = {x: frame.f_locals[x] for x in names if x in frame.f_locals}
            frame = frame.f_back  # type: ignore[assignment]
        if name in _DOORS:
            return UsersCall(inner, {})
        return UsersCall(name if name == inner else f"{name} ({inner})", arguments)


_PROTOCOLS = frozenset(("array_function", "array_ufunc"))  # the user called NumPy's function of the name that follows
_DOORS = frozenset(("apply", "apply_op"))  # what calls an op by itself goes through


def is_user_file(filename: str) -> bool:
    """Whether ``filename`` is neither jitgrad's nor the standard library's."""
    return not _is_internal(filename)


def stack_text(limit: int = 12) -> str:
    """The user's call stack, innermost last, one ``file:line in function`` per line."""
    frame = sys._getframe(1)
    lines: list[str] = []
    while frame is not None and len(lines) < limit:
        if not _is_internal(frame.f_code.co_filename):
            lines.append(f"  {frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}")
        frame = frame.f_back  # type: ignore[assignment]
    return "\n".join(reversed(lines))
