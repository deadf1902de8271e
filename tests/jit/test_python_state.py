"""Flags, counters and other plain values outside a function: each call changes them as eager execution does."""

from __future__ import annotations

import enum
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import EffectWarning, RetraceWarning

calls = 0


class Phase(enum.Enum):
    START = 1
    MAIN = 2


class Trainer:
    """State as users keep it beside a model."""

    shared = 0

    def __init__(self) -> None:
        self.weight = jg.nn.Parameter(jg.tensor(np.linspace(0.5, 1.5, 3)))
        self.steps = 0
        self.rate = 0.5
        self.phase = Phase.START
        self.name = "cold"
        self.started = False
        self.last: Any = None
        self.stats = {"samples": 0, "batch": 0}
        self.average: Any = 0.0
        self.history: list[Any] = []
        self.counts: Any = ()

    def counter(self, x: Any) -> Any:
        self.steps += 1
        return x * self.weight / self.steps

    def counter_that_is_returned(self, x: Any) -> Any:
        self.steps += 1
        self.counts = (self.steps, self.steps * 0.5)
        return x * self.weight + self.steps, {"step": self.steps, "half": self.steps / 2}

    def counter_that_is_not_read(self, x: Any) -> Any:
        self.steps += 1
        return x * self.weight

    def counter_that_decides(self, x: Any) -> Any:
        self.steps += 1
        return x * 2.0 if self.steps % 2 == 0 else x * self.weight

    def decay(self, x: Any) -> Any:
        self.rate *= 0.9
        return x * self.rate

    def decay_in_two_names(self, x: Any) -> Any:
        old = self.rate
        self.rate *= 0.5
        return x * old + self.rate

    def int_to_float(self, x: Any) -> Any:
        self.steps = self.steps * 0.5 + 1
        return x * self.steps

    def items(self, x: Any) -> Any:
        self.stats["samples"] += len(x)
        self.stats["batch"] = x.shape[0]
        return x + self.stats["samples"]

    def flags(self, x: Any) -> Any:
        if not self.started:
            self.started = True
            x = x * 2.0
        self.phase, self.name, self.last = Phase.MAIN, "warm", len(x)
        return x

    def toggle(self, x: Any) -> Any:
        self.started = not self.started
        return x * 2.0 if self.started else x

    def number_becomes_tensor(self, x: Any) -> Any:
        self.average = 0.5 * self.average + 0.5 * x.sum()
        return x + self.average

    def class_attribute(self, x: Any) -> Any:
        self.shared += 1
        return x * self.shared

    def global_variable(self, x: Any) -> Any:
        global calls
        calls += 1
        return x + calls

    def appended(self, x: Any) -> Any:
        self.rate *= 0.9
        self.history.append(self.rate)
        self.history.append(x.sum())
        return x

    def training(self, x: Any) -> Any:
        self.steps = self.steps + 1
        loss = (x * self.weight).square().sum() / self.steps
        loss.backward()
        with jg.no_grad():
            self.weight -= self.rate * self.weight.grad
        self.weight.grad = None
        self.rate = self.rate / 1.5
        return loss.detach()

    def state(self) -> list[Any]:
        plain = {k: v for k, v in vars(self).items() if k != "weight" and not k.startswith("_")}
        plain["history"] = [float(v) for v in self.history]
        plain["average"] = float(self.average)
        return [*plain.items(), *map(type, (self.steps, self.rate, *self.history)), self.weight.tolist(), calls]


METHODS = [name for name, value in vars(Trainer).items() if callable(value) and name not in ("__init__", "state")]


@pytest.fixture(autouse=True)
def _calls_begin_anew() -> Iterator[None]:
    global calls
    calls = 0
    yield


def run(method: str, compiled: Callable[[Any], Any]) -> list[Any]:
    global calls
    calls, trainer, seen = 0, Trainer(), []
    step = compiled(getattr(trainer, method))
    for k in range(8):
        x = jg.tensor(np.linspace(-1.0, 1.0, 3) + k)
        if k == 5:  # the caller changes what the step changes, too
            trainer.steps, trainer.rate, trainer.started, trainer.phase = 0, 0.25, False, Phase.START
        result = step(x)
        if isinstance(result, tuple):
            result, numbers = result
            seen += [*numbers.items(), *map(type, numbers.values())]
        seen += [result.tolist(), *trainer.state()]
    return seen


