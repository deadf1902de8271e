"""Compositions of large arrays: composed if they make nothing large and keep nothing."""

from __future__ import annotations

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core import dispatch
from jitgrad.nn import functional as F


def test_small_parts_of_large_arrays_are_composed_without_a_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    scores, labels = jg.tensor(np.random.default_rng(0).normal(size=(600, 600))), jg.tensor(np.arange(600))
    for _ in range(5):
        loss = F.nll_loss(scores, labels)
    np.testing.assert_allclose(loss.numpy(), -np.diag(scores.numpy()).mean(), rtol=1e-12)
    monkeypatch.setattr(dispatch, "run_plan", lambda *_: pytest.fail("an op of its own"))

    np.testing.assert_array_equal(F.nll_loss(scores, labels).numpy(), loss.numpy())
