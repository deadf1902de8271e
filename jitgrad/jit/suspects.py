"""The elements of results that are examined, because they are not close to eager's."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitgrad.jit.disturbed_run import AMPLITUDE
from jitgrad.jit.sampled_graph import sorted_set

# Results this close to eager's, in ULP of the element itself, are right. Arithmetic is the same bit
# for bit; functions and sums are within two ULP of the exact result on both sides.
CLOSE_ULPS = {2: 1.0, 4: 4.0, 8: 4.0}  # by the bytes of the dtype
# Disturbances are `AMPLITUDE` roundings, and so is their root mean square, nearly; twice as much is
# tolerated after a single costly run, which shows little of how far an element may move.
TOLERATED = 2.0
# Results are rounded: where a run comes out at the very same number, it may have been a little off.
LENIENCE, TYPICAL = (64.0, 8.0), 2.0
UNSEEN = 0.125  # ULP
# Where others stand for the elements in doubt, it is not known which of these move far: they are as far
# off as those that do, if as many do.
THIN_LENIENCE = 1024.0
# Runs decide for what is fused, and runs decide for what is eager, if they come so near to both.
SAME_SIDE = 0.25
ESTIMATING_RUNS = 4  # that estimates take at most
CLEARLY = 32.0  # times as far off as they move are elements that are wrong
_KEPT = 64  # elements of one result that a look leaves to the next
_BLOCK = 1 << 15  # elements compared at a time: they fit in the cache, and such temporaries cost no page faults

FusedAndEager = tuple[str, np.ndarray[Any, Any], np.ndarray[Any, Any]]  # a result: its name, fused, eager


@dataclass(frozen=True, slots=True)
class Doubt:
    """Elements of one result that rounding does not explain: positions, how far rounding takes
    each, and the values of the recorded program, run op by op.

    ``share``: of the elements of the result, those that are not close.
    """

    positions: np.ndarray[Any, Any]
    share: float = 1.0
    budgets: np.ndarray[Any, Any] | None = None
    recorded: np.ndarray[Any, Any] | None = None


def choose_suspects(
    positions: np.ndarray[Any, Any], ours: np.ndarray[Any, Any], eager: np.ndarray[Any, Any], count: int
) -> np.ndarray[Any, Any]:
    """About ``count`` of the elements at ``positions``: those furthest off in each stripe, relative to
    their own size and absolutely, and others at random."""
    if positions.size <= count:
        return positions
    share = max(1, count // 3)
    x, y = ours.reshape(-1)[positions], eager.reshape(-1)[positions]
    if y.dtype.kind != "f" or y.dtype.itemsize < 4:
        x, y = x.astype(np.float64), y.astype(np.float64)
    with np.errstate(all="ignore"):
        absolute = np.abs(x - y)
        absolute[np.isnan(absolute)] = np.inf
        chosen = [_worst_of_stripes(absolute, share), _worst_of_stripes(absolute / np.abs(y), share)]
    chosen.append(np.random.default_rng(0).integers(positions.size, size=share))
    return np.asarray(positions[sorted_set(np.concatenate(chosen))])


def _worst_of_stripes(distances: np.ndarray[Any, Any], count: int) -> np.ndarray[Any, Any]:
    """The position of the largest number in each of ``count`` stripes; NaN is largest."""
    length = distances.size // count
    found = np.argmax(distances[: count * length].reshape(count, length), axis=1) + np.arange(count) * length
    rest = distances[count * length :]
    return np.append(found, count * length + np.argmax(rest)) if rest.size else found


def find_unlike(ours: np.ndarray[Any, Any], eager: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Positions of the elements that are not close."""
    a, b = ours.reshape(-1), eager.reshape(-1)
    if a.size <= _BLOCK and a.tobytes() == b.tobytes():  # most results are bit-identical
        return np.empty(0, np.int64)
    found = [_unlike(a[k : k + _BLOCK], b[k : k + _BLOCK]) + k for k in range(0, a.size, _BLOCK)]
    return np.concatenate(found) if found else np.empty(0, np.int64)


