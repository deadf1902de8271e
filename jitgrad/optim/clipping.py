"""Limits on gradients, between backward and the optimiser's step."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import Any

from jitgrad.autograd.modes import no_grad
from jitgrad.core.errors import ArgumentError
from jitgrad.core.tensor import Tensor
from jitgrad.ops import elementwise as ew
from jitgrad.ops.creation import zeros
from jitgrad.ops.reduce import max as max_
from jitgrad.ops.reduce import sum as sum_


def _with_grad(parameters: Iterable[Tensor] | Tensor) -> list[tuple[Tensor, Tensor]]:
    listed = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [(p, g) for p in listed if (g := p.grad) is not None]


def clip_grad_norm_(parameters: Iterable[Tensor] | Tensor, max_norm: Any, norm_type: float = 2.0) -> Tensor:
    """Scale all gradients by one factor so that their common norm is at most ``max_norm``. Returns
    the norm before.

    Each ``.grad`` is replaced, not changed in place, because another gradient may share its memory.
    ``norm_type`` may be infinity. R. Pascanu, T. Mikolov, Y. Bengio, "On the difficulty of training
    recurrent neural networks", ICML 2013.
    """
    if norm_type <= 0:
        raise ArgumentError(f"clip_grad_norm_: norm_type must be positive, got {norm_type}")
    with no_grad():
        pairs = _with_grad(parameters)
        if not pairs:
            return zeros(())
        total = _total_norm([g for _, g in pairs if g.size], norm_type)
        # torch's small number, so that results agree
        factor = ew.minimum(ew.divide(max_norm, ew.add(total, 1e-6)), 1.0)
        for p, g in pairs:
            scaled = ew.multiply(g, factor)
            p.grad = scaled if scaled.dtype == g.dtype else ew.astype(scaled, g.dtype)
        return total


def _total_norm(grads: list[Tensor], norm_type: float) -> Tensor:
    if norm_type == inf:
        total = max_(ew.abs(grads[0]))
        for g in grads[1:]:
            total = ew.maximum(total, max_(ew.abs(g)))
        return total
    powers = [sum_(ew.square(g) if norm_type == 2 else ew.pow(ew.abs(g), norm_type)) for g in grads]
    total = powers[0]
    for power in powers[1:]:
        total = ew.add(total, power)
    return ew.sqrt(total) if norm_type == 2 else ew.pow(total, 1.0 / norm_type)


def clip_grad_value_(parameters: Iterable[Tensor] | Tensor, clip_value: Any) -> None:
    """Cut every element of every gradient to [-clip_value, clip_value]."""
    with no_grad():
        for p, g in _with_grad(parameters):
            p.grad = ew.minimum(ew.maximum(g, ew.negative(clip_value)), clip_value)
