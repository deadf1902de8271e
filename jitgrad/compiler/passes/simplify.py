"""Algebra that is exact in IEEE arithmetic: constants folded, identities and needless movement removed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from jitgrad.core.aval import Aval
from jitgrad.core.ir import Atom, Graph, Literal, TraceNode, Value
from jitgrad.core.op import REGISTRY, Kind, OpDef
from jitgrad.core.origin import Origin
from jitgrad.eager.interpreter import run_eagerly


class _Rewriter:
    """The program as rewritten so far, with the defining node of every value in it."""

    def __init__(self) -> None:
        self.nodes: list[TraceNode] = []
        self.defined_by: dict[int, TraceNode] = {}

    def emit(self, op: OpDef, ins: tuple[Atom, ...], attrs: Mapping[str, Any], origin: Origin) -> Atom:
        """The result of ``op``, simplified; a new node only if nothing simpler will do."""
        expected = op.abstract([a.aval for a in ins], attrs)
        assert isinstance(expected, Aval)
        if (simpler := self.simplify(op, ins, attrs, expected, origin)) is not None:
            return simpler
        return self.append(TraceNode(op, ins, (Value(expected),), tuple(sorted(attrs.items())), origin)).out

    def append(self, node: TraceNode) -> TraceNode:
        self.nodes.append(node)
        for out in node.outs:
            self.defined_by[id(out)] = node
        return node

    def simplify(
        self, op: OpDef, ins: tuple[Atom, ...], attrs: Mapping[str, Any], out: Aval, origin: Origin
    ) -> Atom | None:
        """Something that equals ``op(*ins)`` bit for bit and has its shape and dtype, or None."""
        if (folded := _fold(op, ins, attrs, out)) is not None:
            return folded
        if (uniform := self.uniform(op, ins, attrs, out, origin)) is not None:
            return uniform
        ins = tuple(self.unbroadcast(op, ins, out))
        rule = RULES.get(op.name)
        found = rule(self, ins, attrs, out, origin) if rule is not None else None
        if found is not None and found.aval.shape == out.shape and found.aval.dtype == out.dtype:
            return found
        return None

    def uniform(
        self, op: OpDef, ins: tuple[Atom, ...], attrs: Mapping[str, Any], out: Aval, origin: Origin
    ) -> Atom | None:
        """An elementwise op on repeated numbers alone is the repeated result."""
        if op.kind is not Kind.ELEMENTWISE or op.scalar is None or not out.shape or not ins:
            return None
        numbers = [self.number(atom) for atom in ins]
        if any(n is None for n in numbers):
            return None
        one = self.emit(op, tuple(n for n in numbers if n is not None), attrs, origin)
        if one.aval.shape != () or one.aval.dtype != out.dtype:
            return None
        return self.emit(REGISTRY["broadcast_to"], (one,), {"shape": out.shape}, origin)

    def number(self, atom: Atom) -> Literal | None:
        """The number that ``atom`` repeats, if it is known."""
        node = self.defined_by.get(id(atom))
        if node is not None and node.op.name == "broadcast_to":
            atom = node.ins[0]
        return atom if isinstance(atom, Literal) else None

    def unbroadcast(self, op: OpDef, ins: tuple[Atom, ...], out: Aval) -> list[Atom]:
        """Operands of an elementwise op without a broadcast that the op would do itself."""
        if op.kind is not Kind.ELEMENTWISE:
            return list(ins)
        result = list(ins)
        for k, atom in enumerate(ins):
            node = self.defined_by.get(id(atom))
            if node is None or node.op.name != "broadcast_to":
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
    return op.name == "astype" or op.dtypes([a.aval for a in atoms])[1] == out.dtype


def _fold(op: OpDef, ins: tuple[Atom, ...], attrs: Mapping[str, Any], out: Aval) -> Literal | None:
    """The value of an elementwise op on numbers alone, computed as eager computes it."""
    if op.kind is not Kind.ELEMENTWISE or op.scalar is None or out.shape != () or not ins:
        return None
    if not all(isinstance(a, Literal) for a in ins):
        return None
    arrays = [np.asarray(a.value, a.aval.dtype) for a in ins if isinstance(a, Literal)]
    value = run_eagerly(op, arrays, [a.aval for a in ins], attrs)
    shape_derived = any(isinstance(a, Literal) and a.shape_derived for a in ins)
    return Literal(value.item(), None if out.weak else out.dtype, shape_derived)


# --- the rules: (rewriter, ins, attrs, aval of the result, origin) -> an equal atom, or None ---------------------------

Rule = Callable[[_Rewriter, tuple[Atom, ...], Mapping[str, Any], Aval, Origin], Atom | None]


def _is(atom: Atom, number: float) -> bool:
    """Whether ``atom`` is this number, sign of zero included."""
    if not isinstance(atom, Literal) or atom.value != number:
        return False
    return number != 0 or math.copysign(1.0, float(atom.value)) == math.copysign(1.0, number)


def _multiply(r: _Rewriter, ins: tuple[Atom, ...], attrs: Any, out: Aval, origin: Origin) -> Atom | None:
    x, y = ins
    return x if _is(y, 1) else y if _is(x, 1) else None


def _divide(r: _Rewriter, ins: tuple[Atom, ...], attrs: Any, out: Aval, origin: Origin) -> Atom | None:
    return ins[0] if _is(ins[1], 1) else None


def _add(r: _Rewriter, ins: tuple[Atom, ...], attrs: Any, out: Aval, origin: Origin) -> Atom | None:
    # x + 0.0 is not x for x = -0.0; x + -0.0 is. Integers have one zero.
    x, y = ins
    zero = 0 if out.dtype.kind in "iu" else -0.0
    return x if _is(y, zero) else y if _is(x, zero) else None


def _subtract(r: _Rewriter, ins: tuple[Atom, ...], attrs: Any, out: Aval, origin: Origin) -> Atom | None:
    return ins[0] if _is(ins[1], 0) or _is(ins[1], 0.0) else None


def _negative(r: _Rewriter, ins: tuple[Atom, ...], attrs: Any, out: Aval, origin: Origin) -> Atom | None:
    node = r.defined_by.get(id(ins[0]))
    return node.ins[0] if node is not None and node.op.name == "negative" else None


def _pow(r: _Rewriter, ins: tuple[Atom, ...], attrs: Any, out: Aval, origin: Origin) -> Atom | None:
    # x*x is one correctly rounded product, as pow is; x*x*x and (x*x)*(x*x) stay within 2 ULP of the exact power
    x, y = ins
    if isinstance(x, Literal) or out.dtype.kind != "f":
        return None
    multiply = REGISTRY["multiply"]
    if _is(y, 1):
        return x
    if not any(_is(y, n) for n in (2, 3)):
        return None
    square = r.emit(multiply, (x, x), {}, origin)
    return square if _is(y, 2) else r.emit(multiply, (square, x), {}, origin)


def _where(r: _Rewriter, ins: tuple[Atom, ...], attrs: Any, out: Aval, origin: Origin) -> Atom | None:
    condition, x, y = ins
    known = r.number(condition)
    chosen = x if x is y else None if known is None else x if known.value else y
    if chosen is None:
        return None
    chosen = r.emit(REGISTRY["astype"], (chosen,), {"dtype": out.dtype}, origin)
    return (
        chosen
        if chosen.aval.shape == out.shape
        else r.emit(REGISTRY["broadcast_to"], (chosen,), {"shape": out.shape}, origin)
    )


def _astype(r: _Rewriter, ins: tuple[Atom, ...], attrs: Any, out: Aval, origin: Origin) -> Atom | None:
    return ins[0]  # taken only if the dtype is already right


def _identity(r: _Rewriter, ins: tuple[Atom, ...], attrs: Any, out: Aval, origin: Origin) -> Atom | None:
    return ins[0]


def _full(r: _Rewriter, ins: tuple[Atom, ...], attrs: Any, out: Aval, origin: Origin) -> Atom | None:
    value = r.emit(REGISTRY["astype"], ins, {"dtype": out.dtype}, origin)
    if isinstance(value, Literal):
        value = Literal(value.value, out.dtype, value.shape_derived)
    return r.emit(REGISTRY["broadcast_to"], (value,), {"shape": out.shape}, origin)


def _movement(r: _Rewriter, ins: tuple[Atom, ...], attrs: Mapping[str, Any], out: Aval, origin: Origin) -> Atom | None:
    """Identity movements, and movements of something uniform (which is then a broadcast)."""
    source = ins[0]
    node = r.defined_by.get(id(source))
    if node is not None and node.op.name == "broadcast_to" and node.ins[0].aval.size == 1:
        source = node.ins[0]
    elif not isinstance(source, Literal):
        return None
    if source.aval.ndim:
        source = r.emit(REGISTRY["reshape"], (source,), {"shape": ()}, origin)
    return source if not out.shape else r.emit(REGISTRY["broadcast_to"], (source,), {"shape": out.shape}, origin)


def _reshape(r: _Rewriter, ins: tuple[Atom, ...], attrs: Mapping[str, Any], out: Aval, origin: Origin) -> Atom | None:
    x = ins[0]
    if x.aval.shape == out.shape:
        return x
    node = r.defined_by.get(id(x))
    if node is not None and node.op.name in ("reshape", "expand_dims", "squeeze"):
        return r.emit(REGISTRY["reshape"], node.ins, {"shape": out.shape}, origin)
    if (moved := _movement(r, ins, attrs, out, origin)) is not None:
        return moved
    return _as_expand_or_squeeze(r, x, out, origin)


def _as_expand_or_squeeze(r: _Rewriter, x: Atom, out: Aval, origin: Origin) -> Atom | None:
    """A reshape that only adds or only drops axes of length 1, said as such: fusion understands those."""
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
    return r.append(
        TraceNode(
            REGISTRY["expand_dims" if shorter is old else "squeeze"],
            (x,),
            (Value(Aval(new, x.aval.dtype)),),
            (("axis", tuple(added)),),
            origin,
        )
    ).out


def _broadcast(r: _Rewriter, ins: tuple[Atom, ...], attrs: Mapping[str, Any], out: Aval, origin: Origin) -> Atom | None:
    x = ins[0]
    node = r.defined_by.get(id(x))
    if node is not None and node.op.name == "broadcast_to":
        return r.emit(REGISTRY["broadcast_to"], node.ins, {"shape": out.shape}, origin)
    return x  # taken only if the shape is already right


def _permute(r: _Rewriter, ins: tuple[Atom, ...], attrs: Mapping[str, Any], out: Aval, origin: Origin) -> Atom | None:
    axes = tuple(attrs["axes"])
    if axes == tuple(range(len(axes))):
        return ins[0]
    node = r.defined_by.get(id(ins[0]))
    if node is not None and node.op.name == "permute_dims":
        inner = node.attr("axes")
        return r.emit(REGISTRY["permute_dims"], node.ins, {"axes": tuple(inner[k] for k in axes)}, origin)
    if node is not None and node.op.name == "matmul":
        return _transposed_product(r, node, axes, out, origin)
    return _movement(r, ins, attrs, out, origin)


def _transposed_product(r: _Rewriter, node: TraceNode, axes: tuple[int, ...], out: Aval, origin: Origin) -> Atom | None:
    """``(a @ b).T`` as ``b.T @ a.T``: BLAS reads transposed operands as they lie, and the result comes out in order."""
    n = len(axes)
    swapped = (*range(n - 2), n - 1, n - 2)
    if axes != swapped or any(a.aval.ndim != n for a in node.ins):
        return None
    a, b = (r.emit(REGISTRY["permute_dims"], (x,), {"axes": swapped}, origin) for x in node.ins)
    return r.emit(node.op, (b, a), {}, node.origin)


def _squeeze(r: _Rewriter, ins: tuple[Atom, ...], attrs: Mapping[str, Any], out: Aval, origin: Origin) -> Atom | None:
    if not attrs["axis"]:
        return ins[0]
    node = r.defined_by.get(id(ins[0]))
    if node is not None and node.op.name in ("reshape", "expand_dims", "squeeze"):
        return r.emit(REGISTRY["reshape"], node.ins, {"shape": out.shape}, origin)
    return _movement(r, ins, attrs, out, origin)


def _is_everything(index: Any, shape: tuple[int, ...]) -> bool:
    return all(entry == (0, 1, n) for entry, n in zip(index, shape, strict=True))


def _slice(r: _Rewriter, ins: tuple[Atom, ...], attrs: Mapping[str, Any], out: Aval, origin: Origin) -> Atom | None:
    return ins[0] if _is_everything(attrs["index"], ins[0].aval.shape) else _movement(r, ins, attrs, out, origin)


def _put_slice(r: _Rewriter, ins: tuple[Atom, ...], attrs: Mapping[str, Any], out: Aval, origin: Origin) -> Atom | None:
    """``x[:] = v``, as loops in the style of NumPy have it, is ``v``."""
    if not _is_everything(attrs["index"], out.shape):
        return None
    return r.emit(REGISTRY["astype"], (ins[1],), {"dtype": out.dtype}, origin)


def _reduce(r: _Rewriter, ins: tuple[Atom, ...], attrs: Mapping[str, Any], out: Aval, origin: Origin) -> Atom | None:
    """A reduction over no axes, or over axes of length 1 only, is a change of shape."""
    x = ins[0]
    if any(x.aval.shape[k] != 1 for k in attrs["axis"]):
        return None
    if x.aval.dtype != out.dtype:
        x = r.emit(REGISTRY["astype"], (x,), {"dtype": out.dtype}, origin)
    return r.emit(REGISTRY["squeeze"], (x,), {"axis": tuple(attrs["axis"])}, origin) if attrs["axis"] else x


RULES: Mapping[str, Rule] = {
    "multiply": _multiply,
    "divide": _divide,
    "add": _add,
    "subtract": _subtract,
    "negative": _negative,
    "pow": _pow,
    "where": _where,
    "astype": _astype,
    "stop_gradient": _identity,
    "copy": _identity,
    "positive": _identity,
    "full": _full,
    "reshape": _reshape,
    "broadcast_to": _broadcast,
    "permute_dims": _permute,
    "expand_dims": _squeeze,
    "squeeze": _squeeze,
    "slice": _slice,
    "put_slice": _put_slice,
    **dict.fromkeys(("sum", "prod", "max", "min", "any", "all"), _reduce),
}


def simplify(graph: Graph) -> Graph:
    """Rewrite every node to something simpler that gives the same bits (``pow`` by small integers: within 2 ULP)."""
    rewriter = _Rewriter()
    new: dict[int, Atom] = {}

    def current(atom: Atom) -> Atom:
        return new.get(id(atom), atom)

    for node in graph.nodes:
        ins = tuple([new.get(id(atom), atom) for atom in node.ins])
        attrs = dict(node.attrs)
        if len(node.outs) == 1 and node.op.kind is not Kind.FUSED:
            found = rewriter.simplify(node.op, ins, attrs, node.out.aval, node.origin)
            if found is not None:
                new[id(node.out)] = found
                continue
            ins = tuple(rewriter.unbroadcast(node.op, ins, node.out.aval))
        rewriter.append(node if ins == node.ins else replace(node, ins=ins))
    return replace(graph, nodes=tuple(rewriter.nodes), outputs=tuple(map(current, graph.outputs)))
