"""Fits the polynomial coefficients of jitgrad's vector mathematics and prints ``coefficients.py``.

Run ``python -m tools.fit_vecmath > coefficients.py`` (needs mpmath). Every polynomial is a weighted
minimax fit by the exchange algorithm of Remez (Comptes Rendus 198, 1934) on a Chebyshev-spaced grid, or the
least-squares fit where that is more accurate because the exchange does not converge. Coefficients are rounded to the
format one by one, lowest order first, and the others are fitted again after each
(Brisebarre, Muller, Tisserand: "Computing machine-efficient polynomial approximations", ACM TOMS 32, 2006).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath as mp
import numpy as np

Real = Callable[[Any], Any]
Fit = Callable[["Target", int, int], tuple[list[float], float]]


@dataclass(frozen=True, slots=True)
class Target:
    """Fit ``function`` on ``[low, high]``; the error is measured as ``weight(x) * |p(x) - function(x)|``."""

    name: str
    function: Real
    low: Any
    high: Any
    degrees: tuple[int, ...]
    weight: Real
    widths: tuple[int, ...] = (32, 64)
    always_double: bool = False  # the float32 function evaluates its polynomial in float64


def _odd(function: Real) -> Real:
    """``z -> (f(x) - x) / x**3`` with ``x = sqrt(z)``: the remainder of an odd function after its first term."""

    def rest(z: Any) -> Any:
        x = mp.sqrt(z)
        return (function(x) - x) / x**3

    return rest


def _log_erfc_rest(t: Any) -> Any:
    """``(-log(erfc(t)) - t) / t``."""
    return -mp.log(mp.erfc(t)) / t - 1


def _scaled_erfc(u: Any) -> Any:
    """``(1 + 2x) exp(x*x) erfc(x)`` at ``x = 4 (1 + u) / (1 - u)``, which maps [-1, 1) onto [0, inf)."""
    if u >= 1:
        return 2 / mp.sqrt(mp.pi)
    x = 4 * (1 + u) / (1 - u)
    scaled = mp.exp(x * x) * mp.erfc(x) if x < 60 else _erfcx_tail(x)
    return (1 + 2 * x) * scaled


def _erfcx_tail(x: Any) -> Any:
    """Asymptotic series of exp(x*x) erfc(x) for large x (Abramowitz and Stegun 7.1.23)."""
    total, term = mp.mpf(1), mp.mpf(1)
    for k in range(1, 25):
        term *= -(2 * k - 1) / (2 * x * x)
        total += term
    return total / (x * mp.sqrt(mp.pi))


def _log_tail(z: Any) -> Any:
    """``(log((1+s)/(1-s)) - 2s - 2/3 s**3) / s**5`` at ``s = sqrt(z)``."""
    s = mp.sqrt(z)
    return (mp.log((1 + s) / (1 - s)) - 2 * s - 2 * s**3 / 3) / s**5


def _log_rest(z: Any) -> Any:
    """``(log((1+s)/(1-s)) - 2s) / s**3`` at ``s = sqrt(z)``."""
    s = mp.sqrt(z)
    return (mp.log((1 + s) / (1 - s)) - 2 * s) / s**3


def _erfinv_ratio(w: Any) -> Any:
    """``erfinv(x) / x`` at ``w = -log(1 - x*x)`` (variable of Giles, GPU Computing Gems Jade, 2011)."""
    if w < mp.mpf("1e-25"):
        return mp.sqrt(mp.pi) / 2
    x = mp.sqrt(-mp.expm1(-w))
    return mp.erfinv(x) / x


def targets() -> Iterator[Target]:
    """Every fit, with its degree in float32 and float64."""
    yield from _exponential()
    yield from _logarithms_and_angles()
    yield from _gaussian()


def _exponential() -> Iterator[Target]:
    half_log2 = mp.log(2) / 2 * mp.mpf("1.001")
    tiny = mp.mpf("1e-12")

    def slope(r: Any) -> Any:
        return mp.expm1(r) / r if abs(r) > mp.mpf("1e-20") else 1 + r / 2

    def rest(r: Any) -> Any:
        return (mp.expm1(r) - r) / r**2 if abs(r) > mp.mpf("1e-15") else mp.mpf("0.5") + r / 6

    yield Target("EXP", slope, -half_log2, half_log2, (5, 10), lambda r: (abs(r) + tiny) * mp.exp(-r))
    yield Target("EXPM1", rest, -half_log2, half_log2, (4, 10), lambda r: abs(r) + tiny)
    yield Target("SINH", _odd(mp.sinh), tiny, mp.mpf(1), (3, 6), lambda z: z)


def _logarithms_and_angles() -> Iterator[Target]:
    s_max = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2 * mp.mpf("1.001")
    z_quarter = (mp.pi / 4 * mp.mpf("1.001")) ** 2
    tiny = mp.mpf("1e-12")
    yield Target("LOG1P", lambda e: (mp.log1p(e) - e) / e**2, tiny, mp.mpf(1), (9, 20), lambda e: e**2 / mp.log1p(e))
    yield Target("LOG", _log_rest, tiny, s_max, (2, 6), lambda z: z / 2)
    yield Target("LOG_TAIL", _log_tail, tiny, s_max, (7,), lambda z: z * z / 2, (64,))
    yield Target("SIN", _odd(mp.sin), tiny, z_quarter, (2, 5), lambda z: z)
    yield Target("COS", lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2, mp.mpf("1e-9"), z_quarter, (2, 5),
                 lambda z: z * z)
    yield Target("ATAN", _odd(mp.atan), tiny, mp.mpf(1), (8, 19), lambda z: z)
    yield Target("ASIN", _odd(mp.asin), tiny, mp.mpf("0.2501"), (4, 11), lambda z: z)
    yield Target("CBRT", mp.cbrt, mp.mpf(1), mp.mpf(2), (3, 4), lambda x: mp.mpf(1))


def _gaussian() -> Iterator[Target]:
    tiny = mp.mpf("1e-12")

    def erfinv_tail(t: Any) -> Any:
        return _erfinv_ratio((t + mp.mpf("3.25")) ** 2)

    yield Target("ERF", lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1, tiny, mp.mpf("0.2501"), (8,),
                 lambda z: mp.mpf(1), (64,))
    yield Target("LOG_ERFC", _log_erfc_rest, mp.mpf("1e-10"), mp.mpf(4), (8,),
                 lambda t: t * mp.erfc(t) / mp.erf(t), (32,))
    yield Target("LOG_ERFC", _log_erfc_rest, mp.mpf("1e-10"), mp.mpf(6), (24,),
                 lambda t: t * mp.erfc(t) / mp.erf(t), (64,))
    yield Target("ERFC", _scaled_erfc, mp.mpf(-1), mp.mpf(1), (13, 26), lambda u: 1 / _scaled_erfc(u),
                 always_double=True)
    yield Target("ERFINV", lambda t: _erfinv_ratio(t + 3), mp.mpf(-3), mp.mpf("3.01"), (10, 25), lambda t: mp.mpf(1),
                 always_double=True)
    yield Target("ERFINV_TAIL", erfinv_tail, mp.mpf("-0.81"), mp.mpf("0.9"), (8,),
                 lambda t: 1 / (t + 3), (32,), always_double=True)
    yield Target("ERFINV_TAIL", erfinv_tail, mp.mpf("-0.81"), mp.mpf("0.76"), (20,),
                 lambda t: 1 / (t + 3), (64,))
    yield Target("ERFINV_FAR", lambda t: _erfinv_ratio((t + 5) ** 2), mp.mpf("-1.01"), mp.mpf("1.1"), (19,),
                 lambda t: 1 / (t + 5), (64,))


def _grid(low: Any, high: Any, count: int) -> list[Any]:
    middle, radius = (low + high) / 2, (high - low) / 2
    return [middle - radius * mp.cos(mp.pi * k / (count - 1)) for k in range(count)]


def _horner(coefficients: Sequence[Any], x: Any) -> Any:
    total = mp.mpf(0)
    for c in reversed(coefficients):
        total = total * x + c
    return total


def _exchange(xs: list[Any], ys: list[Any], ws: list[Any], first: int, terms: int) -> list[Any]:
    """Minimax coefficients of ``x**first ... x**(first+terms-1)`` on the grid."""
    chosen = [round(k * (len(xs) - 1) / terms) for k in range(terms + 1)]
    for _ in range(12):
        rows = [[xs[i] ** (first + j) for j in range(terms)] + [(-1) ** k / ws[i]] for k, i in enumerate(chosen)]
        solution = mp.lu_solve(mp.matrix(rows), mp.matrix([ys[i] for i in chosen]))
        fit = list(solution[:terms])
        errors = [w * (y - x**first * _horner(fit, x)) for x, y, w in zip(xs, ys, ws, strict=True)]
        picked = _extrema(errors, terms + 1)
        if picked is None or picked == chosen:
            break
        chosen = picked
    return fit


def _least_squares(xs: list[Any], ys: list[Any], ws: list[Any], first: int, terms: int) -> list[Any]:
    """The same in the mean-square sense: with a zero inside the interval, x, x**2, ... is no Haar system, and for
    high degrees the exchange does not always settle."""
    sparse = range(0, len(xs), 5)
    rows = [[ws[i] * xs[i] ** (first + j) for j in range(terms)] for i in sparse]
    return list(mp.lu_solve(mp.matrix(rows), mp.matrix([ws[i] * ys[i] for i in sparse])))


def _extrema(errors: list[Any], count: int) -> list[int] | None:
    """Indices of ``count`` alternating extrema that include the largest, or None when there are fewer."""
    runs: list[int] = []
    for i, e in enumerate(errors):
        if runs and (errors[runs[-1]] > 0) == (e > 0):
            if abs(e) > abs(errors[runs[-1]]):
                runs[-1] = i
        else:
            runs.append(i)
    while len(runs) > count:
        runs.pop(0 if abs(errors[runs[0]]) < abs(errors[runs[-1]]) else -1)
    return runs if len(runs) == count else None


def _largest(xs: list[Any], ys: list[Any], ws: list[Any], first: int, fit: Sequence[Any]) -> Any:
    """The weighted error of a fit."""
    return max(w * abs(y - x**first * _horner(fit, x)) for x, y, w in zip(xs, ys, ws, strict=True))


def _rounded(value: Any, width: int) -> float:
    return float(np.float32(mp.nstr(value, 25))) if width == 32 else float(mp.nstr(value, 25))


def fit(target: Target, width: int, degree: int) -> tuple[list[float], float]:
    """Rounded coefficients, lowest order first, and the weighted error they reach."""
    xs = _grid(target.low, target.high, 24 * (degree + 2))
    ys, ws = [target.function(x) for x in xs], [target.weight(x) for x in xs]
    fixed: list[float] = []
    format_width = 64 if target.always_double else width
    while len(fixed) <= degree:
        rest = [y - _horner(fixed, x) for x, y in zip(xs, ys, strict=True)]
        methods = (_least_squares,) if fixed and target.low < 0 else (_exchange, _least_squares)
        first, terms = len(fixed), degree + 1 - len(fixed)
        fits = [method(xs, rest, ws, first, terms) for method in methods]
        best = min(fits, key=lambda c: _largest(xs, rest, ws, first, c))
        fixed.append(_rounded(best[0], format_width))
    error = _largest(xs, ys, ws, 0, fixed)
    return fixed, float(error)


def interpolate(target: Target, width: int, degree: int) -> tuple[list[float], float]:
    """The polynomial through the function's values at Chebyshev's points, rounded, and its weighted error.

    Within a small factor of the best (Trefethen, "Approximation theory and approximation practice", 16), in a hundredth
    of the time of :func:`fit`: for functions that take long to compute.
    """
    middle, radius = (target.low + target.high) / 2, (target.high - target.low) / 2
    points = [middle + radius * mp.cos(mp.pi * (2 * k + 1) / (2 * degree + 2)) for k in range(degree + 1)]
    rows = mp.matrix([[x**j for j in range(degree + 1)] for x in points])
    solution = mp.lu_solve(rows, mp.matrix([target.function(x) for x in points]))
    values = [_rounded(c, 64 if target.always_double else width) for c in solution]
    xs = _grid(target.low, target.high, 3 * degree)
    ys, ws = [target.function(x) for x in xs], [target.weight(x) for x in xs]
    return values, float(_largest(xs, ys, ws, 0, values))


def print_tables(subject: str, chosen: Iterable[Target], fit: Fit = fit) -> None:
    """Print the module of the coefficients of ``chosen``."""
    mp.mp.prec = 160
    print(f'"""Polynomial coefficients of {subject}, by format width, lowest order first.')
    print('\nThe comment at each table is the weighted error of the rounded polynomial.\n"""')
    tables: dict[str, list[str]] = {}
    for target in chosen:
        for width, degree in zip(target.widths, target.degrees, strict=True):
            values, error = fit(target, width, degree)
            lines = [f"    {width}: (  # error 2**{mp.nstr(mp.log(error, 2), 4)}"]
            rows = [values[k : k + 4] for k in range(0, len(values), 4)]
            lines += [f"        {', '.join(map(repr, row))}," for row in rows]
            tables.setdefault(target.name, []).append("\n".join([*lines, "    ),"]))
            print(target.name, *lines[:1], file=sys.stderr, flush=True)
    for name, entries in tables.items():
        print(f"\n{name}_TERMS: dict[int, tuple[float, ...]] = {{")
        print("\n".join(entries))
        print("}")


if __name__ == "__main__":
    print_tables("the vector mathematics, made by ``tools/fit_vecmath.py``", targets())
