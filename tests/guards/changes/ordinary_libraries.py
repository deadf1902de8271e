"""Ordinary uses of the language and its library that must compile."""

from __future__ import annotations

import collections
import datetime
import functools
import itertools
import os
import pathlib
import typing
import weakref
from types import SimpleNamespace as NS

import numpy as np

import jitgrad as jg
from tests.guards.changes import new_table

CASES, case = new_table()

glob = 2.0
kept = []




@case
def regex_inline():
    import re
    return lambda x: x * len(re.findall('a', 'banana'))


@case
def str_methods():
    s = 'gelu-tanh'
    return lambda x: x * len(s.split('-')) * (2.0 if s.startswith('g') else 3.0)


@case
def fmt():
    return lambda x: x * len(f'{3.14159:.2f}' + '{}'.format(3) + '%d' % 4)


@case
def sorted_lambda():
    l = [3.0, 1.0, 2.0]
    return lambda x: x * sorted(l, key=lambda v: -v)[0]


@case
def np_random_seeded_outside():
    a = np.random.default_rng(0).normal(size=3)
    return lambda x: x * a


@case
def np_consts():
    return lambda x: x * np.pi * np.float64(2.0) + np.arange(3.0) + np.linspace(0, 1, 3) + np.eye(3)[0]


@case
def np_linalg():
    a = np.eye(3) * 2
    return lambda x: x @ np.linalg.inv(a)


@case
def np_errstate():

    def f(x):
        with np.errstate(all='ignore'):
            return x * np.log(np.array([1.0, 2.0, 3.0]))
    return f


@case
def itertools_():
    return lambda x: sum((x * a * b for a, b in itertools.product([1.0, 2.0], [3.0])), x)


@case
def pairwise_zip():
    l = [1.0, 2.0, 3.0]
    return lambda x: sum((x * (b - a) for a, b in zip(l, l[1:])), x)


@case
def dict_unpack():
    d = {'a': 1.0}
    e = {**d, 'b': 2.0}
    return lambda x: x * {**e, 'c': 3.0}['c']


@case
def abc_():
    import abc

    class A(abc.ABC):

        @abc.abstractmethod
        def m(s, x):
            ...

    class B(A):

        def m(s, x):
            return x * 2
    b = B()
    return lambda x: b.m(x)


@case
def protocol_generic():
    T = typing.TypeVar('T')

    class A(typing.Generic[T]):

        def m(s, x):
            return x * 2
    a = A[int]()
    return lambda x: a.m(x)


@case
def callable_registry():
    reg = {'gelu': lambda x: x * 2, 'relu': lambda x: x * 3}
    return lambda x: reg['gelu'](x)


@case
def getattr_jg():
    o = NS(act='tanh')
    return lambda x: getattr(jg, o.act)(x)


@case
def functools_reduce_compose():
    fs = [jg.tanh, jg.exp]
    return lambda x: functools.reduce(lambda a, f: f(a), fs, x)


@case
def map_jg():
    return lambda x: sum(map(jg.tanh, [x, x * 2]), x)


@case
def method_as_fn():

    class A:

        def __init__(s):
            s.k = 2.0

        def m(s, x):
            return x * s.k
    m = A().m
    return lambda x: sum(map(m, [x, x]), x)


@case
def walrus():
    return lambda x: (y := (x * 2)) + y


@case
def global_stmt_tensor():
    return lambda x: x * glob


@case
def match_():
    o = NS(k='a')

    def f(x):
        match o.k:
            case 'a':
                return x * 2
            case 'b' | 'c':
                return x * 3
            case _:
                return x
    return f


@case
def pathlib_join():
    p = pathlib.Path('/a') / 'b'
    return lambda x: x * len((p / 'c').parts)


@case
def os_path_join():
    return lambda x: x * len(os.path.join('a', 'b'))


@case
def datetime_const():
    d = datetime.date(2020, 1, 2)
    return lambda x: x * d.day


@case
def uuid_not_run():
    import uuid

    def f(x, name=None):
        name = name or 'x'
        if name == 'new':
            name = uuid.uuid4().hex
        return x * len(name)
    return f


@case
def tqdm_like():

    class Bar:

        def __init__(s):
            s.n = 0

        def update(s):
            s.n += 1

    def f(x):
        for k in range(3):
            x = x * 2
        return x
    return f


@case
def np_printoptions():
    return lambda x: x * 2 if str(x.dtype) == 'float64' else x


@case
def complex_number():
    z = 2 + 3j
    return lambda x: x * abs(z)


@case
def bytes_():
    b = b'\x02\x03'
    return lambda x: x * b[1]


@case
def range_():
    r = range(2, 5)
    return lambda x: x * sum(r) * r[0]


@case
def slice_obj():
    s = slice(0, 2)
    return lambda x: x[s] * 2


@case
def ellipsis_idx():
    return lambda x: x[..., None].sum() * x


@case
def weakset():

    class A:
        v = 2.0
    a = A()
    ws = weakref.WeakValueDictionary(a=a)
    kept.append(a)
    return lambda x: x * ws['a'].v


@case
def np_generator_outside():
    g = jg.Generator(3)
    return lambda x: x * 2


@case
def inspect_sig():
    import inspect

    def g(a, b):
        pass
    return lambda x: x * len(inspect.signature(g).parameters)


@case
def type_hints():

    def g(a: int) -> float:
        ...
    return lambda x: x * len(typing.get_type_hints(g))


@case
def textwrap_():
    import textwrap
    return lambda x: x * len(textwrap.dedent('  a'))


@case
def counter_local():
    return lambda x: x * collections.Counter('aab')['a']


@case
def heapq_():
    import heapq
    return lambda x: x * heapq.nsmallest(1, [3, 1, 2])[0]


@case
def bisect_():
    import bisect
    b = [1, 5, 9]
    return lambda x: x * bisect.bisect(b, 6)


@case
def statistics_():
    import statistics
    b = [1.0, 5.0, 9.0]
    return lambda x: x * statistics.mean(b)
