"""A recorded training step, run repeatedly, equals the step run eagerly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from jitgrad import nn, optim
from jitgrad.autograd.backward import backward
from jitgrad.compiler.tracer import Trace
from jitgrad.core.context import current_interpreter
from jitgrad.core.errors import TracedValueError, TraceError
from jitgrad.core.ir import Graph, evaluate
from jitgrad.core.op import Kind, OpDef
from jitgrad.core.tensor import Tensor
from jitgrad.eager.interpreter import EagerInterpreter
from jitgrad.ops.inplace import assign
from jitgrad.ops.losses import cross_entropy
from jitgrad.ops.random import Generator
from jitgrad.optim.optimizer import Optimizer

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 2, 3, 3)).astype(np.float32)
LABELS = RNG.integers(0, 4, size=6)
OPTIMIZERS: dict[str, Callable[[Any], Optimizer]] = {
    "sgd": lambda params: optim.SGD(params, 0.1, momentum=0.9, nesterov=True, weight_decay=0.1),
    "adam": lambda params: optim.Adam(params, 0.1, weight_decay=0.1),
    "adamw": lambda params: optim.AdamW(params, 0.1),
    "rmsprop": lambda params: optim.RMSprop(params, momentum=0.5, centered=True),
    "adagrad": lambda params: optim.Adagrad(params, lr_decay=0.1),
}


class Recorded:
    """A function without arguments as a program: what it reads are inputs, what it changes is written back."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.trace = Trace("step")
        token = current_interpreter.set(self.trace)
        try:
            function()
        finally:
            current_interpreter.reset(token)
        self.targets = [target for target, _ in self.trace.written.values()]
        self.graph: Graph = self.trace.graph(tuple(value for _, value in self.trace.written.values()))

    def __call__(self) -> None:
        interpreter = current_interpreter.eager
        inputs = tuple(np.array(s.key) if s.kind == "constant" else s.key for s in self.trace.sources)
        results = evaluate(self.graph, inputs, interpreter.apply)
        for target, result in zip(self.targets, results, strict=True):
            interpreter.write(target, result)


def make(name: str) -> tuple[nn.Module, Optimizer, Generator]:
    generator = Generator(3)
    model = nn.Sequential(
        nn.Conv2d(2, 3, 2), nn.BatchNorm2d(3), nn.GELU(), nn.Flatten(), nn.Dropout(0.2, generator=generator), nn.Linear(12, 4)
    )
    state = {k: np.random.default_rng(1).normal(size=t.shape) for k, t in model.state_dict().items() if t.shape}
    model.load_state_dict({k: abs(v) for k, v in state.items()}, strict=False)
    return model, OPTIMIZERS[name](model.parameters()), generator


def step(model: nn.Module, optimizer: Optimizer) -> None:
    optimizer.zero_grad()
    backward(cross_entropy(model(X), LABELS, 0.1))
    optim.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()


def everything(model: nn.Module, optimizer: Optimizer, generator: Generator) -> dict[str, Any]:
    tensors = {**model.state_dict(), **optimizer.state_dict(), "generator": generator.state}
    return {name: np.array(t.concrete("a test")) for name, t in tensors.items()}


@pytest.fixture
def _reductions_by_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy adds in the order of memory, and only eager backward copies a leaf's gradient that is a transposed view."""
    apply = EagerInterpreter.apply

    def by_rows(self: EagerInterpreter, op: OpDef, operands: tuple[Any, ...], attrs: Any) -> Any:
        if op.kind is Kind.REDUCE:
            operands = tuple(np.ascontiguousarray(x.concrete("a test") if isinstance(x, Tensor) else x) for x in operands)
        return apply(self, op, operands, attrs)

    monkeypatch.setattr(EagerInterpreter, "apply", by_rows)


@pytest.mark.usefixtures("_reductions_by_rows")
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_recorded_step_is_the_eager_step(name: str) -> None:
    eager, recorded = make(name), make(name)
    program = Recorded(lambda: step(*recorded[:2]))

    for rate in (0.1, 0.1, 0.02):
        eager[1].lr = recorded[1].lr = rate
        step(*eager[:2])
        program()

    expected, found = everything(*eager), everything(*recorded)
    for key, value in expected.items():
        np.testing.assert_array_equal(found[key], value, err_msg=key)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_no_state_of_float32_training_is_computed_in_float64(name: str) -> None:
    model, optimizer, _ = make(name)

    graph = Recorded(lambda: step(model, optimizer)).graph

    wide = [node for node in graph.nodes for out in node.outs if out.aval.dtype == np.float64 and out.aval.shape]
    assert wide == []


def test_the_learning_rate_can_be_set_but_not_read_in_a_recorded_function() -> None:
    optimizer = optim.SGD([Tensor(np.ones(2)).requires_grad_()], lr=0.5)

    def double() -> None:
        optimizer.lr = optimizer._lr * 2.0

    program = Recorded(double)
    assert optimizer.lr == 0.5
    program()
    assert optimizer.lr == 1.0

    def constant() -> None:
        optimizer.lr = 0.125

    Recorded(constant)()
    assert optimizer.lr == 0.125
    with pytest.raises(TracedValueError, match=r"float\(\)"):
        Recorded(lambda: optimizer.lr)


def test_an_optimizer_is_not_made_in_a_recorded_function() -> None:
    p = Tensor(np.ones(2)).requires_grad_()

    with pytest.raises(TraceError, match="Make the optimizer outside"):
        Recorded(lambda: optim.Adam([p]))


def test_a_generator_made_in_a_recorded_function_starts_anew_at_each_call() -> None:
    target = Tensor(np.zeros(3, np.float32))
    program = Recorded(lambda: assign(target, Generator(5).rand(3)))

    for _ in range(2):
        program()
        assert target.tolist() == Generator(5).rand(3).tolist()


def test_lbfgs_says_why_it_is_not_for_recording() -> None:
    p = Tensor(np.ones(2)).requires_grad_()

    with pytest.raises(TraceError, match="outside"):
        Recorded(lambda: optim.LBFGS([p]).step(lambda: p))
