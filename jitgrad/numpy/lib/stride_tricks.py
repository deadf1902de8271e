"""numpy.lib.stride_tricks: windows that overlap, as copies with gradients."""

from __future__ import annotations

from collections.abc import Sequence

from jitgrad.core.aval import normalize_axis
from jitgrad.core.errors import ArgumentError
from jitgrad.core.tensor import Tensor
from jitgrad.numpy.arguments import tensor_of
from jitgrad.numpy.shapes import broadcast_arrays, broadcast_to
from jitgrad.ops.operand import Operand
from jitgrad.ops.scattering import as_strided as _elements_of
from jitgrad.ops.torch_queries import strides_in_bytes
from jitgrad.ops.windows import windows_along

__all__ = ["as_strided", "broadcast_arrays", "broadcast_to", "sliding_window_view"]


def as_strided(
    x: Operand,
    shape: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    subok: bool = False,
    writeable: bool = True,
) -> Tensor:
    """The elements of ``x`` in a row, in steps of ``strides`` bytes along the axes of ``shape``: a copy with gradients.

    ``subok`` and ``writeable`` change nothing.

    Raises ArgumentError: steps are no whole elements, or lead out of ``x``.
    """
    given = tensor_of(x)
    steps = strides_in_bytes(given) if strides is None else tuple(strides)
    if any(step % given.dtype.itemsize for step in steps):
        raise ArgumentError(
            f"as_strided: strides={steps} are bytes, and no multiples of the {given.dtype.itemsize} bytes of an element of "
            f"{given.aval}: x.strides has those of x"
        )
    sizes = given.shape if shape is None else tuple(shape)
    return _elements_of(given, sizes, [step // given.dtype.itemsize for step in steps])


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
