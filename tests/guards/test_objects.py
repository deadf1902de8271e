"""Objects, classes and modules around a traced function: guarded attributes and their names."""


from __future__ import annotations

import argparse
import contextvars
import enum
import importlib
import math
import sys
import threading
import types
import weakref
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.tensor import Tensor
from tests.guards.observe import guard_of, observe

scale: Any = 0.5
option = contextvars.ContextVar("option", default=1)
arguments = argparse.Namespace(rate=0.1, unused=1)


def tensor(*values: float) -> Tensor:
    return Tensor(np.array(values, np.float32))


# --- objects and classes ---------------------------------------------------------------------------------------------


class Layer:
    gain = 2

    def __init__(self) -> None:
        self.weight = tensor(1, 2)
        self.rate = 0.5
        self.epoch = 0

    @property
    def doubled(self) -> float:
        return self.rate * 2

    @classmethod
    def factor(cls) -> Any:
        return cls.gain

    @staticmethod
    def shift() -> Any:
        return scale

    def helper(self) -> Any:
        return self.rate

    def forward(self, x: Any) -> Any:
        return self.weight * x * self.helper() * self.gain

    def __call__(self, x: Any) -> Any:
        return self.forward(x)


class Net:
    def __init__(self) -> None:
        self.layers = [Layer(), Layer()]

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x


def test_tensors_are_named_as_a_user_would_write_them():
    assert list(observe(Net().forward).tensors()) == ["self.layers[0].weight", "self.layers[1].weight"]


def test_attribute_deep_inside():
    net = Net()
    guard = guard_of(net.forward)
    net.layers[1].rate = 0.25

    assert guard.check().startswith("`self.layers[1].rate` (test_objects.py:")


def test_unread_attributes_do_not_matter():
    net = Net()
    guard = guard_of(net.forward)
    net.layers[0].epoch = 5
    net.note = "new"

    assert guard.check() is None


@pytest.mark.parametrize(
    ("name", "value"),
    [("gain", 3), ("helper", lambda self: 1), ("forward", lambda self, x: x), ("__call__", lambda s, x: x)],
)
def test_class_attribute_and_swapped_method(name, value, monkeypatch):
    guard = guard_of(Net().forward)
    monkeypatch.setattr(Layer, name, value)

    assert f"class attribute `Layer.{name}`" in guard.check()


@pytest.mark.parametrize(("name", "value"), [("gain", 3), ("helper", lambda: 1)])
def test_instance_attribute_that_hides_the_class(name, value):
    net = Net()
    guard = guard_of(net.forward)
    setattr(net.layers[0], name, value)

    assert f"`self.layers[0].{name}`" in guard.check()


def test_subclass_that_hides_a_base_method_and_super(monkeypatch):
    class Sub(Layer):
        def forward(self, x: Any) -> Any:
            return super().forward(x)

    guard = guard_of(Sub().forward)
    monkeypatch.setattr(Layer, "forward", lambda self, x: x)
    assert "Layer.forward" in guard.check()
    monkeypatch.undo()

    guard = guard_of(Sub().forward)
    Sub.helper = lambda self: 3
    assert "Layer.helper" in guard.check()


def test_changed_class():
    layer = Layer()
    guard = guard_of(layer.forward)
    layer.__class__ = type("Other", (Layer,), {})

    assert "__class__" in guard.check()


def test_property_classmethod_staticmethod(monkeypatch):
    layer = Layer()
    guard = guard_of(lambda: layer.doubled)
    layer.rate = 3
    assert "layer.rate" in guard.check()

    guard = guard_of(lambda: Layer.factor())
    monkeypatch.setattr(Layer, "gain", 5)
    assert "Layer.gain" in guard.check()

    guard = guard_of(lambda: layer.shift())
    monkeypatch.setattr(sys.modules[__name__], "scale", 5)
    assert "`scale`" in guard.check()


def test_callable_object_and_static_argument():
    layer = Layer()
    guard = guard_of(layer)
    layer.rate = 9
    assert "rate" in guard.check()

    guard = guard_of(lambda x, config: x * config.rate, config=layer)
    layer.rate = 10
    assert guard.check().startswith("argument `config.rate`")


@dataclass
class Config:
    rate: float = 0.1
    sizes: list[int] = field(default_factory=lambda: [1, 2])
    epoch: int = 0
    shared: ClassVar[int] = 1


def test_dataclass():
    config = Config()
    guard = guard_of(lambda x: x * config.rate + sum(config.sizes))
    config.epoch = 1
    assert guard.check() is None
    config.sizes[1] = 3
    assert "config.sizes[1]" in guard.check()


