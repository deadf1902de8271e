"""Changes of what an attribute is computed from, or of what only C code stores."""

from __future__ import annotations

import ctypes
import decimal
import enum
import functools
import gc
import queue
import sys
import threading
import types
import weakref
from collections import UserList
from typing import Any

import jitgrad as jg
from tests.guards.changes import new_table

CASES, case = new_table()


class Twice:
    """A descriptor."""

    k = 2.0

    def __get__(self, owner: Any, cls: Any = None) -> float:
        return self.k


@case
def the_getter_of_a_descriptor():
    class Getter:
        def __get__(self, owner, cls=None):
            return 2.0

    class Owner:
        k = Getter()

    owner = Owner()

    def change():
        Getter.__get__ = lambda self, owner, cls=None: 3.0

    return lambda x: x * owner.k, change


@case
def an_attribute_of_a_descriptor():
    class Owner:
        k = Twice()

    owner = Owner()
    return lambda x: x * owner.k, lambda: setattr(Owner.__dict__["k"], "k", 3.0)


@case
def an_attribute_that_hides_a_descriptor():
    class Owner:
        k = Twice()

    owner = Owner()
    return lambda x: x * owner.k, lambda: owner.__dict__.__setitem__("k", 3.0)


@case
def values_that_a_descriptor_holds_weakly():
    class Held:
        def __init__(self):
            self.values = weakref.WeakKeyDictionary()

        def __get__(self, owner, cls=None):
            return self.values[owner]

        def __set__(self, owner, value):
            self.values[owner] = value

    class Owner:
        k = Held()

    owner = Owner()
    owner.k = 2.0
    return lambda x: x * owner.k, lambda: setattr(owner, "k", 3.0)


@case
def a_class_between_super_and_the_attribute():
    first = type("First", (), {"k": 2.0})
    middle = type("Middle", (first,), {})

    class Child(middle):  # type: ignore[misc, valid-type]
        def number(self):
            return super().k

    child = Child()
    return lambda x: x * child.number(), lambda: setattr(middle, "k", 5.0)


@case
def an_attribute_that_a_class_gets():
    class Owner:
        def __getattr__(self, name):
            return 2.0

    owner = Owner()
    return lambda x: x * owner.k, lambda: setattr(Owner, "k", 3.0)


def _grows(read: Any, name: str) -> Any:
    cls = type("Owner", (), {})
    value = cls()
    return lambda x: x * (2.0 if read(value) else 3.0), lambda: setattr(cls, name, lambda self: iter(()))


@case
def hasattr_of_a_class_that_grows():
    return _grows(lambda value: hasattr(value, "__iter__"), "__iter__")


@case
def callable_of_a_class_that_grows():
    return _grows(callable, "__call__")


@case
def items_as_attributes():
    class Table(dict):
        __getattr__ = dict.__getitem__

    table = Table(a=Table(b=2.0))
    return lambda x: x * table.a.b, lambda: table["a"].__setitem__("b", 3.0)


@case
def items_as_attributes_that_are_missing():
    class Table(dict):
        __getattr__ = dict.get

    table = Table()
    return lambda x: x * (2.0 if table.k is None else table.k), lambda: table.__setitem__("k", 3.0)


@case
def a_list_that_is_the_value_of_an_enum():
    class Choice(enum.Enum):
        A = [2.0]  # noqa: RUF012

    return lambda x: x * Choice.A.value[0], lambda: Choice.A.value.__setitem__(0, 3.0)


def _function(a=2.0, *, b=2.0):
    return a * b


def _copy() -> Any:
    made = types.FunctionType(_function.__code__, globals(), "made", (2.0,))
    made.__kwdefaults__ = {"b": 2.0}
    made.__annotations__ = {"a": 2.0}
    return made


@case
def defaults_of_a_function():
    made = _copy()
    return lambda x: x * made.__defaults__[0], lambda: setattr(made, "__defaults__", (3.0,))


@case
def keyword_defaults_of_a_function():
    made = _copy()
    return lambda x: x * made.__kwdefaults__["b"], lambda: made.__kwdefaults__.__setitem__("b", 3.0)


@case
def annotations_of_a_function():
    made = _copy()
    return lambda x: x * made.__annotations__["a"], lambda: made.__annotations__.__setitem__("a", 3.0)


@case
def constants_of_a_function():
    made = _copy()
    return lambda x: x * len(made.__code__.co_varnames), lambda: setattr(made, "__code__", (lambda: 3.0).__code__)


