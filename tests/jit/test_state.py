"""State under @jit: gradients, in-place changes, optimisers and random numbers evolve as they do eagerly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import FallbackWarning, GraphFreedError, UnguardableError
from jitgrad.jit.decorator import jit

pytestmark = pytest.mark.filterwarnings("error::jitgrad.core.errors.MismatchWarning")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 4)).astype(np.float32)
Y = RNG.integers(0, 3, 6)


@pytest.fixture(autouse=True)
def python_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", "python")


def leaf(*shape: int) -> jg.Tensor:
    return jg.tensor(RNG.normal(size=shape)).requires_grad_()


def twin(x: jg.Tensor) -> jg.Tensor:
    return jg.tensor(x.detach().numpy().copy()).requires_grad_(x.requires_grad)


def grad_of(x: jg.Tensor) -> Any:
    return None if x.grad is None else x.grad.detach().numpy().copy()


def assert_close(a: Any, b: Any) -> None:
    assert (a is None) == (b is None)
    if a is not None:
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)


# --- backward inside ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("zero", [True, False])
@pytest.mark.parametrize("check", ["first", "always", "off"])
def test_backward_inside_accumulates_into_grad(zero: bool, check: str) -> None:
    first = leaf(3)
    second = twin(first)

    def make(w: jg.Tensor) -> Callable[[Any], Any]:
        def step(x: Any) -> Any:
            if zero:
                w.grad = None
            loss = (jg.tanh(w) * x).sum()
            loss.backward()
            return loss

        return step

    eager, fused = make(first), jit(make(second), check=check)
    for k in range(4):
        x = jg.tensor(np.arange(3.0) + k)
        assert_close(eager(x).detach().numpy(), fused(x).detach().numpy())
        assert_close(grad_of(first), grad_of(second))


def test_gradients_of_arguments() -> None:
    x, y = leaf(3), leaf(3)

    @jit
    def f(x: Any, y: Any) -> Any:
        loss = (x * y * y).sum()
        loss.backward()
        return loss.detach()

    for count in (1, 2, 3):
        f(x, y)
        assert_close(grad_of(x), count * y.detach().numpy() ** 2)
        assert_close(grad_of(y), count * 2 * (x * y).detach().numpy())


@pytest.mark.parametrize("backend", ["python", pytest.param("cpu", marks=pytest.mark.numba)])
def test_backward_inside_does_not_end_at_an_argument_that_was_computed(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", backend)
    w = leaf(3)

    @jit
    def f(x: Any) -> Any:
        loss = (x * x).sum()
        loss.backward()
        return loss.detach()

    for _ in range(3):
        f(w)
    with pytest.raises(UnguardableError, match="backward\\(\\) outside"):
        f(w * 2.0)
    assert_close(grad_of(w), 6 * w.detach().numpy())


def test_backward_outside_runs_through_the_program_again_and_again() -> None:
    x, w = leaf(4), leaf(4)
    f = jit(lambda x, w: (jg.sin(x) * w).sum())

    for count in (1, 2, 3):
        f(x, w).backward()
        assert_close(grad_of(w), count * np.sin(x.detach().numpy()))
    assert f.cache_info().traces == 1


def test_several_results_and_only_one_backward() -> None:
    x = leaf(4)
    f = jit(lambda x: (x * 2.0, jg.exp(x), x.detach() * 3.0))

    a, b, c = f(x)
    assert a.requires_grad and b.requires_grad and not c.requires_grad
    (b * 0.5).sum().backward()
    assert_close(grad_of(x), 0.5 * np.exp(x.detach().numpy()))


def test_backward_twice_needs_retain_graph() -> None:
    x = leaf(3)
    f = jit(lambda x: (x**3).sum())

    loss = f(x)
    loss.backward(retain_graph=True)
    loss.backward()
    assert_close(grad_of(x), 6 * x.detach().numpy() ** 2)
    with pytest.raises(GraphFreedError):
        loss.backward()


def test_an_argument_changed_before_backward_is_an_error() -> None:
    """The program saved its inputs; backward through changed ones would be silently wrong."""
    x = leaf(3)
    w = jg.tensor(np.ones(3))
    loss = jit(lambda x, w: (x * w * x).sum())(x, w)
    w += 1.0

    with pytest.raises(RuntimeError, match="changed in place"):
        loss.backward()


def test_no_grad_and_detach_inside() -> None:
    x = leaf(3)

    def f(x: Any) -> Any:
        with jg.no_grad():
            scale = x * 2.0
        return (x * scale + x.detach() * x).sum()

    expected = jg.grad(f)(x).detach().numpy()
    jit(f)(x).backward()

    assert_close(grad_of(x), expected)


def test_hooks_on_results() -> None:
    x, seen = leaf(3), []
    out = jit(lambda x: x * 3.0)(x)
    out.register_hook(lambda g: seen.append(g.detach().numpy().copy()))
    out.sum().backward()
    assert_close(seen[0], np.ones(3))


# --- in place -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("check", ["first", "always", "off"])
def test_in_place_changes_of_captured_and_passed_tensors(check: str) -> None:
    counter, buffer = jg.tensor(np.zeros(())), jg.tensor(np.zeros(3))

    @jit(check=check)
    def f(x: Any) -> Any:
        nonlocal_counter = counter
        nonlocal_counter += 1.0
        buffer[1:] = x[1:] * counter
        x *= 2.0
        return x.sum()

    x = jg.tensor(np.ones(3))
    for k in range(1, 5):
        f(x)
        assert float(counter) == k
        assert x.numpy().tolist() == [2.0**k] * 3
        assert buffer.numpy().tolist() == [0.0, 2.0 ** (k - 1) * k, 2.0 ** (k - 1) * k]


def test_views_made_inside_follow_their_base() -> None:
    base = jg.tensor(np.zeros((2, 3)))

    @jit
    def f(x: Any) -> Any:
        row = base[0]
        row.add_(x)
        return base.sum()

    for k in (1, 2, 3):
        assert float(f(jg.ones(3))) == 3.0 * k
    assert base.numpy()[0].tolist() == [3.0] * 3


@pytest.mark.parametrize("check", ["first", "off"])
def test_a_view_from_outside_that_is_changed_is_refused(check: str) -> None:
    """The program has no idea that the two are one memory; it says so and does not read the old base."""
    base = jg.tensor(np.zeros((2, 3)))
    row = base[0]

    def f(x: Any) -> Any:
        row.add_(x)
        return base.sum()

    with pytest.raises(UnguardableError, match=r"changes row .* in place, and base .* shows the same memory"):
        jit(f, check=check)(jg.ones(3))
    with pytest.warns(FallbackWarning):
        assert float(jit(f, fallback="eager", check=check)(jg.ones(3))) == 3.0


def update_and_read(x: Any, y: Any) -> Any:
    x += 1.0
    return (y * 2.0).sum()


@pytest.mark.parametrize("backend", ["python", pytest.param("cpu", marks=pytest.mark.numba)])
def test_arguments_that_share_memory_are_refused(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the first call and at a later one, by the quick path as well; arguments beside each other are fine."""
    monkeypatch.setenv("JITGRAD_BACKEND", backend)
    f = jit(update_and_read, check="off")
    memory = np.zeros(8)

    for k in range(1, 5):
        assert float(f(jg.asarray(memory[:3]), jg.asarray(memory[3:6]))) == 0.0
        assert memory.tolist() == [k] * 3 + [0.0] * 5
    with pytest.raises(UnguardableError, match=r"argument 0 .* in place, and argument 1 .* shows the same memory"):
        f(jg.asarray(memory[:3]), jg.asarray(memory[1:4]))
    assert memory.tolist() == [4.0] * 3 + [0.0] * 5


