"""Functions composed of ops as one line of NumPy calls: what decides that they are, and that nobody can tell."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core import dispatch
from jitgrad.core.aval import Aval
from jitgrad.core.errors import InPlaceError
from jitgrad.core.tensor import Tensor
from jitgrad.eager.compositions import CompositionNode
from jitgrad.nn import functional as F
from tests.eager.composed_calls import COMPOSED, Call, grid


def operands(name: str, dtype: Any = np.float64) -> list[np.ndarray[Any, Any]]:
    return [np.asarray(grid(*shape) + 0.05 * k, dtype) for k, shape in enumerate(COMPOSED[name][0])]


def leaves(arrays: list[np.ndarray[Any, Any]]) -> list[Tensor]:
    return [jg.tensor(x.copy(), requires_grad=True) for x in arrays]


def weighted(y: Tensor) -> Tensor:
    return (y * jg.tensor(np.asarray(grid(*y.shape) + 0.3, y.dtype))).sum()


def run(f: Call, xs: list[Tensor], ahead: Callable[[Tensor], Tensor] = weighted) -> list[bytes]:
    """The bits of the result and of the gradients."""
    y = f(*xs)
    ahead(y).backward()
    return [y.detach().numpy().tobytes()] + [b"" if x.grad is None else x.grad.numpy().tobytes() for x in xs]


def op_by_op(monkeypatch: pytest.MonkeyPatch, compute: Callable[[], Any]) -> Any:
    """What ``compute`` gives without compositions."""
    with monkeypatch.context() as patch:
        patch.setattr("jitgrad.eager.compositions._add_key", lambda *_: False)
        return compute()


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("name", COMPOSED)
def test_results_and_gradients_have_the_bits_of_the_ops(name: str, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    f, arrays = COMPOSED[name][1], operands(name, dtype)
    expected = op_by_op(monkeypatch, lambda: [run(f, leaves(arrays)) for _ in range(6)][-1])

    found = [run(f, leaves(arrays)) for _ in range(6)]

    assert found == [expected] * 6


def test_attention_of_several_heads_is_five_compositions() -> None:
    layer = jg.nn.MultiheadAttention(6, 2, batch_first=True)
    x = jg.tensor(grid(2, 3, 6).astype(np.float32), requires_grad=True)
    for _ in range(5):
        out = layer(x, x, x, need_weights=False)[0]
    found, waiting = set(), [out.grad_fn]
    while waiting:
        node = waiting.pop()
        found.add(node)
        waiting += [edge[0] for edge in node.edges if type(edge) is tuple]

    assert sorted(str(node.op) for node in found if isinstance(node, CompositionNode)) == [
        "_joined", "_projection", "_projection", "_projection", "dot_product_weights",
    ]  # fmt: skip


@pytest.mark.parametrize("name", COMPOSED)
def test_they_become_one_node_after_a_few_calls(name: str) -> None:
    f, arrays = COMPOSED[name][1], operands(name)
    for _ in range(5):
        y = f(*leaves(arrays))

    assert type(y.grad_fn) is CompositionNode


def test_a_known_composition_applies_no_op(monkeypatch: pytest.MonkeyPatch) -> None:
    x = jg.tensor(grid(4, 5), requires_grad=True)
    for _ in range(5):
        F.softmax(x, -1).mean().backward()
    applied: list[str] = []
    x.grad = None
    monkeypatch.setattr(dispatch, "run_plan", lambda plan, *_: applied.append(plan.op.name))
    monkeypatch.setattr(dispatch, "plan_for", lambda op, *_: applied.append(op.name))

    F.softmax(x, -1).mean().backward()

    assert applied == []


@pytest.mark.parametrize("name", COMPOSED)
def test_gradients_under_masks_are_those_of_the_ops(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what backward does with the masks that come out."""
    f, arrays = COMPOSED[name][1], operands(name)

    def ahead(y: Tensor) -> Tensor:
        return weighted(jg.where(y > 0.1, jg.sqrt(jg.relu(y)), 0.0))

    def behind(*xs: Tensor) -> Tensor:
        return f(*[x + 0.0 * jg.sqrt(jg.abs(x)) for x in xs])

    expected = op_by_op(monkeypatch, lambda: run(behind, leaves(arrays), ahead))
    for _ in range(8):
        found = run(behind, leaves(arrays), ahead)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.frombuffer(a), np.frombuffer(b), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", COMPOSED)
def test_second_derivatives_are_those_of_the_ops(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    f, arrays = COMPOSED[name][1], operands(name)

    def second() -> list[Any]:
        xs = leaves(arrays)
        first = jg.autograd.grad(weighted(f(*xs) ** 2), xs, create_graph=True)
        total = sum((weighted(g * g) for g in first[1:]), weighted(first[0] * first[0]))
        return [g.numpy() for g in jg.autograd.grad(total, xs, allow_unused=True) if g is not None]

    expected = op_by_op(monkeypatch, second)
    for _ in range(5):
        found = second()
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-13)


