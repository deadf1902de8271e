"""Tells rounding from mistakes: which results of a program are further from eager than rounding takes
them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitgrad.core.ir import Graph
from jitgrad.jit.disturbed_run import AMPLITUDE, Disturbance, GraphRun
from jitgrad.jit.sampled_graph import sample

# Results this close to eager's, in ULP of the element itself, are right. Arithmetic is the same bit
# for bit; functions and sums are within two ULP of the exact result on both sides.
CLOSE_ULPS = {2: 1.0, 4: 4.0, 8: 4.0}  # by the bytes of the dtype
SUSPECTS = 1024  # elements of all results that are examined
FEWEST_SUSPECTS = 8  # of one result, where each depends on much
# The elements that one disturbed run may compute, as a share of those of an eager run; small runs
# are free.
AFFORDABLE, FREE_ELEMENTS = 0.05, 1 << 20
TOLERATED = 2.0  # disturbances are `AMPLITUDE` roundings, and so is their root mean square, nearly
_KEPT = 64  # elements of one result that a look leaves to the next
_BLOCK = 1 << 15  # elements compared at a time: they fit in the cache, and such temporaries cost no page faults

FusedAndEager = tuple[str, np.ndarray[Any, Any], np.ndarray[Any, Any]]  # a result: its name, fused, eager


@dataclass(frozen=True, slots=True)
class Look:
    """How many disturbed runs examine the elements in doubt, and whether these estimate long sums."""

    runs: int
    estimate: bool


LOOKS = (Look(4, True), Look(16, True), Look(8, False))  # each at what those before it do not explain


@dataclass(frozen=True, slots=True)
class Doubt:
    """Elements of one result that rounding does not explain: positions, how far rounding takes
    each, and the values of the recorded program, run op by op."""

    positions: np.ndarray[Any, Any]
    budgets: np.ndarray[Any, Any] | None = None
    recorded: np.ndarray[Any, Any] | None = None


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One result that disagrees: its name, the element furthest off, its distance from eager, and
    how far rounding takes it."""

    what: str
    distance: float
    allowed: float
    output: int = -1
    element: tuple[int, ...] = ()
    recorded_wrong: bool = False  # the recorded program, run op by op, is not what eager is
    doubt: Doubt | None = None

    def remains(self, ours: np.ndarray[Any, Any], eager: np.ndarray[Any, Any]) -> bool:
        """Whether ``ours`` is as wrong at the same elements."""
        if self.doubt is None:
            return bool(ours.shape != eager.shape or ours.dtype != eager.dtype)
        x, y = ours.reshape(-1)[self.doubt.positions], eager.reshape(-1)[self.doubt.positions]
        return bool(np.any(~(distance(x, y) <= self.doubt.budgets)))

    def __str__(self) -> str:
        at = f" at {list(self.element)}" if self.element else ""
        text = f"{self.what}{at}: off by {self.distance:.3g}, rounding explains {self.allowed:.3g}"
        if self.recorded_wrong:
            text += "; the recorded program, run op by op, gives another result than the function"
        return text


def find_mismatches(graph: Graph, inputs: Sequence[Any], pairs: Mapping[int, FusedAndEager]) -> list[Mismatch]:
    """The results that differ from eager's by more than rounding, given by output of ``graph``.

    Elements that are not close to eager's are examined by disturbed runs of what they depend on:
    first by estimates, and if these do not explain the differences, by the whole of it.
    """
    mismatches: list[Mismatch] = []
    unlike: dict[int, np.ndarray[Any, Any]] = {}
    for k, (name, ours, eager) in pairs.items():
        if ours.shape != eager.shape or ours.dtype != eager.dtype:
            what = f"{name} is {ours.dtype}{list(ours.shape)}, not {eager.dtype}{list(eager.shape)}"
            mismatches.append(Mismatch(what, np.inf, 0.0, k))
        elif (found := find_unlike(ours, eager)).size:
            unlike[k] = found
    doubts, estimated = {k: Doubt(p) for k, p in _affordable_suspects(graph, pairs, unlike).items()}, True
    for look in LOOKS:
        if doubts and (look.estimate or estimated):
            doubts, estimated = _examine(graph, inputs, pairs, doubts, look)
    return [*mismatches, *(_mismatch(k, pairs[k], doubt) for k, doubt in doubts.items())]


