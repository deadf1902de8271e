"""The gamma function, its logarithm and that one's derivatives, and Hurwitz's zeta function."""

from __future__ import annotations

import math
from typing import Any

from jitgrad.core.errors import ArgumentError, shown
from jitgrad.core.op import OpDef, define_elementwise
from jitgrad.core.tensor import Tensor
from jitgrad.eager.scalar_eval import on_floats
from jitgrad.ops.arithmetic import abs, add, divide, multiply, negative, sign, subtract
from jitgrad.ops.comparison import greater, less, where
from jitgrad.ops.entropy import xlogy
from jitgrad.ops.incomplete_beta import no_slope_by_shape
from jitgrad.ops.operand import Operand, apply
from jitgrad.ops.rounding import rint
from jitgrad.ops.transcendental import exp
from jitgrad.ops.trigonometric import tan

GAMMALN: OpDef = define_elementwise(
    "gammaln(x)",
    scalar="gammaln(x)",
    eager=on_floats("gammaln"),
    vjp=(lambda g, _out, x: multiply(g, digamma(x)),),
    domain=("positive",),
    one_loop=True,
)
GAMMA = define_elementwise(
    "gamma(x)",
    scalar="gamma(x)",
    eager=on_floats("gamma"),
    vjp=(lambda g, out, x: multiply(g, multiply(out, digamma(x))),),
    domain=("positive",),
    one_loop=True,
)
DIGAMMA: OpDef = define_elementwise(
    "digamma(x)",
    scalar="digamma(x)",
    eager=on_floats("digamma"),
    vjp=(lambda g, _out, x: multiply(g, apply(TRIGAMMA, x)),),
    domain=("positive",),
    one_loop=True,
)
TRIGAMMA: OpDef = define_elementwise(
    "trigamma(x)",
    scalar="trigamma(x)",
    eager=on_floats("trigamma"),
    vjp=(lambda g, _out, x: multiply(g, polygamma(2, x)),),
    domain=("positive",),
    one_loop=True,
)
_zeta_array = on_floats("zeta")
HURWITZ_ZETA: OpDef = define_elementwise(
    "hurwitz_zeta(q, *, order)",
    scalar="zeta(order + 1.0, q)",
    eager=lambda q, *, order: _zeta_array(q.dtype.type(order + 1.0)[...], q),
    vjp=(lambda g, _out, q, *, order: multiply(g, multiply(-(order + 1.0), apply(HURWITZ_ZETA, q, order=order + 1.0))),),
    domain=("positive",),
    sample_attrs={"order": 2.0},
)

ZETA: OpDef = define_elementwise(
    "zeta(x, q)",
    scalar="zeta(x, q)",
    eager=_zeta_array,
    vjp=(no_slope_by_shape, lambda g, _out, x, q: multiply(g, multiply(negative(x), apply(ZETA, add(x, 1.0), q)))),
)


def _incomplete(name: str, sign: float) -> OpDef:
    def slope(g: Tensor, _out: Any, a: Any, x: Any) -> Tensor:
        density = exp(subtract(subtract(xlogy(subtract(a, 1.0), x), x), gammaln(a)))
        return multiply(g, multiply(sign, density))

    return define_elementwise(
        f"{name}(a, x)", scalar=f"{name}(a, x)", eager=on_floats(name), vjp=(no_slope_by_shape, slope)
    )


GAMMAINC = _incomplete("gammainc", 1.0)
GAMMAINCC = _incomplete("gammaincc", -1.0)


def gammainc(a: Operand, x: Operand) -> Tensor:
    """The regularised lower incomplete gamma function, the gamma distribution function of shape ``a``.

    Raises:
        AutogradError: in backward, if ``a`` requires grad.
    """
    return apply(GAMMAINC, a, x)


def gammaincc(a: Operand, x: Operand) -> Tensor:
    """``1 - gammainc(a, x)``, accurate where that is small.

    Raises:
        AutogradError: in backward, if ``a`` requires grad.
    """
    return apply(GAMMAINCC, a, x)


igamma, igammac = gammainc, gammaincc  # torch's names


def gammaln(x: Operand) -> Tensor:
    """``log |gamma(x)|``, floating; infinite at 0, -1, -2, ..."""
    return apply(GAMMALN, x)


def gamma(x: Operand) -> Tensor:
    """Euler's gamma function, ``(x - 1)!`` for whole ``x``; NaN at -1, -2, ..."""
    return apply(GAMMA, x)


def digamma(x: Operand) -> Tensor:
    """The derivative of `gammaln`; NaN at -1, -2, ..., infinite at 0."""
    return apply(DIGAMMA, x)


_LARGEST_ORDER = 170  # of a factorial that is finite in float64


def polygamma(n: int, x: Operand) -> Tensor:
    """The ``n``-th derivative of `digamma`, for a Python int ``n`` from 0 to 170.

    Raises:
        ArgumentError: ``n`` is not such a number.
    """
    if not isinstance(n, int) or isinstance(n, bool) or not 0 <= n <= _LARGEST_ORDER:
        raise ArgumentError(
            f"polygamma: the order must be a Python int from 0 to {_LARGEST_ORDER}, got {shown(n)}. "
            "For several orders call it once for each"
        )
    if n < 2:
        return apply((DIGAMMA, TRIGAMMA)[n], x)
    negative = less(x, 0.0)
    parity = 1.0 if n % 2 else -1.0
    factor = parity * float(math.factorial(n))
    direct = multiply(factor, apply(HURWITZ_ZETA, where(negative, subtract(1.0, x), x), order=float(n)))
    rest = subtract(x, rint(x))
    regular = greater(abs(rest), 0.0)
    reflected = subtract(_cotangent_term(n, cotangent_of_half_turns(where(regular, rest, 0.25))), multiply(parity, direct))
    return where(negative, where(regular, reflected, parity * math.inf), direct)


def cotangent_of_half_turns(t: Operand) -> Tensor:
    """``cot(pi t)`` for ``0 < |t| <= 1/2``, with a relative error also near 1/2."""
    far = greater(abs(t), 0.25)
    tangent = tan(multiply(math.pi, where(far, subtract(0.5, abs(t)), abs(t))))
    return multiply(sign(t), where(far, tangent, divide(1.0, where(far, 1.0, tangent))))


def _cotangent_term(n: int, c: Tensor) -> Tensor:
    """``-pi`` times the ``n``-th derivative of ``cot(pi x)``, a polynomial in ``c = cot(pi x)``.

    The derivative of ``p(c)`` is ``-pi (1 + c*c) p'(c)``.
    """
    powers = [0, 1]
    for _ in range(n):
        slope = [k * p for k, p in enumerate(powers)][1:]
        powers = [-(a + b) for a, b in zip([*slope, 0, 0], [0, 0, *slope], strict=True)]
    square, total = multiply(c, c), multiply(c, 0.0)
    for p in reversed(powers[(n + 1) % 2 :: 2]):
        total = add(multiply(total, square), float(p) * -(math.pi ** (n + 1)))
    return total if n % 2 else multiply(c, total)


def zeta(x: Operand, q: Operand = 1.0) -> Tensor:
    """Hurwitz's zeta function, ``sum((q + k)**-x for k = 0, 1, ...)``, for ``q > 0``; differentiable by ``q`` alone.

    It is Riemann's for ``q = 1``; NaN for ``x < 1``.
    """
    if isinstance(x, (int, float)) and not isinstance(x, bool):
        return apply(HURWITZ_ZETA, q, order=float(x) - 1.0)
    return apply(ZETA, x, q)
