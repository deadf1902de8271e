"""Backward on arrays: which nodes run by a compiled rule, and that the gradients are those of the vjps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
import jitgrad.nn.functional as F
from jitgrad.autograd import backward_pass, rules
from jitgrad.core import dispatch
from jitgrad.core.dispatch import apply_op
from jitgrad.core.errors import InPlaceError
from jitgrad.core.op import REGISTRY, OpDef
from jitgrad.core.tensor import Tensor
from jitgrad.testing import sample_operands

DIFFERENTIABLE = [
    op for op in REGISTRY.values() if op.vjp is not None and not op.multiple and op.domain and "index" not in op.domain
]


@pytest.fixture
def stepped(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ops whose vjps backward called, because there was no rule."""
    names: list[str] = []
    step = backward_pass.BackwardPass.step

    def noted(self: Any, node: Any, arrived: Any) -> Any:
        names.append(node.op.name)
        return step(self, node, arrived)

    monkeypatch.setattr(backward_pass.BackwardPass, "step", noted)
    return names


def leaf(*shape: int) -> Tensor:
    return jg.tensor(np.linspace(0.1, 0.9, int(np.prod(shape))).reshape(shape), requires_grad=True)


def loss(x: Tensor, w: Tensor) -> Tensor:
    h = jg.tanh(x @ w) * 2.0 + x[:, :1]
    return ((h / (1.0 + h * h)) ** 2)[1:].sum() - jg.exp(-h).mean()


