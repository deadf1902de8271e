"""Isomorphic subgraphs are compiled once, nearly isomorphic ones are not, and all results are correct."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad import optim
from jitgrad.compiler.isomorphic import outline
from jitgrad.compiler.passes import fuse as fusing
from jitgrad.compiler.pipeline import run_passes
from jitgrad.compiler.plan import KernelStep
from jitgrad.compiler.tuning import Tuning
from jitgrad.core.aval import Aval
from jitgrad.core.errors import VerifyError
from jitgrad.core.ir import Graph, TraceNode, Value
from jitgrad.jit.decorator import jit
from jitgrad.jit.executable import Executable
from jitgrad.runtime.program import Program
from jitgrad.testing.programs import RandomProgram, random_program

MANY = Tuning().min_isomorphic_parts
COUNT = MANY + 3


def arrays(count: int, *shape: int, seed: int = 0) -> list[jg.Tensor]:
    rng = np.random.default_rng(seed)
    return [jg.tensor(rng.standard_normal(shape).astype("f4")) for _ in range(count)]


def program_of(function: Any, *args: Any) -> Program:
    compiled: Executable = jit(function, check="off").lookup(*args)
    return compiled.program


def kernel_steps(program: Program) -> list[KernelStep]:
    return [step for step in program.plan.steps if isinstance(step, KernelStep)]


def momentum(ps: list[Any], bs: list[Any], gs: list[Any], rate: Any) -> Any:
    rows = []
    for p, b, g in zip(ps, bs, gs, strict=True):
        b = 0.9 * b + g
        rows.append((p - rate * b, b))
    return rows


def assert_same(found: Any, expected: Any) -> None:
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        assert np.array_equal(a.numpy(), b.numpy(), equal_nan=True)


@pytest.fixture
def fused_nodes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many nodes each run of the fuser was given."""
    found: list[int] = []

    class Counting(fusing.Fuser):
        def __init__(self, graph: Graph, tuning: Tuning) -> None:
            found.append(len(graph.nodes))
            super().__init__(graph, tuning)

    monkeypatch.setattr(fusing, "Fuser", Counting)
    return found


@pytest.mark.parametrize("count", [COUNT, 3 * COUNT])
def test_one_update_is_fused_and_lowered_for_any_number_of_tensors(count: int, fused_nodes: list[int]) -> None:
    ps, bs, gs = (arrays(count, 7, seed=k) for k in range(3))

    program = program_of(momentum, ps, bs, gs, 0.1)

    steps = kernel_steps(program)
    assert len(steps) == count and len(program.plan.steps) == count
    assert len({step.lowered for step in steps}) == len(program.kernels) == 1
    assert sum(fused_nodes) == len(outline(program_graph(momentum, ps, bs, gs, 0.1), Tuning()).graphs[1].nodes) == 4


def program_graph(function: Any, *args: Any) -> Graph:
    return jit(function, check="off").lookup(*args).traced.graph


def test_updates_of_all_tensors_are_right_and_in_their_places() -> None:
    ps, bs, gs = (arrays(COUNT, 7, seed=k) for k in range(3))

    rows = jit(momentum, check="off")(ps, bs, gs, 0.1)

    for row, expected in zip(rows, momentum(ps, bs, gs, 0.1), strict=True):
        assert_same(row, expected)


@pytest.mark.parametrize("count", [COUNT, 2 * COUNT])
def test_adam_in_place_is_one_kernel_for_its_numbers_and_one_per_tensor(count: int) -> None:
    ps = [p.requires_grad_() for p in arrays(count, 5)]
    for p, g in zip(ps, arrays(count, 5, seed=1), strict=True):
        p.grad = g
    step = jit(optim.Adam(ps, lr=0.1).step)

    step()

    program = step.lookup().program
    steps = kernel_steps(program)
    assert len(steps) == count + 1 and len(program.kernels) == 2
    assert len({step.lowered for step in steps}) == 2
    written = {id(p.location.buffer) for step in steps for p in step.writes if p.location is not None}
    inputs = set(map(id, program.plan.inputs))
    assert len(written & inputs) == 3 * count + 1  # parameters, both moments, and the count of steps: over themselves
    assert step.cache_info().fallbacks == 0


