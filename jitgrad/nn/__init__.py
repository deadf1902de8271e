"""Layers with torch's names and argument order, in ops only; imports core, ops, autograd.

A name is public once it is imported here ``as`` itself.
"""

# ruff: noqa: I001
# fmt: off
from types import ModuleType as _ModuleType

from jitgrad.nn.activation import (
    CELU as CELU, ELU as ELU, GELU as GELU, SELU as SELU, Hardsigmoid as Hardsigmoid, Hardswish as Hardswish,
    Hardtanh as Hardtanh, Identity as Identity, LeakyReLU as LeakyReLU, LogSigmoid as LogSigmoid,
    LogSoftmax as LogSoftmax, Mish as Mish, PReLU as PReLU, ReLU as ReLU, ReLU6 as ReLU6, Sigmoid as Sigmoid,
    SiLU as SiLU, Softmax as Softmax, Softplus as Softplus, Softsign as Softsign, Tanh as Tanh,
)
from jitgrad.nn.checkpoint import load as load, save as save
from jitgrad.nn.container import ModuleList as ModuleList, Sequential as Sequential
from jitgrad.nn.layers import (
    AvgPool2d as AvgPool2d, Conv2d as Conv2d, Dropout as Dropout, Embedding as Embedding, Flatten as Flatten,
    Linear as Linear, MaxPool2d as MaxPool2d,
)
from jitgrad.nn.module import Module as Module, Parameter as Parameter
from jitgrad.nn.norm import (
    BatchNorm2d as BatchNorm2d, GroupNorm as GroupNorm, LayerNorm as LayerNorm, RMSNorm as RMSNorm,
)
from jitgrad.nn.recurrent import GRUCell as GRUCell, LSTMCell as LSTMCell

# Assigned this way because type checkers would take an ``__all__`` that they cannot compute for an empty one.
globals()["__all__"] = sorted(
    name for name, value in globals().items() if name[0] != "_" and not isinstance(value, _ModuleType)
)
