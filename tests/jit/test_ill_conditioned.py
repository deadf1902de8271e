"""The first-call check does not alarm at right programs whose results are mostly rounding errors."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import pytest

import jitgrad as jg

Program = Callable[[Any, Any], Any]
PROGRAMS: dict[str, Program] = {}


def program(f: Program) -> Program:
    PROGRAMS[f.__name__] = f
    return f


def rows(x: Any) -> Any:
    return x.reshape(-1, 20)


# --- moments --------------------------------------------------------------------------------------


@program
def centred_covariance(x, y):
    return ((x - x.mean()) * (y - y.mean())).mean()


@program
def covariance_matrix(x, y):
    a = rows(x) - rows(x).mean(axis=0)
    return a.T @ a / 99.0


@program
def one_pass_variance(x, y):
    return (x * x).mean() - x.mean() ** 2


@program
def one_pass_variance_of_rows(x, y):
    return (rows(x) * rows(x)).mean(axis=1) - rows(x).mean(axis=1) ** 2


@program
def standardise(x, y):
    return (x - x.mean()) / x.std(correction=0)


@program
def standardise_rows(x, y):
    h = rows(x)
    return (h - h.mean(axis=1, keepdims=True)) / (h.std(axis=1, keepdims=True) + 1e-3)


@program
def variance_of_a_constant(x, y):
    return (x * 0.0 + 3.3).var(correction=0)


@program
def mean_of_the_centred(x, y):
    return (x - x.mean()).mean()


@program
def skewness(x, y):
    d = x - x.mean()
    return (d * d * d).mean() / ((d * d).mean() + 1e-3) ** 1.5


@program
def correlation_of_a_line(x, y):
    a, b = x - x.mean(), (x * 0.37 + 1.5) - (x * 0.37 + 1.5).mean()
    return 1.0 - (a * b).sum() / jg.sqrt((a * a).sum() * (b * b).sum() + 1e-3)


# --- distances ------------------------------------------------------------------------------------


@program
def squared_distance_by_expansion(x, y):
    b = x + y * 1e-3
    return (x * x).sum() + (b * b).sum() - 2.0 * (x * b).sum()


@program
def pairwise_distances_by_expansion(x, y):
    a = rows(x)[:10]
    squares = (a * a).sum(axis=1)
    return squares[:, None] + squares[None, :] - 2.0 * (a @ a.T)


@program
def hypotenuse_minus_leg(x, y):
    return jg.sqrt(x * x + y * y * 1e-4) - x


@program
def angle_between_near_vectors(x, y):
    a, b = rows(x), rows(x) + rows(y) * 1e-3
    cosine = (a * b).sum(axis=1) / jg.sqrt((a * a).sum(axis=1) * (b * b).sum(axis=1))
    return jg.acos(jg.clip(cosine, -0.999, 0.999))


# --- differences ----------------------------------------------------------------------------------


@program
def forward_difference(x, y):
    return (jg.sin(x + 1e-3) - jg.sin(x)) / 1e-3


@program
def tiny_step_difference(x, y):
    return (jg.exp(x * 0.1 + 1e-6) - jg.exp(x * 0.1)) / 1e-6


@program
def second_difference(x, y):
    h = 1e-2
    return (jg.tanh(x + h) - 2.0 * jg.tanh(x) + jg.tanh(x - h)) / (h * h)


@program
def one_minus_power(x, y):
    return 1.0 - (1.0 - y * 1e-6) ** 9


@program
def one_minus_cosine(x, y):
    return (1.0 - jg.cos(x * 1e-2)) / (x * x)


@program
def exponential_minus_one(x, y):
    return jg.exp(y * 1e-4) - 1.0


@program
def logarithm_near_one(x, y):
    return jg.log(1.0 + y * 1e-4)


@program
def tangent_minus_sine(x, y):
    return jg.tan(y * 1e-1) - jg.sin(y * 1e-1)


@program
def difference_of_gelus(x, y):
    return jg.gelu(-x) + jg.gelu(x) - x * jg.erf(x * 0.70710678)


@program
def adjacent_differences(x, y):
    s = jg.cumulative_sum(x, axis=0)
    return s[1:] - s[:-1] - x[1:]


# --- probabilities --------------------------------------------------------------------------------


@program
def divergence_of_close_distributions(x, y):
    p, q = jg.softmax(rows(x)), jg.softmax(rows(x) + rows(y) * 1e-3)
    return (p * (jg.log(p) - jg.log(q))).sum(axis=1)


@program
def difference_of_logsumexps(x, y):
    return jg.logsumexp(rows(x), axis=1) - jg.log(jg.exp(rows(x)).sum(axis=1))


@program
def softmax_sums_minus_one(x, y):
    return jg.softmax(rows(x)).sum(axis=1) - 1.0


@program
def confident_cross_entropy(x, y):
    return jg.log_softmax(rows(x) * 8.0).max(axis=1)


@program
def put_call_parity(x, y):
    def normal(z):
        return 0.5 * (1.0 + jg.erf(z * 0.70710678))

    price, strike = 1.0 + 0.1 * y, 1.05
    d = jg.log(price / strike) / 0.2 + 0.1
    call = price * normal(d) - strike * normal(d - 0.2)
    put = strike * normal(0.2 - d) - price * normal(-d)
    return call - put - (price - strike)


@program
def logit_of_sigmoid(x, y):
    p = jg.sigmoid(x * 0.8)
    return jg.log(p / (1.0 - p)) - x * 0.8


# --- long chains, roots and decisions ---------------------------------------------------------------


@program
def polynomial_at_its_root(x, y):
    z = 1.0 + y * 1e-2
    return reduce(lambda p, c: p * z + c, [1.0, -5.0, 10.0, -10.0, 5.0, -1.0], z * 0.0)


@program
def kahan_remainder(x, y):
    total = x * 100.0
    added = total + y
    return (added - total) - y


@program
def newton_iterations(x, y):
    r = y
    for _ in range(8):
        r = 0.5 * (r + y / r)
    return r * r - y


@program
def long_chain(x, y):
    h = x
    for _ in range(12):
        h = jg.sin(h) * 1.7 + jg.tanh(y - h)
    return h


@program
def logistic_map(x, y):
    h = jg.sigmoid(x)
    for _ in range(12):
        h = 3.9 * h * (1.0 - h)
    return h


@program
def sign_of_noise(x, y):
    noise = jg.exp(jg.log(y)) - y
    return noise / (jg.abs(noise) + 1e-5)


@program
def choice_near_a_tie(x, y):
    return jg.where(jg.exp(jg.log(y)) > y, x, -x)


@program
def rounded_quotients(x, y):
    return jg.floor(jg.sqrt(jg.round(y * 3.0) ** 2) * 1.0)


@program
def overflow_limit(x, y):
    return jg.exp(jg.log(y * 1e4) + x * 0.3) * 1e-4


@program
def nested_means(x, y):
    h = rows(x) - rows(x).mean(axis=1, keepdims=True)
    return (h - h.mean(axis=0)).sum(axis=0)


# --- the tests ------------------------------------------------------------------------------------


def operands(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(1)
    return (random.standard_normal(2000) + 3.0).astype(dtype), random.uniform(0.5, 2.0, 2000).astype(dtype)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_rounding_is_no_mistake(name: str, dtype: str) -> None:
    jg.jit(PROGRAMS[name])(*map(jg.tensor, operands(dtype)))  # a MismatchWarning is an error


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_rounding_is_no_mistake_in_gradients(name: str, dtype: str) -> None:
    def loss(x: Any, y: Any) -> Any:
        out = PROGRAMS[name](x, y)
        return (out * out).sum()

    jg.jit(jg.value_and_grad(loss, argnums=(0, 1)))(*map(jg.tensor, operands(dtype)))


@pytest.mark.parametrize("dtype", ["i8", "f8"])
@pytest.mark.parametrize("size", [300, 5000])
def test_sums_of_large_integers_round_away_small_ones(size: int, dtype: str) -> None:
    """Each term has few significant bits, and so has the sum, but 2**63 + 3 is no float."""
    x = np.resize(np.array([2**63 - 1, -(2**63) + 2, 3]), size).astype(dtype)
    for function in (lambda x: x.mean(), lambda x: (x * 1.0).sum(), lambda x: x.reshape(10, -1).mean(axis=1)):
        jg.jit(function, backend="python")(jg.tensor(x))
