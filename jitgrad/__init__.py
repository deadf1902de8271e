"""Fuses whole training steps into a few kernels; imports everything below it.

A name is public once it is imported here ``as`` itself, which is also how type checkers know.
"""

# ruff: noqa: I001
# fmt: off  (a name per line would fill ten pages)
from builtins import bool as _bool
from collections import ChainMap as _ChainMap
from collections.abc import Callable as _Callable
from math import e as e, inf as inf, nan as nan, pi as pi
from types import ModuleType as _ModuleType
from typing import TYPE_CHECKING as _TYPE_CHECKING, Any as _Any

import numpy as _np
from numpy import broadcast_shapes as broadcast_shapes, promote_types as promote_types

from jitgrad.eager import interpreter as _interpreter  # noqa: F401 - installs what ops do outside of a trace
from jitgrad.on_demand import hips_names as _hips, public_names as _on_demand, registrations as _compiler  # noqa: F401 - and what compiles
from jitgrad import amp as amp, cuda as cuda, nn as nn, numpy as numpy, optim as optim, utils as utils
from jitgrad.core import errors as errors
from jitgrad.amp import autocast as autocast, is_autocast_enabled as is_autocast_enabled
from jitgrad.autograd import (
    Tape as Tape, checkpoint as checkpoint, custom_jvp as custom_jvp, custom_vjp as custom_vjp,
    detect_anomaly as detect_anomaly, enable_grad as enable_grad, gradcheck as gradcheck,
    gradgradcheck as gradgradcheck, hvp as hvp,
    inference_mode as inference_mode, is_grad_enabled as is_grad_enabled, jvp as jvp,
    no_grad as no_grad, print_graph as print_graph, set_grad_enabled as set_grad_enabled,
    value_and_grad as value_and_grad, vjp as vjp,
)
from jitgrad.autograd.flattening import flatten_params as flatten_params
from jitgrad.autograd.functional import grad as grad
from jitgrad.core.config import get_default_dtype as get_default_dtype, set_default_dtype as set_default_dtype
from jitgrad.core.device_array import DeviceName as _DeviceName
from jitgrad.core.dispatch import apply_op as apply_op
from jitgrad.core.missing_names import raising as _raising
from jitgrad.core.tensor import Tensor as Tensor
from jitgrad.eager.buffer_pool import POOL as _POOL, PoolStats as _PoolStats
from jitgrad.jit.switch import disable_jit as disable_jit
from jitgrad.jit.shape_struct import ShapeDtypeStruct as ShapeDtypeStruct
from jitgrad.nn import load as load, save as save
from jitgrad.on_demand.public_names import jit as jit  # hides the folder of that name
from jitgrad.ops.activations import (
    celu as celu, elu as elu, gelu as gelu, hardsigmoid as hardsigmoid, hardswish as hardswish,
    hardtanh as hardtanh, leaky_relu as leaky_relu, logsigmoid as logsigmoid, mish as mish, prelu as prelu,
    relu as relu, relu6 as relu6, selu as selu, silu as silu, softplus as softplus, softsign as softsign,
)
from jitgrad.ops.arithmetic import (
    abs as abs, absolute as absolute, add as add, astype as astype, clamp as clamp, clip as clip,
    copysign as copysign, divide as divide, maximum as maximum, minimum as minimum,
    mul as mul, multiply as multiply, neg as neg, negative as negative, positive as positive,
    reciprocal as reciprocal, rsqrt as rsqrt, sign as sign, sqrt as sqrt, square as square, sub as sub,
    subtract as subtract, true_divide as true_divide,
)
from jitgrad.ops.comparison import (
    bitwise_and as bitwise_and, bitwise_invert as bitwise_invert, bitwise_left_shift as bitwise_left_shift,
    bitwise_not as bitwise_not, bitwise_or as bitwise_or, bitwise_right_shift as bitwise_right_shift,
    bitwise_xor as bitwise_xor, eq as eq, equal as equal, ge as ge, greater as greater,
    greater_equal as greater_equal, gt as gt, invert as invert, isfinite as isfinite, isinf as isinf,
    isnan as isnan, le as le, left_shift as left_shift, less as less, less_equal as less_equal,
    logical_and as logical_and, logical_not as logical_not, logical_or as logical_or, logical_xor as logical_xor,
    lt as lt, ne as ne, nonzero as nonzero, not_equal as not_equal, right_shift as right_shift, signbit as signbit,
    where as where,
)
from jitgrad.ops.convolution import conv2d as conv2d
from jitgrad.ops.pooling import avg_pool2d as avg_pool2d, max_pool2d as max_pool2d
from jitgrad.ops.creation import (
    arange as arange, asarray as asarray, clone as clone, empty as empty, empty_like as empty_like, eye as eye,
    from_numpy as from_numpy, full as full, full_like as full_like,
    linspace as linspace, ones as ones, ones_like as ones_like, tensor as tensor,
    zeros as zeros, zeros_like as zeros_like,
)
from jitgrad.ops.diagonals import diagonal as diagonal
from jitgrad.ops.einsum import einsum as einsum
from jitgrad.ops.entropy import logit as logit, xlogy as xlogy
from jitgrad.ops.gamma import digamma as digamma, gammaln as _gammaln, polygamma as polygamma
from jitgrad.ops.indexed_sums import index_add as index_add, scatter_add as scatter_add
from jitgrad.ops.indexing import gather as gather, take as take, take_along_axis as take_along_axis
from jitgrad.ops.joining import (
    concat as concat, pad as pad, repeat as repeat, roll as roll, split as split,
    stack as stack, tile as tile, unstack as unstack,
)
from jitgrad.ops.linalg import (
    dot as dot, linear as linear, matmul as matmul, outer as outer, tensordot as tensordot, vecdot as vecdot,
)
from jitgrad.ops.exchange import from_dlpack as from_dlpack, from_torch as from_torch
from jitgrad.ops.grids import (
    meshgrid as meshgrid,
    block_diag as block_diag, cartesian_prod as cartesian_prod, combinations as combinations,
    diag_embed as diag_embed, tril_indices as tril_indices, triu_indices as triu_indices, unravel_index as unravel_index,
)
from jitgrad.ops.integers import (
    frexp as frexp, gcd as gcd, isin as isin, lcm as lcm, ldexp as ldexp,
)
from jitgrad.ops.losses import (
    binary_cross_entropy as binary_cross_entropy,
    binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
    cosine_embedding_loss as cosine_embedding_loss, cross_entropy as cross_entropy, hinge_loss as hinge_loss,
    huber_loss as huber_loss, kl_div as kl_div, l1_loss as l1_loss, mse_loss as mse_loss, nll_loss as nll_loss,
    smooth_l1_loss as smooth_l1_loss, triplet_margin_loss as triplet_margin_loss,
)
from jitgrad.ops.memory_formats import MemoryFormat as _MemoryFormat
from jitgrad.ops.movement import (
    broadcast_to as broadcast_to, expand_dims as expand_dims, flatten as flatten, flip as flip,
    matrix_transpose as matrix_transpose, moveaxis as moveaxis, permute_dims as permute_dims, reshape as reshape,
    squeeze as squeeze, swapaxes as swapaxes, transpose as transpose,
)
from jitgrad.ops.normal_distribution import erfinv as erfinv
from jitgrad.ops.neural import (
    batch_norm as batch_norm, dropout as dropout, embedding as embedding, group_norm as group_norm,
    layer_norm as layer_norm, one_hot as one_hot, rms_norm as rms_norm,
)
from jitgrad.ops.norms import norm as norm
from jitgrad.ops.random import (
    Generator as Generator, bernoulli as bernoulli, manual_seed as manual_seed,
    multinomial as multinomial, normal as normal, rand as rand,
    randint as randint, randn as randn,
    randperm as randperm, uniform as uniform,
)
from jitgrad.ops.random_state import get_rng_state as get_rng_state, set_rng_state as set_rng_state
from jitgrad.ops.random_like import rand_like as rand_like, randint_like as randint_like, randn_like as randn_like
from jitgrad.ops.reduce import (
    all as all, any as any, argmax as argmax, argmin as argmin, cumulative_sum as cumulative_sum,
    log_softmax as log_softmax, logsumexp as logsumexp, max as max, mean as mean, min as min,
    prod as prod, softmax as softmax, std as std, sum as sum, var as var,
)
from jitgrad.ops.rounding import (
    ceil as ceil, fix as fix, floor as floor, floor_divide as floor_divide, fmod as fmod, mod as mod,
    nextafter as nextafter, remainder as remainder, rint as rint, round as round, trunc as trunc,
)
from jitgrad.ops.sorting import (
    argsort as argsort, searchsorted as searchsorted, sort as sort, topk as topk,
    unique as unique,
)
from jitgrad.ops.special import erf as erf, erfc as erfc
from jitgrad.ops.scattering import (
    as_strided as as_strided, diagonal_scatter as diagonal_scatter, index_copy as index_copy,
    index_fill as index_fill, index_put as index_put, masked_scatter as masked_scatter, put as put, scatter as scatter,
    scatter_reduce as scatter_reduce, select_scatter as select_scatter, slice_scatter as slice_scatter,
)
from jitgrad.ops.torch_arithmetic import (
    addbmm as addbmm, addr as addr, aminmax as aminmax, bucketize as bucketize, dist as dist, div as div,
    frac as frac, logcumsumexp as logcumsumexp, rsub as rsub, sgn as sgn, unique_consecutive as unique_consecutive,
)
from jitgrad.ops.torch_names import (
    addcdiv as addcdiv, addcmul as addcmul, addmm as addmm, addmv as addmv, amax as amax, amin as amin,
    baddbmm as baddbmm, bmm as bmm, cdist as cdist, chunk as chunk, clamp_max as clamp_max, clamp_min as clamp_min,
    cummax as cummax, cummin as cummin, index_select as index_select, is_floating_point as is_floating_point,
    is_tensor as is_tensor,
    kthvalue as kthvalue, masked_fill as masked_fill, masked_select as masked_select, mm as mm, mv as mv,
    narrow as narrow, numel as numel, permute as permute, select as select,
    std_mean as std_mean, t as t, take_along_dim as take_along_dim, unflatten as unflatten, var_mean as var_mean,
)
from jitgrad.ops.transcendental import (
    exp as exp, exp2 as exp2, expm1 as expm1, log as log, log10 as log10, log1p as log1p, log2 as log2,
    logaddexp as logaddexp, pow as pow, power as power, sigmoid as sigmoid,
)
from jitgrad.ops.triangles import tril as tril, triu as triu
from jitgrad.ops.trigonometric import (
    acos as acos, acosh as acosh, arccos as arccos, arccosh as arccosh, arcsin as arcsin, arcsinh as arcsinh,
    arctan as arctan, arctan2 as arctan2, arctanh as arctanh, asin as asin, asinh as asinh, atan as atan,
    atan2 as atan2, atanh as atanh, cos as cos, cosh as cosh, hypot as hypot, sin as sin, sinh as sinh, tan as tan,
    tanh as tanh,
)
from jitgrad.ops.typed_constructors import (
    BoolTensor as BoolTensor, ByteTensor as ByteTensor, DoubleTensor as DoubleTensor, FloatTensor as FloatTensor,
    HalfTensor as HalfTensor, IntTensor as IntTensor, LongTensor as LongTensor,
)
from jitgrad.ops.user import custom_op as custom_op, elementwise as elementwise, no_gradient as no_gradient
from jitgrad.ops.operand import ValuesAndIndices as _ValuesAndIndices
from jitgrad.ops.interpolation import lerp as lerp
from jitgrad.numpy import linalg as linalg, torch_fft as _torch_fft
from jitgrad.numpy.array_api import (
    can_cast as can_cast, cumulative_prod as cumulative_prod, isdtype as isdtype, namespace_info as _namespace_info,
    result_type as result_type, unique_all as unique_all, unique_counts as unique_counts,
    unique_inverse as unique_inverse, unique_values as unique_values,
)
from jitgrad.numpy.linalg import (
    cholesky as cholesky, det as det, householder_product as _householder_product, inv as _inv,
    matrix_exp as matrix_exp, matrix_power as matrix_power, pinv as _pinv,
    slogdet as slogdet,
)
from jitgrad.numpy.elementwise import conj as conj, imag as imag, isreal as isreal, real as real
from jitgrad.ops.complex_numbers import (
    angle as angle, polar as polar, view_as_complex as view_as_complex, view_as_real as view_as_real,
)
from jitgrad.ops.complex_parts import complex as complex, is_complex as is_complex
from jitgrad.numpy.shapes import broadcast_arrays as broadcast_arrays
from jitgrad.numpy.systems import cholesky_inverse as cholesky_inverse, cholesky_solve as cholesky_solve, logdet as logdet
from jitgrad.numpy import array_methods as _array_methods, torch_tensor_methods as _tensor_methods  # noqa: F401 - installs them
from jitgrad.numpy.shared_with_torch import SHARED as _SHARED
from jitgrad.backends import cudnn as _cudnn, mps as _mps  # noqa: F401 - torch's switches, found as jg.backends.cudnn
from jitgrad.backends.cuda import matmul as _matmul_switches  # noqa: F401
from jitgrad.backends.switches import (
    set_float32_matmul_precision as set_float32_matmul_precision,
    use_deterministic_algorithms as use_deterministic_algorithms,
)

