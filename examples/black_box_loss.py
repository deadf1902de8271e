"""A custom loss: Black-Scholes prices over a grid with their first and second derivatives, in one pass.

    python examples/black_box_loss.py [--device cuda]

No library has this loss. It uses ordinary ops and two custom ops, which ``elementwise`` makes from scalar Python
functions and differentiates. Under ``jit`` the price, delta, vega and gamma of every spot and strike are
computed in one pass over the grid, and agree with the closed forms; the gradient of a robust loss then finds the
volatility that explains the prices.

F. Black, M. Scholes, "The Pricing of Options and Corporate Liabilities", Journal of Political Economy 81, 1973.
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np

import jitgrad as jg

RATE, YEARS, VOLATILITY = 0.03, 0.75, 0.2


@jg.elementwise
def normal_cdf(x):
    """The probability that a standard normal variable is below x."""
    return 0.5 * (1.0 + math.erf(x * math.sqrt(0.5)))


@jg.elementwise
def robust(error, width):
    """Huber's loss: quadratic for errors up to ``width``, linear beyond."""
    if abs(error) <= width:
        return 0.5 * error * error
    return width * (abs(error) - 0.5 * width)


def call_price(spot: Any, strike: Any, volatility: Any) -> Any:
    """The price of European call options; the three arguments broadcast."""
    spread = volatility * math.sqrt(YEARS)
    d1 = (jg.log(spot / strike) + (RATE + 0.5 * volatility * volatility) * YEARS) / spread
    return spot * normal_cdf(d1) - strike * math.exp(-RATE * YEARS) * normal_cdf(d1 - spread)


def total_price(spot: Any, strike: Any, volatility: Any) -> Any:
    """The sum over the grid: its gradient is the derivative of each price."""
    return call_price(spot, strike, volatility).sum()


@jg.jit
def greeks(spot: Any, strike: Any, volatility: Any) -> dict[str, Any]:
    """Price, delta, gamma and vega on a grid: ``spot`` and ``volatility`` [spots, strikes], ``strike`` [strikes]."""

    def total_delta(s: Any) -> Any:
        return jg.grad(total_price)(s, strike, volatility).sum()

    delta, vega = jg.grad(total_price, argnums=(0, 2))(spot, strike, volatility)
    gamma = jg.grad(total_delta)(spot)
    return {"price": call_price(spot, strike, volatility), "delta": delta, "gamma": gamma, "vega": vega}


def closed_forms(spot: Any, strike: Any, volatility: Any) -> dict[str, Any]:
    """The same from the textbook, in NumPy."""
    erf = np.vectorize(math.erf, otypes=[np.float64])
    spread = volatility * np.sqrt(YEARS)
    d1 = (np.log(spot / strike) + (RATE + volatility**2 / 2) * YEARS) / spread
    below = [0.5 * (1 + erf(d / np.sqrt(2))) for d in (d1, d1 - spread)]
    density = np.exp(-(d1**2) / 2) / np.sqrt(2 * np.pi)
    return {
        "price": spot * below[0] - strike * np.exp(-RATE * YEARS) * below[1],
        "delta": below[0],
        "gamma": density / (spot * spread),
        "vega": spot * density * np.sqrt(YEARS),
    }


@jg.jit
def mispricing(volatility: Any, spot: Any, strike: Any, market: Any) -> Any:
    """The distance of model prices from the market's, as a loss that a few wrong quotes do not dominate."""
    return robust(call_price(spot, strike, volatility) - market, 1.0).mean()


def calibrate(spot: Any, strike: Any, market: Any, steps: int) -> float:
    """The one volatility that explains ``market``, by gradient descent from 0.4."""
    volatility = jg.tensor(0.4, dtype=jg.float64, device=spot.device, requires_grad=True)
    optimizer = jg.optim.Adam([volatility], lr=0.02)
    for _ in range(steps):
        optimizer.zero_grad()
        mispricing(volatility, spot, strike, market).backward()
        optimizer.step()
    return float(volatility.item())


def main(spots: int = 300, strikes: int = 200, steps: int = 200, device: str = "cpu") -> dict[str, float]:
    """Check all four grids against the closed forms; the largest error of each, and the calibrated volatility."""
    strike = np.linspace(80.0, 120.0, strikes)
    spot = np.repeat(np.linspace(60.0, 140.0, spots)[:, None], strikes, axis=1)
    volatility = np.full_like(spot, VOLATILITY)
    grid = [jg.tensor(a, device=device) for a in (spot, strike, volatility)]
    computed, expected = greeks(*grid), closed_forms(spot, strike, volatility)
    for kernel in greeks.kernels(*grid):
        print(kernel.source)
    errors = {name: float(np.abs(computed[name].cpu().numpy() - expected[name]).max()) for name in expected}
    for name, error in errors.items():
        print(f"{name:6s} {spots} x {strikes}   largest error {error:.1e}")
        assert error < 1e-10, f"{name} is off by {error}"
    errors["volatility"] = calibrate(*grid[:2], jg.tensor(expected["price"], device=device), steps)
    print(f"volatility recovered from the prices: {errors['volatility']:.6f}, it was {VOLATILITY}")
    return errors


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    main(device=parser.parse_args().device)
