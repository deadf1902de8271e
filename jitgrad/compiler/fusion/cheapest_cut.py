"""The cheapest set of values from which others can be computed: a minimum cut (Ford and Fulkerson 1956)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterable
from typing import TypeVar

_T = TypeVar("_T", bound=Hashable)
_Point = tuple[_T, bool]  # a value, after (True) or before what it costs
_ENDLESS = 1 << 60


def cheapest_cut(wanted: Iterable[_T], operands: Callable[[_T], Collection[_T]], cost: Callable[[_T], int]) -> list[_T]:
    """Values of the least total cost that lie on every way from one of ``wanted`` to a value without operands.

    ``operands`` are those of a value, ``cost`` is what it takes to have it in memory. Of several such sets it is the one
    nearest to ``wanted``, which leaves the least to compute. It takes a number of searches that grows with the size of
    the set, and each of them looks no further than the first way that is not cut.
    """
    flow: dict[tuple[_Point[_T], _Point[_T]], int] = {}
    sources: dict[_Point[_T], list[_Point[_T]]] = {}  # reached by flow that can be taken back
    starts = [(value, True) for value in wanted]

    def ways(point: _Point[_T]) -> list[tuple[_Point[_T], int]]:
        """Where one gets from ``point``, and how much more may flow there."""
        value, after = point
        if after:
            found = [((value, False), cost(value) - flow.get((point, (value, False)), 0))]
        else:
            found = [((x, True), _ENDLESS) for x in operands(value)]
        return [*found, *((back, flow[back, point]) for back in sources.get(point, ()))]

    while True:
        before: dict[_Point[_T], tuple[_Point[_T], int] | None] = dict.fromkeys(starts)
        end = _search(before, ways, operands)
        if end is None:
            return list(dict.fromkeys(v for v, after in before if after and (v, False) not in before))
        path: list[tuple[_Point[_T], _Point[_T], int]] = []
        while (step := before[end]) is not None:
            path.append((step[0], end, step[1]))
            end = step[0]
        least = min(room for _, _, room in path)
        for a, b, _ in path:
            back = min(least, flow.get((b, a), 0))
            flow[b, a] = flow.get((b, a), 0) - back
            flow[a, b] = flow.get((a, b), 0) + least - back
            if a not in sources.setdefault(b, []):
                sources[b].append(a)


def _search(
    before: dict[_Point[_T], tuple[_Point[_T], int] | None],
    ways: Callable[[_Point[_T]], list[tuple[_Point[_T], int]]],
    operands: Callable[[_T], Collection[_T]],
) -> _Point[_T] | None:
    """The first point, of a value without operands, that a way leads to; all points on the ways are put into ``before``."""
    waiting = deque(before)
    while waiting:
        point = waiting.popleft()
        if not point[1] and not operands(point[0]):
            return point
        for following, room in ways(point):
            if room > 0 and following not in before:
                before[following] = point, room
                waiting.append(following)
    return None
