"""Fuses whole training steps into a few kernels; imports everything below it."""

# ruff: noqa: I001
# fmt: off  (a name per line would fill ten pages)
from __future__ import annotations

import numpy as _np

from jitgrad.eager import interpreter as _interpreter  # noqa: F401  installs the meaning that ops have outside of a trace
from jitgrad import nn, optim
from jitgrad.core import errors  # noqa: F401
from jitgrad.ops.user import custom_op, elementwise, no_gradient
from jitgrad.autograd import (
    Tape, checkpoint, detect_anomaly, enable_grad, gradcheck, gradgradcheck, hessian, hvp,
    inference_mode, is_grad_enabled, jacobian, jvp, no_grad, print_graph, set_grad_enabled, value_and_grad, vjp,
)
from jitgrad.autograd.functional import grad
from jitgrad.core.config import get_default_dtype, set_default_dtype
from jitgrad.core.dispatch import apply_op
from jitgrad.inspect import compare
from jitgrad.jit.decorator import disable_jit, jit
from jitgrad.nn import load, save
from jitgrad.ops.activations import (
    celu, elu, gelu, hardsigmoid, hardswish, hardtanh, leaky_relu, logsigmoid, mish, prelu, relu, relu6, selu,
    silu, softplus, softsign,
)
from jitgrad.ops.convolution import avg_pool2d, conv2d, max_pool2d
from jitgrad.ops.creation import (
    arange, asarray, clone, empty, empty_like, eye, from_dlpack, from_numpy, full, full_like, linspace,
    meshgrid, ones, ones_like, tensor, tril, triu, zeros, zeros_like,
)
from jitgrad.ops.einsum import einsum
from jitgrad.ops.elementwise import (
    abs, absolute, acos, acosh, add, arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctanh, asin, asinh,
    astype, atan, atan2, atanh, bitwise_and, bitwise_invert, bitwise_left_shift, bitwise_not, bitwise_or,
    bitwise_right_shift, bitwise_xor, ceil, clamp, clip, copysign, cos, cosh, div, divide, eq, equal, erf, erfc,
    exp, exp2, expm1, fix, floor, floor_divide, fmod, ge, greater, greater_equal, gt, hypot, invert, isfinite,
    isinf, isnan, le, left_shift, lerp, less, less_equal, log, log10, log1p, log2, logaddexp, logical_and,
    logical_not, logical_or, logical_xor, lt, maximum, minimum, mod, mul, multiply, ne, neg, negative,
    nextafter, not_equal, positive, pow, power, reciprocal, remainder, right_shift, rint, round, rsqrt, sigmoid,
    sign, signbit, sin, sinh, sqrt, square, sub, subtract, tan, tanh, true_divide, trunc, where,
)
from jitgrad.ops.indexing import gather, index_add, scatter_add, take, take_along_axis
from jitgrad.ops.joining import concat, diagonal, pad, repeat, roll, split, stack, tile, unstack
from jitgrad.ops.linalg import dot, linear, matmul, outer, tensordot, vecdot
from jitgrad.ops.losses import (
    binary_cross_entropy, binary_cross_entropy_with_logits, cosine_embedding_loss, cross_entropy, hinge_loss,
    huber_loss, kl_div, l1_loss, mse_loss, nll_loss, smooth_l1_loss, triplet_margin_loss,
)
from jitgrad.ops.movement import (
    broadcast_to, expand_dims, flatten, flip, matrix_transpose, moveaxis, permute_dims, reshape, squeeze,
    swapaxes, transpose,
)
from jitgrad.ops.neural import batch_norm, dropout, embedding, group_norm, layer_norm, one_hot, rms_norm
from jitgrad.ops.random import Generator, bernoulli, manual_seed, normal, rand, randint, randn, randperm, uniform
from jitgrad.ops.reduce import (
    all, any, argmax, argmin, cumulative_sum, log_softmax, logsumexp, max, mean, min, norm, prod, softmax, std,
    sum, var,
)
from jitgrad.ops.sorting import argsort, nonzero, searchsorted, sort, topk, unique
from jitgrad.eager.buffer_pool import POOL as _POOL
from jitgrad.runtime.executor.thread_pool import get_num_threads, set_num_threads
from jitgrad.core.tensor import Tensor

memory_stats = _POOL.stats

