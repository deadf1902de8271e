"""Optimisers and learning-rate schedules, in ops only; imports core, ops, autograd, nn."""

from jitgrad.nn.clipping import clip_grad_norm_, clip_grad_value_
from jitgrad.optim.descent import SGD, Adagrad, Adam, AdamW, RMSprop
from jitgrad.optim.lbfgs import LBFGS
from jitgrad.optim.optimizer import Optimizer
from jitgrad.optim.schedules import (
    CosineAnnealingLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiStepLR,
    ReduceLROnPlateau,
    Schedule,
    StepLR,
)

__all__ = [
    "LBFGS",
    "SGD",
    "Adagrad",
    "Adam",
    "AdamW",
    "CosineAnnealingLR",
    "ExponentialLR",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "Optimizer",
    "RMSprop",
    "ReduceLROnPlateau",
    "Schedule",
    "StepLR",
    "clip_grad_norm_",
    "clip_grad_value_",
]
