"""The table of functions, with the source and the error bound of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType

from jitgrad.vecmath import (
    bessel,
    exponential,
    exponential_integral,
    gamma,
    gaussian,
    incomplete_gamma,
    inverse_trigonometric,
    logarithm,
    macdonald,
    ordinary_bessel,
    power,
    rounding,
    trigonometric,
)
from jitgrad.vecmath.algebra import MathValue


@dataclass(frozen=True, slots=True)
class MathFunction:
    """One function; ``definition(algebra, *operands)`` has the same float format in and out (or a
    boolean out).

    ``ulp32`` and ``ulp64`` bound the error in units in the last place of the result: 0.5 is correct
    rounding, 0 an exact selection. ``source`` cites the method.
    """

    name: str
    arity: int
    definition: Callable[..., MathValue]
    source: str
    ulp32: float
    ulp64: float
    boolean: bool = False

    def ulp(self, width: int) -> float:
        """The bound for float32 (``width`` 32) or float64 (64)."""
        return self.ulp32 if width == 32 else self.ulp64


_CODY_WAITE = "Cody and Waite, Software Manual for the Elementary Functions, 1980; own minimax polynomials (fit.py)"
_FDLIBM = "arrangement of K. C. Ng, fdlibm, Sun Microsystems 1993; own minimax polynomials (fit.py)"
_PAYNE_HANEK = "Payne and Hanek, SIGNUM Newsletter 18, 1983, for large arguments; " + _CODY_WAITE
_OWN_FIT = "own minimax polynomials (fit.py)"
_INTERPOLATED = "own polynomials through Chebyshev points (fit_bessel.py)"
_HALF_LINE = "Shepherd and Laframboise, Math. Comp. 36, 1981; " + _OWN_FIT
_MACDONALD = "Shepherd and Laframboise, Math. Comp. 36, 1981, for the variable; " + _INTERPOLATED
_HANKEL = "Hart, Computer Approximations, 1968, for the form; " + _INTERPOLATED
_CODY_THACHER = "Cody and Thacher, Math. Comp. 22 and 23, 1968 and 1969, for the form; " + _INTERPOLATED
_TEMME = "Temme, SIAM J. Math. Anal. 10, 1979; Legendre's continued fraction; power series"
_STIRLING = "Stirling's formula with a fitted remainder; " + _OWN_FIT
_DEKKER = "double-float arithmetic of Dekker, Numerische Mathematik 18, 1971; own minimax polynomials (fit.py)"
_IEEE = "IEEE 754-2019"

_TABLE = (
    MathFunction("exp", 1, exponential.exp, _CODY_WAITE, 1.0, 1.25),
    MathFunction("exp2", 1, exponential.exp2, _CODY_WAITE, 1.0, 1.0),
    MathFunction("expm1", 1, exponential.expm1, _CODY_WAITE, 2.0, 2.0),
    MathFunction("sigmoid", 1, exponential.sigmoid, _CODY_WAITE, 2.0, 2.0),
    MathFunction("tanh", 1, exponential.tanh, _CODY_WAITE, 2.0, 2.0),
    MathFunction("sinh", 1, exponential.sinh, _CODY_WAITE, 2.0, 2.0),
    MathFunction("cosh", 1, exponential.cosh, _CODY_WAITE, 2.0, 2.0),
    MathFunction("log", 1, logarithm.log, _FDLIBM, 1.5, 1.5),
    MathFunction("log1p", 1, logarithm.log1p, _FDLIBM, 1.5, 1.5),
    MathFunction("log2", 1, logarithm.log2, _FDLIBM, 1.5, 1.5),
    MathFunction("log10", 1, logarithm.log10, _FDLIBM, 1.5, 1.5),
    MathFunction("softplus", 1, logarithm.softplus, _CODY_WAITE, 2.0, 2.0),
    MathFunction("logaddexp", 2, logarithm.logaddexp, _FDLIBM, 2.0, 2.0),
    MathFunction("asinh", 1, logarithm.asinh, _FDLIBM, 2.0, 2.0),
    MathFunction("acosh", 1, logarithm.acosh, _FDLIBM, 2.0, 2.0),
    MathFunction("atanh", 1, logarithm.atanh, _FDLIBM, 2.0, 2.0),
    MathFunction("sin", 1, trigonometric.sin, _PAYNE_HANEK, 1.5, 1.5),
    MathFunction("cos", 1, trigonometric.cos, _PAYNE_HANEK, 1.5, 1.5),
    MathFunction("tan", 1, trigonometric.tan, _PAYNE_HANEK, 2.0, 2.0),
    MathFunction("erf", 1, gaussian.erf, _CODY_WAITE, 1.5, 1.5),
    MathFunction("erfc", 1, gaussian.erfc, _HALF_LINE, 2.0, 2.25),
    MathFunction("erfinv", 1, gaussian.erfinv, "Giles, GPU Computing Gems Jade, 2011; " + _OWN_FIT, 2.0, 2.0),
    MathFunction("erfcinv", 1, gaussian.erfcinv, "Giles, GPU Computing Gems Jade, 2011; " + _OWN_FIT, 2.0, 3.0),
    MathFunction("erfcx", 1, gaussian.erfcx, _HALF_LINE, 1.0, 3.0),
    MathFunction("ndtr", 1, gaussian.ndtr, _HALF_LINE, 1.0, 3.0),
    MathFunction("ndtri", 1, gaussian.ndtri, "Giles, GPU Computing Gems Jade, 2011; " + _OWN_FIT, 2.0, 3.0),
    MathFunction("log_ndtr", 1, gaussian.log_ndtr, _HALF_LINE, 1.0, 4.0),
    MathFunction("gammaln", 1, gamma.gammaln, _STIRLING, 1.0, 3.0),
    MathFunction("gamma", 1, gamma.gamma, _STIRLING, 1.0, 3.0),
    MathFunction("digamma", 1, gamma.digamma, _STIRLING, 1.0, 3.0),
    MathFunction("trigamma", 1, gamma.trigamma, _STIRLING, 1.0, 4.0),
    MathFunction("zeta", 2, gamma.zeta, "Euler and Maclaurin's formula", 1.0, 5.0),
    MathFunction("gammainc", 2, incomplete_gamma.gammainc, _TEMME, 1.0, 8.0),
    MathFunction("gammaincc", 2, incomplete_gamma.gammaincc, _TEMME, 1.0, 8.0),
    MathFunction("i0", 1, bessel.i0, _OWN_FIT, 1.0, 4.0),
    MathFunction("i1", 1, bessel.i1, _OWN_FIT, 1.0, 4.0),
    MathFunction("i0e", 1, bessel.i0e, _OWN_FIT, 1.0, 4.0),
    MathFunction("i1e", 1, bessel.i1e, _OWN_FIT, 1.0, 4.0),
    MathFunction("bessel_j0", 1, ordinary_bessel.j0, _HANKEL, 1.0, 6.0),
    MathFunction("bessel_j1", 1, ordinary_bessel.j1, _HANKEL, 1.0, 6.0),
    MathFunction("bessel_y0", 1, ordinary_bessel.y0, _HANKEL, 1.0, 6.0),
    MathFunction("bessel_y1", 1, ordinary_bessel.y1, _HANKEL, 1.0, 6.0),
    MathFunction("bessel_k0", 1, macdonald.k0, _MACDONALD, 1.0, 4.0),
    MathFunction("bessel_k1", 1, macdonald.k1, _MACDONALD, 1.0, 4.0),
    MathFunction("bessel_k0e", 1, macdonald.k0e, _MACDONALD, 1.0, 4.0),
    MathFunction("bessel_k1e", 1, macdonald.k1e, _MACDONALD, 1.0, 4.0),
    MathFunction("exp1", 1, exponential_integral.exp1, _CODY_THACHER, 1.0, 6.0),
    MathFunction("expi", 1, exponential_integral.expi, _CODY_THACHER, 1.0, 6.0),
    MathFunction("normal_radius", 1, gaussian.normal_radius, "Box and Muller, Ann. Math. Stat. 29, 1958; " + _FDLIBM, 1.5, 1.5),
    MathFunction("cos_turns", 1, gaussian.cos_turns, "Box and Muller, Ann. Math. Stat. 29, 1958; " + _OWN_FIT, 2.0, 2.0),
    MathFunction("asin", 1, inverse_trigonometric.asin, _FDLIBM, 2.0, 2.0),
    MathFunction("acos", 1, inverse_trigonometric.acos, _FDLIBM, 1.5, 1.5),
    MathFunction("atan", 1, inverse_trigonometric.atan, _FDLIBM, 1.5, 1.5),
    MathFunction("atan2", 2, inverse_trigonometric.atan2, _FDLIBM, 2.0, 2.0),
    MathFunction("pow", 2, power.pow, _DEKKER, 1.0, 2.0),
    MathFunction("sqrt", 1, power.sqrt, _IEEE, 0.5, 0.5),
    MathFunction("rsqrt", 1, power.rsqrt, _IEEE, 1.5, 1.5),
    MathFunction("reciprocal", 1, power.reciprocal, _IEEE, 0.5, 0.5),
    MathFunction("hypot", 2, power.hypot, "Borges, arXiv:1904.09481", 1.0, 1.0),
    MathFunction("cbrt", 1, power.cbrt, "Newton's method with an exact residual", 1.0, 1.0),
    MathFunction("floor", 1, rounding.floor, _IEEE, 0, 0),
    MathFunction("ceil", 1, rounding.ceil, _IEEE, 0, 0),
    MathFunction("trunc", 1, rounding.trunc, _IEEE, 0, 0),
    MathFunction("rint", 1, rounding.rint, _IEEE, 0, 0),
    MathFunction("copysign", 2, rounding.copysign, _IEEE, 0, 0),
    MathFunction("minimum", 2, rounding.minimum, _IEEE, 0, 0),
    MathFunction("maximum", 2, rounding.maximum, _IEEE, 0, 0),
    MathFunction("fmod", 2, rounding.fmod, _IEEE, 0, 0),
    MathFunction("remainder", 2, rounding.remainder, _IEEE, 0.5, 0.5),
    MathFunction("floor_divide", 2, rounding.floor_divide, _IEEE, 0, 0),
    MathFunction("nextafter", 2, rounding.nextafter, _IEEE, 0, 0),
    MathFunction("signbit", 1, rounding.signbit, _IEEE, 0, 0, boolean=True),
    MathFunction("isnan", 1, rounding.isnan, _IEEE, 0, 0, boolean=True),
    MathFunction("isinf", 1, rounding.isinf, _IEEE, 0, 0, boolean=True),
    MathFunction("isfinite", 1, rounding.isfinite, _IEEE, 0, 0, boolean=True),
)

FUNCTIONS: MappingProxyType[str, MathFunction] = MappingProxyType({f.name: f for f in _TABLE})
"""Every function by name."""