def test_some_of_the_operands_may_have_gradients() -> None:
    x, w, b = leaves(operands("linear"))
    for wanted in (x, w, b):
        for t in (x, w, b):
            t.requires_grad_(t is wanted)
            t.grad = None
        for _ in range(5):
            y = F.linear(x, w, b)
            assert type(y.grad_fn) is not CompositionNode or y.grad_fn.edges.count(None) == 2
            y.sum().backward()
        assert [t.grad is not None for t in (x, w, b)] == [t is wanted for t in (x, w, b)]
    for t in (x, w, b):
        t.requires_grad_(False)
    for _ in range(5):
        assert not F.linear(x, w, b).requires_grad
    w.requires_grad_(True)
    with jg.no_grad():
        for _ in range(5):
            assert not F.linear(x, w, b).requires_grad


def test_gradients_of_chosen_tensors() -> None:
    x, w, b = leaves(operands("linear"))
    for _ in range(6):
        h = x * 2.0
        (only,) = jg.autograd.grad(F.linear(h, w, b).sum(), [w])
        np.testing.assert_allclose(only.numpy(), np.tile(2.0 * x.detach().numpy().sum(0), (3, 1)))
        (inner,) = jg.autograd.grad(F.linear(h, w, b).sum(), [h])
        np.testing.assert_allclose(inner.numpy(), np.tile(w.detach().numpy().sum(0), (4, 1)))
    assert x.grad is None and w.grad is None and b.grad is None


def test_hooks_and_retained_gradients() -> None:
    x = jg.tensor(grid(4, 5), requires_grad=True)
    for _ in range(6):
        x.grad = None
        y = F.softmax(x, -1)
        y.retain_grad()
        seen: list[Any] = []
        y.register_hook(lambda g, seen=seen: seen.append(g.numpy()) or g * 0.0)
        (y * 3.0).sum().backward()
        assert seen[0].tolist() == [[3.0] * 5] * 4
        assert x.grad is not None and not x.grad.numpy().any() and y.grad is not None and not y.grad.numpy().any()


def test_a_change_of_what_backward_reads_is_an_error() -> None:
    x = jg.tensor(grid(4, 5), requires_grad=True)
    w = jg.tensor(grid(3, 5), requires_grad=True)
    for k in range(6):
        h = x * 1.0
        y = F.linear(h, w)
        z = F.softmax(h * 1.0, -1)
        if k == 5:
            h += 1.0
            with pytest.raises(InPlaceError, match=r"backward of linear at .*changed in place at"):
                y.sum().backward()
            z.sum().backward()


def test_a_change_of_what_backward_does_not_read_is_none() -> None:
    x = jg.tensor(grid(4, 5), requires_grad=True)
    expected = None
    for _ in range(7):
        x.grad = None
        h = x * 1.0
        y = F.softmax(h, -1)
        h += 1.0
        weighted(jg.relu(y)).backward()
        assert x.grad is not None
        expected = x.grad.numpy() if expected is None else expected
        np.testing.assert_array_equal(x.grad.numpy(), expected)


def test_a_change_of_a_result_that_backward_reads_is_an_error() -> None:
    for _ in range(6):
        x = jg.tensor(grid(4, 5), requires_grad=True)
        y = F.softmax(x, -1)
        y += 1.0
        with pytest.raises(InPlaceError, match="changed in place at"):
            (y * y).sum().backward()


def test_a_freed_graph_is_noticed() -> None:
    x = jg.tensor(grid(4, 5), requires_grad=True)
    for _ in range(6):
        y = F.softmax(x, -1)
        weighted(y).backward()
        with pytest.raises(RuntimeError, match="a second time"):
            weighted(y).backward()
        z = F.softmax(x, -1)
        weighted(z).backward(retain_graph=True)
        weighted(z).backward()
        h = F.softmax(x, -1)
        h.register_hook(lambda g: g)
        h.sum().backward()
        with pytest.raises(RuntimeError, match="a second time"):
            h.sum().backward()


def test_saved_arrays_are_freed() -> None:
    x = jg.tensor(grid(4, 5), requires_grad=True)
    for _ in range(5):
        y = F.softmax(x, -1)
    node = y.grad_fn

    y.sum().backward()

    assert node.kept == () and node.saved == () and node.edges is None


def test_tapes_and_anomaly_detection_see_ops() -> None:
    x = jg.tensor(grid(4, 5), requires_grad=True)
    for _ in range(5):
        F.softmax(x, -1)
    with jg.Tape() as tape:
        F.softmax(x, -1)
    assert "exp" in str(tape) and "divide" in str(tape)
    bad = jg.tensor(np.full((4, 5), np.nan), requires_grad=True)
    with jg.autograd.detect_anomaly(), pytest.raises(jg.errors.AnomalyError, match=r"divide|sum|multiply"):
        F.softmax(bad, -1).sum().backward()