@pytest.mark.filterwarnings("ignore::jitgrad.core.errors.RetraceWarning")
@pytest.mark.parametrize("check", ["first", "off"])
@pytest.mark.parametrize("backend", ["cpu", "python"])
@pytest.mark.parametrize("method", METHODS)
def test_plain_state_is_that_of_eager_execution(method: str, backend: str, check: str) -> None:
    made: list[Any] = []

    def compiled(step: Callable[..., Any]) -> Any:
        made.append(jg.jit(step, backend=backend, check=check))
        return made[0]

    expected, found = run(method, lambda step: step), run(method, compiled)

    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        if isinstance(b, list):
            np.testing.assert_allclose(a, b, rtol=1e-12)
        else:
            assert a == b or (isinstance(b, tuple) and a == (b[0], pytest.approx(b[1], rel=1e-12)))
    assert made[0].cache_info().fallbacks == 0


def test_a_counter_needs_no_trace_per_call() -> None:
    trainer = Trainer()
    step = jg.jit(trainer.training)
    for _ in range(20):
        step(jg.ones(3, dtype=jg.float64))

    assert step.cache_info().traces <= 4
    assert trainer.steps == 20


def test_a_counter_that_decides_says_that_it_needs_traces() -> None:
    step = jg.jit(Trainer().counter_that_decides, backend="python")

    with pytest.warns(RetraceWarning, match=r"16 values of `self\.steps`"):
        for _ in range(20):
            step(jg.ones(3))


def test_train_and_eval_in_turn_need_two_traces_at_most() -> None:
    model = jg.nn.Sequential(jg.nn.Linear(3, 4), jg.nn.BatchNorm1d(4), jg.nn.Dropout(0.5), jg.nn.Linear(4, 1))

    @jg.jit
    def fit(x: Any) -> Any:
        model.train()
        return model(x).sum()

    @jg.jit
    def judge(x: Any) -> Any:
        model.eval()
        with jg.no_grad():
            return model(x).sum()

    x = jg.rand(4, 3)
    for _ in range(4):
        fit(x)
        assert all(part.training for part in model.modules())
        same = judge(x).item()
        assert not any(part.training for part in model.modules())
        assert judge(x).item() == same == pytest.approx(model(x).sum().item(), rel=1e-5)

    assert fit.cache_info().traces <= 2
    assert judge.cache_info().traces <= 2


def test_a_flag_that_a_caller_takes_back_is_set_again() -> None:
    trainer = Trainer()
    trainer.started = True

    @jg.jit
    def step(x: Any) -> Any:
        trainer.started = True
        return x * 2.0

    for _ in range(3):
        step(jg.ones(2))
    trainer.started = False
    step(jg.ones(2))

    assert trainer.started


@pytest.mark.parametrize("form", ["number", "text", "item"])
def test_the_time_of_a_trace_is_not_stored_again(form: str) -> None:
    trainer = Trainer()

    def step(x: Any) -> Any:
        if form == "number":
            trainer.last = time.perf_counter()
        elif form == "text":
            trainer.name = f"at {time.perf_counter():.9f}"
        else:
            trainer.stats["at"] = time.perf_counter()  # type: ignore[assignment]
        return x * 2.0

    compiled = jg.jit(step)
    with pytest.warns(EffectWarning, match="only when it is traced"):
        compiled(jg.ones(2))
    trainer.last, trainer.name = None, ""
    trainer.stats.clear()
    compiled(jg.ones(2))

    assert (trainer.last, trainer.name, trainer.stats) == (None, "", {})


def test_an_error_leaves_counters_alone() -> None:
    trainer = Trainer()

    def step(x: Any, index: Any) -> Any:
        trainer.steps += 1
        return x[index] * trainer.steps

    compiled = jg.jit(step)
    for _ in range(3):
        compiled(jg.ones(3), jg.tensor([1]))
    with pytest.raises(IndexError):
        compiled(jg.ones(3), jg.tensor([7]))

    assert trainer.steps == 3


@pytest.mark.parametrize("check", ["first", "off"])
def test_a_float_argument_that_is_changed_keeps_its_other_names(check: str) -> None:
    def f(x: Any, rate: Any) -> Any:
        old = rate
        rate *= 2.0
        half = rate / 2.0
        half -= 0.25
        return x * old + rate + half

    compiled = jg.jit(f, check=check)
    for rate in (0.5, 0.5, 0.75):
        assert compiled(jg.ones(2), rate).tolist() == f(jg.ones(2), rate).tolist()
    assert compiled.cache_info().fallbacks == 0
