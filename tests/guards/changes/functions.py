"""Functions, closures and globals that change between two calls."""

from __future__ import annotations

import contextlib
import functools
from types import SimpleNamespace as NS

from tests.guards.changes import new_table

glob = 2.0
global_values = [1.0, 2.0]
global_table = {"a": 2.0, "b": 3.0}
CASES, case = new_table()


@case
def sorted_key():
    os_ = [NS(k=1, v=2.0), NS(k=2, v=3.0)]
    return (lambda x: x * sorted(os_, key=lambda o: o.k)[0].v, lambda: setattr(os_[0], 'k', 5))


@case
def max_key_attr():
    os_ = [NS(k=1, v=2.0), NS(k=2, v=3.0)]
    return (lambda x: x * max(os_, key=lambda o: o.k).v, lambda: setattr(os_[1], 'v', 5.0))


@case
def contextmanager_():
    o = NS(v=2.0)

    @contextlib.contextmanager
    def cm():
        yield o.v

    def f(x):
        with cm() as v:
            return x * v
    return (f, lambda: setattr(o, 'v', 3.0))


@case
def generator_fn():
    o = [1.0, 2.0]

    def g():
        for v in o:
            yield (v * 2)
    return (lambda x: x * sum(g()), lambda: o.append(4.0))


@case
def closure_cell():
    k = 2.0

    def f(x):
        return x * k

    def ch():
        nonlocal k
        k = 3.0
    return (f, ch)


@case
def closure_in_comprehension():
    k = 2.0

    def f(x):
        return sum([x * k * i for i in (1, 2)], x)

    def ch():
        nonlocal k
        k = 3.0
    return (f, ch)


@case
def closure_in_lambda():
    k = 2.0

    def f(x):
        return (lambda y: y * k)(x)

    def ch():
        nonlocal k
        k = 3.0
    return (f, ch)


@case
def closure_nested_factory():

    def make():
        k = [2.0]

        def g(x):
            return x * k[0]
        return (g, k)
    g, k = make()
    return (lambda x: g(x), lambda: k.__setitem__(0, 4.0))


@case
def two_closures_same_code():

    def make(k):
        b = [k]

        def g(x):
            return x * b[0]
        return (g, b)
    g, b = make(2.0)
    h, c = make(3.0)
    return (lambda x: sum(map(lambda q: q(x), [g, h]), x), lambda: c.__setitem__(0, 9.0))


@case
def default_arg():

    def g(x, k=2.0):
        return x * k
    return (lambda x: g(x), lambda: setattr(g, '__defaults__', (3.0,)))


@case
def default_list():

    def g(x, k=[2.0]):
        return x * k[0]
    return (lambda x: g(x), lambda: g.__defaults__[0].__setitem__(0, 4.0))


@case
def kwdefault():

    def g(x, *, k=2.0):
        return x * k
    return (lambda x: g(x), lambda: g.__kwdefaults__.__setitem__('k', 4.0))


@case
def code_swap():

    def g(x):
        return x * 2.0
    return (lambda x: g(x), lambda: setattr(g, '__code__', (lambda x: x * 3.0).__code__))


@case
def function_attr():

    def g(x):
        return x * g.k
    g.k = 2.0
    return (lambda x: g(x), lambda: setattr(g, 'k', 3.0))


@case
def partial_():
    o = [2.0]
    g = functools.partial(lambda o, x: x * o[0], o)
    return (lambda x: g(x), lambda: o.__setitem__(0, 3.0))


@case
def partial_kw():
    o = NS(g=functools.partial(lambda x, k: x * k, k=2.0))
    return (lambda x: o.g(x), lambda: setattr(o, 'g', functools.partial(lambda x, k: x * k, k=3.0)))


@case
def wraps_decorator():
    o = [2.0]

    def deco(f):

        @functools.wraps(f)
        def w(x):
            return f(x) * o[0]
        return w

    @deco
    def g(x):
        return x + 1
    return (lambda x: g(x), lambda: o.__setitem__(0, 3.0))


@case
def singledispatch_():
    o = [2.0]

    @functools.singledispatch
    def g(v):
        return 1.0

    @g.register
    def _(v: int):
        return o[0]
    return (lambda x: x * g(3), lambda: o.__setitem__(0, 3.0))


@case
def singledispatch_register_later():

    @functools.singledispatch
    def g(v):
        return 1.0
    return (lambda x: x * g(3), lambda: g.register(int, lambda v: 5.0))


@case
def walrus_ternary():
    o = NS(k=2.0)
    return (lambda x: x * v if (v := o.k) > 1 else x, lambda: setattr(o, 'k', 0.5))


@case
def while_loop():
    o = NS(n=2)

    def f(x):
        k = 0
        while k < o.n:
            x = x * 2
            k += 1
        return x
    return (f, lambda: setattr(o, 'n', 3))


@case
def recursion():
    o = NS(n=2)

    def g(x, k):
        return x if k >= o.n else g(x * 2, k + 1)
    return (lambda x: g(x, 0), lambda: setattr(o, 'n', 3))


@case
def exec_global_builtin():
    return (lambda x: x * abs(-2.0), lambda: globals().__setitem__('abs', lambda v: 9.0))
