"""Layers with torch's names and argument order, in ops only; imports core, eager, ops, autograd.

A name is public once it is imported here ``as`` itself.
"""

# ruff: noqa: I001
# fmt: off
from types import ModuleType as _ModuleType
from typing import TYPE_CHECKING as _TYPE_CHECKING

from jitgrad.core.missing_names import Lookup as _Lookup
from jitgrad.core.missing_names import raising as _raising
from jitgrad.nn import functional as functional, init as init, utils as utils
from jitgrad.nn.activation import (
    CELU as CELU, ELU as ELU, GELU as GELU, GLU as GLU, SELU as SELU, Hardshrink as Hardshrink,
    Hardsigmoid as Hardsigmoid, Hardswish as Hardswish, Hardtanh as Hardtanh, Identity as Identity,
    LeakyReLU as LeakyReLU, LogSigmoid as LogSigmoid, LogSoftmax as LogSoftmax, Mish as Mish, PReLU as PReLU,
    ReLU as ReLU, ReLU6 as ReLU6, RReLU as RReLU, SiLU as SiLU, Sigmoid as Sigmoid, Softmax as Softmax,
    Softmax2d as Softmax2d, Softmin as Softmin, Softplus as Softplus, Softshrink as Softshrink, Softsign as Softsign,
    Tanh as Tanh, Tanhshrink as Tanhshrink, Threshold as Threshold,
)
from jitgrad.nn.attention import MultiheadAttention as MultiheadAttention
from jitgrad.nn.checkpoint import load as load, save as save
from jitgrad.nn.container import (
    ModuleDict as ModuleDict, ModuleList as ModuleList, ParameterDict as ParameterDict,
    ParameterList as ParameterList, Sequential as Sequential,
)
from jitgrad.nn.convolution import (
    Conv1d as Conv1d, Conv2d as Conv2d, Conv3d as Conv3d, ConvTranspose1d as ConvTranspose1d,
    ConvTranspose2d as ConvTranspose2d, ConvTranspose3d as ConvTranspose3d,
)
from jitgrad.nn.layers import (
    AlphaDropout as AlphaDropout, Bilinear as Bilinear, CosineSimilarity as CosineSimilarity, Dropout as Dropout,
    Dropout1d as Dropout1d, Dropout2d as Dropout2d, Dropout3d as Dropout3d, Embedding as Embedding,
    EmbeddingBag as EmbeddingBag, FeatureAlphaDropout as FeatureAlphaDropout, Linear as Linear,
    PairwiseDistance as PairwiseDistance,
)
from jitgrad.nn.lazy import (
    LazyBatchNorm1d as LazyBatchNorm1d, LazyBatchNorm2d as LazyBatchNorm2d, LazyBatchNorm3d as LazyBatchNorm3d, LazyConv1d
    as LazyConv1d, LazyConv2d as LazyConv2d, LazyConv3d as LazyConv3d, LazyConvTranspose1d as LazyConvTranspose1d,
    LazyConvTranspose2d as LazyConvTranspose2d, LazyConvTranspose3d as LazyConvTranspose3d, LazyLinear as LazyLinear,
)
from jitgrad.nn.losses import (
    BCELoss as BCELoss, BCEWithLogitsLoss as BCEWithLogitsLoss, CTCLoss as CTCLoss,
    CosineEmbeddingLoss as CosineEmbeddingLoss, CrossEntropyLoss as CrossEntropyLoss,
    GaussianNLLLoss as GaussianNLLLoss, HingeEmbeddingLoss as HingeEmbeddingLoss, HuberLoss as HuberLoss,
    KLDivLoss as KLDivLoss, L1Loss as L1Loss, MSELoss as MSELoss, MarginRankingLoss as MarginRankingLoss,
    MultiLabelMarginLoss as MultiLabelMarginLoss, MultiLabelSoftMarginLoss as MultiLabelSoftMarginLoss,
    MultiMarginLoss as MultiMarginLoss, NLLLoss as NLLLoss, PoissonNLLLoss as PoissonNLLLoss,
    SmoothL1Loss as SmoothL1Loss, SoftMarginLoss as SoftMarginLoss, TripletMarginLoss as TripletMarginLoss,
    TripletMarginWithDistanceLoss as TripletMarginWithDistanceLoss,
)
from jitgrad.nn.module import Module as Module, Parameter as Parameter
from jitgrad.nn.norm import (
    BatchNorm1d as BatchNorm1d, BatchNorm2d as BatchNorm2d, BatchNorm3d as BatchNorm3d, GroupNorm as GroupNorm,
    InstanceNorm1d as InstanceNorm1d, InstanceNorm2d as InstanceNorm2d, InstanceNorm3d as InstanceNorm3d,
    LayerNorm as LayerNorm, RMSNorm as RMSNorm,
)
from jitgrad.nn.padding import (
    CircularPad1d as CircularPad1d, CircularPad2d as CircularPad2d, CircularPad3d as CircularPad3d,
    ConstantPad1d as ConstantPad1d, ConstantPad2d as ConstantPad2d, ConstantPad3d as ConstantPad3d,
    ReflectionPad1d as ReflectionPad1d, ReflectionPad2d as ReflectionPad2d, ReflectionPad3d as ReflectionPad3d,
    ReplicationPad1d as ReplicationPad1d, ReplicationPad2d as ReplicationPad2d, ReplicationPad3d as ReplicationPad3d,
    ZeroPad1d as ZeroPad1d, ZeroPad2d as ZeroPad2d, ZeroPad3d as ZeroPad3d,
)
from jitgrad.nn.parallel import DataParallel as DataParallel
from jitgrad.nn.pooling import (
    AdaptiveAvgPool1d as AdaptiveAvgPool1d, AdaptiveAvgPool2d as AdaptiveAvgPool2d,
    AdaptiveAvgPool3d as AdaptiveAvgPool3d, AdaptiveMaxPool1d as AdaptiveMaxPool1d,
    AdaptiveMaxPool2d as AdaptiveMaxPool2d, AdaptiveMaxPool3d as AdaptiveMaxPool3d, AvgPool1d as AvgPool1d,
    AvgPool2d as AvgPool2d, AvgPool3d as AvgPool3d, LPPool1d as LPPool1d, LPPool2d as LPPool2d,
    MaxPool1d as MaxPool1d, MaxPool2d as MaxPool2d, MaxPool3d as MaxPool3d, MaxUnpool1d as MaxUnpool1d,
    MaxUnpool2d as MaxUnpool2d, MaxUnpool3d as MaxUnpool3d, Upsample as Upsample,
    UpsamplingBilinear2d as UpsamplingBilinear2d, UpsamplingNearest2d as UpsamplingNearest2d,
)
from jitgrad.nn.recurrent import GRUCell as GRUCell, LSTMCell as LSTMCell, RNNCell as RNNCell
from jitgrad.nn.sequences import GRU as GRU, LSTM as LSTM, RNN as RNN
from jitgrad.nn.shapes import (
    ChannelShuffle as ChannelShuffle, Flatten as Flatten, Fold as Fold, LocalResponseNorm as LocalResponseNorm,
    PixelShuffle as PixelShuffle, PixelUnshuffle as PixelUnshuffle, Unflatten as Unflatten, Unfold as Unfold,
)
from jitgrad.nn.transformer import (
    Transformer as Transformer, TransformerDecoder as TransformerDecoder,
    TransformerDecoderLayer as TransformerDecoderLayer, TransformerEncoder as TransformerEncoder,
    TransformerEncoderLayer as TransformerEncoderLayer,
)

# Assigned this way because type checkers would take an ``__all__`` that they cannot compute for an empty one.
globals()["__all__"] = sorted(
    name for name, value in globals().items() if name[0] != "_" and not isinstance(value, _ModuleType)
)

if not _TYPE_CHECKING:
    __getattr__: _Lookup = _raising("jitgrad.nn", globals())
