"""Names of jax that programs use first: settings, devices, trees with paths, registered classes, distributions."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import pytest

import jitgrad as jg
from jitgrad import jax as ours
from jitgrad.core.errors import ArgumentError, ShapeError
from tests.compiled import backend  # noqa: F401 - a fixture

KEY = ours.random.key(5)
COUNT = 20_000
# the mean and the standard deviation of each distribution
FAMILIES: dict[str, tuple[Any, float, float]] = {
    "beta": (lambda r, shape: r.beta(KEY, 2.0, 3.0, shape), 0.4, 0.2),
    "chisquare": (lambda r, shape: r.chisquare(KEY, 3.0, shape), 3.0, 6**0.5),
    "t": (lambda r, shape: r.t(KEY, 8.0, shape), 0.0, (8 / 6) ** 0.5),
    "lognormal": (lambda r, shape: r.lognormal(KEY, 0.5, shape), np.exp(0.125), np.exp(0.125) * np.expm1(0.25) ** 0.5),
    "loggamma": (lambda r, shape: r.loggamma(KEY, 1.0, shape), -0.5772156649, np.pi / 6**0.5),
    "pareto": (lambda r, shape: r.pareto(KEY, 5.0, shape), 1.25, (5 / 48) ** 0.5),
    "weibull_min": (lambda r, shape: r.weibull_min(KEY, 2.0, 1.0, shape), 2.0, 2.0),
    "rayleigh": (lambda r, shape: r.rayleigh(KEY, 2.0, shape), 2 * (np.pi / 2) ** 0.5, 2 * (2 - np.pi / 2) ** 0.5),
    "maxwell": (lambda r, shape: r.maxwell(KEY, shape), 2 * (2 / np.pi) ** 0.5, (3 - 8 / np.pi) ** 0.5),
    "triangular": (lambda r, shape: r.triangular(KEY, -1.0, 0.5, 2.0, shape), 0.5, (6.75 / 18) ** 0.5),
    "geometric": (lambda r, shape: r.geometric(KEY, 0.25, shape), 4.0, 12**0.5),
    "poisson": (lambda r, shape: r.poisson(KEY, 4.0, shape), 4.0, 2.0),
    "binomial": (lambda r, shape: r.binomial(KEY, 10, 0.3, shape), 3.0, 2.1**0.5),
    "ball": (lambda r, shape: r.ball(KEY, 3, shape=shape)[..., 0], 0.0, 5**-0.5),
    "bits": (lambda r, shape: r.bits(KEY, shape) * 2.0**-32, 0.5, 12**-0.5),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_distributions(name: str) -> None:
    draw, mean, deviation = FAMILIES[name]
    found = draw(ours.random, (COUNT,))

    assert found.shape == (COUNT,)
    assert abs(found.numpy().mean() - mean) < 5 * deviation / COUNT**0.5
    assert found.numpy().std() == pytest.approx(deviation, rel=0.08)
    compiled = jg.jit(lambda: draw(ours.random, (50,)))
    np.testing.assert_allclose(compiled().numpy(), draw(ours.random, (50,)).numpy(), rtol=1e-5)


@pytest.mark.peers
@pytest.mark.parametrize("name", FAMILIES)
def test_shapes_and_kinds_of_numbers_are_those_of_jax(name: str) -> None:
    jax = pytest.importorskip("jax")
    draw, _, _ = FAMILIES[name]
    with jax.enable_x64(True):
        expected = draw(_with_key(jax.random), (3, 2))
    found = draw(ours.random, (3, 2))
    assert found.shape == expected.shape
    assert found.dtype.kind == np.dtype(expected.dtype).kind


class _with_key:
    def __init__(self, random: Any) -> None:
        self.random = random

    def __getattr__(self, name: str) -> Any:
        return lambda _key, *args, **kwargs: getattr(self.random, name)(self.random.key(0), *args, **kwargs)


def test_gradients_of_distributions_reach_their_parameters() -> None:
    def mean(a: Any, count: int) -> Any:
        return ours.random.beta(KEY, a, 3.0, (count,), dtype="float64").mean()

    at, slope = jg.tensor(2.0, dtype="float64"), jg.grad(mean)
    assert slope(at, 4000).item() == pytest.approx(3 / 25, rel=0.05)
    assert jg.jit(slope)(at, 20).item() == pytest.approx(slope(at, 20).item(), rel=1e-12)


@pytest.mark.parametrize("size", [(4, 4), (5, 3), (3, 5)])
def test_orthogonal_matrices(size: tuple[int, int]) -> None:
    n, m = size
    assert ours.random.orthogonal(KEY, n, (2,), "float64", m).shape == (2, n, m)
    assert ours.nn.initializers.orthogonal(dtype="float64")(KEY, (2, n, m)).shape == (2, n, m)
    q = ours.random.orthogonal(KEY, n, (), "float64", m)
    product = q.mT @ q if n >= m else q @ q.mT
    np.testing.assert_allclose(product.numpy(), np.eye(min(n, m)), atol=1e-12)
    with pytest.raises(ShapeError, match="two axes"):
        ours.nn.initializers.orthogonal()(KEY, (3,))


def test_truncated_initialiser() -> None:
    x = ours.nn.initializers.truncated_normal(0.5)(KEY, (1000,))
    assert float(abs(x).max()) <= 1.0
    assert x.numpy().std() == pytest.approx(0.5 * 0.8796, rel=0.1)


# --- trees -------------------------------------------------------------------------------------------------------


@ours.tree_util.register_pytree_node_class
class Pair:
    def __init__(self, a: Any, b: Any, name: str = "") -> None:
        self.a, self.b, self.name = a, b, name

    def tree_flatten(self) -> Any:
        return (self.a, self.b), self.name

    @classmethod
    def tree_unflatten(cls, name: str, children: Any) -> Any:
        return cls(*children, name)


@ours.tree_util.register_dataclass
@dataclasses.dataclass
class Layer:
    w: Any
    kind: str = dataclasses.field(default="tanh", metadata={"static": True})


class Named(NamedTuple):
    w: Any
    b: Any


def test_registered_classes_are_pytrees_everywhere() -> None:
    def loss(p: Any, layer: Any) -> Any:
        return (jg.tanh(layer.w) * p.a).sum() + (p.b if p.name == "plus" else -p.b) if layer.kind == "tanh" else layer.w.sum()

    p, layer = Pair(jg.ones(2), jg.tensor(3.0), "plus"), Layer(jg.ones(2))
    compiled = jg.jit(jg.grad(loss, argnums=(0, 1)))
    for f in (jg.grad(loss, argnums=(0, 1)), compiled):
        slope, other = f(p, layer)
        assert isinstance(slope, Pair) and isinstance(other, Layer)
        assert slope.b.item() == 1.0 and slope.name == "plus" and other.kind == "tanh"
    assert compiled(Pair(p.a, p.b, "minus"), layer)[0].b.item() == -1.0
    assert compiled(p, Layer(jg.ones(2), "none"))[1].w.tolist() == [1.0, 1.0]
    assert jg.vmap(lambda q: q.a * 2)(Pair(jg.ones((3, 2)), jg.ones(3))).shape == (3, 2)
    with pytest.raises(ArgumentError, match="no dataclass"):
        ours.tree_util.register_dataclass(int)
    with pytest.raises(ArgumentError, match="or neither"):
        ours.tree_util.register_dataclass(Layer, data_fields=["w"])


def test_static_classes_have_no_leaves() -> None:
    @ours.tree_util.register_static
    class Option(str):
        pass

    assert ours.tree_util.tree_leaves({"a": Option("x"), "b": 1}) == [1]


TREE = {"layers": [Named(1.0, 2.0), (3.0, {"x": 4.0})], "a": 5.0}


@pytest.mark.peers
def test_paths_are_those_of_jax() -> None:
    jax = pytest.importorskip("jax")
    theirs, mine = jax.tree_util, ours.tree_util
    for simple, separator in ((False, ""), (True, "/")):
        expected = [(theirs.keystr(k, simple=simple, separator=separator), x) for k, x in theirs.tree_leaves_with_path(TREE)]
        assert [(mine.keystr(k, simple=simple, separator=separator), x) for k, x in mine.tree_leaves_with_path(TREE)] == expected
    found = ours.tree.map_with_path(lambda path, x, y: (mine.keystr(path), x + y), TREE, TREE)
    assert mine.tree_structure(TREE) == mine.tree_structure(found, is_leaf=lambda x: type(x) is tuple and isinstance(x[0], str))
    outer, inner = mine.tree_structure([0, 0]), mine.tree_structure({"x": 0})
    assert mine.tree_transpose(outer, inner, [{"x": 1}, {"x": 2}]) == {"x": [1, 2]}
    assert mine.all_leaves([1, 2]) and not mine.all_leaves([[1], 2])


# --- settings and devices ----------------------------------------------------------------------------------------


def test_settings() -> None:
    ours.config.update("jax_enable_x64", True)
    assert ours.config.jax_enable_x64 is True and ours.config.read("jax_platform_name") is None
    with pytest.raises(ArgumentError, match="detect_anomaly"):
        ours.config.update("jax_debug_nans", True)
    with pytest.raises(ArgumentError, match=r"jax\.config has no 'jax_nothing'"):
        ours.config.update("jax_nothing", 1)
    with pytest.raises(AttributeError, match="jax_nothing"):
        _ = ours.config.jax_nothing


def test_devices_and_shapes() -> None:
    assert len(ours.devices()) == ours.device_count() == ours.local_device_count()
    assert ours.default_backend() == "cpu"
    put = ours.device_put({"a": np.ones(2)}, ours.devices("cpu")[0])
    assert isinstance(put["a"], jg.Tensor)
    assert isinstance(ours.device_get(put)["a"], np.ndarray)
    out = ours.eval_shape(lambda x, y: {"z": x @ y}, ours.ShapeDtypeStruct((2, 3), "float32"), jg.ones((3, 4)))
    assert out["z"].shape == (2, 4) and out["z"].dtype == np.float32
    value, push = ours.linearize(jg.sin, jg.tensor(0.5))
    assert value.item() == pytest.approx(np.sin(0.5)) and push(jg.tensor(2.0)).item() == pytest.approx(2 * np.cos(0.5))
    with ours.named_scope("here"):
        assert ours.named_call(jg.sin, name="x") is jg.sin


@pytest.mark.peers
@pytest.mark.parametrize("case", ["plain", "mask", "bias", "causal", "causal mask", "bias and mask", "shared heads", "alone"])
def test_attention_is_that_of_jax(case: str) -> None:
    jax = pytest.importorskip("jax")
    rng = np.random.default_rng(0)
    heads = 2 if case == "shared heads" else 4
    q, k, v = rng.normal(size=(2, 5, 4, 3)), rng.normal(size=(2, 5, heads, 3)), rng.normal(size=(2, 5, heads, 3))
    if case == "alone":
        q, k, v = q[0], k[0], v[0]
    options: dict[str, Any] = {"scale": 0.3, "is_causal": "causal" in case}
    if "mask" in case:
        options["mask"] = (rng.random((2, 4, 5, 5)) > 0.4) | np.eye(5, dtype=bool)
    if "bias" in case:
        options["bias"] = rng.normal(size=(2, 1, 5, 5))
    with jax.enable_x64(True):
        given = {name: jax.numpy.asarray(x) if isinstance(x, np.ndarray) else x for name, x in options.items()}
        expected = jax.nn.dot_product_attention(*map(jax.numpy.asarray, (q, k, v)), **given)
    mine = {name: jg.tensor(x) if isinstance(x, np.ndarray) else x for name, x in options.items()}
    for wrap in (lambda f: f, jg.jit):
        found = wrap(lambda q, k, v: ours.nn.dot_product_attention(q, k, v, **mine))(*map(jg.tensor, (q, k, v)))
        np.testing.assert_allclose(found.numpy(), np.asarray(expected), rtol=1e-4, atol=1e-6)  # softmax in float32


def test_log1mexp_at_both_ends() -> None:
    x = np.array([1e-12, 0.5, 0.7, 3.0, 50.0])
    expected = np.where(x < 1, np.log(-np.expm1(-x)), np.log1p(-np.exp(-x)))
    for wrap in (lambda f: f, jg.jit):
        np.testing.assert_allclose(wrap(ours.nn.log1mexp)(jg.tensor(x)).numpy(), expected, rtol=1e-9)
        slope = wrap(jg.grad(lambda x: ours.nn.log1mexp(x).sum()))(jg.tensor(x))
        np.testing.assert_allclose(slope.numpy(), 1 / np.expm1(x), rtol=1e-9)