# the same functions under the names that users of NumPy and torch reach for
concatenate = cat = concat
cumsum = cumulative_sum

float16, float32, float64 = map(_np.dtype, ("float16", "float32", "float64"))
int8, int16, int32, int64 = map(_np.dtype, ("int8", "int16", "int32", "int64"))
uint8, uint16, uint32, uint64 = map(_np.dtype, ("uint8", "uint16", "uint32", "uint64"))
bool = _np.dtype("bool")
e, inf, nan, newaxis, pi = _np.e, _np.inf, _np.nan, None, _np.pi

__all__ = [
    "Generator", "Tape", "Tensor", "abs", "absolute", "acos", "acosh", "add", "all", "any", "apply_op",
    "arange", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "argmax", "argmin",
    "argsort", "asarray", "asin", "asinh", "astype", "atan", "atan2", "atanh", "avg_pool2d", "batch_norm",
    "bernoulli", "binary_cross_entropy", "binary_cross_entropy_with_logits", "bitwise_and", "bitwise_invert",
    "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "bool",
    "broadcast_to", "cat", "ceil", "celu", "checkpoint", "clamp", "clip", "clone", "compare", "concat",
    "concatenate", "conv2d", "copysign", "cos", "cosh", "cosine_embedding_loss", "cross_entropy", "cumsum",
    "cumulative_sum", "custom_op", "detect_anomaly", "diagonal", "disable_jit", "div", "divide", "dot",
    "dropout", "e", "einsum", "elementwise", "elu", "embedding", "empty", "empty_like", "enable_grad", "eq",
    "equal", "erf", "erfc", "exp", "exp2", "expand_dims", "expm1", "eye", "fix", "flatten", "flip", "float16",
    "float32", "float64", "floor", "floor_divide", "fmod", "from_dlpack", "from_numpy", "full", "full_like",
    "gather", "ge", "gelu", "get_default_dtype", "get_num_threads", "grad", "gradcheck", "gradgradcheck",
    "greater", "greater_equal", "group_norm", "gt", "hardsigmoid", "hardswish", "hardtanh", "hessian",
    "hinge_loss", "huber_loss", "hvp", "hypot", "index_add", "inf", "inference_mode", "int16", "int32",
    "int64", "int8", "invert", "is_grad_enabled", "isfinite", "isinf", "isnan", "jacobian", "jit", "jvp",
    "kl_div", "l1_loss", "layer_norm", "le", "leaky_relu", "left_shift", "lerp", "less", "less_equal",
    "linear", "linspace", "load", "log", "log10", "log1p", "log2", "log_softmax", "logaddexp", "logical_and",
    "logical_not", "logical_or", "logical_xor", "logsigmoid", "logsumexp", "lt", "manual_seed", "matmul",
    "matrix_transpose", "max", "max_pool2d", "maximum", "mean", "memory_stats", "meshgrid", "min", "minimum",
    "mish", "mod", "moveaxis", "mse_loss", "mul", "multiply", "nan", "ne", "neg", "negative", "newaxis",
    "nextafter", "nll_loss", "nn", "no_grad", "no_gradient", "nonzero", "norm", "normal", "not_equal", "one_hot", "ones",
    "ones_like", "optim", "outer", "pad", "permute_dims", "pi", "positive", "pow", "power", "prelu",
    "print_graph", "prod", "rand", "randint", "randn", "randperm", "reciprocal", "relu", "relu6", "remainder",
    "repeat", "reshape", "right_shift", "rint", "rms_norm", "roll", "round", "rsqrt", "save", "scatter_add",
    "searchsorted", "selu", "set_default_dtype", "set_grad_enabled", "set_num_threads", "sigmoid", "sign",
    "signbit", "silu", "sin", "sinh", "smooth_l1_loss", "softmax", "softplus", "softsign", "sort", "split",
    "sqrt", "square", "squeeze", "stack", "std", "sub", "subtract", "sum", "swapaxes", "take",
    "take_along_axis", "tan", "tanh", "tensor", "tensordot", "tile", "topk", "transpose", "tril",
    "triplet_margin_loss", "triu", "true_divide", "trunc", "uint16", "uint32", "uint64", "uint8", "uniform",
    "unique", "unstack", "value_and_grad", "var", "vecdot", "vjp", "where", "zeros", "zeros_like",
]
