"""Decisions of fusion: the number of kernels, their operands, and the effect of one unfusable op."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad import nn, optim
from jitgrad.backends.cpu.emit import emit_kernel
from jitgrad.compiler.fusion.fuser import Fuser
from jitgrad.compiler.passes.cleanup import eliminate_dead
from jitgrad.compiler.plan import KernelStep
from jitgrad.compiler.tuning import Tuning
from jitgrad.jit.decorator import JitFunction, jit
from jitgrad.jit.executable import Executable
from jitgrad.runtime.program import Program

RNG = np.random.default_rng(0)


def tensor(*shape: int) -> jg.Tensor:
    return jg.tensor(RNG.normal(size=shape).astype(np.float32))


def program_of(function: Any, *args: Any) -> Program:
    compiled: Executable = (function if isinstance(function, JitFunction) else jit(function, check="off")).lookup(*args)
    return compiled.program


def kernels(program: Program) -> list[KernelStep]:
    return [s for s in program.plan.steps if isinstance(s, KernelStep)]


def words(program: Program) -> list[str]:
    return ["kernel" if isinstance(s, KernelStep) else s.op.name for s in program.plan.steps]


def gelu_loss(x: Any, w: Any) -> Any:
    h = x * w
    return ((0.5 * h * (1.0 + jg.tanh(0.7978845608 * (h + 0.044715 * h**3)))) ** 2).sum()


def test_a_chain_with_its_gradients_is_one_pass_over_its_inputs() -> None:
    program = program_of(jg.value_and_grad(gelu_loss, argnums=(0, 1)), tensor(4096), tensor(4096))

    (step,) = kernels(program)
    assert words(program) == ["kernel"]
    assert sum(p.aval.size == 4096 for p in step.reads) == len(step.reads) == 2
    assert sorted(p.aval.size for p in step.writes) == [1, 4096, 4096]


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp", "var", "std"])
def test_rowwise_functions_are_one_kernel(name: str) -> None:
    assert words(program_of(lambda x: getattr(jg, name)(x, -1 if "s" in name[:3] else 1), tensor(30, 50))) == ["kernel"]


def test_softmax_with_its_gradient_is_one_kernel() -> None:
    assert words(program_of(jg.grad(lambda x: (jg.softmax(x, -1) ** 2).sum()), tensor(30, 50))) == ["kernel"]


def test_layer_norm_forward_and_backward_are_one_kernel() -> None:
    """Rows for x, columns for the scale and the shift."""
    def loss(x: Any, g: Any, b: Any) -> Any:
        return (jg.gelu(jg.layer_norm(x, (50,), g, b)) ** 2).sum()

    program = program_of(jg.value_and_grad(loss, argnums=(0, 1, 2)), tensor(30, 50), tensor(50), tensor(50))

    assert words(program) == ["kernel"]


def test_cross_entropy_of_a_batch_is_two_kernels_at_most() -> None:
    labels = jg.tensor(RNG.integers(0, 10, 32))

    program = program_of(jg.value_and_grad(lambda x: jg.cross_entropy(x, labels)), tensor(32, 10))

    assert words(program) in (["kernel"], ["kernel", "kernel"])


def test_what_follows_a_sum_over_rows_is_in_its_kernel() -> None:
    assert words(program_of(lambda x, y: x.sum(axis=0) * y + y, tensor(30, 50), tensor(50))) == ["kernel"]


def test_a_row_that_all_rows_share_is_computed_once() -> None:
    assert words(program_of(lambda x, y: x * jg.exp(y), tensor(30, 50), tensor(50))) == ["kernel", "kernel"]


def test_the_truth_of_float16_is_reduced_in_a_kernel() -> None:
    x = np.ones((30, 50), np.float16)

    assert words(program_of(lambda x: (jg.any(x * 2.0, axis=1), jg.all(x, axis=1)), x)) == ["kernel"]


@pytest.mark.parametrize("odd", ["custom", "sort", "cumulative_sum"])
def test_an_op_without_scalar_form_unfuses_nobody(odd: str) -> None:
    """The chain before it and the chain after it are a kernel each; what stands beside it joins one of them."""
    custom = jg.custom_op(forward=lambda x: np.sort(x), vjp=lambda g, out, x: (g,), abstract=lambda x: x)
    op = {"custom": custom, "sort": lambda x: jg.sort(x), "cumulative_sum": lambda x: jg.cumulative_sum(x, axis=0)}[odd]

    def f(x: Any) -> Any:
        before = jg.tanh(x * 2.0) + 1.0
        beside = jg.exp(before) * 0.5
        after = jg.sin(op(before)) * beside
        return after * 3.0 - beside

    found = words(program_of(f, tensor(100)))
    assert found.count("kernel") == 2
    assert found.index("kernel") == 0 and found[-1] == "kernel"


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(20, 30), nn.GELU(), nn.Linear(30, 25), nn.ReLU(), nn.Linear(25, 7))

    def forward(self, x: Any) -> Any:
        return self.layers(x)


def training_step(optimizer_class: Any) -> JitFunction:
    model = Mlp()
    optimizer = optimizer_class(model.parameters(), lr=1e-3)

    @jit(check="off")
    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = jg.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


@pytest.mark.parametrize("optimizer", [optim.SGD, optim.Adam])
def test_between_neighbouring_products_is_at_most_one_kernel(optimizer: Any) -> None:
    step = training_step(optimizer)
    x, y = tensor(16, 20), jg.tensor(RNG.integers(0, 7, 16))
    step(x, y)
    found = words(program_of(step, x, y))

    products = [k for k, word in enumerate(found) if word == "matmul"]
    assert len(products) == 8  # 3 forward, 5 backward: the gradient of the data is not asked for
    between = [b - a - 1 for a, b in zip(products[:-1], products[1:], strict=True)]
    forward = between[:2]
    assert forward == [1, 1]
    assert set(found) <= {"matmul", "kernel", "copy"}
    assert sum(n > 1 for n in between) <= 1, found


def gru_step(steps: int) -> tuple[JitFunction, tuple[Any, ...]]:
    cell, head = nn.GRUCell(6, 8), nn.Linear(8, 1)
    parameters = [*cell.parameters(), *head.parameters()]
    optimizer = optim.SGD(parameters, lr=0.01)

    @jit(check="off")
    def step(xs: Any, y: Any) -> Any:
        optimizer.zero_grad()
        h = jg.zeros((4, 8))
        for t in range(steps):
            h = cell(xs[t], h)
        loss = jg.mse_loss(head(h), y)
        loss.backward()
        optimizer.step()
        return loss

    return step, (tensor(steps, 4, 6), tensor(4, 1))


def test_a_long_recurrence_needs_few_different_kernels() -> None:
    step, args = gru_step(120)

    program = program_of(step, *args)

    assert len(kernels(program)) > 120
    assert len(program.kernels) <= 16, [k.name for k in program.kernels]


def test_kernel_text_is_the_same_in_every_trace() -> None:
    """Nothing in it depends on the addresses of objects: it is what kernels are found by, also on disk."""
    def texts() -> list[str]:
        step = training_step(optim.Adam)
        return [k.source for k in program_of(step, tensor(16, 20), jg.tensor(np.zeros(16, np.int64))).kernels]

    assert texts() == texts() == texts()


def test_refusals_say_why() -> None:
    compiled = jit(lambda x, w: jg.exp(jg.tanh(x) @ w) + 1.0, check="off").lookup(tensor(3, 3), tensor(3, 3))
    fuser = Fuser(eliminate_dead(compiled.traced.graph), Tuning())
    fuser.run()

    pairs = {(r.producer.op.name, r.consumer.op.name): r.reason for r in fuser.refusals}
    assert set(pairs) >= {("tanh", "matmul"), ("matmul", "exp")}
    assert all(pairs.values())


def long_chain(length: int) -> JitFunction:
    @jit(check="off")
    def f(x: Any) -> Any:
        for _ in range(length // 2):
            x = x * 0.999 + 0.001
        return x

    return f


@pytest.mark.parametrize("length", [5_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_long_chains_do_not_recurse(length: int) -> None:
    f = long_chain(length)

    found = f(jg.full((2,), 0.5)).numpy()

    np.testing.assert_allclose(found, 1.0 - 0.5 * 0.999 ** (length // 2), rtol=1e-2)


def test_rows_are_fetched_ahead_where_their_elements_lie_side_by_side() -> None:
    function = jit(lambda x, w: jg.softmax(x * w, axis=-1), check="off")
    x, w = tensor(8, 600), tensor(600)

    def fetched(x: Any) -> int:
        (step,) = kernels(program_of(function, x, w))
        return emit_kernel(step.lowered.kernel, step.lowered.schedule)[0].text.count("prefetch(")

    assert fetched(x) == 1  # x, whose next row is new; w is the same for every row
    assert fetched(tensor(8, 1)) == 0
    assert fetched(x[::-1]) == 1


@pytest.mark.parametrize("count", [1, 3, 4, 7])
def test_partial_rows_are_merged_a_few_in_a_loop(count: int) -> None:
    """Loops are what an epilogue takes to compile; with many rows in one, those of 4096 bytes push each other out of L1."""
    xs = [np.ones((64, 8), np.float32) for _ in range(count)]

    kernels = jit(lambda *xs: tuple(jg.sum(jg.exp(x) * xs[0], axis=0) for x in xs)).lookup(*xs).program.kernels

    (kernel,) = kernels
    assert kernel.epilogue is not None
    assert kernel.epilogue.text.count("for k in range(1, blocks)") == -(-count // 3)


def test_assigning_to_everything_is_one_kernel_over_the_old_values() -> None:
    """``p[:] = p - rate * g``, with a broadcast and a cast among the values assigned."""
    p, m, g = (jg.tensor(np.full((3, 4), value, np.float32)) for value in (1.0, 5.0, 2.0))

    @jit(check="off")
    def step(rate: float) -> None:
        p[:] = p - rate * g
        m[...] = np.arange(4)

    step(0.25)

    report = step.explain(0.25)
    assert {s.kind for s in report.steps} == {"fused"}
    assert report.in_place == 2
    assert p.tolist() == [[0.5] * 4] * 3
    assert m.tolist() == [[0.0, 1.0, 2.0, 3.0]] * 3
