"""Cutting a tensor into views is prepared once for each aval and arguments, and nobody can tell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import ArgumentError, InPlaceError, ShapeError
from jitgrad.core.tensor import Tensor
from jitgrad.ops import view_lists

CALLS: dict[str, Callable[[Tensor], Sequence[Tensor]]] = {
    "unstack": lambda x: jg.unstack(x),
    "unbind": lambda x: x.unbind(-1),
    "iteration": list,
    "split": lambda x: jg.split(x, 2),
    "torch's split": lambda x: jg.split(x, 3, dim=1),
    "chunk": lambda x: x.chunk(4, 1),
    "sizes": lambda x: x.split((1, 5), dim=1),
    "of a transpose": lambda x: x.T.unbind(),
    "backwards": lambda x: x.flip(0).unbind(1),
}


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The functions for whose arguments views were looked for."""
    names: list[str] = []
    right = view_lists._prepared

    def noted(known: Any, function: Any, *rest: Any) -> Any:
        names.append(function.__name__)
        return right(known, function, *rest)

    monkeypatch.setattr(view_lists, "_prepared", noted)
    return names


def by_ops(call: Callable[[Tensor], Sequence[Tensor]], x: Tensor) -> Sequence[Tensor]:
    """What ``call`` gives without prepared views, as in anything that is not eager execution."""
    return jg.vmap(lambda y: tuple(call(y)))(x[None].clone())


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("name", CALLS)
def test_later_calls_have_the_same_views(name: str, requires_grad: bool, prepared: list[str]) -> None:
    array = np.sin(np.arange(24.0)).reshape(4, 6)
    expected = [part.numpy()[0] for part in by_ops(CALLS[name], jg.tensor(array))]
    for k in range(3):
        x = jg.tensor(array, requires_grad=requires_grad)
        parts = CALLS[name](x)
        assert [part.detach().numpy().tobytes() for part in parts] == [part.tobytes() for part in expected]
        assert [part.shape for part in parts] == [part.shape for part in expected]
        if requires_grad:
            sum(((j + 1) * part).sum() for j, part in enumerate(parts)).backward()
            assert np.array_equal(np.sort(np.unique(x.grad.numpy())), np.arange(1.0, len(parts) + 1))
            assert "test_view_lists.py" in str(parts[0].grad_fn.origin)
        if k == 0:
            prepared.clear()

    assert not prepared


def test_changes_reach_all_views_and_histories() -> None:
    x = jg.zeros((3, 4))
    for _ in range(3):
        rows = x.unbind(0)
        rows[1].add_(1.0)
        for row in x:
            row += 1
    assert x.tolist() == [[3.0] * 4, [6.0] * 4, [3.0] * 4] and rows[1].tolist() == [6.0] * 4

    w = jg.ones((3, 4), requires_grad=True)
    y = w * 1.0
    for row in y:
        row.mul_(2.0)
    y.unbind(1)[0].mul_(3.0)
    y.sum().backward()
    assert w.grad.tolist() == [[6.0, 2.0, 2.0, 2.0]] * 3


def test_a_change_of_what_a_view_saved_is_found() -> None:
    x = jg.ones((2, 3), requires_grad=True)
    y = x * 1.0
    for _ in range(2):
        first, _second = y.unbind(0)
        loss = (first * first).sum()
    y.add_(1.0)
    with pytest.raises(InPlaceError):
        loss.backward()


def test_one_node_stands_for_the_ops_of_an_index() -> None:
    x = jg.ones((3, 4), requires_grad=True)
    for _ in range(2):
        (g,) = jg.autograd.grad((x[1, 2] ** 3).sum(), [x], create_graph=True)
        (second,) = jg.autograd.grad(g.sum(), [x])

    assert x[1, 2].grad_fn.edges == (x,)
    assert g.tolist()[1] == [0.0, 0.0, 3.0, 0.0] and second.tolist()[1] == [0.0, 0.0, 6.0, 0.0]


def test_odd_tensors() -> None:
    for _ in range(2):
        assert [part.shape for part in jg.split(jg.ones((0, 3)), 2)] == [(0, 3)] * 2
        assert jg.unstack(jg.ones((0, 3))) == () and [part.shape for part in jg.ones((2, 0))] == [(0,), (0,)]
        assert [part.dtype for part in jg.arange(2).unbind()] == [np.int64] * 2
        assert [part.item() for part in jg.arange(6)[::-2].unbind()] == [5, 3, 1]
        with pytest.raises(ShapeError):
            jg.unstack(jg.ones(()))
        with pytest.raises(ArgumentError):
            jg.split(jg.ones(5), 2)


@pytest.mark.parametrize("name", ["split", "unbind", "rest"])
def test_more_slices_than_are_remembered_are_made_at_once(name: str, prepared: list[str]) -> None:
    calls: dict[str, Callable[[Tensor], Sequence[Tensor]]] = {
        "split": lambda x: x.split(1, dim=1),
        "unbind": lambda x: x.unbind(1),
        "rest": lambda x: x.split((2, *[1] * 1498), dim=1),
    }
    data = np.arange(3000.0).reshape(2, 1500)
    x = jg.tensor(data)
    parts = calls[name](x)
    expected = [data[:, k] if name == "unbind" else data[:, k : k + 1] for k in range(1500)]
    if name == "rest":
        expected = [data[:, :2], *expected[2:]]

    assert not prepared
    assert len(parts) == len(expected)
    for part, whole in zip(parts, expected, strict=True):
        assert part.aval.shape == whole.shape
        np.testing.assert_array_equal(part.numpy(), whole)
    parts[7].zero_()
    assert x.numpy()[:, 7 if name != "rest" else 8].tolist() == [0.0, 0.0]
    w = jg.ones((2, 1500), requires_grad=True)
    saved = (w * x).sum()
    parts[3].add_(1.0)
    with pytest.raises(InPlaceError):
        saved.backward()
    assert not parts[0].is_contiguous()


def test_many_slices_with_a_gradient_have_a_history() -> None:
    x = jg.ones((1100,), requires_grad=True)
    parts = x.unbind(0)
    (parts[3] * 2.0).backward()

    assert x.grad is not None
    assert x.grad.numpy().nonzero()[0].tolist() == [3]
