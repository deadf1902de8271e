"""Gumbel noise on the logarithms of weights, the largest of which is a random choice."""

from __future__ import annotations

import numpy as np

from jitgrad.core.tensor import Tensor
from jitgrad.eager.compositions import composed
from jitgrad.ops.arithmetic import add, negative, subtract
from jitgrad.ops.comparison import less_equal, where
from jitgrad.ops.transcendental import log


@composed
def noisy_chances(weights: Tensor, u: Tensor) -> Tensor:
    """The logarithms of ``weights`` plus noise made of numbers ``u`` in [0, 1); of a weight that is not positive, -inf."""
    impossible = less_equal(weights, 0)
    chances = where(impossible, -np.inf, log(where(impossible, 1.0, weights)))
    return subtract(chances, log(negative(log(add(u, 2.0**-55)))))