def test_other_arguments_are_told_apart() -> None:
    x = jg.tensor(grid(4, 4))
    for _ in range(6):
        assert F.softmax(x, 0).sum(0).tolist() == pytest.approx([1.0] * 4)
        assert F.softmax(x, 1).sum(1).tolist() == pytest.approx([1.0] * 4)
        assert F.softmax(x, 1, dtype=np.float32).dtype == np.float32
        assert F.softmax(x, 1).dtype == np.float64
        assert x.mean(keepdims=True).shape == (1, 1) and x.mean(keepdims=False).shape == ()
        with pytest.raises(jg.errors.AxisError):
            F.softmax(x, 2)
        with pytest.raises(jg.errors.AxisError):
            x.mean((0, 0))


def test_avals_that_are_not_shared_make_no_wrong_hits() -> None:
    """The key has ids of avals: of those that the composition keeps, not of others that are gone."""
    expected = np.full((4, 4), 0.25)
    for n in range(2, 40):
        x = Tensor(np.zeros((4, 4)), Aval((4, 4), np.dtype(np.float64)))
        y = Tensor(np.zeros((n, 2)), Aval((n, 2), np.dtype(np.float64)))
        for _ in range(5):
            np.testing.assert_array_equal(F.softmax(x, -1).numpy(), expected)
            assert F.softmax(y, 0).shape == (n, 2)
            y._aval = Aval((n, 2), np.dtype(np.float64))


def test_the_default_dtype_is_part_of_what_is_recorded() -> None:
    x = jg.tensor(np.array([[1, 2], [3, 4]]))
    before = jg.get_default_dtype()
    try:
        for dtype in (np.float32, np.float64) * 5:
            jg.set_default_dtype(dtype)
            assert F.softmax(x * 0.5, -1).dtype == (x * 0.5).dtype
    finally:
        jg.set_default_dtype(before)


def test_labels_are_looked_at_in_each_call() -> None:
    x = jg.tensor(grid(4, 5), requires_grad=True)
    for _ in range(6):
        F.cross_entropy(x, jg.tensor([0, 1, 2, 4])).backward()
    with pytest.raises(jg.errors.IndexingError, match=r"label 5 at position \(3,\)"):
        F.cross_entropy(x, jg.tensor([0, 1, 2, 5]))
    with pytest.raises(jg.errors.IndexingError, match=r"label -1 at position \(0,\)"):
        F.cross_entropy(x, jg.tensor(np.array([-1, 1, 2, 3], np.int8)))


def test_strided_operands() -> None:
    x = grid(5, 8)
    for view in (x.T, x[::-1, ::2], x[:, ::-1], np.broadcast_to(x[:1], (5, 8))):
        for _ in range(5):
            found = F.softmax(jg.asarray(view), -1).numpy()
            np.testing.assert_array_equal(found, F.softmax(jg.tensor(view.copy()), -1).numpy())


def test_gradients_own_their_memory() -> None:
    for _ in range(6):
        x, y = leaves([grid(3), grid(3)])
        F.mse_loss(x, y, reduction="none").sum().backward()
        assert x.grad is not None and y.grad is not None
        expected = y.grad.tolist()
        x.grad += 1.0
        assert y.grad.tolist() == expected


def test_threads_run_compositions_at_the_same_time() -> None:
    x = jg.tensor(grid(40, 50), requires_grad=True)
    expected, wrong = F.softmax(x, -1).detach().numpy(), []

    def work() -> None:
        for _ in range(100):
            if (F.softmax(x, -1).detach().numpy() != expected).any():
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_numpy_does_not_warn() -> None:
    x = jg.tensor(np.array([[np.inf, 1.0], [np.nan, 2.0]]), requires_grad=True)
    with np.errstate(all="raise"):
        for _ in range(6):
            F.softmax(x, -1).sum().backward()
            F.layer_norm(x, (2,)).sum().backward()


def test_compiled_functions_of_compositions() -> None:
    x, w, b = leaves(operands("linear"))

    def loss(x: Tensor) -> Tensor:
        return F.softmax(F.linear(x, w, b), -1).square().sum()

    for _ in range(6):
        eager = jg.value_and_grad(loss)(x)
    compiled = jg.jit(jg.value_and_grad(loss))(x)

    np.testing.assert_allclose(compiled[0].item(), eager[0].item(), rtol=1e-12)
    np.testing.assert_allclose(compiled[1].detach().numpy(), eager[1].detach().numpy(), rtol=1e-10, atol=1e-14)
    assert jg.jit(lambda h: h.sum())(F.linear(x, w, b)).item() == pytest.approx(F.linear(x, w, b).sum().item())


def test_large_arrays_are_computed_op_by_op() -> None:
    x = jg.tensor(np.zeros((600, 600)), requires_grad=True)
    for _ in range(5):
        y = x.mean(0)

    assert type(y.grad_fn) is not CompositionNode
