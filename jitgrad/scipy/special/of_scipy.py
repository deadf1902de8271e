"""SciPy's functions of several arguments or results as ops, with their derivatives: calls between kernels.

Derivatives: NIST Digital Library of Mathematical Functions, chapters 6, 7, 8, 9, 10, 11, 13, 15 and 19.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from jitgrad.core.errors import AutogradError, BackendError
from jitgrad.core.op import OpDef, Vjp, define_elementwise
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import add, divide, multiply, negative, sign, sqrt, square, subtract
from jitgrad.ops.comparison import equal, where
from jitgrad.ops.gamma import gamma
from jitgrad.ops.joining import stack
from jitgrad.ops.operand import Operand, apply
from jitgrad.ops.special import erf
from jitgrad.ops.transcendental import exp, log
from jitgrad.ops.trigonometric import cos, cosh, sin, sinh

Slope = Callable[..., Any]
_HALF_PI = math.pi / 2


def _of_scipy(name: str) -> Callable[..., Any]:
    """``scipy.special.name``, imported at its first call."""

    def eager(*arrays: Any) -> Any:
        try:
            function = getattr(import_module("scipy.special"), name)
        except ImportError:
            raise BackendError(f"{name} needs SciPy, which is not installed: pip install 'jitgrad[scipy]'") from None
        with np.errstate(all="ignore"):
            return function(*arrays)

    return eager


def _no_slope(name: str, operand: str) -> Vjp:
    def vjp(_g: Any, _out: Any, *_operands: Any) -> Any:
        raise AutogradError(
            f"{name} has no gradient with respect to {operand!r}; pass a number or a detached tensor, such as {operand}.detach()"
        )

    return vjp


def _vjp(slope: Slope) -> Vjp:
    def vjp(g: Any, out: Any, *operands: Any) -> Any:
        return multiply(g, slope(out, *operands))

    return vjp


def _define(signature: str, *slopes: Slope | None) -> OpDef:
    """The op of SciPy's function, with one derivative per operand, a function of the result and the operands."""
    name, operands = signature[:-1].split("(")
    names = operands.split(", ")
    rules = tuple(_no_slope(name, x) if s is None else _vjp(s) for x, s in zip(names, slopes, strict=True))
    return define_elementwise(f"scipy_{signature}", scalar=None, eager=_of_scipy(name), vjp=rules)


def _define_parts(name: str, slope: Callable[..., Any]) -> OpDef:
    """The op of one part of what SciPy's function of ``x`` returns; ``slope(x, part)`` is its derivative."""
    function = _of_scipy(name)
    rule = (lambda g, _out, x, *, part: multiply(g, slope(x, part)),)
    return define_elementwise(f"scipy_{name}(x, *, part)", scalar=None, eager=lambda x, *, part: function(x)[part], vjp=rule)


def _half_difference(f: Slope) -> Slope:
    return lambda _out, v, z: multiply(0.5, subtract(f(subtract(v, 1.0), z), f(add(v, 1.0), z)))


def _half_sum(f: Slope) -> Slope:
    return lambda _out, v, z: multiply(0.5, add(f(subtract(v, 1.0), z), f(add(v, 1.0), z)))


def _minus(f: Slope) -> Slope:
    return lambda *operands: negative(f(*operands))


def _struve_slope(f: Slope, half: Callable[[Slope], Slope]) -> Slope:
    """DLMF 11.4.25-11.4.28: also of the first term of the power series."""

    def slope(out: Any, v: Any, x: Any) -> Any:
        term = divide(exp(multiply(v, log(multiply(x, 0.5)))), multiply(math.sqrt(math.pi), gamma(add(v, 1.5))))
        return add(half(f)(out, v, x), multiply(0.5, term))

    return slope


def _spherical_slope(f: Slope, direction: float) -> Slope:
    """``(n / z) f(n, z)`` plus or minus ``f(n + 1, z)``, with the limits at 0."""

    def slope(out: Any, n: Any, z: Any) -> Any:
        zero = equal(z, 0.0)
        usual = add(multiply(divide(n, where(zero, 1.0, z)), out), multiply(direction, f(add(n, 1), z)))
        return where(zero, where(equal(n, 1), 1 / 3, 0.0), usual)

    return slope


