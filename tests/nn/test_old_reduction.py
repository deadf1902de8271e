"""torch's first keywords of losses: size_average= and reduce=."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
import jitgrad.nn.functional as F
from jitgrad import nn

X = np.linspace(-1.0, 2.0, 12, dtype=np.float32).reshape(3, 4)
Y = np.cos(X)
LABELS = np.array([0, 3, 1])
OLD = [
    ({"size_average": False}, "sum"),
    ({"size_average": True}, "mean"),
    ({"reduce": False}, "none"),
    ({"size_average": False, "reduce": False}, "none"),
    ({"reduce": True}, "mean"),
    ({"size_average": None, "reduce": None}, "mean"),
]


@pytest.mark.parametrize(("old", "reduction"), OLD, ids=str)
def test_old_keywords_choose_the_reduction(old: dict[str, Any], reduction: str):
    x, y = jg.tensor(X), jg.tensor(Y)

    for got, expected in (
        (F.mse_loss(x, y, **old), F.mse_loss(x, y, reduction=reduction)),
        (F.nll_loss(x, LABELS, **old), F.nll_loss(x, LABELS, reduction=reduction)),
        (F.soft_margin_loss(x, y, **old), F.soft_margin_loss(x, y, reduction=reduction)),
        (nn.L1Loss(**old)(x, y), nn.L1Loss(reduction=reduction)(x, y)),
        (nn.CrossEntropyLoss(**old)(x, LABELS), nn.CrossEntropyLoss(reduction=reduction)(x, LABELS)),
    ):
        np.testing.assert_array_equal(got.numpy(), expected.numpy())


def test_old_keywords_in_a_compiled_function():
    compiled = jg.jit(lambda x, y: F.binary_cross_entropy_with_logits(x, y, size_average=False), backend="python")

    expected = F.binary_cross_entropy_with_logits(jg.tensor(X), jg.tensor(Y), reduction="sum")
    np.testing.assert_allclose(compiled(X, Y).numpy(), expected.numpy(), rtol=1e-6)


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("old", "_reduction"), OLD, ids=str)
def test_old_keywords_mean_what_they_mean_in_torch(old: dict[str, Any], _reduction: str):
    torch: Any = pytest.importorskip("torch")
    expected = torch.nn.SmoothL1Loss(**old)(torch.tensor(X), torch.tensor(Y))

    np.testing.assert_allclose(nn.SmoothL1Loss(**old)(jg.tensor(X), jg.tensor(Y)).numpy(), expected.numpy(), rtol=1e-6)
