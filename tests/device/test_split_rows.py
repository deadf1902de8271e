"""Few long rows are reduced in parts, by many blocks, and the parts are merged in one order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.nn import functional as F

pytestmark = pytest.mark.usefixtures("cuda")

LONG = 1 << 15


def rows(number: int, length: int = LONG, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).standard_normal((number, length)).astype(dtype)


def on_device(f: Callable[..., Any], *arrays: Any, rtol: float = 1e-5) -> Any:
    """``f``, compiled, after a comparison of its results on the device with those on the host."""
    compiled = jg.jit(f, check="off")
    found = compiled(*[jg.tensor(x, device="cuda") for x in arrays])
    expected = jg.jit(f, check="off")(*map(jg.tensor, arrays))
    for x, y in zip(*[r if isinstance(r, tuple) else (r,) for r in (found, expected)], strict=True):
        scale = abs(y).max().item()
        np.testing.assert_allclose(x.detach().cpu().numpy(), y.detach().numpy(), rtol=rtol, atol=1e-6 * scale)
    return compiled


def results_of_kernels(f: Any, x: Any) -> list[str]:
    return [step.outs[0] for step in f.explain(jg.tensor(x, device="cuda")).steps if step.kind == "fused"]


def test_sums_of_few_long_rows_are_two_kernels() -> None:
    f = on_device(lambda x: (x * x).sum(axis=1), rows(3))

    assert results_of_kernels(f, rows(3)) == ["f32[3,32]", "f32[3]"]


@pytest.mark.parametrize(
    "f",
    [
        lambda x: jg.softmax(x, axis=-1),
        lambda x: jg.log_softmax(x * 2, axis=1),
        lambda x: jg.layer_norm(x, (x.shape[1],)),
        lambda x: (x - x.mean(axis=1, keepdims=True)) / x.std(axis=1, keepdims=True),
        lambda x: (x.max(axis=1), x.min(axis=1), x.sum(axis=0), (x > 0).all(axis=1), x.sum()),
        lambda x: jg.logsumexp(x, axis=1),
        lambda x: F.normalize(x, dim=1),
    ],
    ids=["softmax", "log_softmax", "layer_norm", "standardised", "reductions", "logsumexp", "normalize"],
)
def test_values_and_gradients(f: Callable[..., Any]) -> None:
    def with_gradient(x: Any) -> Any:
        outs = f(x)
        outs = outs if isinstance(outs, tuple) else (outs,)
        return (*outs, jg.grad(lambda x: sum_of_cubes(f(x)))(x))

    def sum_of_cubes(outs: Any) -> Any:
        return sum([(y**3).sum() for y in (outs if isinstance(outs, tuple) else (outs,)) if y.dtype.kind == "f"])

    compiled = on_device(with_gradient, rows(2), rtol=1e-4)

    assert not compiled.explain(jg.tensor(rows(2), device="cuda")).unfused_ops


def test_weights_of_columns_and_their_gradients() -> None:
    """Vectors along the rows are cut as the rows are, and sums over the rows come back in one piece."""
    length = 3 * LONG

    def loss(x: Any, w: Any, b: Any) -> Any:
        return (jg.layer_norm(x, (length,), w, b) ** 3).sum() / length

    weights = rows(2, length)
    on_device(lambda x, w, b: jg.grad(loss, argnums=(0, 1, 2))(x, w, b), rows(4, length), weights[0], weights[1], rtol=1e-4)


def test_rows_of_several_axes() -> None:
    x = rows(2, 6 * 4 * 40 * 50).reshape(2, 24, 40, 50)
    on_device(lambda x: F.group_norm(x, 2, eps=1e-5), x, rtol=1e-4)
    f = on_device(lambda x: (x * 2.0).sum(axis=(1, 2, 3)), x)

    assert results_of_kernels(f, x) == ["f32[2,24]", "f32[2]"]


def test_batch_norm_of_few_channels() -> None:
    x = rows(16, 3 * 32 * 32).reshape(16, 3, 32, 32)

    def f(x: Any) -> Any:
        return F.batch_norm(x, None, None, training=True)

    on_device(lambda x: (f(x), jg.grad(lambda x: (f(x) ** 3).sum())(x)), x, rtol=1e-4)


def test_rows_that_run_across_memory_are_not_copied() -> None:
    x = np.ascontiguousarray(rows(2).T)
    f = on_device(lambda x: jg.softmax(x.T * 2.0, axis=1), x)

    assert f.explain(jg.tensor(x, device="cuda")).unfused_ops == []


@pytest.mark.parametrize(("number", "length"), [(200, LONG), (2, LONG // 2), (2, 65537)], ids=["many", "short", "prime"])
def test_other_rows_stay_one_kernel(number: int, length: int) -> None:
    x = jg.zeros((number, length), device="cuda")
    f = jg.jit(lambda x: jg.softmax(x, axis=1), check="off")

    assert len(f.kernels(x)) == 1


def test_each_run_has_the_same_bits() -> None:
    f, x = jg.jit(lambda x: jg.softmax(x, axis=1).sum(axis=1), check="off"), jg.tensor(rows(3), device="cuda")

    assert len({f(x).cpu().numpy().tobytes() for _ in range(4)}) == 1


def test_random_numbers_of_a_row_stay_in_its_kernel() -> None:
    """They are computed from positions, which the new axis would change."""
    jg.manual_seed(0)
    x = jg.ones((2, LONG), device="cuda")
    f = jg.jit(lambda x: F.dropout(x, 0.5).sum(axis=1))

    found = f(x)

    jg.manual_seed(0)
    np.testing.assert_array_equal(found.cpu().numpy(), F.dropout(x.cpu(), 0.5).sum(axis=1).numpy())


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.float16, np.float64, np.bool_])
def test_dtypes(dtype: Any) -> None:
    x = (rows(2) * 3).astype(dtype)

    on_device(lambda x: (x.sum(axis=1), x.max(axis=1) if x.dtype.kind != "b" else x.any(axis=1)), x, rtol=1e-3)
