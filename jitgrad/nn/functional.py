"""torch.nn.functional: the functions of layers and losses, with torch's names, order and defaults of arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any

from jitgrad.core.errors import ArgumentError, shown
from jitgrad.core.missing_names import Lookup as _Lookup
from jitgrad.core.missing_names import raising as _raising
from jitgrad.core.tensor import Tensor
from jitgrad.eager.compositions import composed
from jitgrad.nn.in_place import (
    alpha_dropout_,
    celu_,
    dropout_,
    elu_,
    feature_alpha_dropout_,
    hardtanh_,
    leaky_relu_,
    relu_,
    rrelu_,
    selu_,
    threshold_,
)
from jitgrad.nn.multihead import multi_head_attention_forward
from jitgrad.nn.noise import alpha_dropout, dropout, dropout1d, dropout2d, dropout3d, feature_alpha_dropout, rrelu
from jitgrad.nn.old_reduction import with_old_reduction
from jitgrad.ops import activations, losses, margin_losses, neural
from jitgrad.ops.activations import gelu, logsigmoid, prelu, softplus, softsign
from jitgrad.ops.attention import scaled_dot_product_attention
from jitgrad.ops.bags import embedding_bag
from jitgrad.ops.convolution import conv1d, conv2d, conv_transpose1d, conv_transpose2d
from jitgrad.ops.creation import asarray
from jitgrad.ops.ctc import ctc_loss
from jitgrad.ops.distances import cosine_similarity, normalize, pairwise_distance, pdist
from jitgrad.ops.gates import glu, gumbel_softmax, hardshrink, softmin, softshrink, tanhshrink, threshold
from jitgrad.ops.joining import cropped
from jitgrad.ops.joining import pad as pad_axes
from jitgrad.ops.linalg import bilinear, linear
from jitgrad.ops.margin_losses import triplet_margin_with_distance_loss
from jitgrad.ops.neural import batch_norm, embedding, group_norm, layer_norm, one_hot, rms_norm
from jitgrad.ops.pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    avg_pool1d,
    avg_pool2d,
    max_pool1d,
    max_pool2d,
)
from jitgrad.ops.reduce import log_softmax as log_softmax_along
from jitgrad.ops.reduce import softmax as softmax_along
from jitgrad.ops.resampling import (
    affine_grid,
    grid_sample,
    interpolate,
    upsample,
    upsample_bilinear,
    upsample_nearest,
)
from jitgrad.ops.transcendental import sigmoid
from jitgrad.ops.trigonometric import tanh
from jitgrad.ops.volumes import (
    adaptive_avg_pool3d,
    adaptive_max_pool3d,
    avg_pool3d,
    conv3d,
    conv_transpose3d,
    max_pool3d,
    max_unpool3d,
)
from jitgrad.ops.windows import (
    channel_shuffle,
    fold,
    local_response_norm,
    lp_pool1d,
    lp_pool2d,
    max_unpool1d,
    max_unpool2d,
    pixel_shuffle,
    pixel_unshuffle,
    unfold,
)

# fmt: off
__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool2d", "adaptive_max_pool3d", "affine_grid", "alpha_dropout", "alpha_dropout_", "avg_pool1d",
    "avg_pool2d", "avg_pool3d", "batch_norm", "bilinear", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "celu", "celu_", "channel_shuffle", "conv1d", "conv2d", "conv3d",
    "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cosine_embedding_loss", "cosine_similarity",
    "cross_entropy", "ctc_loss", "dropout", "dropout1d", "dropout2d", "dropout3d", "dropout_", "elu", "elu_",
    "embedding", "embedding_bag", "feature_alpha_dropout", "feature_alpha_dropout_", "fold", "gaussian_nll_loss",
    "gelu", "glu", "grid_sample", "group_norm", "gumbel_softmax", "hardshrink", "hardsigmoid", "hardswish",
    "hardtanh", "hardtanh_", "hinge_embedding_loss", "huber_loss", "instance_norm", "interpolate", "kl_div",
    "l1_loss", "layer_norm", "leaky_relu", "leaky_relu_", "linear", "local_response_norm", "log_softmax",
    "logsigmoid", "lp_pool1d", "lp_pool2d", "margin_ranking_loss", "max_pool1d", "max_pool2d", "max_pool3d",
    "max_unpool1d", "max_unpool2d", "max_unpool3d", "mish", "mse_loss", "multi_head_attention_forward",
    "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss", "nll_loss", "normalize",
    "one_hot", "pad", "pairwise_distance", "pdist", "pixel_shuffle", "pixel_unshuffle", "poisson_nll_loss", "prelu",
    "relu", "relu6", "relu_", "rms_norm", "rrelu", "rrelu_", "scaled_dot_product_attention", "selu", "selu_",
    "sigmoid", "silu", "smooth_l1_loss", "soft_margin_loss", "softmax", "softmin", "softplus", "softshrink",
    "softsign", "tanh", "tanhshrink", "threshold", "threshold_", "triplet_margin_loss",
    "triplet_margin_with_distance_loss", "unfold", "upsample", "upsample_bilinear", "upsample_nearest",
]
# fmt: on

# --- activations -------------------------------------------------------------------------------------------------


def _activation(function: Callable[..., Tensor], x: Any, inplace: bool, *parameters: Any) -> Tensor:
    if inplace:
        changed: Tensor = getattr(x, f"{function.__name__}_")(*parameters)
        return changed
    return function(x, *parameters)


def relu(input: Any, inplace: bool = False) -> Tensor:
    """``max(input, 0)``."""
    return _activation(activations.relu, input, inplace)


def relu6(input: Any, inplace: bool = False) -> Tensor:
    """``min(max(input, 0), 6)``."""
    return _activation(activations.relu6, input, inplace)


def leaky_relu(input: Any, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """``input`` where positive, else ``negative_slope * input``."""
    return _activation(activations.leaky_relu, input, inplace, negative_slope)


def elu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """``input`` where positive, else ``alpha * (exp(input) - 1)``."""
    return _activation(activations.elu, input, inplace, alpha)


def celu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """``max(0, input) + min(0, alpha * (exp(input / alpha) - 1))``."""
    return _activation(activations.celu, input, inplace, alpha)


def selu(input: Any, inplace: bool = False) -> Tensor:
    """The self-normalising ELU."""
    return _activation(activations.selu, input, inplace)


def silu(input: Any, inplace: bool = False) -> Tensor:
    """``input * sigmoid(input)``."""
    return _activation(activations.silu, input, inplace)


def mish(input: Any, inplace: bool = False) -> Tensor:
    """``input * tanh(softplus(input))``."""
    return _activation(activations.mish, input, inplace)


def hardtanh(input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """``input`` cut to [min_val, max_val]."""
    return _activation(activations.hardtanh, input, inplace, min_val, max_val)


def hardsigmoid(input: Any, inplace: bool = False) -> Tensor:
    """``relu6(input + 3) / 6``."""
    return _activation(activations.hardsigmoid, input, inplace)


def hardswish(input: Any, inplace: bool = False) -> Tensor:
    """``input * relu6(input + 3) / 6``."""
    return _activation(activations.hardswish, input, inplace)


def _axis_of(what: str, dim: int | None) -> int:
    if dim is None:
        raise ArgumentError(f"{what}: pass dim=, the axis to normalise (torch's default depends on the number of axes)")
    return dim


def softmax(input: Any, dim: int | None = None, *, dtype: Any = None) -> Tensor:
    """``exp(input) / sum(exp(input))`` over the axis ``dim``, computed in ``dtype`` if one is given."""
    x = input if type(input) is Tensor else asarray(input)
    return softmax_along(x if dtype is None else x.to(dtype), _axis_of("softmax", dim))


def log_softmax(input: Any, dim: int | None = None, *, dtype: Any = None) -> Tensor:
    """``log(softmax(input))`` over the axis ``dim``, computed in ``dtype`` if one is given."""
    x = input if type(input) is Tensor else asarray(input)
    return log_softmax_along(x if dtype is None else x.to(dtype), _axis_of("log_softmax", dim))


# --- shapes ------------------------------------------------------------------------------------------------------


_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def pad(input: Any, pad: Any, mode: str = "constant", value: float | None = None) -> Tensor:
    """``input`` with ``pad`` elements added: (before, after) for the last axis, then for the one before it, and so on.

    ``mode`` is "constant" (``value``), "reflect", "replicate" or "circular"; negative numbers cut elements off.
    """
    return _padded(asarray(input), tuple([int(n) for n in pad]), mode, value)


@composed
def _padded(x: Tensor, pad: tuple[int, ...], mode: str, value: float | None) -> Tensor:
    called = f"pad: {shown(pad)} with mode {shown(mode)}"
    if mode not in _MODES:
        raise ArgumentError(f"{called} does not fit a tensor {x.aval}")
    part, grown = cropped(called, x, pad)
    if mode == "constant":
        return pad_axes(part, grown, constant_values=value or 0)
    return pad_axes(part, grown, _MODES[mode])


def instance_norm(
    input: Any,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Each channel of each sample of [n, channels, ...] standardised; then scaled and shifted per channel.

    The running statistics, if they are given, move in place by ``momentum``; with ``use_input_stats=False`` they are
    used in place of those of each sample.
    """
    return neural.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


