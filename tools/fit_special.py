"""Fits the coefficients of the special functions and prints ``special_coefficients.py``.

Run ``python -m tools.fit_special > jitgrad/vecmath/special_coefficients.py`` (needs mpmath). The method is
that of ``tools/fit_vecmath.py``. Functions on a half line are fitted in ``v = (x - c) / (x + c)``, which maps
it onto an interval and their cut, the negative axis, beyond ``|v| = 1`` (Shepherd and Laframboise,
Mathematics of Computation 36, 1981).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import mpmath as mp

from tools.fit_vecmath import Target, print_tables

Real = Callable[[Any], Any]


def _mapped(function: Real, centre: Any) -> Real:
    """``function`` of ``x = centre (1 + v) / (1 - v)``, as a function of ``v``."""
    return lambda v: function(centre * (1 + v) / (1 - v))


def _ends(low: Any, high: Any, centre: Any) -> tuple[Any, Any]:
    return (mp.mpf(low) - centre) / (mp.mpf(low) + centre), (mp.mpf(high) - centre) / (mp.mpf(high) + centre)


def _tail(name: str, function: Real, low: str, middle: str, degrees: tuple[int, ...]) -> Target:
    """``function`` from ``low`` on, in ``v - middle`` for ``v = (x - 1) / (x + 1)``, with absolute errors."""
    shift = mp.mpf(middle)
    first, last = (v - shift for v in (*_ends(low, 9, mp.mpf(1))[:1], mp.mpf("0.99999")))
    mapped = _mapped(function, mp.mpf(1))
    return Target(name, lambda t: mapped(t + shift), first, last, degrees, lambda t: mp.mpf(1), always_double=True)


def _relative(function: Real) -> Real:
    return lambda v: 1 / abs(function(v))


def _log_gamma_ratio(x: Any) -> Any:
    """``log gamma(x) / ((x - 1) (x - 2))``, which is smooth at the two zeros."""
    for zero, slope in ((1, mp.euler), (2, 1 - mp.euler)):
        if abs(x - zero) < mp.mpf(10) ** -30:
            return slope
    return mp.loggamma(x) / ((x - 1) * (x - 2))


def _stirling_rest(x: Any) -> Any:
    """``x`` times what Stirling's formula for log gamma leaves."""
    return x * (mp.loggamma(x) - (x - mp.mpf(0.5)) * mp.log(x) + x - mp.log(2 * mp.pi) / 2)


def _digamma_rest(x: Any) -> Any:
    """``x**2 (log(x) - 1 / (2x) - digamma(x))``."""
    return x * x * (mp.log(x) - 1 / (2 * x) - mp.digamma(x))


def _trigamma_rest(x: Any) -> Any:
    """``x**3 (trigamma(x) - 1 / x - 1 / (2 x*x))``."""
    return x**3 * (mp.psi(1, x) - 1 / x - 1 / (2 * x * x))


def _digamma_ratio(x: Any) -> Any:
    """``digamma(x) / (x - root)``."""
    root = mp.findroot(mp.digamma, mp.mpf("1.46"))
    return mp.psi(1, root) if abs(x - root) < mp.mpf(10) ** -30 else mp.digamma(x) / (x - root)


def _bessel(order: int) -> Iterator[Target]:
    """The power series in ``z = x*x`` of I0, or of I1(x) / x, and ``sqrt(x) exp(-x) I(x)`` in ``8 / x``."""

    def series(z: Any) -> Any:
        x = mp.sqrt(z)
        return mp.besseli(order, x) / x**order

    def tail(w: Any) -> Any:
        x = 8 / w
        return mp.sqrt(x) * mp.exp(-x) * mp.besseli(order, x)

    yield Target(f"I{order}", series, mp.mpf("1e-12"), mp.mpf(64), (11, 19), _relative(series), always_double=True)
    yield Target(f"I{order}_TAIL", tail, mp.mpf("1e-3"), mp.mpf(1), (8, 24), _relative(tail), always_double=True)


def _erfcinv_ratio(r: Any) -> Any:
    """``erfcinv(y) / r`` at ``y = exp(-r*r)``, by Newton's method on the logarithm of erfc."""
    x = mp.sqrt(r * r - mp.log(r * mp.sqrt(mp.pi)))
    for _ in range(80):
        tail = mp.erfc(x)
        step = (mp.log(tail) + r * r) * tail * mp.sqrt(mp.pi) / 2 * mp.exp(x * x)
        x += step
        if abs(step) < mp.mpf(10) ** -42:
            break
    return x / r


def targets() -> Iterator[Target]:
    """Every fit, with its degree in float32 and float64."""
    centre = mp.mpf("1.32")
    log_gamma = _mapped(_log_gamma_ratio, centre)
    yield Target("LOG_GAMMA", log_gamma, *_ends("0.699", "2.501", centre), (9, 21), _relative(log_gamma), always_double=True)
    yield _tail("STIRLING", _stirling_rest, "2.499", "0.703125", (6, 15))
    centre = mp.mpf("1.4140625")
    digamma = _mapped(_digamma_ratio, centre)
    yield Target("DIGAMMA", digamma, *_ends("0.999", "2.001", centre), (7, 16), _relative(digamma), always_double=True)
    yield _tail("DIGAMMA_TAIL", _digamma_rest, "1.999", "0.671875", (6, 16))
    yield _tail("TRIGAMMA_TAIL", _trigamma_rest, "0.999", "0.5", (8, 20))
    yield from _bessel(0)
    yield from _bessel(1)
    near, far = _mapped(_erfcinv_ratio, mp.mpf(4)), _mapped(_erfcinv_ratio, mp.mpf(10))
    yield Target("ERFCINV_NEAR", near, *_ends("1.99", "6.01", mp.mpf(4)), (8, 18), _relative(near), always_double=True)
    yield Target("ERFCINV_FAR", far, *_ends("5.99", "10.3", mp.mpf(10)), (5,), _relative(far), (32,), always_double=True)
    yield Target("ERFCINV_FAR", far, *_ends("5.99", "27.4", mp.mpf(10)), (20,), _relative(far), (64,))


if __name__ == "__main__":
    print_tables("the special functions, made by ``tools/fit_special.py``", targets())
