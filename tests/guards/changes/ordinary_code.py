"""Ordinary code around a function that must compile: timers, logs, caches, containers."""

from __future__ import annotations

import contextlib
import functools
import io
import logging
import os
import random
import re
import sys
import tempfile
import threading
import time
import typing
import warnings
from types import SimpleNamespace as NS

from tests.guards.changes import new_table

CASES, case = new_table()

log = logging.getLogger("guards.changes")
log.addHandler(logging.NullHandler())
glob = 2.0
kept = []


def timed(f):
    @functools.wraps(f)
    def timing(*args):
        start = time.perf_counter()
        out = f(*args)
        print(f"{f.__name__}: {time.perf_counter() - start:.3f}")
        return out

    return timing





@case
def timer_decorator():

    @timed
    def f(x):
        return x * 2
    return f


@case
def timer_inner():

    @timed
    def g(x):
        return x * 2
    return lambda x: g(x) + 1


@case
def timer_list():
    times = []

    def f(x):
        t = time.perf_counter()
        y = x * 2
        times.append(time.perf_counter() - t)
        return y
    return f


@case
def timer_dict():
    times = {}

    def f(x):
        t = time.perf_counter()
        y = x * 2
        times['f'] = times.get('f', 0.0) + time.perf_counter() - t
        return y
    return f


@case
def timer_ms():

    def f(x):
        t = time.time()
        y = x * 2
        ms = (time.time() - t) * 1000
        print('took', round(ms, 2), 'ms')
        return y
    return f


@case
def timer_class():

    class T:

        def __init__(s):
            s.total = 0.0
            s.n = 0

        def __enter__(s):
            s.t = time.perf_counter()
            return s

        def __exit__(s, *a):
            s.total += time.perf_counter() - s.t
    T_ = T()

    def f(x):
        with T_:
            return x * 2
    return f


@case
def log_info():

    def f(x):
        log.info('step %s', x.shape)
        return x * 2
    return f


@case
def log_time():

    def f(x):
        log.info('at %f', time.time())
        return x * 2
    return f


@case
def log_module_level():

    def f(x):
        logging.getLogger('pat').debug('hi')
        return x * 2
    return f


@case
def print_stderr():

    def f(x):
        print('a', file=sys.stderr)
        return x * 2
    return f


@case
def print_devnull_file():
    h = io.StringIO()

    def f(x):
        print('a', file=h)
        h.write('x')
        return x * 2
    return f


@case
def write_log_file():
    p = tempfile.mktemp()

    def f(x):
        with open(p, 'a') as h:
            h.write('step\n')
        return x * 2
    return f


@case
def environ_not_run():
    o = NS(debug=False)

    def f(x):
        if o.debug:
            print(os.environ['HOME'], random.random())
        return x * 2
    return f


@case
def random_not_run():

    def f(x, training=False):
        if training:
            x = x * random.random()
        return x * 2
    return f


@case
def id_():
    return lambda x: x * (1.0 if id(x) else 2.0)


@case
def assert_shape():

    def f(x):
        assert x.shape == (3,), f'bad {x.shape} at {time.time()}'
        return x * 2
    return f


@case
def warn_not_run():

    def f(x):
        if x.ndim > 5:
            warnings.warn('x')
        return x * 2
    return f


@case
def isinstance_typing():

    def f(x: typing.Optional[int]):
        y: float = 2.0
        return x * y
    return f


@case
def generator_local():

    def f(x):

        def g():
            for k in range(3):
                yield (x * k)
        return sum(g())
    return f


@case
def comprehension():
    w = [2.0, 3.0]
    return lambda x: sum([x * v for v in w if v > 1] + [x for _ in {1, 2}], x) * len({k: v for k, v in enumerate(w)})


@case
def try_finally():

    def f(x):
        try:
            return x * 2
        finally:
            pass
    return f


@case
def exception_caught():

    def f(x):
        try:
            raise ValueError('a')
        except ValueError as e:
            return x * len(str(e))
    return f


@case
def nested_with():

    def f(x):
        with contextlib.suppress(KeyError), contextlib.nullcontext(3.0) as v:
            return x * v
    return f


@case
def exitstack():

    def f(x):
        with contextlib.ExitStack() as st:
            st.enter_context(contextlib.nullcontext())
            return x * 2
    return f


@case
def lock():
    l = threading.Lock()

    def f(x):
        with l:
            return x * 2
    return f


@case
def rlock():
    l = threading.RLock()

    def f(x):
        with l:
            return x * 2
    return f


@case
def regex():
    r = re.compile('a+')
    return lambda x: x * len(r.match('aaa').group())
