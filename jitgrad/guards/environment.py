"""Records what a trace can read outside a function, finds its changes, makes the guard."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from jitgrad.core.errors import UnguardableError
from jitgrad.core.origin import Origin, is_user_file
from jitgrad.core.tensor import Tensor
from jitgrad.guards.denylist import random_state
from jitgrad.guards.discovery import Discovery
from jitgrad.guards.guard import NOWHERE, Check, Guard, Path, describe
from jitgrad.guards.object_state import ArrayState, OpenObject, instance_dict, lookup, title

MAX_ARRAY_BYTES = 64 * 1024  # compared on every call: 64 kB take about 3 us


class Environment:
    """A record of everything outside a function that the function may read.

    ``capture`` it before tracing, ask for ``changes`` right after, then make the ``guard``. It
    holds strong references to all recorded objects, so that no identity can be reused.
    """

    def __init__(self, discovery: Discovery) -> None:
        self._discovery = discovery
        self._contents = {
            id(state.array): state.array.tobytes()
            for state in discovery.arrays
            if state.array.nbytes <= MAX_ARRAY_BYTES
        }

    @staticmethod
    def capture(function: Callable[..., Any], static_values: Mapping[str, Any] | None = None) -> Environment:
        """The present state of everything that ``function`` and its static arguments can reach.

        The cache key of the caller must hold static arguments that are objects, and the
        ``__self__`` of a bound method, by identity: guards watch these very objects.

        Raises:
            UnguardableError: if the function reads a clock, a random state, a file or the like,
                consumes an iterator, or assigns to a global or an outer variable.
        """
        discovery = Discovery(frozenset(_files(function)))
        if isinstance(function, MethodType):
            code = getattr(function.__func__, "__code__", None)
            first = code.co_varnames[0] if code is not None and code.co_varnames else "self"
            discovery.enqueue(function.__self__, Path("", first))
        name = title(function) if hasattr(function, "__qualname__") else type(function).__name__
        discovery.enqueue(function, Path("", name))
        for key, value in (static_values or {}).items():
            discovery.enqueue(value, Path("argument", key))
        discovery.run()
        return Environment(discovery)

    def tensors(self) -> dict[str, Tensor]:
        """The tensors that the function can reach, by the expression that leads to them."""
        named: dict[str, Tensor] = {}
        for path, tensor in self._discovery.tensors.values():
            name, count = path.text, 2
            # one name in two modules or functions
            while named.setdefault(name, tensor) is not tensor:
                name, count = f"{path.text}#{count}", count + 1
        return named

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """The NumPy arrays that the function can reach, by the expression that leads to them."""
        return {state.path.text: state.array for state in self._discovery.arrays}

    def guard(self, lifted: Iterable[np.ndarray[Any, Any]] = ()) -> Guard:
        """The guard of a trace. The program reads the arrays ``lifted`` on every call.

        Raises:
            UnguardableError: if an array that is not lifted is too large to be compared on every
                call.
        """
        inputs = {id(array) for array in lifted}
        checks = list(self._discovery.checks)
        for state in self._discovery.arrays:
            if id(state.array) in inputs:
                continue
            content = self._contents.get(id(state.array))
            if content is not None:
                checks.append(Check("content", state.array, None, content, state.path, state.origin))
            elif id(state.array) in self._discovery.mentioned:
                raise _too_large(state)
        return Guard(checks)

    # --- what the trace changed -------------------------------------------------------------------

    def changes(self) -> list[str]:
        """Side effects of the trace on Python state, which a compiled program would not repeat."""
        reasons: dict[str, str] = {}
        for check in self._discovery.checks:
            reason = check.reason()
            if reason is not None and not _fills_cache(check, self._discovery.objects):
                reasons.setdefault(check.path.text, _consequence(check, check.read(), reason))
        for path, old, now in self._differences():
            origin = self._discovery.names.stores.get(path.text.rpartition(".")[2], NOWHERE)
            check = Check("item", {}, None, old, path, origin)
            reason = f"{path}{_place(check.origin)} changed from {describe(old)} to {describe(now)}"
            reasons.setdefault(path.text, _consequence(check, now, reason))
        for generator, state, path in self._discovery.random_states:
            if random_state(generator) != state:
                reasons[path.text] = f"{path} was drawn from: pass the numbers as arguments, or use jitgrad.Generator"
        for array in self._discovery.arrays:
            content = self._contents.get(id(array.array))
            if content is not None and content != array.array.tobytes():
                reasons[array.path.text] = f"{array.path} changed its contents: make it a tensor and assign in place"
        return list(reasons.values())

    def _differences(self) -> Iterator[tuple[Path, Any, Any]]:
        """Changed attributes: path, old and new value."""
        for opened in self._discovery.objects:
            for name, old, new in opened.differences(self._discovery):
                if not _is_cache(opened, name, new):
                    yield opened.path.attr(name), old, new
        for opened_class in self._discovery.classes:
            for name, old, new in opened_class.differences():
                yield Path("class attribute", f"{title(opened_class.cls)}.{name}"), old, new

    def restore(self) -> None:
        """Restore attributes and containers after a failed trace."""
        for container, before in self._discovery.containers:
            _refill(container, before)
        for opened in self._discovery.objects:
            opened.restore(self._discovery)
        for opened_class in self._discovery.classes:
            opened_class.restore()


def _files(function: Any) -> Iterator[str]:
    """The function's file, which counts as user code, unless jitgrad generated it."""
    inner = getattr(function, "__func__", getattr(function, "func", function))
    code = getattr(inner, "__code__", None)
    if isinstance(inner, FunctionType) and code is not None and is_user_file(code.co_filename):
        yield code.co_filename


def _place(origin: Origin) -> str:
    return f" ({origin})" if origin.line else ""


def _too_large(state: ArrayState) -> UnguardableError:
    return UnguardableError(
        f"{state.origin.full()}: {state.path} is {describe(state.array)}, too large to be compared on every call, and "
        "the function read it as Python does (not as an operand of jitgrad): pass it as an argument"
    )


def _consequence(check: Check, now: Any, reason: str) -> str:
    if isinstance(now, Tensor):
        verb = "replaced" if isinstance(check.expected, Tensor) else "stored"
        if check.kind in ("attribute", "item", "absent", "cell", "unset"):
            return (
                f"{check.path}{_place(check.origin)}: Tensor {verb}; assign in place (`{check.path.text}[...] = ...`) "
                "or return it"
            )
    return f"{reason}; this happens only while tracing: return the value, or keep it in a tensor updated in place"


def _is_cache(opened: OpenObject, name: str, new: Any) -> bool:
    """Whether a ``cached_property`` stored its value, which is no visible side effect."""
    if name in getattr(type(opened.value), "_unguarded", ()):
        return True
    return isinstance(lookup(type(opened.value), name), cached_property) and not isinstance(new, Tensor)


def _fills_cache(check: Check, objects: list[OpenObject]) -> bool:
    if check.kind != "absent":
        return False
    owner = next((opened for opened in objects if instance_dict(opened.value) is check.holder), None)
    return owner is not None and _is_cache(owner, check.key, check.read())


def _refill(container: Any, before: Any) -> None:
    if isinstance(container, list):
        container[:] = before
    elif isinstance(container, deque):
        container.clear()
        container.extend(before)
    elif isinstance(container, dict | set):
        container.clear()
        container.update(before)
