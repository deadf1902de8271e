"""Gaussian process regression, whose covariance function is learned, and its predictions."""

import autograd.numpy as np
import autograd.numpy.random as npr
import autograd.scipy.stats.multivariate_normal as mvn
from autograd import value_and_grad
from autograd.misc.optimizers import adam
from autograd.numpy.linalg import solve


def make_gp_funs(cov_func, num_cov_params):
    def unpack_kernel_params(params):
        mean = params[0]
        cov_params = params[2:]
        noise_scale = np.exp(params[1]) + 0.0001
        return mean, cov_params, noise_scale

    def predict(params, x, y, xstar):
        mean, cov_params, noise_scale = unpack_kernel_params(params)
        cov_f_f = cov_func(cov_params, xstar, xstar)
        cov_y_f = cov_func(cov_params, x, xstar)
        cov_y_y = cov_func(cov_params, x, x) + noise_scale * np.eye(len(y))
        pred_mean = mean + np.dot(solve(cov_y_y, cov_y_f).T, y - mean)
        pred_cov = cov_f_f - np.dot(solve(cov_y_y, cov_y_f).T, cov_y_f)
        return pred_mean, pred_cov

    def log_marginal_likelihood(params, x, y):
        mean, cov_params, noise_scale = unpack_kernel_params(params)
        cov_y_y = cov_func(cov_params, x, x) + noise_scale * np.eye(len(y))
        prior_mean = mean * np.ones(len(y))
        return mvn.logpdf(y, prior_mean, cov_y_y)

    return num_cov_params + 2, predict, log_marginal_likelihood


def rbf_covariance(kernel_params, x, xp):
    output_scale = np.exp(kernel_params[0])
    lengthscales = np.exp(kernel_params[1:])
    diffs = np.expand_dims(x / lengthscales, 1) - np.expand_dims(xp / lengthscales, 0)
    return output_scale * np.exp(-0.5 * np.sum(diffs**2, axis=2))


def main(compile):
    x = np.linspace(-3.0, 3.0, 12)[:, None]
    y = np.sin(x[:, 0]) + 0.1 * np.cos(7.0 * x[:, 0])
    num_params, predict, log_marginal_likelihood = make_gp_funs(rbf_covariance, num_cov_params=2)
    rs = npr.RandomState(0)
    params = 0.1 * rs.randn(num_params)
    objective = compile(value_and_grad(lambda params: -log_marginal_likelihood(params, x, y)))
    losses = []

    def gradient(params, i):
        loss, g = objective(params)
        losses.append(loss)
        return g

    params = adam(gradient, params, step_size=0.1, num_iters=8)
    mean, cov = compile(predict)(params, x, y, np.linspace(-4.0, 4.0, 5)[:, None])
    return np.concatenate([np.array(losses), params, mean, np.diag(cov)])
