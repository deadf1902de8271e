"""Fits the coefficients of Bessel functions and exponential integrals and prints ``bessel_coefficients.py``.

Run ``python -m tools.fit_bessel > jitgrad/vecmath/bessel_coefficients.py`` (needs mpmath). Polynomials interpolate at
Chebyshev's points. A zero inside an interval is divided out, so that results are accurate beside it, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import mpmath as mp

from tools.fit_vecmath import Target, interpolate, print_tables

Real = Callable[[Any], Any]
_TINY = "1e-12"
# intervals of the fits, which jitgrad/vecmath names likewise
J_NEAR, J_MID, Y_NEAR, FAR = 4, 6, 3, 8
Y_MID = mp.mpf("5.5")
K_CENTRE, E1_CENTRE = 1, 2  # of the maps of a half line


def _relative(function: Real) -> Real:
    return lambda v: 1 / abs(function(v))


def _target(name: str, function: Real, low: Any, high: Any, degrees: tuple[int, int]) -> Target:
    return Target(name, function, mp.mpf(low), mp.mpf(high), degrees, _relative(function), always_double=True)


def _half_line(name: str, function: Real, limit: Any, centre: int, degrees: tuple[int, int]) -> Target:
    """``function`` from 1 on, in ``v = (x - centre) / (x + centre)``; ``limit`` at infinity."""

    def mapped(v: Any) -> Any:
        return limit if v > mp.mpf("0.99999999999") else function(centre * (1 + v) / (1 - v))

    return _target(name, mapped, (mp.mpf("0.999") - centre) / (mp.mpf("0.999") + centre), 1, degrees)


def _first_kind(order: int) -> Iterator[Target]:
    """J up to 4 in ``x*x / 8 - 1``, and up to 8 in ``x - 6``, without zeros."""
    first, second = mp.besseljzero(order, 1), mp.besseljzero(order, 2)

    def near(t: Any) -> Any:
        x = mp.sqrt(8 * (1 + t))
        return mp.besselj(order, x) / (x**order * (x - first) * (x + first))

    def mid(s: Any) -> Any:
        x = J_MID + s
        return mp.besselj(order, x) / (x - second)

    yield _target(f"J{order}_NEAR", near, mp.mpf(_TINY) - 1, 1, (8, 12))
    yield _target(f"J{order}_MID", mid, -2, 2, (12, 19))


def _second_kind(order: int) -> Iterator[Target]:
    """What ``2/pi log(x / zero) J(x)`` leaves of Y up to 3, and Y up to 8 in ``x - 5.5``, without zeros."""
    first, second, third = (mp.besselyzero(order, k) for k in (1, 2, 3))

    def near(z: Any) -> Any:
        x = mp.sqrt(z)
        rest = mp.bessely(order, x) - 2 / mp.pi * mp.log(x / first) * mp.besselj(order, x)
        return rest * x**order / (z - first * first)

    def mid(s: Any) -> Any:
        x = Y_MID + s
        return mp.bessely(order, x) / ((x - second) * (x - third if order == 0 else 1))

    yield _target(f"Y{order}_NEAR", near, _TINY, 9, (7, 11))
    yield _target(f"Y{order}_MID", mid, "-2.5", "2.5", (15, 28))


def _hankel(order: int) -> Iterator[Target]:
    """Factors P and Q of Hankel's expansion, beyond 8, in ``w = (8 / x)**2``: Q is that of ``8 / x``."""

    def parts(w: Any) -> tuple[Any, Any]:
        x = FAR / mp.sqrt(w)
        angle = x - mp.pi * (2 * order + 1) / 4
        j, y = mp.besselj(order, x), mp.bessely(order, x)
        c, s, root = mp.cos(angle), mp.sin(angle), mp.sqrt(mp.pi * x / 2)
        return root * (j * c + y * s), root * (y * c - j * s) * x / FAR

    yield _target(f"P{order}_FAR", lambda w: parts(w)[0], "1e-6", 1, (4, 13))
    yield _target(f"Q{order}_FAR", lambda w: parts(w)[1], "1e-6", 1, (5, 15))


def _modified(order: int) -> Iterator[Target]:
    """``K(x) = (-1)**(n+1) log(x) I(x) + ...`` up to 1 in ``z = x*x``, and ``sqrt(x) exp(x) K(x)`` from there on."""
    sign = -1 if order == 0 else 1

    def first(z: Any) -> Any:
        x = mp.sqrt(z)
        return mp.besseli(order, x) / x**order

    def rest(z: Any) -> Any:
        x = mp.sqrt(z)
        left = mp.besselk(order, x) - sign * mp.log(x) * mp.besseli(order, x)
        return left if order == 0 else (left - 1 / x) / x

    yield _target(f"K{order}_LOG", first, _TINY, 1, (5, 8))
    yield _target(f"K{order}_NEAR", rest, _TINY, 1, (5, 8))
    tail = lambda x: mp.sqrt(x) * mp.exp(x) * mp.besselk(order, x)  # noqa: E731
    yield _half_line(f"K{order}_FAR", tail, mp.sqrt(mp.pi / 2), K_CENTRE, (10, 22))


def _exponential_integrals() -> Iterator[Target]:
    """``E1 + log x`` up to 1 and ``x exp(x) E1`` from there on; ``(Ei - log(x / zero)) / (x - zero)`` up to 6, and
    ``x exp(-x) Ei`` in ``1 / x`` beyond."""
    zero = mp.findroot(mp.ei, mp.mpf("0.3725"))

    def near(t: Any) -> Any:
        x = 3 + t
        if abs(x - zero) < mp.mpf(10) ** -20:
            return (mp.exp(zero) - 1) / zero
        return (mp.ei(x) - mp.log(x / zero)) / (x - zero)

    def large(u: Any) -> Any:
        x = 1 / u
        return x * mp.exp(-x) * mp.ei(x) if u > mp.mpf("1e-5") else sum(mp.factorial(k) * u**k for k in range(12))

    yield _target("E1_NEAR", lambda x: mp.e1(x) + mp.log(x), _TINY, 1, (10, 15))
    yield _half_line("E1_FAR", lambda x: x * mp.exp(x) * mp.e1(x), mp.mpf(1), E1_CENTRE, (12, 29))
    yield _target("EI_NEAR", near, mp.mpf(_TINY) - 3, 3, (15, 22))
    for name, low, high, degrees in (
        ("EI_6", 6, 12, (11, 20)), ("EI_12", 12, 24, (8, 19)), ("EI_24", 24, 48, (6, 14)), ("EI_48", 48, None, (5, 12)),
    ):  # fmt: skip
        centre = 1 / mp.mpf(high or "1e30") / 2 + mp.mpf(1) / low / 2
        radius = mp.mpf(1) / low - centre
        yield _target(name, lambda t, c=centre, r=radius: large(c + r * t), -1, 1, degrees)


def targets() -> Iterator[Target]:
    """Every fit, with its degree in float32 and float64."""
    for order in (0, 1):
        yield from _first_kind(order)
        yield from _second_kind(order)
        yield from _hankel(order)
        yield from _modified(order)
    yield from _exponential_integrals()


if __name__ == "__main__":
    mp.mp.prec = 160
    print_tables("Bessel functions and others, made by ``tools/fit_bessel.py``", targets(), interpolate)
