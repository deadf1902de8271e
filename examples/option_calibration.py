"""Fits a volatility smile to option prices: SciPy's optimiser on a compiled Black-Scholes formula and its gradient.

    python examples/option_calibration.py [--picture smile.png] [--device cuda]

The smile is Gatheral's SVI parametrisation, w(k) = a + b (rho (k - m) + sqrt((k - m)^2 + s^2)), of the total variance w
at log-moneyness k (J. Gatheral and A. Jacquier, "Arbitrage-free SVI volatility surfaces", Quantitative Finance 14, 2014).
`scipy.optimize.minimize` gets the compiled function as it is: NumPy arrays go in, a number and an array come out.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from scipy.optimize import minimize

import jitgrad as jg

TRUE = np.array([0.02, 0.12, -0.4, 0.05, 0.2])  # a, b, rho, m, s
START = np.array([0.04, 0.05, 0.0, 0.0, 0.4])
BOUNDS = ((1e-3, 1), (1e-3, 1), (-0.99, 0.99), (-0.5, 0.5), (1e-2, 1))


def total_variance(smile: Any, k: Any) -> Any:
    """w at log-moneyness ``k`` of the parameters ``smile`` [5]."""
    a, b, rho, m, s = (smile[j] for j in range(5))
    return a + b * (rho * (k - m) + jg.sqrt((k - m) ** 2 + s**2))


def call_prices(smile: Any, k: Any) -> Any:
    """Black-Scholes prices of calls, as a part of the forward price, with strikes ``exp(k)`` times that."""
    w = jg.sqrt(total_variance(smile, k))
    above, below = -k / w + 0.5 * w, -k / w - 0.5 * w
    return _normal(above) - jg.exp(k) * _normal(below)


def _normal(x: Any) -> Any:
    return 0.5 * jg.erfc(-x / np.sqrt(2.0))


def for_optimizer(step: Any, device: str) -> Any:
    """``step`` for an optimiser on the host: on a GPU, parameters are copied to it, and its results back."""
    if device == "cpu":
        return step

    def run(parameters: Any) -> tuple[float, Any]:
        value, gradient = step(jg.tensor(parameters, device=device))
        return value.item(), gradient.cpu().numpy()

    return run


def main(strikes: int = 20_000, noise: float = 1e-4, picture: str = "", device: str = "cpu") -> np.ndarray[Any, Any]:
    """Returns the parameters found."""
    generator = np.random.default_rng(0)
    k = np.sort(generator.uniform(-0.8, 0.8, strikes))
    quotes = call_prices(jg.tensor(TRUE), jg.tensor(k)).numpy() + noise * generator.normal(size=strikes)

    places, prices = jg.tensor(k, device=device), jg.tensor(quotes, device=device)

    def loss(smile: Any) -> Any:
        return ((call_prices(smile, places) - prices) ** 2).mean() / noise**2

    gradient = jg.value_and_grad(loss)
    eager, fused = for_optimizer(gradient, device), for_optimizer(jg.jit(gradient), device)
    fused(START)  # compile
    found = {}
    for name, function in (("eager", eager), ("fused", fused)):
        start = time.perf_counter()
        result = minimize(function, START, jac=True, bounds=BOUNDS, options={"ftol": 1e-12, "maxiter": 500})
        found[name] = result.x
        print(f"{name}: {result.nfev} gradients in {time.perf_counter() - start:.3f} s, loss {result.fun:.4f}")
    for name, true, value in zip(("a", "b", "rho", "m", "s"), TRUE, found["fused"], strict=True):
        print(f"  {name:4} {value:8.4f}   true {true:7.4f}")
    if picture:
        save(picture, k, found["fused"])
    return np.asarray(found["fused"])


def save(path: str, k: np.ndarray[Any, Any], smile: np.ndarray[Any, Any]) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(5, 3))
    for name, parameters in (("true", TRUE), ("found", smile)):
        axes.plot(k, np.sqrt(total_variance(jg.tensor(parameters), jg.tensor(k)).numpy()), label=name)
    axes.set(xlabel="log-moneyness", ylabel="volatility")
    axes.legend()
    figure.savefig(path, bbox_inches="tight")
    print(f"saved {path}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--picture", default="", help="where to save a picture; needs matplotlib")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    options = parser.parse_args()
    main(picture=options.picture, device=options.device)
