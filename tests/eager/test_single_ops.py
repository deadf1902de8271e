"""Functions that apply one op to a tensor run its plan at once, and nobody can tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import AxisError, InPlaceError, ShapeError
from jitgrad.core.tensor import Tensor
from jitgrad.eager import single_ops

CALLS: dict[str, Callable[[Tensor], Tensor]] = {
    "sum": lambda x: x.sum(),
    "sum over an axis": lambda x: x.sum(-1),
    "sum keeping dims": lambda x: x.sum(dim=0, keepdim=True),
    "max": lambda x: x.max(axis=(0, 2)),
    "prod": lambda x: x.prod(1),
    "any": lambda x: x.any(0),
    "reshape": lambda x: x.reshape(2, -1),
    "view": lambda x: x.view((4, 6)),
    "T": lambda x: x.T,
    "mT": lambda x: x.mT,
    "transpose": lambda x: x.transpose(0, 1),
    "permute": lambda x: x.permute(2, 0, 1),
    "unsqueeze": lambda x: x.unsqueeze(-1),
    "squeeze": lambda x: x[:1].squeeze(0),
    "flip": lambda x: x.flip((0, 2)),
    "flatten": lambda x: x.flatten(1),
    "broadcast_to": lambda x: jg.broadcast_to(x, (5, 2, 3, 4)),
}


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The functions for whose arguments plans were looked for."""
    names: list[str] = []
    right = single_ops._prepared

    def noted(known: Any, function: Any, *rest: Any) -> Any:
        names.append(function.__name__)
        return right(known, function, *rest)

    monkeypatch.setattr(single_ops, "_prepared", noted)
    return names


@pytest.mark.parametrize("name", CALLS)
def test_later_calls_run_a_plan_with_the_same_result(name: str, prepared: list[str]) -> None:
    call = CALLS[name]
    array = np.sin(np.arange(24.0)).reshape(2, 3, 4)
    results, grads = [], []
    for k in range(3):
        x = jg.tensor(array, requires_grad=True)
        out = call(x)
        results.append(out.detach().numpy())
        if out.requires_grad:
            out.backward(jg.ones(out.shape, dtype=out.dtype))
            grads.append(x.grad.numpy())
            assert "test_single_ops.py" in str(out.grad_fn.origin)
        if k == 0:
            prepared.clear()

    assert not prepared
    for found in (results, grads):
        for other in found[1:]:
            assert other.dtype == found[0].dtype and other.tobytes() == found[0].tobytes()


def test_equal_arguments_of_other_types_are_other_calls() -> None:
    x = jg.ones(6)
    assert x.reshape((2, 3)).shape == (2, 3)
    for wrong in ((2, 3.0), (2.0, 3)):
        with pytest.raises(ShapeError):
            x.reshape(wrong)
    assert jg.ones((2, 3)).sum(0, True).shape == jg.ones((2, 3)).sum(0, 1).shape == (1, 3)


def test_wrong_arguments_raise_every_time() -> None:
    x = jg.ones((2, 3))
    for _ in range(3):
        with pytest.raises(AxisError):
            x.sum(2)
        with pytest.raises(ShapeError):
            x.reshape(4, -1)


def test_views_share_memory_and_history() -> None:
    for _ in range(3):
        x = jg.zeros((2, 3))
        x.T[0] = 1.0
        x.reshape(-1).add_(1.0)
        assert x.tolist() == [[2.0, 1.0, 1.0], [2.0, 1.0, 1.0]]
    y = jg.ones((2, 3), requires_grad=True) * 1.0
    loss = (y * y).sum()
    y.T.mul_(2.0)
    with pytest.raises(InPlaceError):
        loss.backward()


def test_a_list_of_ints_and_an_array_index_rows() -> None:
    x = jg.tensor(np.arange(12.0).reshape(4, 3), requires_grad=True)
    for index in ([2, -1], jg.tensor([2, -1]), np.array([2, -1])):
        assert x[index].tolist() == [[6.0, 7.0, 8.0], [9.0, 10.0, 11.0]]
    x[[0, 0]].sum().backward()
    assert x.grad.tolist() == [[2.0] * 3, [0.0] * 3, [0.0] * 3, [0.0] * 3]
    assert x[[True, False, True, False]].shape == (2, 3) and x[[]].shape == (0, 3)
    with pytest.raises(IndexError):
        x[[4]]
