"""Layers with torch's names and argument order, in ops only; imports core, ops, autograd.

A name is public once it is imported here ``as`` itself.
"""

# ruff: noqa: I001
# fmt: off
from types import ModuleType as _ModuleType
from typing import TYPE_CHECKING as _TYPE_CHECKING

from jitgrad.core.missing_names import raising as _raising
from jitgrad.nn import functional as functional, init as init, utils as utils
from jitgrad.nn.activation import (
    CELU as CELU, ELU as ELU, GELU as GELU, GLU as GLU, SELU as SELU, Hardshrink as Hardshrink,
    Hardsigmoid as Hardsigmoid, Hardswish as Hardswish, Hardtanh as Hardtanh, Identity as Identity,
    LeakyReLU as LeakyReLU, LogSigmoid as LogSigmoid, LogSoftmax as LogSoftmax, Mish as Mish, PReLU as PReLU,
    ReLU as ReLU, ReLU6 as ReLU6, SiLU as SiLU, Sigmoid as Sigmoid, Softmax as Softmax, Softmax2d as Softmax2d,
    Softmin as Softmin, Softplus as Softplus, Softshrink as Softshrink, Softsign as Softsign, Tanh as Tanh,
    Tanhshrink as Tanhshrink, Threshold as Threshold,
)
from jitgrad.nn.attention import MultiheadAttention as MultiheadAttention
from jitgrad.nn.checkpoint import load as load, save as save
from jitgrad.nn.container import (
    ModuleDict as ModuleDict, ModuleList as ModuleList, ParameterList as ParameterList, Sequential as Sequential,
)
from jitgrad.nn.convolution import (
    Conv1d as Conv1d, Conv2d as Conv2d, ConvTranspose1d as ConvTranspose1d, ConvTranspose2d as ConvTranspose2d,
)
from jitgrad.nn.layers import (
    CosineSimilarity as CosineSimilarity, Dropout as Dropout, Dropout1d as Dropout1d, Dropout2d as Dropout2d,
    Embedding as Embedding, Flatten as Flatten, Linear as Linear, PairwiseDistance as PairwiseDistance,
    PixelShuffle as PixelShuffle, Unflatten as Unflatten,
)
from jitgrad.nn.losses import (
    BCELoss as BCELoss, BCEWithLogitsLoss as BCEWithLogitsLoss, CosineEmbeddingLoss as CosineEmbeddingLoss,
    CrossEntropyLoss as CrossEntropyLoss, GaussianNLLLoss as GaussianNLLLoss,
    HingeEmbeddingLoss as HingeEmbeddingLoss, HuberLoss as HuberLoss, KLDivLoss as KLDivLoss, L1Loss as L1Loss,
    MSELoss as MSELoss, MarginRankingLoss as MarginRankingLoss,
    MultiLabelSoftMarginLoss as MultiLabelSoftMarginLoss, MultiMarginLoss as MultiMarginLoss, NLLLoss as NLLLoss,
    PoissonNLLLoss as PoissonNLLLoss, SmoothL1Loss as SmoothL1Loss, SoftMarginLoss as SoftMarginLoss,
    TripletMarginLoss as TripletMarginLoss,
)
from jitgrad.nn.module import Module as Module, Parameter as Parameter
from jitgrad.nn.norm import (
    BatchNorm1d as BatchNorm1d, BatchNorm2d as BatchNorm2d, BatchNorm3d as BatchNorm3d, GroupNorm as GroupNorm,
    InstanceNorm1d as InstanceNorm1d, InstanceNorm2d as InstanceNorm2d, LayerNorm as LayerNorm, RMSNorm as RMSNorm,
)
from jitgrad.nn.padding import (
    ConstantPad1d as ConstantPad1d, ConstantPad2d as ConstantPad2d, ReflectionPad1d as ReflectionPad1d,
    ReflectionPad2d as ReflectionPad2d, ReplicationPad1d as ReplicationPad1d,
    ReplicationPad2d as ReplicationPad2d, ZeroPad1d as ZeroPad1d, ZeroPad2d as ZeroPad2d,
)
from jitgrad.nn.pooling import (
    AdaptiveAvgPool1d as AdaptiveAvgPool1d, AdaptiveAvgPool2d as AdaptiveAvgPool2d,
    AdaptiveMaxPool2d as AdaptiveMaxPool2d, AvgPool1d as AvgPool1d, AvgPool2d as AvgPool2d,
    MaxPool1d as MaxPool1d, MaxPool2d as MaxPool2d, Upsample as Upsample,
)
from jitgrad.nn.recurrent import GRUCell as GRUCell, LSTMCell as LSTMCell, RNNCell as RNNCell
from jitgrad.nn.sequences import GRU as GRU, LSTM as LSTM, RNN as RNN
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
    __getattr__ = _raising("jitgrad.nn", globals())
