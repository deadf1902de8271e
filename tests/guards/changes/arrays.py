"""Arrays, tensors and modules that change between two calls."""

from __future__ import annotations

import tempfile
import types
from types import SimpleNamespace as NS

import numpy as np

import jitgrad as jg
from jitgrad import nn
from tests.guards.changes import new_table

CASES, case = new_table()


@case
def module_attr():
    m = types.ModuleType('mymod')
    m.k = 2.0
    return (lambda x: x * m.k, lambda: setattr(m, 'k', 3.0))


@case
def module_fn():
    m = types.ModuleType('mymod2')
    exec('k=2.\ndef f(x): return x*k', m.__dict__)
    return (lambda x: m.f(x), lambda: setattr(m, 'k', 3.0))


@case
def jg_fn_replaced():
    old = jg.exp

    def ch():
        jg.exp = lambda v: v * 5
    return (lambda x: jg.exp(x), ch)


@case
def np_fn_replaced():

    def ch():
        np.cbrt = lambda v: 5.0
    return (lambda x: x * np.cbrt(8.0), ch)


@case
def poly1d():
    p = np.poly1d([1.0, 2.0])
    return (lambda x: x * p(2.0), lambda: p.coeffs.__setitem__(0, 5.0))


def _mask(read):
    mask = np.array([True, False, True])
    return (lambda x: read(x, mask), lambda: mask.__setitem__(1, True))


@case
def np_mask():
    return _mask(lambda x, mask: x[mask].sum())


@case
def np_mask_in_backward_of_custom_vjp():
    def f(x, mask):
        doubled = jg.custom_vjp(lambda x: x * 2.0)
        doubled.defvjp(lambda x: (x * 2.0, x), lambda x, g: (g * x[mask].sum(),))
        return jg.grad(lambda x: doubled(x).sum())(x)
    return _mask(f)


@case
def np_mask_in_checkpoint():
    return _mask(lambda x, mask: jg.grad(lambda x: jg.checkpoint(lambda y: jg.sin(y) * y[mask].sum())(x).sum())(x))


@case
def np_mask_with_where():
    return _mask(lambda x, mask: x[mask].sum() + jg.where(mask, x, 0.0).sum())


@case
def np_mask_assigned():

    def f(x, mask):
        y = x * 1.0
        y[mask] = 0.0
        return y
    return _mask(f)


@case
def np_mask_in_tuple():
    mask = np.array([True, False, True])
    index = (mask, None)
    return (lambda x: x[index].sum(), lambda: mask.__setitem__(1, True))


@case
def np_mask_view():
    return _mask(lambda x, mask: x[mask[::-1]].sum())


@case
def np_number_as_index():
    k = np.array(1)
    return (lambda x: x[k] * x.sum(), lambda: k.__setitem__((), 2))


@case
def np_number_as_bound():
    k = np.array(1)
    return (lambda x: x[:k].sum() * x.sum(), lambda: k.__setitem__((), 2))


@case
def np_mask_nonzero():
    return _mask(lambda x, mask: (x[jg.nonzero(mask)] * x[0]).sum())


@case
def np_mask_made_tensor():
    return _mask(lambda x, mask: x[~jg.asarray(mask)].sum() * x[0])


@case
def np_repeats():
    counts = np.array([1, 2, 1])
    return (lambda x: jg.repeat(x, counts).sum() + (x * counts).sum(), lambda: counts.__setitem__(1, 4))


@case
def np_elem():
    a = np.array([2.0, 3.0])
    return (lambda x: x * float(a[0]), lambda: a.__setitem__(0, 5.0))


@case
def np_mean():
    a = np.ones(100000)
    return (lambda x: x * a.mean(), lambda: a.__setitem__(0, 500000.0))


@case
def np_sum_fn():
    a = np.ones(100)
    return (lambda x: x * float(np.sum(a)), lambda: a.__setitem__(0, 5.0))


@case
def np_slice_item():
    a = np.arange(10.0)
    return (lambda x: x * a[2:5].sum(), lambda: a.__setitem__(3, 50.0))


@case
def np_0d():
    a = np.array(2.0)
    return (lambda x: x * float(a), lambda: a.__setitem__((), 5.0))


@case
def np_item():
    a = np.array([2.0])
    return (lambda x: x * a.item(), lambda: a.__setitem__(0, 5.0))


@case
def np_tolist():
    a = np.array([2.0, 3.0])
    return (lambda x: x * a.tolist()[0], lambda: a.__setitem__(0, 5.0))


@case
def np_operand():
    a = np.array([2.0, 3.0, 4.0])
    return (lambda x: x * a, lambda: a.__setitem__(0, 5.0))


