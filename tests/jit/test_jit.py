"""@jit for its user: arguments, results, and calls that are traced again or not."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import ArgumentError, UnguardableError
from jitgrad.jit.decorator import JitFunction, jit

pytestmark = pytest.mark.filterwarnings("error::jitgrad.core.errors.MismatchWarning")
Pair = namedtuple("Pair", "first second")
RNG = np.random.default_rng(0)
SCALE = 2.0
OFFSETS = {"a": 1.0, "b": [2.0, 3.0]}


@pytest.fixture(autouse=True)
def python_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", "python")


def tensor(*shape: int, dtype: Any = np.float32) -> jg.Tensor:
    return jg.tensor(RNG.normal(size=shape).astype(dtype))


def value(x: Any) -> np.ndarray[Any, Any]:
    return np.asarray(x.detach() if isinstance(x, jg.Tensor) else x)


def assert_calls(f: JitFunction, *calls: tuple[Any, ...], traces: int) -> None:
    """Every call gives what eager gives, and together they need this many traces."""
    for args in calls:
        np.testing.assert_allclose(value(f(*args)), value(f.eager(*args)), rtol=1e-6)
    assert f.cache_info().traces == traces, f.why_retraced()


# --- what is guarded ---------------------------------------------------------------------------------------------


def test_a_changed_global_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    f = jit(lambda x: x * SCALE)
    x = tensor(3)
    assert_calls(f, (x,), (x,), traces=1)

    monkeypatch.setitem(globals(), "SCALE", 5.0)

    np.testing.assert_array_equal(f(x).numpy(), x.numpy() * 5)
    assert f.cache_info().traces == 2
    assert "SCALE" in " ".join(f.why_retraced())


def test_a_changed_closure_cell_is_noticed() -> None:
    power = 2

    @jit
    def f(x: Any) -> Any:
        return x**power

    x = tensor(3)
    assert_calls(f, (x,), traces=1)
    power = 3

    assert_calls(f, (x,), (x,), traces=2)


def test_a_changed_attribute_default_or_container_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Settings:
        width = 2.0

    settings = Settings()

    def g(x: Any, shift: float = 1.0) -> Any:
        return x * settings.width + shift + OFFSETS["b"][1]  # type: ignore[index]

    f = jit(lambda x: g(x))
    x = tensor(2)
    assert_calls(f, (x,), (x,), traces=1)
    settings.width = 7.0
    assert_calls(f, (x,), (x,), traces=2)
    monkeypatch.setattr(g, "__defaults__", (5.0,))
    assert_calls(f, (x,), (x,), traces=3)
    monkeypatch.setitem(OFFSETS, "b", [2.0, 9.0])
    assert_calls(f, (x,), (x,), traces=4)


def test_a_replaced_tensor_is_noticed_and_a_changed_one_is_read() -> None:
    weights = {"w": tensor(3)}

    @jit
    def f(x: Any) -> Any:
        return x * weights["w"]

    x = tensor(3)
    assert_calls(f, (x,), traces=1)
    weights["w"].numpy()[:] = 4.0
    np.testing.assert_array_equal(f(x).numpy(), x.numpy() * 4)
    assert f.cache_info().traces == 1
    weights["w"] = tensor(3)
    assert_calls(f, (x,), (x,), traces=2)


def test_grad_mode_and_default_dtype_are_part_of_the_signature() -> None:
    f = jit(lambda x: x * 2.0)
    x = tensor(3).requires_grad_()

    assert f(x).requires_grad
    with jg.no_grad():
        assert not f(x).requires_grad
    assert f(x).requires_grad
    assert f.cache_info().traces == 2


# --- what does not trace again -------------------------------------------------------------------------------------


def test_a_thousand_learning_rates_are_one_trace() -> None:
    f = jit(lambda w, g, lr: w - lr * g, check="off")
    w, g = tensor(4), tensor(4)

    for k in range(1000):
        np.testing.assert_array_equal(f(w, g, 1e-3 * k).numpy(), w.numpy() - np.float32(1e-3 * k) * g.numpy())

    info = f.cache_info()
    assert (info.calls, info.traces, info.programs) == (1000, 1, 1)


def test_a_thousand_rates_of_an_optimizer_are_one_trace() -> None:
    w = jg.tensor(np.ones(3), requires_grad=True)
    optimizer = jg.optim.SGD([w], lr=0.1)

    @jit(check="off")
    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = (w * x).sum()
        loss.backward()
        optimizer.step()
        return loss

    x, expected = jg.tensor(np.array([1.0, 2.0, 3.0])), np.ones(3)
    for k in range(1000):
        optimizer.lr = 1e-4 * (k % 7)
        step(x)
        expected = expected - optimizer.lr * x.numpy()

    np.testing.assert_allclose(w.detach().numpy(), expected, rtol=1e-12)
    assert step.cache_info().traces <= 2  # the first one finds no gradients yet
    assert step.cache_info().kernels_compiled <= 4


def test_fifty_batch_sizes_need_the_kernels_of_the_first_two() -> None:
    w, b = tensor(5, 7), tensor(7)

    def loss(w: Any, b: Any, x: Any) -> Any:
        return (jg.softmax(jg.tanh(x @ w + b), -1) ** 2).sum(axis=1).mean()

    f = jit(jg.value_and_grad(loss, argnums=(0, 1)), check="off")
    for n in (1, 2):
        f(w, b, tensor(n, 5))
    before = f.cache_info().kernels_compiled

    for n in set(range(3, 55)) - {5, 7}:  # these equal another axis, along which loops may then be shared
        f(w, b, tensor(n, 5))

    assert f.cache_info().kernels_compiled == before
    assert f.cache_info().traces == 52


# --- arguments and results ------------------------------------------------------------------------------------------


def test_keyword_arguments_and_defaults() -> None:
    @jit
    def f(x: Any, *, scale: Any = 2.0, shift: Any = None) -> Any:
        return x * scale + (0.0 if shift is None else shift)

    x, s = tensor(3), tensor(3)

    np.testing.assert_array_equal(f(x).numpy(), x.numpy() * 2)
    np.testing.assert_array_equal(f(x, scale=3.0).numpy(), x.numpy() * 3)
    np.testing.assert_array_equal(f(x=x, shift=s).numpy(), x.numpy() * 2 + s.numpy())
    f(x, scale=4.0)
    assert f.cache_info().traces == 3


@pytest.mark.parametrize("options", [{"static_argnums": 1}, {"static_argnames": "mode"}, {"static_argnums": (-1,)}])
def test_static_arguments_are_values(options: Any) -> None:
    def f(x: Any, mode: Any) -> Any:
        return x.sum() if mode == "sum" else x.max() if mode == ("max",) else x * mode

    g = jit(f, **options)
    x = tensor(3)

    assert float(g(x, "sum")) == pytest.approx(float(x.sum()))
    assert float(g(x, mode=("max",))) == float(x.max())
    assert g(x, 2.5).numpy().tolist() == (x.numpy() * 2.5).tolist()
    g(x, "sum"), g(x, ("max",)), g(x, 2.5)
    assert g.cache_info().traces <= 4


def test_a_float_that_is_static_may_be_tested() -> None:
    f = jit(lambda x, p: x * 2.0 if p > 0.5 else x, static_argnums=1)
    x = tensor(2)

    assert f(x, 0.7).numpy().tolist() == (x.numpy() * 2).tolist()
    assert f(x, 0.2).numpy().tolist() == x.numpy().tolist()


@pytest.mark.parametrize("static", [np.ones(2), [1, 2]])
def test_static_arguments_must_be_hashable(static: Any) -> None:
    with pytest.raises(UnguardableError, match="static"):
        jit(lambda x, s: x, static_argnums=1)(tensor(1), static)


def test_unknown_static_names_are_an_error() -> None:
    with pytest.raises(ArgumentError, match="nothing"):
        jit(lambda x: x, static_argnames="nothing")


def test_integers_strings_and_none_are_part_of_the_signature() -> None:
    f = jit(lambda x, n, kind, none: x * n if kind == "times" and none is None else x + n)
    x = tensor(3)

    assert_calls(f, (x, 2, "times", None), (x, 3, "times", None), (x, 2, "plus", None), (x, 2, "times", None), traces=3)


def test_trees_go_in_and_come_out() -> None:
    x, y = tensor(3), tensor(2)

    def f(tree: Any) -> Any:
        double = {k: v * 2.0 for k, v in tree["d"].items()}
        return Pair(double, [tree["p"].first, (tree["p"].second + 1.0, None)]), {"n": 3, "s": "text"}

    tree = {"d": OrderedDict(a=x, b=y), "p": Pair(x, y)}
    found, expected = jit(f)(tree), f(tree)

    assert isinstance(found[0], Pair) and found[1] == {"n": 3, "s": "text"} and found[0].second[1][1] is None
    assert list(found[0].first) == list(expected[0].first)
    np.testing.assert_array_equal(found[0].first["b"].numpy(), expected[0].first["b"].numpy())


def test_arguments_returned_unchanged_are_the_same_objects() -> None:
    f = jit(lambda x, y: (x, y, x * 1.0, y))
    x, y = tensor(3), tensor(3)

    for _ in range(2):
        a, b, c, d = f(x, y)
        assert a is x and b is y and d is y and c is not x


def test_one_tensor_passed_twice() -> None:
    f = jit(lambda x, y: x * 2.0 - y)
    x, y = tensor(3), tensor(3)

    assert_calls(f, (x, x), (x, y), (y, y), traces=2)


def test_results_stay_what_they_were() -> None:
    f = jit(lambda x: (x * 2.0, x.sum()), check="off")
    inputs = [tensor(300) for _ in range(8)]
    results = [f(x) for x in inputs]

    for x, (double, total) in zip(inputs, results, strict=True):
        np.testing.assert_array_equal(double.numpy(), x.numpy() * 2)
        np.testing.assert_allclose(float(total), x.numpy().sum(), rtol=1e-4)


def test_numpy_arrays_and_layouts() -> None:
    f = jit(lambda x, y: jg.sqrt(jg.abs(x)) + y)
    base = RNG.normal(size=(6, 8)).astype(np.float32)

    for x in (base[::2, ::2], base.T[:4, :3].T, base[::-2, ::-2], np.asfortranarray(base)[:3, :4]):
        assert_calls(
            f,
            (x, np.float32(1.5)),
            (jg.asarray(x), 1.5),
            traces=f.cache_info().traces + 2 if f.cache_info().traces < 2 else 2,
        )


def test_a_read_only_or_foreign_byte_order_array() -> None:
    f = jit(lambda x: x * 2.0)
    frozen = np.arange(3.0)
    frozen.flags.writeable = False

    assert_calls(f, (frozen,), (np.arange(3.0),), traces=1)


@pytest.mark.parametrize("shape", [(0, 5), (3, 0), (0,)])
def test_batches_of_nothing(shape: Any) -> None:
    f = jit(lambda x: (jg.tanh(x) * 2.0).sum())
    assert_calls(f, (jg.zeros(shape),), (jg.zeros(shape),), traces=1)


def test_integer_labels_and_gathers() -> None:
    logits, labels = tensor(6, 4), np.array([0, 3, 1, 2, 2, 0])
    f = jit(jg.value_and_grad(lambda z, t: jg.cross_entropy(z, t)))

    for t in (labels, jg.tensor(labels), labels.astype(np.int32)):
        loss, grad = f(logits, t)
        expected, expected_grad = f.eager(logits, t)
        np.testing.assert_allclose(float(loss), float(expected), rtol=1e-6)
        np.testing.assert_allclose(grad.numpy(), expected_grad.numpy(), rtol=1e-5, atol=1e-7)


def test_weak_results_stay_weak() -> None:
    """A float that went through @jit still does not widen float32."""
    f = jit(lambda a: a * 2.0)

    assert (f(0.5) * jg.ones(2)).dtype == np.float32
