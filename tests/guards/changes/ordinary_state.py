"""Caches, containers and state inside and around a function that must compile."""

from __future__ import annotations

import collections
import contextvars
import dataclasses
import enum
import functools
import math
import sys
from types import SimpleNamespace as NS

import numpy as np

from jitgrad import nn
from tests.guards.changes import new_table

CASES, case = new_table()


@case
def len_vocab():
    v = {f'w{k}': k for k in range(200000)}
    return lambda x: x * len(v)


@case
def lookup_vocab():
    v = {f'w{k}': k for k in range(200000)}
    return lambda x: x * v['w7']


@case
def lookup_list():
    v = list(range(200000))
    i = 5
    return lambda x: x * v[i + 1]


@case
def array_elem():
    a = np.ones(1000000)
    return lambda x: x * a[3] + a[:8].sum() + a.mean()


@case
def array_big_operand():
    a = np.ones((100000, 3))
    return lambda x: (x * a).sum()


@case
def sys_modules():
    return lambda x: x * (2.0 if 'torch' in sys.modules else 3.0)


@case
def lru():

    @functools.lru_cache
    def mask(n):
        return np.tri(n)
    return lambda x: x @ mask(3)


@case
def lru_scalar():

    @functools.lru_cache(maxsize=None)
    def k(n):
        return math.sqrt(n)
    return lambda x: x * k(3)


@case
def lazy_mask():

    class M(nn.Module):

        def __init__(s):
            s.mask = None

        def forward(s, x):
            if s.mask is None or s.mask.shape[0] < x.shape[-1]:
                s.mask = np.tri(x.shape[-1])
            return x @ s.mask
    m = M()
    return lambda x: m(x)


@case
def lazy_tensor_mask():

    class M:
        mask = None

        def __call__(s, x):
            if not hasattr(s, 'm'):
                s.m = np.tri(3)
            return x @ s.m
    m = M()
    return lambda x: m(x)


@case
def memo():
    d = {}

    def f(x):
        k = x.shape
        if k not in d:
            d[k] = np.ones(k)
        return x * d[k]
    return f


@case
def memo_setdefault():
    d = {}
    return lambda x: x * d.setdefault('k', 2.0)


@case
def memo_defaultdict():
    d = collections.defaultdict(lambda: 2.0)
    return lambda x: x * d['q']


@case
def history_numbers():
    h = []

    def f(x):
        h.append('called')
        return x * 2
    return f


@case
def debug_counter_unread():
    o = NS(last=None)

    def f(x):
        o.last = 'step'
        return x * 2
    return f


@case
def module_unread():

    class M(nn.Module):

        def __init__(s):
            s.l = nn.Linear(3, 3)
            s.history = []
            s.epoch = 0

        def forward(s, x):
            return s.l(x)
    m = M()
    return lambda x: m(x)


@case
def getattr_class():

    class Cfg:

        def __init__(s, d):
            s._d = d

        def __getattr__(s, n):
            try:
                return s._d[n]
            except KeyError:
                raise AttributeError(n)
    c = Cfg({'k': 2.0})
    return lambda x: x * c.k


@case
def local_class():

    def f(x):

        class A:
            k = 2.0

            def m(s, x):
                return x * s.k
        return A().m(x)
    return f


@case
def local_import():

    def f(x):
        import math
        import os.path as p
        from math import pi
        return x * math.e * pi * len(p.sep)
    return f


@case
def local_state():

    def f(x):
        acc = []
        d = {}
        for k in range(3):
            acc.append(x * k)
            d[k] = acc[-1]
        s = set()
        s.add(1)
        acc.pop()
        return sum(acc) + sum(d.values()) * len(s)
    return f


@case
def local_object():

    class S:

        def __init__(s):
            s.n = 0

        def inc(s):
            s.n += 1
            return s.n

    def f(x):
        s = S()
        s.inc()
        s.inc()
        return x * s.n
    return f


@case
def enum_():

    class M(enum.Enum):
        A = 'a'
        B = 'b'
    m = M.A
    return lambda x: x * 2.0 if m is M.A else x


@case
def enum_by_value():

    class M(enum.Enum):
        A = 'a'
        B = 'b'
    return lambda x: x * 2.0 if M('a') is M.A else x


@case
def intflag():

    class M(enum.IntFlag):
        A = 1
        B = 2
    m = M.A | M.B
    return lambda x: x * 2.0 if m & M.B else x


@case
def frozen_dataclass_static():

    @dataclasses.dataclass(frozen=True)
    class D:
        r: float = 2.0
    d = D()
    return lambda x: x * d.r


@case
def deque_hist():
    q = collections.deque(maxlen=3)

    def f(x):
        q.append(1)
        return x * 2
    return f


@case
def optimizer_lr():
    o = NS(lr=0.1)
    return lambda x: x - o.lr * x


@case
def contextvars_copy():
    v = contextvars.ContextVar('q', default=2.0)

    def f(x):
        t = v.set(3.0)
        try:
            return x * v.get()
        finally:
            v.reset(t)
    return f
