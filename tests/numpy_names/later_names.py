"""More functions of NumPy, as in `table`: polynomials, histograms, windows, sets and keys."""

from __future__ import annotations

import numpy as np

from tests.numpy_names.table import EDGES, F4, INTS, A, B, C, Case, P, V, W, case

T = np.linspace(-1.0, 2.0, 9)
Y = np.cos(T)
YS = np.stack([Y, T**2], 1)
NANS = np.array([0.5, np.nan, -0.2, 0.9])
COUNTS = np.array([2, 5, 1, 5, 7])
OTHERS = np.array([5, 2, 9])
LINES = (lambda v: v.sum(), lambda v: v[::-1], lambda v: v[:2, None] * v[:1])

PADDED = np.array([[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 0.0]])

LATER: list[Case] = [
    case("modf", A), case("modf", F4), case("modf", np.array([np.inf, -np.inf, np.nan, -2.0, 0.3])),
    case("trim_zeros", PADDED), case("trim_zeros", PADDED[1:, 0], "b"), case("trim_zeros", PADDED[:, 0], "F"),
    case("trim_zeros", PADDED, axis=0), case("trim_zeros", np.zeros(3)), case("trim_zeros", PADDED[:, 1]),
    case("matvec", C, C[0, 0]), case("vecmat", A[:, 0], A), case("matvec", A, A[0]),
    case("polyfit", T, Y, 3), case("polyfit", T, YS, 2), case("polyfit", T, Y, 2, w=np.abs(T) + 0.5), case("polyfit", T, Y, 0),
    case("polyadd", V, W), case("polyadd", W, V), case("polysub", V, INTS[0]), case("polysub", INTS[0], INTS[1]),
    case("polymul", V, W), case("polyder", V), case("polyder", V, 2), case("polyder", V[:1]), case("polyint", V),
    case("polyint", V, 2, [1.0, 2.0]), case("polyint", V, k=3.0), case("polyval", INTS[0], A), case("polyval", V, 2.0),
    case("histogram", A), case("histogram", A, 4), case("histogram", F4, 3), case("histogram", INTS, 3),
    case("histogram", A, EDGES),
    case("histogram", A, 5, (-1.0, 1.0)), case("histogram", A, 5, (-1.0, 1.0), True), case("histogram", A, 4, weights=B),
    case("histogram", A, EDGES, density=True), case("histogram", np.ones(3), 4), case("histogram", np.zeros(0), 4),
    case("histogram", np.array([0.0, 1.0, 1.0, 2.0]), np.array([0.0, 1.0, 2.0])), case("histogram", NANS, 4, (0.0, 1.0)),
    case("histogram_bin_edges", A, 7), case("histogram_bin_edges", A, EDGES), case("histogram_bin_edges", INTS, 2, (0, 6)),
    case("poly", V), case("poly", INTS[0]), case("poly", np.zeros(0)),
    case("histogram2d", A[0], B[0]), case("histogram2d", A[0], B[0], 4), case("histogram2d", A[0], B[0], [3, 5]),
    case("histogram2d", A[0], B[0], [EDGES, 3], density=True),
    case("histogram2d", A[0], B[0], 3, [(-1.0, 1.0), (0.0, 2.0)]),
    case("histogram2d", A[0], B[0], 3, weights=A[1]), case("histogram2d", F4[0], F4[1], 2),
    case("histogramdd", C[0], [2, 3, 1, 2]), case("histogramdd", A, 2), case("histogramdd", A[:, :2], [EDGES, 3], density=True),
    case("histogramdd", [A[0], B[0]], 3, [None, (-1.0, 1.0)], weights=A[1]), case("histogramdd", V, 4),
    *(case(name, n) for name in ("bartlett", "blackman", "hamming", "hanning") for n in (0, 1, 2, 7, 8)),
    case("kaiser", 7, 14.0), case("kaiser", 8, 0.5), case("kaiser", 1, 2.0), case("i0", A),
    case("lexsort", (COUNTS, np.array([1, 0, 1, 0, 1]))), case("lexsort", (V, COUNTS)), case("lexsort", np.stack([V, -V])),
    case("union1d", COUNTS, OTHERS), case("intersect1d", COUNTS, OTHERS), case("setdiff1d", COUNTS, OTHERS),
    case("setxor1d", COUNTS, OTHERS), case("setdiff1d", COUNTS, OTHERS, True), case("union1d", A, P),
    case("intersect1d", A, A[:1]),
    *(case("apply_along_axis", f, k, C) for f in LINES for k in (0, 1, -1)),
    case("apply_over_axes", lambda x, axis: x.sum(axis), C, [0, 2]), case("apply_over_axes", lambda x, axis: x * 2.0, A, -1),
]  # fmt: skip

LATER_SMOOTH = [
    ("modf", lambda np, x: np.modf(3 * x)[0] ** 2, A), ("matvec", lambda np, x: np.matvec(x, x[0] ** 2), A),
    ("vecmat", lambda np, x: np.vecmat(x[:, 0], x**2), A),
    ("polyfit", lambda np, x: np.polyfit(T, x, 2), Y), ("polyfit_at", lambda np, x: np.polyfit(x, Y, 2), T),
    ("polymul", lambda np, x: np.polymul(x, x), V), ("polyint", lambda np, x: np.polyint(x, 2, [1.0, 2.0]), V),
    ("poly", lambda np, x: np.poly(x) ** 2, V),
    ("roots", lambda np, x: np.abs(np.roots(x)) ** 2, np.array([1.0, -2.5, 0.7, 0.9])),
    ("polyder", lambda np, x: np.polyder(x**2, 2), V), ("polysub", lambda np, x: np.polysub(x**2, W), V),
    ("kaiser", lambda np, x: np.kaiser(7, x), np.array(2.5)),
    ("histogram", lambda np, x: np.histogram(A, EDGES, weights=x**2)[0], B),
    ("apply_along_axis", lambda np, x: np.apply_along_axis(lambda v: v**2 * v[0], 0, x), A),
    ("r_", lambda np, x: np.r_[x**2, 1.0, 0:3] ** 2, V), ("c_", lambda np, x: np.c_[x, x**2, np.ones(5)] ** 2, V),
]  # fmt: skip