def test_interleaved_arguments_share_no_memory() -> None:
    memory = np.zeros(6)

    assert float(jit(update_and_read)(jg.asarray(memory[::2]), jg.asarray(memory[1::2]))) == 0.0
    assert memory.tolist() == [1.0, 0.0] * 3


def test_an_updated_tensor_may_overlap_a_result_of_an_earlier_call() -> None:
    state = jg.tensor(np.zeros(3))

    @jit(check="off")
    def f(x: Any) -> Any:
        state.copy_(state + x)
        return state * 1.0, state

    kept = []
    for _ in range(1, 4):
        copied, same = f(jg.ones(3))
        assert same is state
        kept.append(copied)
    assert [c.numpy()[0] for c in kept] == [1.0, 2.0, 3.0]


# --- all or nothing -------------------------------------------------------------------------------------------------


def test_a_program_that_fails_in_the_middle_changes_nothing() -> None:
    """The op raises at run time after parameters and gradients were computed; they are as before."""
    explode = [False]

    def forward(x: Any) -> Any:
        if explode[0]:
            raise FloatingPointError("as asked")
        return x * 1.0

    fragile = jg.custom_op(forward=forward, vjp=lambda g, out, x: (g,), abstract=lambda x: x)
    w = leaf(3)
    optimizer = jg.optim.Adam([w], lr=0.1)

    @jit(check="off")
    def step(x: Any) -> Any:
        optimizer.zero_grad()
        (w * x).sum().backward()
        optimizer.step()
        return fragile(w.detach() + 1.0)

    for _ in range(3):
        step(jg.ones(3))
    before = w.detach().numpy().copy(), grad_of(w), {k: np.array(v.numpy()) for k, v in optimizer.state_dict().items()}
    explode[0] = True
    with pytest.raises(FloatingPointError, match="as asked"):
        step(jg.ones(3))

    np.testing.assert_array_equal(w.detach().numpy(), before[0])
    np.testing.assert_array_equal(grad_of(w), before[1])
    for name, value in optimizer.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), before[2][name], err_msg=name)
    explode[0] = False
    step(jg.ones(3))
    assert (w.detach().numpy() != before[0]).all()


