"""Groups of one structure share the analysis of the first; groups that differ do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.compiler.lowering import kernel_reuse
from jitgrad.compiler.plan import KernelStep
from jitgrad.jit.decorator import jit
from jitgrad.runtime.program import Program


@pytest.fixture
def lowered(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The fused nodes that were lowered from scratch."""
    seen: list[Any] = []
    lower = kernel_reuse.lower

    def counting(node: Any, *rest: Any) -> Any:
        seen.append(node)
        return lower(node, *rest)

    monkeypatch.setattr(kernel_reuse, "lower", counting)
    return seen


def program_of(f: Any, *args: Any) -> Program:
    return jit(f, check="off").lookup(*args).program  # type: ignore[no-any-return]


def kernels(program: Program) -> list[KernelStep]:
    return [s for s in program.plan.steps if isinstance(s, KernelStep)]


def tensors(count: int, *shape: int) -> list[jg.Tensor]:
    rng = np.random.default_rng(0)
    return [jg.tensor(rng.standard_normal(shape).astype(np.float32)) for _ in range(count)]


def update(parameters: Any, gradients: Any, moments: Any) -> Any:
    new = [0.9 * m + 0.1 * g for m, g in zip(moments, gradients, strict=True)]
    return [p - 0.1 * m / (jg.sqrt(m * m) + 1e-3) for p, m in zip(parameters, new, strict=True)], new


def test_equal_updates_of_many_tensors_are_lowered_once(lowered: list[Any], same: Any) -> None:
    args = tensors(20, 7), tensors(20, 7), tensors(20, 7)

    same(update, *args, rtol=1e-6)

    program = program_of(update, *args)
    assert len(kernels(program)) == 20
    assert len(program.kernels) == 1
    assert len(lowered) == 2  # once for each of the two programs that were made here


def test_another_length_is_another_table_and_the_same_kernel(lowered: list[Any]) -> None:
    xs = [*tensors(3, 7), *tensors(3, 9)]

    program = program_of(lambda xs: [jg.tanh(x) * 2.0 for x in xs], xs)

    assert len(lowered) == 2
    assert len(program.kernels) == 1
    assert sorted(step.lowered.schedule.iterations for step in kernels(program)) == [7, 7, 7, 9, 9, 9]


@pytest.mark.parametrize("a, b", [(0.0, -0.0), (1.0, 2.0), (1, True)])
def test_attributes_that_differ_at_all_are_another_structure(lowered: list[Any], same: Any, a: Any, b: Any) -> None:
    x, y = tensors(2, 6)

    same(lambda x, y: (jg.leaky_relu(x, a), jg.leaky_relu(y, b)), x, y)

    assert len(lowered) == 2


def test_literals_that_differ_in_the_sign_of_zero_are_another_structure(same: Any) -> None:
    x, y = tensors(2, 6)

    same(lambda x, y: (x * 0.0, y * -0.0), x, y)


def test_an_attribute_that_differs_in_the_sign_of_zero_is_not_common(same: Any) -> None:
    """``leaky_relu(x, 0.0)`` and ``leaky_relu(x, -0.0)`` differ in the sign of zero where x is negative."""
    x = jg.tensor(np.array([-2.0, -1.0, 3.0], np.float32))

    same(lambda x: (jg.leaky_relu(x, 0.0), jg.leaky_relu(x, -0.0)), x)


def test_one_array_read_twice_is_not_two_arrays(lowered: list[Any], same: Any) -> None:
    """``f(x, x)`` and ``f(y, z)`` read by other patterns, though their operations are the same."""
    x, y, z = tensors(3, 5, 5)

    def f(a: Any, b: Any) -> Any:
        return jg.tanh(a) * b

    same(lambda x, y, z: (f(x, x), f(y, z), f(z[1:], y[:-1]), f(x[1:], x[:-1])), x, y, z, rtol=1e-6)

    assert len(lowered) >= 2


def test_views_of_one_array_at_two_places(same: Any) -> None:
    """A pair of slices of one array after a pair of arrays: the same structure in other places."""
    w, x, y = tensors(3, 8, 4)

    same(lambda w, x, y: (w[:4] * x[4:], y[:4] * y[4:], x[:4] * x[:4]), w, x, y)


def test_reductions_get_scratch_of_their_own(lowered: list[Any], same: Any) -> None:
    xs = tensors(3, 40, 30)

    same(lambda xs: [(jg.softmax(x) * x).sum(axis=0) for x in xs], xs, rtol=1e-5, atol=1e-6)

    assert len(lowered) == 1
    program = program_of(lambda xs: [(jg.softmax(x) * x).sum(axis=0) for x in xs], xs)
    scratch = [buffer for step in kernels(program) for buffer in step.scratch]
    assert scratch and len(scratch) == len({id(b) for b in scratch})


def test_every_launch_knows_its_own_lines() -> None:
    x, y = tensors(2, 6)

    def f(x: Any, y: Any) -> Any:
        a = jg.tanh(x)
        b = jg.tanh(y)
        return a, b

    program = program_of(f, x, y)
    lines = [{o.line for o in step.origins} for step in kernels(program)]
    first = f.__code__.co_firstlineno
    assert lines == [{first + 1}, {first + 2}]
    assert len(program.kernels) == 1


@pytest.mark.numba
def test_in_place_updates_of_one_structure(lowered: list[Any]) -> None:
    xs, gs = tensors(6, 1000), tensors(6, 1000)
    expected = [x.numpy() - np.float32(0.5) * g.numpy() for x, g in zip(xs, gs, strict=True)]

    @jit
    def step() -> None:
        for x, g in zip(xs, gs, strict=True):
            x -= 0.5 * g

    step()

    assert len(lowered) == 1
    for x, e in zip(xs, expected, strict=True):
        np.testing.assert_array_equal(x.numpy(), e)
