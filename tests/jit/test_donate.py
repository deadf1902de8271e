"""donate=: results are written over donated arguments, only where no other reference sees it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import ArgumentError, DonatedError
from jitgrad.eager.buffer_pool import POOL, address_of
from jitgrad.jit.decorator import disable_jit, jit
from jitgrad.jit.fast_call import FEW
from jitgrad.testing import random_program

N = 5000  # elements: large enough for the pool
BACKENDS = pytest.mark.parametrize("backend", ["python", "cpu"])


def tensors(count: int, size: int = N) -> list[jg.Tensor]:
    rng = np.random.default_rng(count)
    return [jg.tensor(rng.standard_normal(size).astype(np.float32)) for _ in range(count)]


def addresses(tree: Any) -> list[int]:
    return [address_of(t._data) for t in tree]


def momentum(state: Any, g: Any) -> Any:
    """The loss, and the new (parameter, momentum)."""
    p, m = state
    m = 0.9 * m + g * p
    return (p * p).sum(), (p - 0.1 * m, m)


@BACKENDS
def test_new_state_lies_where_the_old_was(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", backend)
    step = jit(momentum, donate="state")
    state, expected = tuple(tensors(2)), tuple(tensors(2))
    (g,) = tensors(1)

    for call in range(5):  # the first is checked, the second makes the fast path
        before = addresses(state)
        loss, state = step(state, g)
        expected_loss, expected = momentum(expected, g)
        assert (addresses(state) == before) == (call > 0 and backend == "cpu")  # Ctrl-C may stop kernels in Python
        np.testing.assert_allclose(loss.numpy(), expected_loss.numpy(), rtol=1e-6)
        for x, y in zip(state, expected, strict=True):
            np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-6)

    assert step.cache_info().traces == 1
    assert "2 results written over inputs" in str(step.explain(state, g))
    assert bool(step._fast_calls) == (backend == "cpu")


def test_a_loop_needs_no_memory_for_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", "cpu")
    step = jit(momentum, donate=0)
    state, (g,) = tuple(tensors(2)), tensors(1)
    for _ in range(3):
        _, state = step(state, g)
    before = POOL.stats()

    for _ in range(10):
        _, state = step(state, g)

    after = POOL.stats()
    assert (after.allocations, after.reuses) == (before.allocations, before.reuses)


USES: dict[str, Callable[[jg.Tensor], Any]] = {
    "an operator": lambda t: t + 1,
    "a function": jg.exp,
    "a view": lambda t: t[0],
    "in place": lambda t: t.__iadd__(1),
    "copied into": lambda t: jg.zeros(N).__iadd__(t),
    "numpy()": lambda t: t.numpy(),
    "np.asarray": np.asarray,
    "np.add": lambda t: np.add(t, 1),
    "item": lambda t: t.item(),
    "tolist": lambda t: t.tolist(),
    "bool": bool,
    "clone": lambda t: t.clone(),
    "detach": lambda t: t.detach() + 1,
    "captured": lambda t: jit(lambda: t * 2)(),
    "an argument": lambda t: jit(lambda x: x * 2)(t),
}


@pytest.mark.parametrize("use", USES)
def test_using_what_was_donated_is_an_error_that_says_who_has_it(use: str) -> None:
    (x,) = tensors(1)
    double = jit(lambda x: x * 2.0, donate="x")
    double(x)

    with pytest.raises(DonatedError, match=r"f32\[5000\] was donated to @jit function '<lambda>' at .*test_donate.py:\d+"):
        USES[use](x)
    assert (x.shape, x.dtype) == ((N,), np.float32)
    assert "donated" in repr(x)


@BACKENDS
def test_donating_twice_is_an_error(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", backend)
    step = jit(momentum, donate=0)
    old, (g,) = tuple(tensors(2)), tensors(1)
    _, state = step(old, g)

    for _ in range(3):
        with pytest.raises(DonatedError, match="argument 0 of @jit function 'momentum'"):
            step(old, g)
        _, state = step(state, g)


SEEN: dict[str, Callable[[jg.Tensor], Any]] = {
    "numpy()": lambda t: t.numpy(),
    "a part of numpy()": lambda t: t.numpy()[2:],
    "a view": lambda t: t[1:],
    "a reshaped view": lambda t: t.reshape(2, -1),
    "detach()": lambda t: t.detach(),
    "a buffer": lambda t: memoryview(t.numpy()),
    "DLPack": lambda t: np.from_dlpack(t),
}


@BACKENDS
@pytest.mark.parametrize("size", [100, N])  # below and above what the pool handles
@pytest.mark.parametrize("seen", SEEN)
def test_memory_that_others_see_is_not_overwritten(
    seen: str, size: int, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", backend)
    step = jit(lambda x: x * 2.0, donate=0)
    x = jg.ones(size)
    for _ in range(3):
        x = step(x)
    other = SEEN[seen](x)
    before = np.array(other)

    x = step(x)

    np.testing.assert_array_equal(np.array(other), before)
    assert x.tolist() == [16.0] * size


@BACKENDS
def test_memory_of_arrays_is_not_overwritten(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A NumPy argument, and a tensor over a part of somebody's array, which has as many references as a pooled one."""
    monkeypatch.setenv("JITGRAD_BACKEND", backend)
    step = jit(lambda x: x * 2.0, donate=0)
    step(jg.ones(100)), step(jg.ones(100))
    array, larger = np.ones(100, np.float32), np.ones(200, np.float32)
    read_only = np.ones(100, np.float32)
    read_only.flags.writeable = False

    for _ in range(3):
        for argument in (array, jg.asarray(larger[50:150]), jg.asarray(read_only)):
            assert step(argument).tolist() == [2.0] * 100

    for x in (array, larger, read_only):
        np.testing.assert_array_equal(x, 1.0)


