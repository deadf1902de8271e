"""Images and volumes at other places: resizing by interpolation, and sampling at the points of a grid."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import product
from typing import Any

import numpy as np

from jitgrad.core.errors import ArgumentError, ShapeError, shown
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import abs as abs_
from jitgrad.ops.arithmetic import add, astype, clip, multiply, subtract
from jitgrad.ops.comparison import greater_equal, less, logical_and, where
from jitgrad.ops.creation import asarray, detached
from jitgrad.ops.indexing import as_constant, gather, take
from jitgrad.ops.linalg import matmul
from jitgrad.ops.movement import broadcast_to, expand_dims, matrix_transpose, moveaxis, reshape
from jitgrad.ops.placement import beside
from jitgrad.ops.rounding import floor, remainder
from jitgrad.ops.rounding import round as round_
from jitgrad.ops.subscript import get_item

# --- resizing ----------------------------------------------------------------------------------------------------

# the modes, and which numbers of axes of an image they are for
_MODES = {"nearest": (1, 2, 3), "nearest-exact": (1, 2, 3), "area": (1, 2, 3), "linear": (1,), "bilinear": (2,),
          "bicubic": (2,), "trilinear": (3,)}  # fmt: skip


def interpolate(
    x: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """``x`` [n, c, ...] resized to ``size``, or by ``scale_factor``, as in torch, over one to three axes.

    ``mode`` is "nearest", "nearest-exact", "area", "linear" (sequences), "bilinear", "bicubic" (images; cubic
    convolution with a = -0.75, R. Keys, 1981) or "trilinear" (volumes). With ``recompute_scale_factor`` the factor is
    that of the whole numbers of elements. ``antialias``, for images, averages over the pixels that one of the result
    covers.

    Raises:
        ArgumentError: the mode is none of those for such a tensor, or size and scale_factor are both given, or neither;
            align_corners or antialias with a mode that they do not go with.
    """
    out: Tensor = asarray(x)
    amounts = _amounts(out, size, scale_factor, mode)
    if (align_corners is not None and mode[:4] in ("near", "area")) or (antialias and not mode.startswith("bi")):
        given = f"align_corners={align_corners}, antialias={antialias}"
        raise ArgumentError(f"interpolate: {given} do not go with mode={shown(mode)}; leave them out")
    for axis, amount in enumerate(amounts, 2):
        old = out.shape[axis]
        new = int(amount) if scale_factor is None else math.floor(old * amount)
        ratio = old / new if scale_factor is None or recompute_scale_factor else 1.0 / amount
        if align_corners:
            ratio = (old - 1) / (new - 1) if new > 1 else 0.0
        if mode in ("nearest", "nearest-exact"):
            at = np.arange(new) + (0.5 if mode == "nearest-exact" else 0.0)
            places = np.minimum(np.floor(at * ratio).astype(np.int64), old - 1)
            out = take(out, as_constant(places), axis)
        else:
            weights = _weights_of_means if antialias else _weights
            out = mixed_along(out, weights(mode, old, new, ratio, bool(align_corners)).astype(out.dtype), axis)
    return out


def upsample(
    input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Tensor:
    """:func:`interpolate`, by torch's first name for it."""
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Any, size: Any = None, scale_factor: Any = None) -> Tensor:
    """:func:`interpolate` to the nearest element."""
    return interpolate(input, size, scale_factor)


def upsample_bilinear(input: Any, size: Any = None, scale_factor: Any = None) -> Tensor:
    """:func:`interpolate` of images in mode "bilinear"; corners stay at corners."""
    return interpolate(input, size, scale_factor, "bilinear", True)


def _amounts(x: Tensor, size: Any, scale_factor: Any, mode: str) -> tuple[Any, ...]:
    """The size, or the factor, for each axis after the channels, if the arguments fit ``x``."""
    axes = x.ndim - 2
    if axes not in _MODES.get(mode, ()) or (size is None) == (scale_factor is None):
        raise ArgumentError(
            f"interpolate: expected [n, channels, ...], one of size and scale_factor, and a mode for it; got {x.aval}, "
            f"size={size}, scale_factor={scale_factor}, mode={shown(mode)} (modes: {', '.join(_MODES)})"
        )
    given = size if scale_factor is None else scale_factor
    amounts = (given,) * axes if isinstance(given, (int, float)) else tuple(given)
    if len(amounts) != axes:
        raise ArgumentError(f"interpolate: {shown(given)} are not {axes} numbers, one for each axis of {x.aval} after 2")
    return amounts


def mixed_along(x: Tensor, weights: np.ndarray[Any, Any], axis: int) -> Tensor:
    """``weights`` [new, old] times ``x`` along one axis."""
    with beside(x):
        matrix = asarray(as_constant(weights)).to(x.device)
    if axis % x.ndim == x.ndim - 1:
        return matmul(x, matrix_transpose(matrix))
    if axis % x.ndim == x.ndim - 2:
        return matmul(matrix, x)
    return moveaxis(matmul(moveaxis(x, axis, -1), matrix_transpose(matrix)), -1, axis)


