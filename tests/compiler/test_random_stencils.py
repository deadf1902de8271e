"""Random stencils: fused equals eager, values and gradients of two orders. The seed names the program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg

MODES = ("constant", "edge", "reflect", "symmetric", "wrap")
SHAPES = [(1,), (2,), (7,), (130,), (1, 1), (2, 1), (3, 5), (5, 40), (3, 133), (4, 1, 6), (3, 4, 5), (2, 3, 35)]
Shape = tuple[int, ...]
Stencil = Callable[..., Any]


def along(axis: int, part: slice) -> tuple[slice, ...]:
    return (slice(None),) * axis + (part,)


def padded(rng: np.random.Generator, shape: Shape) -> Stencil:
    """A sum of windows of an array in a border."""
    mode = str(rng.choice(MODES))
    mode = "edge" if mode in ("reflect", "wrap") and min(shape) == 1 else mode
    widths = [tuple(rng.integers(0, 4, 2).tolist()) for _ in shape]
    starts = [[int(rng.integers(a + b + 1)) for a, b in widths] for _ in range(int(rng.integers(1, 4)))]
    windows = [tuple(slice(k, k + n) for k, n in zip(at, shape, strict=True)) for at in starts]
    weights = rng.normal(size=len(windows)).tolist()

    def apply(u: Any) -> Any:
        p = jg.pad(u, widths, mode=mode)
        return sum(w * p[at] for w, at in zip(weights, windows, strict=True))

    return apply


def rolled(rng: np.random.Generator, shape: Shape) -> Stencil:
    axes, shifts = tuple(range(len(shape))), tuple(rng.integers(-3, 4, len(shape)).tolist())
    far, axis = int(rng.integers(-90, 90)), int(rng.integers(len(shape)))
    return lambda u: jg.roll(u, shifts, axes) - 0.5 * jg.roll(u, far, axis)


def differences(rng: np.random.Generator, shape: Shape) -> Stencil:
    """Forward differences, with zeros where there is none."""
    axis, before = int(rng.integers(len(shape))), int(rng.integers(2))
    later, earlier = along(axis, slice(1, None)), along(axis, slice(None, -1))
    widths = [(before, 1 - before) if k == axis else (0, 0) for k in range(len(shape))]
    return lambda u: jg.pad((u[later] - u[earlier]) ** 2, widths)


def backwards(rng: np.random.Generator, shape: Shape) -> Stencil:
    """A border mirrored by negative steps, and every other element among zeros."""
    axis = int(rng.integers(len(shape)))
    mirrored, part = along(axis, slice(None, None, -1)), along(axis, slice(1, shape[axis] + 1))
    half = tuple(slice(0, None, 2) for _ in shape)
    return lambda u: jg.concat([u[mirrored], u], axis)[part] + 0.1 * jg.pad(u, 1)[half].sum()


def joined(rng: np.random.Generator, shape: Shape) -> Stencil:
    """Shifted parts of one array or of two next to each other."""
    axis = int(rng.integers(len(shape)))
    cut, alone = int(rng.integers(shape[axis] + 1)), bool(rng.integers(2))
    first, second = along(axis, slice(cut, None)), along(axis, slice(None, cut))
    return lambda u: jg.concat([u[first], (u if alone else jg.tanh(u))[second]], axis)


def between(rng: np.random.Generator, shape: Shape) -> Callable[[Any, Any, Any], Any]:
    axis = int(rng.integers(len(shape)))
    others: list[Callable[[Any, Any, Any], Any]] = [
        lambda s, u, v: jg.where(v > 0, s, 0.3 * u),
        lambda s, u, v: jg.sqrt(s * s + 1.0),
        lambda s, u, v: s * v - s.mean(),
        lambda s, u, v: s + u.sum(axis=axis, keepdims=True),
        lambda s, u, v: s,
    ]
    return others[rng.integers(len(others))]


KINDS = (padded, padded, rolled, differences, backwards, joined)


def stencil(seed: int, steps: int, shape: Shape) -> Stencil:
    """A loss of two arrays of ``shape``: some random stencils and what is between them."""
    rng = np.random.default_rng(seed)
    plan = [(KINDS[rng.integers(len(KINDS))](rng, shape), between(rng, shape), bool(rng.integers(2))) for _ in range(steps)]

    def function(u: Any, v: Any) -> Any:
        for apply, then, keeps in plan:
            s = then(apply(u), u, v)
            u, v = s + 0.1 * u, v if keeps else jg.tanh(u)
        return (u * v).sum() + (u * u).mean()

    return function


def shape_of(seed: int) -> Shape:
    return SHAPES[seed % len(SHAPES)]


def operands(seed: int, dtype: str) -> list[Any]:
    rng = np.random.default_rng(seed)
    shape = shape_of(seed)
    arrays = [rng.normal(size=shape).astype(dtype) for _ in range(2)]
    if rng.random() < 0.25:
        arrays[0] = arrays[0][tuple(slice(None, None, -1) for _ in shape)]
    return [jg.asarray(x) for x in arrays]


@pytest.mark.parametrize("seed", range(48))
def test_fused_equals_eager(seed: int, same: Any, tune: Callable[..., None]) -> None:
    tune(min_offset_row=1)
    f = stencil(seed, 2 + seed % 3, shape_of(seed))
    same(jg.value_and_grad(f, argnums=(0, 1)), *operands(seed, "f8"), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(120, 132))
def test_second_derivatives(seed: int, same: Any, tune: Callable[..., None]) -> None:
    tune(min_offset_row=1)
    f = stencil(seed, 2, shape_of(seed))

    def second(u: Any, v: Any) -> Any:
        first = jg.grad(f, argnums=(0, 1))
        return jg.grad(lambda u, v: sum((g * jg.tanh(g)).sum() for g in first(u, v)), argnums=(0, 1))(u, v)

    same(second, *operands(seed, "f8"), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("seed", range(180, 204))
def test_block_by_block(seed: int, same: Any, tune: Callable[..., None]) -> None:
    """Kernels of few ops over blocks of few rows: what one reads at offsets may be of the block, or of another."""
    tune(min_offset_row=1, max_kernel_nodes=6, enough_blocks=2, min_local_bytes=0, min_block_elements=1, block_bytes=4096)
    shape = ((11, 5), (24, 9), (6, 33), (12, 4, 5))[seed % 4]
    f = stencil(seed, 3, shape)
    arrays = [jg.asarray(np.random.default_rng(seed + k).normal(size=shape)) for k in range(2)]
    same(jg.value_and_grad(f, argnums=(0, 1)), *arrays, rtol=1e-9, atol=1e-9)


@pytest.mark.numba
@pytest.mark.parametrize("seed", range(150, 162))
def test_machine_code(seed: int, same: Any) -> None:
    f = stencil(seed, 3, shape_of(seed))
    same(jg.value_and_grad(f, argnums=(0, 1)), *operands(seed, "f4"), rtol=2e-3, atol=2e-3)