@BACKENDS
def test_what_the_function_returns_as_it_came_stays(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", backend)
    step = jit(lambda state: {"x": state["x"], "y": state["y"] + state["x"]}, donate="state")
    x, y = tensors(2)
    state = {"x": x, "y": y}
    expected = y.numpy() + 4 * x.numpy()

    for _ in range(4):
        state = step(state)

    assert state["x"] is x
    np.testing.assert_allclose(state["y"].numpy(), expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(DonatedError):
        y + 1


@BACKENDS
def test_one_tensor_for_two_arguments(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", backend)
    f = jit(lambda x, y: (x + 2.0 * y, y - x), donate="y")

    for _ in range(3):
        (x,) = tensors(1)
        expected = 3.0 * x.numpy()
        total, zero = f(x, x)
        np.testing.assert_allclose(total.numpy(), expected, rtol=1e-6)
        assert not zero.numpy().any()
        with pytest.raises(DonatedError):
            x + 1


@BACKENDS
def test_an_old_value_that_is_needed_later_is_not_overwritten_before(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first result could lie in ``a``, which the second still reads; a matrix product reads it in a later step."""
    monkeypatch.setenv("JITGRAD_BACKEND", backend)

    def f(a: Any, b: Any) -> Any:
        first = b * 2.0
        return first, a + b, jg.tanh(a) @ a, a[::-1] + b

    g = jit(f, donate=(0, 1))
    for _ in range(4):
        rng = np.random.default_rng(0)
        a, b = (jg.tensor(rng.standard_normal((40, 40)).astype(np.float32)) for _ in range(2))
        expected = [x.numpy() for x in f(a, b)]
        for x, y in zip(g(a, b), expected, strict=True):
            np.testing.assert_allclose(x.numpy(), y, rtol=1e-4, atol=1e-5)


def test_long_lists_on_the_fast_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", "cpu")
    count = 2 * FEW
    step = jit(lambda xs, ys: ([x + y for x, y in zip(xs, ys, strict=True)], ys), donate="xs")
    xs, ys = tensors(count, 10), tensors(count, 10)
    old, expected = xs, [x.numpy() + 5 * y.numpy() for x, y in zip(xs, ys, strict=True)]

    for call in range(5):
        before = addresses(xs)
        xs, ys = step(xs, ys)
        assert (addresses(xs) == before) == (call > 0)

    assert len(step._fast_calls) == 1
    for x, y in zip(xs, expected, strict=True):
        np.testing.assert_allclose(x.numpy(), y, rtol=1e-5)
    assert all("donated" in repr(x) for x in old)
    kept = xs[3].numpy()
    before_call = kept.copy()
    xs, ys = step(xs, ys)
    np.testing.assert_array_equal(kept, before_call)


def test_shapes_and_dtypes_that_fit_no_result() -> None:
    """They are gone all the same: what a program means must not depend on what the compiler could use."""
    f = jit(lambda x, y, e, n: (x.sum() + y.sum(), e, n + 1), donate=(0, 1, 2, 3))
    for _ in range(3):
        x, y, e, n = jg.ones(N), jg.ones(3, dtype="float64"), jg.ones((0, 4)), jg.tensor(7)
        total, empty, more = f(x, y, e, n)
        assert (total.item(), empty.shape, more.item()) == (N + 3.0, (0, 4), 8)
        assert empty is e
        for gone in (x, y, n):
            with pytest.raises(DonatedError):
                gone + 1


def test_strided_arguments() -> None:
    f = jit(lambda x: x * 2.0, donate=0)
    for _ in range(3):
        whole = np.arange(20, dtype=np.float32)
        assert f(jg.asarray(whole)[::-2]).tolist() == (whole[::-2] * 2).tolist()
        np.testing.assert_array_equal(whole, np.arange(20))


def test_gradients_inside_of_tensors_that_require_them() -> None:
    def step(p: Any, x: Any) -> Any:
        loss = jg.tanh(p * x).sum()
        loss.backward()
        with jg.no_grad():
            return loss.detach(), p - 0.1 * p.grad

    f = jit(step, donate="p")
    p, x = tensors(2)
    expected = p.numpy().copy()
    for _ in range(4):
        expected -= 0.1 * x.numpy() * (1 - np.tanh(expected * x.numpy()) ** 2)
        _, new = f(p.requires_grad_(), x)
        with pytest.raises(DonatedError):
            p + 1
        p = new

    np.testing.assert_allclose(p.numpy(), expected, rtol=1e-4, atol=1e-6)


def test_a_result_with_a_history_needs_its_arguments() -> None:
    f = jit(lambda x: (x * x).sum(), donate=0)
    x = jg.ones(3, requires_grad=True)

    with pytest.raises(ArgumentError, match="a later backward"):
        f(x)

    assert x.tolist() == [1.0] * 3
    assert f(x.detach()).item() == 3.0


def test_eager_runs_and_inner_functions_take_nothing() -> None:
    inner = jit(lambda x: x * 2.0, donate=0)
    x = jg.ones(3)

    with disable_jit():
        inner(x)
    outer = jit(lambda x: inner(x) + x)
    for _ in range(3):
        assert outer(x).tolist() == [3.0] * 3


class Model:
    scale = 2.0

    @jit(donate=("state",))
    def step(self, state: Any, *, by: Any = 1.0) -> Any:
        return state * self.scale + by

    @jit(donate=1)
    def positional(self, state: Any) -> Any:
        return state + 1.0


def test_methods_keywords_and_defaults() -> None:
    model, x = Model(), jg.zeros(4)
    old = x

    for _ in range(3):
        x = model.step(state=x, by=1.0)
    x = model.step(x)
    x = model.positional(x)

    assert x.tolist() == [16.0] * 4
    with pytest.raises(DonatedError):
        old + 1


def test_variable_arguments() -> None:
    f = jit(lambda *xs, **more: [x + 1 for x in (*xs, *more.values())], donate=("xs", "b"))
    a, b, c = (jg.ones(3) for _ in range(3))

    f(a, b=b, c=c)

    assert c.tolist() == [1.0] * 3
    for gone in (a, b):
        with pytest.raises(DonatedError):
            gone + 1


@pytest.mark.parametrize("donate", ["z", 2, -3, (0, "z"), 1.5])
def test_what_is_no_parameter(donate: Any) -> None:
    with pytest.raises(ArgumentError, match=r"is no parameter of .* it has 2 parameters: x, y"):
        jit(lambda x, y: x + y, donate=donate)


def test_static_arguments_cannot_be_donated() -> None:
    with pytest.raises(ArgumentError, match="static arguments cannot be donated: n"):
        jit(lambda x, n: x * n, static_argnames="n", donate=(0, 1))


def test_compare_and_inspection_take_nothing() -> None:
    f = jit(lambda x: x * 2.0, donate=0)
    x = jg.ones(100)

    f.explain(x), f.kernels(x), f.graph(x)
    jg.compare(f, x, seconds=0.01)

    assert x.tolist() == [1.0] * 100


@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed: int) -> None:
    """With all arguments donated, every call gives what it gives eagerly."""
    program = random_program(seed, 10)
    arrays = program.operands(np.float64)
    expected = [x.numpy() for x in program.function(*map(jg.tensor, arrays))]
    f = jit(lambda *xs: program.function(*xs), check="off", donate="xs")

    for _ in range(2):
        for x, y in zip(f(*map(jg.tensor, arrays)), expected, strict=True):
            np.testing.assert_allclose(x.numpy(), y, rtol=1e-9, atol=1e-9)


def shuffled_state(seed: int) -> Callable[..., Any]:
    """A function that makes four new tensors of four, each from some of the old ones, in an order of its own."""
    rng = np.random.default_rng(seed)
    steps = [(rng.choice(["add", "multiply", "maximum"]), *rng.integers(0, 4 + k, 2)) for k in range(8)]
    results = 4 + rng.permutation(8)[:4]

    def f(*xs: Any) -> Any:
        known = list(xs)
        for op, a, b in steps:
            known.append(getattr(jg, op)(known[a], known[b]) * 0.5)
        return [known[k] for k in results]

    return f


@pytest.mark.parametrize("seed", range(40))
def test_new_state_in_any_order(seed: int) -> None:
    """A result may lie over an argument that it does not need and another one, stored later, does."""
    f = shuffled_state(seed)
    arrays = [x.numpy() for x in tensors(4, 50)]
    expected = [x.numpy() for x in f(*map(jg.tensor, arrays))]
    g = jit(f, check="off", donate="xs")

    for x, y in zip(g(*map(jg.tensor, arrays)), expected, strict=True):
        np.testing.assert_array_equal(x.numpy(), y)
