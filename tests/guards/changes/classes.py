"""Classes, methods and descriptors that change between two calls."""

from __future__ import annotations

import functools
import operator

from tests.guards.changes import new_table

CASES, case = new_table()


@case
def methodcaller():

    class A:
        v = 2.0

        def m(self):
            return self.v
    a = A()
    g = operator.methodcaller('m')
    return (lambda x: x * g(a), lambda: setattr(a, 'v', 3.0))


@case
def dunder_dict():

    class A:
        pass
    o = A()
    o.a = 1.0
    return (lambda x: x * sum(o.__dict__.values()), lambda: setattr(o, 'c', 3.0))


@case
def property_():

    class A:

        def __init__(s):
            s._v = 2.0

        @property
        def v(s):
            return s._v
    a = A()
    return (lambda x: x * a.v, lambda: setattr(a, '_v', 3.0))


@case
def property_replaced():

    class A:

        @property
        def v(s):
            return 2.0
    a = A()
    return (lambda x: x * a.v, lambda: setattr(A, 'v', property(lambda s: 3.0)))


@case
def method_replaced():

    class A:

        def v(s):
            return 2.0
    a = A()
    return (lambda x: x * a.v(), lambda: setattr(A, 'v', lambda s: 3.0))


@case
def method_on_instance():

    class A:

        def v(s):
            return 2.0
    a = A()
    return (lambda x: x * a.v(), lambda: setattr(a, 'v', lambda: 3.0))


@case
def class_attr():

    class A:
        k = 2.0
    a = A()
    return (lambda x: x * a.k, lambda: setattr(A, 'k', 3.0))


@case
def class_attr_shadow():

    class A:
        k = 2.0
    a = A()
    return (lambda x: x * a.k, lambda: setattr(a, 'k', 3.0))


@case
def classmethod_():

    class A:
        k = 2.0

        @classmethod
        def m(cls):
            return cls.k
    return (lambda x: x * A.m(), lambda: setattr(A, 'k', 3.0))


@case
def staticmethod_replaced():

    class A:

        @staticmethod
        def m():
            return 2.0
    return (lambda x: x * A.m(), lambda: setattr(A, 'm', staticmethod(lambda: 3.0)))


@case
def class_of_instance():

    class A:

        def v(s):
            return 2.0

    class B:

        def v(s):
            return 3.0
    a = A()
    return (lambda x: x * a.v(), lambda: setattr(a, '__class__', B))


@case
def dunder_call():

    class A:
        k = 2.0

        def __call__(s, x):
            return x * s.k
    a = A()
    return (lambda x: a(x), lambda: setattr(A, '__call__', lambda s, x: x * 9.0))


@case
def dunder_getitem():

    class A:

        def __init__(s):
            s.d = {'k': 2.0}

        def __getitem__(s, k):
            return s.d[k]
    a = A()
    return (lambda x: x * a['k'], lambda: a.d.__setitem__('k', 3.0))


@case
def dunder_mul():

    class A:
        v = 2.0

        def __rmul__(s, x):
            return x * s.v
    a = A()
    return (lambda x: 3 * a * x, lambda: setattr(a, 'v', 3.0))


@case
def dunder_float():

    class A:
        v = 2.0

        def __float__(s):
            return s.v
    a = A()
    return (lambda x: x * float(a), lambda: setattr(a, 'v', 3.0))


@case
def dunder_bool():

    class A:
        v = True

        def __bool__(s):
            return s.v
    a = A()
    return (lambda x: x * 2.0 if a else x * 3.0, lambda: setattr(a, 'v', False))


@case
def dunder_len_bool():

    class A:

        def __init__(s):
            s.v = [1]

        def __len__(s):
            return len(s.v)
    a = A()
    return (lambda x: x * 2.0 if a else x * 3.0, lambda: a.v.clear())


@case
def dunder_iter():

    class A:

        def __init__(s):
            s.v = [1.0]

        def __iter__(s):
            return iter(s.v)
    a = A()
    return (lambda x: x * sum(a), lambda: a.v.append(2.0))


@case
def dunder_contains():

    class A:

        def __init__(s):
            s.v = [1.0]

        def __contains__(s, k):
            return k in s.v
    a = A()
    return (lambda x: x * (2.0 if 5 in a else 3.0), lambda: a.v.append(5))


@case
def dunder_eq():

    class A:

        def __init__(s):
            s.v = 1.0

        def __eq__(s, k):
            return s.v == k
    a = A()
    return (lambda x: x * (2.0 if a == 5 else 3.0), lambda: setattr(a, 'v', 5))


@case
def dunder_getattr():

    class A:

        def __init__(s):
            s.d = {'k': 2.0}

        def __getattr__(s, n):
            return s.__dict__['d'][n]
    a = A()
    return (lambda x: x * a.k, lambda: a.d.__setitem__('k', 3.0))


@case
def dunder_getattribute():

    class A:

        def __init__(s):
            s.k = 2.0

        def __getattribute__(s, n):
            return object.__getattribute__(s, n)
    a = A()
    return (lambda x: x * a.k, lambda: setattr(a, 'k', 3.0))


@case
def dunder_enter():

    class A:
        v = 2.0

        def __enter__(s):
            return s.v

        def __exit__(s, *a):
            pass
    a = A()

    def f(x):
        with a as v:
            return x * v
    return (f, lambda: setattr(a, 'v', 3.0))


@case
def cached_property_():

    class A:
        k = 2.0

        @functools.cached_property
        def v(s):
            return s.k
    a = A()

    def ch():
        a.k = 3.0
        a.__dict__.pop('v', None)
    return (lambda x: x * a.v, ch)


@case
def descriptor():

    class D:

        def __init__(s):
            s.k = 2.0

        def __get__(s, o, t=None):
            return s.k
    d = D()

    class A:
        v = d
    a = A()
    return (lambda x: x * a.v, lambda: setattr(d, 'k', 3.0))


def _subclass(**own):
    base = type('Base', (), own)
    middle = type('Middle', (base,), {})
    return middle, type('Last', (middle,), {})()


@case
def hidden_number():
    middle, a = _subclass(rate=2.0)
    return (lambda x: x * a.rate, lambda: setattr(middle, 'rate', 3.0))


@case
def hidden_number_of_last():
    _, a = _subclass(rate=2.0)
    return (lambda x: x * a.rate, lambda: setattr(type(a), 'rate', 3.0))


@case
def hidden_property():
    middle, a = _subclass(rate=property(lambda s: 2.0))
    return (lambda x: x * a.rate, lambda: setattr(middle, 'rate', 3.0))


@case
def hidden_classmethod():
    middle, a = _subclass(rate=classmethod(lambda c: 2.0))
    return (lambda x: x * a.rate(), lambda: setattr(middle, 'rate', classmethod(lambda c: 3.0)))


@case
def hidden_staticmethod():
    middle, a = _subclass(rate=staticmethod(lambda: 2.0))
    return (lambda x: x * a.rate(), lambda: setattr(middle, 'rate', staticmethod(lambda: 3.0)))


@case
def hidden_number_read_of_class():
    middle, a = _subclass(rate=2.0)
    return (lambda x: x * type(a).rate, lambda: setattr(middle, 'rate', 3.0))


@case
def hidden_list():
    middle, a = _subclass(rates=[2.0])
    return (lambda x: x * sum(a.rates), lambda: setattr(middle, 'rates', [3.0]))


@case
def metaclass_attr():

    class M(type):
        k = 2.0

    class A(metaclass=M):
        pass
    return (lambda x: x * A.k, lambda: setattr(M, 'k', 3.0))