def test_backward_that_comes_back_applies_no_op(stepped: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    x, w = leaf(4, 3), leaf(3, 5)
    for _ in range(5):
        loss(x, w).backward()
    x.grad = w.grad = None
    value = loss(x, w)
    stepped.clear()
    applied: list[str] = []
    monkeypatch.setattr(dispatch, "plan_for", lambda op, *_: applied.append(op.name))
    monkeypatch.setattr(dispatch, "run_plan", lambda plan, *_: applied.append(plan.op.name))
    monkeypatch.setattr(rules, "make_rule", lambda node: applied.append(f"rule of {node.op}"))

    value.backward()

    assert stepped == [] and applied == []
    assert x.grad is not None and w.grad is not None


def test_a_rule_is_made_when_an_op_has_come_back(stepped: list[str]) -> None:
    x = leaf(11)
    for _ in range(6):
        jg.sinh(x).sum().backward()

    assert stepped.count("sinh") == 3


def in_tensors(f: Callable[..., Tensor], operands: list[Any]) -> list[Any]:
    """The gradients by the vjps: a recorded backward has no rules."""
    xs = [jg.tensor(x.copy(), requires_grad=x.dtype.kind == "f") if isinstance(x, np.ndarray) else x for x in operands]
    wanted = [x for x in xs if isinstance(x, Tensor) and x.requires_grad]
    return list(jg.autograd.grad(f(*xs), wanted, create_graph=True, allow_unused=True))


def by_rules(f: Callable[..., Tensor], operands: list[Any], times: int = 5) -> list[Any]:
    grads: list[Any] = []
    for _ in range(times):
        xs = [
            jg.tensor(x.copy(), requires_grad=x.dtype.kind == "f") if isinstance(x, np.ndarray) else x for x in operands
        ]
        f(*xs).backward()
        grads = [x.grad for x in xs if isinstance(x, Tensor) and x.requires_grad]
    return grads


@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=str)
def test_rules_give_the_gradients_of_the_vjps(op: OpDef) -> None:
    operands = [
        np.asarray(x) if isinstance(x, (np.ndarray, np.generic)) else x
        for x in sample_operands(op, np.random.default_rng(1))
    ]

    def f(*xs: Any) -> Tensor:
        out = apply_op(op, *xs, **op.sample_attrs)
        return (out * np.linspace(1.0, 2.0, out.size).reshape(out.shape)).sum()

    try:
        expected = in_tensors(f, operands)
    except Exception as error:
        pytest.skip(f"no such gradient: {type(error).__name__}")
    for a, b in zip(by_rules(f, operands), expected, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            assert a.dtype == b.dtype and a.shape == b.shape
            np.testing.assert_allclose(a.numpy(), b.detach().numpy(), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=str)
def test_rules_give_the_gradients_of_masked_results(op: OpDef, kept: bool) -> None:
    """A mask arrives at the op, and those that leave it pass an infinite slope."""
    operands = [
        np.asarray(x) if isinstance(x, (np.ndarray, np.generic)) else x
        for x in sample_operands(op, np.random.default_rng(1))
    ]

    def f(*xs: Any) -> Tensor:
        xs = tuple([x * 1.0 if isinstance(x, Tensor) and x.requires_grad else x for x in xs])
        out = apply_op(op, *xs, **op.sample_attrs)
        condition = np.arange(out.size).reshape(out.shape) % 3 == 0
        zero = out.detach() * 0.0
        return jg.where(condition, out, zero).sum() if kept else jg.where(condition, zero, jg.relu(out)).sum()

    try:
        expected = in_tensors(f, operands)
    except Exception as error:
        pytest.skip(f"no such gradient: {type(error).__name__}")
    for a, b in zip(by_rules(f, operands, times=10), expected, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            assert a.dtype == b.dtype and a.shape == b.shape
            np.testing.assert_allclose(a.numpy(), b.detach().numpy(), rtol=1e-12, atol=1e-13)


def test_masked_gradients_pass_by_rules(stepped: list[str]) -> None:
    def network() -> Tensor:
        h = jg.relu(x @ w + b)
        return jg.maximum(h * 2.0, 0.5).sum() + jg.where(x > 0, jg.sqrt(x), x * 3.0).sum()

    x, w, b = leaf(4, 3), leaf(3, 5), leaf(5)
    for _ in range(20):
        network().backward()
    stepped.clear()

    network().backward()

    assert stepped == []


def test_masks_stop_infinite_slopes_by_rules(stepped: list[str]) -> None:
    for _ in range(20):
        stepped.clear()
        x = jg.tensor([-1.0, 0.0, 4.0], requires_grad=True)
        jg.where(x > 0, jg.sqrt(jg.where(x > -2, x * 1.0, 7.0)) * 2.0, 0.0).sum().backward()
        assert x.grad is not None and x.grad.tolist() == [0.0, 0.0, 0.5]
    assert stepped == []


def test_two_choices_of_one_condition_sum_to_one_gradient(stepped: list[str]) -> None:
    for _ in range(20):
        stepped.clear()
        x = jg.tensor([-1.0, 2.0, np.nan], requires_grad=True)
        y = x * 1.0
        jg.where(y > 0, y * 3.0, y * 5.0).sum().backward()
        assert x.grad is not None and x.grad.tolist() == [5.0, 3.0, 5.0]
    assert stepped == []


def test_sums_of_masked_gradients_of_single_numbers_are_arrays() -> None:
    def chosen(x: Any) -> Any:
        root = jg.sqrt(x * x + 1.0)
        positive = x > 0
        return jg.where(positive, root * 2.0, 0.0) * jg.where(positive, root * 3.0, 1.0)

    for _ in range(12):  # rules are made after a few uses
        x = jg.tensor(0.75, requires_grad=True)
        chosen(x * 1.0).backward()
        np.testing.assert_allclose(x.grad.numpy(), 12 * 0.75, rtol=1e-6)


def test_a_rule_knows_the_number_that_its_vjp_looks_at(stepped: list[str]) -> None:
    for _ in range(6):
        stepped.clear()
        for slope in (0.1, 0.2, 3, float("nan")):
            x = jg.tensor([-1.0, 2.0], requires_grad=True)
            jg.leaky_relu(x, slope).sum().backward()
            assert x.grad is not None
            np.testing.assert_array_equal(x.grad.numpy(), np.array([slope, 1.0], "f"))
    assert stepped == ["leaky_relu"]  # that of NaN, which equals no key


def test_sums_of_many_gradients_do_not_change_other_arrays() -> None:
    x = leaf(3)
    for _ in range(6):
        x.grad = None
        y = x * 1.0
        parts = [y + k for k in range(4)]
        seen: list[Any] = []
        y.register_hook(lambda g, seen=seen: seen.append(g.numpy()))
        sum(parts[1:], parts[0]).sum().backward()
        assert seen[0].tolist() == [4.0] * 3 and x.grad is not None and x.grad.tolist() == [4.0] * 3


def test_a_gradient_owns_its_memory() -> None:
    for _ in range(6):
        x, y = leaf(3), leaf(3)
        seed = np.ones(3)
        (x + y).backward(jg.tensor(seed))
        assert x.grad is not None and y.grad is not None
        x.grad += 1.0
        assert y.grad.tolist() == [1.0] * 3 and seed.tolist() == [1.0] * 3


def test_hooks_see_numpy_as_the_user_set_it() -> None:
    x = leaf(2)
    for _ in range(6):
        y = x * x
        seen: list[Any] = []
        y.register_hook(lambda g, seen=seen: seen.append(np.geterr()))
        x.register_hook(lambda g, seen=seen: seen.append(np.geterr()))
        with np.errstate(all="raise"):
            y.sum().backward()
            assert all(state == np.geterr() for state in seen) and len(seen) >= 2


def test_gradients_of_numbers_are_those_of_their_values() -> None:
    """The rule of a power belongs to no exponent: where that is 0, the gradient is 0, whatever the base."""
    for exponent in (2.5, 0.0, 2.5, 1.5, 2.5, 0.0):
        x = jg.tensor([0.0, 2.0], requires_grad=True)
        (x**exponent).sum().backward()
        assert x.grad is not None
        expected = [0.0, 0.0] if exponent == 0 else [0.0, exponent * 2.0 ** (exponent - 1)]
        np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-6)


def test_in_place_changes_are_noticed_by_rules() -> None:
    x = leaf(3)
    for k in range(6):
        y = x * 1.0
        z = y * y
        if k == 5:
            y += 1.0
            with pytest.raises(InPlaceError, match="changed in place at"):
                z.sum().backward()
        else:
            z.sum().backward()


def test_a_freed_graph_is_noticed_by_rules() -> None:
    x = leaf(3)
    for _ in range(6):
        z = (x * x).sum()
        z.backward()
        with pytest.raises(RuntimeError, match="a second time"):
            z.backward()


def test_masks_pass_nodes_with_rules() -> None:
    for _ in range(6):
        x = jg.tensor([-1.0, 0.0, 4.0], requires_grad=True)
        jg.where(x > 0, jg.sqrt(x) * 2.0, 0.0).sum().backward()
        assert x.grad is not None and x.grad.tolist() == [0.0, 0.0, 0.5]


@pytest.mark.parametrize("wrap", [lambda f: f, jg.jit], ids=["eager", "compiled"])
@pytest.mark.parametrize(
    "largest", [lambda x: F.max_pool2d(x, 2), lambda x: x.amax(3), lambda x: x.max()], ids=["pool", "axis", "all"]
)
def test_the_largest_may_be_changed_in_place(largest: Any, wrap: Any):
    """A ReLU in place after pooling: the result is computed again from what it was the largest of."""
    values = np.random.default_rng(0).normal(size=(1, 2, 4, 4))

    def gradient(change: Any) -> Any:
        x = jg.tensor(values, requires_grad=True)

        def step() -> Any:
            (change(largest(x * 1.0)) ** 2).sum().backward()
            return x.grad

        for _ in range(2):
            x.grad = None
            found = wrap(step)()
        return found.numpy()

    np.testing.assert_allclose(gradient(lambda y: F.relu(y, inplace=True)), gradient(F.relu))


def test_an_operand_that_was_changed_too_is_an_error():
    x = jg.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1.0
    out = y.max()
    y.mul_(2.0)
    out.mul_(2.0)

    with pytest.raises(InPlaceError):
        out.backward()
