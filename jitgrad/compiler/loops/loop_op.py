"""The op of a loop: the graph of one turn, run again and again. Its gradient is another loop, in the other direction.

A turn computes new carries, and parts of results that are stacked, from the carries of the turn before, one slice of each
array that the loop goes through, and constants.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from jitgrad.compiler.differentiate import Split, differentiate, split_joint
from jitgrad.compiler.loops.body_trace import record_body
from jitgrad.compiler.loops.invariants import hoisted, replayed
from jitgrad.core.aval import Aval, is_differentiable, strong_aval
from jitgrad.core.dispatch import apply_op
from jitgrad.core.errors import VerifyError
from jitgrad.core.ir import Graph, TraceNode, evaluate, format_graph
from jitgrad.core.op import Kind, OpDef, define
from jitgrad.core.tensor import Tensor
from jitgrad.eager.run import run_on_arrays
from jitgrad.ops.arithmetic import add
from jitgrad.ops.creation import full, zeros


@dataclass(frozen=True, eq=False, slots=True)
class LoopBody:
    """One turn: ``graph`` computes carries and parts from ``carries`` carries, ``slices`` slices, and constants.

    ``extends``: a turn with the same inputs, which computes the same carries, and other parts.
    """

    graph: Graph
    carries: int
    slices: int
    extends: LoopBody | None = None

    @property
    def name(self) -> str:
        """In the text of graphs."""
        return self.graph.name

    @property
    def root(self) -> LoopBody:
        """The turn that this one extends, directly or not."""
        return self if self.extends is None else self.extends.root


def _run(*arrays: Any, body: LoopBody, length: int, reverse: bool) -> tuple[Any, ...]:
    """The loop in NumPy, op by op."""
    graph, first = body.graph, body.carries + body.slices
    avals = [value.aval for value in graph.outputs]
    carries: Sequence[Any] = [np.asarray(x, a.dtype) for x, a in zip(arrays, avals[: body.carries], strict=False)]
    whole = [np.empty((length, *a.shape), a.dtype) for a in avals[body.carries :]]
    for k in reversed(range(length)) if reverse else range(length):
        given = (*carries, *[x[k] for x in arrays[body.carries : first]], *arrays[first:])
        results = [np.asarray(x, a.dtype) for x, a in zip(evaluate(graph, given, run_on_arrays), avals, strict=True)]
        carries = results[: body.carries]
        for out, part in zip(whole, results[body.carries :], strict=True):
            out[k] = part
    return (*carries, *whole)


def _abstract(_avals: Sequence[Aval], attrs: Mapping[str, Any]) -> tuple[Aval, ...]:
    body: LoopBody = attrs["body"]
    avals = [atom.aval for atom in body.graph.outputs]
    for k, value in enumerate(body.graph.inputs[: body.carries]):
        if (value.aval.shape, value.aval.dtype) != (avals[k].shape, avals[k].dtype):
            raise VerifyError(f"a turn takes {value.aval} as carry {k} and gives {avals[k]}\n\n{format_graph(body.graph)}")
    whole = [strong_aval((attrs["length"], *a.shape), a.dtype) for a in avals[body.carries :]]
    return (*[strong_aval(a.shape, a.dtype) for a in avals[: body.carries]], *whole)


@dataclass(frozen=True, eq=False, slots=True)
class _Gradient:
    """What the gradient of a turn needs: ``extended`` computes it too, as further parts, and ``split.backward`` reads it.

    Attributes:
        kept: numbers of the carries that it reads as they were before the turn; the first further parts.
        seeded: numbers of the results that have gradients.
        flows: for each input of the turn, whether it has a gradient.
    """

    extended: LoopBody
    split: Split
    kept: tuple[int, ...]
    seeded: tuple[int, ...]
    flows: tuple[bool, ...]


@lru_cache(maxsize=256)
def _gradient_of(body: LoopBody, present: tuple[int, ...]) -> _Gradient:
    """The gradient of ``body``, whose parts ``present`` have gradients, as have all carries that can."""
    graph = body.graph
    wrt = [k for k, value in enumerate(graph.inputs) if is_differentiable(value.aval.dtype)]
    seeded = (*[k for k in wrt if k < body.carries], *present)
    joint = differentiate(graph, wrt, seeded)
    split = split_joint(joint, again=True)
    kept = tuple([k for k in split.used if k < body.carries])
    forward = split.forward
    results, saved = forward.outputs[: joint.outputs], forward.outputs[joint.outputs :]
    whole = replace(forward, name=graph.name, outputs=(*results, *[forward.inputs[k] for k in kept], *saved))
    flowing = {k for k, flows in zip(wrt, joint.flows, strict=True) if flows}
    extended = LoopBody(whole, body.carries, body.slices, extends=body)
    return _Gradient(extended, split, kept, seeded, tuple([k in flowing for k in range(len(graph.inputs))]))


def _vjp(
    g: tuple[Tensor | None, ...], _out: Any, *operands: Any, body: LoopBody, length: int, reverse: bool
) -> list[Tensor | None]:
    """The gradients of ``operands``: the loop runs again and keeps what the loop in the other direction reads.

    Pass `merge_loops` makes one loop of the first two.
    """
    present = tuple([k for k, gx in enumerate(g) if gx is not None and k >= body.carries])
    gradient = _gradient_of(body, present)
    outs = apply_op(LOOP, *operands, body=gradient.extended, length=length, reverse=reverse)
    return _Backward(body, gradient, operands, g, outs[len(body.graph.outputs) :]).run(length, not reverse)


class _Backward:
    """The loop that computes the gradients of the ``operands`` of another one.

    Its carries are the gradients of the carries, and sums of the gradients of the constants; its slices are those that
    a turn reads, what was ``kept`` of each turn, and the gradients of the parts.
    """

    def __init__(
        self, body: LoopBody, gradient: _Gradient, operands: Sequence[Any], g: Sequence[Tensor | None], kept: Sequence[Any]
    ) -> None:
        self.gradient = gradient
        self.operands = operands
        self.first: int = body.carries + body.slices  # of the constants
        self.avals: list[Aval] = [value.aval for value in body.graph.inputs]
        self.seeds: list[int] = [k for k in gradient.seeded if k < body.carries]
        self.sums: list[int] = [k for k in range(self.first, len(operands)) if gradient.flows[k]]
        self.sliced: list[int] = [k for k in gradient.split.used if body.carries <= k < self.first]
        self.parts: list[int] = [k for k in range(body.carries, self.first) if gradient.flows[k]]
        self.carries: list[Any] = [self._zeros(k) if g[k] is None else g[k] for k in self.seeds]
        self.carries += map(self._zeros, self.sums)
        self.slices: list[Any] = [operands[k] for k in self.sliced]
        self.slices += [*kept, *[g[k] for k in gradient.seeded if k >= body.carries]]

    def _zeros(self, k: int) -> Tensor:
        return zeros(self.avals[k].shape, dtype=self.avals[k].dtype)

    def _tensor(self, k: int, gx: Any) -> Tensor:
        """The gradient of input ``k``; one that is the same number in every turn is no tensor."""
        return gx if isinstance(gx, Tensor) else full(self.avals[k].shape, gx, dtype=self.avals[k].dtype)

    def turn(self, tensors: Sequence[Any]) -> list[Any]:
        """The new carries and the gradients of the slices."""
        given: Iterator[Any] = iter(tensors)
        seeds = [next(given) for _ in self.seeds]
        sums = [next(given) for _ in self.sums]
        inputs: dict[int, Any] = {k: self.operands[k] for k in self.gradient.split.used if k >= self.first}
        inputs.update({k: next(given) for k in (*self.sliced, *self.gradient.kept)})
        saved = [next(given) for _ in range(self.gradient.split.saved)]
        arguments = (*[inputs[k] for k in self.gradient.split.used], *saved, *seeds, *given)
        results = iter(replayed(self.gradient.split.backward, arguments))
        grads = {k: self._tensor(k, next(results)) for k, flows in enumerate(self.gradient.flows) if flows}
        carried = [grads[k] if k in grads else self._zeros(k) for k in self.seeds]
        carried += [add(total, grads[k]) for k, total in zip(self.sums, sums, strict=True)]
        return carried + [grads[k] for k in self.parts]

    def _avals_of_slices(self) -> list[Aval]:
        """As in the forward turn: what Python computes from the number of a turn changes no dtype of the backward turn."""
        split, kept = self.gradient.split, self.gradient.kept
        saved = split.backward.inputs[len(split.used) :][: split.saved]
        avals = [self.avals[k] for k in (*self.sliced, *kept)] + [value.aval for value in saved]
        return avals + [strong_aval(x.shape[1:], x.dtype) for x in self.slices[len(avals) :]]

    def run(self, length: int, reverse: bool) -> list[Tensor | None]:
        """The gradients of all operands."""
        avals = [*[strong_aval(x.shape, x.dtype) for x in self.carries], *self._avals_of_slices()]
        recorded = record_body(f"{self.gradient.extended.name}_gradient", self.turn, [(a, False) for a in avals])
        outs = emit_loop(recorded.graph, self.carries, self.slices, recorded.constants, length, reverse)
        grads: list[Tensor | None] = [None] * len(self.operands)
        for k, gx in zip((*self.seeds, *self.sums, *self.parts), outs, strict=True):
            grads[k] = gx if self.gradient.flows[k] else None
        return grads


LOOP: OpDef = define(
    "loop(*operands, body, length, reverse)",
    kind=Kind.OPAQUE,
    eager=_run,
    abstract=_abstract,
    vjp=_vjp,
    multiple=True,
    fills=True,
    reads_in_order=True,
    partial_vjp=True,
    takes_complex=True,
    register=False,
)
# The ops of all turns, one after the other, where a kernel of a turn is wrong.
LOOP_BY_OPS = replace(LOOP, name="loop_by_ops")


def has_loops(graph: Graph) -> bool:
    return any(node.op is LOOP for node in graph.nodes)


def nodes_of(graph: Graph) -> Iterator[TraceNode]:
    """All nodes of ``graph``, those of its loops' turns in place of these."""
    for node in graph.nodes:
        if node.op is LOOP:
            yield from nodes_of(node.attr("body").graph)
        else:
            yield node


def emit_loop(
    graph: Graph, carries: Sequence[Any], slices: Sequence[Any], constants: Sequence[Any], length: int, reverse: bool
) -> tuple[Tensor, ...]:
    """The last carries and the stacked parts of ``length`` turns of ``graph``. What all turns compute alike is
    computed before the loop."""
    graph, constants = hoisted(graph, len(carries) + len(slices), constants)
    body = LoopBody(graph, len(carries), len(slices))
    outs: tuple[Tensor, ...] = apply_op(LOOP, *carries, *slices, *constants, body=body, length=length, reverse=reverse)
    return outs
