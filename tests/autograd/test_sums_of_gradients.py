"""Gradients that arrive at one value are added up in memory that is nobody else's."""

from __future__ import annotations

import numpy as np

from jitgrad.autograd.backward_pass import BackwardPass
from jitgrad.ops.creation import tensor


def test_a_sum_of_arrays_that_becomes_a_tensor_is_no_longer_added_to_in_place():
    """The next array may have the identity of the one that is gone: it would be changed as if it were a sum."""
    sweep = BackwardPass(None, None, False)
    arrays = sweep.total(np.ones(3), np.ones(3))
    assert id(arrays) in sweep.sums

    mixed = sweep.total(arrays, tensor(np.ones(3)))

    assert mixed.tolist() == [3.0, 3.0, 3.0]
    assert id(arrays) not in sweep.sums
