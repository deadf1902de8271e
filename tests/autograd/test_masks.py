"""Gradients carry no NaN from what was not selected, however it was computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jitgrad as jg

X = np.array([0.0, 4.0, -1.0, 1.0, 0.0, 0.25])
POSITIVE = [0, 1, 0, 1, 0, 1]

# Each maps positive numbers to positive ones, and has no finite slope at 0 or below.
UNSAFE: dict[str, Callable[[Any], Any]] = {
    "sqrt": jg.sqrt,
    "log and exp": lambda x: jg.exp(jg.log(x)),
    "reciprocal": jg.reciprocal,
    "power": lambda x: x**0.3,
    "division": lambda x: 2.0 / (x * x),
    "product": lambda x: jg.sqrt(x) * x * 3.0,
    "cast": lambda x: jg.sqrt(x.astype(jg.float32)).astype(jg.float64),
    "view": lambda x: jg.sqrt(x.reshape(2, 3)).T.reshape(3, 2).T.reshape(6),
    "reversed": lambda x: jg.flip(jg.sqrt(jg.flip(x))),
    "part": lambda x: jg.concat([jg.sqrt(x[:2]), 1.0 / x[2:]]),
    "padded": lambda x: jg.pad(jg.sqrt(x), (1, 2))[1:-2],
    "row": lambda x: (jg.broadcast_to(jg.sqrt(x), (3, 6)) * jg.ones((3, 1)) * 0.5).sum(axis=0),
}


def part_replaced(x: Any) -> Any:
    y = jg.zeros(6, dtype=x.dtype)
    y[...] = jg.sqrt(x)
    y[1:3] *= 2.0
    y[0] *= 0.5
    return y


UNSAFE |= {
    "clone": lambda x: jg.sqrt(x).clone(),
    "tiled": lambda x: jg.tile(jg.sqrt(x), (3, 1)).sum(axis=0),
    "rolled by nothing": lambda x: jg.roll(jg.sqrt(x), 0),
    "replaced in place": part_replaced,
}


def gradients(f: Callable[[Any], Any], x: Any, compiled: bool) -> tuple[Any, Any]:
    """The gradient of the sum of ``f``, and the gradient of a weighted sum of that gradient."""
    weights = jg.tensor(np.linspace(0.5, 1.5, x.size).reshape(x.shape))
    first = jg.grad(lambda x: (f(x) * weights).sum())
    second = jg.grad(lambda x: (first(x) * weights).sum())
    if compiled:
        first, second = jg.jit(first, check="off"), jg.jit(second, check="off")
    return first(jg.tensor(x)).numpy(), second(jg.tensor(x)).numpy()


def same_as_with_safe_operand(f: Callable[[Any, Any], Any], x: Any, compiled: bool) -> None:
    """``f(x, x)`` has the gradients of ``f(x, where(x > 0, x, 1))``, the usual remedy."""
    found = gradients(lambda x: f(x, x), x, compiled)
    expected = gradients(lambda x: f(x, jg.where(x > 0, x, 1.0)), x, compiled)
    for a, b in zip(found, expected, strict=True):
        assert np.isfinite(a).all()
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", UNSAFE)
def test_where_after_any_function(name: str, compiled: bool) -> None:
    unsafe = UNSAFE[name]

    same_as_with_safe_operand(lambda x, safe: jg.where(x > 0, unsafe(safe), x * 0.5), X, compiled)
    same_as_with_safe_operand(lambda x, safe: jg.where(x <= 0, 0.0, unsafe(safe) + safe), X, compiled)


@given(
    names=st.lists(st.sampled_from(sorted(UNSAFE)), min_size=1, max_size=4),
    bound=st.sampled_from([0.0, 0.3, 2.0]),
    nested=st.booleans(),
    compiled=st.booleans(),
)
def test_random_chains(names: list[str], bound: float, nested: bool, compiled: bool) -> None:
    def f(x: Any, safe: Any) -> Any:
        y = safe
        for k, name in enumerate(names):
            y = UNSAFE[name](y)
            if nested and k == 0:
                y = jg.where(x > bound, y, safe * 2.0)
        return jg.where(x > bound, y * safe, x) + jg.where(x > 0, y, 0.0)

    same_as_with_safe_operand(f, X, compiled)


@pytest.mark.parametrize("compiled", [False, True])
def test_both_choices_use_one_value(compiled: bool) -> None:
    """The two parts of the gradient meet again where nothing is masked any more."""

    def f(x: Any) -> Any:
        y = x * x + 1.0
        return jg.where(x > 0, jg.log(y), jg.sqrt(y))

    first, _ = gradients(f, X, compiled)
    weights = np.linspace(0.5, 1.5, X.size)
    y = X * X + 1
    np.testing.assert_allclose(first, weights * 2 * X * np.where(X > 0, 1 / y, 0.5 / np.sqrt(y)))
    assert jg.gradcheck(f, jg.tensor(X + 0.1))
    assert jg.gradgradcheck(f, jg.tensor(X + 0.1))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    ("select", "expected"),
    [
        (lambda x: jg.maximum(jg.sqrt(x), 0.1), [0, 0.25, 0, 0.5, 0, 1]),
        (lambda x: jg.minimum(-jg.sqrt(x), -0.1), [0, -0.25, 0, -0.5, 0, -1]),
        (lambda x: jg.clip(jg.sqrt(x), 0.1, 1.5), [0, 0, 0, 0.5, 0, 1]),
        (lambda x: jg.clip(jg.sqrt(x), min=0.1), [0, 0.25, 0, 0.5, 0, 1]),
        (lambda x: jg.relu(jg.sqrt(x)), [0, 0.25, 0, 0.5, 0, 1]),
        (lambda x: jg.relu6(jg.log(x)), [0, 0.25, 0, 0, 0, 0]),
        (lambda x: jg.hardtanh(jg.log(x)), [0, 0, 0, 1, 0, 0]),
        (lambda x: jg.sqrt(x).max(), [0, 0.25, 0, 0, 0, 0]),
        (lambda x: (-jg.sqrt(x)).reshape(2, 3).min(axis=0), [0, -0.25, 0, -0.5, 0, -1]),
        (lambda x: jg.floor(jg.sqrt(x)) + x, [1, 1, 1, 1, 1, 1]),
        (lambda x: jg.norm(x.reshape(6, 1), axis=1), [0, 1, 0, 1, 0, 1]),
    ],
)
def test_other_selections(select: Callable[[Any], Any], expected: list[float], compiled: bool) -> None:
    gradient = jg.grad(lambda x: select(x).sum())
    found = (jg.jit(gradient, check="off") if compiled else gradient)(jg.tensor(np.maximum(X, 0.0)))

    np.testing.assert_allclose(found.numpy(), expected)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_number_that_was_selected_nowhere(compiled: bool) -> None:
    """A broadcast operand: the mask is reduced as the gradient is."""

    def f(s: Any) -> Any:
        return jg.where(jg.tensor(POSITIVE) > 2, jg.sqrt(s), 1.0).sum()

    gradient = jg.jit(jg.grad(f), check="off") if compiled else jg.grad(f)
    assert gradient(jg.tensor(0.0)).item() == 0.0


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("whole", [False, True])
def test_rows_that_were_selected_nowhere(whole: bool, compiled: bool) -> None:
    """The mask goes on where the elements of the row are summed, with one element for each row or with all."""
    rows = np.array([[3.0, 4.0], [0.0, 0.0], [np.nan, 1.0]])
    valid = jg.tensor(np.array([[True], [False], [False]]) & np.ones((1, 2 if whole else 1), bool))

    def f(x: Any) -> Any:
        return jg.where(valid, x / jg.sqrt((x * x).sum(axis=1, keepdims=True)), 0.0).sum()

    gradient = jg.jit(jg.grad(f), check="off") if compiled else jg.grad(f)
    np.testing.assert_allclose(gradient(jg.tensor(rows)).numpy(), [[0.032, -0.024], [0, 0], [0, 0]], atol=1e-12)


@pytest.mark.parametrize("compiled", [False, True])
def test_nan_that_was_selected_stays(compiled: bool) -> None:
    gradient = jg.grad(lambda x: jg.where(x >= 0, jg.sqrt(x) * 0.0, 0.0).sum())
    found = (jg.jit(gradient, check="off") if compiled else gradient)(jg.tensor(X)).numpy()
    assert np.isnan(found).tolist() == [True, False, False, False, True, False]

    row = jg.tensor(np.array([1.0, np.nan]))
    assert np.isnan(jg.grad(lambda x: x.max())(row).numpy()).all()


def test_hooks_and_kept_gradients_see_the_mask_applied() -> None:
    x = jg.tensor(X, requires_grad=True)
    y = jg.sqrt(x)
    z = y * 1.0
    seen: list[Any] = []
    y.register_hook(lambda g: seen.append(g.tolist()))
    z.retain_grad()
    jg.where(x > 0, z, 0.0).sum().backward()

    assert z.grad.tolist() == seen[0] == POSITIVE
    assert x.grad.tolist() == [0.0, 0.25, 0.0, 0.5, 0.0, 1.0]


def test_a_hook_that_changes_a_gradient_ends_its_mask() -> None:
    x = jg.tensor(X, requires_grad=True)
    y = x * 2.0
    y.register_hook(lambda g: g + 1.0)
    jg.where(x > 0, y, 0.0).sum().backward()

    assert x.grad.tolist() == [2.0, 4.0, 2.0, 4.0, 2.0, 4.0]


def test_a_custom_gradient_gets_zeros_where_nothing_was_selected() -> None:
    seen: list[Any] = []

    def vjp(g: Any, _out: Any, x: Any) -> Any:
        seen.append(g.tolist())
        return (g / x,)

    own = jg.elementwise("own_log(x)", scalar="log(x)", vjp=vjp)
    found = jg.grad(lambda x: jg.where(x > 0, own(x), 0.0).sum())(jg.tensor(X)).numpy()

    assert seen == [POSITIVE]
    assert found.tolist() == [0.0, 0.25, 0.0, 1.0, 0.0, 4.0]


def test_through_an_elementwise_compiled_function() -> None:
    inner = jg.jit(lambda x: (jg.sqrt(x) * 2.0, jg.log(x)), check="off")

    def f(x: Any) -> Any:
        root, logarithm = inner(x)
        return jg.where(x > 0, root, 0.0) + jg.where(x > 2, logarithm, 0.0)

    found = jg.grad(lambda x: f(x).sum())(jg.tensor(X)).numpy()
    assert found.tolist() == [0.0, 0.75, 0.0, 1.0, 0.0, 2.0]


def test_a_normalised_row_is_swept_as_often_with_relu_as_before() -> None:
    """Masks of activations add no reduction of a row."""
    step = jg.jit(jg.grad(lambda x: (jg.relu(jg.layer_norm(x, (64,))) ** 2).sum()), check="off", backend="python")
    ops = [node.op.name for node in step.graph(jg.ones((8, 64)), stage="simplify").nodes]

    assert "any" not in ops


def test_the_select_moves_behind_the_product() -> None:
    """One select for the whole branch, and none before it."""
    step = jg.jit(jg.grad(lambda x: jg.where(x > 0, jg.log(jg.sqrt(x)), 0.0).sum()), check="off", backend="python")
    ops = [node.op.name for node in step.graph(jg.tensor(X), stage="simplify").nodes]

    assert ops.count("where") == 1
    assert ops[-1] == "where"
