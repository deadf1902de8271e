"""The Bessel functions of orders 0 and 1, ordinary and modified."""

from __future__ import annotations

from typing import Any

from jitgrad.core.op import define_elementwise
from jitgrad.core.tensor import Tensor
from jitgrad.eager.scalar_eval import on_floats
from jitgrad.ops.arithmetic import add, divide, multiply, negative, sign, subtract
from jitgrad.ops.comparison import equal, where
from jitgrad.ops.operand import Operand, apply


def _over(y: Any, x: Any) -> Tensor:
    """``y / x`` for I1 or J1 and ``x``: 1/2 at 0."""
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
J0 = define_elementwise(
    "j0(x)",
    scalar="bessel_j0(x)",
    eager=on_floats("bessel_j0"),
    vjp=(lambda g, _out, x: multiply(g, negative(j1(x))),),
    domain=("real",),
    one_loop=True,
)
J1 = define_elementwise(
    "j1(x)",
    scalar="bessel_j1(x)",
    eager=on_floats("bessel_j1"),
    vjp=(lambda g, out, x: multiply(g, subtract(j0(x), _over(out, x))),),
    domain=("real",),
    one_loop=True,
)
Y0 = define_elementwise(
    "y0(x)",
    scalar="bessel_y0(x)",
    eager=on_floats("bessel_y0"),
    vjp=(lambda g, _out, x: multiply(g, negative(y1(x))),),
    domain=("positive",),
    one_loop=True,
)
Y1 = define_elementwise(
    "y1(x)",
    scalar="bessel_y1(x)",
    eager=on_floats("bessel_y1"),
    vjp=(lambda g, out, x: multiply(g, subtract(y0(x), divide(out, x))),),
    domain=("positive",),
    one_loop=True,
)
K0 = define_elementwise(
    "k0(x)",
    scalar="bessel_k0(x)",
    eager=on_floats("bessel_k0"),
    vjp=(lambda g, _out, x: multiply(g, negative(k1(x))),),
    domain=("positive",),
    one_loop=True,
)
K1 = define_elementwise(
    "k1(x)",
    scalar="bessel_k1(x)",
    eager=on_floats("bessel_k1"),
    vjp=(lambda g, out, x: multiply(g, negative(add(k0(x), divide(out, x)))),),
    domain=("positive",),
    one_loop=True,
)
K0E = define_elementwise(
    "k0e(x)",
    scalar="bessel_k0e(x)",
    eager=on_floats("bessel_k0e"),
    vjp=(lambda g, out, x: multiply(g, subtract(out, k1e(x))),),
    domain=("positive",),
    one_loop=True,
)
K1E = define_elementwise(
    "k1e(x)",
    scalar="bessel_k1e(x)",
    eager=on_floats("bessel_k1e"),
    vjp=(lambda g, out, x: multiply(g, subtract(subtract(out, k0e(x)), divide(out, x))),),
    domain=("positive",),
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


def j0(x: Operand) -> Tensor:
    """The Bessel function of the first kind of order 0."""
    return apply(J0, x)


def j1(x: Operand) -> Tensor:
    """The Bessel function of the first kind of order 1."""
    return apply(J1, x)


def y0(x: Operand) -> Tensor:
    """The Bessel function of the second kind of order 0; -inf at 0, NaN below."""
    return apply(Y0, x)


def y1(x: Operand) -> Tensor:
    """The Bessel function of the second kind of order 1; -inf at 0, NaN below."""
    return apply(Y1, x)


def k0(x: Operand) -> Tensor:
    """The modified Bessel function of the second kind of order 0; inf at 0, NaN below."""
    return apply(K0, x)


def k1(x: Operand) -> Tensor:
    """The modified Bessel function of the second kind of order 1; inf at 0, NaN below."""
    return apply(K1, x)


def k0e(x: Operand) -> Tensor:
    """``exp(x) * k0(x)``, without underflow."""
    return apply(K0E, x)


def k1e(x: Operand) -> Tensor:
    """``exp(x) * k1(x)``, without underflow."""
    return apply(K1E, x)
