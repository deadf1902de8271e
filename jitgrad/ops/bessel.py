"""The modified Bessel functions of orders 0 and 1."""

from __future__ import annotations

from typing import Any

from jitgrad.core.op import define_elementwise
from jitgrad.core.tensor import Tensor
from jitgrad.eager.scalar_eval import on_floats
from jitgrad.ops.arithmetic import divide, multiply, sign, subtract
from jitgrad.ops.comparison import equal, where
from jitgrad.ops.operand import Operand, apply


def _over(y: Any, x: Any) -> Tensor:
    """``y / x`` for I1 and ``x``: 1/2 at 0."""
    zero = equal(x, 0.0)
    return where(zero, 0.5, divide(y, where(zero, 1.0, x)))


I0 = define_elementwise(
    "i0(x)",
    scalar="i0(x)",
    eager=on_floats("i0"),
    vjp=(lambda g, _out, x: multiply(g, i1(x)),),
    domain=("real",),
    one_loop=True,
)
I1 = define_elementwise(
    "i1(x)",
    scalar="i1(x)",
    eager=on_floats("i1"),
    vjp=(lambda g, out, x: multiply(g, subtract(i0(x), _over(out, x))),),
    domain=("real",),
    one_loop=True,
)
I0E = define_elementwise(
    "i0e(x)",
    scalar="i0e(x)",
    eager=on_floats("i0e"),
    vjp=(lambda g, out, x: multiply(g, subtract(i1e(x), multiply(sign(x), out))),),
    domain=("nonzero",),
    one_loop=True,
)
I1E = define_elementwise(
    "i1e(x)",
    scalar="i1e(x)",
    eager=on_floats("i1e"),
    vjp=(lambda g, out, x: multiply(g, subtract(subtract(i0e(x), multiply(sign(x), out)), _over(out, x))),),
    domain=("nonzero",),
    one_loop=True,
)


def i0(x: Operand) -> Tensor:
    """The modified Bessel function of order 0."""
    return apply(I0, x)


def i1(x: Operand) -> Tensor:
    """The modified Bessel function of order 1."""
    return apply(I1, x)


def i0e(x: Operand) -> Tensor:
    """``exp(-|x|) * i0(x)``, without overflow."""
    return apply(I0E, x)


def i1e(x: Operand) -> Tensor:
    """``exp(-|x|) * i1(x)``, without overflow."""
    return apply(I1E, x)
