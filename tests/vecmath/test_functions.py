"""Accuracy and special values of the vector mathematics, compiled and in NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from jitgrad.backends.llvm.code_object import CodeObject, compile_entry
from jitgrad.backends.llvm.effort import SMALL_LOOPS
from jitgrad.backends.llvm.library_names import native_names
from jitgrad.vecmath import FUNCTIONS, numpy_namespace
from tests import machine_code

WIDTHS = (32, 64)
DTYPES: dict[int, Any] = {32: np.float32, 64: np.float64}
EXACT = sorted(f.name for f in FUNCTIONS.values() if f.ulp64 == 0)
ROUNDED = sorted(f.name for f in FUNCTIONS.values() if f.ulp64 > 0)
ROUNDED_UNARY = [name for name in ROUNDED if FUNCTIONS[name].arity == 1]
ROUNDED_BINARY = [name for name in ROUNDED if FUNCTIONS[name].arity == 2]
NAN, INF = float("nan"), float("inf")


def loop_source(name: str, width: int) -> tuple[str, tuple[str, ...]]:
    """``y[i] = name(x[i])`` or ``name(a[i], b[i])``, as kernels call it, and the types of its parameters."""
    names = ["a", "b"][: FUNCTIONS[name].arity]
    text = f"def kernel({', '.join(names)}, y, start, stop):\n    for i in range(start, stop):\n"
    text += f"        y[i] = {name}({', '.join(f'{x}[i]' for x in names)})\n"
    return text, (*[f"f{width}*"] * len(names), "bool*" if FUNCTIONS[name].boolean else f"f{width}*")


def compile_loop(name: str, width: int) -> CodeObject:
    """One vector at a time: four, as in most kernels, compute the same and take LLVM three times as long."""
    text, params = loop_source(name, width)
    return compile_entry(text, "kernel", native_names(), params=params, key=None, effort=SMALL_LOOPS)


loop_of = cache(compile_loop)


def call(function: Any, name: str, *operands: np.ndarray) -> np.ndarray:
    arrays = [np.ascontiguousarray(x) for x in operands]
    out = np.empty(arrays[0].shape, np.bool_ if FUNCTIONS[name].boolean else arrays[0].dtype)
    machine_code.run(function, machine_code.table(*arrays, out), 0, out.size)
    return out


def compiled(name: str, *operands: np.ndarray) -> np.ndarray:
    return call(loop_of(name, operands[0].itemsize * 8), name, *operands)


def interpreted(name: str, *operands: np.ndarray) -> np.ndarray:
    return numpy_namespace()[name](*operands)


MEANINGS = pytest.mark.parametrize("run", [compiled, interpreted], ids=["llvm", "numpy"])


# tested in float64 against mpmath, and in float32 against that
IN_DOUBLE = (
    "erfinv erfcinv erfcx ndtr ndtri log_ndtr gammaln gamma digamma trigamma zeta gammainc gammaincc "
    "i0 i1 i0e i1e exp1 expi"
).split() + [f"bessel_{name}" for name in ("j0", "j1", "y0", "y1", "k0", "k1", "k0e", "k1e")]


def _through(function: Callable[[float], float]) -> Callable[[np.ndarray], np.ndarray]:
    vectorised = np.frompyfunc(function, 1, 1)
    return lambda x: vectorised(x).astype(np.float64)


# in float64, for float32 results
REFERENCE: dict[str, Callable[..., np.ndarray]] = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan,
    "atan2": np.arctan2, "atanh": np.arctanh, "pow": np.power,
    "erf": _through(math.erf), "erfc": _through(math.erfc),
    "reciprocal": lambda x: 1 / x, "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: np.exp(np.minimum(x, 0)) / (1 + np.exp(-abs(x))),
    "softplus": lambda x: np.maximum(x, 0) + np.log1p(np.exp(-abs(x))),
    "normal_radius": lambda x: np.sqrt(-2 * np.log(x)),
    "cos_turns": lambda x: np.sin(2 * np.pi * (0.25 - abs(x - np.rint(x)))),  # exactly 0 at a quarter turn
    **{name: numpy_namespace()[name] for name in IN_DOUBLE},
}  # fmt: skip


def reference(name: str, *operands: np.ndarray) -> np.ndarray:
    function = REFERENCE.get(name) or getattr(np, name)
    with np.errstate(all="ignore"):
        return function(*[x.astype(np.float64) for x in operands])


def ulps(got: np.ndarray, want: np.ndarray, scale: np.ndarray | None = None) -> np.ndarray:
    """Error of ``got`` (float32) against ``want`` (float64) in ulps of ``scale`` or ``want``; inf if no number."""
    limits = np.finfo(got.dtype)
    with np.errstate(all="ignore"):
        rounded = want.astype(got.dtype)
        size = np.clip(np.abs(rounded if scale is None else scale), limits.tiny, limits.max).astype(got.dtype)
        error = np.abs(got.astype(np.float64) - want) / np.spacing(size).astype(np.float64)
    at_overflow = np.isinf(got) & (np.abs(rounded) == limits.max) & (np.sign(got) == np.sign(rounded))
    error = np.where(at_overflow, 1.0, error)
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    return np.where(same & ~np.isfinite(rounded), 0.0, np.where(np.isnan(error), INF, error))


def assert_within(name: str, width: int, error: np.ndarray, got: np.ndarray, *operands: np.ndarray) -> None:
    i = int(np.argmax(error))
    at = ", ".join(repr(x[i]) for x in operands)
    assert error[i] <= FUNCTIONS[name].ulp(width), f"{name}({at}) = {got[i]!r}: {error[i]:.3f} ulp"


def _reflected(name: str, want: np.ndarray, x: np.ndarray) -> np.ndarray | None:
    """Below 0, gammaln and digamma are differences of terms of this size, and Bessel functions have this amplitude."""
    if name in ("bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1"):
        return np.fmax(np.abs(want), np.sqrt(2 / np.pi / np.fmax(np.abs(x), 1.0)) * (np.abs(x) > 1))
    if name not in ("gammaln", "digamma"):
        return None
    with np.errstate(all="ignore"):
        other = np.abs(reference(name, np.float64(1) - x))
    return np.fmax(np.abs(want), np.where(x < 0, other, 0))


def every_float32(stride: int, start: int = 0, stop: int = 2**32) -> np.ndarray:
    return np.arange(start, stop, stride, dtype=np.uint64).astype(np.uint32).view(np.float32)


@pytest.mark.parametrize("name", ROUNDED_UNARY)
def test_float32_on_a_prime_stride_over_all_floats(name):
    x = every_float32(40009)
    want = reference(name, x)
    scale = _reflected(name, want, x)

    for run in (compiled, interpreted):
        got = run(name, x)
        assert got.dtype == np.float32
        assert_within(name, 32, ulps(got, want, scale), got, x)


@MEANINGS
@pytest.mark.parametrize(
    ("name", "x"),
    [
        ("exp", [-16.289015, 59.294666, 4.5470138, 5.1985545, 48.86541]),
        ("erf", [0.22121723, 0.22226499, 0.22243588]),
        ("tanh", [8.14448, 0.5196337, 0.5193234]),
        ("sigmoid", [8.66255, 7.6914387]),
        ("expm1", [0.3865062, 0.38794693]),
    ],
)
def test_the_worst_of_all_floats(name, x, run):
    """Where other arrangements of the polynomials went beyond their bounds, between the floats of a prime stride."""
    x = np.array(x, np.float32)

    got = run(name, x)

    assert_within(name, 32, ulps(got, reference(name, x)), got, x)


@pytest.mark.slow
@pytest.mark.parametrize("name", ROUNDED_UNARY)
def test_float32_on_all_floats(name):
    step = 2**24
    for start in range(0, 2**32, step):
        x = every_float32(1, start, start + step)
        got, want = compiled(name, x), reference(name, x)
        assert_within(name, 32, ulps(got, want, _reflected(name, want, x)), got, x)


def pairs(name: str, dtype: Any, count: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    if name == "zeta":
        orders = rng.choice([1.05, 1.5, 2.0, 3.0, 4.0, 7.5, 21.0], count)
        return orders.astype(dtype), np.exp(rng.uniform(-3, 6, count)).astype(dtype)
    if name in ("gammainc", "gammaincc"):
        a = np.exp(rng.uniform(-5, 7, count))
        spread = rng.choice([1.0, 4.0], count) / np.sqrt(np.maximum(a, 1))
        return a.astype(dtype), (a * np.exp(rng.normal(0, 1, count) * spread)).astype(dtype)
    near = rng.uniform(0.1, 4, count) if name == "pow" else rng.standard_normal(count)
    wide = np.exp(rng.uniform(-80, 80, count))
    exponents = rng.uniform(-25, 25, count)
    second = [exponents, rng.uniform(-1, 1, count), rng.standard_normal(count), wide[::-1]]
    first = [near, wide, wide, wide]
    return np.concatenate(first).astype(dtype), np.concatenate(second).astype(dtype)


def _scale(name: str, want: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray | None:
    """Where the operands cancel, the error of logaddexp is measured against them.

    The error of the incomplete gamma functions grows with the logarithm of the result.
    """
    if name in ("gammainc", "gammaincc"):
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.nan_to_num(np.abs(want) * (1 + np.abs(np.log(want))))
    return np.maximum(np.abs(want), np.maximum(np.abs(x), np.abs(y))) if name == "logaddexp" else None


@pytest.mark.parametrize("name", ROUNDED_BINARY)
def test_float32_of_two_operands(name):
    x, y = pairs(name, np.float32, 20000)
    want = reference(name, x, y)

    for run in (compiled, interpreted):
        got = run(name, x, y)
        assert got.dtype == np.float32
        assert_within(name, 32, ulps(got, want, _scale(name, want, x, y)), got, x, y)


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x))


def _softplus(x: Any) -> Any:
    return mp.log1p(mp.exp(x)) if x < 600 else x


def _precise_ndtr(x: Any) -> Any:
    return mp.erfc(-x / mp.sqrt(2)) / 2


def _precise_log_ndtr(x: Any) -> Any:
    return mp.log1p(-_precise_ndtr(-x)) if x > 0 else mp.log(_precise_ndtr(x))


def _precise_erfcinv(y: Any) -> Any:
    """By Newton's method on log erfc."""
    if y >= 1:
        return -_precise_erfcinv(2 - y) if y > 1 else mp.mpf(0)
    x = mp.sqrt(-mp.log(y) * (1 - y))
    step = mp.mpf(1)
    while abs(step) > mp.mpf(10) ** -30 * x:
        tail = mp.erfc(x)
        step = (mp.log(tail) - mp.log(y)) * tail * mp.sqrt(mp.pi) / 2 * mp.exp(x * x)
        x += step
    return x


