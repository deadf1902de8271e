"""Elementwise ops that wait and run block by block give the bits of eager execution."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import optree
import pytest

import jitgrad as jg
from jitgrad.core.context import current_interpreter
from jitgrad.core.dispatch import apply_op
from jitgrad.core.op import REGISTRY, Kind, OpDef
from jitgrad.eager import blocked
from jitgrad.eager.blocked import BlockedInterpreter
from jitgrad.jit import first_call_check
from jitgrad.jit.switch import disable_jit
from jitgrad.testing import random_program, sample_operands
from jitgrad.testing.state_programs import StateProgram

ELEMENTWISE = [op for op in REGISTRY.values() if op.kind is Kind.ELEMENTWISE and op.domain]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocked, "FEWEST_ELEMENTS", 2)
    monkeypatch.setattr(blocked, "BLOCK_BYTES", 40)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of steps of the runs of blocks."""
    steps: list[int] = []
    run = blocked._BlockedRun.run

    def counting(self: Any, threads: int) -> None:
        steps.append(len(self.steps))
        run(self, threads)

    monkeypatch.setattr(blocked._BlockedRun, "run", counting)
    return steps


def in_blocks(function: Callable[..., Any], threads: int = 1) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        interpreter = BlockedInterpreter(threads)
        token = current_interpreter.set(interpreter)
        try:
            with disable_jit():
                result = function(*args, **kwargs)
            interpreter.finish(optree.tree_leaves(result))
        finally:
            current_interpreter.reset(token)
        return result

    return call


def bits(result: Any) -> Iterator[Any]:
    for x in optree.tree_leaves(result):
        yield x.shape, x.dtype, x.detach().numpy().tobytes()


def assert_same(function: Callable[..., Any], *args: Any, threads: int = 1) -> None:
    with disable_jit():
        expected = function(*args)

    assert [*bits(in_blocks(function, threads)(*args))] == [*bits(expected)]


@pytest.mark.parametrize("op", ELEMENTWISE, ids=str)
@pytest.mark.parametrize("dtype", ["f", "d"])
def test_every_op_has_the_same_bits_wherever_an_element_stands(op: OpDef, dtype: str) -> None:
    xs = [jg.tensor(x) for x in sample_operands(op, np.random.default_rng(0), (7, 5), np.dtype(dtype))]

    assert_same(lambda *xs: apply_op(op, *xs, **op.sample_attrs), *xs)


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed: int) -> None:
    program = random_program(seed, 20)

    assert_same(program, *map(jg.tensor, program.operands()))


@pytest.mark.parametrize("seed", [s for s in range(40) if not StateProgram.writer(s).outside])
def test_programs_that_change_tensors_in_place(seed: int) -> None:
    expected = StateProgram(seed, lambda f: f, {"jg": jg}).difference()  # "", but where a graph was freed before

    assert StateProgram(seed, in_blocks, {"jg": jg}).difference() == expected


@pytest.mark.parametrize(
    "shapes",
    [[(7, 5), (5,)], [(7, 1), (1, 5)], [(7, 5), (1, 1)], [(1, 30), ()], [(2, 3, 4), (3, 1)], [(0, 3), (3,)], [(), ()]],
    ids=str,
)
@pytest.mark.parametrize("threads", [1, 3])
def test_operands_broadcast(shapes: list[Any], threads: int) -> None:
    rng = np.random.default_rng(1)
    xs = [jg.tensor(rng.normal(size=shape)) for shape in shapes]

    assert_same(lambda a, b: jg.where(a > b, jg.exp(a) * b + 1, 2 - b), *xs, threads=threads)


def test_operands_of_any_strides_and_dtypes() -> None:
    x = np.random.default_rng(2).normal(size=(8, 6))
    x[3, 2] = np.nan

    def f(a: Any, b: Any, k: Any) -> Any:
        return a * b + k, jg.sin(a[::2]) * 2, (a > 0) & (k != 3), a.astype("float32") / b

    assert_same(f, jg.asarray(x.T[::-1]), jg.asarray(x.T[:, ::-1]), jg.tensor(np.arange(8)))


def test_numbers_stay_weak_and_scalars_come_from_tensors() -> None:
    x = jg.tensor(np.linspace(0, 1, 12, dtype="float32"))
    half = jg.sum(jg.tensor([0.25, 0.25]))

    assert_same(lambda x: (x * 3 + 0.1) * half - jg.tensor(2), x)


