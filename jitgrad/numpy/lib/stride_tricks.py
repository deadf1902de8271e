"""numpy.lib.stride_tricks: windows that overlap, as copies with gradients."""

from __future__ import annotations

from collections.abc import Sequence

from jitgrad.core.aval import normalize_axis
from jitgrad.core.errors import ArgumentError
from jitgrad.core.tensor import Tensor
from jitgrad.numpy.arguments import tensor_of
from jitgrad.numpy.shapes import broadcast_arrays, broadcast_to
from jitgrad.ops.operand import Operand
from jitgrad.ops.windows import windows_along

__all__ = ["broadcast_arrays", "broadcast_to", "sliding_window_view"]


def sliding_window_view(
    x: Operand, window_shape: int | Sequence[int], axis: int | Sequence[int] | None = None, *, writeable: bool = False
) -> Tensor:
    """The windows of ``x``: axes that count them, and then axes of lengths ``window_shape`` with their elements.

    ``axis``: those along which windows move, which may repeat; None: all. A copy, where NumPy gives a view; kernels read the
    windows of ``x`` itself.

    Raises:
        ArgumentError: there is not one axis for each length, a window is longer than its axis, or ``writeable`` is asked for.
    """
    given = tensor_of(x)
    sizes = (window_shape,) if isinstance(window_shape, int) else tuple(window_shape)
    axes = tuple(range(given.ndim)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    if writeable:
        raise ArgumentError("sliding_window_view: windows are copies here; write to the tensor itself")
    if len(sizes) != len(axes):
        raise ArgumentError(f"sliding_window_view: window_shape={sizes} has {len(sizes)} lengths for {len(axes)} axes")
    out = given
    for size, along in zip(sizes, axes, strict=True):
        out = windows_along(out, normalize_axis("sliding_window_view", along, given.ndim), size, 1)
    return out
