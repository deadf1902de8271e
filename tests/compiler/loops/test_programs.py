"""Many turns of lax.scan, lax.map and lax.fori_loop are one loop, whose results, gradients and errors are eager's."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest

import jitgrad as jg
from jitgrad import lax
from jitgrad.compiler.loops.loop_op import LOOP
from jitgrad.core.errors import IndexingError, MatrixError
from tests.compiled import assert_same

RNG = np.random.default_rng(0)
TURNS = 20


def normal(*shape: int, dtype: str = "float64") -> jg.Tensor:
    return jg.tensor(RNG.normal(size=shape).astype(dtype))


H, XS, W = normal(3), normal(TURNS, 3), normal(3, 3)


def loops_of(compiled: Any, *args: Any) -> int:
    return sum(node.op is LOOP for node in compiled.lookup(*args).program.plan.graph.nodes)


def check(f: Callable[..., Any], *args: Any, loops: int, rtol: float = 1e-9) -> None:
    """``f`` compiled is as it is eager, with and without the check of the first call, in a program of so many loops."""
    expected = f(*args)
    for mode in ("first", "off"):
        with warnings.catch_warnings():
            warnings.simplefilter("error", jg.errors.MismatchWarning)
            compiled = jg.jit(f, check=mode)
            for _ in range(2):
                assert_same(compiled(*args), expected, rtol=rtol, atol=rtol)
        assert loops_of(compiled, *args) == loops


def cell(c: Any, x: Any) -> Any:
    c = jg.tanh(c @ W + x)
    return c, c * 2


def loss(h: Any, xs: Any, w: Any) -> Any:
    def turn(c: Any, x: Any) -> Any:
        c = jg.tanh(c @ w + x)
        return c, jg.sin(c)

    last, ys = lax.scan(turn, h, xs)
    return (last * last).sum() + (ys[::2] ** 2).sum()


def with_detached(h: Any, xs: Any) -> Any:
    def turn(c: Any, x: Any) -> Any:
        with jg.no_grad():
            k = jg.tanh(c)
        return jg.sin(c) * k + x + c.detach(), (k, c)

    last, (k, ys) = lax.scan(turn, h, xs)
    return last.sum() + (k * ys).sum()


class Pair(NamedTuple):
    scale: float
    matrix: Any


PAIR = Pair(0.5, W)
LAYER = jg.nn.Linear(3, 3, dtype="float64")

PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], int]] = {
    "scan": (lambda h, xs: lax.scan(cell, h, xs), (H, XS), 1),
    "in reverse": (lambda h, xs: lax.scan(cell, h, xs, reverse=True), (H, XS), 1),
    "gradient": (jg.value_and_grad(loss, (0, 1, 2)), (H, XS, W), 2),
    "gradient in reverse": (
        jg.grad(lambda h, xs: (lax.scan(cell, h, xs, reverse=True)[1] ** 2).sum(), (0, 1)),
        (H, XS),
        2,
    ),
    "second order": (jg.grad(lambda h: (jg.grad(loss, (0, 1, 2))(h, XS, W)[2] ** 2).sum()), (H,), 5),
    "Hessian": (jg.hessian(lambda h: loss(h, XS, W)), (H,), 5),
    "Jacobian": (jg.jacobian(lambda h: lax.scan(cell, h, XS)[0]), (H,), 2),
    "detached": (jg.value_and_grad(with_detached), (H, XS), 2),
    "detached, second order": (jg.hessian(with_detached), (H, XS), 4),
    "vmap": (jg.vmap(lambda h, xs: lax.scan(cell, h, xs), (0, None)), (normal(4, 3), XS), 1),
    "vmap of slices": (jg.vmap(lambda xs: lax.scan(cell, H, xs, reverse=True)), (normal(4, TURNS, 3),), 1),
    "no slices": (lambda h: lax.scan(lambda c, _: (c * 0.9 + 0.1, None), h, None, length=TURNS), (H,), 1),
    "swapped carries": (lambda h, xs: lax.scan(lambda c, x: ((c[1], c[0] * 0.5 + x), c[0]), (h, h * 2), xs), (H, XS), 1),
    "fixed carry": (lambda h, xs: lax.scan(lambda c, x: ((c[0], c[1] * c[0] + x), x), (h, h), xs), (H, XS), 1),
    "carry of a constant": (lambda h, xs: lax.scan(lambda c, x: (jg.ones(3, dtype="float64"), c + x), h, xs), (H, XS), 1),
    "equal parts": (lambda h, xs: lax.scan(lambda c, x: (c * 0.5 + x, (c, c, x)), h, xs), (H, XS), 1),
    "turned parts": (lambda h, xs: lax.scan(lambda c, x: (c + x, (c[::-1], (c[:, None] * x).T)), h, xs), (H, XS), 1),
    "turned slices": (lambda h, xs: lax.scan(lambda c, x: (c + x, c.sum()), h, xs.T[::-1].T), (H, XS), 1),
    "repeated slices": (lambda h: lax.scan(cell, h, jg.broadcast_to(h, (TURNS, 3))), (H,), 1),
    "first turns of another dtype": (
        lambda xs: lax.scan(lambda c, x: (c + x, c), jg.zeros(3, dtype="float32"), xs),
        (XS,),
        1,
    ),
    "a number first": (lambda xs: lax.scan(lambda c, x: (c * 0.5 + x.sum(), c), 0.0, xs), (XS,), 1),
    "a wider carry": (lambda xs: lax.scan(lambda c, x: (c + x, c.sum()), jg.zeros((), dtype="float64"), xs), (XS,), 1),
    "ints and bools": (
        lambda xs: lax.scan(
            lambda c, x: ((c[0] + 1, c[1] & (x.sum() > -9)), c[0] * x), (jg.tensor(0), jg.tensor(True)), xs
        ),
        (XS,),
        1,
    ),
    "complex": (lambda h, xs: jg.real(lax.scan(lambda c, x: (c * (0.5 + 0.1j) + x, None), h + 0j, xs)[0]), (H, XS), 1),
    "nested": (
        jg.value_and_grad(
            lambda h: lax.scan(lambda c, x: lax.scan(lambda d, y: (jg.tanh(d + y * x), d.sum()), c, XS), h, XS)[0].sum()
        ),
        (H,),
        2,
    ),
    "gradient in a turn": (
        jg.grad(lambda p: lax.scan(lambda p, x: (p - 0.1 * jg.grad(lambda q: ((q * x - 1) ** 2).sum())(p), None), p, XS)[0][0]),
        (H,),
        2,
    ),
    "reads at indices": (
        jg.value_and_grad(lambda t, k: (lax.scan(lambda c, i: (jg.tanh(c + t[i]), c), H, k)[1] ** 2).sum()),
        (normal(10, 3), jg.tensor(RNG.integers(0, 10, TURNS))),
        2,
    ),
    "a method of a layer": (lambda h, xs: lax.scan(lambda c, x: (jg.tanh(LAYER(c) + x), c), h, xs), (H, XS), 1),
    "a named tuple": (lambda h, xs: lax.scan(lambda c, x: (jg.tanh(c @ PAIR.matrix * PAIR.scale + x), c), h, xs), (H, XS), 1),
    "numbers as arguments": (lambda h, k, n: lax.scan(lambda c, x: (c * k + x * n, c), h, XS), (H, 0.5, 3), 1),
    "checkpoint": (jg.grad(lambda h: lax.scan(jg.checkpoint(cell), h, XS)[1].sum()), (H,), 2),
    "map": (lambda xs: lax.map(lambda x: (x**2).sum(), xs), (XS,), 1),
    "solutions": (
        lambda b, m: lax.scan(lambda c, a: (jg.linalg.solve(a, c), c.sum()), b, m),
        (normal(2), jg.tensor(np.stack([np.eye(2) * (1 + k) for k in range(TURNS)]))),
        1,
    ),
    "fori_loop": (lambda h: lax.fori_loop(0, TURNS, lambda i, c: c * 0.9 + i / 7 + i % 3 + i**2, h), (H,), 1),
    "fori_loop in float32": (lambda h: lax.fori_loop(-9, TURNS, lambda i, c: c * 0.9 + i, h), (normal(3, dtype="float32"),), 1),
    "reads at turns": (
        jg.value_and_grad(
            lambda h, xs: lax.fori_loop(1, TURNS - 1, lambda i, c: jg.tanh(c + xs[i] * xs[i - 1] - xs[i + 1]), h).sum(), (0, 1)
        ),
        (H, XS),
        2,
    ),
    "reads from the end": (lambda xs: lax.fori_loop(0, TURNS, lambda i, c: c * 0.5 + xs[i - 1] + xs[-i], H), (XS,), 1),
    "changes at turns": (
        jg.grad(lambda xs: (lax.fori_loop(1, TURNS, lambda i, y: y.at[i].set(jg.tanh(y[i - 1] + y[i])), xs) ** 2).sum()),
        (XS,),
        2,
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_loops_are_as_eager(name: str) -> None:
    f, args, loops = PROGRAMS[name]
    check(f, *args, loops=loops)


@pytest.mark.numba
@pytest.mark.parametrize(
    "name", ["scan", "gradient", "second order", "nested", "swapped carries", "solutions", "changes at turns"]
)
def test_loops_in_machine_code_are_as_eager(name: str) -> None:
    f, args, loops = PROGRAMS[name]
    check(f, *args, loops=loops)


@pytest.mark.parametrize("name", ["scan", "gradient", "changes at turns"])
def test_turns_are_written_out_within_a_memory_budget(name: str) -> None:
    f, args, _ = PROGRAMS[name]
    compiled = jg.jit(f, memory_budget=1.0)
    assert_same(compiled(*args), f(*args), rtol=1e-9, atol=1e-9)
    assert loops_of(compiled, *args) == 0


# --- turns that no loop can do -----------------------------------------------------------------------------------


@dataclass
class Counts:
    n: int = 0
    log: list[int] = field(default_factory=list)


def with_a_list(h: Any, xs: Any) -> Any:
    seen: list[Any] = []

    def turn(c: Any, x: Any) -> Any:
        seen.append(c)
        return c * 0.5 + x, None

    last, _ = lax.scan(turn, h, xs)
    return jg.stack(seen), last


def with_a_cell(h: Any, xs: Any) -> Any:
    n = 0

    def turn(c: Any, x: Any) -> Any:
        nonlocal n
        n += 1
        return (c * 0.5 + x if n % 10 else c * 0), None

    return lax.scan(turn, h, xs)[0] * n


def with_attributes(h: Any, xs: Any) -> Any:
    counts = Counts()

    def turn(c: Any, x: Any) -> Any:
        counts.n += 1
        counts.log.append(counts.n)
        return c * 0.5 + x * counts.n, None

    return lax.scan(turn, h, xs)[0] * len(counts.log) + counts.n


def with_a_dict(h: Any, xs: Any) -> Any:
    found: dict[int, Any] = {}

    def turn(c: Any, x: Any) -> Any:
        found[len(found)] = c
        return c * 0.5 + x, None

    return lax.scan(turn, h, xs)[0] + found[7] + len(found)


def with_an_iterator(h: Any, xs: Any) -> Any:
    numbers = iter(range(100))
    return lax.scan(lambda c, x: (c * 0.5 + x * next(numbers), None), h, xs)[0]


def with_a_change_outside(h: Any, xs: Any) -> Any:
    total = jg.zeros(3, dtype="float64")

    def turn(c: Any, x: Any) -> Any:
        total[...] = total + x
        return c * 0.5 + total, None

    return lax.scan(turn, h, xs)[0], total


def with_a_caught_change(h: Any, xs: Any) -> Any:
    total = jg.zeros(3, dtype="float64")

    def turn(c: Any, x: Any) -> Any:
        try:
            total[0] = c[0]
        except Exception:
            return c, None
        return c * 0.5 + total, None

    return lax.scan(turn, h, xs)[0], total


def with_a_mapped_list(xs: Any) -> Any:
    seen: list[int] = []

    def one(x: Any) -> Any:
        seen.append(1)
        return x.sum() * len(seen)

    return lax.map(one, xs)


def with_a_wrapped_list(h: Any, xs: Any) -> Any:
    seen: list[int] = []

    def turn(c: Any, x: Any) -> Any:
        seen.append(1)
        return jg.tanh(c + x) * len(seen), c

    return lax.scan(jg.checkpoint(turn), h, xs)


IN_PYTHON: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    **{f.__name__: (f, (H, XS)) for f in (with_a_list, with_a_cell, with_attributes, with_a_dict, with_an_iterator)},
    **{f.__name__: (f, (H, XS)) for f in (with_a_change_outside, with_a_caught_change, with_a_wrapped_list)},
    "with_a_mapped_list": (with_a_mapped_list, (XS,)),
    "unroll": (lambda h, xs: lax.scan(cell, h, xs, unroll=True), (H, XS)),
    "range": (lambda h: lax.fori_loop(0, TURNS, lambda i, c: c + sum(range(i)), h), (H,)),
    "list": (lambda h, xs: lax.fori_loop(0, TURNS, lambda i, c: c + [*xs][i], h), (H, XS)),
    "parity": (lambda h: lax.fori_loop(0, TURNS, lambda i, c: c * (2 if i % 2 else 0.5), h), (H,)),
    "key": (lambda h: lax.fori_loop(0, TURNS, lambda i, c: c + {f"k{j}": 0.5 * j for j in range(50)}[f"k{i}"], h), (H,)),
    "large powers": (lambda h: lax.fori_loop(0, TURNS, lambda i, c: c + i**40, h), (H,)),
    "large products": (lambda h: lax.fori_loop(0, TURNS, lambda i, c: c + (i * 10**9) * (i * 10**9) * 10**9, h), (H,)),
    "a number as carry": (lambda h: (lax.fori_loop(0, TURNS, lambda i, c: c + i, 0), h), (H,)),
}


@pytest.mark.parametrize("name", IN_PYTHON)
def test_turns_with_effects_or_decisions_run_in_python(name: str) -> None:
    f, args = IN_PYTHON[name]
    check(f, *args, loops=0)


def test_random_numbers_and_running_statistics_are_of_every_turn() -> None:
    def drawn(xs: Any) -> Any:
        return lax.scan(lambda c, x: (c + x * jg.randn(3, dtype="float64"), None), H, xs)[0]

    jg.manual_seed(0)
    expected = drawn(XS)
    jg.manual_seed(0)
    assert_same(jg.jit(drawn)(XS), expected, rtol=1e-9)
    norms = [jg.nn.BatchNorm1d(3) for _ in range(2)]
    batches = normal(TURNS, 4, 3, dtype="float32")
    for norm, wrap in zip(norms, (lambda f: f, jg.jit), strict=True):
        wrap(lambda xs, norm=norm: lax.scan(lambda c, x: (c + norm(x), None), xs[0], xs)[0])(batches)
    assert_same(norms[1].running_mean, norms[0].running_mean, rtol=1e-6)
    assert int(norms[1].num_batches_tracked) == TURNS


# --- errors ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend_name", ["python", "cpu"])
def test_a_step_that_fails_in_a_turn_raises_what_it_does_and_leaves_the_program_usable(backend_name: str) -> None:
    def solved(b: Any, matrices: Any) -> Any:
        return lax.scan(lambda c, a: (jg.linalg.solve(a, c), c.sum()), b, matrices)

    matrices = np.stack([np.eye(2) * (1 + k) for k in range(TURNS)])
    singular = matrices.copy()
    singular[7] = 0
    b, compiled = jg.tensor([1.0, 2.0]), jg.jit(solved, backend=backend_name)
    expected = solved(b, jg.tensor(matrices))
    for _ in range(3):
        assert_same(compiled(b, jg.tensor(matrices)), expected, rtol=1e-9)
        with pytest.raises(MatrixError, match="Singular matrix"):
            compiled(b, jg.tensor(singular))


@pytest.mark.parametrize("backend_name", ["python", "cpu"])
def test_an_index_out_of_bounds_in_a_turn_raises(backend_name: str) -> None:
    def read(table: Any, places: Any) -> Any:
        return lax.scan(lambda c, k: (c + table[k], c), H, places)

    table, compiled = normal(10, 3), jg.jit(read, backend=backend_name)
    places = np.arange(TURNS) % 10
    assert_same(compiled(table, jg.tensor(places)), read(table, jg.tensor(places)), rtol=1e-9)
    places[15] = 99
    for _ in range(2):
        with pytest.raises(IndexingError, match="index 99 is out of bounds"):
            compiled(table, jg.tensor(places))


def test_an_error_of_a_turn_is_that_of_the_function() -> None:
    with pytest.raises(jg.errors.ShapeError, match=r"add"):
        jg.jit(lambda h, xs: lax.scan(lambda c, x: (c + x[:2], c), h, xs))(H, XS)


# --- histories that leave the compiled function ------------------------------------------------------------------


def test_gradients_flow_through_a_loop_to_arguments_outside() -> None:
    h = jg.tensor(H.numpy().copy(), requires_grad=True)
    compiled = jg.jit(lambda h, xs: lax.scan(cell, h, xs))

    def gradients(f: Any) -> Any:
        (first,) = jg.autograd.grad([(f(h, XS)[1] ** 2).sum()], [h], create_graph=True)
        (second,) = jg.autograd.grad([(first**2).sum()], [h])
        return first, second

    expected = gradients(lambda h, xs: lax.scan(cell, h, xs))
    for _ in range(2):
        assert_same(gradients(compiled), expected, rtol=1e-9, atol=1e-12)


def test_parts_without_history_require_no_grad() -> None:
    h = jg.tensor(H.numpy().copy(), requires_grad=True)
    f = lambda h, xs: lax.scan(lambda c, x: (c * 0.5 + x, (x * 2, c.detach(), c)), h, xs)  # noqa: E731
    flags = [x.requires_grad for x in (f(h, XS)[0], *f(h, XS)[1])]
    compiled = jg.jit(f)
    assert [x.requires_grad for x in (compiled(h, XS)[0], *compiled(h, XS)[1])] == flags == [True, False, False, True]


# --- what the loop costs -----------------------------------------------------------------------------------------


def test_one_turn_is_compiled_whatever_their_number() -> None:
    f = jg.jit(lambda h, xs: lax.scan(lambda c, x: (jg.tanh(c @ W + x), None), h, xs)[0])
    kernels = []
    for turns in (100, 10_000):
        program = f.lookup(H, normal(turns, 3)).program
        kernels.append(sum(len(turn.steps) for turn in program.turns.values()))
    assert kernels[0] == kernels[1] < 5


def test_what_all_turns_compute_alike_is_computed_before_them() -> None:
    f = jg.jit(lambda h, w: lax.scan(lambda c, _: (c * jg.exp(jg.sin(w)).sum(), None), h, None, length=TURNS)[0])
    (body,) = [node.attr("body") for node in f.lookup(H, W).traced.graph.nodes if node.op is LOOP]
    assert [node.op.name for node in body.graph.nodes] == ["multiply"]


def test_a_gradient_runs_the_turns_twice_and_keeps_only_what_it_reads() -> None:
    f = jg.jit(jg.grad(lambda h, xs: lax.scan(lambda c, x: (jg.sin(c) + x, (c * 3, x)), h, xs)[0].sum()))
    bodies = [node.attr("body") for node in f.lookup(H, XS).program.plan.graph.nodes if node.op is LOOP]
    assert [(body.carries, len(body.graph.outputs)) for body in bodies] == [(1, 2), (1, 1)]


def test_recurrent_layers_over_long_sequences_are_loops() -> None:
    for layer in (jg.nn.LSTM(3, 4, bidirectional=True), jg.nn.GRU(3, 4), jg.nn.RNN(3, 4)):
        x = normal(80, 2, 3, dtype="float32")
        f = lambda x, layer=layer: layer(x)[0]  # noqa: E731
        check(f, x, loops=1 + (layer.directions == 2), rtol=1e-5)
