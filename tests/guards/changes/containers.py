"""Containers that change between two calls."""

from __future__ import annotations

import array
import collections
import copy
import functools
import itertools
import json
import operator
import types
from types import SimpleNamespace as NS

from tests.guards.changes import new_table

glob = 2.0
global_values = [1.0, 2.0]
global_table = {"a": 2.0, "b": 3.0}
CASES, case = new_table()


@case
def global_():

    def f(x):
        return x * glob

    def ch():
        globals()['glob'] = globals()['glob'] + 1
    return (f, ch)


@case
def global_list_item():
    return (lambda x: x * global_values[1], lambda: global_values.__setitem__(1, global_values[1] + 1))


@case
def global_list_append_loop():

    def f(x):
        return sum((x * v for v in global_values), x)
    return (f, lambda: global_values.append(3.0))


@case
def dict_item():
    return (lambda x: x * global_table['a'], lambda: global_table.__setitem__('a', global_table['a'] + 1))


@case
def dict_get():
    return (lambda x: x * global_table.get('zz', 1.0), lambda: global_table.__setitem__('zz', 7.0))


@case
def dict_in():
    d = {}
    return (lambda x: x * (2.0 if 'k' in d else 3.0), lambda: d.__setitem__('k', 1))


@case
def dict_items_sum():
    d = {'a': 1.0}
    return (lambda x: x * sum((v for k, v in d.items())), lambda: d.__setitem__('k', 1.0))


@case
def dict_key_order():
    d = {'a': 1.0, 'b': 2.0}
    return (lambda x: x * list(d.values())[0], lambda: d.__setitem__('a', d.pop('a')))


@case
def star_kwargs():
    d = {'k': 2.0}

    def g(x, k):
        return x * k
    return (lambda x: g(x, **d), lambda: d.__setitem__('k', 5.0))


@case
def star_args():
    a = [2.0, 3.0]

    def g(x, k, l):
        return x * k + l
    return (lambda x: g(x, *a), lambda: a.__setitem__(0, 5.0))


@case
def set_member():
    s = {1}
    return (lambda x: x * (2.0 if 2 in s else 3.0), lambda: s.add(2))


@case
def frozenset_rebind():
    ns = NS(s=frozenset([1]))
    return (lambda x: x * (2.0 if 2 in ns.s else 3.0), lambda: setattr(ns, 's', frozenset([2])))


@case
def deque_left():
    q = collections.deque([1.0, 2.0])
    return (lambda x: x * q[0], lambda: q.appendleft(9.0))


@case
def defaultdict_():
    d = collections.defaultdict(float)
    d['a'] = 2.0
    return (lambda x: x * d['a'], lambda: d.__setitem__('a', 4.0))


@case
def ordereddict():
    d = collections.OrderedDict(a=2.0)
    return (lambda x: x * d['a'], lambda: d.__setitem__('a', 4.0))


@case
def counter():
    d = collections.Counter('aab')
    return (lambda x: x * d['a'], lambda: d.update('a'))


@case
def chainmap():
    a = {}
    d = collections.ChainMap(a, {'k': 2.0})
    return (lambda x: x * d['k'], lambda: a.__setitem__('k', 4.0))


@case
def userdict():
    d = collections.UserDict(k=2.0)
    return (lambda x: x * d['k'], lambda: d.__setitem__('k', 4.0))


@case
def mappingproxy():
    a = {'k': 2.0}
    d = types.MappingProxyType(a)
    return (lambda x: x * d['k'], lambda: a.__setitem__('k', 4.0))


@case
def bytearray_():
    b = bytearray(b'\x02')
    return (lambda x: x * b[0], lambda: b.__setitem__(0, 5))


@case
def array_array():
    b = array.array('d', [2.0])
    return (lambda x: x * b[0], lambda: b.__setitem__(0, 5.0))


@case
def memoryview_():
    a = bytearray(b'\x02')
    b = memoryview(a)
    return (lambda x: x * b[0], lambda: a.__setitem__(0, 5))


@case
def string_fmt():
    o = NS(k='a')
    t = {'a': 2.0, 'b': 3.0}
    return (lambda x: x * t[f'{o.k}'], lambda: setattr(o, 'k', 'b'))


