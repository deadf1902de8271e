"""The user's functions and objects that library code uses are discovered too."""


from __future__ import annotations

import collections
import contextlib
import copy
import dataclasses
import functools
import logging
import operator
import sys
from typing import Any

import pytest

import jitgrad as jg
from jitgrad import nn, optim
from tests.guards.observe import guard_of, observe

scale: Any = 0.5
log = logging.getLogger("guards")


def uses_scale(x: Any) -> Any:
    return x * scale


@functools.singledispatch
def dispatched(x: Any) -> Any:
    return x


@dispatched.register
def _(x: int) -> Any:
    return x * scale


@contextlib.contextmanager
def scaled() -> Any:
    yield scale


def enters(x: Any) -> Any:
    with scaled() as factor:
        return x * factor


class Operand:
    twice = functools.partialmethod(lambda self, k: k * scale, 2)

    def __add__(self, other: Any) -> Any:
        return other * scale


operand = Operand()
graded = jg.value_and_grad(lambda x: uses_scale(x).sum())
ungraded = jg.no_grad()(uses_scale)

ROUTES = {
    "value_and_grad": lambda x: graded(x),
    "no_grad": lambda x: ungraded(x),
    "singledispatch": lambda x: dispatched(3),
    "contextmanager": enters,
    "partialmethod": lambda: operand.twice(),
    "operator": lambda x: operand + x,
    "map": lambda x: list(map(uses_scale, x)),
}


@pytest.mark.parametrize("route", ROUTES)
def test_functions_called_by_libraries(route, monkeypatch):
    guard = guard_of(ROUTES[route])
    monkeypatch.setattr(sys.modules[__name__], "scale", 0.7)

    assert "global `scale`" in guard.check()


@dataclasses.dataclass
class Config:
    rate: float = 0.1
    size: int = 2


READ_ALL = {
    "asdict": lambda c: lambda: dataclasses.asdict(c),
    "replace": lambda c: lambda: dataclasses.replace(c, rate=1.0),
    "copy": lambda c: lambda: copy.copy(c),
    "vars": lambda c: lambda: vars(c)["size"],
    "__dict__": lambda c: lambda: list(c.__dict__.values()),
    "attrgetter": lambda c: functools.partial(lambda get: get(c), operator.attrgetter("size")),
    "equality": lambda c: lambda: c == Config(),
}


@pytest.mark.parametrize("name", READ_ALL)
def test_objects_read_as_a_whole(name):
    config = Config()
    guard = guard_of(READ_ALL[name](config))
    config.size = 3

    assert "size" in guard.check()


def test_comparing_with_a_constant_reads_no_field():
    config = Config()
    guard = guard_of(lambda mode: config.rate if mode == "train" else 0)
    config.size = 3

    assert guard.check() is None


def test_containers_written_in_python():
    for held in (collections.UserDict(a=1), collections.ChainMap({"a": 1})):
        guard = guard_of(lambda held=held: held["a"])
        held["a"] = 2
        assert guard.check() is not None


def test_names_that_do_not_exist_yet(monkeypatch):
    def f():
        try:
            return appears_later
        except NameError:
            return 0

    guard = guard_of(f)
    monkeypatch.setattr(sys.modules[__name__], "appears_later", 1, raising=False)

    assert "global `appears_later`" in guard.check()


def test_a_metaclass():
    class Meta(type):
        @property
        def rate(cls) -> Any:
            return cls.hidden

    class Holder(metaclass=Meta):
        hidden = 1

    guard = guard_of(lambda: Holder.rate)
    Holder.hidden = 2

    assert "Holder.hidden" in guard.check()


def test_logging_leaves_no_trace():
    def f(x):
        log.info("x is %s", x)

    assert observe(f, 1).changes() == []


class Model(nn.Module):
    def __init__(self) -> None:
        self.first, self.second = nn.Linear(3, 4), nn.Linear(4, 2)
        self.factor = 2.0

    def forward(self, x: Any) -> Any:
        return self.second(jg.relu(self.first(x))) * self.factor


@pytest.fixture
def training():
    model = Model()
    optimizer = optim.Adam(model.parameters(), lr=0.1)

    def step(x, y):
        loss = jg.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return model, optimizer, step


def test_a_training_step_changes_nothing_that_is_guarded(training):
    _model, optimizer, step = training
    environment = observe(step, jg.ones((5, 3)), jg.ones((5, 2)))
    guard = environment.guard()
    optimizer.lr = 0.01

    assert environment.changes() == []
    assert guard.check() is None


def test_parameters_carry_their_names_in_the_model(training):
    names = observe(training[2], jg.ones((5, 3)), jg.ones((5, 2))).tensors()

    assert {"model.first.weight", "model.first.bias"} <= set(names)
    assert any(name.startswith("optimizer.") for name in names)


@pytest.mark.parametrize(
    "change",
    [
        lambda model: setattr(model, "factor", 3.0),
        lambda model: setattr(model, "first", nn.Linear(3, 4)),
        lambda model: model.first.weight.requires_grad_(False),
    ],
    ids=["number", "layer", "frozen"],
)
def test_changes_of_a_module(training, change):
    model, _optimizer, step = training
    guard = guard_of(step, jg.ones((5, 3)), jg.ones((5, 2)))
    change(model)

    assert "closure cell `model" in guard.check()


@pytest.mark.parametrize(
    "change",
    [lambda model: model.eval(), lambda model: setattr(model, "epoch", 1)],
    ids=["a mode that no layer asks for", "a new attribute"],
)
def test_changes_of_a_module_that_the_step_does_not_read(training, change):
    model, _optimizer, step = training
    guard = guard_of(step, jg.ones((5, 3)), jg.ones((5, 2)))
    change(model)

    assert guard.check() is None


settings: Any = {"scale": 2.0}
mapped = jg.vmap(lambda x, settings: x * settings["scale"], in_dims=(0, None))
checkpointed = jg.checkpoint(lambda x, settings: x * settings["scale"])


@pytest.mark.parametrize("transformed", [mapped, checkpointed], ids=["vmap", "checkpoint"])
def test_a_container_that_goes_to_a_transformed_function_is_read(transformed: Any, monkeypatch: pytest.MonkeyPatch):
    f = jg.jit(lambda x: transformed(x, settings), backend="python")
    assert f(jg.ones(2)).tolist() == [2.0, 2.0]

    monkeypatch.setitem(settings, "scale", 3.0)

    assert f(jg.ones(2)).tolist() == [3.0, 3.0]


tensors: Any = {"used": jg.ones(2), "unused": jg.ones(3)}
gradient = jg.grad(lambda tensors, x: (x * tensors["used"]).sum())


def test_tensors_in_a_container_that_goes_to_a_transformed_function():
    f = jg.jit(lambda x: gradient(tensors, x)["used"], backend="python")

    assert f(jg.ones(2)).tolist() == [1.0, 1.0]