_JV = _define("jv(v, z)", None, _half_difference(lambda v, z: jv(v, z)))
_YV = _define("yv(v, z)", None, _half_difference(lambda v, z: yv(v, z)))
_IV = _define("iv(v, z)", None, _half_sum(lambda v, z: iv(v, z)))
_KV = _define("kv(v, z)", None, _minus(_half_sum(lambda v, z: kv(v, z))))
_IVE = _define(
    "ive(v, z)", None, lambda out, v, z: subtract(_half_sum(ive)(out, v, z), multiply(sign(z), out))
)
_KVE = _define("kve(v, z)", None, lambda out, v, z: subtract(out, _half_sum(kve)(out, v, z)))
_STRUVE = _define("struve(v, x)", None, _struve_slope(lambda v, x: struve(v, x), _half_difference))
_MODSTRUVE = _define("modstruve(v, x)", None, _struve_slope(lambda v, x: modstruve(v, x), _half_sum))
_SPHERICAL_JN = _define("spherical_jn(n, z)", None, _spherical_slope(lambda n, z: spherical_jn(n, z), -1.0))
_SPHERICAL_YN = _define("spherical_yn(n, z)", None, _spherical_slope(lambda n, z: spherical_yn(n, z), -1.0))
_SPHERICAL_IN = _define("spherical_in(n, z)", None, _spherical_slope(lambda n, z: spherical_in(n, z), 1.0))
_SPHERICAL_KN = _define("spherical_kn(n, z)", None, _spherical_slope(lambda n, z: spherical_kn(n, z), -1.0))


def _expn_slope(_out: Any, n: Any, x: Any) -> Any:
    first = multiply(divide(exp(negative(x)), x), add(1.0, divide(1.0, x)))
    return negative(where(equal(n, 0), first, expn(where(equal(n, 0), n, subtract(n, 1)), x)))


_EXPN = _define("expn(n, x)", None, _expn_slope)
_DAWSN = _define("dawsn(x)", lambda out, x: subtract(1.0, multiply(2.0, multiply(x, out))))
_ERFI = _define("erfi(z)", lambda _out, z: multiply(2.0 / math.sqrt(math.pi), exp(square(z))))


def _spence_slope(_out: Any, z: Any) -> Any:
    one = equal(z, 1.0)
    return where(one, -1.0, divide(log(where(one, 2.0, z)), subtract(1.0, where(one, 2.0, z))))


_SPENCE = _define("spence(z)", _spence_slope)
_HYP0F1 = _define("hyp0f1(v, z)", None, lambda _out, v, z: divide(hyp0f1(add(v, 1.0), z), v))
_HYP1F1 = _define(
    "hyp1f1(a, b, x)", None, None, lambda _out, a, b, x: multiply(divide(a, b), hyp1f1(add(a, 1.0), add(b, 1.0), x))
)


def _gauss_slope(_out: Any, a: Any, b: Any, c: Any, z: Any) -> Any:
    return multiply(divide(multiply(a, b), c), hyp2f1(add(a, 1.0), add(b, 1.0), add(c, 1.0), z))


_HYP2F1 = _define("hyp2f1(a, b, c, z)", None, None, None, _gauss_slope)


def _root(phi: Any, m: Any) -> Any:
    return sqrt(subtract(1.0, multiply(m, square(sin(phi)))))


_ELLIPKINC = _define("ellipkinc(phi, m)", lambda _out, phi, m: divide(1.0, _root(phi, m)), None)
_ELLIPEINC = _define(
    "ellipeinc(phi, m)",
    lambda _out, phi, m: _root(phi, m),
    lambda out, phi, m: divide(subtract(out, ellipkinc(phi, m)), multiply(2.0, m)),
)


def _owens_height_slope(_out: Any, h: Any, a: Any) -> Any:
    bell = exp(multiply(-0.5, square(h)))
    return multiply(-0.5 / math.sqrt(2.0 * math.pi), multiply(bell, erf(multiply(multiply(a, h), math.sqrt(0.5)))))


def _owens_slope(_out: Any, h: Any, a: Any) -> Any:
    factor = add(1.0, square(a))
    return divide(exp(multiply(-0.5, multiply(square(h), factor))), multiply(2.0 * math.pi, factor))


_OWENS_T = _define("owens_t(h, a)", _owens_height_slope, _owens_slope)


def _airy_slope(x: Any, part: int) -> Any:
    """Airy's functions, the even parts, are solutions of ``y'' = x y``."""
    return multiply(x, _part(_AIRY, x, part - 1)) if part % 2 else _part(_AIRY, x, part + 1)


_AIRY: OpDef = _define_parts("airy", _airy_slope)
_SICI = _define_parts("sici", lambda x, part: divide(sin(x) if part == 0 else cos(x), x))
_SHICHI = _define_parts("shichi", lambda x, part: divide(sinh(x) if part == 0 else cosh(x), x))
_FRESNEL = _define_parts("fresnel", lambda x, part: (sin if part == 0 else cos)(multiply(_HALF_PI, square(x))))


def _part(op: OpDef, x: Operand, part: int) -> Tensor:
    return apply(op, x, part=part)


def jv(v: Operand, z: Operand) -> Tensor:
    """The Bessel function of the first kind of order ``v``."""
    return apply(_JV, v, z)


def yv(v: Operand, z: Operand) -> Tensor:
    """The Bessel function of the second kind of order ``v``."""
    return apply(_YV, v, z)


def iv(v: Operand, z: Operand) -> Tensor:
    """The modified Bessel function of the first kind of order ``v``."""
    return apply(_IV, v, z)


