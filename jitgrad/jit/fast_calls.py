"""The fast calls of one @jit function: at most one for each signature, and not more than a few."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

from jitgrad.jit.decided import DecidedOtherwise, Outcomes, tell_more
from jitgrad.jit.executable import Executable
from jitgrad.jit.fast_call import MISS, FastCall
from jitgrad.jit.program_cache import ProgramCache
from jitgrad.jit.signature import Call

# Every call tries the fast calls of its function one after the other.
MANY_FAST_CALLS = 4


class FastCalls:
    """Fast calls by the signature of their calls; whoever adds or clears holds the lock of the function.

    Attributes:
        in_order: the fast calls, for threads that try them without the lock.
    """

    def __init__(self, programs: ProgramCache, lock: AbstractContextManager[Any]) -> None:
        self.in_order: tuple[FastCall, ...] = ()
        self._programs = programs
        self._lock = lock
        self._by_key: dict[Any, FastCall] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    def __iter__(self) -> Iterator[Any]:
        """The signatures."""
        return iter(self._by_key)

    def add(self, executable: Executable, call: Call) -> None:
        """Generate a fast call after the second use of ``executable``, where that is possible."""
        earlier = self._by_key.pop(call.key, None)
        if executable.traced.decided and executable.fast_call is not None:
            self._keep(call.key, executable.fast_call)
        elif not executable.without_fast_call and not executable.program.long:
            executable.fast_call = executable.make_fast_call(call)
            executable.without_fast_call = executable.fast_call is None or earlier is not None
            if executable.fast_call is not None:
                self._keep(call.key, executable.fast_call)
        self.in_order = tuple(self._by_key.values())

    def _keep(self, key: Any, fast_call: FastCall) -> None:
        if len(self._by_key) >= MANY_FAST_CALLS:
            del self._by_key[next(iter(self._by_key))]
        self._by_key[key] = fast_call

    def other(
        self, failed: FastCall, outcomes: Outcomes | None, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, Outcomes | None]:
        """(the result of a call that decides ``outcomes`` first, or MISS, and what is known of its decisions then).

        ``failed`` is the fast call that found them: that of another program for the same signature is tried.
        """
        key = next((k for k, f in [*self._by_key.items()] if f is failed), None)
        while outcomes is not None:
            found = (e for e in self._programs.of(key) if e.fast_call is not None and e.decides(outcomes))
            executable = next(found, None)
            if executable is None or executable.fast_call is None:
                break
            try:
                result = executable.fast_call(args, kwargs)
            except DecidedOtherwise as other:
                if not tell_more(other.outcomes, outcomes):
                    break
                outcomes = other.outcomes
                continue
            self._prefer(key, executable.fast_call)
            return result, outcomes
        return MISS, outcomes

    def _prefer(self, key: Any, fast_call: FastCall) -> None:
        """The next call probably decides alike."""
        with self._lock:
            if key in self._by_key:  # nobody has cleared it meanwhile
                self._by_key[key] = fast_call
                self.in_order = tuple(self._by_key.values())

    def clear(self) -> None:
        self._by_key.clear()
        self.in_order = ()
