"""Functions of NumPy that torch has, too: with torch's keywords, and most of them as methods of Tensor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from jitgrad.core.aval import normalize_axis
from jitgrad.eager.op_sequences import op_sequence
from jitgrad.numpy import calculus, creation, elementwise, joining, order, products, selection, shapes, statistics
from jitgrad.numpy.arguments import tensor_of
from jitgrad.ops.arithmetic import clip, subtract
from jitgrad.ops.comparison import isnan, logical_not
from jitgrad.ops.in_place_forms import in_place
from jitgrad.ops.indexing import take_along_axis
from jitgrad.ops.keywords import takes_dim
from jitgrad.ops.methods import install
from jitgrad.ops.movement import squeeze
from jitgrad.ops.operand import ValuesAndIndices
from jitgrad.ops.reduce import sum as sum_
from jitgrad.ops.rounding import floor_divide
from jitgrad.ops.sorting import argsort
from jitgrad.ops.torch_names import kthvalue

_MODULES = (calculus, creation, elementwise, joining, order, products, selection, shapes, statistics)

# name: torch's keywords, each with NumPy's name for it
_KEYWORDS: Mapping[str, Mapping[str, str]] = {
    "allclose": {"input": "a", "other": "b"},
    "isclose": {"input": "a", "other": "b"},
    "column_stack": {"tensors": "tup"},
    "dstack": {"tensors": "tup"},
    "hstack": {"tensors": "tup"},
    "vstack": {"tensors": "tup"},
    "bincount": {},
    "count_nonzero": {},
    "cross": {},
    "cumprod": {},
    "diag": {"diagonal": "k"},
    "diagflat": {"offset": "k"},
    "diff": {},
    "fliplr": {},
    "flipud": {},
    "inner": {},
    "kron": {},
    "nan_to_num": {},
    "nanmean": {},
    "nansum": {},
    "quantile": {"input": "a", "interpolation": "method"},
    "rot90": {},
    "trace": {},
    "argwhere": {},
    "array_split": {"input": "ary"},
    "atleast_1d": {},
    "atleast_2d": {},
    "atleast_3d": {},
    "corrcoef": {"input": "x"},
    "cov": {"input": "m", "correction": "ddof"},
    "deg2rad": {},
    "rad2deg": {},
    "dsplit": {"input": "ary"},
    "hsplit": {"input": "ary"},
    "vsplit": {"input": "ary"},
    "float_power": {},
    "fmax": {},
    "fmin": {},
    "heaviside": {},
    "isneginf": {},
    "isposinf": {},
    "logaddexp2": {},
    "logspace": {"end": "stop", "steps": "num"},
    "median": {"input": "a"},
    "nanmedian": {"input": "a"},
    "nanquantile": {"input": "a", "interpolation": "method"},
    "ravel": {"input": "a"},
    "sinc": {},
    "trapezoid": {},
    "vdot": {},
    "vander": {},
}
_NO_METHODS = {
    "atleast_1d", "atleast_2d", "atleast_3d", "column_stack", "dstack", "hstack", "logspace", "ravel", "trapezoid", "vander",
    "vstack",
}  # fmt: skip


@op_sequence
def _lower_median(a: Any, axis: int = -1, keepdims: bool = False) -> ValuesAndIndices:
    """torch's ``median(dim=)``: of an even number of elements the lower of the middle two, and its position."""
    given = tensor_of(a)
    length = given.shape[normalize_axis("median", axis, given.ndim)] if given.ndim else 1
    return kthvalue(given, (length + 1) // 2, axis, keepdims)


@op_sequence
def _lower_nanmedian(a: Any, axis: int = -1, keepdims: bool = False) -> ValuesAndIndices:
    """torch's ``nanmedian(dim=)``: of the elements that are not NaN the lower of the middle two, and its position."""
    given = tensor_of(a)
    normalize_axis("nanmedian", axis, given.ndim)  # 0-d arrays have none, though argsort has a result for them
    counted = sum_(logical_not(isnan(given)), axis, keepdims=True)
    place = clip(floor_divide(subtract(counted, 1), 2), 0, None)
    positions = take_along_axis(argsort(given, axis), place, axis)
    values = take_along_axis(given, positions, axis)
    return ValuesAndIndices(*((x if keepdims else squeeze(x, axis)) for x in (values, positions)))


_TORCH_MEANINGS: Mapping[str, Callable[..., Any]] = {"median": _lower_median, "nanmedian": _lower_nanmedian}


def _function(name: str) -> Callable[..., Any]:
    module = next(module for module in _MODULES if hasattr(module, name))
    return takes_dim(_TORCH_MEANINGS.get(name), **_KEYWORDS[name])(getattr(module, name))


SHARED: Mapping[str, Callable[..., Any]] = {name: _function(name) for name in _KEYWORDS}

install({name: function for name, function in SHARED.items() if name not in _NO_METHODS})
install({f"{name}_": in_place(SHARED[name]) for name in ("cumprod", "deg2rad", "float_power", "nan_to_num", "rad2deg", "sinc")})
