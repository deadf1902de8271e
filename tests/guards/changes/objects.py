"""Objects that change between two calls."""

from __future__ import annotations

import argparse
import collections
import copy
import dataclasses
import enum
import operator
from types import SimpleNamespace as NS

from tests.guards.changes import new_table

CASES, case = new_table()





@case
def attrs_deep():
    o = NS(a=NS(b=NS(c=2.0)))
    return (lambda x: x * o.a.b.c, lambda: setattr(o.a.b, 'c', 3.0))


@case
def attr_via_getattr():
    o = NS(c=2.0)
    return (lambda x: x * getattr(o, 'c'), lambda: setattr(o, 'c', 3.0))


@case
def attr_via_getattr_default():
    o = NS()
    return (lambda x: x * getattr(o, 'c', 1.0), lambda: setattr(o, 'c', 3.0))


@case
def attrgetter():
    o = NS(a=NS(c=2.0))
    g = operator.attrgetter('a.c')
    return (lambda x: x * g(o), lambda: setattr(o.a, 'c', 3.0))


@case
def attrgetter_map():
    o = [NS(c=2.0), NS(c=4.0)]
    return (lambda x: x * sum(map(operator.attrgetter('c'), o)), lambda: setattr(o[1], 'c', 3.0))


@case
def itemgetter():
    d = [1.0, 2.0]
    g = operator.itemgetter(1)
    return (lambda x: x * g(d), lambda: d.__setitem__(1, 3.0))


@case
def dataclass_attr():

    @dataclasses.dataclass
    class D:
        r: float = 2.0
        s: float = 1.0
    d = D()
    return (lambda x: x * d.r, lambda: setattr(d, 'r', 5.0))


@case
def dataclass_astuple():

    @dataclasses.dataclass
    class D:
        r: float = 2.0
        s: float = 1.0
    d = D()
    return (lambda x: x * sum(dataclasses.astuple(d)), lambda: setattr(d, 's', 5.0))


@case
def dataclass_fields_loop():

    @dataclasses.dataclass
    class D:
        r: float = 2.0
        s: float = 1.0
    d = D()
    return (lambda x: x * sum((getattr(d, f.name) for f in dataclasses.fields(d))), lambda: setattr(d, 's', 5.0))


@case
def vars_loop():
    o = NS(a=1.0, b=2.0)
    return (lambda x: x * sum(vars(o).values()), lambda: setattr(o, 'c', 3.0))


@case
def slots():

    class A:
        __slots__ = ('v',)
    a = A()
    a.v = 2.0
    return (lambda x: x * a.v, lambda: setattr(a, 'v', 3.0))


@case
def enum_rebind():

    class E(enum.Enum):
        A = 2.0
        B = 3.0
    o = NS(e=E.A)
    return (lambda x: x * o.e.value, lambda: setattr(o, 'e', E.B))


@case
def argparse_ns():
    a = argparse.Namespace(k=2.0)
    return (lambda x: x * a.k, lambda: setattr(a, 'k', 3.0))


@case
def copy_obj():
    o = NS(k=2.0)
    return (lambda x: x * copy.copy(o).k, lambda: setattr(o, 'k', 5.0))


@case
def dataclass_replace():

    @dataclasses.dataclass
    class D:
        r: float = 2.0
        s: float = 1.0
    d = D()
    return (lambda x: x * dataclasses.replace(d, s=3.0).r, lambda: setattr(d, 'r', 5.0))


@case
def namedtuple_():
    P = collections.namedtuple('P', 'a b')
    o = NS(p=P(2.0, 3.0))
    return (lambda x: x * o.p.a, lambda: setattr(o, 'p', P(5.0, 3.0)))


@case
def namedtuple_defaults():
    P = collections.namedtuple('P', 'a b', defaults=(3.0,))
    return (lambda x: x * P(2.0).b, lambda: setattr(P.__new__, '__defaults__', (5.0,)))


@case
def try_attr():
    o = NS()

    def f(x):
        try:
            return x * o.k
        except AttributeError:
            return x * 1.0
    return (f, lambda: setattr(o, 'k', 5.0))


@case
def hasattr_():
    o = NS()
    return (lambda x: x * (2.0 if hasattr(o, 'k') else 3.0), lambda: setattr(o, 'k', 5.0))


@case
def type_name():
    o = NS(v=1)
    return (lambda x: x * len(type(o.v).__name__), lambda: setattr(o, 'v', 's'))


@case
def isinstance_():
    o = NS(v=1)
    return (lambda x: x * (2.0 if isinstance(o.v, int) else 3.0), lambda: setattr(o, 'v', 's'))


@case
def id_cmp():
    o = NS(a=[1], b=[1])
    return (lambda x: x * (2.0 if o.a is o.b else 3.0), lambda: setattr(o, 'b', o.a))


@case
def fmt_obj():

    class A:
        v = 2

        def __str__(s):
            return 'a' * s.v
    a = A()
    return (lambda x: x * len(str(a)), lambda: setattr(a, 'v', 5))


@case
def base_method_replaced():

    class B:

        def v(s):
            return 2.0

    class A(B):
        pass
    a = A()
    return (lambda x: x * a.v(), lambda: setattr(B, 'v', lambda s: 3.0))


@case
def sub_method_added():

    class B:

        def v(s):
            return 2.0

    class A(B):
        pass
    a = A()
    return (lambda x: x * a.v(), lambda: setattr(A, 'v', lambda s: 3.0))


@case
def super_method():

    class B:

        def v(s):
            return 2.0

    class A(B):

        def v(s):
            return super().v() + 1
    a = A()
    return (lambda x: x * a.v(), lambda: setattr(B, 'v', lambda s: 3.0))


@case
def match_stmt():

    @dataclasses.dataclass
    class D:
        r: float = 2.0
    d = D()

    def f(x):
        match d:
            case D(r=r):
                return x * r
    return (f, lambda: setattr(d, 'r', 5.0))
