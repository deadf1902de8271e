"""Limits on gradients, between backward and the optimiser's step."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, isfinite
from typing import Any

from jitgrad.autograd.modes import no_grad
from jitgrad.core.errors import ArgumentError, shown
from jitgrad.core.tensor import Tensor
from jitgrad.eager.op_sequences import op_sequence
from jitgrad.ops import arithmetic, transcendental
from jitgrad.ops.arithmetic import add, astype, divide, maximum, minimum, multiply, negative, sqrt, square
from jitgrad.ops.creation import zeros
from jitgrad.ops.reduce import max as max_
from jitgrad.ops.reduce import sum as sum_


def _with_grad(parameters: Iterable[Tensor] | Tensor) -> list[tuple[Tensor, Tensor]]:
    if not isinstance(parameters, (Tensor, Iterable)):
        raise ArgumentError(f"clip_grad: expected parameters such as model.parameters(), got {shown(parameters)}")
    listed = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [(p, g) for p in listed if (g := p.grad) is not None]


def clip_grad_norm_(
    parameters: Iterable[Tensor] | Tensor,
    max_norm: Any,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale all gradients by one factor so that their common norm is at most ``max_norm``. Returns
    the norm before.

    Each ``.grad`` is replaced, not changed in place, because another gradient may share its memory.
    ``error_if_nonfinite`` looks at the norm, which a @jit function cannot. ``norm_type`` may be
    infinity. ``foreach`` chooses among torch's implementations and changes nothing.

    R. Pascanu, T. Mikolov, Y. Bengio, "On the difficulty of training recurrent neural
    networks", ICML 2013.
    """
    if norm_type <= 0:
        raise ArgumentError(f"clip_grad_norm_: norm_type must be positive, got {norm_type}")
    with no_grad():
        pairs = _with_grad(parameters)
        if not pairs:
            return zeros(())
        total = _total_norm([g for _, g in pairs if g.size], norm_type)
        if error_if_nonfinite and not isfinite(float(total.item())):
            raise ArgumentError(f"clip_grad_norm_: the norm of the gradients is not finite: {total.item()}")
        for (p, _), scaled in zip(pairs, _scaled([g for _, g in pairs], max_norm, total), strict=True):
            p.grad = scaled
        return total


@op_sequence
def _scaled(grads: list[Tensor], max_norm: Any, total: Tensor) -> tuple[Tensor, ...]:
    """``grads``, whose common norm is ``total``, with at most the norm ``max_norm``, in their dtypes."""
    factor = minimum(divide(max_norm, add(total, 1e-6)), 1.0)  # torch's small number, so that results agree
    scaled = [multiply(g, factor) for g in grads]
    return tuple([x if x.dtype == g.dtype else astype(x, g.dtype) for x, g in zip(scaled, grads, strict=True)])


@op_sequence
def _total_norm(grads: list[Tensor], norm_type: float) -> Tensor:
    if norm_type == inf:
        total = max_(arithmetic.abs(grads[0]))
        for g in grads[1:]:
            total = maximum(total, max_(arithmetic.abs(g)))
        return total
    sizes = [arithmetic.abs(g) if norm_type != 2 or g.dtype.kind == "c" else g for g in grads]
    powers = [sum_(square(x) if norm_type == 2 else transcendental.pow(x, norm_type)) for x in sizes]
    total = powers[0]
    for power in powers[1:]:
        total = add(total, power)
    return sqrt(total) if norm_type == 2 else transcendental.pow(total, 1.0 / norm_type)


def clip_grad_value_(parameters: Iterable[Tensor] | Tensor, clip_value: Any, foreach: bool | None = None) -> None:
    """Cut every element of every gradient to [-clip_value, clip_value]. ``foreach`` changes nothing."""
    with no_grad():
        pairs = _with_grad(parameters)
        for (p, _), cut in zip(pairs, _cut([g for _, g in pairs], clip_value), strict=True):
            p.grad = cut


@op_sequence
def _cut(grads: list[Tensor], clip_value: Any) -> tuple[Tensor, ...]:
    return tuple([minimum(maximum(g, negative(clip_value)), clip_value) for g in grads])
