"""``import jitgrad.jax as jax``: jax.nn's functions and defaults, and random numbers that are functions of a key."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad import jax as ours
from jitgrad.testing import check_grads

X = np.array([[0.3, -1.7, 2.5, 0.05], [0.9, 30.0, -30.0, -0.2]])  # not where slopes change
MASK = np.array([[True, False, True, True], [True, True, False, True]])
NN: dict[str, Any] = {
    **{name: (lambda nn, x, name=name: getattr(nn, name)(x)) for name in (
        "relu relu6 sigmoid softplus soft_sign silu swish log_sigmoid leaky_relu hard_sigmoid hard_silu hard_swish hard_tanh "
        "elu celu selu gelu glu squareplus mish softmax log_softmax logsumexp standardize tanh"
    ).split()},
    "exact gelu": lambda nn, x: nn.gelu(x, approximate=False),
    "softmax along": lambda nn, x: nn.softmax(x, axis=0),
    "softmax where": lambda nn, x: nn.softmax(x, where=MASK),
    "slope": lambda nn, x: nn.leaky_relu(x, negative_slope=0.3),
    "one_hot": lambda nn, x: nn.one_hot(np.array([[0, 2], [-1, 3]]), 3) * x[0, 0],
    "one_hot along": lambda nn, x: nn.one_hot(np.array([0, 2, 1]), 3, axis=0) * x[0, 0],
}  # fmt: skip


@pytest.fixture(scope="module")
def jax() -> Any:
    module = pytest.importorskip("jax")
    before = module.config.jax_enable_x64
    module.config.update("jax_enable_x64", True)
    yield module
    module.config.update("jax_enable_x64", before)


@pytest.mark.peers
@pytest.mark.parametrize("name", NN)
def test_nn_is_that_of_jax(name: str, jax: Any) -> None:
    call = NN[name]
    weights = np.cos(np.arange(60.0))

    def total(numbers: Any, nn: Any) -> Any:
        def f(x: Any) -> Any:
            out = call(nn, x)
            return (numbers.where(numbers.isinf(out), 0.0, out) * weights[: out.size].reshape(out.shape)).sum()

        return f

    value, slope = jax.value_and_grad(total(jax.numpy, jax.nn))(X)
    for wrap in (lambda f: f, jg.jit):
        found, gradient = wrap(jg.value_and_grad(total(jg.numpy, ours.nn)))(jg.tensor(X))
        np.testing.assert_allclose(found.item(), value, rtol=1e-6)
        np.testing.assert_allclose(gradient.numpy(), slope, rtol=1e-6, atol=1e-9)


random, KEY = ours.random, ours.random.key(3)
N = 8_000
MOMENTS: dict[str, tuple[Any, float, float]] = {  # mean and standard deviation
    "normal": (lambda k: random.normal(k, (N,)), 0.0, 1.0),
    "uniform": (lambda k: random.uniform(k, (N,), minval=-1.0, maxval=3.0), 1.0, 4 / 12**0.5),
    "bernoulli": (lambda k: random.bernoulli(k, 0.3, (N,)), 0.3, 0.21**0.5),
    "randint": (lambda k: random.randint(k, (N,), 2, 6), 3.5, 1.25**0.5),
    "exponential": (lambda k: random.exponential(k, (N,)), 1.0, 1.0),
    "gumbel": (lambda k: random.gumbel(k, (N,)), 0.5772, 1.2825),
    "laplace": (lambda k: random.laplace(k, (N,)), 0.0, 2**0.5),
    "logistic": (lambda k: random.logistic(k, (N,)), 0.0, 1.8138),
    "truncated normal": (lambda k: random.truncated_normal(k, -2.0, 2.0, (N,)), 0.0, 0.8796),
    "rademacher": (lambda k: random.rademacher(k, (N,)), 0.0, 1.0),
    "gamma": (lambda k: random.gamma(k, 4.0, (N,)), 4.0, 2.0),
    "categorical": (lambda k: random.categorical(k, np.log([0.2, 0.3, 0.5]), shape=(N,)), 1.3, 0.61**0.5),
    "choice": (lambda k: random.choice(k, np.array([1.0, 5.0]), (N,), p=np.array([0.75, 0.25])), 2.0, 3**0.5),
    "multivariate normal": (lambda k: random.multivariate_normal(k, np.ones(2), 4 * np.eye(2), (N,)), 1.0, 2.0),
}


@pytest.mark.parametrize("name", MOMENTS)
def test_draws_have_their_moments_and_depend_on_the_key_alone(name: str) -> None:
    draw, mean, spread = MOMENTS[name]
    numbers = draw(KEY).numpy().astype(np.float64)
    assert abs(numbers.mean() - mean) < 5 * spread / N**0.5
    assert abs(numbers.std() / spread - 1.0) < 0.05
    jg.randn(3)  # another stream
    np.testing.assert_array_equal(draw(KEY).numpy(), numbers)
    np.testing.assert_allclose(ours.jit(draw)(KEY).numpy(), numbers, rtol=1e-5, atol=1e-5)
    assert (draw(random.key(4)).numpy() != numbers).any()


def test_new_keys_are_all_different_and_give_other_numbers() -> None:
    keys = [KEY, *random.split(KEY, 5), *random.split(random.split(KEY)[0]), *(random.fold_in(KEY, k) for k in range(4))]
    draws = {float(random.normal(k).item()) for k in keys}
    assert len(draws) == len(keys)
    assert random.split(KEY, (2, 3)).shape == (2, 3, 2)
    assert random.fold_in(KEY, 2).tolist() == keys[10].tolist()
    np.testing.assert_array_equal(random.PRNGKey(-1).numpy(), random.key(2**64 - 1).numpy())


def test_vmap_over_keys_is_a_loop_over_keys() -> None:
    keys = random.split(KEY, 4)
    each = ours.vmap(lambda k: random.normal(k, (3,)))(keys)
    np.testing.assert_allclose(each.numpy(), np.stack([random.normal(k, (3,)).numpy() for k in keys]), rtol=1e-6)


def test_orders_and_choices() -> None:
    assert sorted(random.permutation(KEY, 10).tolist()) == list(range(10))
    assert sorted(random.permutation(KEY, X.T)[:, 0].tolist()) == sorted(X[0].tolist())
    assert len(set(random.choice(KEY, 6, (4,), replace=False).tolist())) == 4
    assert len(set(random.choice(KEY, 3, (2,), replace=False, p=np.array([0.5, 0.5, 0.0])).tolist())) == 2
    with pytest.raises(jg.errors.ArgumentError, match="7 of 6"):
        random.choice(KEY, 6, (7,), replace=False)
    with pytest.raises(jg.errors.ArgumentError, match=r"jax\.random\.key"):
        random.normal(np.zeros(2), (3,))
    assert random.dirichlet(KEY, np.ones(3), (5,)).sum(axis=-1).tolist() == pytest.approx([1.0] * 5)


@pytest.mark.parametrize("name", ["glorot_normal", "glorot_uniform", "he_normal", "he_uniform", "lecun_normal", "lecun_uniform"])
def test_initialisers_have_the_spread_of_jax(name: str, jax: Any) -> None:
    shape = (3, 3, 20, 40)
    made = getattr(ours.nn.initializers, name)()(KEY, shape)
    theirs = getattr(jax.nn.initializers, name)()(jax.random.key(0), shape)
    assert made.dtype == jg.float32
    assert float(made.numpy().std()) == pytest.approx(float(theirs.std()), rel=0.04)
    assert float(abs(made.numpy()).max()) == pytest.approx(float(abs(theirs).max()), rel=0.05)
    with pytest.raises(jg.errors.ShapeError, match="two axes"):
        getattr(ours.nn.initializers, name)()(KEY, (3,))


def test_gradients_flow_through_draws() -> None:
    check_grads(lambda scale: random.normal(KEY, (4,), jg.float64) * scale, [np.array(2.0)], rtol=1e-5)
    shape = jg.tensor(2.0, requires_grad=True)
    random.gamma(KEY, shape, (5,)).sum().backward()
    assert shape.grad is not None and shape.grad.item() > 0.0


def test_jit_takes_jaxs_arguments() -> None:
    power = ours.jit(lambda x, n: x**n, static_argnums=1)
    assert power(jg.tensor(3.0), 2).item() == 9.0
    step = ours.jit(donate_argnums=(0,), static_argnames="scale")(lambda x, scale: x * scale)
    assert step(jg.ones(3), scale=2).tolist() == [2.0, 2.0, 2.0]


def test_modules_are_those_of_jitgrad() -> None:
    for name in ("numpy", "lax", "tree_util", "flatten_util", "scipy.special", "numpy.linalg"):
        assert importlib.import_module(f"jitgrad.jax.{name}") is importlib.import_module(f"jitgrad.{name}")
    with pytest.raises(AttributeError, match="custom_vjp"):
        _ = ours.custom_gradient  # type: ignore[attr-defined]
