"""Names and habits of PyTorch programs that were missing: each computes what torch computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad import nn
from jitgrad.core.errors import ArgumentError, ShapeError, TracedValueError

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("shape", [(3, 3), (2, 5), (5, 2), (7, 3), (2, 2, 2)])
@pytest.mark.parametrize("wrap", [False, True])
def test_fill_diagonal(shape: tuple[int, ...], wrap: bool) -> None:
    x = np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
    expected = torch.tensor(x).fill_diagonal_(-1.0, wrap).numpy()

    def filled(x: Any) -> Any:
        y = x * 1.0
        assert y.fill_diagonal_(-1.0, wrap) is y
        return y

    for function in (filled, jg.jit(filled)):
        np.testing.assert_array_equal(function(jg.tensor(x)).numpy(), expected)
    gradient = jg.jit(jg.grad(lambda x: filled(x).sum()))(jg.tensor(x)).numpy()
    np.testing.assert_array_equal(gradient, expected != -1.0)


def test_fill_diagonal_of_other_shapes_is_refused() -> None:
    with pytest.raises(ShapeError, match="expected a matrix"):
        jg.ones(3).fill_diagonal_(0.0)
    with pytest.raises(ShapeError, match="axes of one length"):
        jg.ones((2, 3, 2)).fill_diagonal_(0.0)


def test_where_of_a_condition_alone() -> None:
    x = np.array([[0.0, 2.0], [3.0, 0.0]])
    for found, expected in zip(jg.where(jg.tensor(x)), torch.where(torch.tensor(x)), strict=True):
        np.testing.assert_array_equal(found.numpy(), expected.numpy())
    with pytest.raises(TracedValueError, match="nonzero needs the value"):
        jg.jit(lambda x: jg.where(x)[0])(jg.tensor(x))


def test_only_inputs() -> None:
    x = jg.tensor([2.0], requires_grad=True)
    (g,) = jg.autograd.grad((x * x).sum(), x, only_inputs=True)
    assert g.tolist() == [4.0]
    with pytest.raises(ArgumentError, match="call backward"):
        jg.autograd.grad((x * x).sum(), x, only_inputs=False)


def test_a_parameter_that_is_frozen_from_the_start_is_saved() -> None:
    class Margin(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.margin = nn.Parameter(jg.tensor([1.0]), requires_grad=False)
            self.weight = nn.Parameter(jg.ones(2))

    module = Margin()
    assert list(module.state_dict()) == ["margin", "weight"]
    assert isinstance(module.margin, nn.Parameter)
    assert not isinstance(jg.ones(2), nn.Parameter)
    assert [p.requires_grad for p in module.parameters()] == [False, True]
    module.load_state_dict({"margin": jg.tensor([3.0]), "weight": jg.zeros(2)})
    assert module.margin.item() == 3.0


def lion(library: Any) -> Any:
    """X. Chen et al., "Symbolic Discovery of Optimization Algorithms", NeurIPS 2023, written as for torch."""

    class Lion(library.optim.Optimizer):
        def __init__(self, params: Any, lr: float = 1e-2, betas: Any = (0.9, 0.99), weight_decay: float = 0.0) -> None:
            super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

        @library.no_grad()
        def step(self, closure: Any = None) -> None:
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    state = self.state[p]
                    if len(state) == 0:
                        state["step"] = 0
                        state["average"] = library.zeros_like(p)
                    state["step"] += 1
                    keep, keep_average = group["betas"]
                    p.mul_(1 - group["lr"] * group["weight_decay"])
                    p.add_((state["average"] * keep + p.grad * (1 - keep)).sign() * -group["lr"] / state["step"])
                    state["average"].mul_(keep_average).add_(p.grad, alpha=1 - keep_average)

    return Lion


def trained(library: Any, wrap: Any) -> list[Any]:
    a, b = (library.tensor(np.arange(1.0, 1.0 + n), requires_grad=True) for n in (3, 2))
    optimizer = lion(library)([{"params": [a], "weight_decay": 0.1}, {"params": [b], "lr": 0.05}], lr=0.02)
    schedule = library.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = ((a * x).sum() - (b * b).sum()) ** 2
        loss.backward()
        optimizer.step()
        return loss

    step, losses = wrap(step), []
    for k in range(5):
        losses.append(step(library.tensor([0.1 * k, 1.0, -0.3], dtype=library.float64)).item())
        schedule.step()
    assert optimizer.state[a]["step"] == 5
    return [losses, a.tolist(), b.tolist(), optimizer.state[b]["average"].tolist()]


def test_the_state_of_such_an_optimizer_is_saved() -> None:
    def make() -> tuple[Any, Any, Any]:
        w = jg.tensor([1.0, 2.0], requires_grad=True)
        optimizer = lion(jg)([w])

        def step(x: Any) -> None:
            optimizer.zero_grad()
            (w * x).sum().backward()
            optimizer.step()

        return w, optimizer, jg.jit(step)

    w, optimizer, step = make()
    step(jg.tensor([1.0, -1.0])), step(jg.tensor([-3.0, 1.0]))
    other_w, other, other_step = make()
    with jg.no_grad():
        other_w.copy_(w)
    other.load_state_dict(optimizer.state_dict())
    step(jg.tensor([0.1, 0.0])), other_step(jg.tensor([0.1, 0.0]))
    assert other_w.tolist() == w.tolist()
    assert other.state[other_w]["step"] == 3
    other.load_state_dict(make()[1].state_dict())
    assert other.state[other_w] == {}


@pytest.mark.parametrize("wrap", [lambda f: f, jg.jit], ids=["eager", "compiled"])
def test_an_optimizer_written_as_for_torch(wrap: Any) -> None:
    for found, expected in zip(trained(jg, wrap), trained(torch, lambda f: f), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
