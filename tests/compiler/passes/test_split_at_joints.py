"""Stencils on rolled and concatenated arrays: computed box by box, without copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.jit.decorator import jit

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def split_small(tune: Callable[..., None]) -> None:
    tune(min_split_elements=4, box_bytes=0)


def laplacian(u: Any) -> Any:
    return jg.roll(u, 1, 0) + jg.roll(u, -1, 0) + jg.roll(u, 1, 1) + jg.roll(u, -1, 1) - 4 * u


def gray_scott(u: Any, v: Any) -> Any:
    uvv = u * v * v
    return u + 0.16 * laplacian(u) - uvv + 0.035 * (1 - u), v + 0.08 * laplacian(v) + uvv - 0.1 * v


def bytes_written(function: Any, *args: Any) -> int:
    return int(jit(function, check="off").explain(*args).bytes_written)


def test_a_periodic_stencil_writes_its_results_alone(same: Any) -> None:
    u, v = (jg.tensor(RNG.normal(size=(12, 9))) for _ in range(2))

    same(gray_scott, u, v, rtol=1e-13, atol=1e-13)

    assert bytes_written(gray_scott, u, v) == 2 * 12 * 9 * 8
    compiled = jit(gray_scott, check="off")
    assert not compiled.explain(u, v).unfused_ops and compiled.explain(u, v).fused <= 10


def test_gradient_through_steps(same: Any) -> None:
    def loss(u: Any, v: Any) -> Any:
        for _ in range(3):
            u, v = gray_scott(u, v)
        return (u * v).sum() + (u**2).mean()

    u, v = (jg.tensor(RNG.normal(size=(6, 7)) / 3) for _ in range(2))
    same(jg.value_and_grad(loss, argnums=(0, 1)), u, v, rtol=1e-11, atol=1e-11)


def test_sums_of_stencils_are_sums_of_boxes(same: Any) -> None:
    def energy(u: Any) -> Any:
        return ((jg.roll(u, 1, 0) - u) ** 2).sum()

    u = jg.tensor(RNG.normal(size=(8, 5)))
    same(energy, u, rtol=1e-13)
    assert bytes_written(energy, u) <= 3 * 8  # of each box, and their sum


@pytest.mark.parametrize("function", [
    lambda u, w: jg.roll(u, (1, -2), (0, 1)) * w + u,  # a concatenation of slices of a concatenation
    lambda u, w: jg.roll(u, 2, 1)[1:, :-1] * u[1:, :-1] + 1,  # a slice of one
    lambda u, w: jg.concat([u[:3], w[3:]], axis=0) + jg.concat([w[:, :2], u[:, 2:]], axis=1),
    lambda u, w: jg.concat([u, w], axis=0) * jg.concat([w, u], axis=0) + jg.concat([u[:1], u[:1]], axis=0).sum(),
    lambda u, w: jg.roll(u, 1, 0) + w[:1] + w[:, :1] + w[2, 3],  # operands that are broadcast
    lambda u, w: jg.where(jg.roll(u, 1, 0) > 0, u - jg.roll(u, 1, 0), jg.roll(u, -1, 0) - u),  # upwind differences
    lambda u, w: (jg.roll(u, 1, 0) * 2, jg.roll(u, 1, 0), jg.softmax(jg.roll(w, 1, 1) + u, axis=1)),
    lambda u, w: jg.concat([u, jg.astype(w, "f4")], axis=0) + 1,  # of two dtypes
    lambda u, w: jg.concat([u[::2], u[1::2]], axis=0) + w[::-1],
    lambda u, w: jg.roll(u + w, 1, 0) + (u + w),  # what is rolled is computed
    lambda u, w: jg.roll(u, 1, 0).max() + jg.roll(w, 0, 0).sum() + jg.all(jg.roll(u, 1, 1) < 9),
    lambda u, w: jg.cumulative_sum(jg.roll(u, 1, 0) + w, axis=0) + jg.roll(w, 1, 0) @ w.T @ u,
])  # fmt: skip
def test_programs(function: Any, same: Any) -> None:
    u, w = (jg.tensor(RNG.normal(size=(6, 7))) for _ in range(2))
    same(function, u, w, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", [(4,), (2, 2), (1, 8), (3, 2, 4)])
def test_short_axes(shape: tuple[int, ...], same: Any) -> None:
    def f(u: Any) -> Any:
        total = u
        for axis in range(u.ndim):
            total = total + jg.roll(u, 1, axis) * jg.roll(u, -1, axis) + jg.roll(u, 3, axis)
        return total

    same(jg.value_and_grad(lambda u: (f(u) ** 2).sum()), jg.tensor(RNG.normal(size=shape)), rtol=1e-12, atol=1e-12)


def test_many_parts_are_joined_in_memory() -> None:
    parts = [jg.tensor(RNG.normal(size=(2, 4))) for _ in range(40)]
    compiled = jit(lambda *parts: jg.concat(list(parts), axis=0) * 2, check="off")
    compiled(*parts)

    assert compiled.explain(*parts).bytes_written == 2 * 40 * 8 * 8


@pytest.mark.parametrize("seed", range(40))
def test_random_stencils(seed: int, same: Any) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(2, 7, rng.integers(1, 4)))
    moves = [(int(rng.integers(-3, 4)), int(rng.integers(len(shape))), int(rng.integers(4))) for _ in range(5)]

    def f(u: Any, w: Any) -> Any:
        for shift, axis, kind in moves:
            moved = jg.roll(u, shift, axis)
            if kind == 0:
                u = u * 0.5 + moved * w
            elif kind == 1:
                u = jg.tanh(moved - u) + w
            elif kind == 2:
                u = jg.concat([moved, u], axis=axis)[tuple(slice(n) for n in shape)] * jg.roll(w, 1, axis)
            else:
                u = jg.where(moved > w, u, moved)
        return u.sum() + (u * w).sum(), u

    u, w = (jg.tensor(rng.normal(size=shape)) for _ in range(2))
    same(jg.value_and_grad(f, argnums=(0, 1), has_aux=True), u, w, rtol=1e-11, atol=1e-11)


def test_what_is_in_memory_anyway_gives_no_boxes(same: Any) -> None:
    def f(u: Any) -> Any:
        moved = jg.roll(u, 1, 0)
        return moved, moved * u + 1.0, moved[1:] * 2.0

    u = jg.tensor(RNG.normal(size=(24, 7)))
    compiled = same(f, u)
    assert compiled.explain(u).fused <= 4  # two copies, and a kernel for each product


def test_small_parts_are_read_from_what_is_joined(same: Any) -> None:
    def f(u: Any) -> Any:
        p = jg.concat([u[:2], u * 2.0, u[-3:]], axis=0)
        return p[1:] - p[:-1], p[:1], p[1:4], p[3:5, ::2]

    u = jg.tensor(RNG.normal(size=(40, 6)))
    same(f, u)
    same(jg.grad(lambda u: sum((x**2).sum() for x in f(u))), u, rtol=1e-13, atol=1e-13)


def test_edges_take_longer_than_a_copy_of_a_small_array(tune: Callable[..., None], same: Any) -> None:
    tune(box_bytes=1 << 19)
    u = jg.tensor(RNG.normal(size=(12, 9)))

    assert same(laplacian, u, rtol=1e-13, atol=1e-13).explain(u).fused <= 9