def kv(v: Operand, z: Operand) -> Tensor:
    """The modified Bessel function of the second kind of order ``v``."""
    return apply(_KV, v, z)


def ive(v: Operand, z: Operand) -> Tensor:
    """``exp(-|z|) * iv(v, z)``."""
    return apply(_IVE, v, z)


def kve(v: Operand, z: Operand) -> Tensor:
    """``exp(z) * kv(v, z)``."""
    return apply(_KVE, v, z)


def struve(v: Operand, x: Operand) -> Tensor:
    """Struve's function of order ``v``."""
    return apply(_STRUVE, v, x)


def modstruve(v: Operand, x: Operand) -> Tensor:
    """The modified function of Struve of order ``v``."""
    return apply(_MODSTRUVE, v, x)


def expn(n: Operand, x: Operand) -> Tensor:
    """The exponential integral of order ``n``: of ``exp(-x t) / t**n`` from 1 to infinity."""
    return apply(_EXPN, n, x)


def dawsn(x: Operand) -> Tensor:
    """Dawson's integral."""
    return apply(_DAWSN, x)


def erfi(z: Operand) -> Tensor:
    """``-1j * erf(1j * z)``."""
    return apply(_ERFI, z)


def spence(z: Operand) -> Tensor:
    """Spence's function, the integral of ``log(t) / (1 - t)`` from 1 to ``z``."""
    return apply(_SPENCE, z)


def hyp0f1(v: Operand, z: Operand) -> Tensor:
    """The confluent hypergeometric limit function."""
    return apply(_HYP0F1, v, z)


def hyp1f1(a: Operand, b: Operand, x: Operand) -> Tensor:
    """Kummer's confluent hypergeometric function."""
    return apply(_HYP1F1, a, b, x)


def hyp2f1(a: Operand, b: Operand, c: Operand, z: Operand) -> Tensor:
    """Gauss's hypergeometric function."""
    return apply(_HYP2F1, a, b, c, z)


def ellipkinc(phi: Operand, m: Operand) -> Tensor:
    """The incomplete elliptic integral of the first kind."""
    return apply(_ELLIPKINC, phi, m)


def ellipeinc(phi: Operand, m: Operand) -> Tensor:
    """The incomplete elliptic integral of the second kind."""
    return apply(_ELLIPEINC, phi, m)


def owens_t(h: Operand, a: Operand) -> Tensor:
    """Owen's T function."""
    return apply(_OWENS_T, h, a)


def spherical_jn(n: Operand, z: Operand, derivative: bool = False) -> Tensor:
    """The spherical Bessel function of the first kind of the integer order ``n``, or its derivative."""
    value = apply(_SPHERICAL_JN, n, z)
    return _spherical_slope(spherical_jn, -1.0)(value, n, z) if derivative else value


def spherical_yn(n: Operand, z: Operand, derivative: bool = False) -> Tensor:
    """The spherical Bessel function of the second kind, or its derivative."""
    value = apply(_SPHERICAL_YN, n, z)
    return _spherical_slope(spherical_yn, -1.0)(value, n, z) if derivative else value


def spherical_in(n: Operand, z: Operand, derivative: bool = False) -> Tensor:
    """The modified spherical Bessel function of the first kind, or its derivative."""
    value = apply(_SPHERICAL_IN, n, z)
    return _spherical_slope(spherical_in, 1.0)(value, n, z) if derivative else value


def spherical_kn(n: Operand, z: Operand, derivative: bool = False) -> Tensor:
    """The modified spherical Bessel function of the second kind, or its derivative."""
    value = apply(_SPHERICAL_KN, n, z)
    return _spherical_slope(spherical_kn, -1.0)(value, n, z) if derivative else value


def airy(z: Operand) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Airy's function Ai, its derivative, Bi and its derivative."""
    return _part(_AIRY, z, 0), _part(_AIRY, z, 1), _part(_AIRY, z, 2), _part(_AIRY, z, 3)


def airy_ai(input: Operand) -> Tensor:
    """Airy's function Ai."""
    return _part(_AIRY, input, 0)


def sici(x: Operand) -> tuple[Tensor, Tensor]:
    """The integrals of sine and of cosine, Si and Ci."""
    return _part(_SICI, x, 0), _part(_SICI, x, 1)


def shichi(x: Operand) -> tuple[Tensor, Tensor]:
    """The integrals of the hyperbolic sine and cosine, Shi and Chi."""
    return _part(_SHICHI, x, 0), _part(_SHICHI, x, 1)


def fresnel(z: Operand) -> tuple[Tensor, Tensor]:
    """Fresnel's integrals S and C."""
    return _part(_FRESNEL, z, 0), _part(_FRESNEL, z, 1)


def bessel_jn(z: Operand, *, v: int, n_iter: int = 50) -> Tensor:
    """The Bessel functions of the first kind of orders 0 to ``v``, along a new first axis; ``n_iter`` is not needed."""
    return stack([jv(float(order), z) for order in range(v + 1)])
