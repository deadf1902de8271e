"""jitgrad.scipy.stats: SciPy's values where it is installed, normalisation, gradients, kernels, errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import ArgumentError, ShapeError
from jitgrad.scipy import stats
from jitgrad.testing import check_grads

rng = np.random.default_rng(4)
CONTINUOUS: dict[str, tuple[float, ...]] = {
    "norm": (), "t": (3.5,), "gamma": (2.5,), "chi2": (3.0,), "beta": (1.5, 2.5), "expon": (), "uniform": (),
    "laplace": (), "logistic": (), "cauchy": (), "lognorm": (0.7,), "halfnorm": (), "weibull_min": (1.7,),
    "pareto": (2.5,), "invgamma": (2.5,), "gumbel_r": (),
}  # fmt: skip
DISCRETE: dict[str, tuple[float, ...]] = {
    "poisson": (2.5,), "bernoulli": (0.3,), "binom": (9, 0.4), "geom": (0.3,),
    "nbinom": (2.5, 0.4),
}  # fmt: skip
METHODS = "logpdf pdf cdf logcdf sf logsf".split()
POINTS = np.concatenate([rng.normal(0, 2, 60), rng.uniform(0, 1, 60), [0.0, 1.0, -1.0, 40.0, -40.0, math.nan]])


FINITE_HERE = {("halfnorm", "logsf")}  # SciPy's is -inf from 38 on


def has(name: str, method: str) -> bool:
    family = getattr(stats, name)
    fields = {"cdf": "distribution", "logcdf": "log_distribution", "sf": "survival", "logsf": "log_survival", "ppf": "quantile"}
    return method not in fields or getattr(family, fields[method]) is not None


def comparable(name: str, method: str) -> bool:
    return has(name, method) and (name, method) not in FINITE_HERE


def assert_scipys(found: Any, expected: Any, atol: float = 1e-300) -> None:
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-11, atol=atol)


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize(("name", "method"), [(n, m) for n in CONTINUOUS for m in METHODS if comparable(n, m)])
def test_continuous_values_are_scipys(name, method):
    scipy = pytest.importorskip("scipy.stats")
    shapes = CONTINUOUS[name]
    ours, theirs = getattr(getattr(stats, name), method), getattr(getattr(scipy, name), method)

    # SciPy's logarithms of probabilities near 1 are those of rounded ones
    atol = 1e-15 if name in ("gamma", "chi2", "cauchy", "beta", "t", "invgamma", "halfnorm") else 1e-300

    assert_scipys(ours(POINTS, *shapes), theirs(POINTS, *shapes), atol)
    assert_scipys(ours(POINTS, *shapes, 0.5, 2.0), theirs(POINTS, *shapes, 0.5, 2.0), atol)
    assert_scipys(ours(POINTS, *shapes, scale=3.0), theirs(POINTS, *shapes, scale=3.0), atol)


BISECTED = ("t", "gamma", "chi2", "beta")


@pytest.mark.parametrize("name", [n for n in CONTINUOUS if has(n, "ppf")])
def test_quantiles_are_scipys(name):
    scipy = pytest.importorskip("scipy.stats")
    q = np.array([0.0, 1e-10, 0.1, 0.5, 0.9, 1.0, -0.1, 1.1, math.nan])
    q = q[1:5] if name == "cauchy" else q
    shapes = CONTINUOUS[name]
    ours, theirs = getattr(stats, name), getattr(scipy, name)

    expected = theirs.ppf(q, *shapes, 0.5, 2.0)
    np.testing.assert_allclose(
        ours.ppf(q, *shapes, 0.5, 2.0).numpy(), expected, rtol=1e-11 if name in BISECTED else 1e-13, atol=1e-15
    )
    frozen = ours(*shapes)
    np.testing.assert_allclose(frozen.isf(0.3).item(), theirs.isf(0.3, *shapes), rtol=1e-12)
    np.testing.assert_allclose([x.item() for x in frozen.interval(0.9)], theirs.interval(0.9, *shapes), rtol=1e-12)
    np.testing.assert_allclose(frozen.median().item(), theirs.median(*shapes), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", BISECTED)
@pytest.mark.parametrize("factor", [0.1, 1.0, 30.0])
def test_bisected_quantiles_invert_the_distribution_function(name, factor):
    shapes = [factor * shape for shape in CONTINUOUS[name]]
    family, q = getattr(stats, name), np.array([1e-10, 1e-3, 0.2, 0.5, 0.7, 0.999])
    x = family.ppf(q, *shapes)
    np.testing.assert_allclose(family.cdf(x, *shapes).numpy(), q, rtol=1e-11 if name != "beta" else 1e-9)
    compiled = jg.jit(lambda q: family.ppf(q, *shapes))(jg.tensor(q))
    assert compiled.tolist() == x.tolist()


@pytest.mark.parametrize("name", BISECTED)
def test_gradient_of_bisected_quantiles(name):
    shapes = CONTINUOUS[name]
    check_grads(lambda q: getattr(stats, name).ppf(q, *shapes), [np.array([0.2, 0.8])], rtol=1e-4)
    assert getattr(stats, name).ppf(np.float32([0.2, 0.9]), *shapes).dtype == jg.float32
    assert getattr(stats, name).ppf(np.zeros((0, 3)), *shapes).shape == (0, 3)


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_values_are_scipys(name):
    scipy = pytest.importorskip("scipy.stats")
    k = np.array([-1.0, 0.0, 1.0, 2.0, 3.0, 9.0, 10.0, 0.5, math.nan])
    shapes = DISCRETE[name]

    for method in ("logpmf", "pmf"):
        assert_scipys(getattr(getattr(stats, name), method)(k, *shapes), getattr(getattr(scipy, name), method)(k, *shapes))
        with_loc = getattr(getattr(scipy, name), method)(k, *shapes, loc=1)
        assert_scipys(getattr(getattr(stats, name), method)(k, *shapes, loc=1), with_loc)


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize(("name", "method"), [(n, m) for n in DISCRETE for m in METHODS[2:] if has(n, m)])
def test_discrete_distribution_functions_are_scipys(name, method):
    scipy = pytest.importorskip("scipy.stats")
    k = np.array([-1.0, 0.0, 1.0, 2.5, 3.0, 9.0, 40.0, math.nan])

    found, expected = (getattr(getattr(module, name), method)(k, *DISCRETE[name]) for module in (stats, scipy))
    assert_scipys(found, expected, 1e-15)


@pytest.mark.parametrize("shape", [(3,), (2,), (3, 5), (2, 5)])
def test_dirichlet_is_scipys(shape):
    scipy = pytest.importorskip("scipy.stats")
    alpha = np.array([0.5, 2.0, 3.5])
    x = rng.dirichlet(alpha, shape[1:]).T if len(shape) > 1 else rng.dirichlet(alpha)
    x = x[: shape[0]]

    assert_scipys(stats.dirichlet.logpdf(x, alpha), scipy.dirichlet.logpdf(x, alpha))
    assert_scipys(stats.dirichlet.pdf(x, alpha), scipy.dirichlet.pdf(x, alpha))


MATRIX = np.array([[2.0, 0.3, 0.1], [0.3, 1.5, -0.2], [0.1, -0.2, 0.7]])
VECTOR = np.array([0.5, -1.0, 2.0])


@pytest.mark.parametrize(
    ("shape", "mean", "cov"),
    [
        ((3,), VECTOR, MATRIX), ((5, 3), VECTOR, MATRIX), ((2, 5, 3), None, MATRIX), ((5, 3), VECTOR, 2.0),
        ((5, 3), VECTOR, np.array([1.0, 2.0, 3.0])), ((5,), None, 2.0), ((), None, 1), ((5, 3), VECTOR, 1),
    ],
)  # fmt: skip
def test_multivariate_normal_is_scipys(shape, mean, cov):
    scipy = pytest.importorskip("scipy.stats")
    x = rng.normal(0, 1, shape)

    assert_scipys(stats.multivariate_normal.logpdf(x, mean, cov), scipy.multivariate_normal.logpdf(x, mean, cov))
    assert_scipys(stats.multivariate_normal.pdf(x, mean, cov), scipy.multivariate_normal.pdf(x, mean, cov))


def test_one_vector_of_one_element_has_one_density():
    assert stats.multivariate_normal.logpdf(np.array([0.3]), np.zeros(1), np.eye(1)).shape == ()


def test_gradients_of_multivariate_normal():
    def density(x, mean, factor):
        return stats.multivariate_normal.logpdf(x, mean, factor @ factor.T)

    check_grads(density, [rng.normal(0, 1, (4, 3)), VECTOR, np.linalg.cholesky(MATRIX)], rtol=1e-5)


def test_multivariate_normal_compiled():
    x, mean, cov = jg.tensor(rng.normal(0, 1, (40, 3))), jg.tensor(VECTOR), jg.tensor(MATRIX)
    program = jg.value_and_grad(lambda m, c: stats.multivariate_normal.logpdf(x, m, c).sum(), argnums=(0, 1))
    fused, eager = jg.jit(program)(mean, cov), program(mean, cov)

    np.testing.assert_allclose(fused[0].item(), eager[0].item(), rtol=1e-12)
    np.testing.assert_allclose(fused[1][1].numpy(), eager[1][1].numpy(), rtol=1e-10, atol=1e-12)
    assert stats.multivariate_normal.logpdf(jg.rand(4, 3), jg.rand(3)).dtype == jg.float32


def test_multinomial_is_scipys():
    scipy = pytest.importorskip("scipy.stats")
    x, p = np.array([[3, 1, 0], [2, 2, 0], [0, 0, 4], [1, 1, 1]]), np.array([0.5, 0.3, 0.2])

    assert_scipys(stats.multinomial.logpmf(x, 4, p), scipy.multinomial.logpmf(x, 4, p))
    check_grads(lambda p: stats.multinomial.logpmf(x[:3], 4, p), [p])


@pytest.mark.parametrize("name", ["gamma", "beta", "t", "logistic", "chi2"])
def test_densities_integrate_to_one(name):
    x = np.linspace(0 if name in ("gamma", "beta", "chi2") else -400, 1 if name == "beta" else 400, 800_001)
    y = getattr(stats, name).pdf(x, *CONTINUOUS[name]).numpy()

    assert ((y[1:] + y[:-1]) / 2 * np.diff(x)).sum() == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_gradients_of_continuous_log_densities(name):
    x = rng.uniform(0.1, 0.9, 5) + (2.0 if name == "pareto" else 0.0)
    parameters = [np.full(5, p) for p in (*CONTINUOUS[name], -0.05, 1.5)]

    check_grads(lambda *xs: getattr(stats, name).logpdf(*xs), [x, *parameters], rtol=1e-5)


@pytest.mark.parametrize(("name", "method"), [(n, m) for n in CONTINUOUS for m in ("cdf", "logcdf", "logsf") if has(n, m)])
def test_gradients_of_distribution_functions(name, method):
    function = getattr(getattr(stats, name), method)

    x = rng.uniform(0.1, 0.9, 5) + (2.0 if name == "pareto" else 0.0)

    check_grads(lambda x: function(x, *CONTINUOUS[name]), [x], rtol=1e-5)


@pytest.mark.parametrize("name", DISCRETE)
def test_gradients_of_discrete_log_densities(name):
    k = np.array([0, 1, 1] if name != "geom" else [1, 2, 3])
    *fixed, p = DISCRETE[name]

    check_grads(lambda p: getattr(stats, name).logpmf(k, *fixed, p), [np.full(3, p)])


def test_gradients_of_dirichlet():
    alpha = np.array([0.5, 2.0, 3.5])

    x = rng.uniform(0.2, 0.4, (3, 4))

    check_grads(stats.dirichlet.logpdf, [x, alpha])


@pytest.mark.parametrize("name", ["gamma", "beta", "expon", "uniform"])
def test_outside_of_the_support_the_gradient_is_zero(name):
    x = jg.tensor([-2.0, 5.0 if name in ("beta", "uniform") else -1.0], dtype=jg.float64)
    shapes = [jg.tensor(p, dtype=jg.float64) for p in CONTINUOUS[name]]
    slopes = jg.grad(lambda x, *s: getattr(stats, name).pdf(x, *s).sum(), argnums=tuple(range(1 + len(shapes))))(x, *shapes)

    assert all((slope.numpy() == 0).all() for slope in slopes)
    assert (getattr(stats, name).logpdf(x, *shapes).numpy() == -math.inf).all()


def test_parameters_that_do_not_exist_give_nan():
    assert math.isnan(stats.gamma.logpdf(np.float64(1.0), -1.0).item())
    assert math.isnan(stats.norm.logpdf(np.float64(1.0), 0.0, -1.0).item())
    assert math.isnan(stats.binom.logpmf(np.float64(1.0), 2.5, 0.5).item())


def test_a_likelihood_is_one_kernel():
    def loss(x, loc, scale, df):
        return -stats.t.logpdf(x, df, loc, scale).sum()

    def step(x, loc, scale, df):
        return jg.value_and_grad(loss, argnums=(1, 2, 3))(x, loc, scale, df)

    x = jg.tensor(rng.normal(0, 1, 2000), dtype=jg.float64)
    parameters = [jg.tensor(v, dtype=jg.float64) for v in (0.1, 1.3, 4.0)]
    fused, eager = jg.jit(step)(x, *parameters), step(x, *parameters)

    assert fused[0].item() == pytest.approx(eager[0].item(), rel=1e-12)
    np.testing.assert_allclose([g.item() for g in fused[1]], [g.item() for g in eager[1]], rtol=1e-10)


def test_operands_broadcast_and_keep_float32():
    value = stats.gamma.logpdf(jg.rand(3, 1), jg.rand(4) + 1.0, scale=2.0)

    assert value.shape == (3, 4)
    assert value.dtype == jg.float32


def test_a_distribution_with_its_parameters():
    frozen = stats.norm(1.0, scale=2.0)

    assert frozen.logpdf(np.float64(0.3)).item() == stats.norm.logpdf(np.float64(0.3), 1.0, 2.0).item()
    assert frozen.ppf(np.float64(0.5)).item() == 1.0
    assert stats.poisson(2.0).pmf(np.float64(0.0)).item() == pytest.approx(math.exp(-2.0))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: stats.gamma.logpdf(1.0), ArgumentError, r"gamma\.logpdf: the parameter a is missing; it takes a, loc, scale"),
        (lambda: stats.norm.pdf(1.0, mean=2.0), ArgumentError, r"norm\.pdf: takes the parameters loc, scale; .* \['mean'\]"),
        (lambda: stats.norm(0.0, 1.0, 2.0), ArgumentError, "norm: takes the parameters loc, scale; got 3 by position"),
        (lambda: stats.norm.pdf(1.0, 0.0, loc=1.0), ArgumentError, "takes the parameters"),
        (lambda: stats.poisson.logpdf(1.0, 2.0), AttributeError, "poisson has no 'logpdf'; use logpmf"),
        (lambda: stats.norm.pmf(1.0), AttributeError, "norm has no 'pmf'; use pdf"),
        (lambda: stats.invgamma.ppf(0.5, 2.0), AttributeError, r"no 'ppf'.*custom_op\(forward=scipy\.stats\.invgamma\.ppf"),
        (lambda: stats.levi, AttributeError, r"no 'levi'; write its log density with jitgrad\.scipy\.special"),
        (lambda: stats.multivariate_normal.logpdf(np.ones(2), VECTOR, MATRIX), ShapeError, r"x of shape \(2,\) has no vectors"),
        (lambda: stats.multivariate_normal.logpdf(VECTOR, np.ones(2), MATRIX), ShapeError, "a mean of shape .* they must be"),
        (
            lambda: stats.multivariate_normal.logpdf(VECTOR, VECTOR, MATRIX, allow_singular=True),
            ArgumentError,
            "allow_singular=True is not supported; add",
        ),
        (lambda: stats.dirichlet.logpdf(np.ones(5), np.ones(3)), ShapeError, "of as many elements as its first axis"),
    ],
)
def test_errors_say_what_to_do(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_other_names_are_scipys_own() -> None:
    own = pytest.importorskip("scipy.stats")
    from jitgrad.scipy.stats import linregress, skewnorm, zscore

    x, y = jg.tensor([1.0, 2.0, 4.0], dtype=jg.float64), jg.tensor([2.0, 3.0, 7.0], dtype=jg.float64)
    assert linregress(x, y).slope == own.linregress(x.numpy(), y.numpy()).slope
    np.testing.assert_array_equal(zscore(x), own.zscore(x.numpy()))
    assert skewnorm is own.skewnorm
    with pytest.raises(jg.errors.AutogradError, match="detach"):
        zscore(x.requires_grad_())
    with pytest.raises(jg.errors.TracedValueError, match="only being traced"):
        jg.jit(lambda x: zscore(x))(y)
    with pytest.raises(AttributeError, match=r"jitgrad\.scipy\.stats has no 'skewnrom'"):
        _ = stats.skewnrom


def test_far_tail_of_student_t_with_many_degrees_has_its_digits() -> None:
    scipy = pytest.importorskip("scipy.stats")
    z = np.array([-7.0, -5.0, 7.0, -9.9])
    np.testing.assert_allclose(stats.t.cdf(z, 105.0).numpy(), scipy.t.cdf(z, 105.0), rtol=1e-12)
