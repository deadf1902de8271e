"""Tells rounding from mistakes: which results of a program are further from eager than rounding takes
them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jitgrad.compiler.passes.cleanup import eliminate_dead
from jitgrad.core.ir import Graph
from jitgrad.core.op import Kind
from jitgrad.jit.disturbed_run import AMPLITUDE, Disturbance, PartialDisturbance, is_large
from jitgrad.jit.graph_run import GraphRun
from jitgrad.jit.sampled_graph import Sample, sample, sorted_set
from jitgrad.jit.thin_graph import thinned

# Results this close to eager's, in ULP of the element itself, are right. Arithmetic is the same bit
# for bit; functions and sums are within two ULP of the exact result on both sides.
CLOSE_ULPS = {2: 1.0, 4: 4.0, 8: 4.0}  # by the bytes of the dtype
SUSPECTS = 1024  # elements of all results that are examined
FEWEST_SUSPECTS = 8  # of one result, where each depends on much
# The elements that a run for some suspects may compute, as a share of those of an eager run; small
# runs are free. Otherwise, and if operations take longer to start than to run, everything runs.
AFFORDABLE, FREE_ELEMENTS, SMALL_OPERATION = 0.004, 1 << 18, 1 << 12
# Disturbances are `AMPLITUDE` roundings, and so is their root mean square, nearly; twice as much is
# tolerated after a single costly run, which shows little of how far an element may move.
TOLERATED = 2.0
# The first runs of everything disturb a share of the ops, for speed. An element that happens to move
# little in one run or two has at least part of what those beside it move, but so many times its own.
PARTIAL_RUNS = 2
ENOUGH, PARTIAL = 48, (1 / 32, 1 / 8)  # ops of a kind, and the least and the largest share of elementwise ones
# Results are rounded: where a run comes out at the very same number, it may have been a little off.
LENIENCE, TYPICAL = (64.0, 8.0), 2.0
UNSEEN = 0.125  # ULP
# Where others stand for the elements in doubt, it is not known which of these move far: they are as far
# off as those that do, if as many do.
THIN_LENIENCE = 1024.0
# Runs decide for what is fused, and runs decide for what is eager, if they come so near to both.
SAME_SIDE = 0.25
_BESIDE = 64  # elements of one result that tell how far others move
ESTIMATING_RUNS, MOST_RUNS = 4, 24  # disturbed runs that examine an element: of parts of sums, and of all
_CLEAR, _CLEARLY = 6, 32.0  # after so many runs, so many elements are wrong if they are so much further off than they move
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
    if not unlike:
        return mismatches
    doubts, part = _cheapest_look(graph, pairs, unlike)
    if part is not None:
        doubts = _examine_part(part, inputs, pairs, doubts)
    if doubts and (part is None or part.estimated):
        doubts = _examine_all(graph, inputs, pairs, doubts)
    return [*mismatches, *(_mismatch(k, pairs[k], doubt) for k, doubt in doubts.items())]


def _cheapest_look(
    graph: Graph, pairs: Mapping[int, FusedAndEager], unlike: Mapping[int, np.ndarray[Any, Any]]
) -> tuple[dict[int, Doubt], Sample | None]:
    """The elements ``unlike`` eager's to examine, and the graph that computes these; None: all of it."""
    most = max(FREE_ELEMENTS, int(AFFORDABLE * _elements(graph)))
    many, few = [max(FEWEST_SUSPECTS, n // len(unlike)) for n in (SUSPECTS, SUSPECTS // 32)]
    small = _has_small_operations(graph)
    suspects = {k: choose_suspects(found, *pairs[k][1:], many) for k, found in unlike.items()}
    if not small:
        part = sample(graph, suspects, estimate=True, most=most)
        if part is None:
            suspects = {k: choose_suspects(found, *pairs[k][1:], few) for k, found in suspects.items()}
            part = sample(graph, suspects, estimate=True, most=most) or thinned(graph, suspects)
    shares = {k: found.size / pairs[k][2].size for k, found in unlike.items()}
    return {k: Doubt(positions, shares[k]) for k, positions in suspects.items()}, None if small else part


def _elements(graph: Graph) -> int:
    return sum(out.aval.size for node in graph.nodes for out in node.outs)


def _has_small_operations(graph: Graph) -> bool:
    """Whether operations take longer to start than to run."""
    return _elements(graph) <= SMALL_OPERATION * len(graph.nodes)


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


# --- disturbed runs --------------------------------------------------------------------------------


def measure(
    graph: Graph, inputs: Sequence[Any], positions: Mapping[int, np.ndarray[Any, Any]], runs: int
) -> list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    """For each output of ``graph`` in ``positions``: its elements there in a run op by op, and how far
    rounding takes them."""
    made = sample(graph, positions, estimate=False)
    assert made is not None
    run = GraphRun(made.graph, inputs)
    base = run(None)
    moves = [np.zeros(x.shape) for x in base]  # root of the sum of squares over all runs
    for seed in range(runs):
        for move, x, at_rest in zip(moves, run(Disturbance(seed, measure_drift=True)), base, strict=True):
            np.hypot(move, distance(x, at_rest), out=move)
    shapes = [p.shape for p in positions.values()]
    factor = TOLERATED / np.sqrt(runs)
    return [
        (np.broadcast_to(x.reshape(-1), shape), np.broadcast_to(factor * move.reshape(-1), shape))
        for x, move, shape in zip(base, moves, shapes, strict=True)
    ]


def _examine_part(
    part: Sample, inputs: Sequence[Any], pairs: Mapping[int, FusedAndEager], doubts: dict[int, Doubt]
) -> dict[int, Doubt]:
    """What remains of ``doubts`` after runs of the graph that computes these elements."""
    run = GraphRun(part.graph, inputs)
    thin = bool(part.beside)
    looks = {k: _Look(pairs[k], d.positions, part.beside.get(k), thin=d.share if thin else None) for k, d in doubts.items()}
    base = run(None)
    left = -1
    for seed in range(ESTIMATING_RUNS if part.estimated else MOST_RUNS):
        moved = run(Disturbance(seed, measure_drift=not part.estimated, systematic=bool(seed % 2)))
        for look, x, at_rest in zip(looks.values(), moved, base, strict=True):
            look.add(x.reshape(-1), at_rest.reshape(-1))
        before, left = left, sum(look.remaining for look in looks.values())
        if _is_over(looks.values()) or (thin and left == before):
            break
    return {k: look.doubt for k, look in looks.items() if look.doubt.positions.size}


def _examine_all(
    graph: Graph, inputs: Sequence[Any], pairs: Mapping[int, FusedAndEager], doubts: dict[int, Doubt]
) -> dict[int, Doubt]:
    """What remains of ``doubts`` after runs of all that the results in doubt depend on.

    An undisturbed run would cost as much as another eager run, so there is none to compare with.
    """
    needed = eliminate_dead(replace(graph, outputs=tuple([graph.outputs[k] for k in doubts])))
    run, looks, costly = GraphRun(needed, inputs), {}, not _has_small_operations(needed)
    places: dict[int, np.ndarray[Any, Any]] = {}
    for k, d in doubts.items():
        size = pairs[k][2].size
        looks[k] = _Look(pairs[k], d.positions, np.random.default_rng(k).integers(size, size=_BESIDE), costly=costly)
        places[size] = sorted_set(np.concatenate([places.get(size, looks[k].everything), looks[k].everything]))
    for seed in range(MOST_RUNS):
        for look, x in zip(looks.values(), run(_disturbance(seed, needed, places)), strict=True):
            look.add(x.reshape(-1)[look.everything])
        if _is_over(looks.values()):
            break
    return {k: look.doubt for k, look in looks.items() if look.doubt.positions.size}


def _disturbance(
    seed: int, graph: Graph, places: Mapping[int, np.ndarray[Any, Any]]
) -> Disturbance | PartialDisturbance:
    """What disturbs the run of number ``seed``: every other one alike wherever an op stands."""
    systematic = bool(seed % 2)
    if seed >= PARTIAL_RUNS:
        return Disturbance(seed, measure_drift=True, systematic=systematic)
    large = [node.op.kind for node in graph.nodes if is_large(node)]
    share = ENOUGH / max(1, large.count(Kind.ELEMENTWISE))
    sums = min(1.0, ENOUGH / max(1, large.count(Kind.REDUCE)))
    return PartialDisturbance(seed, min(max(share, PARTIAL[0]), PARTIAL[1]), places, share_of_sums=sums, systematic=systematic)


def _is_over(looks: Collection[_Look]) -> bool:
    """Whether every element is explained, or so many are far off that no decisions near a tie are
    behind it, of which each run comes to the other side in about half of the cases."""
    remaining = sum(look.remaining for look in looks)
    many = remaining >= max(_CLEAR, sum(look.suspects for look in looks) // 4)
    runs = next(iter(looks)).runs
    return not remaining or (many and runs >= _CLEAR and all(look.clearly_wrong for look in looks))


class _Look:
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
        self.everything = positions if beside is None else np.concatenate([positions, beside])
        self.ours, self.eager = pair[1].reshape(-1)[self.everything], pair[2].reshape(-1)[self.everything]
        self._lenient, self._costly, self._thin = beside is not None, costly, thin
        self.suspects, self.runs = positions.size, 0
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
        return np.median(moves) if self._thin is None else np.quantile(moves, max(0.5, 1.0 - self._thin))

    @property
    def remaining(self) -> int:
        return int(self._open.size)

    @property
    def clearly_wrong(self) -> bool:
        return bool(np.all((self._apart > _CLEARLY * self._budgets)[self._open]))

    @property
    def doubt(self) -> Doubt:
        """The elements furthest beyond what the runs explain."""
        left = self._open
        if left.size > _KEPT:
            left = np.sort(left[np.argsort((self._budgets - self._apart)[left])[:_KEPT]])
        assert self._recorded is not None
        return Doubt(self.everything[left], 1.0, self._budgets[left], self._recorded[left])


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
    strays = bool(distance(doubt.recorded, x)[worst] < distance(doubt.recorded, y)[worst])
    return Mismatch(name, float(apart[worst]), float(doubt.budgets[worst]), k, element, strays, doubt)
