"""scipy.ndimage: values between the elements of an array, with gradients; what there is not is SciPy's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from jitgrad.core.errors import ArgumentError, ShapeError, shown
from jitgrad.core.tensor import Tensor
from jitgrad.numpy.arguments import tensor_of
from jitgrad.ops.arithmetic import abs, add, astype, clip, multiply, negative, subtract
from jitgrad.ops.comparison import greater_equal, less, less_equal, logical_and, where
from jitgrad.ops.creation import asarray, detached
from jitgrad.ops.rounding import floor, remainder, trunc
from jitgrad.scipy.fallback import own_of_scipy


def _mirrored(k: Tensor, n: int) -> Tensor:
    """Indices beyond the edges as those of a mirror in the middle of the last element."""
    period = max(2 * (n - 1), 1)
    return abs(subtract(remainder(add(k, n - 1), period), n - 1))


def _reflected(k: Tensor, n: int) -> Tensor:
    """Indices beyond the edges as those of a mirror at the edge of the last element."""
    within = remainder(k, 2 * n)
    return where(less(within, n), within, subtract(2 * n - 1, within))


_INDICES: dict[str, Callable[[Tensor, int], Tensor]] = {
    "grid-constant": lambda k, n: clip(k, 0, n - 1), "nearest": lambda k, n: clip(k, 0, n - 1),
    "grid-wrap": lambda k, n: remainder(k, n), "mirror": _mirrored, "reflect": _reflected,
}  # fmt: skip


def _wrapped(c: Tensor, n: int) -> Tensor:
    """Places beyond the edges with the period ``n - 1``: the first element and the last are one."""
    period = max(n - 1, 1)
    before = subtract(period, remainder(negative(c), period))
    return where(less(c, 0), before, where(less(period, c), remainder(c, period), c))


_FOLDED: dict[str, Callable[[Tensor, int], Tensor]] = {"wrap": _wrapped, "mirror": _mirrored, "reflect": _reflected}
_MODES = ["constant", "wrap", "grid-mirror", *_INDICES]


def map_coordinates(
    input: Any, coordinates: Any, output: None = None, order: int = 3, mode: str = "constant", cval: Any = 0.0,
    prefilter: bool = True,
) -> Any:  # fmt: skip
    """The values of ``input`` at ``coordinates``: the nearest element (``order`` 0), or linear between elements (1).

    ``mode`` says what is beyond the edges, as in SciPy. Gradients flow to ``input`` and ``coordinates``. Splines of higher
    order are SciPy's own, without gradients.

    Raises:
        ShapeError: not one array of coordinates for each axis. ArgumentError: another mode, or ``output``.
    """
    if order not in (0, 1):
        return own_of_scipy("ndimage", "map_coordinates")(input, coordinates, output, order, mode, cval, prefilter)
    if output is not None or mode not in _MODES:
        raise ArgumentError(f"map_coordinates: mode must be one of {', '.join(_MODES)}, got {shown(mode)}; output stays None")
    x, places = tensor_of(input), [tensor_of(c) for c in coordinates]
    mode = "reflect" if mode == "grid-mirror" else mode
    if mode in _FOLDED:
        places = [_FOLDED[mode](c, n) for c, n in zip(places, x.shape, strict=False)]
        return between_elements(x, places, order, "nearest" if mode == "wrap" else mode, cval)
    if mode != "constant":
        return between_elements(x, places, order, mode, cval)
    found = between_elements(x, places, order, "nearest", cval)
    beyond = tensor_of(cval) if x.dtype.kind in "fc" else _away_from_zero(tensor_of(cval))
    return where(_inside(places, x.shape), found, astype(beyond, x.dtype))


def between_elements(x: Tensor, places: list[Tensor], order: int, mode: str, cval: Any, halves_up: bool = True) -> Tensor:
    """`map_coordinates` of order 0 or 1 for the modes that say which element each index means.

    Where ``halves_up``, the nearest element half way between two is the later one, else the one further from 0.

    Raises ShapeError where there is not one array of coordinates for each axis.
    """
    if len(places) != x.ndim:
        raise ShapeError(f"map_coordinates: expected {x.ndim} arrays of coordinates for {x.aval}, got {len(places)}")
    total: Any = None
    for chosen in product(*(_corners(c, order, halves_up) for c in places)):
        value = _element(x, [k for k, _ in chosen], mode, cval)
        for _, weight in chosen:
            value = value if weight is None else multiply(value, weight)
        total = value if total is None else add(total, value)
    return total if x.dtype.kind in "fc" or total.dtype == x.dtype else astype(_away_from_zero(total), x.dtype)


def _away_from_zero(x: Tensor) -> Tensor:
    """The nearest integers; of two the one further from 0."""
    return trunc(add(x, where(less(x, 0), -0.5, 0.5)))


def _corners(place: Tensor, order: int, halves_up: bool) -> list[tuple[Tensor, Tensor | None]]:
    """The indices along one axis of the elements around ``place``, and their weights."""
    if order == 0:
        nearest = floor(add(detached(place), 0.5)) if halves_up else _away_from_zero(detached(place))
        return [(astype(nearest, np.dtype(np.int64)), None)]
    low = floor(detached(place))
    part = subtract(place, low)
    first = astype(low, np.dtype(np.int64))
    return [(first, subtract(1.0, part)), (add(first, 1), part)]


def _element(x: Tensor, indices: list[Tensor], mode: str, cval: Any) -> Tensor:
    found = x[tuple(_INDICES[mode](k, n) for k, n in zip(indices, x.shape, strict=True))]
    return where(_inside(indices, x.shape), found, cval) if mode == "grid-constant" else found


def _inside(places: Sequence[Tensor], lengths: Sequence[int]) -> Tensor:
    """Whether all ``places`` are between the first and the last elements."""
    inside: Any = True
    for c, n in zip(places, lengths, strict=True):
        inside = logical_and(inside, logical_and(greater_equal(c, 0), less_equal(c, n - 1)))
    return asarray(inside)


def __getattr__(name: str) -> Any:
    """SciPy's own, if it is installed: functions of arrays, without gradients and outside of @jit."""
    found = own_of_scipy("ndimage", name)
    if found is None:
        raise AttributeError(f"jitgrad.scipy.ndimage has no {shown(name)}", name=name)
    return found
