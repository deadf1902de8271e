"""Tells rounding from mistakes: which results of a program are further from eager than rounding takes
them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jitgrad.compiler.loops.loop_op import has_loops
from jitgrad.compiler.loops.unroll import unroll_loops
from jitgrad.compiler.passes.cleanup import eliminate_dead
from jitgrad.compiler.passes.gradient_rules import drop_gradient_rules
from jitgrad.core.ir import Graph
from jitgrad.core.op import Kind
from jitgrad.jit.complex_pairs import as_pairs, pairs_of, results_as_pairs
from jitgrad.jit.disturbed_run import Disturbance, PartialDisturbance, is_large
from jitgrad.jit.graph_run import GraphRun
from jitgrad.jit.sampled_graph import Sample, sample, sorted_set
from jitgrad.jit.suspects import (
    ESTIMATING_RUNS,
    TOLERATED,
    Doubt,
    FusedAndEager,
    Look,
    choose_suspects,
    distance,
    find_unlike,
)
from jitgrad.jit.thin_graph import thinned

SUSPECTS = 1024  # elements of all results that are examined
FEWEST_SUSPECTS = 8  # of one result, where each depends on much
# The elements that a run for some suspects may compute, as a share of those of an eager run; small
# runs are free. Otherwise, and if operations take longer to start than to run, everything runs.
AFFORDABLE, FREE_ELEMENTS, SMALL_OPERATION = 0.004, 1 << 18, 1 << 12
MANY_NODES = 1 << 12  # a run of so many is costly even if they are small
# The first runs of everything disturb a share of the ops, for speed. An element that happens to move
# little in one run or two has at least part of what those beside it move, but so many times its own.
PARTIAL_RUNS = 2
ENOUGH, PARTIAL = 48, (1 / 32, 1 / 8)  # ops of a kind, and the least and the largest share of elementwise ones
_BESIDE = 64  # elements of one result that tell how far others move
THIN_RUNS, MOST_RUNS = 2, 24  # disturbed runs that examine an element: of rows for others, and of everything
_CLEAR = 6  # after so many runs, so many elements are wrong if they are much further off than they move
# Elements this much further off than rows that stand for others explain may be sensitive to the inputs.
_NEARLY, _INPUT_RUNS = 256.0, 4
# Results of loops that are further from eager's, in parts of their size, are always examined op by op.
_NEAR, _LOOP_RUNS = 1e-2, 8

Rerun = Callable[[Sequence[Any]], Sequence[np.ndarray[Any, Any]]]  # the compiled program, on other inputs


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
        x, y = [as_pairs(a).reshape(-1)[self.doubt.positions] for a in (ours, eager)]
        return bool(np.any(~(distance(x, y) <= self.doubt.budgets)))

    def __str__(self) -> str:
        at = f" at {list(self.element)}" if self.element else ""
        text = f"{self.what}{at}: off by {self.distance:.3g}, rounding explains {self.allowed:.3g}"
        if self.recorded_wrong:
            text += "; the recorded program, run op by op, gives another result than the function"
        return text


def find_mismatches(
    graph: Graph, inputs: Sequence[Any], pairs: Mapping[int, FusedAndEager], rerun: Rerun | None = None
) -> list[Mismatch]:
    """The results that differ from eager's by more than rounding, given by output of ``graph``.

    Elements that are not close to eager's are examined by disturbed runs of what they depend on:
    first by estimates, and if these do not explain the differences, by the whole of it. ``rerun``
    spares the latter if estimates nearly do and results are as sensitive to the last bits of the inputs.
    """
    mismatches: list[Mismatch] = []
    pairs = pairs_of(pairs)
    unlike: dict[int, np.ndarray[Any, Any]] = {}
    for k, (name, ours, eager) in pairs.items():
        if ours.shape != eager.shape or ours.dtype != eager.dtype:
            what = f"{name} is {ours.dtype}{list(ours.shape)}, not {eager.dtype}{list(eager.shape)}"
            mismatches.append(Mismatch(what, np.inf, 0.0, k))
        elif (found := find_unlike(ours, eager)).size:
            unlike[k] = found
    if not unlike:
        return mismatches
    graph = drop_gradient_rules(graph)
    if rerun is not None and has_loops(graph) and not (unlike := _examine_loops(rerun, inputs, pairs, unlike)):
        return mismatches
    graph = results_as_pairs(unroll_loops(graph))
    doubts, part = _cheapest_look(graph, pairs, unlike)
    if part is not None:
        doubts = _examine_part(part, inputs, pairs, doubts)
    if doubts and part is not None and part.estimated and rerun is not None:
        doubts = _examine_sensitive(rerun, inputs, pairs, doubts)
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


# --- disturbed runs --------------------------------------------------------------------------------


def measure(
    graph: Graph, inputs: Sequence[Any], positions: Mapping[int, np.ndarray[Any, Any]], runs: int
) -> list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    """For each output of ``graph`` in ``positions``: its elements there in a run op by op, and how far
    rounding takes them."""
    made = sample(drop_gradient_rules(graph), positions, estimate=False)
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
    looks = {k: Look(pairs[k], d.positions, part.beside.get(k), thin=d.share if thin else None) for k, d in doubts.items()}
    base = run(None)
    for seed in range(THIN_RUNS if thin else ESTIMATING_RUNS if part.estimated else MOST_RUNS):
        moved = run(Disturbance(seed, measure_drift=not part.estimated, systematic=bool(seed % 2)))
        for look, x, at_rest in zip(looks.values(), moved, base, strict=True):
            look.add(x.reshape(-1), at_rest.reshape(-1))
        if _is_over(looks.values()):
            break
    return {k: look.doubt for k, look in looks.items() if look.doubt.positions.size}


def _examine_sensitive(
    rerun: Rerun, inputs: Sequence[Any], pairs: Mapping[int, FusedAndEager], doubts: dict[int, Doubt]
) -> dict[int, Doubt]:
    """What remains of ``doubts`` after runs of the compiled program on inputs of which the last bits
    are random: what these move as far as it is from eager, no order of evaluation determines.

    Such runs are cheap, but the program must not be its own only witness: estimates, which run the
    recorded graph op by op, must nearly explain the same elements.
    """
    ours = {k: pairs[k][1].reshape(-1)[d.positions] for k, d in doubts.items()}
    apart = {k: distance(ours[k], pairs[k][2].reshape(-1)[d.positions]) for k, d in doubts.items()}
    if not all(np.all(apart[k] <= _NEARLY * np.asarray(d.budgets)) for k, d in doubts.items()):
        return doubts
    moved = {k: np.zeros(d.positions.size) for k, d in doubts.items()}  # root of the sum of squares
    for seed in range(_INPUT_RUNS):
        disturbance = Disturbance(seed)
        outputs = rerun([disturbance.moved(x) if isinstance(x, np.ndarray) else x for x in inputs])
        for k, d in doubts.items():
            moved[k] = np.hypot(moved[k], distance(as_pairs(np.asarray(outputs[k])).reshape(-1)[d.positions], ours[k]))
        if all(np.all(apart[k] <= TOLERATED * moved[k] / np.sqrt(seed + 1)) for k in doubts):
            return {}
    return doubts


def _examine_loops(
    rerun: Rerun, inputs: Sequence[Any], pairs: Mapping[int, FusedAndEager], unlike: Mapping[int, np.ndarray[Any, Any]]
) -> dict[int, np.ndarray[Any, Any]]:
    """What remains of the elements ``unlike`` eager's after runs of a compiled program with loops on inputs of which the last
    bits are random.

    To run every turn op by op, several times, would take longer than all else. The program is its own witness here, so it
    must compute the same bits again, and be near to eager's results.
    """
    again = rerun(inputs)
    looks = {}
    for k, positions in unlike.items():
        _, ours, eager = pairs[k]
        if eager.dtype.kind != "f" or as_pairs(np.asarray(again[k])).tobytes() != ours.tobytes() or not _is_near(ours, eager):
            return dict(unlike)
        looks[k] = Look(pairs[k], choose_suspects(positions, ours, eager, SUSPECTS // len(unlike)))
    for seed in range(_LOOP_RUNS):
        disturbance = Disturbance(seed)
        outputs = rerun([disturbance.moved(x) if isinstance(x, np.ndarray) else x for x in inputs])
        for k, look in looks.items():
            look.add(as_pairs(np.asarray(outputs[k])).reshape(-1)[look.everything], look.ours)
        if not any(look.remaining for look in looks.values()):
            return {}
    return {k: positions for k, positions in unlike.items() if looks[k].remaining}


def _is_near(ours: np.ndarray[Any, Any], eager: np.ndarray[Any, Any]) -> bool:
    """Whether a result differs from eager's by a small part of its size."""
    size = np.sqrt(np.mean(np.square(eager.astype(np.float64))))
    return bool(np.all(distance(ours, eager) <= _NEAR * np.maximum(np.abs(eager.astype(np.float64)), size)))


