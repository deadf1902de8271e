"""The exponential integrals."""

from __future__ import annotations

from jitgrad.core.op import define_elementwise
from jitgrad.core.tensor import Tensor
from jitgrad.eager.scalar_eval import on_floats
from jitgrad.ops.arithmetic import divide, multiply, negative
from jitgrad.ops.operand import Operand, apply
from jitgrad.ops.transcendental import exp

EXP1 = define_elementwise(
    "exp1(x)",
    scalar="exp1(x)",
    eager=on_floats("exp1"),
    vjp=(lambda g, _out, x: multiply(g, negative(divide(exp(negative(x)), x))),),
    domain=("positive",),
    one_loop=True,
)
EXPI = define_elementwise(
    "expi(x)",
    scalar="expi(x)",
    eager=on_floats("expi"),
    vjp=(lambda g, _out, x: multiply(g, divide(exp(x), x)),),
    domain=("nonzero",),
    one_loop=True,
)


def exp1(x: Operand) -> Tensor:
    """The integral of ``exp(-t) / t`` from ``x`` to infinity; inf at 0, NaN below."""
    return apply(EXP1, x)


def expi(x: Operand) -> Tensor:
    """The principal value of the integral of ``exp(t) / t`` from -infinity to ``x``; -inf at 0."""
    return apply(EXPI, x)