# of mpmath where 120 are too few: large arguments, and a zeta function whose digits it counts behind the point
BITS = {**dict.fromkeys(("sin", "cos", "tan", "cos_turns", "remainder"), 1300), "zeta": 200}
bessel_k = cache(mp.besselk)  # of the scaled functions too, at one precision


PRECISE: dict[str, Callable[..., Any]] = {
    "erfcinv": _precise_erfcinv, "ndtri": lambda p: -mp.sqrt(2) * _precise_erfcinv(2 * p),
    "ndtr": _precise_ndtr, "log_ndtr": _precise_log_ndtr, "erfcx": lambda x: mp.exp(x * x) * mp.erfc(x),
    "gammainc": lambda a, x: mp.gammainc(a, 0, x, regularized=True),
    "gammaincc": lambda a, x: mp.gammainc(a, x, regularized=True),
    "gammaln": lambda x: mp.re(mp.loggamma(x)), "trigamma": lambda x: mp.psi(1, x),
    **{f"bessel_{kind}{n}": partial(getattr(mp, f"bessel{kind}"), n) for kind in "ijy" for n in (0, 1)},
    **{f"bessel_k{n}": partial(bessel_k, n) for n in (0, 1)}, "exp1": mp.e1,
    **{f"i{n}e": lambda x, n=n: mp.besseli(n, x) * mp.exp(-abs(x)) for n in (0, 1)}, "i1": partial(mp.besseli, 1), "expi": mp.ei,
    **{f"bessel_k{n}e": lambda x, n=n: bessel_k(n, x) * mp.exp(x) for n in (0, 1)}, "i0": partial(mp.besseli, 0),
    "erfc": lambda x: mp.erfc(x) if abs(x) < 30 else mp.mpf(2 if x < 0 else 0), "exp2": lambda x: mp.mpf(2) ** x,
    "log2": lambda x: mp.log(x) / mp.log(2), "pow": lambda x, y: x**y,
    "reciprocal": lambda x: 1 / x, "rsqrt": lambda x: 1 / mp.sqrt(x), "sigmoid": _sigmoid, "softplus": _softplus,
    "logaddexp": lambda x, y: mp.log(mp.exp(x) + mp.exp(y)),
    "remainder": lambda x, y: x - y * mp.floor(x / y),
    "normal_radius": lambda x: mp.sqrt(-2 * mp.log(x)), "cos_turns": lambda x: mp.cospi(2 * x),
}  # fmt: skip

