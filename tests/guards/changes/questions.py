"""Changes of what no attribute, item or variable of the function's own code shows."""

from __future__ import annotations

import abc
import builtins
import functools
import gc
import importlib
import inspect
import logging
import sys
import weakref
from types import MappingProxyType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from tests.guards.changes import new_table

CASES, case = new_table()


@case
def a_builtin():
    def change():
        builtins.sum = lambda values: 9.0

    return lambda x: x * sum([1.0, 2.0]), change


@case
def a_module_that_is_imported_again():
    def function(x):
        import jitgrad_test_module

        return x * jitgrad_test_module.k

    sys.modules["jitgrad_test_module"] = module = ModuleType("jitgrad_test_module")
    module.k = 2.0
    return function, lambda: sys.modules.update(jitgrad_test_module=SimpleNamespace(k=3.0))


@case
def a_module_by_its_name():
    sys.modules["jitgrad_test_module"] = SimpleNamespace(k=2.0)

    def change():
        sys.modules["jitgrad_test_module"] = SimpleNamespace(k=3.0)

    return lambda x: x * importlib.import_module("jitgrad_test_module").k, change


@case
def a_missing_module():
    def function(x):
        try:
            import jitgrad_missing_module
        except ImportError:
            return x
        return x * jitgrad_missing_module.k

    return function, lambda: sys.modules.update(jitgrad_missing_module=SimpleNamespace(k=3.0))


@case
def keywords_of_a_partial():
    scaled = functools.partial(lambda x, k: x * k, k=2.0)
    return lambda x: scaled(x), lambda: scaled.keywords.update(k=5.0)


@case
def keywords_of_the_function_itself():
    scaled = functools.partial(lambda x, k: x * k, k=2.0)
    return scaled, lambda: scaled.keywords.update(k=5.0)


@case
def arguments_of_a_partial():
    def scale(k, x):
        return x * k

    scaled = functools.partial(scale, 2.0)
    return lambda x: scaled(x), lambda: scaled.__setstate__((scale, (7.0,), {}, {}))


@case
def a_field_of_a_record_array():
    records = np.rec.array([(1.0, 2)], dtype=[("p", float), ("q", int)])
    return lambda x: x * records.p[0], lambda: records.p.__setitem__(0, 9.0)


@case
def elements_by_ndenumerate():
    array = np.arange(4.0).reshape(2, 2)
    return (
        lambda x: sum([x * float(v) * i[0] for i, v in np.ndenumerate(array)]),
        lambda: array.__setitem__((1, 1), 9.0),
    )


@case
def flags_of_an_array():
    array = np.arange(3.0)
    return lambda x: x * 2 if array.flags.writeable else x * 3, lambda: array.setflags(write=False)


class Referent:
    k = 2.0


@case
def a_dead_referent():
    holder = [Referent()]
    reference = weakref.ref(holder[0])

    def function(x):
        found = reference()
        return x * 9 if found is None else x * found.k

    return function, lambda: (holder.clear(), gc.collect())


@case
def an_attribute_of_a_weak_value():
    kept = Referent()
    table: Any = weakref.WeakValueDictionary(a=kept)
    return lambda x: x * table["a"].k, lambda: setattr(kept, "k", 5.0)


@case
def a_weak_value_that_died():
    holder = [Referent()]
    table: Any = weakref.WeakValueDictionary(a=holder[0])
    return lambda x: x * 2 if "a" in table else x * 9, lambda: (holder.clear(), gc.collect())


@case
def an_attribute_of_a_number():
    class Number(float):
        pass

    number = Number(2.0)
    number.k = 3.0
    return lambda x: x * number.k, lambda: setattr(number, "k", 5.0)


@case
def the_level_of_a_logger():
    logger = logging.Logger("jitgrad-test", logging.INFO)
    return (
        lambda x: x * 2 if logger.isEnabledFor(logging.DEBUG) else x * 3,
        lambda: logger.setLevel(logging.DEBUG),
    )


@case
def the_names_of_a_pattern():
    class Pair:
        __match_args__ = ("a", "b")
        a, b = 2.0, 5.0

    pair = Pair()

    def function(x):
        match pair:
            case Pair(first):
                return x * first
        return x

    return function, lambda: setattr(Pair, "__match_args__", ("b", "a"))


@case
def a_virtual_subclass():
    class Base(abc.ABC):
        pass

    class Other:
        pass

    other = Other()
    return lambda x: x * 2 if isinstance(other, Base) else x * 3, lambda: Base.register(Other)


@case
def an_answer_of_a_metaclass():
    state = SimpleNamespace(answer=True)

    class Meta(type):
        def __instancecheck__(cls, value):
            return state.answer

    class Base(metaclass=Meta):
        pass

    return lambda x: x * 2 if isinstance(3, Base) else x * 3, lambda: setattr(state, "answer", False)


@case
def getattr_of_a_metaclass():
    table = {"k": 2.0}

    class Meta(type):
        def __getattr__(cls, name):
            return table[name]

    class Base(metaclass=Meta):
        pass

    return lambda x: x * Base.k, lambda: table.update(k=5.0)


@case
def call_of_a_metaclass():
    state = SimpleNamespace(k=2.0)

    class Meta(type):
        def __call__(cls, *args):
            made = super().__call__(*args)
            made.k = state.k
            return made

    class Base(metaclass=Meta):
        pass

    return lambda x: x * Base().k, lambda: setattr(state, "k", 5.0)


@case
def another_subclass():
    class Base:
        k = 1.0

    kept: list[Any] = [type("First", (Base,), {"k": 2.0})]
    return (
        lambda x: x * sum(c.k for c in Base.__subclasses__()),
        lambda: kept.append(type("Second", (Base,), {"k": 7.0})),
    )


@case
def a_bound_length():
    values = [1.0, 2.0]
    length = values.__len__
    return lambda x: x * length(), lambda: values.append(3.0)


@case
def a_bound_get():
    table = {"k": 2.0}
    get = table.get
    return lambda x: x * get("k"), lambda: table.update(k=5.0)


@case
def views_of_a_dict():
    table = {"a": 2.0}
    keys, values, items = table.keys(), table.values(), table.items()
    return lambda x: x * sum(values) + len(keys) + sum(v for _, v in items), lambda: table.update(a=5.0, b=1.0)


@case
def the_length_of_a_view():
    table = {"a": 2.0}
    keys = table.keys()
    return lambda x: x * len(keys), lambda: table.update(b=1.0)


@case
def the_length_of_a_proxy():
    table = {"a": 2.0}
    proxy = MappingProxyType(table)
    return lambda x: x * len(proxy), lambda: table.update(b=1.0)


@case
def a_default_by_inspect():
    def scale(x, k=2.0):
        return x * k

    return lambda x: x * inspect.signature(scale).parameters["k"].default, lambda: setattr(scale, "__defaults__", (5.0,))


@case
def how_arrays_are_printed():
    array = np.array([1.23456789])
    return lambda x: x * len(str(array)) + len(f"{array}"), lambda: np.set_printoptions(precision=2)


@case
def how_errors_are_handled():
    return (
        lambda x: x * 2 if np.geterr()["divide"] == "ignore" else x * 3,
        lambda: np.seterr(divide="ignore"),
    )
