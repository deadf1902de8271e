"""Simplifies by algebra that is exact in IEEE arithmetic: folds constants, removes identities and needless movement."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from jitgrad.compiler.passes.rewriter import Rewriter
from jitgrad.core.aval import Aval, aval_of_scalar
from jitgrad.core.ir import Atom, Graph, Literal, TraceNode
from jitgrad.core.op import Kind, OpDef
from jitgrad.eager.run import run_eagerly
from jitgrad.ops.arithmetic import ADD, ASTYPE, DIVIDE, MULTIPLY, NEGATIVE, POSITIVE, SUBTRACT
from jitgrad.ops.comparison import LOGICAL_NOT, WHERE
from jitgrad.ops.creation import COPY, FULL
from jitgrad.ops.identity import STOP_GRADIENT, UPDATED
from jitgrad.ops.indexing import PUT_SLICE
from jitgrad.ops.linalg import MATMUL
from jitgrad.ops.movement import BROADCAST_TO, EXPAND_DIMS, PERMUTE_DIMS, RESHAPE, SLICE, SQUEEZE
from jitgrad.ops.transcendental import POW


class _Simplifier(Rewriter):
    def apply(self, op: OpDef, /, *ins: Atom, **attrs: Any) -> Atom:
        """The result of ``op``, simplified; a new node only if nothing simpler is equal."""
        expected = op.abstract([a.aval for a in ins], attrs)
        assert isinstance(expected, Aval)
        simpler = self.simplify(op, ins, attrs, expected)
        return self.emit(op, *ins, **attrs) if simpler is None else simpler

    def simplify(self, op: OpDef, ins: tuple[Atom, ...], attrs: Mapping[str, Any], out: Aval) -> Atom | None:
        """A value that equals ``op(*ins)`` bit for bit and has its shape and dtype, or None."""
        if (folded := _fold(op, ins, attrs, out)) is not None:
            return folded
        if (uniform := self.uniform(op, ins, attrs, out)) is not None:
            return uniform
        if (empty := self.of_nothing(op, ins, out)) is not None:
            return empty
        rule = _reduction_rule(op) if op.kind is Kind.REDUCE else RULES.get(op)
        simpler = rule(self, tuple(self.unbroadcast(op, ins, out)), attrs, out) if rule is not None else None
        if simpler is None or simpler.aval.shape != out.shape or simpler.aval.dtype != out.dtype:
            return None
        return simpler if out.weak == simpler.aval.weak else None  # else readers would compute in another dtype

    def uniform(self, op: OpDef, ins: tuple[Atom, ...], attrs: Mapping[str, Any], out: Aval) -> Atom | None:
        """An elementwise op on repeated numbers alone is the repeated result."""
        if op.kind is not Kind.ELEMENTWISE or op.scalar is None or not out.shape or not ins:
            return None
        numbers: list[Literal] = []
        for atom in ins:
            if (number := self.number(atom)) is None:
                return None
            numbers.append(number)
        one = self.apply(op, *numbers, **attrs)
        if one.aval.shape != () or one.aval.dtype != out.dtype:
            return None
        return self.apply(BROADCAST_TO, one, shape=out.shape)

    def of_nothing(self, op: OpDef, ins: tuple[Atom, ...], out: Aval) -> Atom | None:
        """A reduction or a product of no elements is its neutral element, repeated."""
        if ins and not ins[0].aval.size and (op is MATMUL or (op.kind is Kind.REDUCE and op.monoid is not None)):
            neutral = 0 if op.monoid is None else op.monoid.neutral(out.dtype)
            one = Literal(out.dtype.type(neutral).item(), out.dtype)
            return self.apply(BROADCAST_TO, one, shape=out.shape) if out.shape else one
        return None

    def number(self, atom: Atom) -> Literal | None:
        """The number that ``atom`` repeats, if it is known."""
        node = self.producer(atom)
        if node is not None and node.op is BROADCAST_TO:
            atom = node.ins[0]
        return atom if isinstance(atom, Literal) else None

    def unbroadcast(self, op: OpDef, ins: tuple[Atom, ...], out: Aval) -> list[Atom]:
        """Operands of an elementwise op without a broadcast that the op would do itself."""
        result = list(ins)
        for k, atom in enumerate(ins) if op.kind is Kind.ELEMENTWISE else ():
            node = self.producer(atom)
            if node is None or node.op is not BROADCAST_TO:
                continue
            trial = [*result[:k], node.ins[0], *result[k + 1 :]]
            if _shape_of(trial) == out.shape and _same_result(op, trial, out):
                result = trial
        return result


def _shape_of(atoms: list[Atom]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*(a.aval.shape for a in atoms))
    except ValueError:
        return (-1,)


def _same_result(op: OpDef, atoms: list[Atom], out: Aval) -> bool:
    return op is ASTYPE or op.dtypes([a.aval for a in atoms])[1] == out.dtype


def _fold(op: OpDef, ins: tuple[Atom, ...], attrs: Mapping[str, Any], out: Aval) -> Literal | None:
    """The value of an elementwise op on numbers alone, computed as eager computes it."""
    if op.kind is not Kind.ELEMENTWISE or op.scalar is None or out.shape != () or not ins:
        return None
    if not all(isinstance(a, Literal) for a in ins):
        return None
    arrays = [np.asarray(a.value, a.aval.dtype) for a in ins if isinstance(a, Literal)]
    value = run_eagerly(op, arrays, [a.aval for a in ins], attrs)
    shape_derived = any(isinstance(a, Literal) and a.shape_derived for a in ins)
    number = value.item()
    weak = out.weak and aval_of_scalar(number).dtype == out.dtype  # a weak float32 is no Python number
    return Literal(number, None if weak else out.dtype, shape_derived)


# --- the rules: (simplifier, ins, attrs, aval of the result) -> an equal atom, or None -----------------------------------

Rule = Callable[[_Simplifier, tuple[Atom, ...], Mapping[str, Any], Aval], Atom | None]


def _is(atom: Atom, number: float) -> bool:
    """Whether ``atom`` is this number, sign of zero included."""
    if not isinstance(atom, Literal) or isinstance(atom.value, complex) or atom.value != number:
        return False
    return number != 0 or math.copysign(1.0, float(atom.value)) == math.copysign(1.0, number)


def _multiply(r: _Simplifier, ins: tuple[Atom, ...], attrs: Any, out: Aval) -> Atom | None:
    x, y = ins
    return x if _is(y, 1) else y if _is(x, 1) else None


def _divide(r: _Simplifier, ins: tuple[Atom, ...], attrs: Any, out: Aval) -> Atom | None:
    return ins[0] if _is(ins[1], 1) else None


def _add(r: _Simplifier, ins: tuple[Atom, ...], attrs: Any, out: Aval) -> Atom | None:
    # x + 0.0 is not x for x = -0.0; x + -0.0 is. Integers have one zero.
    x, y = ins
    zero = 0 if out.dtype.kind in "iu" else -0.0
    return x if _is(y, zero) else y if _is(x, zero) else None


def _subtract(r: _Simplifier, ins: tuple[Atom, ...], attrs: Any, out: Aval) -> Atom | None:
    return ins[0] if _is(ins[1], 0) or _is(ins[1], 0.0) else None


def _negative(r: _Simplifier, ins: tuple[Atom, ...], attrs: Any, out: Aval) -> Atom | None:
    node = r.producer(ins[0])
    return node.ins[0] if node is not None and node.op is NEGATIVE else None


def _pow(r: _Simplifier, ins: tuple[Atom, ...], attrs: Any, out: Aval) -> Atom | None:
    # x*x is one correctly rounded product, as pow is; x*x*x and (x*x)*(x*x) stay within 2 ULP of the exact power
    x, y = ins
    if isinstance(x, Literal) or out.dtype.kind != "f":
        return None
    if _is(y, 1):
        return x
    if not any(_is(y, n) for n in (2, 3)):
        return None
    square = r.apply(MULTIPLY, x, x)
    return square if _is(y, 2) else r.apply(MULTIPLY, square, x)


def _where(r: _Simplifier, ins: tuple[Atom, ...], attrs: Any, out: Aval) -> Atom | None:
    condition, x, y = ins
    inner = r.producer(condition)
    if inner is not None and inner.op is LOGICAL_NOT:
        return r.apply(WHERE, inner.ins[0], y, x)
    known = r.number(condition)
    chosen = x if x is y else None if known is None else x if known.value else y
    if chosen is None:
        return None
    chosen = r.apply(ASTYPE, chosen, dtype=out.dtype)
    return chosen if chosen.aval.shape == out.shape else r.apply(BROADCAST_TO, chosen, shape=out.shape)


def _astype(r: _Simplifier, ins: tuple[Atom, ...], attrs: Any, out: Aval) -> Atom | None:
    return ins[0]  # taken only if the dtype is already right


def _identity(r: _Simplifier, ins: tuple[Atom, ...], attrs: Any, out: Aval) -> Atom | None:
    return ins[0] if out.weak or not ins[0].aval.weak else r.apply(ASTYPE, ins[0], dtype=out.dtype)


def _full(r: _Simplifier, ins: tuple[Atom, ...], attrs: Any, out: Aval) -> Atom | None:
    value = r.apply(ASTYPE, *ins, dtype=out.dtype)
    if isinstance(value, Literal):
        value = Literal(value.value, out.dtype, value.shape_derived)
    return r.apply(BROADCAST_TO, value, shape=out.shape)


def _movement(r: _Simplifier, ins: tuple[Atom, ...], attrs: Mapping[str, Any], out: Aval) -> Atom | None:
    """Identity movements, and movements of something uniform (which is then a broadcast)."""
    source = ins[0]
    node = r.producer(source)
    if node is not None and node.op is BROADCAST_TO and node.ins[0].aval.size == 1:
        source = node.ins[0]
    elif not isinstance(source, Literal):
        return None
    if source.aval.ndim:
        source = r.apply(RESHAPE, source, shape=())
    return source if not out.shape else r.apply(BROADCAST_TO, source, shape=out.shape)


def _reshape(r: _Simplifier, ins: tuple[Atom, ...], attrs: Mapping[str, Any], out: Aval) -> Atom | None:
    x = ins[0]
    if x.aval.shape == out.shape:
        return x
    node = r.producer(x)
    if node is not None and node.op.keeps_order:
        return r.apply(RESHAPE, *node.ins, shape=out.shape)
    if (moved := _movement(r, ins, attrs, out)) is not None:
        return moved
    return _as_expand_or_squeeze(r, x, out)


def _as_expand_or_squeeze(r: _Simplifier, x: Atom, out: Aval) -> Atom | None:
    """A reshape that only adds or only drops axes of length 1, as an op that fusion understands."""
    old, new = x.aval.shape, out.shape
    shorter, longer = (old, new) if len(old) < len(new) else (new, old)
    added, k = [], 0
    for position, n in enumerate(longer):
        if k < len(shorter) and shorter[k] == n and (n != 1 or len(longer) - position == len(shorter) - k):
            k += 1
        elif n == 1:
            added.append(position)
        else:
            return None
    if k != len(shorter) or not added:
        return None
    return r.emit(EXPAND_DIMS if shorter is old else SQUEEZE, x, axis=tuple(added))


def _broadcast(r: _Simplifier, ins: tuple[Atom, ...], attrs: Mapping[str, Any], out: Aval) -> Atom | None:
    x = ins[0]
    node = r.producer(x)
    if node is not None and node.op is BROADCAST_TO:
        return r.apply(BROADCAST_TO, *node.ins, shape=out.shape)
    return x  # taken only if the shape is already right


def _permute(r: _Simplifier, ins: tuple[Atom, ...], attrs: Mapping[str, Any], out: Aval) -> Atom | None:
    axes = tuple(attrs["axes"])
    if axes == tuple(range(len(axes))):
        return ins[0]
    node = r.producer(ins[0])
    if node is not None and node.op is PERMUTE_DIMS:
        inner = node.attr("axes")
        return r.apply(PERMUTE_DIMS, *node.ins, axes=tuple(inner[k] for k in axes))
    if node is not None and node.op.contraction:
        return _transposed_product(r, node, axes)
    return _movement(r, ins, attrs, out)


def _transposed_product(r: _Simplifier, node: TraceNode, axes: tuple[int, ...]) -> Atom | None:
    """``(a @ b).T`` as ``b.T @ a.T``: BLAS reads transposed operands in place, and writes the result in order."""
    n = len(axes)
    swapped = (*range(n - 2), n - 1, n - 2)
    if axes != swapped or any(a.aval.ndim != n for a in node.ins):
        return None
    a, b = (r.apply(PERMUTE_DIMS, x, axes=swapped) for x in node.ins)
    r.origin, origin = node.origin, r.origin
    product = r.apply(node.op, b, a)
    r.origin = origin
    return product


def _squeeze(r: _Simplifier, ins: tuple[Atom, ...], attrs: Mapping[str, Any], out: Aval) -> Atom | None:
    if not attrs["axis"]:
        return ins[0]
    node = r.producer(ins[0])
    if node is not None and node.op.keeps_order:
        return r.apply(RESHAPE, *node.ins, shape=out.shape)
    return _movement(r, ins, attrs, out)


def _is_everything(index: Any, shape: tuple[int, ...]) -> bool:
    return all(entry == (0, 1, n) for entry, n in zip(index, shape, strict=True))


def _slice(r: _Simplifier, ins: tuple[Atom, ...], attrs: Mapping[str, Any], out: Aval) -> Atom | None:
    return ins[0] if _is_everything(attrs["index"], ins[0].aval.shape) else _movement(r, ins, attrs, out)


def _put_slice(r: _Simplifier, ins: tuple[Atom, ...], attrs: Mapping[str, Any], out: Aval) -> Atom | None:
    """``x[:] = v``, as loops in the style of NumPy have it, is ``v``."""
    if not _is_everything(attrs["index"], out.shape):
        return None
    return r.apply(ASTYPE, ins[1], dtype=out.dtype)


def _reduce(r: _Simplifier, ins: tuple[Atom, ...], attrs: Mapping[str, Any], out: Aval) -> Atom | None:
    """A reduction over no axes, or over axes of length 1 only, is a change of shape."""
    x = ins[0]
    if any(x.aval.shape[k] != 1 for k in attrs["axis"]):
        return None
    if x.aval.dtype != out.dtype:
        x = r.apply(ASTYPE, x, dtype=out.dtype)
    return r.apply(SQUEEZE, x, axis=tuple(attrs["axis"])) if attrs["axis"] else x


def _sum(r: _Simplifier, ins: tuple[Atom, ...], attrs: Mapping[str, Any], out: Aval) -> Atom | None:
    """NumPy adds the terms to 0.0: the sum of -0.0 alone is 0.0."""
    total = _reduce(r, ins, attrs, out)
    return total if total is None or out.dtype.kind not in "fc" else r.apply(ADD, total, Literal(0.0))


def _reduction_rule(op: OpDef) -> Rule:
    return _sum if op.monoid is not None and op.monoid.ufunc is np.add else _reduce


RULES: Mapping[OpDef, Rule] = {
    MULTIPLY: _multiply,
    DIVIDE: _divide,
    ADD: _add,
    SUBTRACT: _subtract,
    NEGATIVE: _negative,
    POW: _pow,
    WHERE: _where,
    ASTYPE: _astype,
    STOP_GRADIENT: _identity,
    UPDATED: lambda _r, ins, _attrs, _out: ins[1],
    COPY: _identity,
    POSITIVE: _identity,
    FULL: _full,
    RESHAPE: _reshape,
    BROADCAST_TO: _broadcast,
    PERMUTE_DIMS: _permute,
    EXPAND_DIMS: _squeeze,
    SQUEEZE: _squeeze,
    SLICE: _slice,
    PUT_SLICE: _put_slice,
}


def simplify(graph: Graph) -> Graph:
    """Rewrite every node to something simpler that gives the same bits (``pow`` by small integers: within 2 ULP)."""
    new = _Simplifier(graph)
    for node in new.visit():
        if len(node.outs) == 1 and node.op.kind is not Kind.FUSED:
            simpler = new.simplify(node.op, node.ins, dict(node.attrs), node.out.aval)
            if simpler is not None:
                new.replace(node.out, simpler)
                continue
            ins = tuple(new.unbroadcast(node.op, node.ins, node.out.aval))
            node = node if ins == node.ins else replace(node, ins=ins)
        new.keep(node)
    return new.graph()
