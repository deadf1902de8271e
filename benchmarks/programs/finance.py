"""Prices of options: a formula, and a simulation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.programs.program import gradient_of, program
from benchmarks.workload import Arrays, Sizes


def _black_scholes(xp: Any, spot: Any, volatility: Any, strike: Any, years: Any) -> Any:
    """The price of calls and puts, and its derivatives by spot and volatility."""
    rate, width = 0.03, volatility * xp.sqrt(years)
    d1 = (xp.log(spot / strike) + (rate + 0.5 * volatility * volatility) * years) / width
    d2 = d1 - width
    discounted = strike * xp.exp(-rate * years)

    def normal(d: Any) -> Any:
        return 0.5 * (1 + xp.erf(d / math.sqrt(2)))

    call = spot * normal(d1) - discounted * normal(d2)
    return xp.sum(call + (call - spot + discounted))


def _options(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    n = sizes["n"]
    return rng.uniform(50, 150, n), rng.uniform(0.1, 0.5, n), rng.uniform(50, 150, n), rng.uniform(0.1, 2, n)


def _heston(xp: Any, parameters: Any, noise: Any) -> Any:
    """The price of a call by paths of Heston's model, and its derivatives by the parameters."""
    kappa, theta, xi, rho, start = (parameters[k] for k in range(5))
    dt = 1.0 / noise.shape[1]
    log_price, variance = 0.0 * noise[0, 0], start + 0.0 * noise[0, 0]
    for t in range(noise.shape[1]):
        positive = xp.where(variance > 1e-8, variance, 1e-8)
        root = xp.sqrt(positive * dt)
        mixed = rho * noise[0, t] + xp.sqrt(1 - rho * rho) * noise[1, t]
        log_price = log_price - 0.5 * positive * dt + root * noise[0, t]
        variance = variance + kappa * (theta - positive) * dt + xi * root * mixed
    gain = xp.exp(log_price) - 1.0
    return xp.mean(xp.where(gain > 0, gain, 0.0 * gain))


PROGRAMS = (
    program(
        "black_scholes", "a million options: prices, d/dspot, d/dvolatility", _options, gradient_of(_black_scholes, (0, 1)),
        {"n": 1_000_000}, {"n": 50}, "arithmetic: log, exp, erf, roots and divisions", tolerance=1e-8,
    ),
    program(
        "heston", "20,000 paths of 50 steps: price and 5 derivatives",
        lambda rng, s: (np.array([1.5, 0.04, 0.3, -0.7, 0.05]), rng.normal(size=(2, s["steps"], s["paths"]))),
        gradient_of(_heston), {"paths": 20_000, "steps": 50}, {"paths": 16, "steps": 4},
        "arithmetic: a root a step, forward and back", tolerance=1e-7,
    ),
)  # fmt: skip
