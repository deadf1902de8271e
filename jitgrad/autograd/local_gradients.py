"""The gradients of one node's operands, from those of its results: calls its vjp, and undoes broadcasting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitgrad.autograd.masks import (
    Cotangent,
    MaskedGradient,
    carried,
    carried_by_program,
    masked,
    reduced_mask,
    settle,
    stays_applied,
    unmasked,
)
from jitgrad.core.aval import Aval
from jitgrad.core.context import creating_on, current_interpreter
from jitgrad.core.device_array import DeviceArray
from jitgrad.core.errors import AnomalyError, AutogradError, ShapeError
from jitgrad.core.op import Kind, missing_vjp
from jitgrad.core.tape_node import Edge, Node
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import projected
from jitgrad.ops.comparison import Selected
from jitgrad.ops.creation import zeros
from jitgrad.ops.movement import sum_to


def vjp_of(
    node: Node, edges: Sequence[Edge], arrived: dict[int, Cotangent], operands: list[Any], out: Any
) -> Sequence[Any]:
    """The gradients of ``node``'s operands with an edge, before broadcasting is undone."""
    for g in arrived.values():
        data = getattr(g.raw if isinstance(g, MaskedGradient) else g, "_data", None)
        if type(data) is DeviceArray:
            with creating_on(data.device):
                return _vjp_of(node, edges, arrived, operands, out)
    return _vjp_of(node, edges, arrived, operands, out)


def _vjp_of(
    node: Node, edges: Sequence[Edge], arrived: dict[int, Cotangent], operands: list[Any], out: Any
) -> Sequence[Any]:
    op = node.op
    assert op.vjp is not None
    if op.vjp is missing_vjp:
        raise AutogradError(
            f"a gradient reaches custom_op {op.name!r} at {node.origin.full()}, which has no vjp. Give it one, "
            "custom_op(..., vjp=f); declare that its operands get no gradient, custom_op(..., vjp=jg.no_gradient); "
            "or call it on x.detach()"
        )
    g: Any
    if op.multiple:
        given = tuple(
            settle(arrived[k]) if k in arrived else None if op.partial_vjp else zeros(a.shape, dtype=a.dtype)
            for k, a in enumerate(node.out_avals)
        )
        grads = call_vjp(node, edges, given, operands, out)
        masks = carried_by_program(op, list(arrived.values()), operands, node.attrs)
        return [masked(gx, mask) for gx, mask in zip(grads, masks, strict=True)]
    g = arrived[0]
    if type(g) is not MaskedGradient:
        return [masked(gx, None) if type(gx) is Selected else gx for gx in call_vjp(node, edges, g, operands, out)]
    raw = unmasked(op, g)
    grads = call_vjp(node, edges, raw, operands, out)
    masks = carried(op, g.mask, operands, node.out_avals[0].shape, node.attrs)
    return [masked(gx, mask, stays_applied(op, g, raw, gx, operands)) for gx, mask in zip(grads, masks, strict=True)]


def call_vjp(node: Node, edges: Sequence[Edge], g: Any, operands: list[Any], out: Any) -> Sequence[Any]:
    """What the vjp functions of ``node`` return for the gradient ``g`` of its result(s)."""
    op = node.op
    if isinstance(op.vjp, tuple):
        return [
            None if f is None or edge is None else f(g, out, *operands, **node.attrs)
            for f, edge in zip(op.vjp, edges, strict=True)
        ]
    assert op.vjp is not None
    result = op.vjp(g, out, *operands, **node.attrs)
    grads = tuple(result) if isinstance(result, (tuple, list)) else (result,)
    if len(grads) != len(operands):
        raise AutogradError(
            f"the vjp of {op} at {node.origin.full()} returned {len(grads)} gradients for {len(operands)} operands"
        )
    return grads


def fit(node: Node, g: Any, x: Any) -> Cotangent:
    """``g`` in the shape and dtype of the operand ``x``; only this function undoes broadcasting."""
    if type(g) is Tensor and g.aval is (x if type(x) is Aval else x.aval):
        return g
    if type(g) is not MaskedGradient:
        return fit_tensor(node, g, x)
    out = node.out_avals[0].shape if node.op.kind is Kind.ELEMENTWISE else x.shape
    if x.shape == out:
        raw = g.raw if g.raw.dtype == x.dtype else projected(g.raw, x.dtype)
        return g if raw is g.raw else MaskedGradient(raw, g.mask, g.applied)
    mask, fitted = reduced_mask(g.mask, out, x.shape), fit_tensor(node, g.settle(), x)
    return fitted if mask is None else MaskedGradient(fitted, mask, applied=True)


def fit_tensor(node: Node, g: Any, x: Any) -> Tensor:
    """`fit` of a gradient without a mask."""
    shape, dtype = x.shape, x.dtype
    if not isinstance(g, Tensor):
        g = current_interpreter.get().constant(np.asarray(g, dtype))
    if g.shape != shape:
        try:
            g = sum_to(g, shape)
        except ShapeError:
            raise ShapeError(
                f"the vjp of {node.op} at {node.origin.full()} returned a gradient {g.aval} for an operand of "
                f"shape {shape}"
            ) from None
    return g if g.dtype == dtype else projected(g, dtype)


def check_finite(node: Node, g: Tensor) -> None:
    """Raise AnomalyError if ``g`` contains NaN or Inf."""
    data = g.concrete("detect_anomaly")
    if not np.isfinite(data).all():
        nan = np.isnan(data)
        kind, bad = ("NaN", nan) if nan.any() else ("Inf", np.isinf(data))
        element = [int(k) for k in np.unravel_index(int(np.argmax(bad)), data.shape)]
        stack = f", made at:\n{node.stack}" if node.stack else ""
        raise AnomalyError(
            f"the gradient that {node.op} at {node.origin.full()} returned has {kind} in it, at element {element}{stack}"
        )
