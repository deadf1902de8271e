"""Containers in containers, whose parts loops, displays and unpacking give without a name."""

from __future__ import annotations

from types import SimpleNamespace as NS

import numpy as np

import jitgrad as jg
from tests.guards.changes import new_table

CASES, case = new_table()


def rows():
    """Two lists in a list."""
    return [[1.0, 2.0], [3.0, 4.0]]


def last_row(table):
    """The change of a number in the second list."""
    return lambda: table[1].__setitem__(0, 9.0)


@case
def unpack_in_loop():
    table = rows()

    def f(x):
        for a, b in table:
            x = x * a + b
        return x

    return (f, last_row(table))


@case
def dict_items():
    table = dict(zip("ab", rows(), strict=True))

    def f(x):
        for _key, (a, b) in table.items():
            x = x * a + b
        return x

    return (f, lambda: table["b"].__setitem__(0, 9.0))


@case
def dict_values_in_a_variable():
    table = dict(zip("ab", rows(), strict=True))

    def f(x):
        values = table.values()
        for a, b in values:
            x = x * a + b
        return x

    return (f, lambda: table["b"].__setitem__(0, 9.0))


@case
def enumerated():
    table = rows()

    def f(x):
        for k, (a, b) in enumerate(table):
            x = x * a + b * k
        return x

    return (f, last_row(table))


@case
def zipped():
    table = rows()

    def f(x):
        for (a, b), (c, _d) in zip(table, table, strict=True):
            x = x * a + b * c
        return x

    return (f, last_row(table))


@case
def enumerated_zip():
    table = rows()

    def f(x):
        for k, ((a, b), n) in enumerate(zip(table, (1, 2), strict=True)):
            x = x * a + b * k + n
        return x

    return (f, last_row(table))


@case
def generator_expression():
    table = rows()
    return (lambda x: x * sum(a * b for a, b in table), last_row(table))


@case
def list_comprehension():
    table = rows()
    return (lambda x: x * sum([a * b for a, b in table]), last_row(table))


@case
def nested_comprehension():
    table = [rows(), rows()]
    return (lambda x: x * sum([v for inner in table for _a, v in inner]), lambda: table[1][1].__setitem__(1, 9.0))


@case
def starred():
    table = rows()

    def f(x):
        for a, *rest in table:
            x = x * a + sum(rest)
        return x

    return (f, lambda: table[1].__setitem__(1, 9.0))


@case
def unpack_nested():
    table = rows()

    def f(x):
        (a, b), (c, _d) = table
        return x * a + b * c

    return (f, last_row(table))


@case
def deep():
    table = [(1.0, [2.0, [3.0]])]

    def f(x):
        for a, (b, (c,)) in table:
            x = x * a + b * c
        return x

    return (f, lambda: table[0][1][1].__setitem__(0, 9.0))


@case
def objects_in_tuples():
    table = [(NS(k=1.0), NS(k=2.0)), (NS(k=3.0), NS(k=4.0))]

    def f(x):
        for a, b in table:
            x = x * a.k + b.k
        return x

    return (f, lambda: setattr(table[1][0], "k", 9.0))


@case
def objects_in_lists():
    table = [[NS(k=[1.0]), NS(k=[2.0])]]

    def f(x):
        for a, b in table:
            x = x * a.k[0] + b.k[0]
        return x

    return (f, lambda: table[0][1].k.__setitem__(0, 9.0))


@case
def replaced_object():
    table = [[NS(k=1.0), NS(k=2.0)]]

    def f(x):
        for a, b in table:
            x = x * a.k + b.k
        return x

    return (f, lambda: table[0].__setitem__(1, NS(k=5.0)))


@case
def tensors_in_tuples():
    table = [(jg.ones((3,)), jg.ones((3,)) * 2), (jg.ones((3,)) * 3, jg.ones((3,)))]

    def f(x):
        for w, b in table:
            x = x * w + b
        return x

    return (f, lambda: table.__setitem__(1, (jg.ones((3,)) * 7, jg.ones((3,)))))


@case
def arrays_in_tuples():
    table = [("scale", np.array([2.0, 3.0, 4.0]))]

    def f(x):
        for _name, values in table:
            x = x * values
        return x

    return (f, lambda: table[0][1].__setitem__(0, 9.0))


@case
def numbers_of_arrays():
    table = [np.array([2.0, 3.0]), np.array([4.0, 5.0])]

    def f(x):
        for a, b in table:
            x = x * float(a) + float(b)
        return x

    return (f, lambda: table[1].__setitem__(0, 9.0))


@case
def sliced():
    table = rows()

    def f(x):
        for a, b in table[::-1]:
            x = x * a + b
        return x

    return (f, last_row(table))


@case
def star_arguments():
    table = rows()

    def inner(first, second):
        (a, b), (c, _d) = first, second
        return a * b + c

    return (lambda x: x * inner(*table), last_row(table))


@case
def argument_of_a_function():
    table = rows()

    def inner(pairs):
        return sum(a * b for a, b in pairs)

    return (lambda x: x * inner(zip(*table, strict=True)), last_row(table))


@case
def generator_function():
    table = rows()

    def give():
        yield from table

    def f(x):
        for a, b in give():
            x = x * a + b
        return x

    return (f, last_row(table))


@case
def generator_of_parts():
    table = [rows()]

    def give():
        for inner in table:
            for pair in inner:
                yield pair

    def f(x):
        for a, b in give():
            x = x * a + b
        return x

    return (f, lambda: table[0][1].__setitem__(0, 9.0))


@case
def matched():
    table = [[1.0, [2.0, 3.0]]]

    def f(x):
        match table[0]:
            case [a, [b, c]]:
                return x * a + b * c
        return x

    return (f, lambda: table[0][1].__setitem__(1, 9.0))


@case
def matched_mapping():
    table = {"pair": [2.0, 3.0], "k": 1.0}

    def f(x):
        match table:
            case {"pair": [a, b], "k": k}:
                return x * a + b * k
        return x

    return (f, lambda: table["pair"].__setitem__(1, 9.0))


@case
def keys_with_objects():
    marker = type("Marker", (), {"k": 2.0})()
    table = {(marker, "a"): 3.0}

    def f(x):
        for (m, _name), value in table.items():
            x = x * m.k * value
        return x

    return (f, lambda: setattr(marker, "k", 9.0))


@case
def set_of_tuples_of_objects():
    marker = type("Marker", (), {"k": 2.0})()
    table = {(marker, "a")}

    def f(x):
        for m, _name in table:
            x = x * m.k
        return x

    return (f, lambda: setattr(marker, "k", 9.0))


@case
def item_of_a_display():
    first, second = rows()
    return (lambda x: x * [first, second][1][0], lambda: second.__setitem__(0, 9.0))


@case
def item_of_a_dict_display():
    table = dict(zip("ab", rows(), strict=True))
    return (lambda x: x * {**table, "c": [1.0]}["b"][0], lambda: table["b"].__setitem__(0, 9.0))


@case
def item_of_a_conditional():
    first, second = rows()
    return (lambda x: x * (None or second)[0] * (first if x.shape else second)[1], lambda: first.__setitem__(1, 9.0))
