"""Losses with arguments by position as in torch, running statistics of InstanceNorm, and modules on "meta"."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg

F, nn = jg.nn.functional, jg.nn
rng = np.random.default_rng(0)
X, P = rng.normal(size=(3, 4)).astype(np.float32), rng.uniform(0.1, 0.9, (3, 4)).astype(np.float32)
LABELS, WEIGHT = np.array([0, 3, 2]), np.array([1.0, 2.0, 0.5, 1.5], np.float32)
SIGNS = np.where(X > 0, 1.0, -1.0).astype(np.float32)
# function, operands, torch's further arguments by position
CALLS: list[tuple[str, tuple[Any, ...], tuple[Any, ...]]] = [
    ("mse_loss", (X, P), (None, None, "sum")),
    ("mse_loss", (X, P), (False,)),
    ("l1_loss", (X, P), (None, False)),
    ("smooth_l1_loss", (X, P), (None, None, "sum", 0.5)),
    ("cross_entropy", (X, LABELS), (WEIGHT, None, 3, None, "sum", 0.1)),
    ("nll_loss", (X, LABELS), (WEIGHT, None, 3, None, "sum")),
    ("binary_cross_entropy", (P, P[::-1].copy()), (WEIGHT, None, None, "sum")),
    ("binary_cross_entropy_with_logits", (X, P), (WEIGHT, None, None, "sum", WEIGHT)),
    ("kl_div", (X, P), (None, None, "batchmean", False)),
    ("poisson_nll_loss", (X, P), (True, False, None, 1e-6, None, "sum")),
    ("soft_margin_loss", (X, SIGNS), (None, None, "sum")),
    ("hinge_embedding_loss", (X, SIGNS), (0.5, None, None, "sum")),
    ("margin_ranking_loss", (X, P, SIGNS), (0.5, False)),
    ("multi_margin_loss", (X, LABELS), (1, 0.5, WEIGHT, None, None, "sum")),
    ("triplet_margin_loss", (X, P, SIGNS), (0.5, 2, 1e-6, False, None, None, "sum")),
]
CLASSES = {
    "mse_loss": "MSELoss", "cross_entropy": "CrossEntropyLoss", "nll_loss": "NLLLoss", "binary_cross_entropy": "BCELoss",
    "binary_cross_entropy_with_logits": "BCEWithLogitsLoss", "smooth_l1_loss": "SmoothL1Loss",
    "triplet_margin_loss": "TripletMarginLoss", "multi_margin_loss": "MultiMarginLoss", "poisson_nll_loss": "PoissonNLLLoss",
}  # fmt: skip


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "operands", "more"), CALLS, ids=lambda x: x if isinstance(x, str) else "")
def test_losses_take_torchs_arguments_by_position(name: str, operands: tuple[Any, ...], more: tuple[Any, ...]) -> None:
    torch: Any = pytest.importorskip("torch")

    def given(module: Any, values: tuple[Any, ...]) -> list[Any]:
        return [module.tensor(x) if isinstance(x, np.ndarray) else x for x in values]

    expected = getattr(torch.nn.functional, name)(*given(torch, operands), *given(torch, more)).numpy()
    found = getattr(F, name)(*given(jg, operands), *given(jg, more)).numpy()
    np.testing.assert_allclose(found, expected, rtol=2e-5)
    if name in CLASSES:
        module = getattr(nn, CLASSES[name])(*given(jg, more))
        np.testing.assert_allclose(module(*given(jg, operands)).numpy(), expected, rtol=2e-5)


def test_own_positions_of_losses_stay() -> None:
    x, p = jg.tensor(X), jg.tensor(P)

    assert F.huber_loss(x, p, "sum").item() == F.huber_loss(x, p, reduction="sum").item()
    assert nn.MSELoss("sum")(x, p).item() == nn.MSELoss(None, None, "sum")(x, p).item()
    with pytest.raises(TypeError, match="multiple values for argument 'reduction'"):
        F.mse_loss(x, p, None, None, "sum", reduction="mean")
    with pytest.raises(TypeError, match="positional arguments"):
        F.mse_loss(x, p, None, None, "sum", None, None)


@pytest.mark.peers
def test_instance_norm_tracks_statistics_as_torch_does() -> None:
    torch: Any = pytest.importorskip("torch")
    images = [rng.normal(size=(2, 3, 4, 4)).astype(np.float32) for _ in range(3)]
    results = []
    for module in (torch, jg):
        norm = module.nn.InstanceNorm2d(3, affine=True, track_running_stats=True)
        found = [norm(module.tensor(x)) for x in images]
        norm.eval()
        results.append([*found, norm(module.tensor(images[0])), *norm.state_dict().values()])

    for expected, got in zip(*results, strict=True):
        np.testing.assert_allclose(got.detach().numpy(), expected.detach().numpy(), rtol=1e-4, atol=1e-6)


def test_a_compiled_step_moves_the_statistics() -> None:
    eager, compiled = (nn.InstanceNorm1d(2, track_running_stats=True) for _ in range(2))
    forward = jg.jit(compiled, backend="python")
    for x in (jg.tensor(rng.normal(size=(2, 2, 5))) for _ in range(2)):
        np.testing.assert_allclose(forward(x).numpy(), eager(x).numpy(), rtol=1e-6)

    np.testing.assert_allclose(compiled.running_var.numpy(), eager.running_var.numpy(), rtol=1e-6)  # type: ignore[union-attr]


def test_a_module_on_meta_keeps_its_values() -> None:
    layer = nn.Linear(2, 2)

    assert layer.to("meta") is layer and layer.to(device="meta") is layer
    assert layer.weight.device == "cpu"
