"""Black-box variational inference of a neural network's weights, and a recurrent network with a hand-written gradient."""

import numpy as onp

import autograd.numpy as np
import autograd.numpy.random as npr
import autograd.scipy.stats.norm as norm
from autograd import elementwise_grad, grad, hessian_vector_product, jacobian
from autograd.extend import defvjp, primitive
from autograd.misc import flatten
from autograd.misc.optimizers import adam


@primitive
def softplus(x):
    return onp.logaddexp(x, 0.0)


defvjp(softplus, lambda ans, x: lambda g: g * (1.0 - np.exp(-ans)))


def unpack_layers(num_samples, weights, shapes):
    for m, n in shapes:
        yield (
            weights[:, : m * n].reshape((num_samples, m, n)),
            weights[:, m * n : m * n + n].reshape((num_samples, 1, n)),
        )
        weights = weights[:, (m + 1) * n :]


def predictions(weights, inputs, shapes):
    inputs = np.expand_dims(inputs, 0)
    for W, b in unpack_layers(len(weights), weights, shapes):
        outputs = np.einsum("mnd,mdo->mno", inputs, W) + b
        inputs = np.exp(-(outputs**2))
    return outputs


def main(compile):
    shapes = [(1, 4), (4, 1)]
    num_weights = sum((m + 1) * n for m, n in shapes)
    inputs = np.linspace(-2.0, 2.0, 9)[:, None]
    targets = np.cos(inputs)
    noise = npr.RandomState(1).randn(6, num_weights)

    def objective(params, t):
        mean, log_std = params[:num_weights], params[num_weights:]
        samples = noise * np.exp(log_std) + mean
        log_prior = np.sum(norm.logpdf(samples, 0.0, 1.0), axis=1)
        preds = predictions(samples, inputs, shapes)
        log_lik = -np.sum((preds - targets) ** 2, axis=1)[:, 0] / 0.1
        entropy = np.sum(log_std) + 0.5 * num_weights * np.log(2 * np.pi * np.e)
        return -(entropy + np.mean(log_prior + log_lik))

    gradient = compile(grad(objective))
    params = np.concatenate([np.zeros(num_weights) + 0.1, -5.0 * np.ones(num_weights)])
    seen = []
    params = adam(gradient, params, step_size=0.05, num_iters=6, callback=lambda p, t, g: seen.append(objective(p, t)))

    def rnn(weights, xs):
        h = np.zeros(3)
        for x in xs:
            h = np.tanh(np.dot(weights["hh"], h) + softplus(np.dot(weights["xh"], x)))
        return np.sum(h**2)

    start = {"hh": 0.3 * np.cos(np.arange(9.0)).reshape(3, 3), "xh": 0.5 * np.sin(np.arange(6.0)).reshape(3, 2)}
    xs = np.cos(np.arange(10.0)).reshape(5, 2)
    flat, unflatten = flatten(start)
    loss = lambda w: rnn(unflatten(w), xs)
    curvature = compile(hessian_vector_product(loss))(flat, flat)
    slopes = elementwise_grad(elementwise_grad(lambda x: np.sin(x) * softplus(x)))(np.linspace(-1.0, 1.0, 5))
    sensitivity = compile(jacobian(lambda b: np.dot(start["hh"], np.tanh(b)) * b))(np.arange(3.0))
    return np.concatenate([np.array(seen), params, compile(grad(loss))(flat), curvature, slopes, np.ravel(sensitivity)])