@pytest.mark.parametrize("threads", [1, 2])
def test_gradients(threads: int) -> None:
    x = jg.tensor(np.linspace(-1, 2, 24).reshape(4, 6))
    f = jg.value_and_grad(lambda x: jg.sum(jg.sqrt(jg.where(x > 0, x, 1.0)) * jg.exp(-x) * jg.mean(x, axis=0)))

    assert_same(f, x, threads=threads)
    assert_same(jg.grad(lambda x: jg.sum(jg.grad(lambda x: jg.sum(jg.sin(x) * x))(x) ** 2)), x, threads=threads)


def test_results_that_nobody_refers_to_are_not_computed(counted: list[int]) -> None:
    def f(x: Any) -> Any:
        y = x * 2
        for _ in range(5):
            jg.exp(y)
        return y + 1

    in_blocks(f)(jg.tensor(np.arange(9.0)))

    assert counted == [2]  # y and y + 1


def test_a_change_in_place_waits_for_what_reads_the_old_elements() -> None:
    def f(x: Any) -> Any:
        copy = x.clone()
        y = copy * 2
        copy += 10
        view = copy[1:]
        z = view * 3
        copy[2] = 0
        return y, z, copy, view

    assert_same(f, jg.tensor(np.arange(6.0)))


def test_a_change_in_place_within_a_checkpoint() -> None:
    def part(x: Any) -> Any:
        y = x.clone()
        z = y * 2
        y[1] = 7
        return z + y

    assert_same(lambda x: jg.checkpoint(part)(x), jg.tensor(np.arange(6.0)))


def test_elements_are_there_when_python_asks() -> None:
    def f(x: Any) -> Any:
        y = x * 2
        scale = float(y[1]) + y.numpy()[2] + sum(y.tolist())
        return y * scale, y.detach() * 1, np.asarray(y).shape[0] * x

    assert_same(f, jg.tensor(np.arange(6.0)))


def test_an_error_of_a_block_comes_from_any_thread() -> None:
    def f(x: Any) -> Any:
        return x ** (x - 5)

    with pytest.raises(ValueError, match="negative integer powers"):
        in_blocks(f, threads=3)(jg.tensor(np.arange(40)))


# --- in the check of first calls ---------------------------------------------------------------------


@pytest.fixture
def worthwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_call_check, "is_worthwhile", lambda _: True)


def test_first_calls_run_in_blocks(counted: list[int], worthwhile: None) -> None:
    x = jg.tensor(np.arange(9.0))

    result = jg.jit(lambda x: jg.sin(x) * 2 + 1, backend="python")(x)

    assert counted == [3]
    assert [*bits(result)] == [*bits(jg.sin(x) * 2 + 1)]


def test_first_calls_with_state_or_gradients_outside_run_op_by_op(counted: list[int], worthwhile: None) -> None:
    total = jg.tensor(np.zeros(9))

    @jg.jit(backend="python")
    def add(x: Any) -> Any:
        total.copy_(total + x)
        return total * 2

    add(jg.tensor(np.arange(9.0)))
    x = jg.tensor(np.arange(9.0), requires_grad=True)
    jg.sum(jg.jit(lambda x: jg.sin(x) * 2, backend="python")(x)).backward()

    assert counted == []
    assert total.tolist() == [*range(9)]
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.cos(np.arange(9.0)))


def test_a_failure_in_blocks_is_told_by_eager_execution(
    monkeypatch: pytest.MonkeyPatch, worthwhile: None
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("in blocks")

    monkeypatch.setattr(blocked._BlockedRun, "run", fail)
    x = jg.tensor(np.arange(9.0))

    assert [*bits(jg.jit(lambda x: jg.sin(x) * 2, backend="python")(x))] == [*bits(jg.sin(x) * 2)]


def test_only_long_programs_on_large_arrays_are_worth_it() -> None:
    blocked.FEWEST_ELEMENTS = 1 << 16  # restored with the fixture

    def graph(n: int, times: int) -> Any:
        def f(x: Any) -> Any:
            for _ in range(times):
                x = jg.sin(x) + 1
            return x

        return jg.jit(f, check="off", backend="python").graph(jg.ones((n,)))

    assert blocked.is_worthwhile(graph(1 << 20, 20))
    assert not blocked.is_worthwhile(graph(1 << 20, 3))
    assert not blocked.is_worthwhile(graph(1 << 10, 20))