def test_slots():
    class Point:
        __slots__ = ("x", "y")

    point = Point()
    point.x = 1
    guard = guard_of(lambda: point.x if not hasattr(point, "y") else point.y)
    point.y = 5
    assert "point.y" in guard.check()
    guard = guard_of(lambda: point.x)
    point.x = 2
    assert "point.x" in guard.check()


def test_namespaces_contexts_weak_references_thread_locals():
    guard = guard_of(lambda: arguments.rate)
    arguments.rate = 0.2
    assert "arguments.rate" in guard.check()

    guard = guard_of(lambda: option.get())
    token = option.set(2)
    assert "option.get()` (test_objects.py:" in guard.check()
    option.reset(token)

    layer = Layer()
    reference = weakref.ref(layer)
    guard = guard_of(lambda: reference().rate)
    layer.rate = 3
    assert "reference().rate" in guard.check()

    local = threading.local()
    local.mode = 1
    guard = guard_of(lambda: local.mode)
    local.mode = 2
    assert "local.mode" in guard.check()


def test_enum_function():
    class Mode(enum.Enum):
        FAST = 1
        EXACT = 2

    mode = Mode.FAST
    guard = guard_of(lambda: mode is Mode.FAST)
    mode = Mode.EXACT

    assert "Mode.EXACT" in guard.check()


def test_getattr_with_a_constant_name_reads_that_name_only():
    layer = Layer()
    guard = guard_of(lambda: getattr(layer, "mask", None) or getattr(layer, "rate", 1))
    layer.epoch = 4
    assert guard.check() is None
    layer.mask = 1
    assert "layer.mask" in guard.check()


def test_getattr_with_a_computed_name_reads_everything():
    layer = Layer()
    guard = guard_of(lambda name: getattr(layer, "e" + name), "poch")
    layer.epoch = 4

    assert "layer.epoch" in guard.check()


def test_descriptor_of_the_user():
    class Doubled:
        def __init__(self) -> None:
            self.factor = 2

        def __get__(self, instance: Any, owner: type) -> Any:
            return self.factor * (scale if instance is None else instance.rate)

    class Holder:
        value = Doubled()
        rate = 1

    holder = Holder()
    guard = guard_of(lambda: holder.value)
    Holder.__dict__["value"].factor = 3
    assert "factor" in guard.check()


def test_user_getattr_is_followed():
    class Proxy:
        def __init__(self) -> None:
            self.inner = {"rate": 1}

        def __getattr__(self, name: str) -> Any:
            return self.inner[name]

    proxy = Proxy()
    guard = guard_of(lambda: proxy.rate)
    proxy.inner["rate"] = 2

    assert "proxy.inner['rate']" in guard.check()


# --- modules ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def settings(tmp_path, monkeypatch):
    (tmp_path / "some_settings.py").write_text("rate = 0.1\nother = 1\ndef twice(x):\n    return x * rate\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "some_settings", None)
    del sys.modules["some_settings"]
    importlib.invalidate_caches()
    return importlib.import_module("some_settings")


def test_attribute_of_a_user_module(settings):
    guard = guard_of(lambda x: x * settings.rate)
    settings.other = 5
    assert guard.check() is None
    settings.rate = 0.2
    assert "closure cell `settings.rate`" in guard.check()


def test_function_of_a_user_module(settings):
    guard = guard_of(lambda x: settings.twice(x))
    settings.rate = 0.2

    assert "global `some_settings.rate`" in guard.check()


def test_import_inside_the_function(settings):
    def f():
        import some_settings

        return some_settings.rate

    def g():
        from some_settings import rate as speed

        return speed

    guards = [guard_of(f), guard_of(g)]
    settings.rate = 0.2

    assert all("some_settings.rate" in guard.check() for guard in guards)


def test_module_passed_around(settings):
    def read(module):
        return module.rate

    guard = guard_of(lambda: read(settings))
    settings.rate = 0.2

    assert "settings.rate" in guard.check()


def test_functions_of_libraries_and_their_binding(monkeypatch):
    guard = guard_of(lambda x: np.tanh(x) * math.pi)
    assert len(guard.checks) == 5  # the code, both modules, and their attributes
    monkeypatch.setattr(sys.modules[__name__], "np", types.ModuleType("np"))

    assert "global `np`" in guard.check()


def test_a_method_under_no_grad_is_guarded_for_what_it_reads_alone():
    class Model:
        def __init__(self):
            self.scale, self.unused, self.seen = 2.0, 0, []

        @jg.no_grad()
        def call(self, x):
            self.seen.append(x.sum())
            return x * self.scale

    model = Model()
    call = jg.jit(model.call, backend="python")
    for k in range(3):
        model.unused = k
        assert call(jg.ones(2)).tolist() == [2.0, 2.0]
    assert (call.cache_info().traces, len(model.seen)) == (1, 3)
    model.scale = 3.0
    assert call(jg.ones(2)).tolist() == [3.0, 3.0]
