"""Random numbers of small draws, computed for many draws at once.

Element ``i`` of a draw depends on the key, the counter and ``i`` alone, and the counter moves on by the blocks that a draw
uses. So the numbers of the next draws are known: a run of NumPy's functions over a window of blocks gives what
the same functions give for each draw by itself, and takes hardly longer than for one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jitgrad.core.aval import Shape

Numbers = np.ndarray[Any, Any]
# (key, first block, count) -> that many numbers
NumbersOfWindow = Callable[[int, int, int], Numbers]
# (key, first block, count, draws) -> numbers of shape [draws, count]
PairsOfWindow = Callable[[int, int, int, int], Numbers]

_FEWEST = 32  # blocks: NumPy takes as long for one
_MOST = 1 << 12  # blocks of a window, and of a draw that is taken from one
LAST_COUNTER = 1 << 63  # no counter up to here overflows within a draw


class _Window(NamedTuple):
    """The numbers of the blocks from ``first`` on, of one stream."""

    key: int
    first: int
    stop: int
    numbers: Numbers


class ReadAhead:
    """The numbers that ``draw`` makes of consecutive blocks, one of each element.

    A window that follows the last one, as far as other kinds of draws leave room between them, is twice as large.
    """

    __slots__ = ("_draw", "_window")

    def __init__(self, draw: NumbersOfWindow) -> None:
        self._draw = draw
        self._window = _Window(0, 0, 0, np.empty(0))

    def take(self, key: int, counter: int, shape: Shape, count: int) -> Numbers | None:
        """The ``count`` numbers of a draw in ``shape``, in memory of their own; None for a draw without use for a window."""
        blocks = (count + 1) // 2
        if not 0 < blocks <= _MOST or counter > LAST_COUNTER:
            return None
        window = self._window  # another thread may replace it meanwhile
        if window.key != key or not window.first <= counter <= window.stop - blocks:
            window = self._window = self._next(window, key, counter, blocks)
        start = 2 * (counter - window.first)
        return window.numbers[start : start + count].reshape(shape).copy()

    def _next(self, last: _Window, key: int, counter: int, blocks: int) -> _Window:
        length = last.stop - last.first
        follows = last.key == key and last.first <= counter <= last.stop + length
        length = max(min(2 * length, _MOST) if follows else _FEWEST, blocks)
        numbers = self._draw(key, counter, 2 * length)
        return _Window(key, counter, counter + length, numbers)


class ReadAheadOfPairs:
    """The numbers that ``draw`` makes of two words for each element, in repeated draws of ``count`` elements.

    The first words of a draw lie before the second ones, so draws of other sizes share nothing.
    """

    __slots__ = ("_count", "_draw", "_window")

    def __init__(self, draw: PairsOfWindow, count: int) -> None:
        self._draw = draw
        self._count = count
        self._window = _Window(0, 0, 0, np.empty((0, count)))

    def take(self, key: int, counter: int, shape: Shape, count: int) -> Numbers | None:
        """As `ReadAhead.take`; ``count`` is that of `__init__`."""
        blocks = (count + 1) // 2  # of the first words, and of the second ones
        if not 0 < blocks <= _MOST or counter > LAST_COUNTER:
            return None
        window = self._window
        draw, rest = divmod(counter - window.first, 2 * blocks)
        if window.key != key or rest or not 0 <= draw < len(window.numbers):
            follows = window.key == key and counter == window.stop
            draws = max(min(2 * len(window.numbers), _MOST // blocks), 1) if follows else 1
            window, draw = self._computed(key, counter, blocks, draws), 0
            self._window = window
        numbers: Numbers = window.numbers[draw].reshape(shape).copy()
        return numbers

    def _computed(self, key: int, counter: int, blocks: int, draws: int) -> _Window:
        numbers = self._draw(key, counter, self._count, draws)
        return _Window(key, counter, counter + draws * 2 * blocks, numbers)
