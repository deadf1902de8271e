"""NumPy arrays outside a traced function: what was read of them, and their elements before the function changed them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from jitgrad.core.origin import Origin
from jitgrad.guards.guard import Path

MAX_COMPARED_BYTES = 64 * 1024 * 1024  # of an array, on every call, in about 10 ms


@dataclass(slots=True)
class ArrayRead:
    """A NumPy array outside the function, with its elements before the first read, if they are few.

    ``compared``: Python code read its elements. ``used``: an operator or jitgrad did, which makes
    it an input of the program, or else a constant. ``before``: many elements, before Python code got
    hold of them, which it may change.
    """

    array: np.ndarray[Any, Any]
    path: Path
    origin: Origin
    content: bytes | None
    compared: bool = False
    used: bool = False
    before: np.ndarray[Any, Any] | None = None

    def keep(self) -> None:
        """Before Python code or C code gets the elements: keep a copy of them."""
        if self.content is None and self.before is None and self.array.nbytes <= MAX_COMPARED_BYTES:
            self.before = self.array.copy()

    def compare(self) -> None:
        """Python code reads the elements, which are then compared on every call."""
        self.compared = True
        self.keep()

    @property
    def has_changed(self) -> bool:
        """Whether the function has changed the elements, as far as they are known."""
        if self.content is not None:
            return self.content != self.array.tobytes()
        return self.before is not None and self.before.tobytes() != self.array.tobytes()

    def restore(self) -> None:
        """Put back the elements that the function has changed."""
        if self.has_changed and self.array.flags.writeable:
            old = self.before if self.content is None else np.frombuffer(self.content, self.array.dtype)
            self.array[...] = np.asarray(old).reshape(self.array.shape)


def owner_of(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array that owns the memory of ``array``, or at least has it of no array."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array
