"""Applies the ops of a traced example to whole arrays, in the interpreter that runs `vmap`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from jitgrad.autograd.replaced_gradient import replaces_gradient
from jitgrad.batching.application import Application
from jitgrad.batching.gradient_rules import replaced_for_all
from jitgrad.batching.loop_rule import loop_for_all
from jitgrad.batching.rules import batching_rule
from jitgrad.compiler.loops.loop_op import LOOP
from jitgrad.compiler.loops.merge_loops import merge_loops
from jitgrad.core.aval import Count
from jitgrad.core.context import Interpreter, creating_on, current_interpreter
from jitgrad.core.dispatch import apply_op
from jitgrad.core.errors import BatchingWarning
from jitgrad.core.ir import Atom, Graph, Literal, TraceNode, Value
from jitgrad.core.op import OpDef
from jitgrad.core.origin import Origin, at_origin
from jitgrad.core.tensor import Tensor
from jitgrad.device.cuda import find_device
from jitgrad.ops.creation import zeros
from jitgrad.ops.identity import ANY_EXAMPLE
from jitgrad.ops.joining import stack
from jitgrad.ops.movement import slice, squeeze

ExampleContents = tuple[Any, bool]  # of a value: a tensor with an axis of examples (True), or what is the same for all


class RecordedExample(Protocol):
    """What is read of a trace of one example."""

    outer: Interpreter
    nodes: list[TraceNode]
    contents: dict[Value, Any]  # of the inputs
    mapped: set[Value]  # the inputs that differ between the examples
    size: int
    device: str


class ArrayRun:
    """The contents of the values of a trace, computed when they are asked for."""

    def __init__(self, trace: RecordedExample) -> None:
        self.trace = trace
        self.results: dict[Value, ExampleContents] = {}

    def value_of(self, atom: Atom) -> ExampleContents:
        """The contents of one atom; whatever was computed for it stays known."""
        (contents,) = self.run([atom], keep=True)
        return contents

    def run(self, atoms: Sequence[Atom], *, keep: bool = False) -> list[ExampleContents]:
        """The contents of ``atoms``. Others are dropped after their last use, unless ``keep``."""
        trace = self.trace
        nodes = self._needed(atoms)
        if not keep:  # else the values are those of the trace
            merged = merge_loops(Graph("examples", (), tuple(nodes), tuple(atoms)))
            nodes, atoms = [*merged.nodes], merged.outputs
        last_use = {} if keep else {atom: node for node in nodes for atom in node.ins}
        kept = set(atoms)
        token = current_interpreter.set(trace.outer)
        tracing = trace.outer.tracing
        try:
            with creating_on(None if tracing or trace.device == "cpu" else find_device(trace.device)):
                for node in nodes:
                    self._step(node)
                    for atom in node.ins:
                        if last_use.get(atom) is node and atom not in kept:
                            self.results.pop(atom, None)  # type: ignore[arg-type]
            return [self._read(atom) for atom in atoms]
        finally:
            current_interpreter.reset(token)

    def _needed(self, atoms: Sequence[Atom]) -> list[TraceNode]:
        """The nodes that compute ``atoms``, but for what is known, in their order."""
        wanted: set[Atom] = set(atoms)
        chosen = []
        for node in reversed(self.trace.nodes):
            if not wanted.isdisjoint(node.outs) and any(out not in self.results for out in node.outs):
                chosen.append(node)
                wanted.update(node.ins)
        return chosen[::-1]

    def _read(self, atom: Atom) -> ExampleContents:
        if isinstance(atom, Literal):
            if atom.dtype is not None:
                return atom.dtype.type(atom.value), False
            value = atom.value
            return Count(value) if atom.shape_derived and isinstance(value, int) else value, False
        known = self.results.get(atom)
        return (self.trace.contents[atom], atom in self.trace.mapped) if known is None else known

    def _step(self, node: TraceNode) -> None:
        contents = [self._read(atom) for atom in node.ins]
        operands, mapped = tuple([x for x, _ in contents]), tuple([m for _, m in contents])
        with at_origin(node.origin):
            outs = apply_to_all(node.op, operands, mapped, dict(node.attrs), self.trace.size)
        for value, out in zip(node.outs, outs if node.op.multiple else (outs,), strict=True):
            self.results[value] = (out, any(mapped) and node.op is not ANY_EXAMPLE)


def apply_to_all(
    op: OpDef, operands: tuple[Any, ...], mapped: tuple[bool, ...], attrs: Mapping[str, Any], size: int
) -> Any:
    """The result(s) of ``op``: for all examples, along axis 0, if any operand is mapped."""
    if not any(mapped):
        return apply_op(op, *operands, **attrs)
    application = Application(op, operands, mapped, attrs, size)
    if replaces_gradient(op):
        return replaced_for_all(application, apply_to_all)
    if op is LOOP:
        return loop_for_all(application, apply_to_all)
    rule = batching_rule(op)
    result = NotImplemented if rule is None else rule(application)
    return _one_by_one(application) if result is NotImplemented else result


def _one_by_one(a: Application) -> Any:
    """Each example by itself, and the results stacked."""
    warnings.warn(
        f"vmap applies {a.op.name!r} at {Origin.capture().full()} to one of {a.size} examples after the other: it has no form "
        "for all of them",
        BatchingWarning,
        stacklevel=2,
    )
    if not a.size:
        expected = a.op.abstract(a.avals, a.attrs)
        avals = expected if isinstance(expected, tuple) else (expected,)
        empty = tuple([zeros((0, *aval.shape), dtype=aval.dtype) for aval in avals])
        return empty if a.op.multiple else empty[0]
    results = [
        apply_op(a.op, *[_example(x, k) if m else x for x, m in zip(a.operands, a.mapped, strict=True)], **a.attrs)
        for k in range(a.size)
    ]
    return tuple(map(stack, zip(*results, strict=True))) if a.op.multiple else stack(results)


def _example(x: Tensor, k: int) -> Tensor:
    return squeeze(slice(x, ((k, 1, 1), *[(0, 1, n) for n in x.shape[1:]])), 0)

