"""Where a NaN or an infinity in a result comes from: follows it back, element by element, to the op that made it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitgrad.core.ir import Atom, Graph, Literal, TraceNode, Value
from jitgrad.core.op import Kind
from jitgrad.eager.run import run_on_arrays
from jitgrad.ops.comparison import WHERE
from jitgrad.ops.joining import CONCAT
from jitgrad.ops.movement import PLACE

ElementIndex = tuple[int, ...]
MOST_OPERANDS = 6  # shown of one op


@dataclass(frozen=True, slots=True)
class NonFinite:
    """The op that first made the NaN or infinity in one element of a result."""

    node: TraceNode
    index: ElementIndex
    value: float | complex
    operands: tuple[str, ...]

    def __str__(self) -> str:
        shown = ", ".join(self.operands)
        element = f"element {list(self.index)} of {self.node.outs[0].aval}" if self.index else "the result"
        kind = "NaN" if np.isnan(self.value) else "Inf"
        where = self.node.origin.described()
        return f"{self.node.op} in {where} made the first {kind}, in {element}:\n    {self.node.op}({shown}) = {self.value}"


def find_non_finite(graph: Graph, inputs: Sequence[Any], outputs: Sequence[Any]) -> tuple[int, NonFinite] | None:
    """The first of ``outputs`` with a NaN or infinity that the graph made of finite ``inputs``, and its origin.

    The graph runs again for it, op by op, and nothing outside of it changes.
    """
    suspects = [(k, index) for k, x in enumerate(outputs) for index in _non_finite_elements(np.asarray(x))]
    if not suspects:
        return None
    values = _evaluate_all(graph, inputs)
    for k, index in suspects:
        atom = graph.outputs[k]
        found = _follow(graph, values, atom, index) if isinstance(atom, Value) else None
        if found is not None:
            return k, found
    return None


def _evaluate_all(graph: Graph, inputs: Sequence[Any]) -> dict[Atom, Any]:
    """The value of everything in ``graph``."""
    values: dict[Atom, Any] = {v: np.asarray(x, v.aval.dtype) for v, x in zip(graph.inputs, inputs, strict=True)}
    for node in graph.nodes:
        result = run_on_arrays(node.op, tuple(_value_of(a, values) for a in node.ins), dict(node.attrs))
        values.update(zip(node.outs, result if node.op.multiple else (result,), strict=True))
    return values


def _value_of(atom: Atom, values: dict[Atom, Any]) -> Any:
    if isinstance(atom, Literal):
        return atom.operand
    return values[atom]


def _non_finite_elements(x: np.ndarray[Any, Any]) -> Iterator[ElementIndex]:
    """The first NaN and the first infinity of ``x``."""
    if x.dtype.kind != "f":
        return
    for test in (np.isnan, np.isinf):
        bad = test(x)
        if bad.any():
            yield tuple(int(k) for k in np.unravel_index(int(np.argmax(bad)), x.shape))


def _follow(graph: Graph, values: dict[Atom, Any], value: Value, index: ElementIndex) -> NonFinite | None:
    """From a non-finite element back to the op that made it of finite ones; None if it was an input."""
    if np.isfinite(values[value][index]):
        return None  # the run op by op rounds otherwise, and does not overflow
    while (node := graph.producer(value)) is not None:
        parts = list(_parts(node, index, values))
        bad = [(a, at) for a, at in parts if isinstance(a, Value) and not np.all(np.isfinite(values[a][at]))]
        if not bad:
            shown = tuple(str(_value_of(a, values)[at] if isinstance(a, Value) else a) for a, at in parts)
            more = ("...",) if len(shown) > MOST_OPERANDS else ()
            return NonFinite(node, index, values[value][index].item(), (*shown[:MOST_OPERANDS], *more))
        # a NaN rather than an infinity, which may be meant
        value, index = max(bad, key=lambda part: bool(np.isnan(values[part[0]][part[1]])))
    return None


def _parts(node: TraceNode, index: ElementIndex, values: dict[Atom, Any]) -> Iterator[tuple[Atom, ElementIndex]]:
    """The elements that element ``index`` of the result of ``node`` is computed from.

    Of those of a reduction or a library call: the first that is not finite in each operand, else the first.
    """
    op = node.op
    if op.kind is Kind.ELEMENTWISE:
        atoms: Sequence[Atom] = node.ins
        if op is WHERE:
            condition = node.ins[0]
            chosen = _value_of(condition, values)
            chosen = chosen[_broadcast(index, chosen.shape)] if isinstance(condition, Value) else chosen
            atoms = (node.ins[1 if chosen else 2],)
        for atom in atoms:
            yield atom, _broadcast(index, atom.aval.shape)
    elif op.kind is Kind.MOVEMENT or op in (PLACE, CONCAT):
        yield from _moved_from(node, index)
    else:
        for atom in node.ins:
            if isinstance(atom, Value) and atom.aval.size:
                yield atom, _worst(np.asarray(values[atom]), node, index)


def _broadcast(index: ElementIndex, shape: tuple[int, ...]) -> ElementIndex:
    """The element of an operand of ``shape`` that belongs to ``index`` of the broadcast result."""
    own = index[len(index) - len(shape) :]
    return tuple(0 if n == 1 else k for k, n in zip(own, shape, strict=True))


def _moved_from(node: TraceNode, index: ElementIndex) -> Iterator[tuple[Atom, ElementIndex]]:
    """Where an op that only moves elements took element ``index`` from: it moves their numbers, from 1 on."""
    numbers, first = [], 1
    for atom in node.ins:
        numbers.append(np.arange(first, first + atom.aval.size).reshape(atom.aval.shape))
        first += atom.aval.size
    number = int(run_on_arrays(node.op, tuple(numbers), dict(node.attrs))[index])
    for atom, own in zip(node.ins, numbers, strict=True):
        start = int(own.min(initial=first))
        if start <= number < start + own.size:
            yield atom, tuple(int(k) for k in np.unravel_index(number - start, own.shape))


def _worst(x: np.ndarray[Any, Any], node: TraceNode, index: ElementIndex) -> ElementIndex:
    """The element of ``x`` to blame for element ``index`` of a reduction, or of a library call."""
    allowed = np.ones(x.shape, bool)
    if node.op.kind is Kind.REDUCE:
        axis = dict(node.attrs)["axis"]
        rest = iter(index)
        allowed[:] = False
        allowed[tuple(slice(None) if k in axis else next(rest) for k in range(x.ndim))] = True
    bad = allowed & ~np.isfinite(x) if x.dtype.kind == "f" else np.zeros(x.shape, bool)
    nan = bad & np.isnan(x) if bad.any() else bad
    flat = int(np.argmax(nan if nan.any() else bad if bad.any() else allowed))
    return tuple(int(k) for k in np.unravel_index(flat, x.shape))
