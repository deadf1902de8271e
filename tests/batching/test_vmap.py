"""vmap: axes, nesting with other transforms, and how much a compiled map computes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad import nn
from jitgrad.core.errors import (
    ArgumentError,
    AxisError,
    BatchingWarning,
    ShapeError,
)
from tests.batching.examples import RNG, XS, P, close, f, looped

# --- axes --------------------------------------------------------------------------------------------------------


def test_axes_may_be_trees_with_negative_and_missing_entries() -> None:
    out = jg.vmap(lambda d, y: {"a": d["w"] * y, "b": (y.sum(), d["b"])}, ({"w": -1, "b": None}, 0), {"a": -1, "b": (0, None)})(
        {"w": XS.T, "b": P}, XS
    )

    close(out["a"], (XS * XS).T)
    close(out["b"][0], XS.sum(1))
    close(out["b"][1], P)


def test_keyword_arguments_have_their_examples_along_axis_0() -> None:
    close(jg.vmap(lambda x, *, y: (x * y).sum(), in_axes=1)(XS.T, y=XS), (XS * XS).sum(1))


def test_torch_names_of_the_axes() -> None:
    close(jg.vmap(lambda x: x * P, in_dims=0, out_dims=1)(XS), (XS * P).T)


def test_results_that_are_the_same_for_all_examples_are_repeated() -> None:
    out, number, array = jg.vmap(lambda x: (P * 2, 3.5, np.arange(2)), out_axes=(1, 0, 0))(XS)

    assert out.shape == (3, 5) and number.shape == (5,) and array.shape == (5, 2)


def test_axis_size_without_arguments() -> None:
    assert jg.vmap(lambda: jg.ones(3), (), axis_size=4)().shape == (4, 3)


@pytest.mark.parametrize("shape", [(0, 3), (1, 3), (5, 0)])
def test_few_examples(shape: tuple[int, ...]) -> None:
    xs = jg.ones(shape)

    assert jg.vmap(lambda x: jg.softmax(x) @ jg.ones((shape[1], 2)))(xs).shape == (shape[0], 2)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: jg.vmap(lambda x, y: x)(XS, 2.0), ArgumentError, "maps argument 1 over axis 0, but it holds 2.0"),
        (lambda: jg.vmap(lambda x, y: x)(XS, y=True), ArgumentError, "functools.partial"),
        (lambda: jg.vmap(lambda x, y: x)(XS, XS[:4]), ShapeError, "5 in f64\\[5,3\\], 4 in f64\\[4,3\\]"),
        (lambda: jg.vmap(lambda x: x, axis_size=4)(XS), ShapeError, "4 in axis_size"),
        (lambda: jg.vmap(lambda x: x, None)(XS), ArgumentError, "axis_size"),
        (lambda: jg.vmap(lambda x: x, (0, 0))(XS), ArgumentError, "for 1 positional arguments"),
        (lambda: jg.vmap(lambda d: d["w"], ({"v": 0},))({"w": XS}), ArgumentError, "keys \\['w'\\]"),
        (lambda: jg.vmap(lambda x: x, "x")(XS), ArgumentError, "an axis is an int or None"),
        (lambda: jg.vmap(lambda x: x, 2)(XS), AxisError, "axis 2 is out of bounds"),
        (lambda: jg.vmap(lambda x: x)(XS.sum()), AxisError, "is a number"),
        (lambda: jg.vmap(lambda x: x, 0, None)(XS), ArgumentError, "out_axes has None"),
        (lambda: jg.vmap(lambda x: x, 0, 5)(XS), AxisError, "out_axes"),
        (lambda: jg.vmap(lambda x: x, 0, (0, 0))(XS), ArgumentError, "out_axes"),
        (lambda: jg.vmap(lambda x: "x")(XS), ArgumentError, "returned a str"),
        (lambda: jg.vmap(lambda x: x, randomness="some"), ArgumentError, "randomness is one of"),
        (lambda: jg.vmap(3), ArgumentError, "expected a function"),
    ],
)
def test_refusals_say_what_does_not_fit(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


# --- nesting -----------------------------------------------------------------------------------------------------


def total(p: Any) -> Any:
    return jg.vmap(lambda x: f(p, x))(XS).mean()


def total_by_hand(p: Any) -> Any:
    return jg.stack([f(p, x) for x in XS]).mean()


def of_gradients(p: Any) -> Any:
    return (jg.vmap(jg.grad(lambda x: f(p, x)))(XS) ** 2).sum()


def of_gradients_by_hand(p: Any) -> Any:
    return jg.stack([jg.grad(lambda x: f(p, x))(x) ** 2 for x in XS]).sum()


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("transform", [jg.grad, jg.hessian, lambda g: lambda p: jg.hvp(g, p, P + 1)])
@pytest.mark.parametrize(("found", "expected"), [(total, total_by_hand), (of_gradients, of_gradients_by_hand)])
def test_derivatives_of_mapped_functions(found: Any, expected: Any, transform: Any, compiled: bool) -> None:
    wrapped = transform(found)

    close((jg.jit(wrapped) if compiled else wrapped)(P), transform(expected)(P))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("transform", [jg.grad, jg.jacobian, jg.hessian, lambda g: lambda p, x: jg.vjp(g, p, x)[1](x.sum())[0]])
def test_mapped_derivatives(transform: Any, compiled: bool) -> None:
    mapped = jg.vmap(transform(f), (None, 0))

    close((jg.jit(mapped) if compiled else mapped)(P, XS), looped(lambda x: transform(f)(P, x), XS))


def test_forward_derivatives() -> None:
    def slope(x: Any, t: Any) -> Any:
        return jg.jvp(lambda v: f(P, v), x, t)[1]

    close(jg.vmap(slope)(XS, XS + 1), looped(lambda x: slope(x, x + 1), XS))


def test_levels_stay_apart() -> None:
    # d/dp of the sum over x of d/dx (p x + p^2): the inner derivative must not see p change
    def outer(p: Any) -> Any:
        return jg.vmap(jg.grad(lambda x: p * x + p * p))(XS[:, 0]).sum() * p

    p = jg.tensor(2.0, dtype=jg.float64)
    close(jg.grad(outer)(p), np.array(20.0))
    close(jg.grad(jg.grad(outer))(p), np.array(10.0))


def test_backward_reaches_leaves_through_vmap() -> None:
    p = P.clone().requires_grad_()
    jg.vmap(lambda x: f(p, x))(XS).mean().backward()

    close(p.grad, jg.grad(total_by_hand)(P))


def test_detached_and_unrecorded_parts_have_no_gradient() -> None:
    def loss(p: Any) -> Any:
        def one(x: Any) -> Any:
            with jg.no_grad():
                scale = p.sum()
            return (x * p).sum() * scale + (p.detach() * x * x).sum()

        return jg.vmap(one)(XS).sum()

    close(jg.grad(loss)(P), XS.sum(0) * P.sum())
    close(jg.jit(jg.grad(loss))(P), XS.sum(0) * P.sum())


def test_compiled_inside_and_outside() -> None:
    inner = jg.jit(lambda x: f(P, x))

    close(jg.vmap(inner)(XS), looped(lambda x: f(P, x), XS))
    close(jg.jit(jg.vmap(inner))(XS), looped(lambda x: f(P, x), XS))
    assert inner.cache_info().traces == 0


def test_nested_maps_over_different_axes() -> None:
    distances = jg.vmap(lambda a: jg.vmap(lambda b: ((a - b) ** 2).sum(), out_axes=0)(XS), out_axes=1)
    expected = ((XS.numpy()[None] - XS.numpy()[:, None]) ** 2).sum(-1)

    close(distances(XS), expected)
    close(jg.jit(distances)(XS), expected)
    crossed = jg.vmap(jg.vmap(lambda a, b: a * b, (None, 0)), (0, None))(XS[:, 0], P)
    close(crossed, XS[:, :1] * P)


def test_rows_of_a_jacobian() -> None:
    def g(x: Any) -> Any:
        return jg.tanh(x) * x.sum()

    _, pull = jg.vjp(g, P)
    close(jg.vmap(pull)(jg.eye(3, dtype=jg.float64))[0], jg.jacobian(g)(P))


def test_compiled_gradient_pulled_for_many_cotangents() -> None:
    g = jg.jit(lambda x: jg.tanh(x) * x.sum())
    _, pull = jg.vjp(g, P)
    close(jg.vmap(pull)(jg.eye(3, dtype=jg.float64))[0], jg.jacobian(lambda x: jg.tanh(x) * x.sum())(P))


def test_checkpoint_inside_and_outside() -> None:
    segment = jg.checkpoint(lambda x: jg.tanh(x) * P)
    expected = jg.grad(lambda xs: (jg.tanh(xs) * P).sum())(XS)

    close(jg.vmap(jg.grad(lambda x: segment(x).sum()))(XS), expected)
    close(jg.grad(lambda xs: jg.vmap(segment)(xs).sum())(XS), expected)
    close(jg.grad(lambda xs: jg.checkpoint(jg.vmap(segment))(xs).sum())(XS), expected)


def test_modules_and_losses() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double()
    labels = jg.tensor([0, 1, 1, 0, 1])

    close(jg.vmap(model)(XS), model(XS))
    close(
        jg.vmap(lambda x, y: jg.cross_entropy(model(x), y))(XS, labels), jg.cross_entropy(model(XS), labels, reduction="none")
    )


def test_convolutions_with_weights_of_their_own() -> None:
    images, weights = jg.randn(2, 3, 2, 6, 5), jg.randn(2, 4, 2, 3, 3)
    expected = np.stack([jg.conv2d(images[k], weights[k]).numpy() for k in range(2)])

    np.testing.assert_allclose(jg.vmap(jg.conv2d)(images, weights).numpy(), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(
        jg.vmap(jg.max_pool2d, (0, None))(images, 2).numpy(), np.stack([jg.max_pool2d(x, 2).numpy() for x in images])
    )


def test_users_ops() -> None:
    leak = jg.elementwise("leak_for_vmap(x, *, slope)", scalar="x if x > 0 else slope * x")
    reverse = jg.custom_op(lambda x: x[::-1].copy(), vjp=lambda g, _out, _x: jg.flip(g), name="reverse")

    close(jg.vmap(lambda x: leak(x, slope=0.1))(XS), leak(XS, slope=0.1))
    with pytest.warns(BatchingWarning, match="'reverse' at .*test_vmap.py.* one of 5 examples"):
        close(jg.grad(lambda xs: (jg.vmap(reverse)(xs) * XS).sum())(XS), jg.flip(XS, 1))
    with pytest.warns(BatchingWarning):
        assert jg.vmap(reverse)(XS[:0]).shape == (0, 3)


def test_partial_functions_and_objects() -> None:
    close(jg.vmap(functools.partial(f, P))(XS), looped(lambda x: f(P, x), XS))
    assert jg.vmap(f).__name__ == "f"


# --- decisions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "by_hand"),
    [
        (lambda x: jg.tanh(x * P) + 1, lambda xs: jg.tanh(xs * P) + 1),
        (lambda x: (x * x).sum(), lambda xs: (xs * xs).sum(1)),
        (lambda x: jg.softmax(x), lambda xs: jg.softmax(xs, 1)),
        (lambda x: jg.layer_norm(x, (3,)), lambda xs: jg.layer_norm(xs, (3,))),
        (lambda x: jg.exp(-((x - P) ** 2).sum() / 2) * x, lambda xs: jg.exp(-((xs - P) ** 2).sum(1, keepdims=True) / 2) * xs),
        (lambda x: jg.tanh(x @ XS.T).sum(), lambda xs: jg.tanh(xs @ XS.T).sum(1)),
        (lambda x: x.reshape(1, 3).mT.sum(1) * P, lambda xs: xs * P),
    ],
)
@pytest.mark.parametrize("derivative", [False, True])
def test_as_many_kernels_as_for_a_function_of_arrays(one: Any, by_hand: Any, derivative: bool) -> None:
    xs = jg.tensor(RNG.normal(size=(64, 3)))
    mapped: Any = jg.vmap(one)
    if derivative:
        mapped, by_hand = (jg.grad(lambda a, g=g: (g(a) ** 2).sum()) for g in (mapped, by_hand))
    compiled, reference = jg.jit(mapped), jg.jit(by_hand)

    close(compiled(xs), reference(xs))
    assert len(compiled.kernels(xs)) == len(reference.kernels(xs))


def test_vectors_times_a_matrix_are_one_product() -> None:
    w = jg.tensor(RNG.normal(size=(3, 4)))
    graph = str(jg.jit(jg.vmap(lambda x: x @ w)).graph(XS, stage="trace"))

    assert graph.count("matmul") == 1 and "f64[5,4] = matmul" in graph


def test_inner_products_of_float16_add_up_in_float32() -> None:
    xs = jg.tensor(RNG.normal(size=(4, 300)), dtype=jg.float16)

    np.testing.assert_array_equal(jg.vmap(lambda x: x @ x)(xs).numpy(), looped(lambda x: x @ x, xs))


def test_an_array_from_outside_is_guarded() -> None:
    scale = np.array([1.0, 2.0, 3.0])
    mapped = jg.jit(jg.vmap(lambda x: x * scale + jg.asarray(scale)))
    close(mapped(XS), XS * scale + scale)

    scale[1] = 7.0
    close(mapped(XS), XS * scale + scale)


def test_a_compiled_map_traces_once_until_what_it_reads_changes() -> None:
    scale = [2.0]
    mapped = jg.jit(jg.vmap(lambda x: x * P * scale[0]))
    for _ in range(3):
        close(mapped(XS), XS * P * 2.0)
    assert mapped.cache_info().traces == 1

    scale[0] = 3.0
    close(mapped(XS), XS * P * 3.0)


def test_an_int_argument_stays_open_in_a_compiled_map() -> None:
    mapped = jg.jit(lambda xs, n: jg.vmap(lambda x: x * n + n / 2)(xs))
    for n in (1, 2, 3, 4):
        close(mapped(XS, n), XS * n + n / 2)
    assert mapped.cache_info().traces <= 2
