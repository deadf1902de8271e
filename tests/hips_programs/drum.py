"""Waves on a drum fitted by gradients of Bessel functions, and densities of distributions."""

import autograd.numpy as np
import autograd.numpy.random as npr
from autograd import grad, elementwise_grad as egrad, jacobian, hessian, value_and_grad, make_jvp
from autograd.scipy.special import j0, j1, jn, y0, y1, yn, i0, i1, iv, gammaln, expit, logsumexp, erf, erfinv, betainc, digamma
import autograd.scipy.stats.norm as norm
import autograd.scipy.stats.poisson as poisson
import autograd.scipy.stats.t as t
from autograd.misc.optimizers import adam, sgd
from autograd.misc import flatten

def drum(params, r):
    k, a, b = params
    return a * j0(k * r) + b * y0(k * r + 0.5) + 0.1 * jn(2, k * r) - 0.05 * j1(k * r) * y1(r + 1.0) + 0.01 * iv(1, r)

def main(jit):
    r = np.linspace(0.1, 5, 20)
    target = drum(np.array([1.3, 0.7, 0.2]), r)
    loss = lambda p, i=0: np.mean((drum(p, r) - target) ** 2)
    g = jit(grad(loss))
    p = np.array([1.0, 0.5, 0.0])
    out = [loss(p), *g(p), *egrad(jn, 1)(3, r[:3]), *egrad(yn, 1)(2, r[:3])]
    out += [float(v) for v in hessian(loss)(p).ravel()]
    p = adam(lambda p, i: g(p), p, step_size=0.05, num_iters=10)
    out += list(p)
    v, unflatten = flatten({"a": np.ones(2), "b": (np.zeros(3), 2.0)})
    out += list(v)
    out += [grad(lambda m: np.sum(norm.logpdf(r, m, 2.0) + t.logpdf(r, 3.0, m, 1.0)))(0.5), grad(lambda l: np.sum(poisson.logpmf(np.arange(4), l)))(1.5)]
    return np.array([float(v) for v in out])
