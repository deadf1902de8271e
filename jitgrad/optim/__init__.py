"""Optimisers and learning-rate schedules, in ops only; imports core, eager, ops, autograd, nn."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from jitgrad.core.missing_names import Lookup as _Lookup
from jitgrad.core.missing_names import raising as _raising
from jitgrad.nn.clipping import clip_grad_norm_, clip_grad_value_
from jitgrad.optim import lr_scheduler, swa_utils
from jitgrad.optim.descent import ASGD, SGD, Adadelta, Adagrad, RMSprop, Rprop
from jitgrad.optim.lbfgs import LBFGS
from jitgrad.optim.lr_scheduler import (
    CosineAnnealingLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiStepLR,
    ReduceLROnPlateau,
    Schedule,
    StepLR,
)
from jitgrad.optim.matrices import Adafactor, Muon
from jitgrad.optim.moments import Adam, Adamax, AdamW, NAdam, RAdam
from jitgrad.optim.optimizer import Optimizer

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "CosineAnnealingLR",
    "ExponentialLR",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "ReduceLROnPlateau",
    "Rprop",
    "Schedule",
    "StepLR",
    "clip_grad_norm_",
    "clip_grad_value_",
    "lr_scheduler",
    "swa_utils",
]

if not _TYPE_CHECKING:
    __getattr__: _Lookup = _raising("jitgrad.optim", globals())
