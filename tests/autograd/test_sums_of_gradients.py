"""Gradients that arrive at one value are added up in memory that is nobody else's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.autograd import leaf_gradients
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


def test_a_gradient_in_another_order_of_axes_is_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[Any] = []
    right = leaf_gradients._copied
    monkeypatch.setattr(leaf_gradients, "_copied", lambda x: copied.append(x.shape) or right(x))
    x = jg.tensor(np.arange(6.0).reshape(2, 3), requires_grad=True)
    for _ in range(6):
        x.grad = None
        (x.T * np.array([2.0, 3.0])).sum().backward()
    assert x.grad is not None
    np.testing.assert_array_equal(x.grad.numpy(), [[2, 2, 2], [3, 3, 3]])
    assert not copied

    seed = jg.ones(3, 2)
    x.T.backward(seed)  # the caller has the memory
    x.grad.zero_()
    assert (seed.numpy() == 1).all()

    kept = x.T
    kept.retain_grad()
    x.grad = None
    (kept * 2.0).sum().backward()
    assert kept.grad is not None
    assert not np.shares_memory(kept.grad.numpy(), x.grad.numpy())