@case
def a_cell_of_a_function():
    k = 2.0

    def inner():
        return k

    def change():
        inner.__closure__[0].cell_contents = 3.0

    return lambda x: x * inner.__closure__[0].cell_contents, change


@case
def a_cell():
    cell = types.CellType(2.0)
    return lambda x: x * cell.cell_contents, lambda: setattr(cell, "cell_contents", 3.0)


@case
def the_name_of_a_class():
    cls = type("A", (), {})
    return lambda x: x * len(cls.__name__), lambda: setattr(cls, "__name__", "ABC")


@case
def the_owner_of_a_method():
    class Owner:
        k = 2.0

        def method(self):
            return 0.0

    method = Owner().method
    return lambda x: x * method.__self__.k, lambda: setattr(method.__self__, "k", 3.0)


@case
def the_owner_of_a_builtin_method():
    values = [2.0]
    method = values.append
    return lambda x: x * method.__self__[0], lambda: values.__setitem__(0, 3.0)


@case
def arguments_of_an_exception():
    error = ValueError(2.0)
    return lambda x: x * error.args[0], lambda: setattr(error, "args", (3.0,))


@case
def the_cause_of_an_exception():
    error = ValueError()
    error.__cause__ = KeyError(2.0)
    return lambda x: x * error.__cause__.args[0], lambda: setattr(error, "__cause__", KeyError(3.0))


@case
def ctypes_field():
    class Record(ctypes.Structure):
        _fields_ = (("k", ctypes.c_double),)

    record = Record(2.0)
    return lambda x: x * record.k, lambda: setattr(record, "k", 3.0)


@case
def items_of_a_user_list_that_c_code_reads():
    values = UserList([1.0, 2.0])
    return lambda x: x * sum(values), lambda: values.append(3.0)


def _double() -> Any:
    class Double(jg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2.0

        @staticmethod
        def backward(ctx, g):
            return g * 2.0

    return Double


@case
def the_backward_of_a_function():
    double = _double()

    def change():
        double.backward = staticmethod(lambda ctx, g: g * 5.0)

    return lambda x: jg.grad(lambda x: double.apply(x).sum())(x), change


@case
def the_forward_of_a_function():
    double = _double()

    def change():
        double.forward = staticmethod(lambda ctx, x: x * 5.0)

    return lambda x: double.apply(x), change


@case
def how_much_a_cache_holds():
    cached = functools.lru_cache(lambda n: n)
    cached(1)
    return lambda x: x * cached.cache_info().currsize, lambda: cached(2)


@case
def whether_a_lock_is_held():
    lock = threading.Lock()
    return lambda x: x * (2.0 if lock.locked() else 3.0), lock.acquire


@case
def the_length_of_a_queue():
    items: queue.SimpleQueue[int] = queue.SimpleQueue()
    items.put(1)
    return lambda x: x * items.qsize(), lambda: items.put(2)


@case
def the_name_of_a_thread():
    thread = threading.Thread(name="a")
    return lambda x: x * len(thread.name), lambda: setattr(thread, "name", "abc")


@case
def whether_a_finalizer_is_alive():
    held = [Twice()]
    finalizer = weakref.finalize(held[0], int)
    return lambda x: x * (2.0 if finalizer.alive else 3.0), held.clear


@case
def how_often_threads_switch():
    interval = sys.getswitchinterval()
    return lambda x: x * sys.getswitchinterval(), lambda: sys.setswitchinterval(2 * interval)


@case
def when_garbage_is_collected():
    first, *others = gc.get_threshold()
    return lambda x: x * gc.get_threshold()[0], lambda: gc.set_threshold(first + 1, *others)


@case
def how_decimals_round():
    one, seven = decimal.Decimal(1), decimal.Decimal(7)
    return lambda x: x * float(one / seven), lambda: setattr(decimal.getcontext(), "prec", 3)


@case
def an_option_of_a_group_of_parameters():
    optimizer = jg.optim.SGD([jg.nn.Parameter(jg.ones(3))], lr=0.1)
    group = optimizer.param_groups[0]
    return lambda x: x * (group["weight_decay"] + 1.0), lambda: group.__setitem__("weight_decay", 0.5)


@case
def the_learning_rate_of_a_group_of_parameters():
    optimizer = jg.optim.SGD([jg.nn.Parameter(jg.ones(3))], lr=0.1)
    return lambda x: x * optimizer.param_groups[0]["lr"], lambda: optimizer.param_groups[0].__setitem__("lr", 0.5)