def _examine_all(
    graph: Graph, inputs: Sequence[Any], pairs: Mapping[int, FusedAndEager], doubts: dict[int, Doubt]
) -> dict[int, Doubt]:
    """What remains of ``doubts`` after runs of all that the results in doubt depend on.

    An undisturbed run would cost as much as another eager run, so there is none to compare with.
    """
    needed = eliminate_dead(replace(graph, outputs=tuple([graph.outputs[k] for k in doubts])))
    run, looks, costly = GraphRun(needed, inputs), {}, not _has_small_operations(needed) or len(needed.nodes) > MANY_NODES
    places: dict[int, np.ndarray[Any, Any]] = {}
    for k, d in doubts.items():
        size = pairs[k][2].size
        looks[k] = Look(pairs[k], d.positions, np.random.default_rng(k).integers(size, size=_BESIDE), costly=costly)
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


def _is_over(looks: Collection[Look]) -> bool:
    """Whether every element is explained, or so many are far off that no decisions near a tie are
    behind it, of which each run comes to the other side in about half of the cases."""
    remaining = sum(look.remaining for look in looks)
    many = remaining >= max(_CLEAR, sum(look.suspects for look in looks) // 4)
    runs = next(iter(looks)).runs
    return not remaining or (many and runs >= _CLEAR and all(look.clearly_wrong for look in looks))


def _mismatch(k: int, pair: FusedAndEager, doubt: Doubt) -> Mismatch:
    name, ours, eager = pair
    assert doubt.budgets is not None and doubt.recorded is not None
    x, y = ours.reshape(-1)[doubt.positions], eager.reshape(-1)[doubt.positions]
    apart = distance(x, y)
    worst = int(np.argmax(apart - doubt.budgets))
    element = tuple(map(int, np.unravel_index(doubt.positions[worst], eager.shape)))
    strays = bool(distance(doubt.recorded, x)[worst] < distance(doubt.recorded, y)[worst])
    return Mismatch(name, float(apart[worst]), float(doubt.budgets[worst]), k, element, strays, doubt)
