"""In-place changes of views and what they are views of: values and gradients are torch's, eager and compiled."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.config import set_methods_of
from jitgrad.core.errors import InPlaceError, TracedValueError

torch = pytest.importorskip("torch")
from tests.ops.view_programs import compiled_text, program  # noqa: E402  # it needs torch

X = np.random.default_rng(0).normal(size=(4, 3))
Y = np.random.default_rng(1).normal(size=(4, 3))
Function = Callable[..., Any]


@pytest.fixture(autouse=True)
def elements_as_in_torch(methods_of_numpy: None) -> None:
    """``x[i, j]`` is a view in torch, and a number in NumPy."""
    set_methods_of("torch")


def by_torch(f: Function) -> list[Any]:
    """Loss, gradients, and gradients of the sum of their squares."""
    x, y = torch.tensor(X, requires_grad=True), torch.tensor(Y, requires_grad=True)
    loss = f(torch, x, y) + 0.0 * (x * y).sum()
    first = torch.autograd.grad(loss, [x, y], create_graph=True)
    second = torch.autograd.grad(sum((g * g).sum() for g in first), [x, y])
    return [part.detach().numpy() for part in (loss, *first, *second)]


def _derivatives(f: Function, x: Any, y: Any) -> Any:
    loss = f(x, y) + 0.0 * (x * y).sum()
    first = jg.autograd.grad(loss, [x, y], create_graph=True)
    second = jg.autograd.grad(sum((g * g).sum() for g in first), [x, y])
    return [part.detach() for part in (loss, *first, *second)]


def by_us(f: Function, backend: str | None) -> list[list[Any]]:
    """The same eagerly; or with ``f`` compiled, and with all of it compiled, by the second call of each."""
    g = partial(f, jg)
    if backend is None:
        runs, calls = [partial(_derivatives, g)], 1
    else:
        compiled = partial(jg.jit, backend=backend, check="off")
        runs, calls = [partial(_derivatives, compiled(g)), compiled(lambda x, y: _derivatives(g, x, y))], 2
    results = []
    for run in runs:
        for _ in range(calls):
            out = run(jg.tensor(X, requires_grad=True), jg.tensor(Y, requires_grad=True))
        results.append([part.numpy() for part in out])
    return results


def assert_as_torch(f: Function, backend: str | None) -> None:
    expected = by_torch(f)
    for found in by_us(f, backend):
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


BACKENDS = pytest.mark.parametrize("backend", [None, "python", "cpu"])

# (a view that has gaps or is transposed, the arguments of its diagonal)
DIAGONALS: dict[str, tuple[Function, tuple[int, ...]]] = {
    "transposed": (lambda t: t.T, ()),
    "rows": (lambda t: t[::2], ()),
    "columns": (lambda t: t[:, 1:], ()),
    "below": (lambda t: t.T, (1,)),
    "above": (lambda t: t[1:, :2].T, (-1,)),
    "other order": (lambda t: t, (0, 1, 0)),
    "reshaped": (lambda t: t.reshape(3, 4)[:, ::2], ()),
    "one element": (lambda t: t[3:, 1:], ()),
    "nothing": (lambda t: t[:, 1:], (2,)),
}


@BACKENDS
@pytest.mark.parametrize("case", DIAGONALS)
def test_a_diagonal_is_a_view(case: str, backend: str | None) -> None:
    view, arguments = DIAGONALS[case]

    def f(M: Any, x: Any, y: Any) -> Any:
        t = M.sin(x) * y
        part = view(t)
        diagonal = part.diagonal(*arguments)
        diagonal *= 1.7
        diagonal += y[1, 1]
        t[0] = y[1] * x[2]  # shows in the diagonal
        with M.no_grad():
            t.add_(0.5)
        return (t * t).sum() + (part * 3.0).sum() + (diagonal * diagonal * diagonal).sum()

    assert_as_torch(f, backend)


def test_a_diagonal_of_a_detached_view_has_no_history() -> None:
    x = jg.tensor(X, requires_grad=True)
    t = x * 2.0
    diagonal = t.detach().T.diagonal()
    assert not diagonal.requires_grad
    diagonal.zero_()
    assert t.diagonal().tolist() == [0.0, 0.0, 0.0]
    with jg.no_grad():
        part = t.T
    assert not part.diagonal().requires_grad


@BACKENDS
def test_the_real_part_of_a_real_tensor_is_the_tensor(backend: str | None) -> None:
    def f(M: Any, x: Any, y: Any) -> Any:
        t = x * y
        t.real.mul_(y)
        part = M.real(t)
        t[0] = 0.5
        return (t * t).sum() + (part * part * x).sum()

    assert_as_torch(f, backend)


def _compare(seed: int, backend: str | None) -> bool:
    """Whether the random program can be compared: torch and we may refuse one that changes what backward needs."""
    text = program(seed)
    f = compiled_text(text)
    try:
        expected = by_torch(f)
    except RuntimeError:
        return False
    try:
        results = by_us(f, backend)
    except (InPlaceError, TracedValueError):  # never silently wrong; but for few programs, which the caller counts
        return False
    for found in results:
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9, err_msg=f"seed {seed}:\n{text}")
    return True


def test_random_programs() -> None:
    assert sum(_compare(seed, None) for seed in range(150)) >= 75


@pytest.mark.parametrize(("backend", "seeds"), [("python", range(12)), ("cpu", range(200, 202))])
def test_compiled_random_programs(backend: str, seeds: range) -> None:
    assert sum(_compare(seed, backend) for seed in seeds) >= len(seeds) // 2