def _unlike(ours: np.ndarray[Any, Any], eager: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Positions of the elements that are not equal, or floats more than `CLOSE_ULPS` apart."""
    if eager.dtype.kind != "f":
        return np.flatnonzero(ours != eager)
    with np.errstate(all="ignore"):
        near = np.abs(ours - eager) <= np.abs(eager) * _close(eager)
        near &= np.isfinite(eager)
        if near.all():
            return np.empty(0, np.int64)
        return np.flatnonzero(~(near | (ours == eager) | (np.isnan(ours) & np.isnan(eager))))


def _close(eager: np.ndarray[Any, Any]) -> Any:
    return eager.dtype.type(CLOSE_ULPS[eager.dtype.itemsize] * float(np.finfo(eager.dtype).eps))


class Look:
    """The elements of one result that are examined, until enough disturbed runs explain them.

    Elements beside them are also looked at, to know how far such elements move.
    """

    def __init__(
        self,
        pair: FusedAndEager,
        positions: np.ndarray[Any, Any],
        beside: np.ndarray[Any, Any] | None = None,
        *,
        costly: bool = False,
        thin: float | None = None,
    ) -> None:
        self.everything: np.ndarray[Any, Any] = positions if beside is None else np.concatenate([positions, beside])
        self.ours: np.ndarray[Any, Any] = pair[1].reshape(-1)[self.everything]
        self.eager: np.ndarray[Any, Any] = pair[2].reshape(-1)[self.everything]
        self._lenient, self._costly, self._thin = beside is not None, costly, thin
        self.suspects: int = positions.size
        self.runs: int = 0
        self._open = np.arange(positions.size)
        self._apart = distance(self.ours, self.eager)
        self._least = last_rounding(self.eager)
        self._moved = np.zeros(self.everything.size)  # root of the sum of squares, which may under- or overflow
        self._budgets = self._moved
        self._seen = [np.zeros(self.everything.size, np.bool_) for _ in range(2)]
        self._recorded: np.ndarray[Any, Any] | None = None

    def add(self, moved: np.ndarray[Any, Any], at_rest: np.ndarray[Any, Any] | None = None) -> None:
        """Take in the elements of one more disturbed run; ``at_rest``: those of an undisturbed one.

        Without the latter an element's move is its distance from what is nearer, fused or eager, as
        one of these is as if undisturbed; or from the first run, which sees decisions of both kinds.
        """
        if at_rest is None:
            moves = np.minimum(distance(moved, self.ours), distance(moved, self.eager))
            if self._recorded is not None:
                moves = np.maximum(moves, distance(moved, self._recorded))
        else:
            moves = distance(moved, at_rest)
        if self._recorded is None:
            self._recorded = moved if at_rest is None else at_rest
        for seen, x in zip(self._seen, (self.ours, self.eager), strict=True):
            for values in (moved,) if at_rest is None else (moved, at_rest):
                seen |= distance(values, x) < SAME_SIDE * self._apart
        self.runs += 1
        with np.errstate(all="ignore"):
            self._moved = np.hypot(self._moved, moves)
        tolerated = TOLERATED * (1 + 1 / self.runs) if self._costly else TOLERATED
        self._budgets = tolerated * self._typical(self._moved / np.sqrt(self.runs)) + self._least
        explained = (self._apart <= self._budgets) | (self._seen[0] & self._seen[1])
        self._open = self._open[~explained[self._open]]

    def _typical(self, moves: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """``moves``, of elements beside others that moved further nearer to what those did."""
        lenience = (THIN_LENIENCE,) * ESTIMATING_RUNS if self._thin is not None else LENIENCE
        if not self._lenient or self.runs > len(lenience) or self.eager.dtype.kind != "f":
            return moves
        size = np.abs(np.nan_to_num(self.eager.astype(np.float64), posinf=0.0, neginf=0.0))
        with np.errstate(all="ignore"):
            relative = self._usual(np.where(size > 0, moves / size, 0.0)) * size
            typical = TYPICAL * np.maximum(self._usual(moves), relative)
            seen = np.maximum(moves, UNSEEN * float(np.finfo(self.eager.dtype).eps) * size)
            return np.asarray(np.clip(typical, moves, np.maximum(moves, lenience[self.runs - 1] * seen)))

    def _usual(self, moves: np.ndarray[Any, Any]) -> Any:
        """How far elements like those that are examined move."""
        return _quantile(moves, 0.5 if self._thin is None else max(0.5, 1.0 - self._thin))

    @property
    def remaining(self) -> int:
        return int(self._open.size)

    @property
    def clearly_wrong(self) -> bool:
        return bool(np.all((self._apart > CLEARLY * self._budgets)[self._open]))

    @property
    def doubt(self) -> Doubt:
        """The elements furthest beyond what the runs explain."""
        left = self._open
        if left.size > _KEPT:
            left = np.sort(left[np.argsort((self._budgets - self._apart)[left])[:_KEPT]])
        assert self._recorded is not None
        return Doubt(self.everything[left], 1.0, self._budgets[left], self._recorded[left])


def _quantile(x: np.ndarray[Any, Any], share: float) -> float:
    """`np.quantile`, which imports NumPy's masked arrays."""
    place = share * (x.size - 1)
    below, above = int(place), min(int(place) + 1, x.size - 1)
    parts = np.partition(x.ravel(), (below, above, x.size - 1))
    a, b = float(parts[below]), float(parts[above])
    return math.nan if np.isnan(parts[-1]) else a if a == b else a + (b - a) * (place - below)


def last_rounding(eager: np.ndarray[Any, Any]) -> Any:
    """The distance of results that are close in any case."""
    if eager.dtype.kind != "f":
        return 0.0
    size = np.abs(np.nan_to_num(eager.astype(np.float64), posinf=0.0, neginf=0.0))
    return size * float(_close(eager)) + AMPLITUDE * float(np.finfo(eager.dtype).smallest_subnormal)


def distance(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """|a - b|: 0 where both are NaN or the same infinity, infinite where only one is."""
    with np.errstate(all="ignore"):
        x, y = a.astype(np.float64), b.astype(np.float64)
        same = (a == b) | (np.isnan(x) & np.isnan(y))
        apart = np.nan_to_num(np.abs(x - y), nan=np.inf, posinf=np.inf)
    if a.dtype.kind != "f":
        apart = np.maximum(apart, 1.0)  # large integers may round to the same float64
    return np.where(same, 0.0, apart)
