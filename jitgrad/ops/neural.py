"""Normalisation, embedding and dropout, composed of primitives so that they fuse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitgrad.core.aval import Aval, Dtype, Shape, normalize_axis, normalize_shape
from jitgrad.core.errors import ArgumentError, DtypeError, ShapeError
from jitgrad.core.op import define_elementwise
from jitgrad.core.tensor import Tensor, check_supported
from jitgrad.eager.compositions import composed
from jitgrad.eager.numpy_errors import quietly
from jitgrad.eager.where import select_by_mask
from jitgrad.ops import arithmetic
from jitgrad.ops.arithmetic import add, astype, minimum, multiply, reciprocal, rsqrt, subtract
from jitgrad.ops.comparison import Selected, equal, greater_equal, less, where
from jitgrad.ops.complex_parts import refuse_complex
from jitgrad.ops.creation import asarray, detached, iota
from jitgrad.ops.identity import STOP_GRADIENT
from jitgrad.ops.indexing import take
from jitgrad.ops.inplace import assign
from jitgrad.ops.labels import CHECK_CLASSES, check_range, is_unseen
from jitgrad.ops.movement import expand_dims, reshape
from jitgrad.ops.operand import apply
from jitgrad.ops.placement import beside
from jitgrad.ops.positions import length_in_call
from jitgrad.ops.random import Generator, rand
from jitgrad.ops.reduce import max as max_
from jitgrad.ops.reduce import mean, var


def one_hot(x: Any, num_classes: int = -1, *, dtype: Any = None) -> Tensor:
    """[..., num_classes] from integers [...]: 1 at the class, else 0; int64 unless ``dtype`` is given.

    ``num_classes=-1`` stands for one more than the largest class, on which the shape then depends: a @jit function
    has a program for each.

    Raises:
        DtypeError: ``x`` is not of integers.
        IndexingError: a class is not in [0, num_classes) (on a device an IndexError, when a value is read).
    """
    x = asarray(x)
    if num_classes == -1:
        number = length_in_call(x, "one_hot without num_classes", lambda: add(max_(x), 1)) if x.size else 0
        num_classes = int(x.concrete("one_hot without num_classes").max()) + 1 if number is None else number
        x = x if number is None else minimum(x, max(number - 1, 0))  # see `bincount`
    _check_integers("one_hot", x, num_classes)
    wanted = np.dtype(np.int64) if dtype is None else check_supported("one_hot", dtype)
    if is_unseen(x):
        x = apply(CHECK_CLASSES, x, count=num_classes)
    elif type(x._data) is np.ndarray:
        return Tensor(quietly(_ones_at, x._data, num_classes, wanted))
    return _in_classes(x, num_classes, wanted)


def _ones_at(classes: np.ndarray, count: int, dtype: Dtype) -> np.ndarray:
    """`_in_classes` of an array: one write for each integer, where a comparison would be one for each class."""
    out = np.zeros((*classes.shape, count), dtype)
    out.reshape(-1, count)[np.arange(classes.size), classes.reshape(-1)] = 1
    return out


@composed
def _in_classes(x: Tensor, count: int, dtype: Dtype) -> Tensor:
    """[..., count] from integers [...]: 1 at the class, else 0."""
    with beside(x):
        classes = iota((*x.shape, count), x.ndim, np.int64)
    return astype(equal(expand_dims(x, -1), classes), dtype)


def _check_integers(what: str, x: Tensor, count: int) -> None:
    """Raise unless ``x`` has integers, in [0, count) if the host sees them."""
    if x.dtype.kind not in "iu":
        raise DtypeError(f"{what}: expected integers, got {x.aval}")
    if not is_unseen(x):
        check_range(what, x.concrete(what), count)


def embedding(x: Any, weight: Any, padding_idx: int | None = None) -> Tensor:
    """The rows [..., dim] of ``weight`` [count, dim] at the integers ``x`` [...].

    Row ``padding_idx`` (negative: from the end) gets no gradient.

    Raises:
        IndexingError: an index is not in [0, count) (in compiled code and on a device an IndexError).
    """
    x, weight = asarray(x), asarray(weight)
    if weight.ndim != 2:
        raise ShapeError(f"embedding: weight must be a matrix [count, dim], got {weight.aval}")
    _check_integers("embedding", x, weight.shape[0])
    if is_unseen(x) and x.dtype.kind == "i":  # a negative index is one too many, for `take`
        x = astype(x, np.int64)
        x = where(less(x, 0), weight.shape[0], x)
    rows = take(weight, x, axis=0)
    if padding_idx is None:
        return rows
    padding = normalize_axis("embedding (padding_idx)", padding_idx, weight.shape[0])
    return where(expand_dims(equal(x, padding), -1), apply(STOP_GRADIENT, rows), rows)


def _drop_dtypes(avals: Sequence[Aval], **_attrs: Any) -> tuple[tuple[Dtype, ...], Dtype]:
    return (avals[0].dtype, np.dtype(np.bool_)), avals[0].dtype


DROP = define_elementwise(
    "drop(x, keep)",
    scalar="x if keep else 0",
    eager=lambda x, keep: select_by_mask(keep, x, x.dtype.type(0)),
    dtypes=_drop_dtypes,
    # like an activation's, not like that of `where`: nobody drops a whole row
    vjp=(lambda g, _out, _x, keep: Selected(g, keep, activation=True), None),
    domain=("real", "bool"),
)


def dropout(x: Any, p: Any = 0.5, training: bool = True, *, generator: Generator | None = None) -> Tensor:
    """In training, each element zero with probability ``p``, else scaled by ``1 / (1 - p)``; otherwise ``x``.

    N. Srivastava et al., "Dropout: a simple way to prevent neural networks from overfitting", JMLR 2014.

    Raises:
        ArgumentError: ``p`` is a Python number outside [0, 1].
    """
    given = asarray(x)
    if isinstance(p, (int, float)):
        if not 0 <= p <= 1:
            raise ArgumentError(f"dropout: a probability is between 0 and 1, got {p}")
        if not training or p == 0:
            return given
        scale: Any = 1.0 / (1.0 - p) if p < 1 else 0.0
    elif not training:
        return given
    else:
        scale = where(less(p, 1.0), reciprocal(subtract(1.0, where(less(p, 1.0), p, 0.0))), 0.0)
    with beside(given):
        keep = greater_equal(rand(given.shape, dtype=np.float32, generator=generator), p)
    return apply(DROP, multiply(given, scale), keep)


# --- normalisation -----------------------------------------------------------------------------------------------


def _mean_square(what: str, x: Tensor, axes: Sequence[int]) -> Tensor:
    refuse_complex(what, x)
    return mean(arithmetic.square(x), axis=axes, keepdims=True)


def _standardized(x: Tensor, axes: Sequence[int], eps: Any) -> Tensor:
    """``x`` with mean 0 and variance 1 over ``axes`` (biased variance, as all the papers below)."""
    centred = subtract(x, mean(x, axis=axes, keepdims=True))
    spread = _mean_square("normalisation", centred, axes)
    return multiply(centred, rsqrt(add(spread, eps)))


def _affine(x: Tensor, weight: Any, bias: Any) -> Tensor:
    out: Tensor = x if weight is None else multiply(x, weight)
    return out if bias is None else add(out, bias)


def _last_axes(what: str, x: Tensor, normalized_shape: Any, *parameters: Any) -> tuple[int, ...]:
    """The last axes of ``x``, which with the parameters must have ``normalized_shape``."""
    shape: Shape = normalize_shape(what, normalized_shape)
    if not shape or x.shape[-len(shape) :] != shape:
        raise ShapeError(f"{what}: the last axes of {x.aval} are not normalized_shape={shape}")
    for parameter in parameters:
        if parameter is not None and asarray(parameter).shape != shape:
            raise ShapeError(f"{what}: weight and bias must have shape {shape}, got {asarray(parameter).aval}")
    return tuple(range(x.ndim - len(shape), x.ndim))


@composed
def layer_norm(x: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: Any = 1e-5) -> Tensor:
    """Standardise over the last axes, which are ``normalized_shape``; then scale and shift.

    J. L. Ba, J. R. Kiros, G. E. Hinton, "Layer normalization", 2016.
    """
    x = asarray(x)
    axes = _last_axes("layer_norm", x, normalized_shape, weight, bias)
    return _affine(_standardized(x, axes, eps), weight, bias)


@composed
def rms_norm(x: Any, normalized_shape: Any, weight: Any = None, eps: Any = None) -> Tensor:
    """Divide by the root mean square over the last axes, which are ``normalized_shape``; then scale.

    B. Zhang, R. Sennrich, "Root mean square layer normalization", NeurIPS 2019. ``eps`` defaults to the machine
    epsilon of ``x``'s dtype, as in torch.
    """
    x = asarray(x)
    axes = _last_axes("rms_norm", x, normalized_shape, weight)
    small = float(np.finfo(x.dtype).eps) if eps is None else eps
    square = _mean_square("rms_norm", x, axes)
    return _affine(multiply(x, rsqrt(add(square, small))), weight, None)


def _check_channels(what: str, parameter: Any, x: Tensor) -> None:
    """Raise ShapeError unless ``parameter``, if there is one, is a vector over axis 1 of ``x``, or one number."""
    if parameter is not None and (vector := asarray(parameter)).shape not in (x.shape[1:2], (1,), ()):
        raise ShapeError(f"{what}: {vector.aval} has no value for each of the {x.shape[1]} channels (axis 1) of {x.aval}")


def _per_channel(what: str, parameter: Any, x: Tensor) -> Any:
    """A vector over axis 1 of ``x``, placed to broadcast against ``x``. Raises ShapeError if it has another length."""
    if parameter is None:
        return None
    _check_channels(what, parameter, x)
    return expand_dims(asarray(parameter), tuple(range(1, x.ndim - 1)))


@composed
def group_norm(x: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: Any = 1e-5) -> Tensor:
    """Standardise ``x`` [n, channels, ...] over groups of channels and all later axes; then scale per channel.

    Y. Wu, K. He, "Group normalization", ECCV 2018.
    """
    x = asarray(x)
    if x.ndim < 2 or num_groups < 1 or x.shape[1] % num_groups:
        raise ShapeError(f"group_norm: {x.aval} has no axis 1 that divides into {num_groups} groups")
    grouped = reshape(x, (x.shape[0], num_groups, x.shape[1] // num_groups, *x.shape[2:]))
    out = reshape(_standardized(grouped, tuple(range(2, grouped.ndim)), eps), x.shape)
    return _affine(out, _per_channel("group_norm", weight, x), _per_channel("group_norm", bias, x))


def batch_norm(
    x: Any,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: Any = 0.1,
    eps: Any = 1e-5,
) -> Tensor:
    """Standardise ``x`` [n, channels, ...] per channel; then scale and shift.

    In training with the statistics of ``x``, which also move the running ones (in place) by ``momentum``, the variance
    as an unbiased estimate; otherwise with the running ones. S. Ioffe, C. Szegedy, "Batch normalization", ICML 2015.

    Raises:
        ArgumentError: there are no running statistics to use, or a single value per channel to train on.
    """
    x = asarray(x)
    if x.ndim < 2:
        raise ShapeError(f"batch_norm: expected [n, channels, ...], got {x.aval}")
    _check_channels("batch_norm", weight, x)
    _check_channels("batch_norm", bias, x)
    if not training:
        if running_mean is None or running_var is None:
            raise ArgumentError("batch_norm: training=False needs running_mean and running_var")
        return _by_channel(x, running_mean, running_var, weight, bias, eps)
    count = x.size // x.shape[1] if x.shape[1] else 0
    if count < 2:
        raise ArgumentError(f"batch_norm: {x.aval} has {count} values per channel; training needs at least two")
    if running_mean is None and running_var is None:
        return _by_own_channels(x, weight, bias, eps)
    centre = mean(x, axes := _without_channels(x), keepdims=True)
    spread = _spread_over(x, centre, axes)
    out = _by_channel(x, centre, spread, weight, bias, eps)
    if running_mean is not None:
        _move(running_mean, centre, momentum)
    if running_var is not None:
        _move(running_var, spread, momentum, count / (count - 1))
    return out


def _without_channels(x: Tensor) -> tuple[int, ...]:
    return (0, *range(2, x.ndim))


@composed
def _by_own_channels(x: Tensor, weight: Any, bias: Any, eps: Any) -> Tensor:
    """:func:`batch_norm` in training, without running statistics."""
    out = _standardized(x, _without_channels(x), eps)
    return _affine(out, _per_channel("batch_norm", weight, x), _per_channel("batch_norm", bias, x))


@composed
def _spread_over(x: Tensor, centre: Tensor, axes: tuple[int, ...]) -> Tensor:
    """The mean square of the distance from ``centre``."""
    return _mean_square("batch_norm", subtract(x, centre), axes)


@composed
def _by_channel(x: Tensor, centre: Any, spread: Any, weight: Any, bias: Any, eps: Any) -> Tensor:
    """``x`` less ``centre`` by the root of ``spread``, which have one number for each channel; scaled and shifted."""
    shape = (1, -1, *[1] * (x.ndim - 2))
    centred = subtract(x, reshape(_per_channel("batch_norm", reshape(centre, (-1,)), x), shape))
    root = rsqrt(add(reshape(_per_channel("batch_norm", reshape(spread, (-1,)), x), shape), eps))
    return _affine(multiply(centred, root), _per_channel("batch_norm", weight, x), _per_channel("batch_norm", bias, x))


def instance_norm(
    x: Any,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Any = None,
    bias: Any = None,
    use_input_stats: bool = True,
    momentum: Any = 0.1,
    eps: Any = 1e-5,
) -> Tensor:
    """Standardise each channel of each sample of ``x`` [n, channels, ...]; then scale and shift per channel.

    The running statistics move in place by ``momentum`` towards the means over samples. With ``use_input_stats=False``
    they are used in place of those of each sample. D. Ulyanov et al., "Instance normalization", 2016.
    """
    x = asarray(x)
    if not use_input_stats:
        return batch_norm(x, running_mean, running_var, weight, bias, False, momentum, eps)
    axes = tuple(range(2, x.ndim))
    if running_mean is not None:
        _move(running_mean, mean(mean(x, axis=axes), axis=0), momentum)
    if running_var is not None:
        _move(running_var, mean(var(x, axis=axes, correction=1), axis=0), momentum)
    return group_norm(x, x.shape[1] if x.ndim > 1 else 1, weight, bias, eps)


def _move(running: Tensor, measured: Tensor, momentum: Any, factor: float = 1.0) -> None:
    """``running += momentum * (factor * measured - running)``, without history."""
    assign(running, _moved(running, detached(measured), momentum, factor))


@composed
def _moved(running: Tensor, measured: Tensor, momentum: Any, factor: float) -> Tensor:
    new = reshape(measured if factor == 1 else multiply(measured, factor), running.shape)
    return add(multiply(running, 1.0 - momentum), multiply(new, momentum))
