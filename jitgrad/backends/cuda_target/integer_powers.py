"""Writes powers of integers with a known exponent as products, which are kernels and have the same bits."""

from __future__ import annotations

from jitgrad.compiler.passes.rewriter import Rewriter
from jitgrad.core.ir import Atom, Graph, Literal, TraceNode
from jitgrad.ops.arithmetic import ASTYPE, MULTIPLY
from jitgrad.ops.transcendental import INTEGER_POW

_LARGEST = 64  # from here on every power of 2 or more has left the range of the dtype


def expand_integer_powers(graph: Graph) -> Graph:
    """``integer_pow(x, 5)`` becomes ``multiply(x, square(square(x)))`` in multiplications.

    Of exponents that are operands any may be negative, which is an error that a kernel could not raise.
    """
    if not any(map(_is_known_power, graph.nodes)):
        return graph
    new = Rewriter(graph)
    for node in new.visit():
        if _is_known_power(node):
            new.replace(node.out, _product(new, node))
        else:
            new.keep(node)
    return new.graph()


def _is_known_power(node: TraceNode) -> bool:
    if node.op is not INTEGER_POW or node.out.aval.weak or isinstance(node.ins[0], Literal):
        return False
    exponent = node.ins[1]
    return isinstance(exponent, Literal) and isinstance(exponent.value, int) and 1 <= exponent.value <= _LARGEST


def _product(new: Rewriter, node: TraceNode) -> Atom:
    factor, exponent = node.ins
    assert isinstance(exponent, Literal)
    remaining, dtype = int(exponent.value.real), node.out.aval.dtype
    if factor.aval.dtype != dtype or factor.aval.weak:
        factor = new.emit(ASTYPE, factor, dtype=dtype)
    product: Atom | None = None
    while True:
        if remaining % 2:
            product = factor if product is None else new.emit(MULTIPLY, product, factor)
        remaining //= 2
        if not remaining:
            break
        factor = new.emit(MULTIPLY, factor, factor)
    assert product is not None
    return product
