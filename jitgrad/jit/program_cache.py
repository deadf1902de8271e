"""The executables of one @jit function: by signature, and not more than a limit; and its counters."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from jitgrad.core import config
from jitgrad.jit.executable import Executable


@dataclass(slots=True)
class CacheInfo:
    """Counters of one @jit function."""

    calls: int = 0
    traces: int = 0
    programs: int = 0
    kernels_compiled: int = 0
    kernels_from_disk: int = 0
    fallbacks: int = 0
    dropped: int = 0
    background: int = 0


class ProgramCache:
    """Executables by the signature of their calls; the longest unused signatures are dropped.

    Looking up takes no lock; the caller holds one while it adds or removes.
    """

    def __init__(self) -> None:
        self._executables: dict[Any, list[Executable]] = {}  # of a signature, the newest first
        self._used: dict[Any, int] = {}  # when a signature was looked up last
        self._clock = count()

    def __contains__(self, key: Any) -> bool:
        return key in self._executables

    def __len__(self) -> int:
        return len(self._executables)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._executables)

    def of(self, key: Any) -> Sequence[Executable]:
        """The executables for calls with the signature ``key``."""
        found = self._executables.get(key, ())
        if found:
            self._used[key] = next(self._clock)
        return found

    def newest(self) -> Any:
        """The signature that was added last."""
        return next(reversed(self._executables))

    def add(self, key: Any, executable: Executable, most: int) -> int:
        """Keep ``executable``; returns how many of its signature there are now, at most ``most``.

        Each costs memory, and a check of its guards when no newer one is valid.
        """
        executables = self._executables.setdefault(key, [])
        executables.insert(0, executable)
        self._used[key] = next(self._clock)
        del executables[most:]
        return len(executables)

    def prefer(self, key: Any, executable: Executable) -> None:
        """Let calls try ``executable`` first: the next one probably decides alike."""
        executables = self._executables.get(key, [])
        if executable in executables:  # a new list: other threads go through the old one without a lock
            self._executables[key] = [executable, *(e for e in executables if e is not executable)]

    def drop_unused(self, kept: Collection[Any]) -> int:
        """Drop signatures beyond JITGRAD_MAX_PROGRAMS, but none in ``kept``; returns how many."""
        most = config.read("JITGRAD_MAX_PROGRAMS")
        if most is None or len(self._executables) <= most:
            return 0
        excess = len(self._executables) - most
        oldest = sorted((k for k in self._executables if k not in kept), key=lambda k: self._used[k])[:excess]
        for key in oldest:
            self.pop(key)
        return len(oldest)

    def pop(self, key: Any) -> None:
        self._executables.pop(key, None)
        self._used.pop(key, None)

    def remove(self, key: Any, executable: Executable) -> None:
        self._executables[key].remove(executable)

    def replace(self, key: Any, executable: Executable, other: Executable) -> None:
        """Use ``other`` in place of ``executable``."""
        found = self._executables[key]
        found[found.index(executable)] = other

    def clear(self) -> None:
        self._executables.clear()
        self._used.clear()
