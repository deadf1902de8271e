"""Programs: their buffers, their steps, and overlapping calls."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.compiler.plan import KernelStep
from jitgrad.jit.decorator import jit
from jitgrad.runtime.program import Program

BACKENDS = ["python", pytest.param("cpu", marks=pytest.mark.numba)]
RNG = np.random.default_rng(0)


@pytest.fixture(params=BACKENDS, autouse=True)
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("JITGRAD_BACKEND", request.param)
    return str(request.param)


def program_of(function: Any, *arrays: Any) -> Program:
    program: Program = jit(function, check="off").lookup(*arrays).program
    return program


def mixed(x: Any, w: Any) -> Any:
    h = jg.tanh(x @ w)
    s = jg.sort(h, axis=-1)
    return h, (s * 2.0 - h).sum(axis=0), jg.exp(s) @ w.T


def test_kernels_products_and_calls_in_one_program() -> None:
    x, w = RNG.normal(size=(5, 4)), RNG.normal(size=(4, 4))
    program = program_of(mixed, x, w)

    for _ in range(3):
        found = program.run([x, w])
        for a, b in zip(found, mixed(jg.asarray(x), jg.asarray(w)), strict=True):
            np.testing.assert_allclose(a, b.numpy(), rtol=1e-12)


def test_results_of_two_runs_share_no_memory() -> None:
    x, w = RNG.normal(size=(5, 4)), RNG.normal(size=(4, 4))
    program = program_of(mixed, x, w)

    first = program.run([x, w])
    kept = [a.copy() for a in first]
    second = program.run([x * 2.0, w])

    for a, b, c in zip(first, second, kept, strict=True):
        assert not np.shares_memory(a, b)
        np.testing.assert_array_equal(a, c)
    for k, a in enumerate(first):
        assert all(not np.shares_memory(a, b) for b in first[k + 1 :])


def test_inputs_are_not_changed() -> None:
    x, w = RNG.normal(size=(5, 4)), RNG.normal(size=(4, 4))
    before = x.copy(), w.copy()

    program_of(mixed, x, w).run([x, w])

    np.testing.assert_array_equal(x, before[0])
    np.testing.assert_array_equal(w, before[1])


def test_temporaries_that_do_not_live_together_share_the_arena() -> None:
    def f(x: Any) -> Any:
        for _ in range(10):
            x = jg.sort(jg.tanh(x), axis=0)
        return x

    x = RNG.normal(size=4096)
    program = program_of(f, x)

    alone = sum(-(-b.nbytes // 64) * 64 for b in program.plan.offsets)
    assert program.plan.arena_bytes < alone / 2
    live: dict[Any, list[int]] = {}
    for k, step in enumerate(program.plan.steps):
        touched = [p.location.buffer for p in (*step.reads, *step.writes) if p.location is not None]
        touched += step.scratch if isinstance(step, KernelStep) else ()
        for b in touched:
            live.setdefault(b, []).append(k)
    placed = [(b, o) for b, o in program.plan.offsets.items() if b in live]
    for i, (a, at) in enumerate(placed):
        for b, bt in placed[i + 1 :]:
            together = live[a][0] <= live[b][-1] and live[b][0] <= live[a][-1]
            assert not together or at + a.nbytes <= bt or bt + b.nbytes <= at, "two live buffers overlap"


def test_results_that_repeat_inputs_or_each_other_have_their_own_memory() -> None:
    state = jg.tensor(np.zeros(3))

    def f(x: Any) -> Any:
        state.copy_(state + x)
        y = x * 1.0  # which the compiler simplifies to x
        return state * 1.0, y.reshape((3, 1)), jg.broadcast_to(y, (2, 3)), jg.ones(3) * 2.0

    g = jit(f, check="off")
    x = jg.tensor(np.ones(3))
    a, b, c, d = g(x)
    state.numpy()[:] = 9.0
    x.numpy()[:] = 9.0

    assert [a.numpy().tolist(), b.numpy().ravel().tolist(), c.numpy()[1].tolist(), d.numpy().tolist()] == [
        [1.0] * 3, [1.0] * 3, [1.0] * 3, [2.0] * 3,
    ]  # fmt: skip


def test_calls_at_the_same_time_have_frames_of_their_own() -> None:
    w = RNG.normal(size=(4, 4))
    program = program_of(mixed, RNG.normal(size=(5, 4)), w)
    problems: list[BaseException] = []

    def work(seed: int) -> None:
        x = np.random.default_rng(seed).normal(size=(5, 4))
        expected = [t.numpy() for t in mixed(jg.asarray(x), jg.asarray(w))]
        try:
            for _ in range(30):
                for a, b in zip(program.run([x, w]), expected, strict=True):
                    np.testing.assert_allclose(a, b, rtol=1e-12)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not problems, problems[0]


PRODUCTS = [((3, 4), (4, 5)), ((4, 3), (5, 4)), ((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((1, 4), (4, 1))]


@pytest.mark.parametrize("shapes", PRODUCTS)
@pytest.mark.parametrize("dtype", ["f", "d", "l"])
def test_products_of_matrices_as_they_lie(shapes: Any, dtype: str) -> None:
    """Plain, transposed, batched and repeated operands: by address where BLAS can, else through NumPy."""
    x, y = (RNG.integers(-4, 5, s).astype(dtype) for s in shapes)
    transposed = shapes[0] == (4, 3)

    def f(x: Any, y: Any) -> Any:
        x, y = x * 2, y + 1
        return (x.mT @ y.mT if transposed else x @ y) - 1

    found = program_of(f, x, y).run([x, y])[0]

    np.testing.assert_array_equal(found, f(jg.asarray(x), jg.asarray(y)).numpy())
