"""Items that a class written in Python gives to C code, fields of named tuples, slots."""

from __future__ import annotations

import contextlib
import itertools
import operator
from types import SimpleNamespace as NS
from typing import Any, NamedTuple

from tests.guards.changes import new_table
from tests.guards.changes.nested import last_row, rows

CASES, case = new_table()


class Pair(NamedTuple):
    left: Any
    right: Any


class Slots:
    __slots__ = ("rates",)

    def __init__(self, rates):
        self.rates = rates


class Sequence:
    """Gives what a list holds, by Python code."""

    def __init__(self, items):
        self.items = items

    def __iter__(self):
        return iter(self.items)

    def __getitem__(self, index):
        return self.items[index]

    def __len__(self):
        return len(self.items)


class Countdown:
    """An iterator in Python code."""

    def __init__(self, items):
        self.items, self.left = items, len(items)

    def __iter__(self):
        return self

    def __next__(self):
        if not self.left:
            raise StopIteration
        self.left -= 1
        return self.items[self.left]


@case
def field_of_a_named_tuple():
    pair = Pair([1.0, 2.0], Pair([3.0], 4.0))
    return (lambda x: x * pair.left[1] * pair.right.left[0], lambda: pair.right.left.__setitem__(0, 9.0))


@case
def slot_of_a_result():
    table = [Slots([1.0]), Slots([2.0])]
    return (lambda x: x * (lambda items: items[1])(table).rates[0], lambda: table[1].rates.__setitem__(0, 9.0))


@case
def loop_over_a_class():
    table = Sequence(rows())

    def f(x):
        for a, b in table:
            x = x * a + b
        return x

    return (f, last_row(table.items))


@case
def list_of_a_class():
    table = Sequence(rows())
    return (lambda x: x * list(table)[1][0], last_row(table.items))


@case
def display_of_a_class():
    table = Sequence(rows())

    def f(x):
        for a, b in [*table]:
            x = x * a + b
        return x

    return (f, last_row(table.items))


@case
def chain_of_a_class():
    table = Sequence(rows())

    def f(x):
        for a, b in itertools.chain(table, table):
            x = x * a + b
        return x

    return (f, last_row(table.items))


@case
def unpacking_of_a_class():
    table = Sequence(rows())

    def f(x):
        first, second = table
        return x * second[0] + first[1]

    return (f, last_row(table.items))


@case
def star_arguments_of_a_class():
    table = Sequence(rows())
    return (lambda x: x * (lambda *c: c[1][0])(*table), last_row(table.items))


@case
def item_getter_on_a_class():
    table = Sequence([NS(rates={"a": 1.0})])

    def f(x):
        for _name, rate in operator.itemgetter(0)(table).rates.items():
            x = x * rate
        return x

    return (f, lambda: table.items[0].rates.__setitem__("a", 9.0))


@case
def iterator_class():
    table = rows()

    def f(x):
        for a, b in Countdown(table):
            x = x * a + b
        return x

    return (f, last_row(table))


@case
def context_manager_gives_rows():
    table = rows()

    @contextlib.contextmanager
    def opened():
        yield table

    def f(x):
        with opened() as (first, second):
            return x * first[0] + second[0]

    return (f, last_row(table))


@case
def mapped_items():
    table = {"a": [1.0], "b": [2.0]}

    def f(x):
        for (a,) in map(operator.itemgetter(1), table.items()):
            x = x * a
        return x

    return (f, lambda: table["b"].__setitem__(0, 9.0))


@case
def variables_of_an_item():
    table = [NS(rates=[1.0, 2.0])]
    return (lambda x: x * vars(list(table)[0])["rates"][1], lambda: table[0].rates.__setitem__(1, 9.0))


@case
def matched_item_of_a_call():
    table = {"a": {"k": [2.0]}}

    def f(x):
        match list(table.values())[0]:
            case {"k": [k]}:
                return x * k
        return x

    return (f, lambda: table["a"]["k"].__setitem__(0, 9.0))


@case
def body_of_a_class_in_the_function():
    rates = [2.0]

    def f(x):
        class Scale:
            rate = rates[0]

        return x * Scale.rate

    return f, lambda: rates.__setitem__(0, 9.0)


@case
def body_of_a_nested_class_reads_a_local_variable():
    settings = {"rates": [2.0]}

    def f(x):
        rates = settings["rates"]

        class Outer:
            class Inner:
                rate = rates[0] + 1

        return x * Outer.Inner.rate

    return f, lambda: settings["rates"].__setitem__(0, 9.0)


def given_by(items):
    """A class of its own for each test, which replaces its methods."""
    return type("Given", (Sequence,), {"__iter__": Sequence.__iter__, "__getitem__": Sequence.__getitem__})(items)


@case
def iter_method_replaced():
    held = given_by([2.0, 3.0])

    def f(x):
        for rate in held:
            x = x * rate
        return x

    return f, lambda: setattr(type(held), "__iter__", lambda self: iter([7.0]))


@case
def getitem_method_replaced():
    held = given_by([2.0, 3.0])
    return lambda x: x * held[1], lambda: setattr(type(held), "__getitem__", lambda self, index: 7.0 + index)


@case
def enter_method_replaced():
    class Scope:
        def __enter__(self):
            return 2.0

        def __exit__(self, *error):
            return None

    scope = Scope()

    def f(x):
        with scope as rate:
            return x * rate

    return f, lambda: setattr(Scope, "__enter__", lambda self: 7.0)
