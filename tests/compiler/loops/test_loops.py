"""Loops: errors in a turn, gradients that leave the program, and what one turn costs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad import lax
from jitgrad.compiler.loops.loop_op import LOOP
from jitgrad.core.errors import IndexingError, MatrixError
from tests.compiled import assert_same
from tests.compiler.loops.comparison import TURNS, XS, H, W, cell, check, loops_of, normal
from tests.wrong_kernels import wrong_functions

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
    for layer in (jg.nn.LSTM(2, 3, bidirectional=True), jg.nn.GRU(2, 3), jg.nn.RNN(2, 3)):
        x = normal(66, 2, 2, dtype="float32")
        f = lambda x, layer=layer: layer(x)[0]  # noqa: E731
        check(f, x, loops=1 + (layer.directions == 2), rtol=1e-5)


def test_explain_and_kernels_show_what_a_turn_runs() -> None:
    f = jg.jit(jg.value_and_grad(loss_of_last), backend="cpu")
    explanation = f.explain(H, XS)
    assert [turn.name for turn in explanation.turns] == [
        f"each of {TURNS} turns of scan_turn",
        f"each of {TURNS} turns of scan_turn_gradient",
    ]
    assert str(explanation.turns[1]) in str(explanation)
    kernels = [kernel for kernel in f.kernels(H, XS) if kernel.part != "program"]
    assert {kernel.part for kernel in kernels} == {"turn of program"}
    assert len(kernels) == sum(turn.fused for turn in explanation.turns)


def loss_of_last(h: Any, xs: Any) -> Any:
    return lax.scan(lambda c, x: (jg.tanh(c * 0.5 + x), None), h, xs)[0].sum()


def test_large_parts_that_start_within_a_cache_line_are_right(tune: Any) -> None:
    tune(min_nontemporal_result=4096)
    xs = normal(TURNS, 33, 41)  # of 10,824 bytes each

    def f(xs: Any) -> Any:
        return lax.scan(lambda c, x: (c * 0.5 + x, (c * 2, c.sum())), xs[0], xs)

    assert_same(jg.jit(f, backend="cpu", check="off")(xs), f(xs), rtol=1e-12, atol=1e-12)


@pytest.fixture
def wrong_tanh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    yield from wrong_functions(monkeypatch, {"tanh": "sin"})


@pytest.mark.usefixtures("wrong_tanh")
def test_a_loop_with_a_wrong_kernel_is_found_and_runs_op_by_op() -> None:
    def f(h: Any, xs: Any) -> Any:
        return lax.scan(lambda c, x: (jg.tanh(c * 0.5 + x), None), h, xs)[0]

    compiled = jg.jit(f)
    with pytest.warns(jg.errors.MismatchWarning, match=r"run one by one from now on(.|\n)*test_loops.py:\d+ .*tanh"):
        assert_same(compiled(H, XS), f(H, XS))
    assert_same(compiled(H, XS), f(H, XS), rtol=1e-12)
    assert loops_of(compiled, H, XS) == 0
