"""Every op of the registry under vmap gives what it gives for one example after the other."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.batching.rules import batching_rule
from jitgrad.core.dispatch import apply_op
from jitgrad.core.errors import BatchingWarning, TracedValueError
from jitgrad.core.op import REGISTRY
from jitgrad.ops.incomplete_beta import no_slope_by_shape
from jitgrad.ops.positions import COUNT_TRUE, DISTINCT, REPEATED_POSITIONS, TRUE_POSITIONS
from tests.batching.cases import ALL, Case

EXAMPLES = 2
COUNTS = {id(c): len(c.draw(np.random.default_rng(0))) for c in ALL}


def masks(c: Case) -> list[tuple[bool, ...]]:
    free = product((True, False), repeat=COUNTS[id(c)] - c.parts + 1)
    return [(first,) * c.parts + tuple(others) for first, *others in free if first or any(others)]


def operands(c: Case, mask: tuple[bool, ...]) -> list[Any]:
    """For each operand its value in every example."""
    rng = np.random.default_rng(7)
    drawn = [c.draw(rng) for _ in range(EXAMPLES)]
    return [[d[k] if m else drawn[0][k] for d in drawn] for k, m in enumerate(mask)]


def as_tuple(out: Any) -> tuple[Any, ...]:
    return tuple(out) if isinstance(out, (tuple, list)) else (out,)


def applied(c: Case) -> Callable[..., Any]:
    return lambda *xs: as_tuple(apply_op(c.op, *xs, **c.attrs))


def looped(c: Case, xs: list[Any]) -> tuple[Any, ...]:
    rows = [applied(c)(*[jg.tensor(x[k]) for x in xs]) for k in range(EXAMPLES)]
    return tuple(jg.stack(column) for column in zip(*rows, strict=True))


def place_axis(x: Any, axis: int) -> Any:
    return jg.tensor(np.ascontiguousarray(np.moveaxis(np.stack(x), 0, axis)))


def arguments(xs: list[Any], mask: tuple[bool, ...], axis: int) -> tuple[list[Any], tuple[int | None, ...]]:
    """The arguments of the mapped function, and its in_axes."""
    axes = [axis if not m or np.ndim(x[0]) or axis == -1 else 0 for x, m in zip(xs, mask, strict=True)]
    wholes = [place_axis(x, a) if m else jg.tensor(x[0]) for x, m, a in zip(xs, mask, axes, strict=True)]
    return wholes, tuple(a if m else None for m, a in zip(mask, axes, strict=True))


def assert_equal(found: Any, expected: Any) -> None:
    for a, b in zip(found, expected, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-6, atol=1e-9)


@pytest.fixture(autouse=True)
def _only_known_loops() -> Iterator[None]:
    """No op is applied to one example after the other, but for a search in several lines."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", BatchingWarning)
        warnings.filterwarnings("ignore", ".*searchsorted.*", BatchingWarning)
        yield


# what vmap refuses before it applies these: a length that values decide is another one in each example
LENGTHS = {COUNT_TRUE, DISTINCT, REPEATED_POSITIONS, TRUE_POSITIONS}


def test_every_op_has_a_rule() -> None:
    tested = {c.op.name for c in ALL}
    ops = [op for op in REGISTRY.values() if op.operands and op not in LENGTHS]

    assert all(batching_rule(op) is not None for op in ops)
    others = {op.name for op in ops} - tested
    assert {name for name in others if not name.startswith("scipy_")} == set()  # tests/scipy_names test SciPy's own


@pytest.mark.parametrize(
    "function",
    [lambda x: x[x > 0], lambda x: jg.unique(x), lambda x: jg.repeat(x, jg.astype(x, jg.int64)), lambda x: jg.nonzero(x)[0]],
    ids=["mask", "unique", "repeat", "nonzero"],
)
def test_vmap_refuses_lengths_that_values_decide(function: Any) -> None:
    for f in (jg.vmap(function), jg.jit(jg.vmap(function)), jg.vmap(jg.jit(function))):
        with pytest.raises(TracedValueError, match="differs between the examples of vmap"):
            f(jg.ones((3, 4)))


