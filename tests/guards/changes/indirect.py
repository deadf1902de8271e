"""Changes that an object hands on, or that only a function of Python's library reads."""

from __future__ import annotations

import inspect
import threading
import types
import weakref
from collections import defaultdict
from typing import Any

import jitgrad as jg
from tests.guards.changes import new_table

CASES, case = new_table()


class Scale:
    def __init__(self) -> None:
        self.k = 2.0


@case
def an_attribute_by_a_weak_proxy():
    scale = Scale()
    proxy = weakref.proxy(scale)
    return lambda x, keep=scale: x * proxy.k, lambda: setattr(scale, "k", 3.0)


@case
def a_method_by_a_weak_proxy():
    class Owner:
        k = 2.0

        def scale(self):
            return self.k

    owner = Owner()
    proxy = weakref.proxy(owner)
    return lambda x, keep=owner: x * proxy.scale(), lambda: setattr(owner, "k", 3.0)


@case
def variables_of_a_module():
    module = types.ModuleType("settings")
    module.k = 2.0
    return lambda x: x * vars(module)["k"], lambda: setattr(module, "k", 3.0)


@case
def dict_of_a_module():
    module = types.ModuleType("settings")
    module.k = 2.0
    return lambda x: x * module.__dict__["k"], lambda: setattr(module, "k", 3.0)


def _module_with_getattr() -> tuple[Any, list[float]]:
    module, values = types.ModuleType("settings"), [2.0]
    module.__getattr__ = lambda name: values[0]
    return module, values


@case
def getattr_of_a_module():
    module, values = _module_with_getattr()
    return lambda x: x * module.k, lambda: values.__setitem__(0, 3.0)


@case
def getattr_of_a_module_replaced():
    module, _ = _module_with_getattr()
    return lambda x: x * module.k, lambda: setattr(module, "__getattr__", lambda name: 3.0)


@case
def an_attribute_that_getattr_of_a_module_gave():
    module, _ = _module_with_getattr()
    return lambda x: x * module.k, lambda: setattr(module, "k", 3.0)


@case
def dir_of_a_class_that_grows():
    scale = type("Scale", (), {"k": 1})()
    return lambda x: x * len(dir(scale)), lambda: setattr(type(scale), "another", 3)


@case
def members_by_inspect():
    scale = Scale()
    return lambda x: x * dict(inspect.getmembers(scale))["k"], lambda: setattr(scale, "k", 3.0)


@case
def whether_an_event_is_set():
    event = threading.Event()
    return lambda x: x * (2.0 if event.is_set() else 3.0), event.set


def _bases(read: Any) -> Any:
    first, second = type("First", (), {}), type("Second", (), {})
    cls = type("Child", (first,), {})
    value = cls()

    def change():
        cls.__bases__ = (second,)

    return lambda x: x * read(value, cls, second), change


@case
def isinstance_of_a_class_with_other_bases():
    return _bases(lambda value, cls, second: 2.0 if isinstance(value, second) else 3.0)


@case
def issubclass_of_a_class_with_other_bases():
    return _bases(lambda value, cls, second: 2.0 if issubclass(cls, second) else 3.0)


@case
def bases_by_name():
    return _bases(lambda value, cls, second: 2.0 if second in cls.__mro__ and second in cls.__bases__ else 3.0)


@case
def the_factory_of_a_defaultdict():
    values = defaultdict(lambda: 2.0)

    def change():
        values.clear()
        values.default_factory = lambda: 3.0

    return lambda x: x * values["k"], change


@case
def what_gives_missing_items():
    class Table(dict):
        k = 2.0

        def __missing__(self, key):
            return self.k

    table = Table()
    return lambda x: x * table["key"], lambda: setattr(Table, "k", 3.0)


@case
def forward_of_a_layer():
    layer = jg.nn.Tanh()

    def change():
        jg.nn.Tanh.forward = lambda self, x: x * 5.0

    return lambda x: layer(x), change


@case
def a_method_of_tensors():
    def change():
        jg.Tensor.tanh = lambda self: self * 5.0

    return lambda x: x.tanh(), change


@case
def the_number_of_threads():
    count = jg.get_num_threads()
    return lambda x: x * jg.get_num_threads(), lambda: jg.set_num_threads(2 if count == 1 else 1)
