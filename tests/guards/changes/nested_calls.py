"""Containers in containers, whose parts functions of C code give without a name."""

from __future__ import annotations

import collections
import collections.abc
import heapq
import itertools
import operator
from types import SimpleNamespace as NS

from tests.guards.changes import new_table
from tests.guards.changes.nested import last_row, rows

CASES, case = new_table()


@case
def mapped():
    table = rows()

    def f(x):
        for a, b in map(tuple, table):
            x = x * a + b
        return x

    return (f, last_row(table))


@case
def next_of_iter():
    table = rows()

    def f(x):
        a, b = next(iter(table))
        return x * a + b

    return (f, lambda: table[0].__setitem__(1, 9.0))


@case
def next_of_variable():
    table = rows()

    def f(x):
        iterator = iter(table)
        next(iterator)
        a, b = next(iterator)
        return x * a + b

    return (f, last_row(table))


@case
def sorted_rows():
    table = rows()

    def f(x):
        for a, b in sorted(table, key=len):
            x = x * a + b
        return x

    return (f, last_row(table))


@case
def largest():
    table = rows()
    return (lambda x: x * max(table)[1], lambda: table[1].__setitem__(1, 9.0))


@case
def slice_of_call():
    table = rows()

    def f(x):
        for a, b in list(table)[1:]:
            x = x * a + b
        return x

    return (f, last_row(table))


@case
def item_of_call():
    table = dict(zip("ab", rows(), strict=True))
    return (lambda x: x * list(table.values())[1][0], lambda: table["b"].__setitem__(0, 9.0))


@case
def item_of_items():
    table = dict(zip("ab", rows(), strict=True))
    return (lambda x: x * list(table.items())[1][1][0], lambda: table["b"].__setitem__(0, 9.0))


@case
def method_of_item_of_call():
    table = {"a": {"k": 2.0}}
    return (lambda x: x * list(table.values())[0].get("k"), lambda: table["a"].__setitem__("k", 9.0))


@case
def reversed_rows():
    table = collections.deque(rows())

    def f(x):
        for a, b in reversed(table):
            x = x * a + b
        return x

    return (f, last_row(table))


@case
def chained():
    table = rows()

    def f(x):
        for a, b in itertools.chain(table, [(1.0, 1.0)]):
            x = x * a + b
        return x

    return (f, last_row(table))


@case
def chained_in_a_variable():
    table = rows()

    def f(x):
        both = itertools.chain(table, [(1.0, 1.0)])
        for a, b in both:
            x = x * a + b
        return x

    return (f, last_row(table))


@case
def product_of_rows():
    table = rows()

    def f(x):
        for (a, b), k in itertools.product(table, (1, 2)):
            x = x * a + b * k
        return x

    return (f, last_row(table))


@case
def pairs():
    table = rows()

    def f(x):
        for (a, _b), (c, _d) in itertools.pairwise(table):
            x = x * a + c
        return x

    return (f, last_row(table))


@case
def columns():
    table = rows()

    def f(x):
        for a, b in zip(*table, strict=True):
            x = x * a + b
        return x

    return (f, last_row(table))


@case
def next_of_generator():
    table = rows()

    def f(x):
        a, b = next(pair for pair in table if len(pair) == 2)
        return x * a + b

    return (f, lambda: table[0].__setitem__(1, 9.0))


@case
def empty_rows_are_skipped():
    table = [[1.0], []]
    return (lambda x: x * len(list(filter(None, table))), lambda: table[1].append(1.0))


@case
def whether_any_row():
    table = [[], []]
    return (lambda x: x * 2 if any(table) else x, lambda: table[1].append(1.0))


@case
def sorted_by_item():
    table = rows()
    return (lambda x: x * sorted(table, key=operator.itemgetter(0))[0][0], lambda: table[1].__setitem__(0, 0.5))


@case
def smallest_by_heap():
    table = rows()
    return (lambda x: x * heapq.nsmallest(1, table)[0][0], lambda: table[1].__setitem__(0, 0.5))


@case
def copied_list():
    table = rows()

    def f(x):
        for a, b in table.copy():
            x = x * a + b
        return x

    return (f, last_row(table))


@case
def local_list_of_outside_rows():
    table = rows()

    def f(x):
        work = []
        for row in table:
            work.append(row)
        while work:
            a, b = work.pop()
            x = x * a + b
        return x

    return (f, last_row(table))


@case
def dict_of_zip():
    table = rows()

    def f(x):
        (a, b) = dict(zip("ab", table, strict=True))["b"]
        return x * a + b

    return (f, last_row(table))


@case
def default_of_get():
    table, default = {}, [2.0, 3.0]
    return (lambda x: x * table.get("rates", default)[1], lambda: default.__setitem__(1, 9.0))


@case
def default_of_getattr():
    config, default = NS(), [2.0, 3.0]
    return (lambda x: x * getattr(config, "rates", default)[1], lambda: default.__setitem__(1, 9.0))


@case
def item_getter():
    table = rows()
    return (lambda x: x * operator.itemgetter(1)(table)[0], last_row(table))


@case
def attribute_getter():
    config = NS(inner=NS(rates=[1.0, 2.0]), k=1.0)

    def f(x):
        rates, k = operator.attrgetter("inner.rates", "k")(config)
        return x * rates[0] * k

    return (f, lambda: config.inner.rates.__setitem__(0, 9.0))


@case
def slice_of_rows_in_a_dict():
    table = {"rows": rows()}
    return (lambda x: x * sum(a for a, _b in list(table.values())[0][:]), lambda: table["rows"][1].__setitem__(0, 9.0))


@case
def smallest_of_a_variable():
    table = rows()

    def f(x):
        iterator = iter(table)
        return x * min(iterator)[1]

    return (f, lambda: table[0].__setitem__(0, 8.0))


@case
def attribute_in_a_format():
    held = NS(rate=NS(value=2.0))
    return lambda x: x * float("{0.rate.value}".format(held)), lambda: setattr(held.rate, "value", 3.0)  # noqa: UP032


@case
def c_function_in_map_reads_attributes():
    held = NS(a=2.0)
    return (lambda x: x * sum(len(d) for d in map(vars, [held]))), lambda: setattr(held, "b", 3.0)


@case
def items_of_a_chain_map():
    first = {"a": 2.0}
    settings = collections.ChainMap(first, {"b": 3.0})

    def f(x):
        for key, rate in settings.items():
            x = x * rate + len(key)
        return x

    return f, lambda: first.__setitem__("ccc", 5.0)


@case
def items_of_an_abstract_mapping():
    class Settings(collections.abc.Mapping):
        def __init__(self, items):
            self.stored = items

        def __getitem__(self, key):
            return self.stored[key]

        def __iter__(self):
            return iter(self.stored)

        def __len__(self):
            return len(self.stored)

    settings = Settings({"a": 2.0})
    return lambda x: x * sum(settings.values()) + ("c" in settings), lambda: settings.stored.update(c=5.0)