_POSITIVE = (0.0, INF)
DOMAIN = {
    "acos": (-1.0, 1.0), "acosh": (1.0, INF), "asin": (-1.0, 1.0), "atanh": (-1.0, 1.0), "erfinv": (-1.0, 1.0),
    **dict.fromkeys(("log", "log2", "log10", "sqrt", "rsqrt", "cbrt"), _POSITIVE), "log1p": (-1.0, INF),
    "erfcinv": (0.0, 2.0), "ndtri": (0.0, 1.0), "ndtr": (-37.5, 1e3), "log_ndtr": (-1e4, 30.0), "erfcx": (-26.6, 1e4),
    "gammaln": (-500.0, INF), "digamma": (-500.0, INF), "trigamma": (-500.0, INF), "gamma": (-170.0, 171.6),
    "i0": (-713.0, 713.0), "i1": (-713.0, 713.0), "i0e": (-2e3, 2e3), "i1e": (-2e3, 2e3),
    **dict.fromkeys(("bessel_j0", "bessel_j1"), (-1e3, 1e3)), **dict.fromkeys(("bessel_y0", "bessel_y1"), (0.0, 1e3)),
    "expi": (-730.0, 716.0), "exp1": (0.0, 730.0), "bessel_k0": (0.0, 730.0), "bessel_k1": (0.0, 730.0),
    "bessel_k0e": (0.0, 1e4), "bessel_k1e": (0.0, 1e4), "normal_radius": (0.0, 1.0),
}  # fmt: skip


