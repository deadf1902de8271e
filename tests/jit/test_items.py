"""``x.item()`` in a compiled function: a Python number that each call computes."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.dispatch import apply_op
from jitgrad.core.errors import TracedValueError
from jitgrad.ops.identity import NUMBER_OF

ROWS = [np.array(row) for row in ([1.0, 2.0, 3.0], [3.0, -2.0, 1.0], [0.5, 0.5, -4.0], [1.0, 2.0, 3.0])]


@pytest.fixture(autouse=True, params=["python", pytest.param("cpu", marks=pytest.mark.numba)])
def _backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", request.param)


def loss(x: Any) -> float:
    result: float = (x * x).sum().item()
    return result


def positive(x: Any) -> int:
    result: int = (x > 0).sum().item()
    return result


COMPUTE = {
    "float": loss,
    "int": positive,
    "sums": lambda x: (loss(x) + 1, 2 - loss(x), positive(x) + 1, 1 - positive(x), positive(x) + 0.5, loss(x) + positive(x)),
    "products": lambda x: (loss(x) * 2, positive(x) * 2, positive(x) * 0.5, -positive(x), +positive(x), -loss(x)),
    "quotients": lambda x: (positive(x) / len(x), 1 / loss(x), positive(x) / loss(x), loss(x) / 2),
    "powers": lambda x: (loss(x) ** 2, loss(x) ** 0.5, 2.0 ** loss(x)),
    "absolute": lambda x: (abs(-loss(x)), abs(positive(x) - 2), abs(1.5 - loss(x))),
    "with tensors": lambda x: (x * loss(x), positive(x) - x, x / x.max().item(), jg.where(x > loss(x), x, 0)),
    "in containers": lambda x: {"loss": loss(x), "counts": [positive(x), (positive(x), x)]},
    "one element": lambda x: x[:1].item(),
    "small ints": lambda x: (x > 0).astype(jg.int8).max().item(),
}
DECIDE = {
    "index": lambda x: x[x.argmax().item()],
    "slice": lambda x: x[: positive(x)],
    "list": lambda x: [10, 20, 30][x.argmax().item()],
    "shape": lambda x: jg.zeros(positive(x), 2),
    "range": lambda x: [x * k for k in range(positive(x))],
    "comparison": lambda x: x if loss(x) < 14.0 else -x,
    "of both": lambda x: x if loss(x) > positive(x) else -x,
    "truth": lambda x: x if positive(x) else -x,
    "returned": lambda x: (loss(x) < 14.0, positive(x) == 2, loss(x) != loss(x), positive(x) is None),
    "power": lambda x: x ** positive(x),
    "chained": lambda x: 1 < positive(x) <= 3,
    "largest": lambda x: max(loss(x), 14.1),
    "whole": lambda x: (int(loss(x)), int(positive(x)), float(positive(x)), math.trunc(loss(x))),
    "rounded": lambda x: (round(loss(x)), math.floor(loss(x)), math.ceil(loss(x)), round(positive(x)), math.floor(positive(x))),
    "whole quotients": lambda x: (positive(x) // 2, positive(x) % 2, 7 // positive(x), divmod(5, positive(x))),
    "integer power": lambda x: 2 ** positive(x),
    "text": lambda x: f"{positive(x)} of {len(x)}",
    "key": lambda x: {1: "one", 2: "two", 3: "three"}[positive(x)],
    "bool": lambda x: (x > 0).all().item(),
    "large": lambda x: (positive(x) + 2**40) * 2**30 * positive(x),
    "int64": lambda x: (x.astype(jg.int64) * 2**40).sum().item(),
}  # fmt: skip


def assert_same(found: Any, expected: Any) -> None:
    for a, b in zip(jg.tree.leaves(found), jg.tree.leaves(expected), strict=True):
        assert type(a) is type(b)
        if isinstance(a, str | int):
            assert a == b
        else:
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-12)


@pytest.mark.parametrize("name", COMPUTE)
def test_each_call_computes_its_number(name: str) -> None:
    f = jg.jit(COMPUTE[name])

    for row in ROWS * 2:
        assert_same(f(jg.tensor(row)), COMPUTE[name](jg.tensor(row)))
    assert f.cache_info().traces == 1
    assert f.cache_info().fallbacks == 0


@pytest.mark.parametrize("name", DECIDE)
def test_a_number_decides_where_its_value_is_needed(name: str) -> None:
    f = jg.jit(DECIDE[name])

    for row in ROWS * 2:
        assert_same(f(jg.tensor(row)), DECIDE[name](jg.tensor(row)))
    assert f.cache_info().traces <= 3
    assert f.cache_info().fallbacks == 0


@pytest.mark.parametrize(
    "ask",
    [
        lambda x: float(loss(x)),
        lambda x: math.sqrt(loss(x)),
        lambda x: f"{loss(x):.2f}",
        lambda x: hash(loss(x)),
        lambda x: round(loss(x), 1),
        lambda x: {loss(x)},
    ],
)
def test_the_value_of_a_float_is_asked_for_in_vain(ask: Any) -> None:
    with pytest.raises(TracedValueError, match=r"test_items\.py"):
        jg.jit(ask)(jg.tensor(ROWS[0]))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.sqrt(loss(x)),
        lambda x: np.ones(3) * loss(x),
        lambda x: np.float64(2.0) / positive(x),
        lambda x: np.isnan(loss(x)),
    ],
)
def test_functions_of_numpy_take_a_number(function: Any) -> None:
    f = jg.jit(function)
    for row in ROWS * 2:
        np.testing.assert_allclose(np.asarray(f(jg.tensor(row))), function(jg.tensor(row)), rtol=1e-12)


def test_no_gradient_flows_through_a_number() -> None:
    f, results = lambda x: (x * loss(x)).sum() + loss(x), []
    for function in (f, jg.jit(f)):
        x = jg.tensor(ROWS[0], requires_grad=True)
        function(x).backward()
        results.append(x.grad.tolist())
    assert results[0] == results[1] == [14.0, 14.0, 14.0]


def test_lists_and_attributes_outside_get_the_numbers_of_each_call() -> None:
    kept, state = [], SimpleNamespace(last=0.0, total=0.0, steps=0, best=math.inf)

    def step(x: Any) -> Any:
        kept.append(loss(x))
        state.last = positive(x)
        state.total += loss(x)
        state.steps += 1
        return x * 2

    f = jg.jit(step)
    for row in ROWS:
        f(jg.tensor(row))
    assert kept == [14.0, 14.0, 16.5, 14.0] and all(type(x) is float for x in kept)
    assert (state.last, state.total, state.steps) == (3, 58.5, 4) and type(state.last) is int
    assert f.cache_info().traces <= 3


def test_the_best_so_far() -> None:
    state = SimpleNamespace(best=math.inf)

    def step(x: Any) -> Any:
        current = loss(x)
        if current < state.best:
            state.best = current
            return x
        return -x

    f = jg.jit(step)
    signs = [f(jg.tensor(row * scale))[0].item() > 0 for scale in (2, 1, 3, 0.5) for row in ROWS]
    state.best = math.inf
    assert signs == [step(jg.tensor(row * scale))[0].item() > 0 for scale in (2, 1, 3, 0.5) for row in ROWS]


def test_a_training_loop_that_returns_items() -> None:
    def run(compile: Any) -> list[Any]:
        w = jg.zeros(3, dtype=jg.float64, requires_grad=True)
        optimizer = jg.optim.SGD([w], 0.01)

        def step(x: Any) -> Any:
            optimizer.zero_grad()
            error = ((x * w - 1) ** 2).mean()
            error.backward()
            optimizer.step()
            return error.item(), (x * w > 0.5).sum().item() / 3

        f = compile(step)
        return [f(jg.tensor(row)) for row in ROWS * 5]

    np.testing.assert_allclose(run(jg.jit), run(lambda f: f), rtol=1e-12)


def test_gradients_through_a_program_with_a_number_keep_the_dtype() -> None:
    """The number was a float64 tensor where a program is differentiated, or traced again: a warning, then eager execution."""
    scaled = jg.jit(lambda x: x * x.sum().item(), backend="python", check="off")
    x = jg.tensor([1.0, 2.0], requires_grad=True)
    loss = jg.jit(lambda x: (scaled(x) * 2).sum(), backend="python", check="off")
    for _ in range(2):
        x.grad = None
        result = loss(x)
        result.backward()
        assert result.dtype == np.float32
        assert x.grad is not None
        assert x.grad.tolist() == [6.0, 6.0]
        assert jg.grad(lambda x: scaled(x).sum())(x.detach()).tolist() == [3.0, 3.0]


def test_a_number_op_by_op_takes_no_part_in_dtypes() -> None:
    """Its plan for calls in eager execution gave a float64 array, whose dtype the next op took."""
    x = jg.tensor([1.0, 2.0])
    for _ in range(3):
        assert (x * apply_op(NUMBER_OF, x.sum())).dtype == np.float32
