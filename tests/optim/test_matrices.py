"""Optimizers for which a parameter is a matrix: Adafactor against torch, Muon against its formulas and torch's bfloat16."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import ArgumentError

SHAPES = ((4, 3), (2, 5), (2, 3, 4), (6,), ())


def start(k: int) -> Any:
    return np.cos(np.arange(np.prod(SHAPES[k], dtype=int), dtype=np.float64) + k).reshape(SHAPES[k])


def train(module: Any, kind: str, shapes: range, steps: int = 6, compiled: bool = False, **options: Any) -> Any:
    params = [module.tensor(start(k)).requires_grad_() for k in shapes]
    groups = [{"params": params[:1], "lr": 0.03}, {"params": params[1:]}]
    optimizer = getattr(module.optim, kind)(groups, lr=0.2, **options)

    def step() -> None:
        optimizer.zero_grad()
        sum((p**4 / 4 + p**2 / 2 + p).sum() for p in params).backward()
        optimizer.step()

    run = jg.jit(step) if compiled else step
    for _ in range(steps):
        run()
    if compiled:
        assert run.cache_info().traces == 1  # type: ignore[attr-defined]
    return [p.detach().numpy() for p in params]


ADAFACTOR: list[dict[str, Any]] = [
    {},
    {"weight_decay": 0.2, "maximize": True},
    {"d": 1.3, "eps": (1e-2, 0.3), "beta2_decay": -0.5},
]


@pytest.mark.peers
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("options", ADAFACTOR)
def test_adafactor_is_that_of_torch(options: dict[str, Any], compiled: bool) -> None:
    torch = pytest.importorskip("torch")
    found = train(jg, "Adafactor", range(5), compiled=compiled, **options)

    for x, y in zip(found, train(torch, "Adafactor", range(5), **options), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-12)


def test_adafactor_keeps_rows_and_columns_of_matrices() -> None:
    p, q = jg.zeros(5, 7, requires_grad=True), jg.zeros(3, requires_grad=True)
    state = jg.optim.Adafactor([p, q]).state_dict()

    shapes = {name: value.shape for name, value in state.items() if value.size}
    assert shapes == {"lr": (), "row_var.0": (5, 1), "col_var.0": (1, 7), "variance.1": (3,), "step": ()}


def muon_by_formula(steps: int, nesterov: bool, adjust: str | None) -> list[Any]:
    found = []
    for k, lr in ((0, 0.03), (1, 0.2)):
        p, b = start(k), 0.0
        rows, columns = p.shape
        factor = 0.2 * max(p.shape) ** 0.5 if adjust == "match_rms_adamw" else max(1.0, rows / columns) ** 0.5
        for _ in range(steps):
            g = p**3 + p + 1
            b = 0.9 * b + 0.1 * g
            u, s, v = np.linalg.svd(0.1 * g + 0.9 * b if nesterov else b, full_matrices=False)
            s = s / np.sqrt((s * s).sum())
            for _ in range(5):  # the iteration is one of singular values
                s = 3.4445 * s - 4.775 * s**3 + 2.0315 * s**5
            p = p * (1 - lr * 0.1) - lr * factor * (u * s) @ v
        found.append(p)
    return found


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("nesterov", "adjust"), [(True, None), (False, "original"), (True, "match_rms_adamw")])
def test_muon_moves_singular_values(nesterov: bool, adjust: str | None, compiled: bool) -> None:
    options = {"momentum": 0.9, "nesterov": nesterov, "adjust_lr_fn": adjust}
    found = train(jg, "Muon", range(2), compiled=compiled, **options)

    for x, y in zip(found, muon_by_formula(6, nesterov, adjust), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-8)


@pytest.mark.peers
def test_muon_is_that_of_torch_as_far_as_bfloat16_goes() -> None:
    torch = pytest.importorskip("torch")

    for x, y in zip(train(jg, "Muon", range(2), 3), train(torch, "Muon", range(2), 3), strict=True):
        np.testing.assert_allclose(x, y, atol=0.03)


def test_rprop_takes_no_step_where_the_sign_has_changed() -> None:
    p = jg.tensor([1.0, 1.0], requires_grad=True)
    optimizer = jg.optim.Rprop([p], lr=0.1)
    seen = []
    for g in ([1.0, 2.0], [-3.0, 0.5], [-1.0, 0.5]):
        p.grad = jg.tensor(g)
        optimizer.step()
        seen.append(p.tolist())

    np.testing.assert_allclose(seen, [[0.9, 0.9], [0.9, 0.78], [0.95, 0.636]], rtol=1e-6)


def test_asgd_averages_after_t0() -> None:
    p = jg.tensor([1.0], requires_grad=True)
    optimizer = jg.optim.ASGD([p], lr=0.1, t0=1.0)
    seen = []
    for _ in range(4):
        p.grad = jg.ones(1)
        optimizer.step()
        seen.append(p.item())

    np.testing.assert_allclose(optimizer.state_dict()["ax.0"].item(), np.mean(seen[2:]), rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda p: jg.optim.Muon([p]), "p.ndim != 2"),
        (lambda p: jg.optim.Muon([{"params": p}]), "p.ndim != 2"),
        (lambda p: jg.optim.Muon([p[None].detach()], ns_steps=200), "0 to 99"),
        (lambda p: jg.optim.Muon([p[None].detach()], ns_coefficients=(1.0, 2.0)), "three numbers"),
        (lambda p: jg.optim.Muon([p[None].detach()], adjust_lr_fn="rms"), "match_rms_adamw or None, got 'rms'"),
        (lambda p: jg.optim.Adafactor([p], eps=1e-3), "two numbers"),
        (lambda p: jg.optim.Adafactor([p], d=0.5), "d must be at least 1"),
        (lambda p: jg.optim.Adafactor([p], beta2_decay=0.5), "at most 0"),
        (lambda p: jg.optim.Rprop([p], etas=(0.5, 0.9)), "one above 1"),
        (lambda p: jg.optim.Rprop([p], step_sizes=(0.0, 0.9)), "above 0"),
        (lambda p: jg.optim.Rprop([p], step_sizes=0.1), "two numbers"),
        (lambda p: jg.optim.ASGD([p], lambd=-1.0), "lambd"),
    ],
)
def test_errors(call: Callable[[Any], Any], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        call(jg.ones(2, requires_grad=True))