memory_stats: _Callable[[], _PoolStats] = _POOL.stats

# the same functions under the names that users of NumPy and torch reach for
concatenate = concat
cat = concat
cumsum = cumulative_sum
unsqueeze = expand_dims
movedim = moveaxis
swapdims = swapaxes
unbind = unstack
repeat_interleave = repeat
as_tensor = asarray
lgamma = _gammaln
allclose: _Callable[..., _bool] = _SHARED["allclose"]
isclose: _Callable[..., Tensor] = _SHARED["isclose"]
column_stack: _Callable[..., Tensor] = _SHARED["column_stack"]
dstack: _Callable[..., Tensor] = _SHARED["dstack"]
hstack: _Callable[..., Tensor] = _SHARED["hstack"]
vstack: _Callable[..., Tensor] = _SHARED["vstack"]
bincount: _Callable[..., Tensor] = _SHARED["bincount"]
count_nonzero: _Callable[..., Tensor] = _SHARED["count_nonzero"]
cross: _Callable[..., Tensor] = _SHARED["cross"]
cumprod: _Callable[..., Tensor] = _SHARED["cumprod"]
diag: _Callable[..., Tensor] = _SHARED["diag"]
diagflat: _Callable[..., Tensor] = _SHARED["diagflat"]
diff: _Callable[..., Tensor] = _SHARED["diff"]
fliplr: _Callable[..., Tensor] = _SHARED["fliplr"]
flipud: _Callable[..., Tensor] = _SHARED["flipud"]
inner: _Callable[..., Tensor] = _SHARED["inner"]
kron: _Callable[..., Tensor] = _SHARED["kron"]
nan_to_num: _Callable[..., Tensor] = _SHARED["nan_to_num"]
nanmean: _Callable[..., Tensor] = _SHARED["nanmean"]
nansum: _Callable[..., Tensor] = _SHARED["nansum"]
quantile: _Callable[..., Tensor] = _SHARED["quantile"]
rot90: _Callable[..., Tensor] = _SHARED["rot90"]
trace: _Callable[..., Tensor] = _SHARED["trace"]
argwhere: _Callable[..., Tensor] = _SHARED["argwhere"]
array_split: _Callable[..., list[Tensor]] = _SHARED["array_split"]
atleast_1d: _Callable[..., Tensor | list[Tensor]] = _SHARED["atleast_1d"]
atleast_2d: _Callable[..., Tensor | list[Tensor]] = _SHARED["atleast_2d"]
atleast_3d: _Callable[..., Tensor | list[Tensor]] = _SHARED["atleast_3d"]
corrcoef: _Callable[..., Tensor] = _SHARED["corrcoef"]
cov: _Callable[..., Tensor] = _SHARED["cov"]
deg2rad: _Callable[..., Tensor] = _SHARED["deg2rad"]
rad2deg: _Callable[..., Tensor] = _SHARED["rad2deg"]
dsplit: _Callable[..., list[Tensor]] = _SHARED["dsplit"]
hsplit: _Callable[..., list[Tensor]] = _SHARED["hsplit"]
vsplit: _Callable[..., list[Tensor]] = _SHARED["vsplit"]
float_power: _Callable[..., Tensor] = _SHARED["float_power"]
fmax: _Callable[..., Tensor] = _SHARED["fmax"]
fmin: _Callable[..., Tensor] = _SHARED["fmin"]
heaviside: _Callable[..., Tensor] = _SHARED["heaviside"]
isneginf: _Callable[..., Tensor] = _SHARED["isneginf"]
isposinf: _Callable[..., Tensor] = _SHARED["isposinf"]
logaddexp2: _Callable[..., Tensor] = _SHARED["logaddexp2"]
logspace: _Callable[..., Tensor] = _SHARED["logspace"]
median: _Callable[..., Tensor | _ValuesAndIndices] = _SHARED["median"]
nanmedian: _Callable[..., Tensor] = _SHARED["nanmedian"]
nanquantile: _Callable[..., Tensor] = _SHARED["nanquantile"]
ravel: _Callable[..., Tensor] = _SHARED["ravel"]
sinc: _Callable[..., Tensor] = _SHARED["sinc"]
trapezoid: _Callable[..., Tensor] = _SHARED["trapezoid"]
trapz: _Callable[..., Tensor] = trapezoid
vdot: _Callable[..., Tensor] = _SHARED["vdot"]
row_stack: _Callable[..., Tensor] = vstack
vander: _Callable[..., Tensor] = _SHARED["vander"]
tensor_split: _Callable[..., list[Tensor]] = array_split
broadcast_tensors = broadcast_arrays
inverse = _inv
orgqr = _householder_product
ger = outer
fft = _torch_fft
pinverse = _pinv
finfo = _np.finfo
iinfo = _np.iinfo

