"""LBFGS evaluates its closure where torch's does, as often, and keeps what the closure changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg

START = np.array([-1.5, 2.0, 0.3])


def losses(m: Any, line_search: str | None, clamped: bool, wrap: Any = None) -> tuple[list[float], Any]:
    """The loss of each evaluation in three steps on Rosenbrock's function."""
    x = m.tensor(START, requires_grad=True)
    rate = 0.5 if line_search is None else 1.0
    optimizer = m.optim.LBFGS([x], lr=rate, max_iter=8, history_size=4, line_search_fn=line_search)
    seen = []

    def loss() -> Any:
        optimizer.zero_grad()
        value = ((1 - x[:-1]) ** 2).sum() + (100 * (x[1:] - x[:-1] ** 2) ** 2).sum()
        value.backward()
        return value

    compute = loss if wrap is None else wrap(loss)

    def closure() -> Any:
        if clamped:
            with m.no_grad():
                x.clamp_(-1.2, 0.8)
        value = compute()
        seen.append(value.item())
        return value

    first = [optimizer.step(closure).item() for _ in range(3)]
    return [*first, *seen], x.detach().numpy()


@pytest.mark.parametrize("line_search", [None, "strong_wolfe"])
@pytest.mark.parametrize("clamped", [False, True])
@pytest.mark.parametrize("wrap", [None, jg.jit])
def test_evaluations_are_torchs(line_search: str | None, clamped: bool, wrap: Any) -> None:
    if line_search and clamped:
        pytest.skip("torch measures a clamped point by the length of the step that it did not make")
    torch = pytest.importorskip("torch")
    found, x = losses(jg, line_search, clamped, wrap)
    expected, theirs = losses(torch, line_search, clamped)
    assert len(found) == len(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    np.testing.assert_allclose(x, theirs, rtol=1e-6)


def test_a_compiled_closure_is_traced_once() -> None:
    compiled = []
    losses(jg, None, False, lambda f: compiled.append(jg.jit(f)) or compiled[0])
    assert compiled[0].cache_info().traces == 1


def bounded(m: Any) -> tuple[list[Any], Any]:
    """The points that a closure evaluates which keeps them in bounds."""
    x, target = m.zeros(4, requires_grad=True), m.tensor([-1.0, 0.2, 0.5, 2.0])
    optimizer = m.optim.LBFGS([x])
    seen = []

    def closure() -> Any:
        with m.no_grad():
            x.clamp_(0.0, 1.0)
        optimizer.zero_grad()
        loss = ((x - target) ** 2).sum()
        loss.backward()
        seen.append(x.tolist())
        return loss

    for _ in range(3):
        optimizer.step(closure)
    return seen, x.tolist()


def test_what_a_closure_changes_stays() -> None:
    torch = pytest.importorskip("torch")
    for found, expected in zip(bounded(jg), bounded(torch), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-5)
