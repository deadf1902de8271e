"""Functions of NumPy with arguments, for which jitgrad.numpy must give the same values and dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

rng = np.random.default_rng(0)
A = rng.normal(0, 1.2, (3, 4))
B = rng.normal(0, 1.2, (3, 4))
V = rng.normal(0, 1.2, 5)
W = rng.normal(0, 1.2, 7)
P = rng.uniform(0.2, 2.0, (3, 4))
C = rng.normal(0, 1, (2, 3, 4))
S = rng.normal(0, 1, (3, 3))
EDGES = np.array([-1.0, 0.0, 0.5, 2.0])
GAPS = np.array([[1.0, np.nan, 3.0, -2.0], [np.nan, 0.5, 2.0, 1.5]])
ALL_GAPS = np.array([1.0, np.nan, np.inf, -np.inf])
INTS = np.array([[3, 1, 2], [0, 5, 1]])
F4 = A.astype(np.float32)

Case = tuple[str, tuple[Any, ...], dict[str, Any]]


def case(name: str, *args: Any, **keywords: Any) -> Case:
    return name, args, keywords


UNARY = (
    "abs absolute fabs arctan arcsinh cbrt ceil conj cos cosh deg2rad degrees exp exp2 expm1 fix floor negative positive "
    "rad2deg radians real rint round around sign sin sinc sinh square tan tanh trunc ravel transpose fliplr flipud flip "
    "sum prod mean var std max min amax amin ptp median cumsum cumprod nansum nanmean nanvar nanstd nanmax nanmin nanprod "
    "nanmedian sort diff ediff1d unwrap cov corrcoef average squeeze zeros_like ones_like copy array asarray atleast_1d "
    "atleast_2d atleast_3d nan_to_num rot90 tril triu trace diagonal diag diagflat"
).split()
EXACT = "isnan isinf isfinite isneginf isposinf logical_not signbit argmax argmin argsort count_nonzero all any isreal".split()
POSITIVE = "sqrt log log2 log10 log1p reciprocal arccosh".split()
BINARY = (
    "add subtract multiply divide maximum minimum fmax fmin arctan2 hypot copysign logaddexp logaddexp2 dot vdot inner outer "
    "kron float_power remainder fmod floor_divide equal greater less not_equal isclose allclose heaviside"
).split()

CASES: list[Case] = [
    *(case(name, A) for name in UNARY if name != "trace"),
    *(case(name, INTS) for name in UNARY if name not in ("deg2rad", "conj")),
    *(case(name, F4) for name in "sum mean var std cumsum cumprod median average sinc cbrt nanmean linspace".split()[:-1]),
    *(case(name, GAPS) for name in EXACT),
    *(case(name, P + (name == "arccosh")) for name in POSITIVE),
    *(case(name, A, B if name not in ("dot", "float_power") else B.T if name == "dot" else 2.0) for name in BINARY),
    case("power", P, B),
    case("gcd", INTS, 4), case("gcd", -INTS, INTS[1]), case("lcm", INTS, np.array([4, 0, -6])), case("ldexp", A, INTS[0, 0]),
    case("ldexp", F4[:, :3], INTS[:1]), case("frexp", A * 1e-300), case("frexp", np.array([0.0, -8.0, 5e-324, 1e308])),
    case("frexp", F4 * np.float32(1e-38)), case("isin", INTS, [1, 5, 9]), case("isin", A, A[0]), case("isin", INTS, []),
    case("isin", A, INTS, invert=True),
    case("sum", A, 0), case("sum", A, (0, 1)), case("sum", A, 1, None, None, True), case("sum", A, initial=2.0),
    case("sum", A, where=A > 0), case("prod", A, 1), case("prod", A, where=A > 0, initial=2.0), case("sum", INTS, 0, np.float64),
    case("mean", INTS), case("mean", A, 0, np.float32), case("var", A, 1, ddof=1), case("std", A, 0, None, None, 1),
    case("max", A, 0), case("max", A, initial=0.5), case("min", A, 1, where=A > 0, initial=9.0), case("max", A, keepdims=True),
    case("all", A > 0, 0), case("any", A > 0, 1, None, True), case("argmax", A, 1), case("argmin", A, 0, keepdims=True),
    case("ptp", A, 1), case("count_nonzero", INTS, 0), case("cumsum", A, 1), case("cumprod", A, 0), case("cumprod", INTS, 1),
    case("average", A, 0, [1.0, 2.0, 3.0]), case("average", A, weights=P), case("average", A, 1, P[0], True),
    case("average", A, 1, None, True),
    case("cov", A, ddof=0), case("cov", A, B), case("cov", A.T, rowvar=False, bias=True), case("cov", A, aweights=P[0]),
    case("corrcoef", A, B), case("cov", V),
    case("nansum", GAPS), case("nansum", GAPS, 0), case("nanmean", GAPS, 0), case("nanvar", GAPS, 1, ddof=1),
    case("nanstd", GAPS, 1), case("nanmax", GAPS, 0), case("nanmin", GAPS, 1), case("nanprod", GAPS), case("nancumsum", GAPS, 1),
    case("nancumprod", GAPS, 1), case("nanargmax", GAPS, 1), case("nanargmin", GAPS, 1), case("nanmedian", GAPS, 1),
    case("nanpercentile", GAPS, [20, 60], 1), case("nanquantile", GAPS, 0.3, 0), case("nanquantile", GAPS, 0.3, keepdims=True),
    case("median", A, 0), case("median", W), case("median", GAPS, 1), case("quantile", A, 0.3),
    case("quantile", A, [0.1, 0.9], 1),
    *(case("quantile", A, [0.1, 0.5, 0.7], 0, method=m) for m in "lower higher midpoint nearest".split()),
    case("percentile", A, 30, (0, 1)), case("percentile", C, [10.0, 50.0], (0, 2), keepdims=True),
    case("sort", A, 0), case("sort", A, None), case("argsort", A, 0), case("sort", GAPS),
    case("searchsorted", EDGES, V), case("searchsorted", EDGES, A, "right"), case("digitize", V, EDGES),
    case("digitize", V, EDGES[::-1]), case("digitize", [0.0, 2.0], EDGES, True), case("digitize", [0.0, 2.0], EDGES[::-1], True),
    case("bincount", [1, 3, 1]), case("bincount", [1, 3, 1], [0.5, 1.0, 2.0], 6), case("unique", [3, 1, 3]),
    case("nonzero", INTS), case("argwhere", INTS), case("flatnonzero", INTS), case("extract", A > 0, A),
    case("compress", [True, False, True], A, 0), case("compress", [1, 0, 1], A), case("take", A, [1, 0, 2], 0),
    case("take", A, [5, 1]),
    case("take", A, [5, -7], 0, mode="wrap"), case("take", A, [5, -7], 0, mode="clip"),
    case("take_along_axis", A, np.argsort(A, 1), 1), case("take_along_axis", V, np.array([1, 0]), None),
    case("where", A > 0, A, B), case("where", A > 0, A, 1.0), case("where", INTS), case("where", [True, False], [1.0, 2.0], 0),
    case("select", [A > 1, A > 0], [A, B], 7.0), case("select", [A > 1, A > 0], [A, A**2]),
    case("choose", INTS % 2, [np.ones((2, 3)), np.zeros((2, 3))]), case("isclose", A, A + 1e-9), case("allclose", A, B),
    case("isclose", ALL_GAPS, ALL_GAPS), case("isclose", ALL_GAPS, ALL_GAPS, equal_nan=True), case("array_equal", A, A),
    case("array_equal", A, V), case("array_equal", ALL_GAPS, ALL_GAPS, True), case("array_equiv", A, A[:1]),
    case("reshape", A, (2, 6)), case("reshape", A, -1), case("reshape", A, (2, 6), order="F"), case("ravel", A, "F"),
    case("transpose", C, (1, 2, 0)), case("transpose", A, (0, 1)), case("swapaxes", C, 0, 2), case("moveaxis", C, 0, -1),
    case("rollaxis", C, 2), case("rollaxis", C, 0, 3), case("rollaxis", C, 1, 0), case("squeeze", A[None], 0),
    case("expand_dims", A, 1), case("expand_dims", A, (0, 3)), case("broadcast_to", V, (2, 5)), case("broadcast_arrays", A, A[0]),
    case("atleast_1d", 3.0), case("atleast_2d", V), case("atleast_3d", V), case("atleast_2d", V, 1.0), case("flip", A, 1),
    *(case("rot90", C, k, (1, 2)) for k in range(4)), case("roll", A, 2), case("roll", A, (1, 2), (0, 1)),
    case("resize", A, (2, 9)),
    case("matrix_transpose", C), case("shape", A), case("ndim", A), case("size", A), case("size", A, 1),
    case("concatenate", (A, B)), case("concatenate", (A, B), 1), case("concatenate", (A, INTS), None), case("concat", [A, B]),
    case("concatenate", [V, W], dtype=np.float32), case("stack", [A, B], -1), case("hstack", (V, W)), case("hstack", (A, B)),
    case("vstack", (V, V)), case("dstack", (A, B)), case("column_stack", (V, V)), case("column_stack", (A, A[:, 0])),
    case("block", [[A, A], [B, B]]), case("block", [V, W]), case("append", A, V), case("append", A, B, 0),
    case("delete", A, 1, 0),
    case("delete", V, [0, 2]), case("delete", A, slice(1, 3), 1), case("insert", V, 2, 9.0), case("insert", A, 1, A[0], 0),
    case("insert", A, 1, 2.0, 1), case("array_split", W, 3), case("array_split", A, [1, 2], 1), case("split", A, 3),
    case("hsplit", A, 2),
    case("vsplit", A, [1]), case("dsplit", C, 2), case("unstack", A), case("tile", V, (2, 2)), case("repeat", A, 2, 1),
    case("repeat", V, [1, 0, 2, 1, 1]), case("pad", A, 1), case("pad", V, (1, 2), "reflect"),
    case("pad", V, 1, constant_values=2.0),
    case("cross", S, S[::-1]), case("cross", S, S[::-1], axis=0), case("trace", S), case("trace", C, 1),
    case("diagonal", C, 1, 1, 2),
    case("tensordot", C, A, ([1, 2], [0, 1])), case("matmul", C, A.T), case("vecdot", A, B), case("dot", C, A.T),
    case("kron", V, A),
    case("einsum", "ij,kj->ik", A, B), case("einsum", A, [0, 1], B, [0, 1], [0]), case("inner", C, A), case("inner", 2.0, V),
    case("diff", A, 2), case("diff", A, 1, 0), case("diff", V, prepend=0.0, append=[1.0, 2.0]), case("diff", [True, False]),
    case("ediff1d", V, 1.0, [2.0, 3.0]), case("gradient", V), case("gradient", A), case("gradient", W, 0.5, edge_order=2),
    case("gradient", W, np.cumsum(np.abs(W))), case("gradient", C, 1.0, 2.0, axis=(0, 2)),
    case("gradient", A, axis=1, edge_order=2),
    case("gradient", W, np.cumsum(np.abs(W)), edge_order=2), case("trapezoid", A), case("trapezoid", A, dx=0.5, axis=0),
    case("trapezoid", A, np.arange(4.0) ** 2), case("trapezoid", A, np.cumsum(P, 1)), case("interp", V, EDGES, W[:4]),
    case("interp", A, EDGES, W[:4], -7.0, 7.0), case("interp", V, EDGES, W[:4], period=2.5), case("interp", 0.2, EDGES, W[:4]),
    *(case(f, *xs, mode) for f in ("convolve", "correlate") for xs in ((V, W), (W, V)) for mode in "full same valid".split()),
    case("unwrap", np.cumsum(3 * P, 1)), case("unwrap", A, axis=0, period=1.0), case("polyval", V, A), case("polyval", [1, 2], 3),
    case("clip", A, -0.5, 0.5), case("clip", A, None, 0.2), case("round", A, 1), case("nan_to_num", ALL_GAPS),
    case("nan_to_num", ALL_GAPS, True, 1.0, 2.0, -2.0), case("nan_to_num", ALL_GAPS.astype(np.float32)), case("divmod", A, 0.7),
    case("sinc", [0.0, 0.5]), case("cbrt", [-8.0, 0.0]), case("heaviside", [-1.0, 0.0, 2.0, np.nan], 0.5),
    case("fmax", GAPS[0], GAPS[1]),
    case("fmax", F4, 0.5), case("heaviside", F4, 0.5), case("logaddexp2", F4, 1.0), case("cov", F4),
    case("select", [A > 0], [F4], 1.5),
    case("select", [A > 0], [INTS[0, 0] + 0 * A.astype(int)], 1.5), case("sinc", F4 / 50),
    case("fmin", GAPS[0], GAPS[1]), case("add", INTS, 1.5), case("exp", 2), case("exp", [1, 2]), case("add", [1, 2], [3, 4]),
    case("multiply", A, B, dtype=np.float32), case("iscomplexobj", A), case("power", INTS, 2), case("bitwise_and", INTS, 1),
]  # fmt: skip

CREATION: list[Case] = [
    case("array", [1.0, 2.0]), case("array", [[1, 2], [3, 4]]), case("array", [1, 2], np.float32), case("array", 1.5),
    case("array", V, ndmin=3), case("asarray", (1, 2.5)), case("zeros", 3), case("zeros", (2, 3), np.int64),
    case("zeros", (2,), int),
    case("ones", (2, 3)), case("ones", 2, "f4"), case("full", (2,), 7), case("full", 2, 1.5), case("full", (2, 2), V[:2]),
    case("full_like", A, 2), case("full_like", INTS, 2.7), case("zeros_like", A, np.float32), case("ones_like", A, shape=(2,)),
    case("arange", 5), case("arange", 1, 2, 0.25), case("arange", 5.0), case("arange", 1, 5, 2, np.float32),
    case("arange", 3, dtype=float),
    case("linspace", 0, 1, 5), case("linspace", 0, 1, 5, False), case("linspace", 0, 1, 5, retstep=True),
    case("linspace", V, W[:5], 3),
    case("linspace", V, 1.0, 4, axis=1), case("linspace", 0, 9, 4, dtype=int), case("logspace", 0, 2, 5),
    case("logspace", 0, 2, 3, base=2.0),
    case("geomspace", 1, 1000, 4), case("geomspace", 2.0, 9.0, 4, False), case("eye", 3), case("eye", 2, 3, 1, np.float32),
    case("identity", 2),
    case("tri", 3), case("tri", 3, 4, 1), case("tril", A, 1), case("triu", A, -1), case("diag", V), case("diag", V, -2),
    case("diag", A, 1),
    case("diag", V, 1), case("diagflat", A), case("vander", V), case("vander", V, 3, True), case("vander", [1, 2]),
    case("meshgrid", V, W), case("meshgrid", V, W, indexing="ij"), case("meshgrid", V, W, sparse=True), case("indices", (2, 3)),
    case("fromfunction", lambda i, j: i * 10 + j, (2, 3)), case("float64", 2), case("int32", [1.5, 2.5]), case("float32", 1.0),
]  # fmt: skip

# name, function of x: gradients by finite differences, first and second order
SMOOTH: list[tuple[str, Any, Any]] = [
    ("cumprod", lambda np, x: np.cumprod(x, 1), A), ("cumprod_zero", lambda np, x: np.cumprod(x), np.array([1.0, 0.0, 2.0, 3.0])),
    ("average", lambda np, x: np.average(x, 1, P[0]), A), ("average_weights", lambda np, x: np.average(A, weights=x), P),
    ("cov", lambda np, x: np.cov(x), A), ("corrcoef", lambda np, x: np.corrcoef(x), A),
    ("nanvar", lambda np, x: np.nanvar(x, 1), A),
    ("nanmean", lambda np, x: np.nanmean(np.where(GAPS > 1, np.nan, x)), A[:2]), ("median", lambda np, x: np.median(x, 0), A),
    ("quantile", lambda np, x: np.quantile(x, [0.2, 0.7], 1), A), ("nanquantile", lambda np, x: np.nanquantile(x, 0.3), A),
    ("interp_x", lambda np, x: np.interp(x, EDGES, W[:4]), np.array([-0.7, 0.2, 1.1])), ("ptp", lambda np, x: np.ptp(x, 0), A),
    ("interp_xp", lambda np, x: np.interp([-0.7, 0.2, 1.1], x, W[:4]), EDGES),
    ("interp_fp", lambda np, x: np.interp(V, EDGES, x), W[:4]),
    ("convolve", lambda np, x: np.convolve(x, W, "same"), V), ("correlate", lambda np, x: np.correlate(W, x), V),
    ("gradient", lambda np, x: np.gradient(x, edge_order=2, axis=0), A),
    ("trapezoid", lambda np, x: np.trapezoid(A, np.cumsum(x, 1)), P),
    ("gradient_at", lambda np, x: np.gradient(W, np.cumsum(x)), P.ravel()[:7]), ("unwrap", lambda np, x: np.unwrap(x), A),
    ("sinc", lambda np, x: np.sinc(x), A), ("sinc_zero", lambda np, x: np.sinc(x), np.array([0.0, 1e-9, 0.1])),
    ("cbrt", lambda np, x: np.cbrt(x), A),
    ("logaddexp2", lambda np, x: np.logaddexp2(x, B), A), ("kron", lambda np, x: np.kron(x, V), A),
    ("inner", lambda np, x: np.inner(x, x), A),
    ("cross", lambda np, x: np.cross(x, S), S[::-1]), ("diag", lambda np, x: np.diag(x, 1) ** 2, V),
    ("diff", lambda np, x: np.diff(x) ** 2, A),
    ("piecewise", lambda np, x: np.piecewise(x, [x > 0], [lambda v: v**2, lambda v: v**3]), A),
    ("deg2rad", lambda np, x: np.deg2rad(x), A),
    ("select", lambda np, x: np.select([x > 1, x > 0], [x**2, x**3], 1.0), A),
    ("linspace", lambda np, x: np.linspace(x, 2 * x, 4), V),
    ("array", lambda np, x: np.array([x[0] * x[1], [1.0, 2.0, 3.0, 4.0]]), A), ("vander", lambda np, x: np.vander(x, 3), V),
    ("block", lambda np, x: np.block([[x, x], [x, x]]) ** 2, A), ("insert", lambda np, x: np.insert(x, 1, x[0], 0), A),
    ("logspace", lambda np, x: np.logspace(x, 1.0, 3), V), ("geomspace", lambda np, x: np.geomspace(x, 4.0, 3), P[0]),
    ("polyval", lambda np, x: np.polyval(x, V), W), ("float64", lambda np, x: np.float64(x) ** 2, A),
    ("fmax", lambda np, x: np.fmax(x, B), A),
    ("rot90", lambda np, x: np.rot90(x) ** 2, A), ("take", lambda np, x: np.take(x, [5, 1]), A),
    ("sort", lambda np, x: np.sort(x, 0), A),
    ("reshape", lambda np, x: np.reshape(x, (2, 6), order="F") ** 2, A), ("nansum", lambda np, x: np.nansum(x**2, 0), A),
]  # fmt: skip