def test_adam_of_many_is_adam_of_few() -> None:
    def trained(compile: Callable[..., Any], count: int) -> list[jg.Tensor]:
        ps = [p.requires_grad_() for p in arrays(COUNT, 5)[:count]]
        optimizer = optim.Adam(ps, lr=0.1)
        step = compile(optimizer.step)
        for k in range(3):
            for p, g in zip(ps, arrays(COUNT, 5, seed=k)[:count], strict=True):
                p.grad = g
            step()
        return [p.detach() for p in ps]

    assert_same(trained(jit, COUNT)[:4], trained(jit, 4))


# --- nearly alike ----------------------------------------------------------------------------------------------------


def odd_ones() -> dict[str, tuple[Callable[[Any], Any], Any]]:
    """Parts that differ from ``usual`` in one thing."""
    x = np.linspace(-2, 2, 6, dtype="f4")
    return {
        "dtype": (usual, jg.tensor(x.astype("f8"))),
        "shape": (usual, jg.tensor(x.reshape(2, 3))),
        "literal": (lambda x: jg.sum(jg.leaky_relu(x, 0.1) * 3.0 + x), jg.tensor(x)),
        "attribute": (lambda x: jg.sum(jg.leaky_relu(x, 0.2) * 2.0 + x), jg.tensor(x)),
        "wiring": (lambda x: jg.sum(jg.leaky_relu(x, 0.1) * 2.0 + jg.leaky_relu(x, 0.1)), jg.tensor(x)),
        "op": (lambda x: jg.sum(jg.leaky_relu(x, 0.1) * 2.0 - x), jg.tensor(x)),
        "type of a literal": (lambda x: jg.sum(jg.leaky_relu(x, 0.1) * 2 + x), jg.tensor(x.astype("i4"))),
        "length": (usual, jg.tensor(x[:5])),
    }


def usual(x: Any) -> Any:
    return jg.sum(jg.leaky_relu(x, 0.1) * 2.0 + x)


@pytest.mark.parametrize("name", odd_ones())
def test_a_part_that_differs_in_one_thing_is_computed_as_it_is(name: str) -> None:
    odd, x = odd_ones()[name]

    def f(xs: list[Any], x: Any) -> list[Any]:
        half = len(xs) // 2
        return [*map(usual, xs[:half]), odd(x), *map(usual, xs[half:])]

    xs = arrays(COUNT, 6)
    outlined = outline(program_graph(f, xs, x), Tuning())

    assert [len(kind) for kind in outlined.kinds] == [COUNT]
    assert len(outlined.graphs[0].nodes) >= 3
    assert_same(jit(f, check="off")(xs, x), f(xs, x))


def test_zeros_of_both_signs_and_true_are_different_literals() -> None:
    def f(xs: list[Any]) -> list[Any]:
        return [jg.copysign(x, c) for x in xs for c in (0.0, -0.0)] + [jg.maximum(x, c) for x in xs for c in (1, True)]

    xs = [jg.tensor(np.array([-2.0, 3.0], "f4")) for _ in range(COUNT)]
    mine = [jg.tensor(np.array([-2.0, 3.0], "f4") + k) for k in range(2 * COUNT)]

    assert_same(jit(f, check="off")(xs), f(xs))
    by_sign = program_graph(lambda ys: [jg.copysign(y, -0.0 if k % 2 else 0.0) for k, y in enumerate(ys)], mine)
    signs = outline(by_sign, Tuning())
    assert [len(kind) for kind in signs.kinds] == [COUNT, COUNT]


def test_two_kinds_that_take_turns_keep_their_results_apart() -> None:
    def f(xs: list[Any]) -> list[Any]:
        return [jg.exp(x) if k % 2 else jg.tanh(x) * 2.0 for k, x in enumerate(xs)]

    xs = arrays(2 * COUNT, 3)
    program = program_of(f, xs)

    assert len(kernel_steps(program)) == 2 * COUNT and len(program.kernels) == 2
    assert_same(jit(f, check="off")(xs), jit(f, check="off")(xs[:4]) + jit(f, check="off")(xs[4:]))


