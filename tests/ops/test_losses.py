"""Losses against their formulas in NumPy (and torch where it is installed); gradients of both orders; edges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.autograd.backward import backward
from jitgrad.compiler.pipeline import run_passes
from jitgrad.compiler.tracer import Trace
from jitgrad.core.context import current_interpreter
from jitgrad.core.errors import ArgumentError, DtypeError, ShapeError
from jitgrad.core.op import Kind
from jitgrad.core.tensor import Tensor
from jitgrad.ops import losses as L
from jitgrad.ops.labels import class_axis
from jitgrad.testing import check_grads

RNG = np.random.default_rng(0)
X, Y, Z = (RNG.normal(size=(5, 4)) for _ in range(3))
P, Q = (RNG.uniform(0.05, 0.95, size=(5, 4)) for _ in range(2))
LOG_P = np.log(P / P.sum(1, keepdims=True))
PROBABILITIES = Q / Q.sum(1, keepdims=True)
SIGNS = np.where(Y > 0, 1.0, -1.0)
LABELS = np.array([0, 3, 1, 1, 2])
WITH_IGNORED = np.array([0, -100, 1, -100, 2])
CLASS_WEIGHT = np.array([0.5, 1.0, 2.0, 0.25])
EVEN_ODD = np.array([1, -1, 1, -1, -1])
D = X - Y


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def cosine(x: Any, y: Any) -> Any:
    return (x * y).sum(1) / np.sqrt((x * x).sum(1) * (y * y).sum(1))


def distance(x: Any, y: Any, p: float = 2) -> Any:
    return (np.abs(x - y + 1e-6) ** p).sum(1) ** (1 / p)


def log_softmax(x: Any) -> Any:
    return x - np.log(np.exp(x).sum(1, keepdims=True))


# name -> (loss, operands, elementwise values by the formula)
CASES: dict[str, tuple[Callable[..., Tensor], list[Any], Any]] = {
    "mse": (L.mse_loss, [X, Y], D**2),
    "l1": (L.l1_loss, [X, Y], np.abs(D)),
    "huber": (lambda x, y, reduction: L.huber_loss(x, y, reduction, 0.7), [X, Y],
              np.where(np.abs(D) <= 0.7, D * D / 2, 0.7 * (np.abs(D) - 0.35))),
    "smooth_l1": (lambda x, y, reduction: L.smooth_l1_loss(x, y, reduction, 0.7), [X, Y],
                  np.where(np.abs(D) < 0.7, D * D / 1.4, np.abs(D) - 0.35)),
    "bce": (lambda x, y, reduction: L.binary_cross_entropy(x, y, reduction=reduction), [P, Q],
            -(Q * np.log(P) + (1 - Q) * np.log(1 - P))),
    "bce_with_logits": (lambda x, y, reduction: L.binary_cross_entropy_with_logits(x, y, reduction=reduction),
                        [X, Q], -(Q * np.log(sigmoid(X)) + (1 - Q) * np.log(1 - sigmoid(X)))),
    "bce_with_logits_weighted": (
        lambda x, y, reduction: L.binary_cross_entropy_with_logits(x, y, P, reduction, CLASS_WEIGHT), [X, Q],
        -P * (CLASS_WEIGHT * Q * np.log(sigmoid(X)) + (1 - Q) * np.log(1 - sigmoid(X)))),
    "hinge": (lambda x, y, reduction: L.hinge_loss(x, y, 1.0, reduction), [X, SIGNS],
              np.maximum(1 - X * SIGNS, 0)),
    "cross_entropy": (lambda x, t, reduction: L.cross_entropy(x, t, reduction=reduction), [X, LABELS],
                      -log_softmax(X)[range(5), LABELS]),
    "cross_entropy_smooth": (
        lambda x, t, reduction: L.cross_entropy(x, t, 0.2, reduction=reduction), [X, LABELS],
        -0.8 * log_softmax(X)[range(5), LABELS] - 0.2 * log_softmax(X).mean(1)),
    "cross_entropy_soft": (lambda x, t, reduction: L.cross_entropy(x, t, reduction=reduction), [X, PROBABILITIES],
                           -(PROBABILITIES * log_softmax(X)).sum(1)),
    "nll": (lambda x, t, reduction: L.nll_loss(x, t, reduction=reduction), [LOG_P, LABELS],
            -LOG_P[range(5), LABELS]),
    "kl_div": (L.kl_div, [LOG_P, PROBABILITIES], PROBABILITIES * (np.log(PROBABILITIES) - LOG_P)),
    "kl_div_log": (lambda x, t, reduction: L.kl_div(x, t, reduction, log_target=True), [LOG_P, np.log(PROBABILITIES)],
                   PROBABILITIES * (np.log(PROBABILITIES) - LOG_P)),
    "cosine_embedding": (
        lambda x, y, reduction: L.cosine_embedding_loss(x, y, EVEN_ODD, -0.2, reduction), [X, Y],
        np.where(EVEN_ODD == 1, 1 - cosine(X, Y), np.maximum(cosine(X, Y) + 0.2, 0))),
    "triplet": (lambda a, p, n, reduction: L.triplet_margin_loss(a, p, n, reduction=reduction), [X, Y, Z],
                np.maximum(distance(X, Y) - distance(X, Z) + 1, 0)),
    "triplet_swap_p3": (
        lambda a, p, n, reduction: L.triplet_margin_loss(a, p, n, p=3, swap=True, reduction=reduction), [X, Y, Z],
        np.maximum(distance(X, Y, 3) - np.minimum(distance(X, Z, 3), distance(Y, Z, 3)) + 1, 0)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_loss_is_its_formula(name: str) -> None:
    loss, operands, expected = CASES[name]

    np.testing.assert_allclose(loss(*operands, reduction="none").numpy(), expected, rtol=1e-9)
    np.testing.assert_allclose(loss(*operands, reduction="sum").numpy(), expected.sum(), rtol=1e-9)
    np.testing.assert_allclose(loss(*operands, reduction="mean").numpy(), expected.mean(), rtol=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_float32_losses_stay_float32(name: str) -> None:
    loss, operands, expected = CASES[name]
    narrow = [x.astype(np.float32) if x.dtype.kind == "f" else x for x in operands]

    found = loss(*narrow, reduction="mean")

    if name != "bce_with_logits_weighted":  # its weights are float64
        assert found.dtype == np.float32
    np.testing.assert_allclose(found.numpy(), expected.mean(), rtol=1e-5)


@pytest.mark.parametrize("reduction", ["none", "mean"])
@pytest.mark.parametrize("name", CASES)
def test_gradients_of_both_orders(name: str, reduction: str) -> None:
    loss, operands, _ = CASES[name]
    if name == "hinge":  # the target only selects
        loss, operands = (lambda x, reduction: L.hinge_loss(x, SIGNS, 1.0, reduction)), [X]

    check_grads(lambda *xs: loss(*xs, reduction=reduction), operands, order=2, rtol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_another_reduction_is_an_error(name: str) -> None:
    loss, operands, _ = CASES[name]
    with pytest.raises(ArgumentError, match="reduction"):
        loss(*operands, reduction="average")


# --- cross entropy -----------------------------------------------------------------------------------------------


def test_ignored_labels_count_for_nothing() -> None:
    each = -log_softmax(X)[range(5), np.maximum(WITH_IGNORED, 0)] * (WITH_IGNORED >= 0)

    np.testing.assert_allclose(L.cross_entropy(X, WITH_IGNORED, reduction="none").numpy(), each)
    np.testing.assert_allclose(L.cross_entropy(X, WITH_IGNORED).numpy(), each.sum() / 3)
    check_grads(lambda x: L.cross_entropy(x, WITH_IGNORED), [X])
    assert np.isnan(L.cross_entropy(X, np.full(5, -100)).numpy())


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_class_weights_make_a_weighted_mean(smoothing: float) -> None:
    w = CLASS_WEIGHT[LABELS]
    spread = -(log_softmax(X) * CLASS_WEIGHT).mean(1)
    each = (1 - smoothing) * -log_softmax(X)[range(5), LABELS] * w + smoothing * spread

    found = L.cross_entropy(X, LABELS, smoothing, weight=CLASS_WEIGHT)

    np.testing.assert_allclose(found.numpy(), each.sum() / w.sum())
    np.testing.assert_allclose(
        L.nll_loss(LOG_P, LABELS, CLASS_WEIGHT).numpy(), -(LOG_P[range(5), LABELS] * w).sum() / w.sum()
    )


def test_the_class_axis_is_torchs_unless_given() -> None:
    images, labels = RNG.normal(size=(2, 4, 3, 3)), RNG.integers(0, 4, size=(2, 3, 3))
    last = np.moveaxis(images, 1, -1)

    expected = L.cross_entropy(last.reshape(-1, 4), labels.reshape(-1)).numpy()

    np.testing.assert_allclose(L.cross_entropy(images, labels).numpy(), expected)
    np.testing.assert_allclose(L.cross_entropy(last, labels, axis=-1).numpy(), expected)
    np.testing.assert_allclose(
        L.cross_entropy(images, labels, weight=CLASS_WEIGHT).numpy(),
        L.cross_entropy(last, labels, weight=CLASS_WEIGHT, axis=-1).numpy(),
    )
    np.testing.assert_allclose(
        L.cross_entropy(X[0], np.array(2)).numpy(), L.cross_entropy(X[:1], np.array([2])).numpy()
    )


def test_probabilities_of_zero_cost_nothing() -> None:
    logits, target = np.array([[0.0, -np.inf, 1.0]]), np.array([[0.5, 0.0, 0.5]])

    expected = np.log(1 + np.e) - 0.5

    np.testing.assert_allclose(L.cross_entropy(logits, target).numpy(), expected)
    np.testing.assert_allclose(L.cross_entropy(logits, np.array([2])).numpy(), np.log(1 + np.e) - 1)


@pytest.mark.parametrize("scale", [1e4, 1e30])
def test_huge_logits_do_not_overflow(scale: float) -> None:
    logits = Tensor(np.array([[scale, 0.0], [0.0, scale]], np.float32)).requires_grad_()
    loss = L.cross_entropy(logits, np.array([0, 0]), reduction="none")

    backward(loss, np.ones(2, np.float32))

    np.testing.assert_allclose(loss.concrete("a test"), [0.0, scale], rtol=1e-6)
    assert logits.grad is not None
    np.testing.assert_array_equal(logits.grad.numpy(), [[0, 0], [-1, 1]])


@pytest.mark.parametrize("label", [4, -1, 100])
def test_a_label_out_of_range_is_an_error_that_says_where(label: int) -> None:
    labels = np.array([0, 1, label, 1, 2])
    for loss in (L.cross_entropy, L.nll_loss):
        with pytest.raises(IndexError, match=rf"label {label} at position \(2,\) is not in \[0, 4\)"):
            loss(X, labels)


def test_means_over_many_labels_and_none() -> None:
    half = np.zeros((5000, 2), np.float16)

    assert L.cross_entropy(half, np.zeros(5000, np.int64)).dtype == np.float16
    np.testing.assert_allclose(L.cross_entropy(half, np.zeros(5000, np.int64)).numpy(), np.log(2), rtol=1e-3)
    assert np.isnan(L.cross_entropy(X[:0], LABELS[:0]).numpy())


@pytest.mark.parametrize("name", CASES)
def test_a_loss_and_its_gradients_are_one_pass_over_the_data(name: str) -> None:
    loss, operands, _ = CASES[name]
    xs = [Tensor(x.copy()).requires_grad_(x.dtype.kind == "f") for x in operands]
    trace = Trace("loss")
    token = current_interpreter.set(trace)
    try:
        value = loss(*xs, reduction="mean")
        backward(value)
        grads = [trace.current(x.grad) for x in xs if x.grad is not None]
        graph = trace.graph((trace.current(value), *grads))
    finally:
        current_interpreter.reset(token)

    steps = [node for node in run_passes(graph).nodes if node.op.kind is not Kind.MOVEMENT]

    # labels are counted before, by a small kernel of their own that reads nothing else
    passes = [node for node in steps if [a.aval.dtype.kind for a in node.ins] != ["i"]]
    assert [node.op.kind for node in passes] == [Kind.FUSED]


def test_labels_of_the_wrong_kind_or_shape() -> None:
    with pytest.raises(DtypeError, match="integers"):
        L.nll_loss(X, Y[:, 0])
    with pytest.raises(ShapeError, match=r"shape \(5,\), got i64\[4\]; give axis="):
        L.cross_entropy(X, LABELS[:4])
    with pytest.raises(ShapeError, match="probabilities"):
        L.cross_entropy(X, PROBABILITIES[:, :3])
    with pytest.raises(ShapeError, match="weight"):
        L.cross_entropy(X, LABELS, weight=np.ones(5))


# --- edges -------------------------------------------------------------------------------------------------------


def test_a_target_that_would_broadcast_to_a_matrix_is_an_error() -> None:
    with pytest.raises(ShapeError, match="mse_loss"):
        L.mse_loss(np.zeros(5), np.zeros((5, 1)))


def test_a_number_as_target() -> None:
    x = np.array([1.0, 3.0], np.float16)

    found = L.mse_loss(x, 2.0)

    assert found.dtype == np.float16
    assert found.item() == 1.0


def test_certain_predictions_have_finite_binary_cross_entropy() -> None:
    x = Tensor(np.array([0.0, 1.0, 0.0, 1.0])).requires_grad_()
    loss = L.binary_cross_entropy(x, np.array([0.0, 1.0, 1.0, 0.0]), reduction="none")
    backward(loss, np.ones(4))

    np.testing.assert_array_equal(loss.concrete("a test"), [0, 0, 100, 100])
    assert x.grad is not None
    np.testing.assert_array_equal(x.grad.numpy(), [0, 0, -1e12, 1e12])


def test_binary_cross_entropy_with_logits_is_stable_and_smooth_at_zero() -> None:
    x = Tensor(np.array([1000.0, -1000.0, 0.0])).requires_grad_()
    loss = L.binary_cross_entropy_with_logits(x, np.array([1.0, 1.0, 0.0]), reduction="none")
    backward(loss, np.ones(3))

    np.testing.assert_allclose(loss.concrete("a test"), [0, 1000, np.log(2)])
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), [0, -1, 0.5])
    check_grads(lambda x: L.binary_cross_entropy_with_logits(x, 0.3), [np.zeros(3)], order=2)


def test_smooth_l1_without_a_smooth_part_is_l1() -> None:
    assert L.smooth_l1_loss(X, Y, beta=0.0).item() == L.l1_loss(X, Y).item()
    with pytest.raises(ArgumentError, match="beta"):
        L.smooth_l1_loss(X, Y, beta=-1.0)
    with pytest.raises(ArgumentError, match="delta"):
        L.huber_loss(X, Y, delta=0.0)


def test_kl_div_with_zeros_in_the_target_and_per_sample() -> None:
    target = np.array([[0.0, 1.0], [0.5, 0.5]])
    log_p = np.log(np.array([[0.5, 0.5], [0.5, 0.5]]))

    np.testing.assert_allclose(L.kl_div(log_p, target, "batchmean").numpy(), np.log(2) / 2)
    check_grads(lambda x: L.kl_div(x, target), [log_p])


def test_zero_vectors_have_finite_cosine_gradients() -> None:
    x = Tensor(np.zeros((1, 3))).requires_grad_()
    backward(L.cosine_embedding_loss(x, np.ones((1, 3)), np.array([1])))

    assert x.grad is not None and np.isfinite(x.grad.numpy()).all()


@pytest.mark.filterwarnings("ignore:reduction")  # torch means to change the mean of kl_div
@pytest.mark.peers
@pytest.mark.parametrize("name", CASES)
def test_losses_agree_with_torch(name: str) -> None:
    torch = pytest.importorskip("torch")
    F = torch.nn.functional
    loss, operands, _ = CASES[name]
    theirs: dict[str, Callable[..., Any]] = {
        "mse": F.mse_loss,
        "l1": F.l1_loss,
        "huber": lambda x, y: F.huber_loss(x, y, delta=0.7),
        "smooth_l1": lambda x, y: F.smooth_l1_loss(x, y, beta=0.7),
        "bce": F.binary_cross_entropy,
        "bce_with_logits": F.binary_cross_entropy_with_logits,
        "bce_with_logits_weighted": lambda x, y: F.binary_cross_entropy_with_logits(
            x, y, torch.tensor(P), pos_weight=torch.tensor(CLASS_WEIGHT)
        ),
        "hinge": lambda x, y: torch.clamp(1 - x * y, min=0).mean(),
        "cross_entropy": F.cross_entropy,
        "cross_entropy_smooth": lambda x, y: F.cross_entropy(x, y, label_smoothing=0.2),
        "cross_entropy_soft": F.cross_entropy,
        "nll": F.nll_loss,
        "kl_div": F.kl_div,
        "kl_div_log": lambda x, y: F.kl_div(x, y, log_target=True),
        "cosine_embedding": lambda x, y: F.cosine_embedding_loss(x, y, torch.tensor(EVEN_ODD), -0.2),
        "triplet": F.triplet_margin_loss,
        "triplet_swap_p3": lambda a, p, n: F.triplet_margin_loss(a, p, n, p=3, swap=True),
    }
    ours = [Tensor(x).requires_grad_(x.dtype.kind == "f") for x in operands]
    yours = [torch.tensor(x, requires_grad=x.dtype.kind == "f") for x in operands]

    found, expected = loss(*ours, reduction="mean"), theirs[name](*yours)
    backward(found)
    expected.backward()

    np.testing.assert_allclose(found.item(), expected.item(), rtol=1e-9)
    assert ours[0].grad is not None
    np.testing.assert_allclose(ours[0].grad.numpy(), yours[0].grad.numpy(), rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(("weight", "smoothing"), [(None, 0.0), (CLASS_WEIGHT, 0.0), (CLASS_WEIGHT, 0.25)])
def test_labels_that_are_all_classes_are_looked_up(reduction: str, weight: Any, smoothing: float) -> None:
    target = jg.tensor(LABELS)

    def with_gradient(whole: bool) -> list[Any]:
        x = jg.tensor(X, requires_grad=True)
        loss = L._hard_cross_entropy(x, target, smoothing, -100, reduction, weight, 1, whole)
        (slope,) = jg.autograd.grad(loss.sum(), x, create_graph=True)
        (slope**2).sum().backward()
        return [loss.detach().numpy(), slope.detach().numpy(), x.grad.numpy()]

    for found, expected in zip(with_gradient(True), with_gradient(False), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-15)


def test_ignored_labels_and_traces_take_masks() -> None:
    x, target = jg.tensor(X), jg.tensor(LABELS)

    assert class_axis("loss", x, target, None, -100) == (1, True)
    assert class_axis("loss", x, target, None, 0) == (1, False)
    assert class_axis("loss", x, jg.where(target == 1, -100, target), None, -100) == (1, False)
    looked_up = jg.jit(lambda x, t: x * class_axis("loss", x, t, None, -100)[1], check="off", backend="python")
    assert not looked_up(x, target).numpy().any()