def _weights(mode: str, old: int, new: int, ratio: float, align_corners: bool) -> np.ndarray[Any, Any]:
    """The matrix [new, old] that resizes an axis."""
    weights = np.zeros((new, old))
    if mode == "area":
        for k in range(new):
            start, stop = k * old // new, -(-(k + 1) * old // new)
            weights[k, start:stop] = 1.0 / (stop - start)
        return weights
    at = np.arange(new) * ratio if align_corners else (np.arange(new) + 0.5) * ratio - 0.5
    at = at if mode == "bicubic" else np.maximum(at, 0.0)
    low = np.floor(at).astype(np.int64)
    low = low if mode == "bicubic" else np.minimum(low, old - 1)
    taps = range(-1, 3) if mode == "bicubic" else range(2)
    for tap in taps:
        distance = np.abs(at - (low + tap))
        share = np.asarray(_cubic(distance)) if mode == "bicubic" else 1.0 - distance
        np.add.at(weights, (np.arange(new), np.clip(low + tap, 0, old - 1)), share)
    return weights


def _weights_of_means(mode: str, old: int, new: int, ratio: float, align_corners: bool) -> np.ndarray[Any, Any]:
    """The matrix [new, old] that resizes an axis by means over what one element covers, weighted by distance.

    As in Pillow and torch: the kernel of the interpolation (the cubic one with a = -0.5), widened by ``ratio``.
    """
    scale, reach = max(ratio, 1.0), 2 if mode == "bicubic" else 1
    centre, k = ratio * (np.arange(new)[:, None] + 0.5), np.arange(old)
    first = np.maximum((centre - reach * scale + 0.5).astype(np.int64), 0)
    distance = np.abs(k + 0.5 - centre) / scale
    inside = (k >= first) & (k < (centre + reach * scale + 0.5).astype(np.int64)) & (distance < reach)
    shares = _cubic(distance, -0.5) if mode == "bicubic" else 1.0 - distance
    weights = np.where(inside, shares, 0.0)
    total: np.ndarray[Any, Any] = weights.sum(axis=1, keepdims=True)
    return weights / np.where(total == 0.0, 1.0, total)


def _cubic(d: np.ndarray[Any, Any], a: float = -0.75) -> np.ndarray[Any, Any]:
    """The weight of a sample at the distance ``d`` < 2 (R. Keys, "Cubic convolution interpolation for digital image
    processing", 1981)."""
    weights: np.ndarray[Any, Any] = np.where(d <= 1, _cubic_near(d, a), _cubic_far(d, a))
    return weights


def _cubic_near(d: Any, a: float = -0.75) -> Any:
    return ((a + 2) * d - (a + 3)) * d * d + 1


def _cubic_far(d: Any, a: float = -0.75) -> Any:
    return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a


# --- sampling ----------------------------------------------------------------------------------------------------


