"""jax.lax's convolutions, and reductions of windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, NamedTuple

from jitgrad.core.errors import ArgumentError, ShapeError, shown
from jitgrad.core.tensor import Tensor
from jitgrad.lax.arrays import combined, pad
from jitgrad.ops.arithmetic import astype
from jitgrad.ops.convolution import conv1d, conv2d
from jitgrad.ops.creation import asarray
from jitgrad.ops.movement import flip, permute_dims
from jitgrad.ops.volumes import conv3d

_CONVOLUTIONS: dict[int, Callable[..., Tensor]] = {1: conv1d, 2: conv2d, 3: conv3d}
_SPATIAL = "DHW"


class ConvDimensionNumbers(NamedTuple):
    """For each of three arrays the axes in the order N C, O I or N C, then the spatial ones."""

    lhs_spec: tuple[int, ...]
    rhs_spec: tuple[int, ...]
    out_spec: tuple[int, ...]


def conv_dimension_numbers(lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: Any) -> ConvDimensionNumbers:
    """What ``dimension_numbers`` means: three strings such as ("NHWC", "HWIO", "NHWC"), or None for channels first.

    Raises ArgumentError for others.
    """
    ndim = len(lhs_shape)
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    if dimension_numbers is None:
        axes = tuple(range(ndim))
        return ConvDimensionNumbers(axes, axes, axes)
    if len(dimension_numbers) != 3 or any(not isinstance(s, str) or len(s) != ndim for s in dimension_numbers):
        raise ArgumentError(
            f"dimension_numbers={shown(dimension_numbers)}: expected three strings of {ndim} letters, as "
            '("NHWC", "HWIO", "NHWC")'
        )
    lhs, rhs, out = dimension_numbers
    spatial = [c for c in rhs if c not in "OI"]
    try:
        return ConvDimensionNumbers(
            tuple(map(lhs.index, ["N", "C", *spatial])), tuple(map(rhs.index, ["O", "I", *spatial])),
            tuple(map(out.index, ["N", "C", *spatial])),
        )  # fmt: skip
    except ValueError:
        raise ArgumentError(f"dimension_numbers={shown(dimension_numbers)}: the letters do not correspond") from None


def _pairs(padding: Any, lengths: Sequence[int], windows: Sequence[int], strides: Sequence[int]) -> list[tuple[int, int]]:
    """Padding in front and behind, of axes of ``lengths`` for ``windows``, of which "SAME" has one for each stride."""
    if not isinstance(padding, str):
        return [(int(low), int(high)) for low, high in padding]
    kind = padding.upper()
    if kind == "VALID":
        return [(0, 0)] * len(lengths)
    if kind not in ("SAME", "SAME_LOWER"):
        raise ArgumentError(f"padding must be SAME, SAME_LOWER, VALID or pairs of ints, got {shown(padding)}")
    pairs = []
    for n, window, step in zip(lengths, windows, strides, strict=True):
        total = max((-(-n // step) - 1) * step + window - n, 0)
        small, large = total // 2, total - total // 2
        pairs.append((small, large) if kind == "SAME" else (large, small))
    return pairs


def conv_general_dilated(
    lhs: Any, rhs: Any, window_strides: Sequence[int], padding: Any, lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None, dimension_numbers: Any = None, feature_group_count: int = 1,
    batch_group_count: int = 1, precision: Any = None, preferred_element_type: Any = None,
) -> Tensor:  # fmt: skip
    """The cross-correlation of ``lhs`` with ``rhs``, of one to three spatial axes.

    ``lhs_dilation`` and ``rhs_dilation`` put zeros between elements; ``dimension_numbers`` says which axes are which.

    Raises:
        ArgumentError: dimension_numbers or a padding that do not exist, or batch_group_count other than 1.
        ShapeError: shapes do not fit.
    """
    x, w = asarray(lhs), asarray(rhs)
    if x.ndim != w.ndim or x.ndim - 2 not in _CONVOLUTIONS:
        raise ShapeError(f"lax.conv_general_dilated: expected two arrays of 3 to 5 axes, got {x.aval} and {w.aval}")
    if batch_group_count != 1:
        raise ArgumentError(f"lax.conv_general_dilated: batch_group_count must be 1, got {batch_group_count}")
    numbers = conv_dimension_numbers(x.shape, w.shape, dimension_numbers)
    x, w = permute_dims(x, numbers.lhs_spec), permute_dims(w, numbers.rhs_spec)
    axes = x.ndim - 2
    strides = tuple(window_strides)
    spread, apart = (tuple(d) if d is not None else (1,) * axes for d in (rhs_dilation, lhs_dilation))
    lengths = [max((n - 1) * d + 1, 0) for n, d in zip(x.shape[2:], apart, strict=True)]
    windows = [(n - 1) * d + 1 for n, d in zip(w.shape[2:], spread, strict=True)]
    border = _pairs(padding, lengths, windows, strides)
    if any(d > 1 for d in apart) or any(low or high for low, high in border):
        x = pad(x, 0, [(0, 0, 0)] * 2 + [(low, high, d - 1) for (low, high), d in zip(border, apart, strict=True)])
    by = (strides, 0, spread) if axes > 1 else (strides[0], 0, spread[0])
    out = _CONVOLUTIONS[axes](x, w, None, *by, feature_group_count)
    out = permute_dims(out, tuple(sorted(range(out.ndim), key=numbers.out_spec.__getitem__)))
    return out if preferred_element_type is None else astype(out, preferred_element_type)


def conv(
    lhs: Any, rhs: Any, window_strides: Sequence[int], padding: Any, precision: Any = None, preferred_element_type: Any = None
) -> Tensor:
    """The cross-correlation of ``lhs`` [n, c, ...] with ``rhs`` [out, c, ...]; see `conv_general_dilated`."""
    return conv_general_dilated(lhs, rhs, window_strides, padding, preferred_element_type=preferred_element_type)


def conv_with_general_padding(
    lhs: Any, rhs: Any, window_strides: Sequence[int], padding: Any, lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None, precision: Any = None, preferred_element_type: Any = None,
) -> Tensor:  # fmt: skip
    """`conv_general_dilated` with channels first."""
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, preferred_element_type=preferred_element_type
    )


def conv_transpose(
    lhs: Any, rhs: Any, strides: Sequence[int], padding: Any, rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None, transpose_kernel: bool = False, precision: Any = None, preferred_element_type: Any = None,
) -> Tensor:  # fmt: skip
    """The transposed convolution: ``lhs`` with ``strides - 1`` zeros between its elements, correlated with ``rhs``.

    By default channels are last, as in ("NHWC", "HWIO", "NHWC"). ``transpose_kernel`` turns ``rhs`` around, and exchanges
    its axes I and O, which makes this the gradient of the convolution.
    """
    x, w = asarray(lhs), asarray(rhs)
    axes = x.ndim - 2
    if dimension_numbers is None:
        letters = _SPATIAL[-axes:] if axes < 4 else ""
        dimension_numbers = (f"N{letters}C", f"{letters}IO", f"N{letters}C")
    numbers = conv_dimension_numbers(x.shape, w.shape, dimension_numbers)
    spread = tuple(rhs_dilation) if rhs_dilation is not None else (1,) * axes
    windows = [(w.shape[k] - 1) * d + 1 for k, d in zip(numbers.rhs_spec[2:], spread, strict=True)]
    pairs = padding
    if isinstance(padding, str):
        pairs = [_transposed_padding(k, s, padding) for k, s in zip(windows, strides, strict=True)]
    if transpose_kernel:
        w = flip(w, tuple(numbers.rhs_spec[2:]))
        out_axis, in_axis, *spatial = numbers.rhs_spec
        numbers = numbers._replace(rhs_spec=(in_axis, out_axis, *spatial))
    return conv_general_dilated(x, w, (1,) * axes, pairs, strides, spread, numbers, preferred_element_type=preferred_element_type)


def _transposed_padding(window: int, stride: int, padding: str) -> tuple[int, int]:
    """Padding of the spread operand, by which the result is ``stride`` times as long ("SAME"), or longer ("VALID")."""
    if padding.upper() == "SAME":
        total = window + stride - 2
        low = window - 1 if stride > window - 1 else -(-total // 2)
    elif padding.upper() == "VALID":
        total = window + stride - 2 + max(window - stride, 0)
        low = window - 1
    else:
        raise ArgumentError(f"padding must be SAME, VALID or pairs of ints, got {shown(padding)}")
    return low, total - low


def reduce_window(
    operand: Any, init_value: Any, computation: Callable[[Any, Any], Any], window_dimensions: Sequence[int],
    window_strides: Sequence[int], padding: Any, base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Tensor:  # fmt: skip
    """``computation``, which is associative, of ``init_value`` and the elements of each window.

    Raises ShapeError if there is not a length and a stride for each axis.
    """
    x = asarray(operand)
    windows, strides = tuple(window_dimensions), tuple(window_strides)
    if not len(windows) == len(strides) == x.ndim:
        raise ShapeError(f"lax.reduce_window of {x.aval}: a length and a stride are needed for each axis")
    spread = tuple(window_dilation) if window_dilation is not None else (1,) * x.ndim
    apart = tuple(base_dilation) if base_dilation is not None else (1,) * x.ndim
    lengths = [max((n - 1) * d + 1, 0) for n, d in zip(x.shape, apart, strict=True)]
    wide = [(n - 1) * d + 1 for n, d in zip(windows, spread, strict=True)]
    start = astype(asarray(init_value), x.dtype)
    border = [(*pair, d - 1) for pair, d in zip(_pairs(padding, lengths, wide, strides), apart, strict=True)]
    x = pad(x, start, border) if any(any(entry) for entry in border) else x
    counts = [max((n - w) // s + 1, 0) for n, w, s in zip(x.shape, wide, strides, strict=True)]
    parts = []
    for place in product(*map(range, windows)):
        firsts = [k * d for k, d in zip(place, spread, strict=True)]
        stops = [a + (n - 1) * s + 1 if n else a for a, n, s in zip(firsts, counts, strides, strict=True)]
        parts.append(x[tuple(map(slice, firsts, stops, strides))])
    return asarray(computation(start, combined(parts, computation)))