@case
def np_operand_expr():
    a = np.array([2.0, 3.0, 4.0])
    return (lambda x: x * (a * 2 + 1), lambda: a.__setitem__(0, 5.0))


@case
def np_view_operand():
    a = np.arange(6.0)
    return (lambda x: x * a[::2], lambda: a.__setitem__(0, 5.0))


@case
def np_shape_branch():
    o = NS(a=np.ones(3))
    return (lambda x: x * len(o.a), lambda: setattr(o, 'a', np.ones(4)))


@case
def np_subclass_attr():

    class A(np.ndarray):
        pass
    a = np.ones(3).view(A)
    a.k = 2.0
    return (lambda x: x * a.k, lambda: setattr(a, 'k', 3.0))


@case
def np_structured():
    a = np.zeros(2, dtype=[('u', 'f8'), ('v', 'f8')])
    a['u'] = 2
    return (lambda x: x * float(a['u'][0]), lambda: a['u'].__setitem__(0, 5.0))


@case
def list_of_arrays():
    l = [np.ones(3), np.ones(3)]
    return (lambda x: sum(l, x), lambda: l[0].__setitem__(0, 5.0))


@case
def list_of_arrays_stack():
    l = [np.ones(3), np.ones(3)]
    return (lambda x: x * jg.stack(l).sum(axis=0), lambda: l[0].__setitem__(0, 5.0))


@case
def list_of_arrays_npstack():
    l = [np.ones(3), np.ones(3)]
    return (lambda x: x * np.stack(l).sum(axis=0), lambda: l[0].__setitem__(0, 5.0))


@case
def tensor_closure():
    w = jg.tensor(np.array([2.0, 3.0, 4.0]))

    def ch():
        w[0] = 9.0
    return (lambda x: x * w, ch)


@case
def tensor_attr_replace():
    o = NS(w=jg.tensor(np.array([2.0, 3.0, 4.0])))

    def ch():
        o.w = jg.tensor(np.array([5.0, 3.0, 4.0]))
    return (lambda x: x * o.w, ch)


@case
def tensor_list_append():
    l = [jg.ones(3)]
    return (lambda x: sum((x * t for t in l), x), lambda: l.append(jg.ones(3) * 2))


@case
def module_training():
    m = nn.Dropout(0.0)
    seq = nn.Sequential(nn.Linear(3, 3), m)

    class M(nn.Module):

        def forward(s, x):
            return x * 2.0 if s.training else x * 3.0
    m = M()
    return (lambda x: m(x), lambda: m.eval())


@case
def module_attr_number():

    class M(nn.Module):

        def __init__(s):
            s.k = 2.0

        def forward(s, x):
            return x * s.k
    m = M()
    return (lambda x: m(x), lambda: setattr(m, 'k', 3.0))


@case
def module_layers():
    m = nn.Sequential(nn.ReLU())

    def ch():
        m.append(nn.Tanh()) if hasattr(m, 'append') else setattr(m, '1', nn.Tanh())
    return (lambda x: m(x), ch)


@case
def module_list():

    class M(nn.Module):

        def __init__(s):
            s.ls = [nn.ReLU()]

        def forward(s, x):
            for l in s.ls:
                x = l(x)
            return x
    m = M()
    return (lambda x: m(x), lambda: m.ls.append(nn.Tanh()))


@case
def module_params_loop():
    m = nn.Linear(3, 3)
    return (lambda x: sum((p.sum() for p in m.parameters()), x), lambda: setattr(m, 'extra', nn.Parameter(jg.ones(3))))


@case
def nested_jit():
    o = NS(k=2.0)
    g = jg.jit(lambda x: x * o.k)
    return (lambda x: g(x) + 1, lambda: setattr(o, 'k', 3.0))


@case
def grad_of_closure():
    o = NS(k=2.0)
    g = jg.grad(lambda x: (x * x * o.k).sum())
    return (lambda x: g(x), lambda: setattr(o, 'k', 3.0))


@case
def grad_cell():
    k = 2.0
    g = jg.grad(lambda x: (x * x * k).sum())

    def ch():
        nonlocal k
        k = 3.0
    return (lambda x: g(x), ch)


@case
def vg_direct():
    k = 2.0

    def loss(x):
        return (x * x * k).sum()

    def ch():
        nonlocal k
        k = 3.0
    return (jg.grad(loss), ch)


@case
def np_load():
    p = tempfile.mktemp() + '.npy'
    np.save(p, 2.0)
    return (lambda x: x * float(np.load(p)), lambda: np.save(p, 3.0))


@case
def np_random():
    return (lambda x: x * np.random.rand(), lambda: None)
