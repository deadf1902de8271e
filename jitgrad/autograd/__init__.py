"""Automatic differentiation: the tape, reverse mode, transforms; imports core, eager, ops."""

from __future__ import annotations

from jitgrad.autograd import compositions as _compositions  # registers itself  # noqa: F401
from jitgrad.autograd.backward import backward, retain_grad
from jitgrad.autograd.checkpoint import checkpoint
from jitgrad.autograd.chosen import chosen_gradients as grad
from jitgrad.autograd.custom_jvp import custom_jvp
from jitgrad.autograd.custom_vjp import custom_vjp
from jitgrad.autograd.function import Function
from jitgrad.autograd.functional import hvp, jvp, value_and_grad, vjp
from jitgrad.autograd.gradcheck import gradcheck, gradgradcheck
from jitgrad.autograd.leaf_gradients import register_post_accumulate_grad_hook
from jitgrad.autograd.modes import (
    detect_anomaly,
    enable_grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)
from jitgrad.autograd.printing import print_graph
from jitgrad.autograd.tape import Tape
from jitgrad.autograd.variable import Variable
from jitgrad.core.tensor import Tensor

__all__ = [
    "Function",
    "Tape",
    "Variable",
    "backward",
    "checkpoint",
    "custom_jvp",
    "custom_vjp",
    "detect_anomaly",
    "enable_grad",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "hvp",
    "inference_mode",
    "is_grad_enabled",
    "jvp",
    "no_grad",
    "print_graph",
    "retain_grad",
    "set_grad_enabled",
    "value_and_grad",
    "vjp",
]

# Tensor lies below this room, so its methods that start or prepare a backward pass are attached here.
Tensor.backward = backward  # type: ignore[attr-defined]
Tensor.retain_grad = retain_grad  # type: ignore[attr-defined]
Tensor.register_post_accumulate_grad_hook = register_post_accumulate_grad_hook  # type: ignore[attr-defined]