def test_parts_from_different_lines_say_so() -> None:
    def f(xs: list[Any]) -> list[Any]:
        a = [jg.exp(x) for x in xs]
        return a + [jg.exp(-x) for x in xs]

    xs = arrays(COUNT, 3)
    first = f.__code__.co_firstlineno
    report = jit(f, check="off").explain(xs)

    assert {o.line for step in report.steps[:2] for o in step.origins} <= {first + 1, first + 2}
    assert {o.line for step in report.steps for o in step.origins} == {first + 1, first + 2}
    assert report.fused == 1 * COUNT  # both read the same array: exp(x) and exp(-x) are one kernel


# --- what connects parts ---------------------------------------------------------------------------------------------


def test_a_number_computed_from_all_is_waited_for() -> None:
    def f(ps: list[Any], gs: list[Any]) -> list[Any]:
        total = sum((jg.sum(g * g) for g in gs), 0.0)
        scale = 1.0 / (jg.sqrt(total) + 1.0)
        return [p - scale * g for p, g in zip(ps, gs, strict=True)]

    ps, gs = arrays(COUNT, 5), arrays(COUNT, 5, seed=1)
    found = jit(f)(ps, gs)

    for a, b in zip(found, f(ps, gs), strict=True):
        assert np.allclose(a.numpy(), b.numpy(), rtol=1e-5)


def test_numbers_that_some_parts_make_and_many_read_come_in_time() -> None:
    """The first part makes a number for all; the last reads what it is made of again."""

    def f(xs: list[Any]) -> list[Any]:
        made = jg.exp(xs[0])
        first = jg.sum(made)
        rows = [x * first + 1.0 for x in xs[1:]]
        second = first * 2.0
        return [*rows, *(x / second for x in xs[1:]), made * second]

    xs = arrays(COUNT, 5)
    outlined = outline(program_graph(f, xs), Tuning())
    assert [len(kind) for kind in outlined.kinds] == [COUNT - 1] and len(outlined.shared) == 2

    for a, b in zip(jit(f, check="off")(xs), f(xs), strict=True):
        assert np.allclose(a.numpy(), b.numpy(), rtol=1e-5)


def test_parts_that_make_what_others_share_are_not_folded_nor_are_those_of_numbers_alone() -> None:
    def f(xs: list[Any]) -> list[Any]:
        sums = [jg.sum(x * 2.0) for x in xs]
        return [s + t for s in sums for t in sums]

    xs = arrays(MANY, 3)

    assert not outline(program_graph(f, xs), Tuning()).kinds
    for a, b in zip(jit(f, check="off")(xs), f(xs), strict=True):
        assert np.allclose(a.numpy(), b.numpy(), rtol=1e-5)


def test_a_shared_number_that_turns_out_to_be_known_is_used_as_such() -> None:
    def f(xs: list[Any]) -> list[Any]:
        one = jg.asarray(np.array(0.5)) * 2.0
        return [x * one + one for x in xs]

    xs = arrays(COUNT, 3)
    report = jit(f, check="off").explain(xs)

    assert outline(program_graph(f, xs), Tuning()).shared
    assert (report.launches, report.steps[0].ops) == (COUNT, ("add",)) or report.steps[0].inputs == 1
    assert_same(jit(f, check="off")(xs), f(xs))


def test_parts_that_share_an_array_are_one_part() -> None:
    def f(xs: list[Any], mask: Any) -> list[Any]:
        return [x * mask for x in xs]

    xs, (mask,) = arrays(COUNT, 3), arrays(1, 3, seed=5)

    assert not outline(program_graph(f, xs, mask), Tuning()).kinds
    assert_same(jit(f, check="off")(xs, mask), f(xs, mask))


def test_results_that_are_listed_twice_or_passed_through() -> None:
    def f(xs: list[Any], n: Any) -> list[Any]:
        made = [(jg.exp(x) * n, jg.sum(x), x.reshape((3, 1))) for x in xs]
        return [y for row in made for y in (*row, row[0])] + [n * 2.0, n, *xs]

    xs, n = arrays(COUNT, 3), jg.tensor(np.float32(3.0))
    found = jit(f, check="off")(xs, n)

    for a, b in zip(found, f(xs, n), strict=True):
        assert np.allclose(a.numpy(), b.numpy(), rtol=1e-6)
    assert all(a is b for a, b in zip(found[-COUNT:], xs, strict=True))