def _affordable_suspects(
    graph: Graph, pairs: Mapping[int, FusedAndEager], unlike: Mapping[int, np.ndarray[Any, Any]]
) -> dict[int, np.ndarray[Any, Any]]:
    """As many of the elements ``unlike`` eager's as can be examined at small cost, and at least some."""
    count, suspects = max(FEWEST_SUSPECTS, SUSPECTS // max(1, len(unlike))), {}
    most = max(FREE_ELEMENTS, int(AFFORDABLE * sum(out.aval.size for node in graph.nodes for out in node.outs)))
    while unlike:
        suspects = {k: choose_suspects(found, *pairs[k][1:], count) for k, found in unlike.items()}
        if count <= FEWEST_SUSPECTS or sample(graph, suspects, estimate=True, most=most) is not None:
            break
        count = max(FEWEST_SUSPECTS, count // 8)
    return suspects


def choose_suspects(
    positions: np.ndarray[Any, Any], ours: np.ndarray[Any, Any], eager: np.ndarray[Any, Any], count: int
) -> np.ndarray[Any, Any]:
    """About ``count`` of the elements at ``positions``: those furthest off, relative to their own size
    and absolutely, and others at random."""
    if positions.size <= count:
        return positions
    with np.errstate(all="ignore"):
        x, y = ours.reshape(-1)[positions].astype(np.float64), eager.reshape(-1)[positions].astype(np.float64)
        absolute = np.nan_to_num(np.abs(x - y), nan=np.inf)
        relative = absolute / np.abs(y)
    share = max(1, count // 3)
    chosen = [np.argpartition(-d, share)[:share] for d in (absolute, relative)]
    chosen.append(np.random.default_rng(0).integers(positions.size, size=share))
    return np.unique(positions[np.concatenate(chosen)])


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


# --- disturbed runs --------------------------------------------------------------------------------


def measure(
    graph: Graph, inputs: Sequence[Any], positions: Mapping[int, np.ndarray[Any, Any]], look: Look
) -> tuple[list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]], bool]:
    """For each output of ``graph`` in ``positions``: its elements there in a run op by op, and how far
    rounding takes them; and whether these are estimates."""
    made = sample(graph, positions, estimate=look.estimate)
    assert made is not None
    sampled, estimated = made
    run = GraphRun(sampled, inputs)
    base = run(None)
    moves = [np.zeros(x.shape) for x in base]  # root of the sum of squares over all runs
    for seed in range(look.runs):
        moved = run(Disturbance(seed, measure_drift=not look.estimate))
        for move, x, at_rest in zip(moves, moved, base, strict=True):
            np.hypot(move, distance(x, at_rest), out=move)
    shapes = [p.shape for p in positions.values()]
    factor = TOLERATED / np.sqrt(look.runs)
    return [
        (np.broadcast_to(x.reshape(-1), shape), np.broadcast_to(factor * move.reshape(-1), shape))
        for x, move, shape in zip(base, moves, shapes, strict=True)
    ], estimated


def _examine(
    graph: Graph, inputs: Sequence[Any], pairs: Mapping[int, FusedAndEager], doubts: Mapping[int, Doubt], look: Look
) -> tuple[dict[int, Doubt], bool]:
    """The part of ``doubts`` that disturbed runs do not explain, and whether these were estimates."""
    remaining = {}
    measured, estimated = measure(graph, inputs, {k: doubt.positions for k, doubt in doubts.items()}, look)
    for (k, doubt), (recorded, moves) in zip(doubts.items(), measured, strict=True):
        _, ours, eager = pairs[k]
        x, y = ours.reshape(-1)[doubt.positions], eager.reshape(-1)[doubt.positions]
        budgets = moves + last_rounding(y)
        apart = distance(x, y)
        beyond = np.flatnonzero(~(apart <= budgets))
        if beyond.size > _KEPT:
            beyond = beyond[np.argsort(budgets[beyond] - apart[beyond])[:_KEPT]]
            beyond.sort()
        if beyond.size:
            remaining[k] = Doubt(doubt.positions[beyond], budgets[beyond], recorded[beyond])
    return remaining, estimated


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


def _mismatch(k: int, pair: FusedAndEager, doubt: Doubt) -> Mismatch:
    name, ours, eager = pair
    assert doubt.budgets is not None and doubt.recorded is not None
    x, y = ours.reshape(-1)[doubt.positions], eager.reshape(-1)[doubt.positions]
    apart = distance(x, y)
    worst = int(np.argmax(apart - doubt.budgets))
    element = tuple(map(int, np.unravel_index(doubt.positions[worst], eager.shape)))
    strays = bool(np.any(distance(doubt.recorded, y) > doubt.budgets))
    return Mismatch(name, float(apart[worst]), float(doubt.budgets[worst]), k, element, strays, doubt)
