"""Programs in the style of autograd.numpy, with only their imports changed: the same numbers as NumPy, eager and compiled."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import jitgrad as jg
import jitgrad.numpy as np
import jitgrad.numpy.random as npr
from jitgrad import grad, value_and_grad
from jitgrad.core.errors import DtypeError, ShapeError
from jitgrad.scipy.special import logsumexp
from jitgrad.testing import check_grads

wraps = pytest.mark.parametrize("wrap", [lambda f: f, jg.jit], ids=["eager", "jit"])


@pytest.fixture(autouse=True)
def in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", "python")


def sigmoid(x: Any) -> Any:
    return 0.5 * (np.tanh(x / 2.0) + 1)


@wraps
def test_logistic_regression(wrap: Any) -> None:
    inputs = np.array([[0.52, 1.12, 0.77], [0.88, -1.08, 0.15], [0.52, 0.06, -1.30], [0.74, -2.49, 1.39]])
    targets = np.array([True, True, False, True])

    def training_loss(weights):
        predictions = sigmoid(np.dot(inputs, weights))
        label_probabilities = predictions * targets + (1 - predictions) * (1 - targets)
        return -np.sum(np.log(label_probabilities))

    gradient_fun = wrap(grad(training_loss))
    weights = np.array([0.0, 0.0, 0.0])
    first = training_loss(weights).item()
    for _ in range(50):
        weights -= gradient_fun(weights) * 0.1

    assert first == pytest.approx(4 * numpy.log(2))
    assert training_loss(weights).item() < first / 5
    check_grads(training_loss, [weights.numpy()], order=2)


@wraps
def test_gaussian_process(wrap: Any) -> None:
    rs = npr.RandomState(0)
    X = numpy.sort(rs.uniform(-2, 2, (12, 1)), 0)
    y = numpy.sin(2 * X[:, 0]) + 0.05 * rs.randn(12)

    def covariance(np, kernel_params, x, xp):
        output_scale = np.exp(kernel_params[0])
        lengthscales = np.exp(kernel_params[1:])
        diffs = np.expand_dims(x / lengthscales, 1) - np.expand_dims(xp / lengthscales, 0)
        return output_scale * np.exp(-0.5 * np.sum(diffs**2, axis=2))

    def log_marginal_likelihood(np, params):
        K = covariance(np, params[1:], X, X) + np.exp(params[0]) * np.eye(len(y))
        L = np.linalg.cholesky(K)
        alpha = np.linalg.solve(L.T, np.linalg.solve(L, y))
        return -0.5 * np.dot(y, alpha) - np.sum(np.log(np.diag(L))) - len(y) / 2 * np.log(2 * np.pi)

    params = numpy.array([-1.0, 0.2, -0.3])
    objective = wrap(value_and_grad(lambda p: log_marginal_likelihood(np, p)))
    value, gradient = objective(jg.asarray(params))

    assert value.item() == pytest.approx(log_marginal_likelihood(numpy, params), rel=1e-12)
    for k in range(3):
        step = numpy.eye(3)[k] * 1e-6
        slope = (log_marginal_likelihood(numpy, params + step) - log_marginal_likelihood(numpy, params - step)) / 2e-6
        assert gradient[k].item() == pytest.approx(slope, rel=1e-6)


@wraps
def test_mixture_by_expectation_maximisation(wrap: Any) -> None:
    """One step of EM is the gradient of the log-likelihood with respect to shifts of the log-densities."""
    rs = npr.RandomState(1)
    data = numpy.concatenate([rs.randn(40) - 2, rs.randn(60) * 0.5 + 1])

    def log_densities(means, scales):
        return -0.5 * ((data[:, None] - means) / scales) ** 2 - np.log(scales)

    def log_likelihood(log_joint):
        return np.sum(logsumexp(log_joint, axis=1))

    def em_step(log_weights, means, scales):
        resp = grad(log_likelihood)(log_weights + log_densities(means, scales))
        counts = np.sum(resp, axis=0)
        new_means = np.dot(resp.T, data) / counts
        variance = np.sum(resp * (data[:, None] - new_means) ** 2, axis=0) / counts
        return np.log(counts / len(data)), new_means, np.sqrt(variance)

    state = np.log(np.array([0.5, 0.5])), np.array([-1.0, 1.5]), np.ones(2)
    step = wrap(em_step)
    likelihoods = []
    for _ in range(20):
        state = step(*state)
        likelihoods.append(log_likelihood(state[0] + log_densities(*state[1:])).item())

    assert numpy.all(numpy.diff(likelihoods) > -1e-9)
    assert np.sum(np.exp(state[0])).item() == pytest.approx(1)
    numpy.testing.assert_allclose(state[1].numpy(), [-2, 1], atol=0.4)


def test_rosenbrock_by_scipys_minimize():
    optimize = pytest.importorskip("scipy.optimize")

    def rosenbrock(x):
        return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    found = optimize.minimize(jg.jit(value_and_grad(rosenbrock)), numpy.array([-1.2, 1.0, 0.7]), jac=True)

    assert found.success
    numpy.testing.assert_allclose(found.x, 1.0, atol=1e-5)


def test_a_recurrent_network_with_parameters_as_one_vector():
    rs = npr.RandomState(2)
    params = {"change": rs.randn(6, 5) * 0.5, "predict": [rs.randn(5, 3) * 0.5, numpy.zeros(3)], "start": rs.randn(1, 5)}
    inputs = rs.randn(4, 2, 1)
    targets = numpy.eye(3)[rs.randint(0, 3, (4, 2))]

    def rnn_loss(params):
        hiddens = np.repeat(params["start"], 2, axis=0)
        total = 0.0
        for x, target in zip(inputs, targets, strict=True):
            hiddens = np.tanh(np.dot(np.hstack((x, hiddens)), params["change"]))
            output = np.dot(hiddens, params["predict"][0]) + params["predict"][1]
            total = total - np.sum((output - logsumexp(output, axis=1, keepdims=True)) * target)
        return total

    vector, unflatten = jg.flatten_params(params)
    loss = jg.jit(value_and_grad(lambda v: rnn_loss(unflatten(v))))
    value, gradient = loss(vector)
    tree = grad(rnn_loss)({name: unflatten(vector)[name] for name in params})

    assert vector.shape == gradient.shape == (30 + 18 + 5,)
    assert value.item() == pytest.approx(rnn_loss(params).item())
    numpy.testing.assert_allclose(unflatten(gradient)["change"].numpy(), tree["change"].numpy(), rtol=1e-10)
    numpy.testing.assert_allclose(unflatten(gradient)["predict"][1].numpy(), tree["predict"][1].numpy(), rtol=1e-10)
    assert loss(vector - 0.01 * gradient)[0].item() < value.item()


def test_flatten_params_keeps_shapes_and_dtypes():
    tree = [jg.ones(2), {"a": 1.5, "b": numpy.ones((2, 2))}]

    vector, unflatten = jg.flatten_params(tree)
    back = unflatten(vector.numpy() * 2)

    assert vector.dtype == numpy.float64 and vector.tolist() == [1.0, 1.0, 1.5, 1.0, 1.0, 1.0, 1.0]
    assert back[0].dtype == numpy.float32 and back[1]["a"].item() == 3.0 and back[1]["b"].tolist() == [[2.0, 2.0]] * 2
    assert jg.flatten_params([])[0].shape == (0,)
    with pytest.raises(ShapeError, match="3 leaves, which have 7 elements"):
        unflatten(numpy.ones(3))
    with pytest.raises(DtypeError, match="keep it out of the tree"):
        jg.flatten_params([jg.tensor(1)])
