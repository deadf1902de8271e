"""torch.amp: scaled losses, steps that are left out, and autocast, which changes nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad import nn, optim
from jitgrad.core.errors import ArgumentError, TraceError


def batches(poisoned: int | None) -> list[np.ndarray[Any, Any]]:
    xs = [np.linspace(-1.0, 1.0 + k, 12, dtype=np.float32).reshape(4, 3) for k in range(7)]
    if poisoned is not None:
        xs[poisoned][0, 0] = np.inf
    return xs


def train(lib: Any, poisoned: int | None, compile_loss: bool = False) -> list[tuple[float, list[np.ndarray[Any, Any]]]]:
    """The scale and the parameters after each of seven steps, two of which let it grow."""
    model = lib.nn.Linear(3, 2)
    with lib.no_grad():
        model.weight.copy_(lib.tensor(np.arange(6, dtype=np.float32).reshape(2, 3) / 10))
        model.bias.copy_(lib.tensor(np.array([0.5, -0.5], np.float32)))
    optimizer = lib.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scaler = lib.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)

    def backward(x: Any) -> Any:
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        scaler.scale(loss).backward()
        return loss

    compute = jg.jit(backward) if compile_loss else backward
    steps = []
    for x in batches(poisoned):
        compute(lib.tensor(x))
        scaler.unscale_(optimizer)
        lib.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        steps.append((scaler.get_scale(), [p.detach().numpy().copy() for p in model.parameters()]))
    return steps


def assert_equal(own: list[Any], other: list[Any]) -> None:
    assert [scale for scale, _ in own] == [scale for scale, _ in other]
    for (_, a), (_, b) in zip(own, other, strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("poisoned", [None, 0, 3])
def test_steps_and_scales_are_those_of_torch(poisoned: int | None):
    torch = pytest.importorskip("torch")

    assert_equal(train(jg, poisoned), train(torch, poisoned))


@pytest.mark.parametrize("poisoned", [None, 3])
def test_a_compiled_loss_reads_the_scale_of_each_call(poisoned: int | None):
    assert_equal(train(jg, poisoned, compile_loss=True), train(jg, poisoned))


def test_a_step_without_finite_gradients_is_left_out_and_halves_the_scale():
    steps = train(jg, 3)

    assert [scale for scale, _ in steps] == [8.0, 16.0, 16.0, 8.0, 8.0, 16.0, 16.0]
    np.testing.assert_array_equal(steps[2][1][0], steps[3][1][0])


def test_the_state_goes_on_where_it_was_saved():
    first, second = jg.amp.GradScaler("cpu", init_scale=4.0, growth_interval=3), jg.amp.GradScaler("cpu")
    second.load_state_dict(first.state_dict())

    assert second.state_dict() == first.state_dict() and second.get_scale() == 4.0


def test_without_a_device_the_scaler_of_cuda_does_nothing():
    scaler = jg.cuda.amp.GradScaler(enabled=jg.cuda.is_available())
    model = nn.Linear(2, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.1)

    @jg.jit
    def step(x: jg.Tensor) -> jg.Tensor:
        optimizer.zero_grad()
        with jg.cuda.amp.autocast():
            loss = (model(x) ** 2).mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss

    if scaler.is_enabled():
        pytest.skip("this machine has a device")
    x = jg.ones(3, 2)
    assert float(step(x)) > float(step(x)) and step.cache_info().traces == 1
    assert scaler.state_dict() == {} and scaler.get_scale() == 1.0


def test_autocast_computes_in_the_dtypes_of_the_operands():
    x = jg.ones(2, 2)
    with jg.autocast("cpu", dtype=jg.float16):
        out = x @ x

    assert out.dtype == jg.float32 and not jg.is_autocast_enabled()


def test_slips_are_errors_that_say_what_to_do():
    scaler, model = jg.amp.GradScaler("cpu"), nn.Linear(2, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.1)

    with pytest.raises(ArgumentError, match="call backward first"):
        scaler.step(optimizer)
    with pytest.raises(ArgumentError, match="no step"):
        scaler.update()
    scaler.scale(model(jg.ones(1, 2)).sum()).backward()
    scaler.unscale_(optimizer)
    with pytest.raises(ArgumentError, match="since the last update"):
        scaler.unscale_(optimizer)
    with pytest.raises(ArgumentError, match="growth_factor"):
        jg.amp.GradScaler("cpu", growth_factor=0.5)


def train_in_parts(wrap: Any, poisoned: int | None, parts: str, kind: str) -> tuple[list[Any], Any]:
    """The scale and all state after each of seven steps, of which ``parts`` are wrapped."""
    model = nn.Linear(3, 2)
    with jg.no_grad():
        model.weight.copy_(jg.tensor(np.arange(6, dtype=np.float32).reshape(2, 3) / 10))
        model.bias.zero_()
    optimizer = getattr(optim, kind)(model.parameters(), lr=0.1, **({"momentum": 0.9} if kind == "SGD" else {}))
    scaler = jg.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)

    def forward(x: Any) -> None:
        optimizer.zero_grad()
        scaler.scale((model(x) ** 2).mean()).backward()
        scaler.unscale_(optimizer)

    def update() -> None:
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()

    def step(x: Any) -> None:
        first(x)
        second()

    first = wrap(forward) if parts == "backward and unscale_" else forward
    second = wrap(update) if parts == "step and update" else update
    step = wrap(step) if parts == "all" else step
    seen = []
    for x in batches(poisoned):
        step(jg.tensor(x))
        state = [*model.parameters(), *optimizer.state_dict().values()]
        seen.append((scaler.get_scale(), [np.asarray(t.detach()).copy() for t in state]))
    return seen, step


@pytest.mark.parametrize("poisoned", [None, 0, 3])
@pytest.mark.parametrize("parts", ["all", "backward and unscale_", "step and update"])
@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_compiled_steps_are_left_out_as_eager_ones(poisoned: int | None, parts: str, kind: str):
    compiled, step = train_in_parts(jg.jit, poisoned, parts, kind)
    eager, _ = train_in_parts(lambda f: f, poisoned, parts, kind)
    assert_equal(compiled, eager)
    assert parts != "all" or step.cache_info().traces == 1


def test_a_step_of_ones_own_stays_outside_of_jit():
    class Descent(optim.Optimizer):
        def __init__(self, params: Any) -> None:
            super().__init__(params, {"lr": 0.1})

        def step(self, closure: Any = None) -> None:
            for p in self.params:
                p.data.sub_(p.grad)

    scaler, model = jg.amp.GradScaler("cpu"), nn.Linear(2, 1)
    optimizer = Descent(model.parameters())

    def step() -> None:
        scaler.scale(model(jg.ones(1, 2)).sum()).backward()
        scaler.step(optimizer)
        scaler.update()

    step()
    assert not scaler.unscale_(optimizer) and optimizer.unscaled_at.item() >= 0
    with pytest.raises(TraceError, match="call unscale_, step and update after it"):
        jg.jit(step)()


def test_decorators_of_custom_functions_change_nothing() -> None:
    class Double(jg.autograd.Function):
        @staticmethod
        @jg.amp.custom_fwd(device_type="cuda")
        def forward(ctx: Any, x: Any) -> Any:
            return 2 * x

        @staticmethod
        @jg.cuda.amp.custom_bwd
        def backward(ctx: Any, g: Any) -> Any:
            return 3 * g

    x = jg.ones(2, requires_grad=True)
    Double.apply(x).sum().backward()

    assert x.grad.tolist() == [3.0, 3.0]
    with pytest.raises(ArgumentError, match=r"cast_inputs=.*convert the arguments"):
        jg.amp.custom_fwd(cast_inputs=jg.float16)


def test_attributes_may_be_called_final() -> None:
    from jitgrad.jit import Final

    assert jg.jit.Final is Final