float16: _np.dtype[_np.float16] = _np.dtype("float16")
float32: _np.dtype[_np.float32] = _np.dtype("float32")
float64: _np.dtype[_np.float64] = _np.dtype("float64")
complex64: _np.dtype[_np.complex64] = _np.dtype("complex64")
complex128: _np.dtype[_np.complex128] = _np.dtype("complex128")
cfloat: _np.dtype[_np.complex64] = complex64
cdouble: _np.dtype[_np.complex128] = complex128
int8: _np.dtype[_np.int8] = _np.dtype("int8")
int16: _np.dtype[_np.int16] = _np.dtype("int16")
int32: _np.dtype[_np.int32] = _np.dtype("int32")
int64: _np.dtype[_np.int64] = _np.dtype("int64")
uint8: _np.dtype[_np.uint8] = _np.dtype("uint8")
uint16: _np.dtype[_np.uint16] = _np.dtype("uint16")
uint32: _np.dtype[_np.uint32] = _np.dtype("uint32")
uint64: _np.dtype[_np.uint64] = _np.dtype("uint64")
bool: _np.dtype[_np.bool] = _np.dtype("bool")
half: _np.dtype[_np.float16] = float16
float: _np.dtype[_np.float32] = float32
double: _np.dtype[_np.float64] = float64
short: _np.dtype[_np.int16] = int16
int: _np.dtype[_np.int32] = int32
long: _np.dtype[_np.int64] = int64
__array_api_version__ = "2024.12"
__array_namespace_info__ = _namespace_info
device = _DeviceName  # hides the folder of that name, which holds nothing public but jitgrad.cuda
newaxis: None = None
contiguous_format: _MemoryFormat = _MemoryFormat.contiguous_format
preserve_format: _MemoryFormat = _MemoryFormat.preserve_format
channels_last: _MemoryFormat = _MemoryFormat.channels_last
channels_last_3d: _MemoryFormat = _MemoryFormat.channels_last_3d
Size: type[tuple[_Any, ...]] = tuple  # of a shape

