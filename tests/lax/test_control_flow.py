"""jitgrad.lax: loops, branches and slices are JAX's, eager and compiled, with their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad import lax
from jitgrad.core.errors import ArgumentError, ShapeError

RNG = np.random.default_rng(2)
W, XS = RNG.normal(size=(3, 3)), RNG.normal(size=(5, 3))
WRAPS = [lambda f: f, jg.jit]


def recurrent(m: Any, lax: Any, reverse: bool) -> Any:
    def run(w: Any, xs: Any) -> Any:
        def cell(h: Any, x: Any) -> Any:
            h = m.tanh(w @ h + x["a"]) * x["b"]
            return h, {"sum": h.sum(), "h": h}

        last, ys = lax.scan(cell, w[0], {"a": xs, "b": xs[:, :1]}, reverse=reverse)
        return last.sum() + (ys["sum"] ** 2).sum() + (ys["h"][1:] * ys["h"][:-1]).sum()

    return run


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("wrap", WRAPS)
def test_scan_and_its_gradient_are_jaxs(wrap: Any, reverse: bool) -> None:
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        expected = jax.value_and_grad(recurrent(jax.numpy, jax.lax, reverse), (0, 1))(W, XS)
        value, (gw, gx) = wrap(jg.value_and_grad(recurrent(jg, lax, reverse), (0, 1)))(jg.tensor(W), jg.tensor(XS))
        np.testing.assert_allclose(value.item(), expected[0], rtol=1e-10)
        np.testing.assert_allclose(gw.numpy(), expected[1][0], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(gx.numpy(), expected[1][1], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("wrap", WRAPS)
def test_loops_of_a_known_number_of_turns(wrap: Any) -> None:
    x = jg.tensor([1.0, 2.0])
    assert wrap(lambda x: lax.fori_loop(1, 4, lambda i, v: v * i + 1.0, x))(x).tolist() == [16.0, 22.0]
    assert wrap(lambda x: lax.map(lambda row: row * 2.0, x))(x).tolist() == [2.0, 4.0]
    counted = wrap(lambda x: lax.while_loop(lambda c: c[1] < 3, lambda c: (c[0] * 2.0, c[1] + 1), (x, 0)))(x)
    assert counted[0].tolist() == [8.0, 16.0]
    last, none = wrap(lambda x: lax.scan(lambda c, _: (c + 1.0, None), x, None, length=3))(x)
    assert last.tolist() == [4.0, 5.0] and none is None
    assert lax.while_loop(lambda v: v.sum() < 20, lambda v: v * 2, x).tolist() == [8.0, 16.0]


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize(("k", "expected"), [(-3, 2.0), (0, 2.0), (1, 9.0), (2, 0.5), (7, 0.5)])
def test_branches_of_data(wrap: Any, k: int, expected: float) -> None:
    def both(x: Any, k: Any) -> Any:
        chosen = lax.switch(k, [lambda x: x - 1, lambda x: x * x, lambda x: x / 6], x)
        return chosen, lax.cond(k > 0, lambda x: {"v": jg.log(x)}, lambda x: {"v": -x}, x)["v"]

    x = jg.tensor(3.0, dtype=jg.float64, requires_grad=True)
    chosen, branch = wrap(both)(x, jg.tensor(k))
    assert chosen.item() == pytest.approx(expected)
    assert branch.item() == pytest.approx(np.log(3.0) if k > 0 else -3.0)
    branch.backward()
    assert x.grad.item() == pytest.approx(1 / 3 if k > 0 else -1.0)


def test_a_branch_that_is_not_chosen_leaves_no_nan() -> None:
    f = jg.jit(jg.grad(lambda x: lax.cond(x > 0, jg.log, lambda x: 2.0 * x, x)))
    assert f(jg.tensor(-1.0)).item() == 2.0 and f(jg.tensor(4.0)).item() == 0.25
    assert f.cache_info().traces == 1


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("start", [(0, 1), (2, -1), (9, 9), (-9, 0)])
def test_slices_at_positions_of_data_are_jaxs(wrap: Any, start: tuple[int, int]) -> None:
    jax = pytest.importorskip("jax")
    x, new = RNG.normal(size=(3, 4)).astype(np.float32), np.ones((2, 1), np.float32)

    def parts(lax: Any, x: Any, new: Any, i: Any, j: Any) -> Any:
        return (
            lax.dynamic_slice(x, (i, j), (2, 3)),
            lax.dynamic_update_slice(x, new, (i, j)),
            lax.dynamic_slice(x, (i, 1), (2, 2)),
            lax.dynamic_index_in_dim(x, j, 1, keepdims=False),
            lax.dynamic_update_index_in_dim(x, new[0, 0] * x[0], i, 0),
            lax.dynamic_slice_in_dim(x, i, 2),
            lax.dynamic_update_slice_in_dim(x, x[:2], i, axis=0),
        )

    expected = parts(jax.lax, jax.numpy.asarray(x), jax.numpy.asarray(new), *start)
    found = wrap(lambda *args: parts(lax, *args))(jg.tensor(x), jg.tensor(new), *map(jg.tensor, start))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one.numpy(), np.asarray(other))


def test_elementwise_names_and_stop_gradient() -> None:
    x = jg.tensor([4.0, 9.0], requires_grad=True)
    assert lax.rsqrt(x).tolist() == [0.5, pytest.approx(1 / 3)] and lax.clamp(5.0, x, 8.0).tolist() == [5.0, 8.0]
    assert lax.select(x > 5, x, -x).tolist() == [-4.0, 9.0] and lax.concatenate([x, x], 0).shape == (4,)
    (x * lax.stop_gradient({"x": x})["x"]).sum().backward()
    assert x.grad.tolist() == [4.0, 9.0]


def test_what_has_no_answer_is_an_error() -> None:
    x = jg.ones(3, 2)
    with pytest.raises(ShapeError, match="first axes of one length"):
        lax.scan(lambda c, x: (c, x), 0.0, (x, jg.ones(2)))
    with pytest.raises(ShapeError, match="without a turn"):
        lax.scan(lambda c, x: (c, x), 0.0, jg.ones(0, 2))
    with pytest.raises(ArgumentError, match="the number of turns is unknown"):
        lax.scan(lambda c, x: (c, x), 0.0)
    with pytest.raises(ArgumentError, match="one structure"):
        jg.jit(lambda x: lax.cond(x.sum() > 0, lambda: x, lambda: (x, x)))(x)
    with pytest.raises(ArgumentError, match="equal shapes"):
        jg.jit(lambda x: lax.cond(x.sum() > 0, lambda: x, lambda: x[0]))(x)
    with pytest.raises(ArgumentError, match="at least one branch"):
        lax.switch(0, [])
    with pytest.raises(ShapeError, match=r"dynamic_slice of f32\[3,2\]: got 2 starts and sizes \(2, 3\)"):
        lax.dynamic_slice(x, (0, 0), (2, 3))


def test_pytrees_under_jaxs_names() -> None:
    tree = {"b": [jg.ones(2), None], "a": (1.0, 2.0)}
    leaves, treedef = jg.tree_util.tree_flatten(tree)
    assert [*map(float, leaves[:2])] == [1.0, 2.0] and len(jg.tree.leaves(tree)) == 3
    doubled = jg.tree.map(lambda x: x * 2, tree)
    assert doubled["b"][0].tolist() == [2.0, 2.0] and doubled["a"] == (2.0, 4.0) and doubled["b"][1] is None
    assert jg.tree_util.tree_structure(tree) == treedef == jg.tree.structure(jg.tree.unflatten(treedef, leaves))
    assert jg.tree.reduce(lambda a, b: a + b, (1, [2, 3])) == 6 and jg.tree.reduce(lambda a, b: a + b, [1], 4) == 5
    assert jg.tree.all([True, {"x": 1}]) and not jg.tree_util.tree_all([True, 0])
    vector, back = jg.flatten_util.ravel_pytree({"w": jg.ones(2, 2)})
    assert vector.shape == (4,) and back(vector)["w"].shape == (2, 2)


@pytest.mark.peers
def test_cumsum_and_top_k_are_those_of_jax() -> None:
    lax: Any = pytest.importorskip("jax.lax")
    x = np.array([[3.0, 1.0, 2.0], [0.5, 7.0, -1.0]], np.float32)
    for f in (jg.lax.cumsum, jg.jit(jg.lax.cumsum)):
        np.testing.assert_allclose(f(x).numpy(), lax.cumsum(x))
    np.testing.assert_allclose(jg.lax.cumsum(x, 1, reverse=True).numpy(), lax.cumsum(x, 1, reverse=True))
    for ours, theirs in zip(jg.lax.top_k(x, 2), lax.top_k(x, 2), strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs)