@case
def json_dumps():
    d = {'k': 2.0}
    return (lambda x: x * len(json.dumps(d)), lambda: d.__setitem__('k', 2.123456))


@case
def nested_list():
    d = [[1.0, 2.0], [3.0, 4.0]]
    return (lambda x: x * d[1][0], lambda: d[1].__setitem__(0, 9.0))


@case
def unpack():
    d = [1.0, 2.0]

    def f(x):
        a, b = d
        return x * a + b
    return (f, lambda: d.__setitem__(0, 9.0))


@case
def starred_unpack():
    d = [1.0, 2.0, 3.0]

    def f(x):
        a, *b = d
        return x * a + sum(b)
    return (f, lambda: d.append(9.0))


@case
def zip_enumerate():
    d = [1.0, 2.0]
    return (lambda x: x * sum((i * v for i, v in enumerate(d))), lambda: d.__setitem__(1, 9.0))


@case
def reversed_():
    d = [1.0, 2.0]
    return (lambda x: x * next(iter(reversed(d))), lambda: d.__setitem__(1, 9.0))


@case
def reduce_():
    d = [1.0, 2.0]
    return (lambda x: x * functools.reduce(operator.mul, d), lambda: d.__setitem__(1, 9.0))


@case
def chain_():
    d = [1.0, 2.0]
    e = [3.0]
    return (lambda x: x * sum(itertools.chain(d, e)), lambda: e.__setitem__(0, 9.0))


@case
def list_eq():
    d = [1.0, 2.0]
    return (lambda x: x * (2.0 if d == [1.0, 2.0] else 3.0), lambda: d.__setitem__(1, 9.0))


@case
def list_slice():
    d = [1.0, 2.0, 3.0]
    return (lambda x: x * sum(d[:2]), lambda: d.__setitem__(1, 9.0))


@case
def list_truth():
    d = []
    return (lambda x: x * 2.0 if d else x * 3.0, lambda: d.append(1))


@case
def list_len():
    d = [1]
    return (lambda x: x * len(d), lambda: d.append(1))


@case
def list_index_method():
    d = [1, 2, 3]
    return (lambda x: x * d.index(3), lambda: d.insert(0, 7))


@case
def list_count():
    d = [1, 2, 3]
    return (lambda x: x * d.count(3), lambda: d.append(3))


@case
def copy_deepcopy():
    d = {'a': [2.0]}
    return (lambda x: x * copy.deepcopy(d)['a'][0], lambda: d['a'].__setitem__(0, 5.0))


@case
def match_mapping():
    d = {'k': 2.0}

    def f(x):
        match d:
            case {'k': v}:
                return x * v
    return (f, lambda: d.__setitem__('k', 5.0))


@case
def match_seq():
    d = [2.0, 3.0]

    def f(x):
        match d:
            case [a, b]:
                return x * a
            case [a]:
                return x * a * 7
    return (f, lambda: d.pop())


@case
def try_key():
    o = {}

    def f(x):
        try:
            return x * o['k']
        except KeyError:
            return x * 1.0
    return (f, lambda: o.__setitem__('k', 5.0))


@case
def try_index():
    o = []

    def f(x):
        try:
            return x * o[0]
        except IndexError:
            return x * 1.0
    return (f, lambda: o.append(5.0))


@case
def pushed_and_popped():
    stack = [2.0]

    def f(x):
        stack.append(3.0)
        y = x * stack[-1]
        stack.pop()
        return y * stack[-1]
    return (f, lambda: stack.__setitem__(0, 5.0))


@case
def pushed_and_popped_nested():
    settings = {'rate': 2.0}
    stack = [settings]

    def f(x):
        stack.append({'rate': 3.0})
        y = x * stack[-1]['rate']
        stack.pop()
        return y * stack[-1]['rate']
    return (f, lambda: settings.__setitem__('rate', 5.0))


@case
def updated_and_restored():
    table = {'a': 2.0, 'b': 3.0}

    def f(x):
        table.update(a=7.0)
        table.update(a=2.0)
        return x * table['b'] * len(table)
    return (f, lambda: table.__setitem__('b', 5.0))


@case
def str_join():
    d = ['a', 'b']
    return (lambda x: x * len(''.join(d)), lambda: d.append('ccc'))
