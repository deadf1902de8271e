"""NumPy's names with NumPy's signatures, differentiable and for @jit; imports core, device, eager, ops.

A name is public once it is imported here ``as`` itself. Floats are float64 by default, as in NumPy.
"""

# ruff: noqa: I001
# fmt: off  (a name per line would fill ten pages)
from types import ModuleType as _ModuleType
from typing import Any as _Any

from numpy import (
    broadcast_shapes as broadcast_shapes, can_cast as can_cast, diag_indices as diag_indices, dtype as dtype,
    errstate as errstate, finfo as finfo, iinfo as iinfo, integer as integer, floating as floating, generic as generic,
    inexact as inexact, isdtype as isdtype, iterable as iterable, signedinteger as signedinteger,
    unsignedinteger as unsignedinteger,
    isscalar as isscalar, issubdtype as issubdtype, mask_indices as mask_indices, mgrid as mgrid, number as number,
    ogrid as ogrid,
    complexfloating as complexfloating,
    printoptions as printoptions, promote_types as promote_types, ravel_multi_index as ravel_multi_index,
    index_exp as index_exp, s_ as s_, set_printoptions as set_printoptions, seterr as seterr, tril_indices as tril_indices,
    triu_indices as triu_indices,
)
from jitgrad.core.errors import shown as _shown
from jitgrad.core.tensor import Tensor as _Tensor
from jitgrad.numpy import fft as fft, lib as lib, linalg as linalg, random as random
from jitgrad.numpy.along import apply_along_axis as apply_along_axis, apply_over_axes as apply_over_axes
from jitgrad.numpy.array_api import (
    result_type as result_type, unique_all as unique_all, unique_counts as unique_counts,
    unique_inverse as unique_inverse, unique_values as unique_values,
)
from jitgrad.numpy.calculus import (
    convolve as convolve, correlate as correlate, diff as diff, ediff1d as ediff1d, gradient as gradient,
    interp as interp, trapezoid as trapezoid, unwrap as unwrap,
)
from jitgrad.numpy.concatenators import c_ as c_, r_ as r_
from jitgrad.numpy.creation import (
    arange as arange, array as array, asanyarray as asanyarray, asarray as asarray,
    ascontiguousarray as ascontiguousarray, copy as copy, diag as diag, diagflat as diagflat, empty as empty,
    empty_like as empty_like, eye as eye, fromfunction as fromfunction, full as full, full_like as full_like,
    geomspace as geomspace, identity as identity, indices as indices, linspace as linspace, logspace as logspace,
    meshgrid as meshgrid, ones as ones, ones_like as ones_like, tri as tri, tril as tril, triu as triu,
    vander as vander, zeros as zeros, zeros_like as zeros_like,
)
from jitgrad.numpy.elementwise import (
    abs as abs, absolute as absolute, acos as acos, acosh as acosh, add as add, angle as angle,
    arccos as arccos, arccosh as arccosh,
    arcsin as arcsin, arcsinh as arcsinh, arctan as arctan, arctan2 as arctan2, arctanh as arctanh, around as around,
    asin as asin, asinh as asinh, atan as atan, atan2 as atan2, atanh as atanh, bitwise_and as bitwise_and,
    bitwise_invert as bitwise_invert, bitwise_left_shift as bitwise_left_shift, bitwise_not as bitwise_not,
    bitwise_or as bitwise_or, bitwise_right_shift as bitwise_right_shift, bitwise_xor as bitwise_xor, cbrt as cbrt,
    ceil as ceil, clip as clip, conj as conj, conjugate as conjugate, copysign as copysign, cos as cos, cosh as cosh,
    deg2rad as deg2rad, degrees as degrees, divide as divide, divmod as divmod, equal as equal, exp as exp, exp2 as exp2,
    expm1 as expm1, fabs as fabs, fix as fix, float_power as float_power, floor as floor, floor_divide as floor_divide,
    fmax as fmax, fmin as fmin, fmod as fmod, greater as greater, greater_equal as greater_equal, heaviside as heaviside,
    hypot as hypot, imag as imag, invert as invert, iscomplex as iscomplex,
    iscomplexobj as iscomplexobj, isrealobj as isrealobj, isfinite as isfinite, isinf as isinf,
    isnan as isnan, isneginf as isneginf, isposinf as isposinf, isreal as isreal, left_shift as left_shift, less as less,
    less_equal as less_equal, log as log, log10 as log10, log1p as log1p, log2 as log2, logaddexp as logaddexp,
    logaddexp2 as logaddexp2, logical_and as logical_and, logical_not as logical_not, logical_or as logical_or,
    logical_xor as logical_xor, maximum as maximum, minimum as minimum, mod as mod, multiply as multiply,
    nan_to_num as nan_to_num, negative as negative, nextafter as nextafter, not_equal as not_equal, positive as positive,
    pow as pow, power as power, rad2deg as rad2deg, radians as radians, real as real, reciprocal as reciprocal,
    remainder as remainder, right_shift as right_shift, rint as rint, round as round, sign as sign, signbit as signbit,
    sin as sin, sinc as sinc, sinh as sinh, sqrt as sqrt, square as square, subtract as subtract, tan as tan,
    tanh as tanh, true_divide as true_divide, trunc as trunc,
)
from jitgrad.numpy.histograms import (
    histogram as histogram, histogram2d as histogram2d, histogram_bin_edges as histogram_bin_edges,
    histogramdd as histogramdd,
)
from jitgrad.numpy.in_place import (
    copyto as copyto, fill_diagonal as fill_diagonal, place as place, put as put, put_along_axis as put_along_axis,
    putmask as putmask,
)
from jitgrad.numpy.polynomials import (
    poly as poly, polyadd as polyadd, polyder as polyder, polyfit as polyfit, polyint as polyint, polymul as polymul,
    polysub as polysub, polyval as polyval, roots as roots,
)
from jitgrad.numpy.sets import (
    intersect1d as intersect1d, setdiff1d as setdiff1d, setxor1d as setxor1d, union1d as union1d,
)
from jitgrad.numpy.vectorized import vectorize as vectorize
from jitgrad.numpy.windows import (
    bartlett as bartlett, blackman as blackman, hamming as hamming, hanning as hanning, kaiser as kaiser,
)
from jitgrad.ops.bessel import i0 as i0
from jitgrad.ops.exchange import from_dlpack as from_dlpack
from jitgrad.ops.integers import frexp as frexp, gcd as gcd, isin as isin, lcm as lcm, ldexp as ldexp
from jitgrad.numpy.joining import (
    append as append, array_split as array_split, block as block, column_stack as column_stack, concat as concat,
    concatenate as concatenate, delete as delete, dsplit as dsplit, dstack as dstack, hsplit as hsplit, hstack as hstack,
    insert as insert, pad as pad, repeat as repeat, row_stack as row_stack, split as split, stack as stack, tile as tile,
    unstack as unstack, vsplit as vsplit, vstack as vstack,
)
from jitgrad.numpy.order import (
    along_axis as _along_axis, argpartition as argpartition, argsort as argsort, argwhere as argwhere,
    bincount as bincount, compress as compress, digitize as digitize, extract as extract, flatnonzero as flatnonzero,
    lexsort as lexsort, median as median, nanmedian as nanmedian, nanpercentile as nanpercentile, nanquantile as nanquantile,
    nonzero as nonzero, partition as partition, percentile as percentile, quantile as quantile,
    searchsorted as searchsorted, sort as sort, take_ as _take, unique as unique,
)
from jitgrad.numpy.products import (
    cross as cross, diagonal as diagonal, dot as dot, einsum as einsum, inner as inner, kron as kron, matmul as matmul,
    matvec as matvec, outer as outer, tensordot as tensordot, trace as trace, vdot as vdot, vecdot as vecdot,
    vecmat as vecmat,
)
from jitgrad.numpy.scalar_types import (
    bool_ as bool_, byte as byte, cdouble as cdouble, complex64 as complex64, complex128 as complex128,
    csingle as csingle, double as double, float16 as float16, float32 as float32, float64 as float64, half as half,
    int16 as int16, int32 as int32, int64 as int64, int8 as int8, int_ as int_, intc as intc, longlong as longlong,
    short as short, single as single, ubyte as ubyte, uint as uint, uint16 as uint16, uint32 as uint32, uint64 as uint64,
    uint8 as uint8,
)
from jitgrad.numpy.selection import (
    allclose as allclose, array_equal as array_equal, array_equiv as array_equiv, bitwise_count as bitwise_count,
    choose as choose,
    diag_indices_from as diag_indices_from, isclose as isclose, ix_ as ix_, modf as modf, piecewise as piecewise,
    select as select, tril_indices_from as tril_indices_from,
    trim_zeros as trim_zeros, triu_indices_from as triu_indices_from, unravel_index as unravel_index,
    where as where,
)
from jitgrad.numpy.shapes import (
    atleast_1d as atleast_1d, atleast_2d as atleast_2d, atleast_3d as atleast_3d, broadcast_arrays as broadcast_arrays,
    broadcast_to as broadcast_to, expand_dims as expand_dims, flip as flip, fliplr as fliplr, flipud as flipud,
    matrix_transpose as matrix_transpose, moveaxis as moveaxis, ndim as ndim, permute_dims as permute_dims,
    ravel as ravel, reshape as reshape, resize as resize, roll as roll, rollaxis as rollaxis, rot90 as rot90,
    shape as shape, size as size, squeeze as squeeze, swapaxes as swapaxes, transpose as transpose,
)
from jitgrad.numpy.statistics import (
    all as all, amax as amax, amin as amin, any as any, argmax as argmax, argmin as argmin, average as average,
    corrcoef as corrcoef, count_nonzero as count_nonzero, cov as cov, cumprod as cumprod, cumsum as cumsum, max as max,
    mean as mean, min as min, nanargmax as nanargmax, nanargmin as nanargmin, nancumprod as nancumprod,
    nancumsum as nancumsum, nanmax as nanmax, nanmean as nanmean, nanmin as nanmin, nanprod as nanprod, nanstd as nanstd,
    nansum as nansum, nanvar as nanvar, prod as prod, ptp as ptp, std as std, sum as sum, var as var,
)
from jitgrad.ops.arithmetic import astype as astype
from jitgrad.ops.movement import flatten as flatten
from jitgrad.numpy.packed_bits import packbits as packbits, unpackbits as unpackbits
from jitgrad.numpy.missing import missing as _missing
from jitgrad.numpy.missing import of_numpy as _of_numpy
from jitgrad.numpy.protocol import install as _install
from jitgrad.numpy.ufunc_methods import install_methods as _install_methods, ndenumerate as ndenumerate

e: float = 2.718281828459045
euler_gamma: float = 0.5772156649015329
inf: float = float("inf")
nan: float = float("nan")
newaxis: None = None
pi: float = 3.141592653589793
bool = bool_
trapz = trapezoid
intp = int64
long = int64
uintp = uint64
take = _take
take_along_axis = _along_axis
ndarray = _Tensor
product = prod
sometrue = any
alltrue = all
cumulative_sum = cumsum
cumulative_prod = cumprod

_install(globals(), vars(linalg), vars(fft))
_install_methods(globals())

# Assigned this way because type checkers would take an ``__all__`` that they cannot compute for an empty one.
globals()["__all__"] = sorted(
    name for name, value in globals().items()
    if name in ("fft", "lib", "linalg", "random") or (name[0] != "_" and not isinstance(value, _ModuleType))
)


def __getattr__(name: str) -> _Any:
    if (own := _of_numpy(name)) is not None:
        return own
    raise AttributeError(f"jitgrad.numpy has no {_shown(name)}: {_missing(name, globals())}", name=name)
