"""A function of one example, and examples for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import jitgrad as jg

RNG = np.random.default_rng(0)
XS, P = jg.tensor(RNG.normal(size=(5, 3))), jg.tensor(RNG.normal(size=3))


def f(p: Any, x: Any) -> Any:
    return jg.tanh((p * x).sum()) ** 2


def looped(function: Callable[..., Any], *wholes: Any) -> Any:
    return np.stack([function(*[w[k] for w in wholes]).detach().numpy() for k in range(wholes[0].shape[0])])


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(
        found.detach().numpy(), expected if isinstance(expected, np.ndarray) else expected.detach().numpy(), rtol=1e-9, atol=1e-12
    )