@pytest.mark.parametrize("c", ALL, ids=str)
def test_vmap_of_an_op_is_the_stack_of_its_results(c: Case) -> None:
    for k, mask in enumerate(masks(c)):
        xs = operands(c, mask)
        for axis in (0, 1, -1) if k == 0 else ((0, 1, -1)[k % 3],):
            wholes, in_axes = arguments(xs, mask, axis)
            assert_equal(jg.vmap(applied(c), in_axes)(*wholes), looped(c, xs))


def weighted(outs: tuple[Any, ...]) -> Any:
    """A number in which every element of ``outs`` counts differently."""
    total: Any = 0.0
    for out in outs:
        if out.dtype.kind == "c":
            out = out.real + 0.5 * out.imag
        if out.dtype.kind == "f":
            total = total + (out * (1.0 + 0.1 * jg.arange(out.size, dtype=out.dtype).reshape(out.shape))).sum()
    return total


def padded(outs: tuple[Any, ...], k: int) -> tuple[Any, ...]:
    """Results of all examples, of which only example ``k`` has a history."""
    return tuple(jg.stack([o if j == k else o.detach() for j in range(EXAMPLES)]) for o in outs)


def differentiable(c: Case, xs: list[Any]) -> tuple[int, ...]:
    if c.op.vjp is None:
        return ()
    given = [k for k, x in enumerate(xs) if x[0].dtype.kind == "f"]
    if not isinstance(c.op.vjp, tuple) or c.op.variadic:
        return tuple(given)
    return tuple(k for k in given if c.op.vjp[k] not in (None, no_slope_by_shape))


@pytest.mark.parametrize("c", [c for c in ALL if c.op.vjp is not None], ids=str)
def test_gradients_pass_through_vmap(c: Case) -> None:
    for mask in masks(c):
        xs = operands(c, mask)
        if not (wrt := differentiable(c, xs)):
            continue
        wholes, in_axes = arguments(xs, mask, 0)
        found = jg.grad(lambda *ws, a=in_axes: weighted(jg.vmap(applied(c), a)(*ws)), wrt)(*wholes)
        rows = [
            jg.grad(lambda *ws, k=k: weighted(padded(applied(c)(*ws), k)), wrt)(*[jg.tensor(x[k]) for x in xs])
            for k in range(EXAMPLES)
        ]
        expected = [jg.stack(g) if mask[n] else g[0] + g[1] for n, g in zip(wrt, zip(*rows, strict=True), strict=True)]
        assert_equal(found, expected)


@pytest.mark.parametrize("c", [c for c in ALL if c.op.vjp is not None], ids=str)
def test_vmap_of_a_gradient_is_the_stack_of_gradients(c: Case) -> None:
    mask = (True,) * COUNTS[id(c)]
    xs = operands(c, mask)
    if not (wrt := differentiable(c, xs)):
        return
    g = jg.grad(lambda *ws: weighted(applied(c)(*ws)), wrt)
    wholes, in_axes = arguments(xs, mask, 0)
    rows = [g(*[jg.tensor(x[k]) for x in xs]) for k in range(EXAMPLES)]

    assert_equal(jg.vmap(g, in_axes)(*wholes), [jg.stack(column) for column in zip(*rows, strict=True)])


@pytest.mark.parametrize("c", [c for c in ALL if c.op.vjp is not None], ids=str)
def test_compiled_gradients_pass_through_vmap(c: Case) -> None:
    mask = (True,) * COUNTS[id(c)]
    xs = operands(c, mask)
    if not (wrt := differentiable(c, xs)):
        return
    wholes, in_axes = arguments(xs, mask, -1)
    g = jg.grad(lambda *ws: weighted(jg.vmap(applied(c), in_axes)(*ws)), wrt)

    assert_equal(jg.jit(g)(*wholes), g(*wholes))


@pytest.mark.parametrize("c", ALL, ids=str)
def test_compiled_vmap_of_an_op(c: Case) -> None:
    for mask in {masks(c)[0], (True,) * c.parts + (False,) * (COUNTS[id(c)] - c.parts)}:
        xs = operands(c, mask)
        wholes, in_axes = arguments(xs, mask, 1)
        assert_equal(jg.jit(jg.vmap(applied(c), in_axes))(*wholes), looped(c, xs))
