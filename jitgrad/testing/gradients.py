"""check_grads: gradients of any order against finite differences, along random directions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitgrad.autograd.backward import gradients
from jitgrad.core.aval import Array, Aval, aval_of_array
from jitgrad.core.errors import ArgumentError, GradcheckError
from jitgrad.core.tensor import Tensor

_Function = Callable[..., Any]

# of a five-point stencil: its error h**4 and the rounding error eps / h are both near 1e-12
STEP = 1e-3


def check_grads(
    f: _Function,
    xs: Sequence[Any],
    order: int = 2,
    *,
    rtol: float = 1e-6,
    atol: float = 1e-8,
    step: float = STEP,
    seed: int = 0,
) -> None:
    """Compare the gradients of ``f`` up to ``order`` with finite differences.

    For a random cotangent ``u`` and, one operand after the other, a random direction ``v``,
    ``<vjp(u), v>`` is compared with ``<u, df/dv>``, the derivative along ``v`` by a five-point
    stencil (Fornberg 1988).

    Args:
        f: takes Tensors, returns a Tensor or a tuple of them; operands that are not floating are
            passed unchanged.
        xs: arrays or Tensors; the floating ones must be float64, complex ones complex128.
        step: of the finite differences; small for functions with many kinks, with a larger ``rtol``.

    Raises:
        ArgumentError: a floating operand is not float64, a complex one not complex128, or none is either.
        GradcheckError: they disagree; the message has the order, the operand and both numbers.
    """
    arrays = [np.array(x.concrete("check_grads") if isinstance(x, Tensor) else x) for x in xs]
    floating = [k for k, x in enumerate(arrays) if x.dtype.kind in "fc"]
    if not floating or any(arrays[k].dtype not in (np.float64, np.complex128) for k in floating):
        raise ArgumentError(f"check_grads needs float64 or complex128 operands, got {[str(x.dtype) for x in arrays]}")
    rng = np.random.default_rng(seed)
    for level in range(1, order + 1):
        outputs = _as_tuple(f(*_tensors(arrays, ())))
        cotangents = [_drawn(rng.normal, (0.0, 1.0), out.aval) for out in outputs]
        for k in floating:
            way = _Direction(k, step, _drawn(rng.uniform, (-1.0, 1.0), aval_of_array(arrays[k])))
            _check_direction(f, arrays, way, cotangents, _Limits(rtol, atol, level))
        if level < order:
            f, arrays, floating = _gradient_function(f, arrays, floating, cotangents)


def _drawn(draw: Callable[..., Array], parameters: tuple[float, float], like: Aval) -> Array:
    """Numbers from ``draw`` in the shape of ``like``; both parts, if that is complex."""
    real = np.asarray(draw(*parameters, like.shape))
    return np.asarray(real + 1j * draw(*parameters, like.shape)) if like.dtype.kind == "c" else real


def _inner(a: Array, b: Array) -> float:
    """The inner product of two arrays, complex numbers as pairs."""
    return float(np.sum(np.conj(a) * b).real)


def _as_tuple(x: Any) -> tuple[Tensor, ...]:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def _tensors(arrays: Sequence[Array], differentiable: Sequence[int]) -> list[Tensor]:
    return [Tensor(np.array(x)).requires_grad_(k in differentiable) for k, x in enumerate(arrays)]


@dataclass(frozen=True, slots=True)
class _Direction:
    """The operand to change, in steps of ``step`` times ``along``."""

    operand: int
    step: float
    along: Array


@dataclass(frozen=True, slots=True)
class _Limits:
    """The tolerances of a comparison, and the order of the derivatives."""

    rtol: float
    atol: float
    order: int


def _check_direction(
    f: _Function, arrays: list[Array], way: _Direction, cotangents: list[Array], limits: _Limits
) -> None:
    """Compare both derivatives of ``<cotangents, f>`` along ``way``."""
    k, h = way.operand, way.step
    inputs = _tensors(arrays, [k])
    seeds = [Tensor(u) for u in cotangents]
    g = gradients(_as_tuple(f(*inputs)), seeds, [inputs[k]])[0]
    analytic = 0.0 if g is None else _inner(g.concrete("check_grads"), way.along)

    def along(t: float) -> float:
        moved = [*arrays[:k], arrays[k] + t * way.along, *arrays[k + 1 :]]
        outputs = _as_tuple(f(*_tensors(moved, [])))
        return float(sum(_inner(u, out.concrete("check_grads")) for u, out in zip(cotangents, outputs, strict=True)))

    near, far = along(h) - along(-h), along(2 * h) - along(-2 * h)
    numeric = (8 * near - far) / (12 * h)
    scale = max(abs(along(0.0)), abs(numeric), 1.0)
    if not abs(analytic - numeric) <= limits.atol + limits.rtol * scale:
        raise GradcheckError(
            f"gradient of order {limits.order} with respect to operand {k} {inputs[k].aval}: "
            f"backward says {analytic:.12g}, finite differences {numeric:.12g}"
        )


def _gradient_function(
    f: _Function, arrays: list[Array], floating: list[int], cotangents: list[Array]
) -> tuple[_Function, list[Array], list[int]]:
    """The gradient of ``f`` as a function of operands and cotangents, with its operands."""
    count = len(arrays)

    def gradient(*xs: Tensor) -> tuple[Tensor, ...]:
        inputs = list(xs[:count])
        for k in floating:
            if not inputs[k].requires_grad:
                inputs[k] = Tensor(inputs[k].concrete("check_grads")).requires_grad_()
        wanted = [inputs[k] for k in floating]
        grads = gradients(_as_tuple(f(*inputs)), xs[count:], wanted, create_graph=True)
        return tuple(Tensor(np.zeros(x.shape, x.dtype)) if g is None else g for g, x in zip(grads, wanted, strict=True))

    extended = [*arrays, *cotangents]
    return gradient, extended, [*floating, *range(count, len(extended))]
