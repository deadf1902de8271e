"""A Gaussian process on the diabetes data: hyperparameters by SciPy's optimiser on the marginal likelihood.

    python examples/gaussian_process.py [--picture process.png] [--device cuda]

Written with `jitgrad.numpy` as one would write it with NumPy: the kernel matrix, its Cholesky factor and two solves.
Formulas: C. E. Rasmussen and C. K. I. Williams, "Gaussian Processes for Machine Learning", 2006, algorithm 2.1.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy
from scipy.optimize import minimize
from sklearn.datasets import load_diabetes

import jitgrad as jg
import jitgrad.numpy as np

START = numpy.array([0.0, -1.0, *[0.0] * 10])  # logarithms of amplitude, noise, and a length for each of ten features


def covariance(logs: Any, one: Any, other: Any) -> Any:
    """The squared exponential kernel between points [n, features] and [m, features]; [n, m]."""
    a, b = one / np.exp(logs[2:]), other / np.exp(logs[2:])
    squares = np.sum(a**2, 1)[:, None] + np.sum(b**2, 1)[None, :] - 2 * a @ b.T
    return np.exp(2 * logs[0] - 0.5 * squares)


def factor(logs: Any, x: Any) -> Any:
    """The Cholesky factor of the covariance of noisy observations at ``x``."""
    return np.linalg.cholesky(covariance(logs, x, x) + (np.exp(2 * logs[1]) + 1e-8) * np.eye(len(x)))


def predict(logs: Any, x: Any, y: Any, new: Any) -> Any:
    """The mean at the points ``new`` after observations ``y`` at ``x``."""
    root = factor(logs, x)
    return covariance(logs, new, x) @ np.linalg.solve(root.T, np.linalg.solve(root, y))


def for_optimizer(step: Any, device: str) -> Any:
    """``step`` for an optimiser on the host: on a GPU, parameters are copied to it, and its results back."""
    if device == "cpu":
        return step

    def run(parameters: Any) -> tuple[float, Any]:
        value, gradient = step(jg.tensor(parameters, device=device))
        return value.item(), gradient.cpu().numpy()

    return run


def main(training: int = 300, steps: int = 60, picture: str = "", device: str = "cpu") -> float:
    """Returns the part of the variance of unseen values that the mean explains."""
    data = load_diabetes()
    order = numpy.random.default_rng(0).permutation(len(data.target))
    x = (data.data / data.data.std(axis=0))[order]
    y = ((data.target - data.target.mean()) / data.target.std())[order]
    at, values, new = jg.tensor(x[:training], device=device), jg.tensor(y[:training], device=device), slice(training, None)

    def cost(logs: Any) -> Any:
        root = factor(logs, at)
        scaled = np.linalg.solve(root, values)
        return 0.5 * np.sum(scaled**2) + np.sum(np.log(np.diagonal(root)))

    step = for_optimizer(jg.jit(jg.value_and_grad(cost)), device)
    step(START)  # compile
    start = time.perf_counter()
    found = minimize(step, START, jac=True, method="L-BFGS-B", options={"maxiter": steps})
    print(f"{found.nfev} gradients in {time.perf_counter() - start:.2f} s: {float(step(START)[0]):.1f} -> {found.fun:.1f}")
    logs, unseen = jg.tensor(found.x, device=device), jg.tensor(x[new], device=device)
    mean = jg.jit(predict)(logs, at, values, unseen).cpu().numpy()
    explained = float(1 - numpy.mean((mean - y[new]) ** 2) / numpy.var(y[new]))
    print(f"explains {explained:.0%} of the variance of {len(y[new])} unseen values")
    for name, length in sorted(zip(data.feature_names, numpy.exp(found.x[2:]), strict=True), key=lambda pair: pair[1])[:4]:
        print(f"  {name:4} varies over {length:.2f} standard deviations")
    if picture:
        save(picture, mean, y[new])
    return explained


def save(path: str, mean: Any, truth: Any) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(4, 4))
    axes.plot(truth, mean, ".")
    axes.set(xlabel="measured", ylabel="predicted")
    figure.savefig(path, bbox_inches="tight")
    print(f"saved {path}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--picture", default="", help="where to save a picture; needs matplotlib")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    options = parser.parse_args()
    main(picture=options.picture, device=options.device)