def samples(name: str) -> np.ndarray:
    """float64 operands in the open domain: near 0, near 1, around the usual thresholds, tiny and huge."""
    rng = np.random.default_rng(7)
    count = 120
    sign = rng.choice([-1.0, 1.0], count)
    huge = sign * np.exp(rng.uniform(-745, 709, count))
    multiples = np.rint(rng.uniform(0, 2**28, count)) * (np.pi / 2)
    parts = [rng.standard_normal(count), rng.uniform(-1, 1, count), sign * np.exp(rng.uniform(-20, 6.5, count)),
             rng.uniform(-745, 709, count), 1 - np.exp(rng.uniform(-36, 0, count)), huge, multiples,
             np.array([0.5, -0.5, 0.6, 1 - 2**-53, 1 + 2**-52, 5e-324, 2.0**-1022, 1.7e308, 709.78, -745.1, -708.4])]
    low, high = DOMAIN.get(name, (-INF, INF))
    x = np.concatenate(parts)
    return x[(x > low) & (x < high) & (x != 0)]


def precise_ulps(got: float, want: Any, scale: Any = 0) -> float:
    """Error of a float64 against a real number, in ulps; at the overflow threshold infinity counts as 2**1024."""
    if math.isnan(got):
        return INF
    size = max(abs(want), abs(scale))
    exponent = max(int(mp.floor(mp.log(size, 2))) if size else -1022, -1022)
    if math.isinf(got):
        return 0.0 if abs(want) > mp.mpf(2) ** 1024 * (1 - mp.mpf(2) ** -53) and (got > 0) == (want > 0) else INF
    return float(abs(mp.mpf(got) - want) / mp.mpf(2) ** (exponent - 52))


@pytest.mark.parametrize("name", ROUNDED)
def test_float64_against_multiple_precision(name):
    operands = (samples(name),) if FUNCTIONS[name].arity == 1 else pairs(name, np.float64, 100)
    precise = PRECISE.get(name) or getattr(mp, name)
    with mp.workprec(BITS.get(name, 120)):
        wants = [precise(*map(mp.mpf, row)) for row in zip(*[x.tolist() for x in operands], strict=True)]
        scales = _reflected(name, np.zeros(len(wants)), operands[0])
        if scales is None:
            scales = np.zeros(len(wants))
        if FUNCTIONS[name].arity == 2 and (scale := _scale(name, np.array(list(map(float, wants))), *operands)) is not None:
            scales = scale
        for run in (compiled, interpreted):
            got = run(name, *operands)
            rows = zip(got.tolist(), wants, scales.tolist(), strict=True)
            error = np.array([precise_ulps(g, w, s) for g, w, s in rows])
            assert_within(name, 64, error, got, *operands)


