"""Reductions over any axes, with ops before and after them, in one compiled function."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.monoid import Monoid
from jitgrad.core.op import define_reduction

RNG = np.random.default_rng(0)
SHAPES = [(7,), (3, 5), (2, 3, 4), (2, 3, 2, 3), (1, 5), (5, 1), (4, 1, 3), (1, 1)]
CLOSE = {"rtol": 1e-13, "atol": 1e-13}


def every_axis(ndim: int) -> list[tuple[int, ...]]:
    return [axes for count in range(ndim + 1) for axes in combinations(range(ndim), count)]


CASES = [pytest.param(shape, axes, id=f"{shape}-{axes}") for shape in SHAPES for axes in every_axis(len(shape))]


@pytest.mark.parametrize(("shape", "axes"), CASES)
def test_sums_and_extrema_between_elementwise_ops(shape: Any, axes: Any, same: Any) -> None:
    x = jg.tensor(RNG.normal(size=shape))

    def f(x: Any) -> Any:
        y = x * 2.0 + 1.0
        kept = y.sum(axis=axes, keepdims=True)
        return y / (1.0 + kept * kept), y.max(axis=axes) * 3.0, (y - y.min(axis=axes, keepdims=True)).sum(axis=axes)

    same(f, x, **CLOSE)


@pytest.mark.parametrize(("shape", "axes"), CASES)
def test_gradients_of_reductions(shape: Any, axes: Any, same: Any) -> None:
    x, w = jg.tensor(RNG.normal(size=shape)), jg.tensor(RNG.normal(size=shape[-1:]))

    def loss(x: Any, w: Any) -> Any:
        y = jg.tanh(x * w)
        centred = y - y.mean(axis=axes, keepdims=True)
        return (centred * centred).mean(axis=axes).sum() + (y * y).sum(axis=axes).max()

    same(jg.value_and_grad(loss, argnums=(0, 1)), x, w, **CLOSE)


@pytest.mark.parametrize("shape", [(6,), (4, 5), (2, 3, 4)])
def test_softmax_logsumexp_and_var_over_every_axis(shape: Any, same: Any) -> None:
    x = jg.tensor(RNG.normal(size=shape) * 3.0)
    axes = range(len(shape))

    def f(x: Any) -> Any:
        return [(jg.softmax(x, k), jg.log_softmax(x, k), jg.logsumexp(x, k), jg.var(x, axis=k), jg.std(x, axis=k)) for k in axes]

    same(f, x, **CLOSE)
    for k in axes:
        same(jg.grad(lambda x, k=k: (jg.softmax(x, k) ** 2 + jg.log_softmax(x, k)).sum() + jg.var(x, axis=k).sum()), x, **CLOSE)


@pytest.mark.parametrize("dtype", ["?", "b", "i", "l", "B", "L", "f", "d"])
def test_dtypes_of_results(dtype: str, same: Any) -> None:
    x = jg.tensor(RNG.integers(0, 2 if dtype == "?" else 4, (4, 5)).astype(dtype))

    def f(x: Any) -> Any:
        found = [x.sum(), x.sum(axis=0), x.sum(axis=1), x.any(axis=0), x.all(axis=1), x.all(), x.any()]
        found += [x.prod(axis=1), x.max(), x.min(axis=0), (x > 1).sum(axis=0), (x > 1).mean(axis=1)]
        return found

    same(f, x, ulp=2.0)


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_extrema_pass_nan_and_infinities_on(axis: Any, same: Any) -> None:
    x = RNG.normal(size=(4, 6))
    x[0, 1], x[1, 2], x[2, 3] = np.nan, np.inf, -np.inf

    same(lambda x: (x.max(axis=axis), x.min(axis=axis), (x * 2.0).max(axis=axis), x.sum(axis=axis)), jg.tensor(x))


def test_extrema_of_integers_and_bools_at_their_limits(same: Any) -> None:
    for dtype in "bilBL":
        info = np.iinfo(dtype)
        x = jg.tensor(np.array([[info.min, info.max], [info.max, info.min]], dtype))
        same(lambda x: (x.max(axis=0), x.min(axis=1), x.max(), x.min()), x)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 3)])
def test_empty_reductions(shape: Any, same: Any) -> None:
    x = jg.tensor(np.zeros(shape))

    def f(x: Any) -> Any:
        found = [x.sum(), x.prod(), x.any(), x.all()]
        for axis in range(len(shape)):
            found += [(x + 1.0).sum(axis=axis), x.prod(axis=axis), x.all(axis=axis), x.any(axis=axis)]
        return found

    same(f, x)


def test_the_largest_of_nothing_is_an_error_that_names_the_axis() -> None:
    with pytest.raises(ValueError, match="max"):
        jg.jit(lambda x: x.max(axis=0))(jg.zeros((0, 3)))


def test_reductions_of_strided_and_broadcast_operands(same: Any) -> None:
    base = RNG.normal(size=(8, 12))
    views = [base.T, base[::2, ::-3], np.broadcast_to(base[0], (5, 12)), np.broadcast_to(base[:, :1], (8, 7))]

    same(lambda *xs: [(x.sum(axis=0), x.sum(axis=1), (x * x).sum(), x.max(axis=1)) for x in xs], *views, **CLOSE)


@pytest.mark.parametrize("axis", [None, 0, 1, 2])
@pytest.mark.parametrize("where", ["rows", "columns", "middle"])
def test_a_sum_of_what_is_repeated_beside_the_product_with_it(where: str, axis: int | None, same: Any) -> None:
    """Such a sum has a loop of its own: in that of the product each term would count once per repetition."""
    shape = {"rows": (7, 1, 1), "columns": (1, 1, 9), "middle": (1, 8, 1)}[where]
    x, y = np.linspace(-1, 2, 7 * 8 * 9).reshape(7, 8, 9), np.linspace(1, 3, np.prod(shape)).reshape(shape)

    same(lambda x, y: (x * y, y.sum(axis=axis), jg.exp(y).max()), x, y, rtol=1e-12)


def test_a_sum_of_a_sum(same: Any) -> None:
    def f(x: Any) -> Any:
        rows = x.sum(axis=1)
        return rows.sum(), (rows * rows).sum(), jg.max(rows), x.sum(axis=0).max(), (x / rows.max()).sum(axis=1)

    same(f, jg.tensor(RNG.normal(size=(6, 5))), **CLOSE)


def layer_norm_loss(x: Any, gamma: Any, beta: Any) -> Any:
    return (jg.gelu(jg.layer_norm(x, (x.shape[-1],), gamma, beta)) ** 2).sum()


@pytest.mark.parametrize("rows", [1, 2, 9])
def test_row_and_column_sums_together(rows: int, same: Any) -> None:
    """The gradients of layer norm: sums over rows for x, over columns for the scale and the shift."""
    x, gamma, beta = (jg.tensor(RNG.normal(size=s)) for s in ((rows, 7), (7,), (7,)))

    same(jg.value_and_grad(layer_norm_loss, argnums=(0, 1, 2)), x, gamma, beta, **CLOSE)


# Whether an odd number of bools is true, and the root of the sum of squares: neither is a reduction of jitgrad.
PARITY = Monoid("parity", np.logical_xor, lambda _: 0, "to_bool({a} ^ {x})", lambda _: np.dtype(np.bool_))
SPREAD = Monoid("spread", np.hypot, lambda _: 0, "sqrt({a} * {a} + {x} * {x})", lambda dtype: dtype)


@pytest.mark.parametrize("axis", [(0,), (1,), (0, 1)], ids=str)
@pytest.mark.parametrize("monoid", [PARITY, SPREAD], ids=lambda monoid: monoid.name)
def test_a_monoid_is_one_record(monoid: Monoid, axis: tuple[int, ...], same: Any) -> None:
    op = define_reduction(monoid, register=False)
    x = jg.tensor(RNG.normal(size=(4, 700)))

    def f(x: Any) -> Any:
        y = x * 2.0
        return jg.apply_op(op, y > 1.0 if monoid is PARITY else y, axis=axis)

    same(f, x, **CLOSE)
    assert op.name in {name for kernel in jg.jit(f).kernels(x) for name in kernel.ops}
