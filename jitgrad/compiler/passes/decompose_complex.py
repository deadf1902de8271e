"""Computes complex numbers by parts: kernels know real ones only, and fuse the parts as any other values.

``ifft(1j * k * fft(u))`` becomes ``v = fft(u)``; one kernel from the components of ``v``, which are strided views,
to the parts of ``w``, which are written side by side; ``ifft(w)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from jitgrad.compiler.compiler_ops import COMPONENT, INTERLEAVE
from jitgrad.compiler.passes.complex_formulas import FORMULAS, ComplexParts, Formulas
from jitgrad.compiler.passes.rewriter import Rewriter
from jitgrad.core.aval import Dtype, Shape, complex_dtype_of, real_dtype_of
from jitgrad.core.ir import Atom, Graph, Literal, TraceNode, Value
from jitgrad.core.op import Kind
from jitgrad.ops.arithmetic import ASTYPE, POSITIVE
from jitgrad.ops.comparison import WHERE
from jitgrad.ops.complex_parts import COMPLEX
from jitgrad.ops.creation import COPY, FULL
from jitgrad.ops.identity import STOP_GRADIENT, UPDATED
from jitgrad.ops.movement import BROADCAST_TO, SUM
from jitgrad.ops.reduce import ALL, ANY

_IDENTITIES = frozenset({STOP_GRADIENT, POSITIVE, COPY, UPDATED})


def decompose_complex(graph: Graph) -> Graph:
    """Elementwise ops, sums and movement of complex values become those of their parts.

    Other ops, library calls, take and give complex arrays. A value is held as parts, as an array, or both; each form is
    made where it is first needed.
    """
    if not any(_is_complex(v) for node in graph.nodes for v in (*node.ins, *node.outs)):
        return graph
    new = _Decomposer(graph)
    for node in new.visit():
        new.place(node)
    outputs = tuple([new.array(a) if _is_complex(a) else new.current(a) for a in graph.outputs])
    return replace(new.graph(), outputs=outputs)


def _is_complex(atom: Atom) -> bool:
    return atom.aval.dtype.kind == "c"


class _Decomposer(Rewriter):
    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.known_parts: dict[Atom, ComplexParts] = {}
        self.arrays: dict[Atom, Atom] = {v: v for v in graph.inputs}

    # --- forms of a value ----------------------------------------------------------------------------------------

    def parts(self, atom: Atom) -> ComplexParts:
        """The parts of a complex value; components of its array if nothing else is known."""
        if isinstance(atom, Literal):
            number, dtype = complex(atom.value), atom.dtype and real_dtype_of(atom.dtype)
            return Literal(number.real, dtype), Literal(number.imag, dtype)
        if atom not in self.known_parts:
            array = self.arrays[atom]
            self.known_parts[atom] = self.emit(COMPONENT, array, index=0), self.emit(COMPONENT, array, index=1)
        return self.known_parts[atom]

    def array(self, atom: Atom) -> Atom:
        """A complex value as an array, written of its parts if nothing else is known."""
        if isinstance(atom, Literal):
            return atom
        if atom not in self.arrays:
            re, im = [self.shaped(part, atom.aval.shape) for part in self.known_parts[atom]]
            self.arrays[atom] = self.emit(INTERLEAVE, re, im)
        return self.arrays[atom]

    def shaped(self, part: Atom, shape: Shape) -> Atom:
        return part if part.aval.shape == shape else self.emit(BROADCAST_TO, part, shape=shape)

    def converted(self, part: Atom, dtype: Dtype) -> Atom:
        """A part in ``dtype``; weak floats adapt by themselves."""
        if isinstance(part, Literal):
            return replace(part, value=dtype.type(part.value).item(), dtype=dtype)
        if part.aval.dtype == dtype or (part.aval.weak and part.aval.dtype.kind == "f"):
            return part
        return self.emit(ASTYPE, part, dtype=dtype)

    def parts_in(self, atom: Atom, dtype: Dtype) -> ComplexParts:
        """The parts of a real or complex operand that an op converts to the complex ``dtype``."""
        real = real_dtype_of(dtype)
        if not _is_complex(atom):
            return self.converted(atom, real), Literal(0.0)
        re, im = self.parts(atom)
        return self.converted(re, real), self.converted(im, real)

    # --- nodes ---------------------------------------------------------------------------------------------------

    def place(self, node: TraceNode) -> None:
        """Append what computes the results of ``node``."""
        complex_ins = any(map(_is_complex, node.ins))
        if not complex_ins and not any(map(_is_complex, node.outs)):
            self.keep(node)
        elif not self.decompose(node):
            self.keep(replace(node, ins=tuple([self.array(a) if _is_complex(a) else a for a in node.ins])))
            self.arrays.update({out: out for out in node.outs})

    def decompose(self, node: TraceNode) -> bool:
        """Compute ``node`` by parts, if there is a way."""
        op, attrs = node.op, dict(node.attrs)
        if op in FORMULAS:
            dtype = complex_dtype_of(op.dtypes([a.aval for a in node.ins])[0][-1])
            operands = [self.parts_in(a, dtype) for a in node.ins]
            self.define_parts(node.out, FORMULAS[op](Formulas(self, real_dtype_of(dtype)), *operands))
        elif op in _IDENTITIES and node.ins[-1].aval.dtype == node.out.aval.dtype:
            self.same(node.out, node.ins[-1])
        elif op is COMPLEX:
            real = real_dtype_of(node.out.aval.dtype)
            self.define_parts(node.out, (self.converted(node.ins[0], real), self.converted(node.ins[1], real)))
        elif op is WHERE and not _is_complex(node.ins[0]):
            x, y = [self.parts_in(a, node.out.aval.dtype) for a in node.ins[1:]]
            self.define_parts(node.out, tuple([self.emit(WHERE, node.ins[0], *pair) for pair in zip(x, y, strict=True)]))
        elif op is ASTYPE:
            self.astype(node.out, node.ins[0])
        elif op in (SUM, ANY, ALL):
            self.reduce(node, attrs)
        elif op is FULL:
            real, parts = real_dtype_of(node.out.aval.dtype), self.parts_in(node.ins[0], node.out.aval.dtype)
            self.define_parts(node.out, tuple([self.emit(FULL, p, shape=attrs["shape"], dtype=real) for p in parts]))
        elif op.kind is Kind.MOVEMENT and node.ins[0] not in self.arrays and isinstance(node.ins[0], Value):
            self.define_parts(node.out, tuple([self.moved(node, p, attrs) for p in self.parts(node.ins[0])]))
        else:
            return False
        return True

    def define_parts(self, out: Value, result: ComplexParts | Sequence[Atom] | Atom) -> None:
        """``result``, parts or one real value, is ``out``."""
        shape, dtype = out.aval.shape, out.aval.dtype
        if not isinstance(result, tuple):
            assert isinstance(result, (Value, Literal))
            self.replace(out, self.shaped(self.exactly(result, dtype), shape))
            return
        real = real_dtype_of(dtype)
        re, im = [self.exactly(p, real) for p in result]
        self.known_parts[out] = self.with_shape_of(re, shape), self.with_shape_of(im, shape)

    def exactly(self, part: Atom, dtype: Dtype) -> Atom:
        if isinstance(part, Literal):
            return self.converted(part, dtype)
        return part if part.aval.dtype == dtype else self.emit(ASTYPE, part, dtype=dtype)

    def with_shape_of(self, part: Atom, shape: Shape) -> Atom:
        """A value in ``shape``; a number has every shape."""
        return part if isinstance(part, Literal) else self.shaped(part, shape)

    def same(self, out: Value, source: Atom) -> None:
        """``out`` is ``source`` in whatever forms that is known."""
        if isinstance(source, Literal):
            self.known_parts[out] = self.parts(source)
        if source in self.known_parts:
            self.known_parts[out] = self.known_parts[source]
        if source in self.arrays:
            self.arrays[out] = self.arrays[source]

    def astype(self, out: Value, source: Atom) -> None:
        dtype = out.aval.dtype
        if dtype.kind == "c":
            self.define_parts(out, self.parts_in(source, dtype))
        elif dtype.kind == "b":
            self.define_parts(out, Formulas(self, dtype).truth(self.parts(source)))
        else:
            self.define_parts(out, self.parts(source)[0])

    def reduce(self, node: TraceNode, attrs: dict[str, Any]) -> None:
        (x,) = node.ins
        if node.op is SUM:
            terms = [self.shaped(part, x.aval.shape) for part in self.parts(x)]
            self.define_parts(node.out, tuple([self.emit(SUM, part, **attrs) for part in terms]))
        else:
            truth = self.shaped(Formulas(self, node.out.aval.dtype).truth(self.parts(x)), x.aval.shape)
            self.define_parts(node.out, self.emit(node.op, truth, **attrs))

    def moved(self, node: TraceNode, part: Atom, attrs: dict[str, Any]) -> Atom:
        return part if isinstance(part, Literal) else self.emit(node.op, part, **attrs)
