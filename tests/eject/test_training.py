"""Whole training steps as ejected modules: three steps give the losses and the parameters of eager execution."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad import nn, optim
from jitgrad.core.errors import EjectedMismatchError
from tests.compiled import assert_same
from tests.eject.ejecting import Eject, integers, tensor

Training = tuple[list[Any], Callable[..., Any], tuple[Any, ...]]


def mlp_with_adam() -> Training:
    jg.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, 3))
    optimizer = optim.Adam(model.parameters(), lr=0.01)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    return [*model.parameters()], step, (tensor(5, 6), tensor(5, 3))


def gru_with_momentum() -> Training:
    jg.manual_seed(0)
    cell, head = nn.GRUCell(4, 5), nn.Linear(5, 2)
    parameters = [*cell.parameters(), *head.parameters()]
    optimizer = optim.SGD(parameters, lr=0.02, momentum=0.9)

    def step(xs: Any, y: Any) -> Any:
        h = jg.zeros((3, 5))
        for t in range(3):
            h = cell(xs[t], h)
        loss = jg.cross_entropy(head(h), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return parameters, step, (tensor(3, 3, 4), integers(2, 3))


def dropout_with_random_numbers() -> Training:
    jg.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 9), nn.Dropout(0.5), nn.GELU(), nn.Linear(9, 3))
    optimizer = optim.SGD(model.parameters(), lr=0.01)

    def step(x: Any, y: Any) -> Any:
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return [*model.parameters()], step, (tensor(5, 6), tensor(5, 3))


def compare(make: Callable[[], Training], eject: Eject) -> Any:
    """Three steps by a module and three eager ones, from the same state; the files."""
    parameters, step, args = make()
    files, ejected = eject(step, *args)
    jg.manual_seed(7)
    found = [ejected(*args, **files.state) for _ in range(3)]
    expected_parameters, eager, args = make()
    jg.manual_seed(7)
    expected = [eager(*args).detach() for _ in range(3)]
    assert_same(found, expected, rtol=2e-5)
    assert_same([p.detach() for p in parameters], [p.detach() for p in expected_parameters], rtol=1e-4, atol=1e-6)
    grads = [(p.grad, q.grad) for p, q in zip(parameters, expected_parameters, strict=True)]
    for found_grad, expected_grad in grads:
        assert (found_grad is None) == (expected_grad is None)
        if found_grad is not None:
            assert_same(found_grad, expected_grad, rtol=1e-4, atol=1e-6)
    return files


@pytest.mark.usefixtures("in_python")
@pytest.mark.parametrize("make", [mlp_with_adam, gru_with_momentum, dropout_with_random_numbers])
def test_three_steps(make: Callable[[], Training], eject: Eject) -> None:
    compare(make, eject)


@pytest.mark.numba
def test_three_steps_compiled_by_numba(eject: Eject) -> None:
    compare(dropout_with_random_numbers, eject)


@pytest.mark.usefixtures("in_python")
def test_run_returns_the_gradients_that_the_step_leaves(eject: Eject) -> None:
    _, step, args = mlp_with_adam()
    files, ejected = eject(step, *args)
    arrays = {name: np.array(x.detach()) for name, x in files.state.items()}
    loss, gradients = ejected.module.run(*map(np.asarray, args), **arrays)
    assert loss.shape == ()
    assert list(gradients) == ["model_0_weight", "model_0_bias", "model_2_weight", "model_2_bias"]
    assert arrays["optimizer_count"] == 1.0


@pytest.mark.usefixtures("in_python")
def test_the_learning_rate_is_an_argument(eject: Eject) -> None:
    _, step, args = mlp_with_adam()
    files, ejected = eject(step, *args)
    before = files.state["model_0_weight"].detach().clone()
    ejected(*args, **{**files.state, "optimizer_param_groups_0_lr": jg.tensor(0.0, dtype="f8")})
    assert_same(files.state["model_0_weight"].detach(), before)


@pytest.mark.usefixtures("in_python")
def test_an_edit_that_only_later_steps_show_is_refused(eject: Eject) -> None:
    """Optimiser state starts as zeros, and zeros times anything are zeros."""
    files, _ = eject(mlp_with_adam()[1], *mlp_with_adam()[2])
    path = Path(files.path)
    text = path.read_text(encoding="utf-8")
    assert "* np.float32(0.9)" in text
    path.write_text(text.replace("* np.float32(0.9)", "* np.float32(0.8)"), encoding="utf-8")
    with pytest.raises(EjectedMismatchError, match="new value of optimizer_first_0"):
        jg.load_ejected(path)
