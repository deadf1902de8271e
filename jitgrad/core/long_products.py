"""Products along the last axes by lanes and halves: NumPy multiplies element by element, each of which waits for the last."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitgrad.core.aval import Array, Dtype, Shape

_TERMS = 64  # of a product; fewer are as quick one after the other
_LANES = 128  # partial products of a long row
_ELEMENTS = 1 << 12  # of an array, on which the calls take longer than the products


def is_long_product(shape: Shape, axes: Sequence[int], dtype: Dtype) -> bool:
    """Whether `long_product` is quicker than NumPy's product over ``axes``, which are sorted."""
    first = len(shape) - len(axes)
    if dtype.kind not in "fc" or not axes or tuple(axes) != tuple(range(first, len(shape))):
        return False
    return math.prod(shape[first:]) >= _TERMS and math.prod(shape) >= _ELEMENTS


def long_product(x: Array, axes: Sequence[int], dtype: Dtype | None = None) -> Any:
    """The product over the last axes ``axes`` in ``dtype``, by default that of ``x``.

    Element i of a long row goes into partial product ``i % 128``, which are multiplied by halves.
    """
    outer = x.shape[: x.ndim - len(axes)]
    rows = x.astype(dtype or x.dtype, copy=False).reshape(*outer, -1)
    if (count := rows.shape[-1] // _LANES) > 1:
        whole = count * _LANES
        lanes = np.multiply.reduce(rows[..., :whole].reshape(*outer, count, _LANES), axis=-2)
        lanes[..., : rows.shape[-1] - whole] *= rows[..., whole:]
        rows = lanes
    while (n := rows.shape[-1]) >= _TERMS:
        half = n // 2
        product = np.multiply(rows[..., :half], rows[..., half : 2 * half])
        if n % 2:
            product[..., 0] *= rows[..., -1]
        rows = product
    return np.multiply.reduce(rows, axis=-1)
