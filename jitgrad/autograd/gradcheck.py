"""gradcheck: analytic gradients against central differences in float64."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import optree

from jitgrad.autograd.functional import vjp
from jitgrad.autograd.modes import no_grad
from jitgrad.core.aval import is_differentiable
from jitgrad.core.errors import AutogradError, GradcheckError
from jitgrad.core.tensor import Tensor
from jitgrad.ops.creation import detached

# The weights of the sum of all results are the same in every run.
_SEED = 20240229

# Results may be off by so many roundings, which the differences divide by the step.
_ROUNDINGS = 64 * float(np.finfo(np.float64).eps)


def gradcheck(f: Callable[..., Any], inputs: Any, *, eps: float = 1e-6, atol: float = 1e-8, rtol: float = 1e-5) -> bool:
    """Compare the gradient of ``f(*inputs)`` with central differences ``(f(x + eps) - f(x - eps)) /
    (2 eps)``.

    ``inputs`` is a Tensor or array, or a tuple of them; floats are converted to float64, others are
    passed unchanged. Results (any pytree of Tensors) are weighted with fixed random numbers and
    summed, so one reverse pass checks all of them. A gradient that is wrong by a relative 1e-4 is
    found unless it is tiny beside the values that it is the gradient of.

    Returns:
        True.

    Raises:
        GradcheckError: at an element where ``|analytic - numeric| > atol + rtol * |numeric| + noise``;
            ``noise`` is what 64 roundings of the results that change can add to the difference.
        AutogradError: no input or no result is floating.
    """
    arrays = [_array(x) for x in (inputs if isinstance(inputs, (tuple, list)) else (inputs,))]
    free = [k for k, x in enumerate(arrays) if is_differentiable(x.dtype)]
    if not free:
        raise AutogradError("gradcheck: none of the inputs is a float tensor")
    analytic, value = _weighted_sum(f, arrays, free)
    for k, g in zip(free, analytic, strict=True):
        for index, numeric, noise in _differences(arrays[k], value, eps):
            if not _close(float(g[index]), numeric, atol + noise, rtol):
                raise GradcheckError(
                    f"gradcheck: input {k}, element {index}: the analytic gradient is {float(g[index]):.10g}, "
                    f"central differences give {numeric:.10g} (eps {eps:g}, atol {atol:g}, rtol {rtol:g}, noise {noise:.1g})"
                )
    return True


def _weighted_sum(
    f: Callable[..., Any], arrays: list[np.ndarray[Any, Any]], free: list[int]
) -> tuple[list[np.ndarray[Any, Any]], Callable[[], np.ndarray[Any, Any]]]:
    """(gradients of the weighted sum of all results in ``arrays[k]``, k in ``free``; the terms of that sum for
    ``arrays`` as is)."""

    def of_free(*xs: Tensor) -> list[Tensor]:
        full: list[Any] = [Tensor(x.copy()) for x in arrays]
        for k, x in zip(free, xs, strict=True):
            full[k] = x
        return _float_results(f(*full))

    outs, pull = vjp(of_free, *(Tensor(arrays[k].copy()) for k in free))
    if not outs:
        raise AutogradError("gradcheck: the function returned no float Tensor")
    generator = np.random.default_rng(_SEED)
    weights = [generator.uniform(0.5, 1.5, out.shape) for out in outs]
    seeds = [Tensor(w.astype(out.dtype)) for w, out in zip(weights, outs, strict=True)]

    def value() -> np.ndarray[Any, Any]:
        with no_grad():
            results = of_free(*(Tensor(arrays[k].copy()) for k in free))
        return np.concatenate([np.ravel(w * r.numpy().astype(np.float64)) for w, r in zip(weights, results, strict=True)])

    return [detached(g).numpy() for g in pull(seeds)], value


def _array(x: Any) -> np.ndarray[Any, Any]:
    array = np.array(detached(x).numpy() if isinstance(x, Tensor) else x)
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def _float_results(out: Any) -> list[Tensor]:
    return [x for x in optree.tree_leaves(out) if isinstance(x, Tensor) and is_differentiable(x.dtype)]


def _differences(
    x: np.ndarray[Any, Any], value: Callable[[], np.ndarray[Any, Any]], eps: float
) -> Iterator[tuple[tuple[int, ...], float, float]]:
    """(index, central difference of the sum of ``value()``, its rounding error) for every element of ``x``."""
    for index in np.ndindex(x.shape):
        before = x[index]
        x[index] = before + eps
        step = x[index]
        above = value()
        x[index] = before - eps
        step = step - x[index]
        below = value()
        x[index] = before
        with np.errstate(invalid="ignore"):  # infinities may stay what they are
            changes = np.where(above == below, 0.0, above - below)
        noise = _ROUNDINGS * float(np.abs(above[changes != 0]).sum()) / float(step)
        yield index, float(changes.sum()) / float(step), noise


def _close(analytic: float, numeric: float, atol: float, rtol: float) -> bool:
    return abs(analytic - numeric) <= atol + rtol * abs(numeric)  # False for NaN


def gradgradcheck(
    f: Callable[..., Any], inputs: Any, *, eps: float = 1e-6, atol: float = 1e-8, rtol: float = 1e-5
) -> bool:
    """:func:`gradcheck` of the gradient of ``f`` itself, with respect to ``inputs`` and the
    incoming gradients.

    Input numbers in the error beyond those of ``inputs`` are the incoming gradients, one per float
    result.
    """
    arrays = [_array(x) for x in (inputs if isinstance(inputs, (tuple, list)) else (inputs,))]
    free = [k for k, x in enumerate(arrays) if is_differentiable(x.dtype)]

    def with_free(xs: Sequence[Any]) -> Callable[..., list[Tensor]]:
        def of_free(*free_xs: Tensor) -> list[Tensor]:
            full = list(xs)
            for k, x in zip(free, free_xs, strict=True):
                full[k] = x
            return _float_results(f(*full))

        return of_free

    def first_derivative(*everything: Tensor) -> tuple[Any, ...]:
        xs, cotangents = everything[: len(arrays)], everything[len(arrays) :]
        _, pull = vjp(with_free(xs), *(xs[k] for k in free))
        gradients: tuple[Any, ...] = pull(list(cotangents))
        return gradients

    with no_grad():
        outs = _float_results(f(*(Tensor(x.copy()) for x in arrays)))
    generator = np.random.default_rng(_SEED + 1)
    cotangents = [generator.uniform(0.5, 1.5, out.shape) for out in outs]
    return gradcheck(first_derivative, (*arrays, *cotangents), eps=eps, atol=atol, rtol=rtol)
