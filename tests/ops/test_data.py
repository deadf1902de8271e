"""``tensor.data``: contents without history, and assignment of other memory, as in torch."""

from __future__ import annotations

from typing import Any

import pytest

import jitgrad as jg
from jitgrad import nn
from jitgrad.core.errors import ArgumentError, DtypeError, JitgradError, TraceError

WRAPS = [lambda f: f, lambda f: jg.jit(f, backend="python")]


@pytest.fixture(params=WRAPS, ids=["eager", "compiled"])
def wrap(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_in_place_changes_of_data_need_no_no_grad(wrap: Any) -> None:
    w = jg.tensor([1.0, 2.0], requires_grad=True)

    def step(x: Any) -> Any:
        loss = (w * x).sum()
        loss.backward()
        w.data.sub_(0.5 * w.grad.data)
        w.data.clamp_(-1.0, 1.2)
        w.grad.data.zero_()
        return loss

    step = wrap(step)
    losses = [step(jg.tensor([1.0, -1.0])).item() for _ in range(3)]
    assert losses == [-1.0, -0.7000000476837158, -1.2000000476837158]
    assert w.tolist() == pytest.approx([-0.5, 1.2])
    assert w.requires_grad and w.is_leaf


def test_backward_notices_a_change_through_data() -> None:
    w = jg.tensor([2.0], requires_grad=True)
    loss = (w * w).sum()
    w.data.mul_(2.0)
    with pytest.raises(JitgradError, match=r"in[- ]place"):
        loss.backward()


def test_backward_notices_assigned_data() -> None:
    w = jg.tensor([2.0], requires_grad=True)
    loss = (w * w).sum()
    w.data = jg.tensor([3.0])
    with pytest.raises(JitgradError, match=r"in[- ]place"):
        loss.backward()


def test_assigned_data_leaves_the_old_memory_to_others() -> None:
    w = jg.tensor([1.0, 2.0], requires_grad=True)
    backup, average = w.data, jg.tensor([5.0, 6.0])
    w.data = average
    assert (w.tolist(), backup.tolist()) == ([5.0, 6.0], [1.0, 2.0])
    average.add_(1.0)
    assert w.tolist() == [6.0, 7.0]
    w.data = backup
    assert (w.tolist(), average.tolist()) == ([1.0, 2.0], [6.0, 7.0])
    assert w.requires_grad and w.is_leaf


def test_a_call_that_assigns_data_leaves_the_old_memory_to_others(wrap: Any) -> None:
    w = jg.tensor([1.0, 2.0], requires_grad=True)

    def step(x: Any) -> None:
        w.data = w.data * 0.5 + x

    step = wrap(step)
    kept = []
    for _ in range(4):
        kept.append(w.data)
        step(jg.ones(2))
    assert [k.tolist() for k in kept] == [[1.0, 2.0], [1.5, 2.0], [1.75, 2.0], [1.875, 2.0]]
    assert w.tolist() == [1.9375, 2.0]


def test_what_was_assigned_shares_memory_afterwards(wrap: Any) -> None:
    w, held = jg.tensor([1.0, 2.0], requires_grad=True), {}

    def step(x: Any) -> None:
        held["old"] = w.data.clone()
        with jg.no_grad():
            w.add_(x)
        w.data = held["old"]
        with jg.no_grad():
            w.mul_(2.0)

    step = wrap(step)
    for k in range(3):
        step(jg.ones(2))
        assert held["old"].tolist() == w.tolist() == [2.0 ** (k + 1), 2.0 ** (k + 2)]
    held["old"].zero_()
    assert w.tolist() == [0.0, 0.0]


def test_the_program_does_not_trace_anew_after_assignments() -> None:
    w = jg.tensor([1.0], requires_grad=True)

    @jg.jit(backend="python")
    def step(x: Any) -> Any:
        w.data = w.data * 0.9 + 0.1 * x
        return w * 1.0

    for _ in range(4):
        step(jg.ones(1))
    assert step.cache_info().traces == 1


def test_adding_what_has_a_history_to_data() -> None:
    layer, low = nn.Linear(2, 2, bias=False), nn.Parameter(jg.ones((2, 2)))
    before = layer.weight.tolist()
    layer.weight.data += low @ low
    assert layer.weight.tolist() == [[pytest.approx(v + 2.0) for v in row] for row in before]
    assert layer.weight.is_leaf and layer.weight.requires_grad


def test_data_takes_what_has_a_history_and_the_leaf_stays_one(wrap: Any) -> None:
    """Merging LoRA's factors into a weight, and taking them out again."""
    w, low = jg.tensor([1.0, 2.0], requires_grad=True), jg.tensor([3.0, 4.0], requires_grad=True)

    def step(x: Any) -> Any:
        w.grad = low.grad = None
        before = (w * x).sum()
        w.data += low * x
        merged = (w * x).sum()
        w.data.mul_(low).sub_(low)
        (before + merged + (w * w).sum()).backward()
        return merged.detach()

    step = wrap(step)
    assert [step(jg.tensor([1.0, k])).item() for k in (1.0, 2.0, 3.0)] == [10.0, 68.0, 396.0]
    assert w.tolist() == [105.0, 476.0]
    assert w.grad.tolist() == [212.0, 958.0]
    assert low.grad is None and w.is_leaf and w.requires_grad


def test_a_shape_may_change_in_eager_mode_alone() -> None:
    w = jg.ones(2, requires_grad=True)
    w.data = jg.ones((3, 2))
    assert w.shape == (3, 2)

    @jg.jit(backend="python")
    def grow() -> None:
        w.data = jg.ones(4)

    with pytest.raises(TraceError, match=r"keeps shapes.*f32\[4\]"):
        grow()


def test_assignments_that_a_program_cannot_make_say_what_to_do() -> None:
    w, other = jg.ones(2, requires_grad=True), jg.ones(2)

    @jg.jit(backend="python")
    def from_outside() -> None:
        w.data = other

    @jg.jit(backend="python")
    def with_a_part() -> Any:
        part = w.data[:1]
        w.data = w * 2.0
        return part

    with pytest.raises(TraceError, match=r"outside of the function.*new\.clone\(\)"):
        from_outside()
    with pytest.raises(TraceError, match=r"are views of it.*copy_"):
        with_a_part()


def test_an_earlier_data_keeps_the_old_elements(wrap: Any) -> None:
    w = jg.ones(2, requires_grad=True)

    def step(x: Any, change: bool) -> Any:
        old, new = w.data, w.data * 0.5
        w.data = new + 0.5 * old * x
        if change:
            old.add_(10.0)
        return old, w * 1.0

    step = wrap(step)
    for change, kept in ((False, [1.0, 1.0]), (True, [11.5, 12.0])):
        old, now = step(jg.tensor([2.0, 3.0]), change)
        assert old.tolist() == kept
        assert now.tolist() == w.tolist() == ([2.25, 4.0] if change else [1.5, 2.0])


def test_what_is_no_tensor_is_refused() -> None:
    w = jg.ones(2, requires_grad=True)
    with pytest.raises(ArgumentError, match=r"jitgrad\.tensor"):
        w.data = [1.0, 2.0]
    with pytest.raises(DtypeError, match="requires grad"):
        w.data = jg.tensor([1, 2])


@pytest.mark.parametrize("wrap", [lambda f: f, jg.jit], ids=["eager", "compiled"])
def test_the_data_of_a_buffer_takes_a_value_with_a_history(wrap: Any) -> None:
    """A codebook that is set to encodings, as in programs for torch: the buffer itself gets no history."""
    w, codes = jg.tensor([1.0, 2.0], requires_grad=True), jg.zeros(2)

    def step(x: Any) -> Any:
        encoded = w * x
        codes.data.copy_(encoded)
        codes.data.mul_(0.5)
        loss = (encoded - codes).square().sum()
        loss.backward()
        return loss

    step = wrap(step)
    for _ in range(2):
        w.grad = None
        loss = step(jg.tensor([1.0, 3.0]))

    assert (loss.item(), codes.tolist(), codes.requires_grad) == (9.25, [0.5, 3.0], False)
    assert w.grad is not None and w.grad.tolist() == [1.0, 18.0]
