"""Values of libraries and of the system that change between two calls."""

from __future__ import annotations

import configparser
import contextvars
import ctypes
import datetime
import decimal
import fractions
import functools
import itertools
import json
import math
import multiprocessing
import os
import pathlib
import random
import sys
import tempfile
import threading
import time
import types
import weakref
from types import SimpleNamespace as NS

import numpy as np

from tests.guards.changes import new_table

glob = 2.0
global_values = [1.0, 2.0]
global_table = {"a": 2.0, "b": 3.0}
CASES, case = new_table()


@case
def stdlib_fn_replaced():
    old = math.sqrt

    def ch():
        math.sqrt = lambda v: 9.0
    return (lambda x: x * math.sqrt(4.0), ch)


@case
def weakref_():

    class A:
        v = 2.0
    a = A()
    a.v = 2.0
    r = weakref.ref(a)
    return (lambda x: x * r().v, lambda: setattr(a, 'v', 3.0))


@case
def contextvar():
    v = contextvars.ContextVar('v', default=2.0)
    return (lambda x: x * v.get(), lambda: v.set(3.0))


@case
def thread_local():
    v = threading.local()
    v.a = 2.0
    return (lambda x: x * v.a, lambda: setattr(v, 'a', 3.0))


@case
def ctypes_():
    c = ctypes.c_double(2.0)
    return (lambda x: x * c.value, lambda: setattr(c, 'value', 3.0))


@case
def ctypes_array():
    c = (ctypes.c_double * 2)(2.0, 3.0)
    return (lambda x: x * c[0], lambda: c.__setitem__(0, 5.0))


@case
def mp_value():
    v = multiprocessing.Value('d', 2.0)
    return (lambda x: x * v.value, lambda: setattr(v, 'value', 3.0))


@case
def configparser_():
    c = configparser.ConfigParser()
    c['a'] = {'k': '2'}
    return (lambda x: x * c['a'].getfloat('k'), lambda: c['a'].__setitem__('k', '5'))


@case
def fraction():
    o = NS(f=fractions.Fraction(1, 2))
    return (lambda x: x * float(o.f), lambda: setattr(o, 'f', fractions.Fraction(3, 2)))


@case
def decimal_():
    o = NS(f=decimal.Decimal('0.5'))
    return (lambda x: x * float(o.f), lambda: setattr(o, 'f', decimal.Decimal('1.5')))


@case
def json_loads():
    o = NS(s='{"k": 2.0}')
    return (lambda x: x * json.loads(o.s)['k'], lambda: setattr(o, 's', '{"k": 3.0}'))


@case
def import_inside():
    m = types.ModuleType('mymod3')
    m.k = 2.0
    sys.modules['mymod3'] = m

    def f(x):
        import mymod3
        return x * mymod3.k
    return (f, lambda: setattr(m, 'k', 3.0))


@case
def from_import_inside():
    m = types.ModuleType('mymod4')
    m.k = 2.0
    sys.modules['mymod4'] = m

    def f(x):
        from mymod4 import k
        return x * k
    return (f, lambda: setattr(m, 'k', 3.0))


@case
def warn_filter_getrecursion():
    return (lambda x: x * sys.getrecursionlimit(), lambda: sys.setrecursionlimit(sys.getrecursionlimit() + 1))


@case
def path_read():
    p = pathlib.Path(tempfile.mktemp())
    p.write_text('2')
    return (lambda x: x * float(p.read_text()), lambda: p.write_text('3'))


@case
def path_exists():
    p = tempfile.mktemp()
    return (lambda x: x * (2.0 if os.path.exists(p) else 3.0), lambda: open(p, 'w').close())


@case
def pathlib_exists():
    p = pathlib.Path(tempfile.mktemp())
    return (lambda x: x * (2.0 if p.exists() else 3.0), lambda: p.write_text('a'))


@case
def environ():
    os.environ['ZZ'] = '2'
    return (lambda x: x * float(os.environ['ZZ']), lambda: os.environ.__setitem__('ZZ', '3'))


@case
def clock():
    return (lambda x: x * time.time(), lambda: None)


@case
def clock_branch():
    t = time.time() + 0.2
    return (lambda x: x * 2.0 if time.time() > t else x * 3.0, lambda: time.sleep(0.3))


@case
def datetime_now():
    return (lambda x: x * datetime.datetime.now().microsecond, lambda: None)


@case
def random_():
    return (lambda x: x * random.random(), lambda: None)


@case
def rng():
    r = np.random.default_rng(0)
    return (lambda x: x * r.normal(), lambda: None)


@case
def iterator():
    it = iter([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0])
    return (lambda x: x * next(it), lambda: None)


@case
def count_():
    it = itertools.count()
    return (lambda x: x * next(it), lambda: None)


@case
def list_as_counter():
    l = []

    def f(x):
        l.append(1)
        return x * len(l)
    return (f, lambda: None)


@case
def lru_cached_reads_global():
    o = NS(k=2.0)

    @functools.lru_cache
    def g():
        return o.k

    def ch():
        o.k = 3.0
        g.cache_clear()
    return (lambda x: x * g(), ch)
