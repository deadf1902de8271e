"""Every differentiable op of the registry: gradients of first and second order against finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jitgrad.autograd.backward import gradients
from jitgrad.core.dispatch import apply_op
from jitgrad.core.errors import GradcheckError
from jitgrad.core.op import REGISTRY, Kind, OpDef, define_elementwise
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import multiply
from jitgrad.ops.comparison import zero_gradient
from jitgrad.testing import check_grads, sample_operands
from jitgrad.testing.samples import DOMAINS
from tests.determined import determined

DIFFERENTIABLE = [op for op in REGISTRY.values() if op.vjp is not None and op.domain and set(op.domain) <= set(DOMAINS)]
ELEMENTWISE = [op for op in DIFFERENTIABLE if op.kind is Kind.ELEMENTWISE]


@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=str)
def test_vjp_agrees_with_finite_differences(op: OpDef) -> None:
    xs = sample_operands(op, np.random.default_rng(0))

    check_grads(lambda *xs: determined(op, *xs, **op.sample_attrs), xs, order=2)


@pytest.mark.parametrize("op", [op for op in ELEMENTWISE if len(op.operands) > 1], ids=str)
def test_vjp_undoes_broadcasting(op: OpDef) -> None:
    rng = np.random.default_rng(1)
    shapes = ((2, 1, 3), (4, 1), (3,))
    xs = [sample_operands(op, rng, shape)[k] for k, shape in zip(range(len(op.operands)), shapes, strict=False)]

    check_grads(lambda *xs: apply_op(op, *xs, **op.sample_attrs), xs, order=2)


def float32_gradients(op: OpDef) -> tuple[list[Tensor], list[Tensor | None]]:
    xs = [Tensor(x) for x in sample_operands(op, np.random.default_rng(2), dtype=np.float32)]
    floating = [x.requires_grad_() for x in xs if x.dtype.kind == "f"]
    out = apply_op(op, *xs, **op.sample_attrs)
    return floating, gradients([out], [Tensor(np.ones(out.shape, out.dtype))], floating)


@pytest.mark.parametrize("op", ELEMENTWISE, ids=str)
def test_gradients_of_float32_are_float32(op: OpDef) -> None:
    xs, found = float32_gradients(op)

    for x, g in zip(xs, found, strict=True):
        assert g is None or (g.dtype == np.float32 and g.shape == x.shape)


def nodes_computed_in_float64(tensor: Tensor) -> list[str]:
    """Names of the ops in the history of ``tensor`` whose results are float64."""
    found, todo, seen = [], [tensor.grad_fn], set()
    while todo:
        node = todo.pop()
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))
        found += [str(node.op) for a in node.out_avals if a.dtype == np.float64 and node.op.name != "astype"]
        todo += [edge[0] for edge in node.edges if isinstance(edge, tuple)]
    return found


@pytest.mark.parametrize("op", [op for op in ELEMENTWISE if op.name != "astype"], ids=str)
def test_nothing_in_a_float32_gradient_is_computed_in_float64(op: OpDef) -> None:
    xs = [Tensor(x) for x in sample_operands(op, np.random.default_rng(3), dtype=np.float32)]
    floating = [x.requires_grad_() for x in xs if x.dtype.kind == "f"]
    out = apply_op(op, *xs, **op.sample_attrs)
    seed = Tensor(np.ones(out.shape, out.dtype)).requires_grad_()

    for g in gradients([out], [seed], floating, create_graph=True):
        assert g is None or nodes_computed_in_float64(g) == []


@pytest.mark.parametrize("op", ELEMENTWISE, ids=str)
def test_a_python_number_as_operand_has_no_gradient_and_harms_none(op: OpDef) -> None:
    xs: list[Any] = sample_operands(op, np.random.default_rng(4))
    for k in range(1, len(xs)):
        numbers = [x if j != k else x.flat[0].item() for j, x in enumerate(xs)]

        def f(*tensors: Tensor, numbers: list[Any] = numbers, k: int = k) -> Any:
            filled = [*tensors[:k], numbers[k], *tensors[k:]]
            return apply_op(op, *filled, **op.sample_attrs)

        check_grads(f, [x for j, x in enumerate(xs) if j != k], order=2)


def test_the_checks_see_a_wrong_gradient() -> None:
    wrong = define_elementwise(
        "wrong(x)",
        scalar="x * x",
        eager=np.square,
        vjp=(lambda g, _out, x: multiply(g, x),),
        register=False,
    )

    with pytest.raises(GradcheckError, match=r"order 1 .* operand 0"):
        check_grads(lambda x: apply_op(wrong, x), [np.array([1.0, 2.0])])


def test_the_checks_see_a_wrong_second_derivative() -> None:
    constant = define_elementwise("constant(x)", scalar="x", eager=np.copy, vjp=(zero_gradient,), register=False)
    wrong = define_elementwise(
        "wrong(x)",
        scalar="x * x",
        eager=np.square,
        vjp=(lambda g, _out, x: multiply(g, apply_op(constant, multiply(2.0, x))),),
        register=False,
    )

    with pytest.raises(GradcheckError, match="order 2"):
        check_grads(lambda x: apply_op(wrong, x), [np.array([1.0, 2.0])])
