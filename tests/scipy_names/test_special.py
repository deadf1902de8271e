"""jitgrad.scipy.special: SciPy's values where it is installed, known values and edges, gradients, kernels."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import ArgumentError, AutogradError
from jitgrad.scipy import special
from jitgrad.testing import check_grads

INF, NAN = math.inf, math.nan
UNARY = (
    "gammaln gamma digamma psi erfinv erfcinv erfcx ndtr ndtri log_ndtr expit log_expit logit i0 i1 i0e i1e exprel entr "
    "erf erfc rgamma factorial"
).split()
BINARY = "gammainc gammaincc xlogy xlog1py rel_entr kl_div beta betaln".split()
EDGES = [0.0, -0.0, 1.0, 2.0, -1.0, -2.0, -0.5, -1.5, -2.5, 0.5, NAN, 1e300, -1e300, 30.0, -30.0, 171.0, 172.0, -170.5]

rng = np.random.default_rng(3)
POINTS = np.concatenate([EDGES, rng.normal(0, 3, 400), rng.uniform(0, 1, 200), np.exp(rng.uniform(-40, 40, 80))])


def assert_same(found: Any, expected: Any, rtol: float = 1e-13) -> None:
    with np.errstate(all="ignore"):
        same = (found == expected) | (np.isnan(found) & np.isnan(expected))
        close = np.abs(found - expected) <= rtol * np.maximum(np.abs(expected), 0.01)
    bad = np.nonzero(~(same | close))
    assert not len(bad[0]), [(bad[0][0], found[bad][0], expected[bad][0])]


@pytest.mark.parametrize("name", UNARY)
def test_values_are_scipys(name):
    scipy = pytest.importorskip("scipy.special")

    with np.errstate(all="ignore"):
        assert_same(getattr(special, name)(POINTS).numpy(), getattr(scipy, name)(POINTS))


@pytest.mark.parametrize("name", BINARY)
def test_values_of_two_operands_are_scipys(name):
    scipy = pytest.importorskip("scipy.special")
    x, y = np.abs(POINTS[11:]), rng.uniform(0.01, 5, POINTS.size - 11)
    x = x[x < 1e3]
    y = y[: x.size]

    assert_same(getattr(special, name)(x, y).numpy(), getattr(scipy, name)(x, y), 1e-11)


@pytest.mark.parametrize("name", ["ellipk", "ellipe", "ellipkm1"])
def test_elliptic_integrals_are_scipys(name):
    scipy = pytest.importorskip("scipy.special")
    x = np.concatenate([POINTS, 1 - np.exp(rng.uniform(-35, 0, 50)), [INF, -INF]])

    assert_same(getattr(special, name)(x).numpy(), getattr(scipy, name)(x), 1e-13)


@pytest.mark.parametrize("name", ["huber", "pseudo_huber"])
def test_losses_are_scipys(name):
    scipy = pytest.importorskip("scipy.special")
    delta, r = np.meshgrid([-1.0, 0.0, 0.5, 2.0, 1e3], [-3.0, -0.2, 0.0, 1.0, 1e5, 1e160, INF, NAN])

    with np.errstate(all="ignore"):
        assert_same(getattr(special, name)(delta, r).numpy(), getattr(scipy, name)(delta, r), 1e-15)


@pytest.mark.parametrize(
    "name", "chebyt chebyu sh_chebyt sh_chebyu hermite hermitenorm laguerre legendre".split()
)
def test_orthogonal_polynomials_are_scipys(name):
    scipy = pytest.importorskip("scipy.special")
    ours, theirs = (getattr(m, f"eval_{name}") for m in (special, scipy))
    x = np.linspace(-2.0, 2.0, 24)

    for n in (0, 1, 2, 9, np.arange(24) % 8, np.arange(3)[:, None]):
        np.testing.assert_allclose(ours(n, x).numpy(), theirs(n, x), rtol=1e-11, atol=1e-11)
    np.testing.assert_array_equal(jg.jit(lambda x: ours(5, x), backend="python")(jg.tensor(x)).numpy(), ours(5, x).numpy())
    assert ours(3, np.arange(3)).dtype == np.float64 and ours(3, jg.ones(2)).dtype == np.float32
    assert ours(-1, x).tolist() == [0.0] * 24
    with pytest.raises(ArgumentError, match=r"a degree is an integer, got \[0\.5\]"):
        ours(0.5, x)


def test_gradients_of_compositions():
    x = np.array([-0.7, 0.1, 0.6])
    check_grads(lambda x: special.chebyshev_polynomial_t(x, 4) * special.chebyshev_polynomial_u(x, 3), [x], order=2)
    check_grads(lambda x: special.chebyshev_polynomial_v(x, 4) * special.chebyshev_polynomial_w(x, 3), [x], order=2)
    check_grads(special.ellipk, [x], order=2)
    check_grads(special.ellipe, [x], order=2)
    check_grads(special.spherical_bessel_j0, [np.array([-3.0, 1e-4, 0.2])], order=2)
    check_grads(lambda d, r: special.huber(d, r) + special.pseudo_huber(d, r), [np.array([0.5, 2.0]), np.array([-3.0, 0.4])])


def test_spherical_bessel_at_edges():
    found = special.spherical_bessel_j0(jg.tensor([0.0, 5e-4, 2.0, INF, NAN], dtype=np.float64)).numpy()

    assert_same(found, np.array([1.0, math.sin(5e-4) / 5e-4, math.sin(2.0) / 2.0, 0.0, NAN]), 1e-15)


@pytest.mark.parametrize("order", range(5))
def test_polygamma_is_scipys(order):
    scipy = pytest.importorskip("scipy.special")
    x = POINTS[np.abs(POINTS) < 100]

    assert_same(special.polygamma(order, x).numpy(), scipy.polygamma(order, x), 1e-10)


@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        ("gammaln", [0.0, -1.0, INF, 1.0, 2.0, 3.0], [INF, INF, INF, 0.0, 0.0, math.log(2.0)]),
        ("gamma", [0.0, -0.0, -1.0, INF, -INF, 5.0, -0.5], [INF, -INF, NAN, INF, NAN, 24.0, -2 * math.sqrt(math.pi)]),
        ("digamma", [0.0, -0.0, -1.0, INF, -INF, 1.0], [-INF, INF, NAN, INF, NAN, -0.5772156649015329]),
        ("erfinv", [-1.0, 1.0, 1.1, 0.0], [-INF, INF, NAN, 0.0]),
        ("erfcinv", [0.0, 2.0, -0.1, 2.1, 1.0], [INF, -INF, NAN, NAN, 0.0]),
        ("ndtr", [-INF, INF, 0.0], [0.0, 1.0, 0.5]),
        ("ndtri", [0.0, 1.0, -0.1, 1.1, 0.5], [-INF, INF, NAN, NAN, 0.0]),
        ("log_ndtr", [-INF, INF, 0.0, -1e10], [-INF, 0.0, -math.log(2.0), -5e19]),
        ("logit", [0.0, 1.0, 0.5, 2.0], [-INF, INF, 0.0, NAN]),
        ("i0", [0.0, INF, -INF], [1.0, INF, INF]),
        ("i1", [0.0, INF, -INF], [0.0, INF, -INF]),
        ("i0e", [0.0, INF, -INF], [1.0, 0.0, 0.0]),
        ("exprel", [0.0, INF, -INF, 1e-20], [1.0, INF, 0.0, 1.0]),
        ("entr", [0.0, 1.0, -1.0], [0.0, 0.0, -INF]),
        ("factorial", [0.0, 5.0, -1.0, NAN], [1.0, 120.0, 0.0, NAN]),
        ("gammasgn", [1.0, -0.5, -1.5, -1.0, NAN], [1.0, -1.0, 1.0, NAN, NAN]),
    ],
)
def test_edges(name, x, expected):
    found = getattr(special, name)(np.array(x)).numpy()

    assert_same(found, np.array(expected), 1e-15)


def test_gammaln_keeps_its_digits_near_its_zeros():
    x = np.array([1 + 2.0**-40, 1 - 2.0**-40, 2 + 2.0**-40, 2 - 2.0**-40])
    with mp.workprec(150):
        expected = [float(mp.loggamma(mp.mpf(v))) for v in x.tolist()]

    np.testing.assert_allclose(special.gammaln(x).numpy(), expected, rtol=5e-16)


@pytest.mark.parametrize(("a", "b"), [(2e5, 1.5), (171.0, 0.73), (1e10, 2.0), (3.5, 1e15), (0.5, 0.5), (12.0, 11.0)])
def test_betaln_of_large_arguments_does_not_cancel(a, b):
    with mp.workprec(150):
        expected = float(mp.log(mp.beta(mp.mpf(a), mp.mpf(b))))

    np.testing.assert_allclose(special.betaln(np.float64(a), b).item(), expected, rtol=2e-15)


@pytest.mark.parametrize("order", [2, 3, 6])
def test_polygamma_below_zero(order):
    x = np.array([-0.3, -1.5, -2.75])
    with mp.workprec(150):
        expected = [float(mp.psi(order, mp.mpf(v))) for v in x.tolist()]

    np.testing.assert_allclose(special.polygamma(order, x).numpy(), expected, rtol=1e-12)
    check_grads(lambda x: special.polygamma(order, x), [x], order=1, rtol=1e-5)


@pytest.mark.parametrize("name", ["gammaln", "digamma", "gamma", "entr", "rgamma", "factorial", "log_expit"])
def test_gradients_of_first_and_second_order(name):
    check_grads(getattr(special, name), [np.array([0.4, 1.3, 2.6, 11.0 if name != "gamma" else 3.5])])


@pytest.mark.parametrize("name", ["gammaln", "digamma", "gamma"])
def test_gradients_below_zero(name):
    check_grads(getattr(special, name), [np.array([-0.4, -1.3, -2.6])], order=1, rtol=1e-5)


@pytest.mark.parametrize("name", ["betaln", "beta", "rel_entr", "kl_div", "poch", "comb"])
def test_gradients_of_two_operands(name):
    a, b = np.array([0.7, 2.5, 13.0, 40.0]), np.array([1.5, 0.6, 12.5, 1.5])

    check_grads(getattr(special, name), [a + 3.0, b] if name == "comb" else [a, b], order=2, rtol=1e-5)


@pytest.mark.parametrize(("function", "y"), [(special.xlogy, 0.0), (special.xlog1py, -1.0)])
def test_products_with_logarithms_are_zero_with_finite_gradients_where_the_factor_is(function, y):
    x, y = np.zeros(2), np.array([y, 3.0])
    first, second = jg.grad(lambda x, y: function(x, y).sum(), argnums=(0, 1))(jg.tensor(x), jg.tensor(y))

    assert (function(x, y).numpy() == 0).all()
    assert np.isfinite(first.numpy()).all()
    assert (second.numpy() == 0).all()


def test_slopes_of_log_ndtr_far_to_the_left():
    x = jg.tensor([-1e6, -50.0, 0.0, 40.0], dtype=jg.float64)
    slope = jg.grad(lambda x: special.log_ndtr(x).sum())(x).numpy()

    np.testing.assert_allclose(slope[:3], [1e6, 50.01998404, 0.7978845608028654], rtol=1e-9)
    assert slope[3] == pytest.approx(0.0)


def test_slopes_at_the_centre():
    x = jg.tensor([0.0], dtype=jg.float64)

    for function, slope in ((special.i1, 0.5), (special.i1e, 0.5), (special.i0, 0.0), (special.exprel, 0.5)):
        assert jg.grad(lambda x, f=function: f(x).sum())(x).item() == slope


def test_fused_equals_eager():
    def density(x, a, b):
        y = special.expit(0.2 * x)
        return special.xlogy(a - 1, y) + special.xlog1py(b - 1, -y) - special.betaln(a, b) + special.log_ndtr(x)

    def program(x, a, b):
        return jg.value_and_grad(lambda *xs: density(*xs).sum(), argnums=(0, 1, 2))(x, a, b)

    for dtype in (jg.float32, jg.float64):
        x, a, b = (jg.tensor(rng.uniform(0.5, 20, 1000), dtype=dtype) for _ in range(3))
        fused, eager = jg.jit(program, check="off")(x, a, b), program(x, a, b)
        for got, want in zip([fused[0], *fused[1]], [eager[0], *eager[1]], strict=True):
            assert got.dtype == want.dtype == dtype
            scale = np.abs(want.numpy()).max() + 1
            np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-4 if dtype == jg.float32 else 1e-12, atol=1e-7 * scale)


@pytest.mark.parametrize("name", [*UNARY, *BINARY, "gammasgn", "comb", "poch"])
def test_float32_stays(name):
    x = jg.tensor([0.3, 0.6], dtype=jg.float32)

    assert getattr(special, name)(*[x] * (1 if name in UNARY or name == "gammasgn" else 2)).dtype == jg.float32


def test_logsumexp_with_weights():
    a, b = rng.normal(0, 300, (3, 4)), rng.uniform(0.1, 2, (3, 4))
    b[0, 1] = 0.0
    a[0, 1] = 1e5
    with np.errstate(all="ignore"):
        shift = np.where(b > 0, a, -INF).max(axis=1, keepdims=True)
        expected = np.log((b * np.exp(np.where(b > 0, a, -INF) - shift)).sum(axis=1)) + shift[:, 0]

    np.testing.assert_allclose(special.logsumexp(a, axis=1, b=b).numpy(), expected, rtol=1e-13)
    assert special.logsumexp(a, axis=1, b=b, keepdims=True).shape == (3, 1)
    slopes = jg.grad(lambda a: special.logsumexp(a, b=b))(jg.tensor(a)).numpy()
    assert slopes.sum() == pytest.approx(1.0)
    assert slopes[0, 1] == 0.0


@pytest.mark.parametrize(("function", "limits"), [(special.gammainc, (0.0, 1.0)), (special.gammaincc, (1.0, 0.0))])
def test_edges_of_the_incomplete_gamma_functions(function, limits):
    a = np.array([2.0, 2.0, 0.0, INF, 0.0, -1.0, 1.0, NAN])
    x = np.array([0.0, INF, 1.0, 1.0, 0.0, 1.0, -1.0, 1.0])
    low, high = limits

    assert_same(function(a, x).numpy(), np.array([low, high, high, low, NAN, NAN, NAN, NAN]))


@pytest.mark.parametrize("function", [special.gammainc, special.gammaincc])
def test_gradients_of_the_incomplete_gamma_functions(function):
    x = np.array([0.3, 1.7, 6.0, 24.0])
    check_grads(lambda x: function(np.array([0.4, 2.5, 5.0, 25.0]), x), [x], rtol=1e-5)

    with pytest.raises(AutogradError, match=r"no gradient with respect to their shape parameters .* a\.detach\(\)"):
        jg.grad(lambda a: function(a, x).sum())(jg.tensor(x))


@pytest.mark.parametrize(("function", "high"), [(special.betainc, 1.0), (special.betaincc, 0.0)])
def test_edges_of_the_incomplete_beta_function(function, high):
    a = np.array([2.0, 2.0, 0.0, 2.0, 0.0, INF, 2.0, -1.0, 1.0, NAN])
    b = np.array([3.0, 3.0, 2.0, 0.0, 0.0, 2.0, INF, 1.0, 1.0, 1.0])
    x = np.array([0.0, 1.0, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 1.5, 0.5])

    assert_same(function(a, b, x).numpy(), np.array([1 - high, high, high, 1 - high, NAN, 1 - high, high, NAN, NAN, NAN]))


def test_the_incomplete_beta_function():
    a, b = np.exp(rng.uniform(-3, 7, 40)), np.exp(rng.uniform(-3, 7, 40))
    x = np.clip(a / (a + b) + rng.normal(0, 1, 40) / (a + b), 0.01, 0.99)
    with mp.workprec(200):
        rows = [map(mp.mpf, row) for row in zip(a.tolist(), b.tolist(), x.tolist(), strict=True)]
        expected = [float(mp.betainc(p, q, 0, v, regularized=True)) for p, q, v in rows]

    np.testing.assert_allclose(special.betainc(a, b, x).numpy(), expected, rtol=1e-12)
    np.testing.assert_allclose(special.betaincc(b, a, 1 - x).numpy(), expected, rtol=1e-11)
    assert special.betainc(a.astype(np.float32), b.astype(np.float32), x.astype(np.float32)).dtype == jg.float32


@pytest.mark.parametrize("function", [special.betainc, special.betaincc])
def test_gradients_of_the_incomplete_beta_function(function):
    a, b, x = np.array([0.7, 2.5, 30.0]), np.array([1.5, 0.6, 20.0]), np.array([0.3, 0.7, 0.55])
    check_grads(lambda x: function(a, b, x), [x], rtol=1e-5)

    with pytest.raises(AutogradError, match="shape parameters"):
        jg.grad(lambda a: function(a, b, x).sum())(jg.tensor(a))
    compiled = jg.jit(jg.value_and_grad(lambda x: (function(a, b, x) * 2.0).sum()))
    slope = jg.grad(lambda x: function(a, b, x).sum())(jg.tensor(x)).numpy()
    np.testing.assert_allclose(compiled(jg.tensor(x))[1].numpy(), 2 * slope, rtol=1e-12)


@pytest.mark.parametrize("dtype", [jg.float32, jg.float64])
def test_the_incomplete_gamma_functions_fuse(dtype):
    a, x = (jg.tensor(rng.uniform(0.1, 60, 1000), dtype=dtype) for _ in range(2))

    def program(a, x):
        return special.gammainc(a, x) * 2 + special.gammaincc(a, x)

    compiled = jg.jit(program)
    np.testing.assert_allclose(compiled(a, x).numpy(), program(a, x).numpy(), rtol=1e-6 if dtype == jg.float32 else 1e-13)
    assert len(compiled.kernels(a, x)) == 1


def test_logsumexp_of_a_negative_sum():
    value, sign = special.logsumexp(np.array([0.0, 1.0]), b=np.array([1.0, -1.0]), return_sign=True)

    assert (value.item(), sign.item()) == (pytest.approx(math.log(math.e - 1)), -1.0)
    assert math.isnan(special.logsumexp(np.array([0.0, 1.0]), b=np.array([1.0, -1.0])).item())


def test_softmax_is_over_all_elements_unless_an_axis_is_given():
    x = rng.normal(0, 1, (2, 3))

    assert special.softmax(x).numpy().sum() == pytest.approx(1.0)
    np.testing.assert_allclose(special.softmax(x, axis=1).numpy().sum(axis=1), 1.0)
    np.testing.assert_allclose(np.exp(special.log_softmax(x).numpy()), special.softmax(x).numpy())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: special.polygamma(0.5, 1.0), "Python int from 0 to 170, got 0.5"),
        (lambda: special.factorial(3, exact=True), r"math\.factorial"),
        (lambda: special.comb(3, 2, exact=True), r"math\.comb"),
        (lambda: special.multigammaln(3.0, 0), "positive Python int, got 0"),
    ],
)
def test_errors_say_what_to_do(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()


def test_missing_names_say_what_to_do():
    with pytest.raises(AttributeError, match=r"no 'loggamma'; use gammaln"):
        _ = special.loggamma
    with pytest.raises(AttributeError, match=r"no 'nonsense'; compose it"):
        _ = special.nonsense


def test_other_functions_are_scipys_own_without_gradients():
    own = pytest.importorskip("scipy.special")
    x = np.array([1.0, 2.0])

    found = special.jve(0.5, jg.tensor(x))

    assert isinstance(found, jg.Tensor)
    np.testing.assert_array_equal(found.numpy(), own.jve(0.5, x))
    np.testing.assert_array_equal(special.jve(0.5, x), own.jve(0.5, x))
    with pytest.raises(AutogradError, match=r"jve is SciPy's own.*custom_op\(forward=scipy.special.jve"):
        special.jve(0.5, jg.tensor(x, requires_grad=True))
    with pytest.raises(jg.errors.TracedValueError):
        jg.jit(lambda x: special.jve(0.5, x))(jg.tensor(x))


def test_scipy_is_not_imported():
    code = "import sys, jitgrad.scipy.special; sys.exit('scipy' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
