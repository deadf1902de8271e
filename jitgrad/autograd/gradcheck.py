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

    ``inputs`` is a Tensor or array, or a tuple of them; floats are converted to float64, complex
    numbers to complex128, of which both parts are varied; others are passed unchanged. Results (any
    pytree of Tensors) are weighted with fixed random numbers and summed, so one reverse pass checks
    all of them. A gradient that is wrong by a relative 1e-4 is found unless it is
    tiny beside the values that it is the gradient of.

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
        raise AutogradError("gradcheck: none of the inputs is a float or complex tensor")
    analytic, value = _weighted_sum(f, arrays, free)
    for k, name, x, g in _real_parts(free, arrays, analytic):
        for index, numeric, noise in _differences(x, value, eps):
            if not _close(float(g[index]), numeric, atol + noise, rtol):
                raise GradcheckError(
                    f"gradcheck: input {k}, {name}element {index}: the analytic gradient is {float(g[index]):.10g}, "
                    f"central differences give {numeric:.10g} (eps {eps:g}, atol {atol:g}, rtol {rtol:g}, noise {noise:.1g})"
                )
    return True


def _real_parts(
    free: list[int], arrays: list[np.ndarray[Any, Any]], gradients: list[np.ndarray[Any, Any]]
) -> Iterator[tuple[int, str, np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    """(number of the input, name of the part, the part as a view, its gradient) for each part of each free input."""
    for k, g in zip(free, gradients, strict=True):
        if arrays[k].dtype.kind == "c":
            yield k, "real part of ", arrays[k].real, g.real
            yield k, "imaginary part of ", arrays[k].imag, g.imag
        else:
            yield k, "", arrays[k], g


def _weights(generator: np.random.Generator, like: Tensor) -> np.ndarray[Any, Any]:
    """Random numbers in [0.5, 1.5), or with both parts there."""
    weights = generator.uniform(0.5, 1.5, like.shape)
    return weights + 1j * generator.uniform(0.5, 1.5, like.shape) if like.dtype.kind == "c" else weights


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
    weights = [_weights(generator, out) for out in outs]
    seeds = [Tensor(w.astype(out.dtype)) for w, out in zip(weights, outs, strict=True)]

    def value() -> np.ndarray[Any, Any]:
        with no_grad():
            results = of_free(*(Tensor(arrays[k].copy()) for k in free))
        return np.concatenate([np.ravel(np.conj(w) * _double(r.numpy())).real for w, r in zip(weights, results, strict=True)])

    return [detached(g).numpy() for g in pull(seeds)], value


def _array(x: Any) -> np.ndarray[Any, Any]:
    array = np.array(detached(x).numpy() if isinstance(x, Tensor) else x)
    return _double(array)


def _double(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    kinds = {"f": np.float64, "c": np.complex128}
    return array.astype(kinds[array.dtype.kind]) if array.dtype.kind in kinds else array


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
    cotangents = [_weights(generator, out) for out in outs]
    return gradcheck(first_derivative, (*arrays, *cotangents), eps=eps, atol=atol, rtol=rtol)
