"""explain: the steps, their bytes and lines, reasons against fusion, and values kept for backward."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import jitgrad as jg
from jitgrad import nn, optim


def array(*shape: int, grad: bool = False) -> jg.Tensor:
    return jg.tensor(np.random.default_rng(0).standard_normal(shape).astype("f4"), requires_grad=grad)


def line_of(function: object, text: str) -> int:
    """The number of the first line of ``function`` that contains ``text``."""
    lines, first = inspect.getsourcelines(function)
    return next(first + k for k, line in enumerate(lines) if text in line)


def test_a_chain_is_one_kernel_that_moves_every_array_once():
    report = jg.jit(lambda x, y: jg.tanh(x * y) + x).explain(array(8, 4), array(8, 4))

    assert (report.fused, report.launches, report.unfused_ops) == (1, 1, [])
    assert (report.bytes_read, report.bytes_written) == (2 * 8 * 4 * 4, 8 * 4 * 4)
    assert report.steps[0].ops == ("multiply", "tanh", "add")
    assert report.steps[0].inputs == 2 and report.steps[0].outputs == 1


def test_a_broadcast_operand_counts_its_own_size():
    report = jg.jit(lambda x, b: x + b).explain(array(8, 4), array(4))

    assert report.bytes_read == (8 * 4 + 4) * 4


def test_a_library_call_splits_kernels_and_the_reason_names_both_lines():
    def layer(x, w):
        h = jg.tanh(x)
        h = h @ w
        return jg.exp(h)

    report = jg.jit(layer).explain(array(4, 4), array(4, 4))

    assert (report.fused, report.unfused_ops, report.launches) == (2, ["matmul"], 3)
    pairs = {(a.producer, a.producer_origin.line, a.consumer, a.consumer_origin.line): a.reason for a in report.apart}
    tanh, matmul, exp = (line_of(layer, text) for text in ("jg.tanh", "@ w", "jg.exp"))
    assert pairs.keys() == {("tanh", tanh, "matmul", matmul), ("matmul", matmul, "exp", exp)}
    assert all("library call" in reason for reason in pairs.values())


def test_neighbours_in_one_kernel_are_not_listed_as_apart():
    report = jg.jit(lambda x: (jg.exp(x) / jg.exp(x).sum(axis=1, keepdims=True)).sum()).explain(array(4, 4))

    assert report.fused == 1
    assert report.apart == ()


def test_views_are_steps_that_cost_nothing():
    report = jg.jit(lambda x: x.T @ x).explain(array(4, 3))

    assert [step.kind for step in report.steps] == ["view", "unfused"]
    assert report.unfused_ops == ["matmul"]
    assert report.steps[0].bytes_read == report.steps[0].bytes_written == 0


def test_backward_saves_what_a_library_call_made_and_computes_the_rest_again():
    def loss(x, w):
        h = x @ w
        return jg.tanh(h).sum()

    report = jg.jit(loss).explain(array(4, 4), array(4, 4, grad=True))

    assert [k.op for k in report.saved] == ["matmul"]
    assert [k.op for k in report.recomputed] == ["tanh"]
    assert report.recomputed[0].origin.line == line_of(loss, "jg.tanh")
    assert report.backward is not None and report.backward.unfused_ops == ["matmul"]
    assert report.backward.backward is None


def test_without_gradients_there_is_no_backward():
    report = jg.jit(lambda x: jg.tanh(x).sum()).explain(array(4))

    assert report.backward is None and report.kept == ()


def test_backward_steps_carry_the_lines_of_the_forward_ops():
    def loss(x):
        y = jg.tanh(x)
        return (y * y).sum()

    report = jg.jit(loss).explain(array(4, grad=True))

    assert report.backward is not None
    lines = {origin.line for step in report.backward.steps for origin in step.origins}
    assert lines == {line_of(loss, "jg.tanh"), line_of(loss, "y * y")}


def test_lines_of_a_whole_step_are_those_of_the_ops_they_differentiate():
    w = array(4, grad=True)

    def step(x):
        y = jg.tanh(x * w)
        loss = y.sum()
        loss.backward()
        return loss

    report = jg.jit(step).explain(array(4))

    lines = {origin.line for s in report.steps for origin in s.origins}
    assert line_of(step, "jg.tanh") in lines
    assert line_of(step, "loss.backward()") not in lines


def training_step() -> tuple[nn.Linear, jg.Tensor, object]:
    model = nn.Linear(4, 3)
    optimizer = optim.SGD(model.parameters(), lr=0.1)

    @jg.jit
    def step(x):
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    return model, array(5, 4), step


def test_updates_are_written_over_the_parameters():
    _, x, step = training_step()

    assert step.explain(x).in_place >= 1


@pytest.mark.parametrize("measure", [False, True])
def test_explaining_changes_nothing(measure: bool):
    model, x, step = training_step()
    before = [p.numpy().copy() for p in (t.detach() for t in model.parameters())]

    report = step.explain(x, measure=measure)

    for p, old in zip(model.parameters(), before, strict=True):
        np.testing.assert_array_equal(p.detach().numpy(), old)
        assert p.grad is None
    assert all((s.seconds is not None) == (measure and s.kind != "view") for s in report.steps)


def test_measuring_a_differentiable_function_times_both_programs():
    report = jg.jit(lambda x, w: jg.tanh(x @ w).sum()).explain(array(3, 3), array(3, 3, grad=True), measure=True)

    assert report.backward is not None
    for step in (*report.steps, *report.backward.steps):
        if step.kind != "view":
            assert step.seconds is not None and step.seconds > 0
            assert step.gigabytes_per_second is not None and step.gigabytes_per_second > 0


def test_steps_of_one_structure_are_measured_one_by_one():
    """The second step's kernel is a duplicate of the first's, which is not in the program that runs it alone."""
    f = jg.jit(lambda x, w: jg.tanh(jg.tanh(jg.tanh(x @ w) @ w) @ w) @ w)
    report = f.explain(array(3, 3), array(3, 3), measure=True)

    assert [step.seconds is not None for step in report.steps] == [True] * 7


@pytest.mark.parametrize("shape", [(0, 3), (), (1,), pytest.param((0, 3), marks=pytest.mark.numba, id="native")])
def test_steps_over_nothing_or_one_number_can_be_measured(shape):
    report = jg.jit(lambda x: jg.tanh(x) + 1).explain(array(*shape), measure=True)

    assert report.bytes_read == report.bytes_written == int(np.prod(shape)) * 4


@pytest.mark.numba
def test_steps_with_non_temporal_stores_can_be_measured():
    x = jg.ones(2 << 20)  # 32 MB in all, which kernels write past the caches, in whole aligned lines

    report = jg.jit(lambda x, y: (jg.exp(x) + y, x * y)).explain(x, jg.ones(2 << 20), measure=True)

    assert report.steps[0].seconds > 0 and report.steps[0].arithmetic_seconds > 0


def test_a_function_that_computes_nothing_has_no_steps():
    report = jg.jit(lambda x: x).explain(array(3))

    assert (report.launches, report.bytes_read, report.apart) == (0, 0, ())
    assert str(report).startswith("<lambda>: 0 ops -> 0 steps")


def test_the_text_says_what_the_fields_say():
    def loss(x, w):
        return jg.tanh(x @ w).sum()

    text = str(jg.jit(loss).explain(array(4, 4), array(4, 4, grad=True)))

    line = f"test_explain.py:{line_of(loss, 'jg.tanh')}"
    assert text.startswith("loss: 3 ops -> 2 steps, 1 fused, 1 unfused\n")
    assert f"matmul ({line}) -> tanh ({line}): matmul: it is a library call" in text
    assert f"saved for backward: f32[4,4] matmul ({line})" in text
    assert f"recomputed in backward: tanh ({line})" in text
    assert "\nloss backward: " in text


@pytest.mark.numba
def test_measured_kernels_are_compared_with_a_copy_and_with_their_arithmetic():
    x = jg.ones((512, 512))
    report = jg.jit(lambda x: (jg.exp(x) * 2.0, x[:2] @ x)).explain(x, measure=True)
    kernel = next(step for step in report.steps if step.kind == "fused")
    product = next(step for step in report.steps if step.kind == "unfused")

    assert kernel.fastest is not None and kernel.seconds is not None and 0 < kernel.fastest <= kernel.seconds
    assert kernel.copy_seconds is not None and kernel.arithmetic_seconds is not None and kernel.of_limit is not None
    assert kernel.of_limit == max(kernel.copy_seconds, kernel.arithmetic_seconds) / kernel.fastest
    assert f"% of {kernel.limit}" in str(kernel) and kernel.limit in ("memory", "arithmetic")
    assert (product.copy_seconds, product.of_limit, product.limit) == (None, None, "")


@pytest.mark.numba
@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.sum(),
        lambda x: x.sum(0),
        lambda x: jg.exp(x - x.max(1, keepdims=True)).sum(1),
        lambda x: x.T + x,
        lambda x: jg.exp(x[:, :4]) * 2.0 + x[:, 4:8],
    ],
)
def test_kernels_of_all_forms_are_measured(f):
    report = jg.jit(f, check="off").explain(jg.ones((512, 512)), measure=True)

    assert all(step.copy_seconds for step in report.steps if step.bytes_read + step.bytes_written >= 1 << 18)


def test_small_kernels_have_no_limit():
    (step,) = jg.jit(lambda x: x + 1.0).explain(array(16), measure=True).steps

    assert step.seconds is not None and step.of_limit is None and "of memory" not in str(step)