# --- losses ------------------------------------------------------------------------------------------------------


@with_old_reduction
def mse_loss(input: Any, target: Any, *, reduction: str = "mean") -> Tensor:
    """The squared distance per element."""
    return losses.mse_loss(input, target, reduction)


@with_old_reduction
def l1_loss(input: Any, target: Any, *, reduction: str = "mean") -> Tensor:
    """The distance per element."""
    return losses.l1_loss(input, target, reduction)


@with_old_reduction
def smooth_l1_loss(input: Any, target: Any, *, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """Quadratic below ``beta``, linear above."""
    return losses.smooth_l1_loss(input, target, reduction, beta)


@with_old_reduction
def huber_loss(input: Any, target: Any, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    """Quadratic below ``delta``, linear above, with slope ``delta``."""
    return losses.huber_loss(input, target, reduction, delta)


@with_old_reduction
def cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The cross entropy of ``softmax(input)`` over axis 1 with labels, or with probabilities."""
    return losses.cross_entropy(input, target, label_smoothing, ignore_index, reduction, weight=weight)


@with_old_reduction
def nll_loss(
    input: Any, target: Any, weight: Any = None, *, ignore_index: int = -100, reduction: str = "mean"
) -> Tensor:
    """Minus the log-probability, over axis 1, of each label."""
    return losses.nll_loss(input, target, weight, ignore_index, reduction)


@with_old_reduction
def binary_cross_entropy(input: Any, target: Any, weight: Any = None, *, reduction: str = "mean") -> Tensor:
    """Binary cross entropy of probabilities."""
    return losses.binary_cross_entropy(input, target, weight, reduction)


@with_old_reduction
def binary_cross_entropy_with_logits(
    input: Any, target: Any, weight: Any = None, *, reduction: str = "mean", pos_weight: Any = None
) -> Tensor:
    """Binary cross entropy of ``sigmoid(input)``."""
    return losses.binary_cross_entropy_with_logits(input, target, weight, reduction, pos_weight)


@with_old_reduction
def kl_div(input: Any, target: Any, *, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """The Kullback-Leibler divergence per element, for log-probabilities ``input``."""
    return losses.kl_div(input, target, reduction, log_target)


cosine_embedding_loss: Callable[..., Tensor] = with_old_reduction(losses.cosine_embedding_loss)
gaussian_nll_loss: Callable[..., Tensor] = with_old_reduction(margin_losses.gaussian_nll_loss)
hinge_embedding_loss: Callable[..., Tensor] = with_old_reduction(margin_losses.hinge_embedding_loss)
margin_ranking_loss: Callable[..., Tensor] = with_old_reduction(margin_losses.margin_ranking_loss)
multi_margin_loss: Callable[..., Tensor] = with_old_reduction(margin_losses.multi_margin_loss)
multilabel_margin_loss: Callable[..., Tensor] = with_old_reduction(margin_losses.multilabel_margin_loss)
multilabel_soft_margin_loss: Callable[..., Tensor] = with_old_reduction(margin_losses.multilabel_soft_margin_loss)
poisson_nll_loss: Callable[..., Tensor] = with_old_reduction(margin_losses.poisson_nll_loss)
soft_margin_loss: Callable[..., Tensor] = with_old_reduction(margin_losses.soft_margin_loss)
triplet_margin_loss: Callable[..., Tensor] = with_old_reduction(losses.triplet_margin_loss)

if not _TYPE_CHECKING:
    __getattr__: _Lookup = _raising("jitgrad.nn.functional", globals())
