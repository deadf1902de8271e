"""Optimisers against their formulas and torch, and the properties that compiled training steps rely on."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np
import pytest

from jitgrad import optim
from jitgrad.autograd.backward import backward
from jitgrad.core.errors import ArgumentError, CheckpointError
from jitgrad.core.tensor import Tensor
from jitgrad.ops import arithmetic
from jitgrad.ops.arithmetic import add, multiply
from jitgrad.ops.reduce import sum as sum_
from jitgrad.ops.transcendental import exp
from jitgrad.optim.optimizer import Optimizer

START = np.array([1.0, -2.0, 0.5])
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "sgd": ("SGD", {"lr": 0.1}),
    "sgd_decay": ("SGD", {"lr": 0.1, "weight_decay": 0.1}),
    "momentum": ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1}),
    "nesterov": ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    "adam": ("Adam", {"lr": 0.1}),
    "adam_all": ("Adam", {"lr": 0.1, "betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.2}),
    "adamw": ("AdamW", {"lr": 0.1, "weight_decay": 0.2}),
    "rmsprop": ("RMSprop", {"lr": 0.1}),
    "rmsprop_all": ("RMSprop", {"lr": 0.1, "alpha": 0.9, "weight_decay": 0.1, "momentum": 0.5, "centered": True}),
    "adagrad": ("Adagrad", {"lr": 0.1}),
    "adagrad_all": ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.3}),
}


def gradient(x: Any) -> Any:
    """Of the loss (x**4 / 4 + x**2 / 2).sum(): steep far out, so that the steps differ."""
    return x**3 + x


def loss(p: Tensor) -> Tensor:
    square = arithmetic.square(p)
    return sum_(add(multiply(arithmetic.square(square), 0.25), multiply(square, 0.5)))


def parameter(dtype: Any = np.float64) -> Tensor:
    return Tensor(START.astype(dtype)).requires_grad_()


def train(optimizer: Optimizer, p: Tensor, steps: int) -> Any:
    for _ in range(steps):
        optimizer.zero_grad()
        backward(loss(p))
        optimizer.step()
    return np.array(p.concrete("a test"))


def make(name: str, p: Tensor) -> Optimizer:
    kind, options = CASES[name]
    return getattr(optim, kind)([p], **options)  # type: ignore[no-any-return]


def by_formula(name: str, steps: int) -> Any:
    """What ``steps`` steps do to START, one update rule after the other in plain NumPy."""
    o = {"weight_decay": 0.0, "momentum": 0.0, "betas": (0.9, 0.999), "eps": 1e-8, "alpha": 0.99} | CASES[name][1]
    kind = CASES[name][0]
    x, m, v, b, lr = START.copy(), 0.0, 0.0, 0.0, o["lr"]
    total = o.get("initial_accumulator_value", 0.0)
    for t in range(1, steps + 1):
        g = gradient(x) + (o["weight_decay"] * x if kind != "AdamW" else 0.0)
        if kind == "SGD":
            b = o["momentum"] * b + g
            x = x - lr * (g + o["momentum"] * b if o.get("nesterov") else b)
        elif kind in ("Adam", "AdamW"):
            x = x * (1 - lr * o["weight_decay"]) if kind == "AdamW" else x
            (b1, b2) = o["betas"]
            m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
            x = x - lr * (m / (1 - b1**t)) / (np.sqrt(v / (1 - b2**t)) + o["eps"])
        elif kind == "RMSprop":
            v, m = o["alpha"] * v + (1 - o["alpha"]) * g * g, o["alpha"] * m + (1 - o["alpha"]) * g
            b = o["momentum"] * b + g / (np.sqrt(v - m * m if o.get("centered") else v) + o["eps"])
            x = x - lr * b
        else:
            total = total + g * g
            x = x - lr / (1 + (t - 1) * o.get("lr_decay", 0.0)) * g / (np.sqrt(total) + 1e-10)
    return x


@pytest.mark.parametrize("name", CASES)
def test_optimizer_is_its_formula(name: str) -> None:
    p = parameter()

    np.testing.assert_allclose(train(make(name, p), p, 6), by_formula(name, 6), rtol=1e-10)


@pytest.mark.peers
@pytest.mark.parametrize("name", CASES)
def test_optimizer_agrees_with_torch(name: str) -> None:
    torch = pytest.importorskip("torch")
    p, q = parameter(), torch.tensor(START, requires_grad=True)
    theirs = getattr(torch.optim, CASES[name][0])([q], **CASES[name][1])

    for _ in range(6):
        theirs.zero_grad()
        (q**4 / 4 + q**2 / 2).sum().backward()
        theirs.step()

    np.testing.assert_allclose(train(make(name, p), p, 6), q.detach().numpy(), rtol=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_float32_stays_float32(name: str) -> None:
    p = parameter(np.float32)
    optimizer = make(name, p)

    found = train(optimizer, p, 4)

    assert found.dtype == np.float32
    assert all(t.dtype == np.float32 for t in optimizer.state_dict().values() if t.shape)
    np.testing.assert_allclose(found, by_formula(name, 4), rtol=1e-4, atol=2e-6)


# --- what compiled steps rely on ---------------------------------------------------------------------------------


def attributes(optimizer: Optimizer) -> dict[str, Any]:
    return {k: v if isinstance(v, Tensor) else repr(v) if not isinstance(v, list) else tuple(map(id, v))
            for k, v in vars(optimizer).items() if k not in ("params", "state")}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_step_changes_tensors_in_place_and_nothing_else(name: str) -> None:
    p = parameter()
    optimizer = make(name, p)
    before, memory = attributes(optimizer), p.concrete("a test")
    state = {key: t.tolist() for key, t in optimizer.state_dict().items()}

    train(optimizer, p, 1)

    assert all(before[k] is v or before[k] == v for k, v in attributes(optimizer).items() if k != "_state")
    assert p.concrete("a test") is memory
    changed = {key for key, t in optimizer.state_dict().items() if t.tolist() != state[key]}
    assert changed == set(state) - {"lr"}


@pytest.mark.parametrize("name", CASES)
def test_setting_lr_writes_into_one_tensor(name: str) -> None:
    optimizer = make(name, parameter())
    held = optimizer._lr

    optimizer.lr = 0.25

    assert optimizer.lr == 0.25
    assert optimizer._lr is held and held.item() == 0.25
    assert held.aval.weak and held.shape == ()
    with pytest.raises(ArgumentError, match="lr must be at least 0"):
        optimizer.lr = -1.0


@pytest.mark.parametrize("name", CASES)
def test_a_new_lr_takes_effect(name: str) -> None:
    p = parameter()
    optimizer = make(name, p)
    train(optimizer, p, 1)
    optimizer.lr = 0.0

    before = np.array(p.concrete("a test"))

    np.testing.assert_array_equal(train(optimizer, p, 1), before)


@pytest.mark.parametrize("name", CASES)
def test_parameters_without_gradient_stay(name: str) -> None:
    p, other = parameter(), parameter()
    kind, options = CASES[name]
    optimizer = getattr(optim, kind)([other, p], **options)

    np.testing.assert_allclose(train(optimizer, p, 3), by_formula(name, 3))
    np.testing.assert_array_equal(other.concrete("a test"), START)


@pytest.mark.parametrize("name", CASES)
def test_training_goes_on_from_a_saved_state(name: str) -> None:
    p, q = parameter(), parameter()
    first = make(name, p)
    halfway = Tensor(train(first, p, 3)).requires_grad_()
    second = make(name, halfway)
    second.load_state_dict(first.state_dict())

    assert train(second, halfway, 3).tolist() == train(make(name, q), q, 6).tolist()


def test_a_state_of_another_optimizer_is_an_error() -> None:
    with pytest.raises(CheckpointError, match="exp_avg"):
        make("adam", parameter()).load_state_dict(make("sgd", parameter()).state_dict())


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: optim.SGD(parameter()), "got one tensor"),
        (lambda: optim.SGD([]), "used up"),
        (lambda: optim.SGD([exp(parameter())]), "leaf"),
        (lambda: optim.SGD([Tensor(np.arange(3))]), "floating"),
        (lambda: optim.SGD([p := parameter(), p]), "twice"),
        (lambda: optim.SGD([parameter()], lr=-1.0), "lr"),
        (lambda: optim.SGD([parameter()], nesterov=True), "nesterov"),
        (lambda: optim.Adam([parameter()], betas=(0.9, 1.0)), "betas"),
        (lambda: optim.LBFGS([parameter()], line_search_fn="armijo"), "strong_wolfe"),
        (lambda: optim.LBFGS([parameter()]).step(), "closure"),
    ],
)
def test_constructors_refuse(build: Callable[[], Any], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        build()


# --- L-BFGS ------------------------------------------------------------------------------------------------------


def rosenbrock(p: Tensor) -> Tensor:
    x, y = p[0], p[1]
    return 100.0 * arithmetic.square(y - arithmetic.square(x)) + arithmetic.square(1.0 - x)


def bowl(p: Tensor) -> Tensor:
    return sum_(np.array([1.0, 30.0]) * arithmetic.square(p - 1.0))


@pytest.mark.parametrize(("loss", "search"), [(rosenbrock, "strong_wolfe"), (bowl, "strong_wolfe"), (bowl, None)])
def test_lbfgs_finds_the_minimum(loss: Callable[[Tensor], Tensor], search: str | None) -> None:
    p = Tensor(np.array([-1.2, 1.5])).requires_grad_()
    optimizer = optim.LBFGS([p], max_iter=100, line_search_fn=search)

    def closure() -> Tensor:
        optimizer.zero_grad()
        value = loss(p)
        backward(value)
        return value

    expected = loss(p).item()

    assert optimizer.step(closure).item() == expected
    np.testing.assert_allclose(p.concrete("a test"), [1, 1], atol=1e-4)


# --- clipping ----------------------------------------------------------------------------------------------------


def with_gradients(*grads: Any) -> list[Tensor]:
    params = [Tensor(np.zeros(len(g))).requires_grad_() for g in grads]
    for p, g in zip(params, grads, strict=True):
        p.grad = Tensor(np.array(g, float))
    return params


@pytest.mark.parametrize(("norm_type", "norm"), [(2.0, 5.0), (1.0, 7.0), (np.inf, 4.0), (3.0, 91 ** (1 / 3))])
def test_gradients_are_scaled_together(norm_type: float, norm: float) -> None:
    a, b = with_gradients([3.0, 0.0], [-4.0])
    held = a.grad

    total = optim.clip_grad_norm_([a, b, parameter()], 1.0, norm_type)

    assert total.item() == pytest.approx(norm)
    assert a.grad.tolist() == pytest.approx([3 / norm, 0], rel=1e-5)
    assert b.grad.tolist() == pytest.approx([-4 / norm], rel=1e-5)
    assert held is not None and held.tolist() == [3, 0]


def test_small_gradients_are_not_scaled() -> None:
    (a,) = with_gradients([0.3, 0.4])

    assert optim.clip_grad_norm_(iter([a]), 1.0).item() == pytest.approx(0.5)
    assert a.grad.tolist() == [0.3, 0.4]
    assert optim.clip_grad_norm_([parameter()], 1.0).item() == 0


def test_clipping_by_value() -> None:
    (a,) = with_gradients([3.0, -0.5, -7.0])

    optim.clip_grad_value_([a], 1.0)

    assert a.grad.tolist() == [1, -0.5, -1]


# --- schedules ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda o: optim.StepLR(o, 2, 0.1), [1, 1, 0.1, 0.1, 0.01]),
        (lambda o: optim.MultiStepLR(o, [3, 1], 0.5), [1, 0.5, 0.5, 0.25, 0.25]),
        (lambda o: optim.ExponentialLR(o, 0.5), [1, 0.5, 0.25, 0.125, 0.0625]),
        (lambda o: optim.LinearLR(o, 0.5, 1.0, 2), [0.5, 0.75, 1, 1, 1]),
        (lambda o: optim.LambdaLR(o, lambda n: 1 / (n + 1)), [1, 1 / 2, 1 / 3, 1 / 4, 1 / 5]),
        (
            lambda o: optim.CosineAnnealingLR(o, 4, 0.4),
            [1, 0.6 + 0.4 / sqrt(2), 0.6, 0.6 - 0.4 / sqrt(2), 0.2],
        ),
        (lambda o: optim.CosineAnnealingLR(o, 2, warmup=2), [1 / 3, 2 / 3, 1, 0.5, 0]),
    ],
    ids=["step", "multistep", "exponential", "linear", "lambda", "cosine", "warmup"],
)
def test_schedules(build: Callable[[Optimizer], optim.Schedule], expected: list[float]) -> None:
    optimizer = optim.SGD([parameter()], lr=2.0)
    schedule = build(optimizer)
    rates = []
    for _ in expected:
        rates.append(optimizer.lr)
        schedule.step()

    np.testing.assert_allclose(rates, 2 * np.array(expected), atol=1e-15)
    again = build(optim.SGD([parameter()], lr=2.0))
    again.load_state_dict(schedule.state_dict())
    assert again.get_last_lr() == schedule.get_last_lr()


def test_the_rate_falls_on_a_plateau() -> None:
    optimizer = optim.SGD([parameter()], lr=1.0)
    schedule = optim.ReduceLROnPlateau(optimizer, factor=0.5, patience=1, min_lr=0.2)
    rates = []
    for metric in (3.0, 2.0, 2.0, 2.0, 2.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0):
        schedule.step(Tensor(np.array(metric)))
        rates.append(optimizer.lr)

    assert rates == [1, 1, 1, 0.5, 0.5, 0.25, 0.25, 0.25, 0.2, 0.2, 0.2]
