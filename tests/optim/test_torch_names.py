"""Optimisers, groups of parameters and schedules under torch's names, against torch and recorded numbers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad import nn, optim
from jitgrad.core.errors import ArgumentError
from jitgrad.optim import lr_scheduler

START = np.array([1.0, -2.0, 0.5])
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "dampening": ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1}),
    "maximize": ("SGD", {"lr": 0.01, "maximize": True, "foreach": True}),
    "amsgrad": ("Adam", {"lr": 0.1, "amsgrad": True, "fused": False}),
    "adamw": ("AdamW", {"lr": 0.1, "betas": (0.8, 0.9), "weight_decay": 0.3, "amsgrad": True}),
    "adadelta": ("Adadelta", {"lr": 2.0, "rho": 0.8, "weight_decay": 0.1}),
    "adamax": ("Adamax", {"lr": 0.1, "weight_decay": 0.1}),
    "nadam": ("NAdam", {"lr": 0.1, "weight_decay": 0.1, "momentum_decay": 0.05}),
    "nadam_decoupled": ("NAdam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    "radam": ("RAdam", {"lr": 0.1, "betas": (0.9, 0.99), "weight_decay": 0.1}),
    "radam_decoupled": ("RAdam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    "rprop": ("Rprop", {"lr": 0.1, "etas": (0.4, 1.3), "step_sizes": (1e-3, 0.3)}),
    "asgd": ("ASGD", {"lr": 0.1, "lambd": 0.3, "alpha": 0.6, "t0": 3.0, "weight_decay": 0.1}),
    "adafactor": ("Adafactor", {"lr": 0.3, "beta2_decay": -0.7, "weight_decay": 0.1, "eps": (1e-3, 0.2), "d": 1.5}),
}
# the parameters after eight steps of torch
RECORDED = {
    "dampening": [-0.709471517726, -0.0495878438747, -0.272607867265],
    "maximize": [1.18653311924, -3.51685059579, 0.553265548923],
    "amsgrad": [0.267351318974, -1.23752846439, -0.147921408313],
    "adamw": [0.178814064286, -0.930854790734, -0.108669394196],
    "adadelta": [0.960576297655, -1.96029920072, 0.460907865372],
    "adamax": [0.412718575007, -1.3558203476, -0.00910082002764],
    "nadam": [0.48171567205, -1.44252005504, 0.0538383673527],
    "nadam_decoupled": [0.439693277174, -1.32897217475, 0.0450374182825],
    "radam": [0.235363505973, 0.485268010037, 0.192493597719],
    "radam_decoupled": [0.249508864501, 0.441370905707, 0.206997363262],
    "rprop": [-0.08431, -0.19569, 0.083424],
    "asgd": [0.234970030204, -0.264101029609, 0.146678093923],
    "adafactor": [0.0514172058855, -0.6388937466, -6.67920342582e-12],
}


def train(module: Any, optimizer: Any, p: Any, steps: int = 8) -> list[float]:
    for _ in range(steps):
        optimizer.zero_grad()
        (p**4 / 4 + p**2 / 2).sum().backward()
        optimizer.step()
    return p.detach().numpy().tolist()  # type: ignore[no-any-return]


def make(module: Any, name: str) -> tuple[Any, Any]:
    kind, options = CASES[name]
    p = module.tensor(START).requires_grad_()
    return getattr(module.optim, kind)([p], **options), p


@pytest.mark.parametrize("name", CASES)
def test_recorded_numbers(name: str):
    np.testing.assert_allclose(train(jg, *make(jg, name)), RECORDED[name], rtol=2e-7)


@pytest.mark.peers
@pytest.mark.parametrize("name", CASES)
def test_same_as_torch(name: str):
    torch: Any = pytest.importorskip("torch")

    np.testing.assert_allclose(train(jg, *make(jg, name)), train(torch, *make(torch, name)), rtol=2e-7)


@pytest.mark.parametrize("name", CASES)
def test_compiled_steps_are_eager_steps_and_are_traced_once(name: str):
    optimizer, p = make(jg, name)

    @jg.jit
    def step() -> Any:
        optimizer.zero_grad()
        loss = (p**4 / 4 + p**2 / 2).sum()
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(8):
        step()

    np.testing.assert_allclose(p.detach().numpy(), RECORDED[name], rtol=2e-7)
    assert step.cache_info().traces == 1


@pytest.mark.parametrize("name", CASES)
def test_training_goes_on_from_a_saved_state(name: str):
    first, p = make(jg, name)
    train(jg, first, p, 4)
    second, q = make(jg, name)
    with jg.no_grad():
        q.copy_(p)
    second.load_state_dict(first.state_dict())

    np.testing.assert_allclose(train(jg, second, q, 4), RECORDED[name], rtol=2e-7)


# --- groups ------------------------------------------------------------------------------------------------------


def two_groups(module: Any, kind: str, **options: Any) -> tuple[Any, list[Any]]:
    ps = [module.tensor(START * k).requires_grad_() for k in (1.0, 0.5, -0.3)]
    groups = [{"params": [ps[0]], "lr": 0.03, "weight_decay": 0.2}, {"params": ps[1:2]}]
    optimizer = getattr(module.optim, kind)(groups, lr=0.1, **options)
    optimizer.add_param_group({"params": ps[2], "lr": 0.02})
    return optimizer, ps


def train_all(optimizer: Any, ps: list[Any]) -> list[Any]:
    for k in range(5):
        optimizer.zero_grad(set_to_none=k % 2 == 0)
        sum((p**4 / 4 + p**2 / 2).sum() for p in ps).backward()
        optimizer.step()
        for group in optimizer.param_groups:
            group["lr"] *= 0.9
    return [p.detach().numpy() for p in ps]


@pytest.mark.peers
@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW", "NAdam", "RMSprop", "Adagrad", "RAdam", "Adamax", "Adadelta", "Rprop",
                                  "ASGD", "Adafactor"])
def test_groups_same_as_torch(kind: str):
    torch: Any = pytest.importorskip("torch")
    options = {"momentum": 0.9} if kind == "SGD" else {}

    for x, y in zip(train_all(*two_groups(jg, kind, **options)), train_all(*two_groups(torch, kind, **options)), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6, atol=1e-9)


def test_groups_are_mappings():
    optimizer, ps = two_groups(jg, "SGD", momentum=0.5)
    first, second, third = optimizer.param_groups

    assert [group["lr"] for group in optimizer.param_groups] == [0.03, 0.1, 0.02]
    assert (first["weight_decay"], second["weight_decay"], third["momentum"]) == (0.2, 0.0, 0.5)
    assert first["params"][0] is ps[0]
    assert set(first) == {"params", "lr", "momentum", "dampening", "weight_decay", "nesterov", "maximize"}
    assert first.get("betas") is None
    assert optimizer.lr == 0.03
    optimizer.lr = 0.5
    assert [group["lr"] for group in optimizer.param_groups] == [0.5] * 3
    first["momentum"] = 0.25
    assert first["momentum"] == 0.25
    assert {"lr", "lr.1", "lr.2", "momentum.0", "momentum.2"} <= set(optimizer.state_dict())


def test_a_new_rate_of_a_group_needs_no_new_trace():
    optimizer, ps = two_groups(jg, "Adam")

    @jg.jit
    def step() -> None:
        optimizer.zero_grad()
        sum((p**2).sum() for p in ps).backward()
        optimizer.step()

    step()
    optimizer.param_groups[1]["lr"] = 0.0
    before = [p.tolist() for p in ps]
    step()

    assert [p.tolist() == old for p, old in zip(ps, before, strict=True)] == [False, True, False]
    assert step.cache_info().traces == 1


def test_zero_grad_to_zeros_and_closures():
    p = jg.ones(2, requires_grad=True)
    optimizer = optim.SGD([("weight", p)], lr=0.5)

    def closure() -> Any:
        optimizer.zero_grad(set_to_none=False)
        loss = (p**2).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 2.0
    assert p.tolist() == [0.0, 0.0]
    optimizer.zero_grad(set_to_none=False)
    assert p.grad.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda p: optim.SGD([p], lr=0.1, turbo=True), "turbo is no option of it"),
        (lambda p: optim.SGD([{"params": [p], "momentun": 1}]), "did you mean 'momentum'"),
        (lambda p: optim.SGD([{"lr": 0.1}]), "'params'"),
        (lambda p: optim.SGD({"params": [p]}), "of class dict"),
        (lambda p: optim.SGD([{"params": [p]}, {"params": [p]}]), "twice"),
        (lambda p: optim.SGD([p], momentum=0.1, dampening=0.5, nesterov=True), "no dampening"),
        (lambda p: optim.Adadelta([p], rho=2.0), "rho"),
        (lambda p: optim.LBFGS([{"params": [p]}, {"params": [jg.ones(1, requires_grad=True)]}]), "one group"),
        (lambda p: optim.SGD([p]).param_groups[0].update(params=[]), "add_param_group"),
        (lambda p: optim.SGD([p]).param_groups[0].pop("momentum"), "cannot be deleted"),
        (lambda p: lr_scheduler.OneCycleLR(optim.SGD([p]), 0.1, 10), "pass False"),
        (lambda p: lr_scheduler.OneCycleLR(optim.SGD([p]), 0.1), "total_steps"),
        (lambda p: lr_scheduler.LambdaLR(optim.SGD([p]), [abs, abs]), "2 functions for 1 groups"),
        (lambda p: lr_scheduler.SequentialLR(optim.SGD([p]), [], []), "milestone between"),
        (lambda p: lr_scheduler.CyclicLR(optim.SGD([p]), 0.1, 0.2), "cycle_momentum=False"),
    ],
)
def test_errors(call: Callable[[Any], Any], words: str):
    with pytest.raises(ArgumentError, match=words):
        call(jg.ones(2, requires_grad=True))


# --- schedules ---------------------------------------------------------------------------------------------------

SCHEDULES: dict[str, Callable[[Any, Any], Any]] = {
    "LambdaLR": lambda m, o: m.LambdaLR(o, lambda n: 0.9**n),
    "LambdaLR_list": lambda m, o: m.LambdaLR(o, [lambda n: 0.9**n, lambda n: 1 / (n + 1)]),
    "MultiplicativeLR": lambda m, o: m.MultiplicativeLR(o, lambda n: 1 - n / 20),
    "StepLR": lambda m, o: m.StepLR(o, step_size=3, gamma=0.5),
    "MultiStepLR": lambda m, o: m.MultiStepLR(o, milestones=[2, 5], gamma=0.3),
    "ConstantLR": lambda m, o: m.ConstantLR(o, factor=0.5, total_iters=3),
    "LinearLR": lambda m, o: m.LinearLR(o, start_factor=0.1, total_iters=4),
    "ExponentialLR": lambda m, o: m.ExponentialLR(o, gamma=0.8),
    "PolynomialLR": lambda m, o: m.PolynomialLR(o, total_iters=7, power=2.0),
    "CosineAnnealingLR": lambda m, o: m.CosineAnnealingLR(o, T_max=10, eta_min=0.01),
    "WarmRestarts": lambda m, o: m.CosineAnnealingWarmRestarts(o, T_0=2, T_mult=2, eta_min=0.01),
    "WarmRestarts_equal": lambda m, o: m.CosineAnnealingWarmRestarts(o, 3),
    "SequentialLR": lambda m, o: m.SequentialLR(o, [m.LinearLR(o, 0.2, 1.0, 3), m.ExponentialLR(o, 0.5)], milestones=[3]),
    "OneCycleLR": lambda m, o: m.OneCycleLR(o, max_lr=0.5, total_steps=11),
    "OneCycleLR_linear": lambda m, o: m.OneCycleLR(
        o, max_lr=[0.5, 0.2], epochs=3, steps_per_epoch=4, anneal_strategy="linear", three_phase=True
    ),
    "CyclicLR": lambda m, o: m.CyclicLR(o, 0.1, 0.4, step_size_up=3, mode="triangular2", cycle_momentum=False),
    "CyclicLR_range": lambda m, o: m.CyclicLR(o, 0.1, 0.4, 2, 3, "exp_range", 0.9, cycle_momentum=False),
}


def rates(module: Any, name: str) -> list[Any]:
    ps = [module.tensor(START).requires_grad_() for _ in range(2)]
    optimizer = module.optim.SGD([{"params": [ps[0]]}, {"params": [ps[1]], "lr": 0.3}], lr=0.1, momentum=0.9)
    schedule = SCHEDULES[name](module.optim.lr_scheduler, optimizer)
    seen = []
    for _ in range(10):
        seen.append([*schedule.get_last_lr(), *(group["momentum"] for group in optimizer.param_groups)])
        optimizer.step()
        schedule.step()
    return seen


@pytest.mark.peers
@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_same_as_torch(name: str):
    torch: Any = pytest.importorskip("torch")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_allclose(rates(jg, name), rates(torch, name), rtol=1e-9, atol=1e-15)


@pytest.mark.peers
def test_plateau_same_as_torch():
    torch: Any = pytest.importorskip("torch")
    metrics = [3.0, 2.0, 2.1, 2.0, 1.99, 2.2, 2.3, 2.4, 2.0, 2.5, 2.5, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5]

    for options in ({"cooldown": 2, "patience": 1}, {"threshold": 0.5, "threshold_mode": "abs", "patience": 2}, {"mode": "max"}):
        seen = []
        for module in (jg, torch):
            optimizer = module.optim.SGD([module.ones(2).requires_grad_()], lr=1.0)
            schedule = module.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, min_lr=0.2, **options)
            seen.append([(schedule.step(m), optimizer.param_groups[0]["lr"])[1] for m in metrics])
        assert seen[0] == seen[1]


def test_one_cycle_moves_momentum_without_a_new_trace():
    model = nn.Linear(3, 1)
    optimizer = optim.Adam(model.parameters(), lr=0.1)
    schedule = lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=6)

    @jg.jit
    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    x = jg.randn(8, 3)
    losses, betas = [], []
    for k in range(6):
        losses.append(step(x).item())
        betas.append(optimizer.param_groups[0]["beta1"])
        if k < 5:
            schedule.step()

    assert step.cache_info().traces == 1
    assert losses[-1] < losses[0]
    assert betas[0] == betas[-1] == 0.95
    assert 0.85 <= min(betas) < 0.87
    schedule.step()  # after the last batch, where loops of many programs call it
    with pytest.raises(ArgumentError, match="step 7 of a cycle of 6 steps"):
        schedule.step()


def test_schedules_resume():
    optimizer = optim.SGD([jg.ones(1, requires_grad=True)], lr=1.0)
    schedule = lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
    schedule.step(1.0)
    again = lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
    again.load_state_dict(schedule.state_dict())
    again.step(2.0)

    assert again.get_last_lr() == [0.1]