# --- whole steps ----------------------------------------------------------------------------------------------------

OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "sgd": lambda p: jg.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "adam": lambda p: jg.optim.Adam(p, lr=0.05),
    "adamw": lambda p: jg.optim.AdamW(p, lr=0.05),
    "rmsprop": lambda p: jg.optim.RMSprop(p, lr=0.01),
}


def trained(optimizer_name: str, compiled: bool, check: str = "first", steps: int = 6) -> list[np.ndarray[Any, Any]]:
    generator = jg.Generator(5)
    model = jg.nn.Sequential(jg.nn.Linear(4, 5), jg.nn.Tanh(), jg.nn.Dropout(0.3, generator=generator), jg.nn.Linear(5, 3))
    values = np.random.default_rng(1)
    for p in model.parameters():
        p.detach().numpy()[...] = values.normal(size=p.shape)
    optimizer = OPTIMIZERS[optimizer_name](model.parameters())

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = jg.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    run = jit(step, check=check) if compiled else step
    losses = [np.asarray(run(X, Y).detach()) for _ in range(steps)]
    state = [p.detach().numpy() for p in model.parameters()]
    return [*losses, *state, *(v.numpy() for v in optimizer.state_dict().values()), generator.state.numpy()]


@pytest.mark.parametrize("check", ["first", "always", "off"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_with_dropout_is_the_same_with_and_without_jit(name: str, check: str) -> None:
    """Whatever check does, state evolves as it does eagerly: the checked runs leave nothing behind."""
    for found, expected in zip(trained(name, True, check), trained(name, False), strict=True):
        np.testing.assert_allclose(found, expected, rtol=2e-4, atol=1e-5)


@pytest.mark.numba
def test_training_is_the_same_in_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", "cpu")

    for found, expected in zip(trained("adam", True, "off", 20), trained("adam", False, steps=20), strict=True):
        np.testing.assert_allclose(found, expected, rtol=2e-4, atol=1e-5)


def test_evaluation_mode_is_noticed() -> None:
    model = jg.nn.Sequential(jg.nn.Linear(4, 3), jg.nn.Dropout(0.9))
    f = jit(lambda x: model(x))

    f(X)
    model.eval()
    np.testing.assert_allclose(f(X).detach().numpy(), model(X).detach().numpy(), rtol=1e-6)
    assert f.cache_info().traces == 2


def test_a_gradient_ends_at_a_leaf_that_the_call_updated() -> None:
    """Not at its contents before, of which the new ones were made without history."""

    def f(w: Any, x: Any) -> Any:
        with jg.no_grad():
            w *= 2
        return (w * x).sum()

    x = jg.tensor([5.0, 6.0])
    for function in (f, jit(f, check="off")):
        w = jg.tensor([1.0, 2.0], requires_grad=True)
        for call in range(3):
            w.grad = None
            function(w, x).backward()
            assert w.grad is not None
            np.testing.assert_array_equal(w.grad.numpy(), x.numpy())
            np.testing.assert_array_equal(w.detach().numpy(), np.array([1.0, 2.0]) * 2.0 ** (call + 1))