def affine_grid(theta: Any, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The points [n, h, w, 2] (x, y from -1 to 1) that the affine maps ``theta`` [n, 2, 3] make of an image's.

    ``size`` is (n, c, h, w), that of the result of :func:`grid_sample`. Of volumes, (n, c, d, h, w), maps [n, 3, 4] make
    points [n, d, h, w, 3]. M. Jaderberg et al., arXiv:1506.02025.
    """
    maps, axes = asarray(theta), len(size) - 2
    if axes not in (2, 3) or maps.ndim != 3 or maps.shape[1:] != (axes, axes + 1):
        raise ShapeError(
            "affine_grid: expected theta [n, 2, 3] and size (n, c, h, w), or [n, 3, 4] and (n, c, d, h, w), got "
            f"{maps.aval} and {tuple(size)}"
        )
    lengths = tuple(size[2:])
    along = np.meshgrid(*[_centres(n, bool(align_corners)) for n in lengths], indexing="ij")
    points = np.stack([*along[::-1], np.ones(lengths)], -1).reshape(-1, axes + 1).astype(maps.dtype)
    with beside(maps):
        base = asarray(as_constant(points)).to(maps.device)
    return reshape(matmul(base, matrix_transpose(maps)), (maps.shape[0], *lengths, axes))


def _centres(n: int, align_corners: bool) -> np.ndarray[Any, Any]:
    if align_corners:
        return np.linspace(-1.0, 1.0, n) if n > 1 else np.zeros(1)
    return (2 * np.arange(n) + 1) / n - 1


def grid_sample(
    input: Any, grid: Any, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Tensor:
    """``input`` [n, c, h, w] at the points ``grid`` [n, oh, ow, 2], (x, y) from -1 to 1, as in torch: [n, c, oh, ow].

    Of volumes [n, c, d, h, w] the points are (x, y, z) in [n, od, oh, ow, 3]. ``mode`` is "bilinear", "nearest" or, for
    images, "bicubic"; outside of the image ``padding_mode`` "zeros", "border" or "reflection" holds. Gradients flow to
    both.

    Raises:
        ShapeError: image and grid do not fit together.
        ArgumentError: a mode is not known, or not for volumes.
    """
    image, points = asarray(input), asarray(grid)
    axes = image.ndim - 2
    if axes not in (2, 3) or points.ndim != image.ndim or points.shape[-1] != axes or points.shape[0] != image.shape[0]:
        raise ShapeError(
            "grid_sample: expected [n, c, h, w] and [n, oh, ow, 2], or [n, c, d, h, w] and [n, od, oh, ow, 3], "
            f"got {image.aval} and {points.aval}"
        )
    known = mode in ("bilinear", "nearest") or (mode == "bicubic" and axes == 2)
    if not known or padding_mode not in ("zeros", "border", "reflection"):
        raise ArgumentError(
            f"grid_sample of {image.aval}: mode {shown(mode)} with padding_mode {shown(padding_mode)} is not known"
        )
    corners, lengths = bool(align_corners), image.shape[2:]
    exact = [_pixels(get_item(points, (..., axes - 1 - k)), n, corners) for k, n in enumerate(lengths)]

    def fold(at: Sequence[Tensor]) -> list[Tensor]:
        return [_folded(x, n, padding_mode, corners) for x, n in zip(at, lengths, strict=True)]

    if mode == "bicubic":
        return _mixed(image, [_cubic_taps(at) for at in exact], fold)
    exact = fold(exact)
    if mode == "nearest":
        return _at(image, [round_(detached(at)) for at in exact])
    return _mixed(image, [_linear_taps(at) for at in exact], lambda at: at)


# whole positions along an axis, each with the weight of the element there
_Taps = Sequence[tuple[Tensor, Tensor]]


def _linear_taps(at: Tensor) -> _Taps:
    low = floor(detached(at))
    beyond = subtract(at, low)
    return (low, subtract(1.0, beyond)), (add(low, 1), beyond)


def _cubic_taps(at: Tensor) -> _Taps:
    low = floor(detached(at))
    beyond = subtract(at, low)
    before = subtract(1.0, beyond)
    near, far = (_cubic_near(beyond), _cubic_near(before)), (_cubic_far(add(beyond, 1.0)), _cubic_far(add(before, 1.0)))
    return (subtract(low, 1), far[0]), (low, near[0]), (add(low, 1), near[1]), (add(low, 2), far[1])


def _mixed(image: Tensor, taps: Sequence[_Taps], fold: Callable[[Sequence[Tensor]], Sequence[Tensor]]) -> Tensor:
    """The sum over all choices of one tap per axis of the elements there, times the products of their weights."""
    total: Tensor | None = None
    for chosen in product(*taps):
        weight = reduce(multiply, [share for _, share in chosen])
        part = multiply(_at(image, fold([place for place, _ in chosen])), expand_dims(weight, 1))
        total = part if total is None else add(total, part)
    assert total is not None
    return total


def _pixels(at: Tensor, n: int, align_corners: bool) -> Tensor:
    """Coordinates from -1 to 1 as positions in an axis of ``n`` pixels."""
    if align_corners:
        return multiply(add(at, 1.0), (n - 1) / 2)
    return subtract(multiply(add(at, 1.0), n / 2), 0.5)


def _folded(at: Tensor, n: int, padding_mode: str, align_corners: bool) -> Tensor:
    """Positions outside of the axis brought back into it, as ``padding_mode`` says."""
    if padding_mode == "zeros":
        return at
    if padding_mode == "reflection":
        low, length = (0.0, n - 1.0) if align_corners else (-0.5, float(n))
        if length == 0.0:
            return multiply(at, 0.0)
        beyond = remainder(subtract(at, low), 2 * length)
        at = add(subtract(length, abs_(subtract(beyond, length))), low)
    return clip(at, 0.0, n - 1.0)


def _at(image: Tensor, at: Sequence[Tensor]) -> Tensor:
    """The elements [n, c, ...] at whole positions [n, ...], one for each axis after the channels; 0 outside of it."""
    n, channels, *lengths = image.shape
    inside: Tensor | None = None
    places: Tensor | None = None
    for place, length in zip(at, lengths, strict=True):
        within = logical_and(greater_equal(place, 0.0), less(place, float(length)))
        inside = within if inside is None else logical_and(inside, within)
        safe = astype(clip(place, 0.0, length - 1.0), np.int64)
        places = safe if places is None else add(multiply(places, length), safe)
    assert inside is not None and places is not None
    lines = reshape(places, (n, 1, -1))
    index = broadcast_to(lines, (n, channels, lines.shape[2]))
    values = gather(reshape(image, (n, channels, math.prod(lengths))), 2, index)
    return where(expand_dims(inside, 1), reshape(values, (n, channels, *places.shape[1:])), 0.0)
