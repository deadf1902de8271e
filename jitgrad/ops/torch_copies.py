"""torch's functions that copy what others only view: ``expand_copy``, ``view_copy`` and more."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from jitgrad.core.aval import normalize_axis
from jitgrad.core.dispatch import aval_of
from jitgrad.core.tensor import Tensor
from jitgrad.ops import (
    complex_numbers,
    diagonals,
    joining,
    movement,
    scattering,
    torch_names,
    torch_selections,
    windows,
)
from jitgrad.ops.creation import asarray, clone, detached
from jitgrad.ops.joining import chunked
from jitgrad.ops.keywords import takes_dim
from jitgrad.ops.movement import SLICE, AxisArgument
from jitgrad.ops.operand import Operand
from jitgrad.ops.subscript import get_item


def _copying(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, whose results share no memory with its operands."""

    @wraps(function)
    def copied(*args: Any, **keywords: Any) -> Any:
        out = function(*args, **keywords)
        return tuple(map(clone, out)) if isinstance(out, tuple) else clone(out)

    copied.__doc__ = f"A copy of what ``{function.__name__}`` views."
    return copied


def _squeeze(x: Operand, axis: AxisArgument = None) -> Tensor:
    return movement.squeeze(x) if axis is None else movement.squeeze_where_possible(x, axis)


def _split(x: Operand, split_size: Any, axis: int = 0) -> tuple[Tensor, ...]:
    return chunked(x, split_size, axis)


@takes_dim()
def slice_copy(x: Operand, axis: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    """A copy of ``x[start:end:step]`` along ``axis``."""
    given = asarray(x)
    k = normalize_axis("slice_copy", axis, aval_of(SLICE, given).ndim)
    return clone(get_item(given, (*[slice(None)] * k, slice(start, end, step))))


def alias_copy(x: Operand) -> Tensor:
    """A copy of ``x``."""
    return clone(x)


def detach_copy(x: Operand) -> Tensor:
    """A copy of ``x`` without its history."""
    return clone(detached(asarray(x)))


as_strided_copy: Callable[..., Tensor] = _copying(scattering.as_strided)
diagonal_copy: Callable[..., Tensor] = _copying(takes_dim(dim1="axis1", dim2="axis2")(diagonals.diagonal))
expand_copy: Callable[..., Tensor] = _copying(torch_names.expand)
narrow_copy: Callable[..., Tensor] = _copying(torch_names.narrow)
permute_copy: Callable[..., Tensor] = _copying(torch_names.permute)
select_copy: Callable[..., Tensor] = _copying(torch_names.select)
split_copy: Callable[..., tuple[Tensor, ...]] = _copying(takes_dim()(_split))
split_with_sizes_copy: Callable[..., tuple[Tensor, ...]] = _copying(torch_selections.split_with_sizes)
squeeze_copy: Callable[..., Tensor] = _copying(takes_dim()(_squeeze))
t_copy: Callable[..., Tensor] = _copying(torch_names.t)
transpose_copy: Callable[..., Tensor] = _copying(movement.swapaxes)
unbind_copy: Callable[..., tuple[Tensor, ...]] = _copying(joining.unstack)
unfold_copy: Callable[..., Tensor] = _copying(windows.windows_along)
unsqueeze_copy: Callable[..., Tensor] = _copying(movement.expand_dims)
view_as_complex_copy: Callable[..., Tensor] = _copying(complex_numbers.view_as_complex)
view_as_real_copy: Callable[..., Tensor] = _copying(complex_numbers.view_as_real)
view_copy: Callable[..., Tensor] = _copying(movement.reshape)
