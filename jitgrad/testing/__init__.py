"""Operands for any op, gradient checks, random programs; imports core, eager, device, ops, autograd."""

from __future__ import annotations

from jitgrad.eager.scalar_eval import evaluate_scalar
from jitgrad.testing.gradients import check_grads
from jitgrad.testing.programs import RandomProgram, random_program
from jitgrad.testing.samples import DOMAINS, sample_operands

__all__ = ["DOMAINS", "RandomProgram", "check_grads", "evaluate_scalar", "random_program", "sample_operands"]
