"""Windows of images as machine code: the bits of eager execution, at every shape, and no Python between products."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.dispatch import apply_op
from jitgrad.ops.convolution import FOLD, UNFOLD
from jitgrad.runtime.library.windows import MAX_FIXED, window_copies

pytestmark = pytest.mark.numba

R = np.random.default_rng(0)
# image, kernel, stride, dilation
SHAPES = [
    ((9, 11), (3, 3), (1, 1), (1, 1)),
    ((1, 1), (1, 1), (1, 1), (1, 1)),
    ((6, MAX_FIXED + 1), (2, 2), (1, 1), (1, 1)),
    ((12, 13), (3, 2), (2, 2), (1, 2)),
    ((12, 13), (2, 1), (3, 4), (1, 1)),  # the stride exceeds the kernel
    ((5, 90), (2, 3), (2, 2), (2, 3)),
    ((4, 150), (1, 3), (1, 3), (1, 2)),
]


def is_used(f: Any, *args: Any) -> bool:
    steps = [s.step for s in f.lookup(*args).program.steps if getattr(s, "op", None) is not None]
    return any(window_copies(step) is not None for step in steps)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize(("shape", "kernel", "stride", "dilation"), SHAPES)
def test_the_bits_of_eager_execution(shape: Any, kernel: Any, stride: Any, dilation: Any, dtype: Any) -> None:
    attrs = {"kernel": kernel, "stride": stride, "dilation": dilation}
    unfold = jg.jit(lambda x: apply_op(UNFOLD, x, **attrs))
    fold = jg.jit(lambda x: apply_op(FOLD, x, shape=shape, **attrs))
    image = jg.tensor((R.standard_normal((2, 3, *shape)) * 100).astype(dtype))
    parts = unfold(image)

    assert is_used(unfold, image) and is_used(fold, parts)
    np.testing.assert_array_equal(parts.numpy(), unfold.eager(image).numpy())
    parts = parts * jg.tensor(R.integers(-9, 9, parts.shape).astype(dtype))
    np.testing.assert_array_equal(fold(parts).numpy(), fold.eager(parts).numpy())


def test_other_dtypes_and_empty_batches() -> None:
    attrs = {"kernel": (2, 3), "stride": (1, 2), "dilation": (1, 1)}
    f = jg.jit(lambda x: apply_op(FOLD, apply_op(UNFOLD, x, **attrs), shape=(5, 8), **attrs))
    for dtype in (np.float16, np.int8):
        x = jg.tensor((R.standard_normal((2, 5, 8)) * 10).astype(dtype))
        np.testing.assert_array_equal(f(x).numpy(), f.eager(x).numpy())
    empty = jg.zeros((0, 3, 5, 8))
    assert f(empty).shape == (0, 3, 5, 8)


def test_any_number_of_threads_gives_the_same_bits() -> None:
    attrs = {"kernel": (3, 3), "stride": (1, 1), "dilation": (1, 1)}
    f = jg.jit(lambda x: apply_op(FOLD, apply_op(UNFOLD, x, **attrs), shape=(20, 20), **attrs))
    x, threads, results = jg.tensor(R.standard_normal((64, 4, 20, 20))), jg.get_num_threads(), []
    try:
        for count in (1, 2, 3):
            jg.set_num_threads(count)
            results.append(f(x).numpy())
    finally:
        jg.set_num_threads(threads)
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])