__version__: str = "0.1.0"

# Assigned this way because type checkers would take an ``__all__`` that they cannot compute for an empty one.
globals()["__all__"] = sorted({
    "distributions", "fft", "func", "linalg", "nn", "numpy", "optim", "scipy", "signal", "utils", *_on_demand.PUBLIC_FUNCTIONS,
    *(name for name, value in globals().items() if name[0] != "_" and not isinstance(value, _ModuleType)),
})

_names = _ChainMap(globals(), {**_on_demand.PUBLIC_MODULES, **_on_demand.PUBLIC_FUNCTIONS})
if _TYPE_CHECKING:
    from jitgrad import distributions as distributions, func as func, inspect as inspect, scipy as scipy
    from jitgrad.batching import hessian as hessian, jacobian as jacobian, vmap as vmap
    from jitgrad.inspect import compare as compare
    from jitgrad.jit.load_ejected import load_ejected as load_ejected
    from jitgrad.runtime.executor.thread_pool import (
        get_num_threads as get_num_threads, set_flush_denormal as set_flush_denormal, set_num_threads as set_num_threads,
    )
    from jitgrad.scipy import special as special
    from jitgrad import signal as signal
    from jitgrad.nn.functional import (
        adaptive_avg_pool1d as adaptive_avg_pool1d, alpha_dropout as alpha_dropout, avg_pool1d as avg_pool1d, bilinear as
        bilinear, feature_alpha_dropout as feature_alpha_dropout, rrelu as rrelu, channel_shuffle as
        channel_shuffle, conv1d as conv1d, conv3d as conv3d, conv_transpose1d as conv_transpose1d, conv_transpose2d as
        conv_transpose2d, conv_transpose3d as conv_transpose3d, cosine_similarity as cosine_similarity, hardshrink as
        hardshrink, max_pool1d as max_pool1d, max_pool3d as max_pool3d, pairwise_distance as pairwise_distance, pdist
        as pdist, pixel_shuffle as pixel_shuffle, pixel_unshuffle as pixel_unshuffle, threshold as threshold,
    )
    from jitgrad.numpy.torch_calculus import cumulative_trapezoid as cumulative_trapezoid, gradient as gradient
    from jitgrad.numpy.factors import lu_unpack as lu_unpack, ormqr as ormqr
    from jitgrad.numpy.torch_linalg import (
        geqrf as geqrf, lu as lu, lu_solve as lu_solve, pca_lowrank as pca_lowrank, qr as qr, svd as svd, svd_lowrank as
        svd_lowrank, triangular_solve as triangular_solve,
    )
    from jitgrad.numpy.torch_histograms import histc as histc, histogram as histogram, histogramdd as histogramdd
    from jitgrad.ops.bessel import i0 as i0
    from jitgrad.ops.gamma import igamma as igamma, igammac as igammac
    from jitgrad.scipy.special.factorials import mvlgamma as mvlgamma
    from jitgrad.ops.torch_copies import (
        alias_copy as alias_copy, as_strided_copy as as_strided_copy, detach_copy as detach_copy, diagonal_copy as
        diagonal_copy, expand_copy as expand_copy, narrow_copy as narrow_copy, permute_copy as permute_copy,
        select_copy as select_copy, slice_copy as slice_copy, split_copy as split_copy, split_with_sizes_copy as
        split_with_sizes_copy, squeeze_copy as squeeze_copy, t_copy as t_copy, transpose_copy as transpose_copy,
        unbind_copy as unbind_copy, unfold_copy as unfold_copy, unsqueeze_copy as unsqueeze_copy, view_as_complex_copy
        as view_as_complex_copy, view_as_real_copy as view_as_real_copy, view_copy as view_copy,
    )
    from jitgrad.ops.torch_creation import (
        empty_permuted as empty_permuted, empty_strided as empty_strided, frombuffer as frombuffer, scalar_tensor as
        scalar_tensor,
    )
    from jitgrad.ops.torch_in_place import (
        abs_ as abs_, acos_ as acos_, acosh_ as acosh_, addmv_ as addmv_, arccos_ as arccos_, arccosh_ as arccosh_,
        arcsin_ as arcsin_, arcsinh_ as arcsinh_, arctan_ as arctan_, arctanh_ as arctanh_, asin_ as asin_,
        asinh_ as asinh_, atan_ as atan_, atanh_ as atanh_, ceil_ as ceil_, celu_ as celu_, clamp_ as clamp_,
        clamp_max_ as clamp_max_, clamp_min_ as clamp_min_, clip_ as clip_, cos_ as cos_, cosh_ as cosh_,
        deg2rad_ as deg2rad_, detach_ as detach_, erf_ as erf_, erfc_ as erfc_, exp2_ as exp2_, exp_ as exp_,
        expm1_ as expm1_, fill_ as fill_, fix_ as fix_, floor_ as floor_, frac_ as frac_, gcd_ as gcd_, i0_ as i0_,
        index_put_ as index_put_, lcm_ as lcm_, ldexp_ as ldexp_, log10_ as log10_, log1p_ as log1p_, log2_ as log2_,
        log_ as log_, logit_ as logit_, nan_to_num_ as nan_to_num_, neg_ as neg_, negative_ as negative_,
        rad2deg_ as rad2deg_, reciprocal_ as reciprocal_, relu_ as relu_, resize_as_ as resize_as_, round_ as round_,
        rsqrt_ as rsqrt_, selu_ as selu_, sigmoid_ as sigmoid_, sin_ as sin_, sinc_ as sinc_, sinh_ as sinh_,
        sqrt_ as sqrt_, square_ as square_, tan_ as tan_, tanh_ as tanh_, trunc_ as trunc_, xlogy_ as xlogy_,
        zero_ as zero_,
    )
    from jitgrad.ops.torch_selections import (
        as_strided_scatter as as_strided_scatter, constant_pad_nd as constant_pad_nd, index_reduce as index_reduce,
        mode as mode, msort as msort, nonzero_static as nonzero_static, renorm as renorm, split_with_sizes
        as split_with_sizes, unsafe_split as unsafe_split,
    )
    from jitgrad.signal.spectra import istft as istft, stft as stft
    from jitgrad.signal.torch_windows import (
        bartlett_window as bartlett_window, blackman_window as blackman_window, hamming_window as hamming_window,
        hann_window as hann_window, kaiser_window as kaiser_window,
    )
else:
    __getattr__: _Callable[[str], _Any] = _on_demand.attribute_of(globals(), _raising("jitgrad", _names))

    def __dir__() -> list[str]:
        return sorted(_names)
