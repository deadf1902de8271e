"""jax.lax: loops, branches, slices and elementwise functions, under JAX's names; imports numpy, scipy, ops, core."""

# ruff: noqa: I001

from __future__ import annotations

from typing import TYPE_CHECKING

from jitgrad.core.missing_names import Lookup as _Lookup
from jitgrad.core.missing_names import raising as _raising
from jitgrad.lax.arrays import (
    argmax as argmax, argmin as argmin, batch_matmul as batch_matmul, broadcast as broadcast, broadcast_in_dim as
    broadcast_in_dim, broadcast_shapes as broadcast_shapes, broadcasted_iota as broadcasted_iota, collapse as
    collapse, concatenate as concatenate, convert_element_type as convert_element_type, cumlogsumexp as
    cumlogsumexp, cummax as cummax, cummin as cummin, cumprod as cumprod, cumsum as cumsum, dot as dot, dot_general
    as dot_general, expand_dims as expand_dims, full as full, full_like as full_like, index_in_dim as index_in_dim,
    iota as iota, pad as pad, reduce as reduce, reduce_and as reduce_and, reduce_max as reduce_max, reduce_min as
    reduce_min, reduce_or as reduce_or, reduce_prod as reduce_prod, reduce_sum as reduce_sum, reshape as reshape,
    rev as rev, slice as slice, slice_in_dim as slice_in_dim, sort as sort, sort_key_val as sort_key_val, split as
    split, squeeze as squeeze, stop_gradient as stop_gradient, tile as tile, top_k as top_k, transpose as transpose,
)  # fmt: skip
from jitgrad.lax.associative_scan import associative_scan as associative_scan
from jitgrad.lax.control_flow import (
    cond as cond, fori_loop as fori_loop, map as map, scan as scan, switch as switch, while_loop as while_loop,
)  # fmt: skip
from jitgrad.lax.elementwise import (
    Precision as Precision, RoundingMethod as RoundingMethod, abs as abs, acos as acos, acosh as acosh, add as add,
    asin as asin, asinh as asinh, atan as atan, atan2 as atan2, atanh as atanh, bessel_i0e as bessel_i0e,
    bessel_i1e as bessel_i1e, betainc as betainc, bitcast_convert_type as bitcast_convert_type,
    bitwise_and as bitwise_and, bitwise_not as bitwise_not, bitwise_or as bitwise_or, bitwise_xor as bitwise_xor,
    cbrt as cbrt, ceil as ceil, clamp as clamp, clz as clz, complex as complex, conj as conj, cos as cos,
    cosh as cosh, digamma as digamma, div as div, eq as eq, erf as erf, erf_inv as erf_inv, erfc as erfc,
    exp as exp, exp2 as exp2, expm1 as expm1, floor as floor, ge as ge, gt as gt, igamma as igamma,
    igammac as igammac, imag as imag, integer_pow as integer_pow, is_finite as is_finite, le as le,
    lgamma as lgamma, log as log, log1p as log1p, logistic as logistic, lt as lt, max as max, min as min,
    mul as mul, ne as ne, neg as neg, nextafter as nextafter, polygamma as polygamma,
    population_count as population_count, pow as pow, real as real, reciprocal as reciprocal, rem as rem,
    round as round, rsqrt as rsqrt, select as select, select_n as select_n, shift_left as shift_left,
    shift_right_arithmetic as shift_right_arithmetic, shift_right_logical as shift_right_logical, sign as sign,
    sin as sin, sinh as sinh, sqrt as sqrt, square as square, sub as sub, tan as tan, tanh as tanh, zeta as zeta,
)  # fmt: skip
from jitgrad.lax.gathers import (
    GatherDimensionNumbers as GatherDimensionNumbers, GatherScatterMode as GatherScatterMode, ScatterDimensionNumbers as
    ScatterDimensionNumbers, gather as gather, scatter as scatter, scatter_add as scatter_add, scatter_max as
    scatter_max, scatter_min as scatter_min, scatter_mul as scatter_mul,
)  # fmt: skip
from jitgrad.lax.slices import (
    dynamic_index_in_dim as dynamic_index_in_dim, dynamic_slice as dynamic_slice, dynamic_slice_in_dim as
    dynamic_slice_in_dim, dynamic_update_index_in_dim as dynamic_update_index_in_dim, dynamic_update_slice as
    dynamic_update_slice, dynamic_update_slice_in_dim as dynamic_update_slice_in_dim,
)  # fmt: skip
from jitgrad.lax.windows import (
    ConvDimensionNumbers as ConvDimensionNumbers, conv as conv, conv_dimension_numbers as conv_dimension_numbers,
    conv_general_dilated as conv_general_dilated, conv_transpose as conv_transpose, conv_with_general_padding as
    conv_with_general_padding, reduce_window as reduce_window,
)  # fmt: skip

__all__ = [
    "ConvDimensionNumbers", "GatherDimensionNumbers", "GatherScatterMode", "Precision", "RoundingMethod",
    "ScatterDimensionNumbers", "abs", "acos", "acosh", "add", "argmax", "argmin",
    "asin", "asinh", "associative_scan", "atan", "atan2", "atanh", "batch_matmul", "bessel_i0e", "bessel_i1e",
    "betainc", "bitcast_convert_type", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "broadcast", "broadcast_in_dim",
    "broadcast_shapes", "broadcasted_iota", "cbrt", "ceil", "clamp", "clz", "collapse", "complex", "concatenate", "cond",
    "conj", "conv", "conv_dimension_numbers", "conv_general_dilated", "conv_transpose", "conv_with_general_padding",
    "convert_element_type", "cos", "cosh", "cumlogsumexp", "cummax", "cummin", "cumprod", "cumsum", "digamma",
    "div", "dot", "dot_general", "dynamic_index_in_dim", "dynamic_slice", "dynamic_slice_in_dim",
    "dynamic_update_index_in_dim", "dynamic_update_slice", "dynamic_update_slice_in_dim", "eq", "erf", "erf_inv",
    "erfc", "exp", "exp2", "expand_dims", "expm1", "floor", "fori_loop", "full", "full_like", "gather", "ge", "gt", "igamma",
    "igammac", "imag", "index_in_dim", "integer_pow", "iota", "is_finite", "le", "lgamma", "log", "log1p",
    "logistic", "lt", "map", "max", "min", "mul", "ne", "neg", "nextafter", "pad", "polygamma", "population_count", "pow", "real",
    "reciprocal", "reduce", "reduce_and", "reduce_max", "reduce_min", "reduce_or", "reduce_prod", "reduce_sum",
    "reduce_window", "rem", "reshape", "rev", "round", "rsqrt", "scan", "scatter", "scatter_add", "scatter_max",
    "scatter_min", "scatter_mul", "select", "select_n", "shift_left",
    "shift_right_arithmetic", "shift_right_logical", "sign", "sin", "sinh", "slice", "slice_in_dim", "sort",
    "sort_key_val", "split", "sqrt", "square", "squeeze", "stop_gradient", "sub", "switch", "tan", "tanh", "tile",
    "top_k", "transpose", "while_loop", "zeta",
]  # fmt: skip

_INSTEAD = {
    "psum": "there is one device; sum the axis that vmap adds", 
    "pmean": "there is one device; take the mean of the axis that vmap adds",
    "pmax": "there is one device", "all_gather": "there is one device", "axis_index": "there is one device",
    "rsqrt_p": "primitives have no names here",
}  # fmt: skip
if not TYPE_CHECKING:
    __getattr__: _Lookup = _raising("jitgrad.lax", globals(), _INSTEAD)