def test_gradients_of_many_losses() -> None:
    def f(xs: list[Any], scale: Any) -> Any:
        return jg.value_and_grad(lambda xs: sum((jg.sum(jg.tanh(x * scale)) for x in xs), 0.0))(xs)

    xs, scale = arrays(COUNT, 4), jg.tensor(np.float32(0.5))
    (value, grads), (expected, wanted) = jit(f)(xs, scale), f(xs, scale)

    assert np.allclose(value.numpy(), expected.numpy(), rtol=1e-5)
    for a, b in zip(grads, wanted, strict=True):
        assert np.allclose(a.numpy(), b.numpy(), rtol=1e-5)


def test_backward_from_outside_through_many_parts() -> None:
    def f(xs: list[Any]) -> list[Any]:
        return [jg.tanh(x) * x for x in xs]

    xs = [x.requires_grad_() for x in arrays(COUNT, 4)]
    ys = [x.detach().requires_grad_() for x in xs]
    for outs in (jit(f)(xs), f(ys)):
        sum((jg.sum(y) for y in outs), 0.0).backward()

    for x, y in zip(xs, ys, strict=True):
        assert np.allclose(x.grad.numpy(), y.grad.numpy(), rtol=1e-5)


# --- copies of random programs ---------------------------------------------------------------------------------------


def copies(program: RandomProgram, count: int) -> tuple[Callable[..., Any], list[list[jg.Tensor]]]:
    rng = np.random.default_rng(program.seed)
    rows = [[jg.tensor(rng.uniform(-1, 1, s).astype("f4")) for s in program.shapes] for _ in range(count)]
    return lambda rows: [y for row in rows for y in program(*row)], rows


@pytest.mark.parametrize("seed", range(12))
def test_folded_copies_of_random_programs_give_the_same_bits(seed: int, tune: Any) -> None:
    f, rows = copies(random_program(seed), 16)
    expected = jit(f, check="off")(rows)
    tune(min_isomorphic_parts=16)

    assert outline(program_graph(f, rows), Tuning(min_isomorphic_parts=16)).kinds
    assert_same(jit(f, check="off")(rows), expected)


# --- looking inside, and the verifier --------------------------------------------------------------------------------


def test_stages_show_one_of_each_kind_and_at_last_all() -> None:
    ps, bs, gs = (arrays(COUNT, 7, seed=k) for k in range(3))
    f = jit(momentum, check="off")

    nodes = [len(f.graph(ps, bs, gs, 0.1, stage=stage).nodes) for stage in ("trace", "fuse", "inline")]
    assert nodes == [4 * COUNT, 1, COUNT]


def test_explain_says_why_the_shared_numbers_are_apart() -> None:
    def f(xs: list[Any], n: Any) -> list[Any]:
        twice = n * 2.0
        return [x * twice for x in xs]

    report = jit(f, check="off").explain(arrays(COUNT, 3), jg.tensor(np.float32(3.0)))

    assert report.fused == COUNT + 1
    (apart,) = report.apart
    assert (apart.producer, apart.consumer) == ("multiply", "multiply")
    assert f"{COUNT} isomorphic subgraphs" in apart.reason


def test_a_value_used_before_it_is_made_is_still_found() -> None:
    graph = program_graph(momentum, *(arrays(COUNT, 7, seed=k) for k in range(3)), 0.1)
    broken = Graph(graph.name, graph.inputs, (*graph.nodes[1:], graph.nodes[0]), graph.outputs)

    with pytest.raises(VerifyError, match="before it is defined"):
        run_passes(broken)


def test_a_node_that_breaks_its_rule_is_found_in_any_part() -> None:
    graph = program_graph(momentum, *(arrays(COUNT, 7, seed=k) for k in range(3)), 0.1)
    node = graph.nodes[-1]
    wrong = Value(Aval((9,), node.out.aval.dtype))
    nodes = (*graph.nodes[:-1], TraceNode(node.op, node.ins, (wrong,), node.attrs, node.origin))
    outputs = tuple(wrong if a is node.out else a for a in graph.outputs)

    with pytest.raises(VerifyError, match="the graph says"):
        run_passes(Graph(graph.name, graph.inputs, nodes, outputs))
