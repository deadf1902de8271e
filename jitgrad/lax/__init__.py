"""jax.lax: loops, branches, slices and elementwise functions, under JAX's names; imports ops, core."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import optree

from jitgrad.core.missing_names import Lookup as _Lookup
from jitgrad.core.missing_names import raising as _raising
from jitgrad.core.tensor import Tensor
from jitgrad.lax.control_flow import cond as cond
from jitgrad.lax.control_flow import fori_loop as fori_loop
from jitgrad.lax.control_flow import map as map
from jitgrad.lax.control_flow import scan as scan
from jitgrad.lax.control_flow import switch as switch
from jitgrad.lax.control_flow import while_loop as while_loop
from jitgrad.lax.slices import dynamic_index_in_dim as dynamic_index_in_dim
from jitgrad.lax.slices import dynamic_slice as dynamic_slice
from jitgrad.lax.slices import dynamic_slice_in_dim as dynamic_slice_in_dim
from jitgrad.lax.slices import dynamic_update_index_in_dim as dynamic_update_index_in_dim
from jitgrad.lax.slices import dynamic_update_slice as dynamic_update_slice
from jitgrad.lax.slices import dynamic_update_slice_in_dim as dynamic_update_slice_in_dim
from jitgrad.ops import arithmetic as _arithmetic
from jitgrad.ops import comparison as _comparison
from jitgrad.ops import joining as _joining
from jitgrad.ops import movement as _movement
from jitgrad.ops import reduce as _reduce
from jitgrad.ops import sorting as _sorting
from jitgrad.ops import transcendental as _transcendental
from jitgrad.ops import trigonometric as _trigonometric
from jitgrad.ops.creation import asarray as _asarray
from jitgrad.ops.creation import detached as _detached

abs, add, mul, neg, sub = _arithmetic.abs, _arithmetic.add, _arithmetic.mul, _arithmetic.neg, _arithmetic.sub
max, min, rsqrt, sign, sqrt, square = (
    _arithmetic.maximum, _arithmetic.minimum, _arithmetic.rsqrt, _arithmetic.sign, _arithmetic.sqrt, _arithmetic.square,
)  # fmt: skip
div, exp, log, tanh = _arithmetic.divide, _transcendental.exp, _transcendental.log, _trigonometric.tanh


def select(pred: Any, on_true: Any, on_false: Any) -> Tensor:
    """The elements of ``on_true`` where ``pred``, else those of ``on_false``."""
    return _comparison.where(pred, on_true, on_false)


def clamp(min: Any, x: Any, max: Any) -> Tensor:
    """``x`` cut to what is between ``min`` and ``max``."""
    return _arithmetic.clip(x, min, max)


def concatenate(operands: Any, dimension: int) -> Tensor:
    """The arrays one after the other along an axis."""
    return _joining.concat([*operands], axis=dimension)


def cumsum(operand: Any, axis: int = 0, reverse: bool = False) -> Tensor:
    """The sums of the elements so far along ``axis``, or with ``reverse`` of those from there on."""
    if not reverse:
        return _reduce.cumulative_sum(operand, axis)
    return _movement.flip(_reduce.cumulative_sum(_movement.flip(operand, axis), axis), axis)


def top_k(operand: Any, k: int) -> tuple[Tensor, Tensor]:
    """The ``k`` largest elements along the last axis, in order, and their positions."""
    values, indices = _sorting.topk(operand, k)
    return values, indices


def stop_gradient(x: Any) -> Any:
    """The pytree ``x`` without the history of its tensors."""
    return optree.tree_map(lambda leaf: _detached(_asarray(leaf)), x)


__all__ = [
    "abs", "add", "clamp", "concatenate", "cond", "cumsum", "div", "dynamic_index_in_dim", "dynamic_slice",
    "dynamic_slice_in_dim", "dynamic_update_index_in_dim", "dynamic_update_slice", "dynamic_update_slice_in_dim", "exp",
    "fori_loop", "log", "map", "max", "min", "mul", "neg", "rsqrt", "scan", "select", "sign", "sqrt", "square",
    "stop_gradient", "sub", "switch", "tanh",
    "top_k", "while_loop",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__: _Lookup = _raising("jitgrad.lax", globals(), {"associative_scan": "use jitgrad.cumsum and others, or lax.scan"})
