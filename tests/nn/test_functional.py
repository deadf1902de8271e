"""jitgrad.nn.functional against torch.nn.functional: values and gradients; and without torch: errors and random parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad import nn
from jitgrad.core.errors import ArgumentError, ShapeError
from jitgrad.nn import functional as F
from tests.agreement import assert_same_as_torch

RNG = np.random.default_rng(1)
X, Y, U = RNG.normal(size=(5, 4)), RNG.normal(size=(5, 4)), RNG.uniform(0.05, 0.95, (5, 4))
LABELS, SIGNS, BITS = np.array([0, 3, 1, 2, 3]), np.sign(RNG.normal(size=(5, 4))), (X > 0).astype(np.float64)
SEQ, IMG = RNG.normal(size=(2, 4, 9)), RNG.normal(size=(2, 4, 7, 6))
W1, W2, BIAS = RNG.normal(size=(6, 2, 3)), RNG.normal(size=(6, 2, 3, 2)), RNG.normal(size=6)
WT1, WT2 = RNG.normal(size=(4, 3, 3)), RNG.normal(size=(4, 3, 3, 2))
C4, C6 = RNG.normal(size=4), RNG.normal(size=6)
Q, K, V = RNG.normal(size=(2, 3, 5, 4)), RNG.normal(size=(2, 3, 6, 4)), RNG.normal(size=(2, 3, 6, 7))
MASK = RNG.uniform(size=(5, 6)) > 0.4
WITH_EMPTY_ROW = MASK & (np.arange(5) != 2)[:, None]
SCORES, CLASSES = RNG.normal(size=(3, 4, 2)), np.array([[0, 3], [-100, 1], [2, 2]])
MAPS, W3 = RNG.normal(size=(2, 2, 3)), RNG.normal(size=(3, 4, 4))
GRID, MODES = RNG.uniform(-1.6, 1.6, (2, 3, 5, 2)), ("zeros", "border", "reflection")
VOL, GRID3 = RNG.normal(size=(2, 4, 4, 5, 6)), RNG.uniform(-1.4, 1.4, (2, 2, 3, 2, 3))
G = X + np.where(np.abs(X) < 0.1, 0.2, 0.0)  # no point at a kink

SAME: dict[str, tuple[Any, ...]] = {
    "relu": (lambda f, x: (f.relu(x), f.relu6(x * 5), f.leaky_relu(x, 0.2), f.elu(x, alpha=2.0), f.selu(x)), G),
    "more_activations": (lambda f, x: (f.celu(x, 0.5), f.silu(x), f.mish(x), f.hardtanh(x, -0.5, 0.7), f.softsign(x)), G),
    "hard": (lambda f, x: (f.hardsigmoid(x), f.hardswish(x), f.hardshrink(x), f.softshrink(x, 0.3), f.tanhshrink(x)), G),
    "gelu": (lambda f, x: (f.gelu(x), f.gelu(x, approximate="tanh"), f.softplus(x, 2), f.logsigmoid(x)), G),
    "threshold": (lambda f, x: (f.threshold(x, 0.1, 20.0), f.glu(x, dim=1), f.glu(x), f.softmin(x, dim=0)), G),
    "inplace": (lambda f, x: (f.relu(x * 1, inplace=True), f.leaky_relu(x * 1, 0.1, True), f.silu(x * 2, True)), G),
    "prelu": (lambda f, x, w: f.prelu(x, w), G, C4),
    "softmax": (lambda f, x: (f.softmax(x, dim=0), f.log_softmax(x, 1), f.softmax(x.float(), -1, dtype=x.dtype)), X),
    "linear": (lambda f, x, w, b: (f.linear(x, w, b), f.linear(x, w)), X, RNG.normal(size=(3, 4)), RNG.normal(size=3)),
    # convolution
    "conv1d": (lambda f, x, w, b: f.conv1d(x, w, b, stride=2, padding=1, dilation=2, groups=2), SEQ, W1, BIAS),
    "conv1d_same": (lambda f, x, w: f.conv1d(x, w[..., :2], padding="same", groups=2), SEQ, W1),
    "conv2d": (lambda f, x, w, b: f.conv2d(x, w, b, (2, 1), (1, 0), (1, 2), 2), IMG, W2, BIAS),
    "conv2d_same": (lambda f, x, w: f.conv2d(x, w, padding="same", dilation=(1, 3), groups=2), IMG, W2),
    "conv2d_valid": (lambda f, x, w: f.conv2d(x[0], w, padding="valid", groups=2), IMG, W2),
    "conv_transpose1d": (lambda f, x, w: f.conv_transpose1d(x, w, stride=3, padding=1, output_padding=2), SEQ, WT1),
    "conv_transpose2d": (lambda f, x, w, b: f.conv_transpose2d(x, w, b, (2, 3), (1, 0), (1, 2)), IMG, WT2, BIAS[:3]),
    "conv_transpose2d_groups": (lambda f, x, w: f.conv_transpose2d(x, w, groups=2, dilation=(1, 2)), IMG, WT2),
    "conv_transpose2d_wide": (lambda f, x, w: f.conv_transpose2d(x, w, output_padding=1, dilation=2), IMG[0], WT2),
    # pooling
    "max_pool1d": (lambda f, x: (f.max_pool1d(x, 2), f.max_pool1d(x, 3, 2, 1, 2, ceil_mode=True)), SEQ),
    "max_pool2d": (lambda f, x: (f.max_pool2d(x, 2), f.max_pool2d(x, (3, 2), (2, 3), (1, 0), (1, 2))), IMG),
    "max_pool2d_ceil": (lambda f, x: (f.max_pool2d(x, 3, 2, ceil_mode=True), f.max_pool2d(x, 2, 3, 1, ceil_mode=True)), IMG),
    "max_pool2d_indices": (lambda f, x: f.max_pool2d(x, 3, 2, 1, 2, ceil_mode=True, return_indices=True), IMG),
    "max_pool1d_indices": (lambda f, x: f.max_pool1d(x, 2, return_indices=True), SEQ),
    "avg_pool1d": (lambda f, x: (f.avg_pool1d(x, 2), f.avg_pool1d(x, 3, 2, 1, True, False)), SEQ),
    "avg_pool2d": (lambda f, x: (f.avg_pool2d(x, 2), f.avg_pool2d(x, 3, 2, 1), f.avg_pool2d(x, 2, divisor_override=3)), IMG),
    "avg_pool2d_ceil": (lambda f, x: (f.avg_pool2d(x, 4, 3, 1, True), f.avg_pool2d(x, 3, 2, 1, True, False)), IMG),
    "adaptive_avg": (lambda f, x: (f.adaptive_avg_pool2d(x, 1), f.adaptive_avg_pool2d(x, (3, None))), IMG),
    "adaptive_max": (lambda f, x: (f.adaptive_max_pool2d(x, (3, 4)), f.adaptive_max_pool2d(x, 1)), IMG),
    "interpolate": (lambda f, x: (f.interpolate(x, scale_factor=2), f.interpolate(x, size=(5, 9))), IMG),
    "bilinear": (lambda f, x: (f.interpolate(x, (5, 9), mode="bilinear"), f.interpolate(x, None, 1.5, "bilinear", True)), IMG),
    "interpolate_exact": (lambda f, x: (f.interpolate(x, (5, 9), mode="nearest-exact"), f.interpolate(x, 3, mode="area")), IMG),
    "bicubic": (lambda f, x: (f.interpolate(x, (5, 9), mode="bicubic"), f.interpolate(x, None, 1.5, "bicubic", True)), IMG),
    "linear_resizing": (lambda f, x: (f.interpolate(x, 5, mode="linear"), f.interpolate(x, None, 1.5, "linear", True)), SEQ),
    "grid_sample": (
        lambda f, x, g: [f.grid_sample(x, g, padding_mode=p, align_corners=a) for p in MODES for a in (False, True)], IMG, GRID
    ),
    "grid_sample_nearest": (lambda f, x, g: [f.grid_sample(x, g.detach(), "nearest", p) for p in MODES], IMG, GRID),
    "grid_sample_cubic": (
        lambda f, x, g: [f.grid_sample(x, g, "bicubic", p, a) for p in MODES for a in (False, True)], IMG, GRID
    ),
    "grid_sample_volumes": (
        lambda f, x, g: [f.grid_sample(x, g, k, p) for p in MODES for k in ("bilinear", "nearest")], VOL, GRID3
    ),
    "affine_grid": (lambda f, t: (f.affine_grid(t, (2, 4, 5, 6)), f.affine_grid(t, (2, 1, 3, 1), True)), MAPS),
    "unfold": (lambda f, x: (f.unfold(x, 2), f.unfold(x, (3, 2), (1, 2), (1, 0), (2, 1)), f.unfold(x[0], 3)), IMG),
    "fold": (lambda f, x: (f.fold(x, (4, 3), 2, 1, 0, 1), f.fold(x[0], (4, 3), (2, 2))), RNG.normal(size=(2, 12, 6))),
    "max_unpool": (lambda f, x: f.max_unpool2d(*f.max_pool2d(x, 2, return_indices=True), 2, output_size=(7, 6)), IMG),
    "max_unpool1d": (lambda f, x: f.max_unpool1d(*f.max_pool1d(x, 2, return_indices=True), 2, output_size=(9,)), SEQ),
    "max_unpool3d": (
        lambda f, x: f.max_unpool3d(*f.max_pool3d(x, 2, (2, 2, 3), return_indices=True), 2, (2, 2, 3), output_size=x.shape), VOL
    ),
    "lp_pool": (lambda f, x: (f.lp_pool2d(x**2, 3.0, (2, 3), 2), f.lp_pool1d(x[0] ** 2 + 0.1, 1.5, 2)), IMG),
    "shuffles": (lambda f, x: (f.channel_shuffle(x, 2), f.pixel_unshuffle(x[:, :, :6], 2), f.local_response_norm(x, 2)), IMG),
    "bilinear_map": (lambda f, x, y, w, b: (f.bilinear(x, y, w, b), f.bilinear(x[0], y[0], w)), X, Y, W3, C4[:3]),
    "embedding_bag": (lambda f, i, w: [f.embedding_bag(i[None], w, mode=m, padding_idx=3) for m in ("sum", "mean")], LABELS, X),
    "embedding_bag_max": (
        lambda f, i, o, w: [f.embedding_bag(i, w, o, mode="max", include_last_offset=x) for x in (False, True)],
        LABELS, np.array([0, 2, 2, 5]), X,
    ),
    "pdist": (lambda f, x: (f.pdist(x), f.pdist(x, 1.0)), X),
    "pad": (lambda f, x: (f.pad(x, (1, 2)), f.pad(x, (1, 0, 2, 1), "constant", 3.0), f.pad(x, (-1, 2, 0, -2))), IMG),
    "pad_modes": (lambda f, x: [f.pad(x, (1, 2, 2, 1), mode=k) for k in ("reflect", "replicate", "circular")], IMG),
    "pixel_shuffle": (lambda f, x: f.pixel_shuffle(x, 2), IMG),
    # normalisation
    "layer_norm": (lambda f, x, w: (f.layer_norm(x, (4,)), f.layer_norm(x, [4], weight=w, bias=w, eps=1e-3)), X, C4),
    "group_norm": (lambda f, x, w: f.group_norm(x, 2, w, w, 1e-4), IMG, C4),
    "instance_norm": (lambda f, x, w: (f.instance_norm(x), f.instance_norm(x, weight=w, bias=w)), IMG, C4),
    "batch_norm": (lambda f, x, w: f.batch_norm(x, None, None, w, w, training=True), IMG, C4),
    "batch_norm_eval": (lambda f, x, w: f.batch_norm(x, w.detach(), w.detach() ** 2, w, w), IMG, C4),
    "normalize": (lambda f, x: (f.normalize(x), f.normalize(x, p=1, dim=0), f.normalize(x * 0)), X),
    # distances, lookups, attention
    "cosine_similarity": (lambda f, x, y: (f.cosine_similarity(x, y), f.cosine_similarity(x, y, dim=0)), X, Y),
    "pairwise_distance": (lambda f, x, y: (f.pairwise_distance(x, y), f.pairwise_distance(x, y, p=1, keepdim=True)), X, Y),
    "embedding": (lambda f, i, w: (f.embedding(i, w), f.embedding(i, w, padding_idx=-2)), LABELS, X),
    "one_hot": (lambda f, i: (f.one_hot(i), f.one_hot(i, num_classes=6)), LABELS),
    "attention": (lambda f, q, k, v: f.scaled_dot_product_attention(q, k, v, scale=0.3), Q, K, V),
    "attention_mask": (lambda f, q, k, v, m: f.scaled_dot_product_attention(q, k, v, attn_mask=m), Q, K, V, MASK),
    "attention_empty": (lambda f, q, k, v, m: f.scaled_dot_product_attention(q, k, v, m), Q, K, V, WITH_EMPTY_ROW),
    "attention_bias": (lambda f, q, k, v, m: f.scaled_dot_product_attention(q, k, v, m), Q, K, V, RNG.normal(size=(5, 6))),
    "attention_causal": (lambda f, q, k, v: f.scaled_dot_product_attention(q, k, v, is_causal=True), Q, K, V),
    "attention_gqa": (lambda f, q, k, v: f.scaled_dot_product_attention(q, k[:, :1], v[:, :1], enable_gqa=True), Q, K, V),
    # losses
    "distances": (lambda f, x, y: (f.mse_loss(x, y), f.l1_loss(x, y, reduction="sum")), X, Y),
    "smooth": (lambda f, x, y: f.smooth_l1_loss(x, y, beta=0.5), X, Y),
    "huber": (lambda f, x, y: (f.huber_loss(x, y, delta=0.7), f.huber_loss(x, y, reduction="none")), X, Y),
    "cross_entropy": (lambda f, x, t: (f.cross_entropy(x, t), f.cross_entropy(x, t, reduction="none")), X, LABELS),
    "cross_entropy_weight": (lambda f, x, t, w: f.cross_entropy(x, t, w.detach() ** 2, label_smoothing=0.1), X, LABELS, C4),
    "cross_entropy_axes": (lambda f, x, t: f.cross_entropy(x, t, reduction="sum"), SCORES, CLASSES),
    "cross_entropy_ignore": (lambda f, x, t: f.cross_entropy(x, t, ignore_index=3, label_smoothing=0.2), X, LABELS),
    "cross_entropy_soft": (lambda f, x, y: f.cross_entropy(x, f.softmax(y, dim=1), label_smoothing=0.1), X, Y),
    "nll": (lambda f, x, t, w: f.nll_loss(f.log_softmax(x, 1), t, weight=w.detach() ** 2, ignore_index=0), X, LABELS, C4),
    "binary": (lambda f, u, t: (f.binary_cross_entropy(u, t), f.binary_cross_entropy(u, t, t.detach() + 1)), U, BITS),
    "logits": (lambda f, x, t, w: f.binary_cross_entropy_with_logits(x, t, pos_weight=w.detach() ** 2), X, BITS, C4),
    "kl_div": (lambda f, x, u: (f.kl_div(x, u, reduction="batchmean"), f.kl_div(x, u.log(), log_target=True)), X, U),
    "cosine_embedding": (lambda f, x, y, s: f.cosine_embedding_loss(x, y, s[:, 0], margin=0.2), X, Y, SIGNS),
    "triplet": (lambda f, x, y: f.triplet_margin_loss(x, y, x * y, margin=2.0, swap=True), X, Y),
    "ranking": (lambda f, x, y, s: f.margin_ranking_loss(x, y, s, margin=0.3, reduction="sum"), X, Y, SIGNS),
    "hinge_embedding": (lambda f, x, s: (f.hinge_embedding_loss(x, s), f.soft_margin_loss(x, s.detach())), X, SIGNS),
    "multi_margin": (lambda f, x, t: (f.multi_margin_loss(x, t), f.multi_margin_loss(x, t, p=2, margin=0.5)), X, LABELS),
    "multi_margin_weight": (lambda f, x, t, w: f.multi_margin_loss(x, t, weight=w.detach() ** 2), X, LABELS, C4),
    "multilabel": (lambda f, x, t: f.multilabel_soft_margin_loss(x, t), X, BITS),
    "poisson": (lambda f, x, u: (f.poisson_nll_loss(x, u * 5, full=True), f.poisson_nll_loss(u, u, log_input=False)), X, U),
    "gaussian": (lambda f, x, y, u: f.gaussian_nll_loss(x, y, u, full=True), X, Y, U),
}


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore")  # torch warns of what it will change
@pytest.mark.parametrize("name", SAME)
def test_same_as_torch(name: str):
    torch: Any = pytest.importorskip("torch")
    call, *arrays = SAME[name]

    assert_same_as_torch(lambda m, *xs: call(F if m is jg else torch.nn.functional, *xs), *arrays)


# --- without torch -----------------------------------------------------------------------------------------------


def test_all_names_are_documented():
    assert [name for name in F.__all__ if not getattr(F, name).__doc__] == []
    assert sorted(F.__all__) == F.__all__


def test_dropout_of_channels():
    x = jg.ones((50, 40, 3, 2))
    y = F.dropout2d(x, 0.25, generator=jg.Generator(0)).numpy()

    assert set(np.unique(y)) <= {np.float32(0), np.float32(1 / 0.75)}
    assert ((y == y[..., :1, :1]).all(axis=(2, 3))).all()
    assert 0.2 < (y == 0).mean() < 0.3
    assert F.dropout1d(x[..., 0], 0.5, training=False).tolist() == x[..., 0].tolist()


def test_alpha_dropout_keeps_mean_and_variance():
    x = jg.randn(200_000, generator=jg.Generator(1))
    y = F.alpha_dropout(x, 0.3, training=True, generator=jg.Generator(0)).numpy()

    assert abs(y.mean()) < 0.02 and abs(y.var() - 1) < 0.02
    assert F.alpha_dropout(x, 0.3) is x
    assert F.alpha_dropout(x, 1.0, training=True).abs().max().item() == 0.0


def test_feature_alpha_dropout_of_channels():
    x = jg.randn(200, 300, 3, 2, generator=jg.Generator(1))
    y = F.feature_alpha_dropout(x, 0.3, training=True, generator=jg.Generator(0)).numpy()
    lost = (y == y[..., :1, :1]).all(axis=(2, 3))

    assert 0.28 < lost.mean() < 0.32 and abs(y.mean()) < 0.02 and abs(y.var() - 1) < 0.02
    assert nn.FeatureAlphaDropout(0.5).eval()(x) is x
    with pytest.raises(ShapeError, match=r"expected \[n, channels, ...\], got f32\[3\]"):
        F.feature_alpha_dropout(jg.ones(3), training=True)


@pytest.mark.parametrize("compiled", [False, True])
def test_rrelu_draws_a_slope_per_element(compiled: bool):
    x = jg.tensor([-1.0, -2.0, 1.0, 3.0] * 500, requires_grad=True)

    def run(x: Any) -> Any:
        y = F.rrelu(x, 0.1, 0.4, training=True)
        return y, jg.grad(lambda x: F.rrelu(x, 0.1, 0.3).sum())(x)

    y, mean_slope = (jg.jit(run, backend="python") if compiled else run)(x)
    y.sum().backward()
    given = x.detach().numpy()
    slopes = (y.detach().numpy() / given)[given < 0]
    assert slopes.min() >= 0.1 and slopes.max() < 0.4 + 1e-6 and 0.24 < slopes.mean() < 0.26 and slopes.std() > 0.08
    np.testing.assert_allclose(x.grad.numpy()[given < 0], slopes, rtol=1e-6)
    np.testing.assert_allclose(mean_slope.numpy()[:4], [0.2, 0.2, 1.0, 1.0], rtol=1e-6)


def test_rrelu_of_a_module_in_place_and_in_evaluation():
    x = jg.tensor([-1.0, 2.0])

    assert nn.RReLU(0.2, 0.4, inplace=True).eval()(x) is x
    np.testing.assert_allclose(x.numpy(), [-0.3, 2.0], rtol=1e-6)
    assert jg.rrelu(jg.tensor([-24.0])).tolist() == [-5.5]
    with pytest.raises(ArgumentError, match=r"lower=0\.5 above upper=0\.1"):
        F.rrelu(x, 0.5, 0.1)


def test_ctc_of_all_labels_in_a_vector_and_of_one_sequence():
    scores, rows = jg.log_softmax(jg.tensor(RNG.normal(size=(6, 3, 4))), -1), [[1, 2], [3], [3, 3, 1]]
    padded = jg.tensor([[1, 2, 0], [3, 0, 0], [3, 3, 1]])
    flat = jg.tensor([k for row in rows for k in row])
    lengths, counts = jg.tensor([6, 3, 5]), jg.tensor([2, 1, 3])
    each = F.ctc_loss(scores, padded, lengths, counts, reduction="none")
    compiled = jg.jit(lambda s: F.ctc_loss(s, padded, lengths, counts, reduction="none"), backend="python")(scores)
    alone = F.ctc_loss(scores[:3, 1], jg.tensor([3]), 3, 1, reduction="sum")

    np.testing.assert_allclose(compiled.numpy(), each.numpy(), rtol=1e-12)
    np.testing.assert_allclose(F.ctc_loss(scores, flat, lengths, counts, reduction="none").numpy(), each.numpy())
    np.testing.assert_allclose(alone.item(), each[1].item())
    np.testing.assert_allclose(F.ctc_loss(scores, padded, lengths, counts).item(), (each / counts).mean().item())
    # by all alignments of one label with three steps: the label in one run, blanks around it
    p = np.exp(scores.numpy()[:3, 1])
    paths = ["abb", "bab", "bba", "aab", "baa", "aaa"]
    total = sum(np.prod([p[t, 3 if c == "a" else 0] for t, c in enumerate(path)]) for path in paths)
    np.testing.assert_allclose(alone.item(), -np.log(total))


def test_ctc_of_labels_that_do_not_fit_has_no_gradient():
    scores = jg.randn(2, 1, 3, requires_grad=True)
    loss = F.ctc_loss(scores, jg.tensor([[1, 1]]), [2], [2], reduction="sum")
    loss.backward()

    assert loss.item() == np.inf and scores.grad.tolist() == [[[0.0] * 3]] * 2
    assert F.ctc_loss(scores, jg.tensor([[1, 1]]), [2], [2], zero_infinity=True).item() == 0.0


def test_dropout_in_place():
    x = jg.ones(100)

    assert F.dropout(x, 0.5, inplace=True, generator=jg.Generator(0)) is x
    assert set(x.tolist()) == {0.0, 2.0}


def test_gumbel_softmax_draws_from_the_probabilities():
    logits = jg.log(jg.tensor([0.2, 0.5, 0.3])).expand(4000, 3).clone().requires_grad_()
    hard = F.gumbel_softmax(logits, hard=True, dim=1, generator=jg.Generator(0))
    soft = F.gumbel_softmax(logits, tau=0.5, dim=-1, generator=jg.Generator(0))
    (hard * jg.tensor([1.0, 2.0, 3.0])).sum().backward()

    np.testing.assert_allclose(hard.detach().numpy().mean(0), [0.2, 0.5, 0.3], atol=0.03)
    np.testing.assert_allclose(soft.detach().numpy().sum(1), 1.0, rtol=1e-5)
    assert np.isfinite(logits.grad.numpy()).all()
    assert np.abs(logits.grad.numpy()).max() > 0


def test_attention_drops_weights():
    q = jg.randn(1, 6, 4)
    dropped = F.scaled_dot_product_attention(q, q, q, dropout_p=0.9)

    assert dropped.shape == q.shape
    assert not np.allclose(dropped.numpy(), F.scaled_dot_product_attention(q, q, q).numpy())


NEW = ["bicubic", "grid_sample", "unfold", "fold", "max_unpool", "lp_pool", "shuffles", "embedding_bag", "max_unpool3d"]


@pytest.mark.parametrize("name", ["max_pool2d_indices", "avg_pool2d_ceil", "conv_transpose2d", "attention_mask", "pad", *NEW])
def test_compiled(name: str):
    call, *arrays = SAME[name]
    xs = [jg.tensor(a) for a in arrays]
    compiled = jg.jit(lambda *xs: tuple(jg.asarray(y) for y in call(F, *xs)))

    for x, y in zip(compiled(*xs), call(F, *xs), strict=True):
        np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: F.softmax(jg.asarray(X)), ArgumentError, "pass dim="),
        (lambda: F.pad(X, (1, 2, 3)), ArgumentError, "pad: "),
        (lambda: F.pad(X, (1, 2), mode="odd"), ArgumentError, "odd"),
        (lambda: F.glu(X[:, :3]), ShapeError, "two halves"),
        (lambda: F.max_pool2d(IMG, 2, padding=2), ArgumentError, "more than half"),
        (lambda: F.pixel_shuffle(SEQ, 3), ArgumentError, "do not divide"),
        (lambda: F.interpolate(IMG), ArgumentError, "size and scale_factor"),
        (lambda: F.interpolate(IMG, 3, mode="linear"), ArgumentError, "a mode for it"),
        (lambda: F.conv3d(IMG, W2), ShapeError, "do not fit together"),
        (lambda: F.grid_sample(VOL, GRID3, "bicubic"), ArgumentError, r"of f64\[2,4,4,5,6\]: mode 'bicubic'"),
        (lambda: F.multi_head_attention_forward(
            X, X, X, 5, 1, None, None, None, None, False, 0.0, None, None), ArgumentError, "for 1 heads of 5 features"),
        (lambda: F.max_unpool3d(VOL, VOL, 2, output_size=(40, 2, 2)), ArgumentError, "near"),
        (lambda: F.avg_pool3d(SEQ, 2), ShapeError, r"\[n, channels, d, h, w\]"),
        (lambda: F.fold(SEQ, (5, 5), 2), ShapeError, "windows"),
        (lambda: F.grid_sample(IMG, X), ShapeError, "expected"),
        (lambda: F.grid_sample(IMG, GRID, "cubic"), ArgumentError, "cubic"),
        (lambda: F.embedding_bag(LABELS, X), ArgumentError, "offsets"),
        (lambda: F.embedding_bag(LABELS, X, [0], mode="odd"), ArgumentError, "mode must be"),
        (lambda: F.ctc_loss(X, LABELS, [5], [2, 3]), ShapeError, "target_lengths must be 1"),
        (lambda: F.ctc_loss(X, LABELS, [5], [5], blank=9), ShapeError, "blank among the classes"),
        (lambda: F.bilinear(X, Y, X), ShapeError, "do not fit"),
        (lambda: F.max_unpool2d(IMG, LABELS, 2, output_size=(40, 2)), ArgumentError, "near"),
        (lambda: F.conv_transpose2d(IMG, WT2[:3]), ShapeError, "do not fit together"),
        (lambda: F.conv_transpose2d(IMG, WT2, padding=5), ArgumentError, "leaves nothing"),
        (lambda: F.conv1d(SEQ, W1, stride=(1, 2)), ArgumentError, "sequence of one"),
        (lambda: F.conv1d(IMG, W1), ShapeError, "conv"),
        (lambda: F.adaptive_avg_pool2d(IMG, 0), ArgumentError, "output_size"),
        (lambda: F.multi_margin_loss(X, LABELS, p=3), ArgumentError, "p must be 1 or 2"),
        (lambda: F.scaled_dot_product_attention(Q, V, V), ShapeError, "differ in their last axis"),
        (lambda: F.scaled_dot_product_attention(Q, K, V, MASK, is_causal=True), ArgumentError, "drop attn_mask"),
    ],
)
def test_errors(call: Any, error: type[Exception], words: str):
    with pytest.raises(error, match=words):
        call()
