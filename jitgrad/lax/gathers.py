"""jax.lax.gather and scatter: windows of an array at places that an array of integers names."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from jitgrad.core.aval import Shape
from jitgrad.core.errors import ArgumentError, shown
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import add, clip
from jitgrad.ops.comparison import greater_equal, less_equal, logical_and, where
from jitgrad.ops.creation import arange, asarray, zeros
from jitgrad.ops.movement import moveaxis, reshape


class GatherScatterMode(enum.Enum):
    """What a window out of bounds does: its elements are filled or dropped, it is moved, or it may not be."""

    FILL_OR_DROP = "fill_or_drop"
    CLIP = "clip"
    PROMISE_IN_BOUNDS = "promise_in_bounds"


class GatherDimensionNumbers(NamedTuple):
    """Axes of a `gather`, as in jax; without batching dimensions."""

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


class ScatterDimensionNumbers(NamedTuple):
    """Axes of a `scatter`, as in jax; without batching dimensions."""

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    scatter_indices_batching_dims: tuple[int, ...] = ()


def gather(
    operand: Any,
    start_indices: Any,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: Any = None,
    fill_value: Any = None,
) -> Tensor:
    """Windows of ``slice_sizes`` at the starts in the rows of ``start_indices``, as jax.lax.gather.

    ``mode`` is as in ``x.at[...]``, with "fill" for None: then a window that is not wholly in bounds is ``fill_value``.

    Raises ArgumentError for batching dimensions.
    """
    x, starts, numbers = asarray(operand), asarray(start_indices), dimension_numbers
    _check("gather", numbers)
    inner = [d for d in range(x.ndim) if d not in numbers.collapsed_slice_dims]
    how = _mode_of(mode)
    index = _windows(x, starts, numbers.start_index_map, tuple(slice_sizes), inner, how)
    out = x.at[index].get(mode=how, fill_value=fill_value)
    batch = starts.ndim - 1
    return moveaxis(out, tuple(range(batch, out.ndim)), tuple(numbers.offset_dims)) if inner else out


def _scatter(operand: Any, indices: Any, updates: Any, numbers: ScatterDimensionNumbers, mode: Any, method: str) -> Tensor:
    x, starts, values = asarray(operand), asarray(indices), asarray(updates)
    _check("scatter", numbers)
    inner = [d for d in range(x.ndim) if d not in numbers.inserted_window_dims]
    windows = tuple(numbers.update_window_dims)
    sizes = [1] * x.ndim
    for d, axis in zip(inner, windows, strict=True):
        sizes[d] = values.shape[axis]
    how = _mode_of(mode)
    index = _windows(x, starts, numbers.scatter_dims_to_operand_dims, tuple(sizes), inner, how)
    values = moveaxis(values, windows, tuple(range(values.ndim - len(windows), values.ndim))) if windows else values
    new: Tensor = getattr(x.at[index], method)(values, mode=how)
    return new


def _scatterer(method: str, doc: str) -> Callable[..., Tensor]:
    def scatterer(
        operand: Any,
        scatter_indices: Any,
        updates: Any,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
    ) -> Tensor:
        return _scatter(operand, scatter_indices, updates, dimension_numbers, mode, method)

    scatterer.__name__ = scatterer.__qualname__ = {"set": "scatter"}.get(method, f"scatter_{method}")
    scatterer.__doc__ = (
        f"``operand`` with {doc} the windows ``updates`` at the starts in the rows of ``scatter_indices``, as in jax.\n\n"
        '    ``mode`` is as in ``x.at[...]``, with "drop" for None: a window that is not wholly in bounds changes nothing.\n\n'
        "    Raises ArgumentError for batching dimensions."
    )
    return scatterer


scatter: Callable[..., Tensor] = _scatterer("set", "its elements replaced by")
scatter_add: Callable[..., Tensor] = _scatterer("add", "added")
scatter_mul: Callable[..., Tensor] = _scatterer("mul", "its elements multiplied by")
scatter_min: Callable[..., Tensor] = _scatterer("min", "the smaller of its elements and")
scatter_max: Callable[..., Tensor] = _scatterer("max", "the larger of its elements and")


def _check(what: str, numbers: Any) -> None:
    if any(numbers[3:]):
        raise ArgumentError(f"lax.{what} has no batching dimensions here, got {shown(numbers)}: use jax.vmap, or x.at[indices]")


def _mode_of(mode: Any) -> str:
    return "drop" if mode is None else str(getattr(mode, "name", mode)).lower()


def _windows(x: Tensor, starts: Tensor, axes: Sequence[int], sizes: Shape, inner: Sequence[int], mode: str) -> Any:
    """An index of ``x`` that selects [*batch, *window]: out of bounds on its first axis where a window is not inside ``x``."""
    firsts: list[Any] = []
    inside: Any = True
    for d, size in enumerate(sizes):
        first: Any = starts[..., tuple(axes).index(d)] if d in axes else zeros(starts.shape[:-1], dtype=starts.dtype)
        last = x.shape[d] - size
        if mode == "clip":
            first = clip(first, 0, last)
        inside = logical_and(inside, logical_and(greater_equal(first, 0), less_equal(first, last)))
        firsts.append(first)
    if mode == "drop":
        firsts[0] = where(inside, firsts[0], x.shape[0])
    index = []
    for d, (first, size) in enumerate(zip(firsts, sizes, strict=True)):
        wide = reshape(first, (*first.shape, *[1] * len(inner)))
        behind = len(inner) - 1 - inner.index(d) if d in inner else 0
        index.append(add(wide, reshape(arange(size), (size, *[1] * behind))) if d in inner else wide)
    return tuple(index)