SPECIAL = [0.0, -0.0, 1, -1, 2, -2, 3, -3, 0.5, -0.5, 1.5, INF, -INF, NAN, 5e-324, -5e-324, 1e-310, 1.7e308, -1.7e308,
           1e-45, -1e-45, 2e-39, 3.4e38, -3.4e38, 2.0**53, 2.0**53 - 1, -(2.0**24) + 1, 1 - 2**-24, 1 + 2**-23,
           1 - 2**-53, 1 + 2**-52, -0.9999999, 7, -7.25, 88.72, 89, -87.4, -103.9, -104, 709.7, 710, -708.5, -745.2,
           1e10, 100]  # fmt: skip
ZERO_SIGN_IS_FREE = {"minimum", "maximum", "logaddexp"}


@MEANINGS
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_special_values_are_those_of_numpy(name, width, run):
    with np.errstate(all="ignore"):
        values = np.array(SPECIAL).astype(DTYPES[width])
        grids = np.meshgrid(*[values] * FUNCTIONS[name].arity)
        operands = [g.ravel() for g in grids]
        direct = name in EXACT or name == "remainder"
        want = getattr(np, name)(*operands) if direct else reference(name, *operands).astype(DTYPES[width])
        got = run(name, *operands)
    both_nan = np.isnan(got) & np.isnan(want)
    same_zero = (np.signbit(got) == np.signbit(want)) | (want != 0) | (name in ZERO_SIGN_IS_FREE)
    with np.errstate(all="ignore"):
        scale = np.abs(want.astype(DTYPES[width]))
        if name == "logaddexp":
            scale = np.maximum(scale, np.abs(operands).max(axis=0))
        off = np.abs(got.astype(np.float64) - want)
        close = np.isfinite(want) & (want != 0) & (off <= (0 if direct else 4) * np.spacing(scale))
    wrong = ~(both_nan | ((got == want) & same_zero) | close)
    assert not wrong.any(), [(name, *[x[i] for x in operands], got[i], want[i]) for i in np.nonzero(wrong)[0][:5]]


@MEANINGS
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", EXACT)
def test_exact_functions_equal_numpy(name, width, run):
    x, y = pairs(name, DTYPES[width], 2000)
    operands = (x, y)[: FUNCTIONS[name].arity]

    with np.errstate(all="ignore"):
        assert np.array_equal(run(name, *operands), getattr(np, name)(*operands))


@MEANINGS
def test_minimum_orders_the_zeros_or_keeps_numpys_choice(run):
    zeros = np.array([0.0, -0.0]), np.array([-0.0, 0.0])

    assert not run("minimum", *zeros).any()
    assert np.signbit(compiled("minimum", *zeros)).all()
    assert not np.signbit(compiled("maximum", *zeros)).any()


@MEANINGS
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_float64_arguments_closest_to_a_multiple_of_half_pi(name, run):
    x = np.array([6381956970095103 * 2.0**797, 5319372648326541 * 2.0**416, 2.0**27, 2.0**1023, 1.5707963267948966])
    got = run(name, x)
    with mp.workprec(1300):
        error = np.array([precise_ulps(g, getattr(mp, name)(mp.mpf(v))) for g, v in zip(got.tolist(), x.tolist())])

    assert_within(name, 64, error, got, x)


@MEANINGS
def test_powers_of_two_and_ten_are_exact(run):
    n = np.arange(-1074.0, 1024.0)
    assert np.array_equal(run("exp2", n), np.ldexp(1.0, n.astype(int)))
    assert np.array_equal(run("log2", np.ldexp(1.0, n.astype(int))), n)

    k = np.arange(23.0)
    assert np.array_equal(run("log10", 10.0**k), k)
    assert np.array_equal(run("pow", np.full(23, 10.0), k), np.array([float(10**i) for i in range(23)]))
