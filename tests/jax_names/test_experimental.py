"""jax.experimental.ode, jax.test_util, initializers by import, classes registered with keys, methods of arrays, eval_shape."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad import jax as ours
from jitgrad.core.errors import ArgumentError, GradcheckError
from jitgrad.jax import tree_util
from jitgrad.jax.experimental.ode import odeint
from jitgrad.jax.test_util import check_grads

TIMES = np.array([0.0, 1.0])


def field(state: Any, t: Any, params: Any) -> Any:
    return {"x": state["v"], "v": -params["k"] * state["x"] - params["c"] * state["v"] + np.sin(1.0) * t}


def loss(jax: Any, ode: Any, params: Any, start: Any) -> Any:
    states = ode(field, start, jax.numpy.array(TIMES), params, rtol=1e-7, atol=1e-7)
    return jax.numpy.sum(states["x"] ** 2) + jax.numpy.sum(states["v"])


def arguments(numpy: Any) -> tuple[Any, Any]:
    return {"k": numpy.array(2.0), "c": numpy.array(0.3)}, {"x": numpy.array([1.0, -1.0]), "v": numpy.array([0.0, 2.0])}


@pytest.mark.peers
def test_odeint_of_trees_is_jaxs() -> None:
    jax: Any = pytest.importorskip("jax")
    ode = import_module("jax.experimental.ode").odeint
    with jax.enable_x64(True):
        expected = jax.value_and_grad(lambda p, s: loss(jax, ode, p, s), (0, 1))(*arguments(jax.numpy))

    for wrap in (lambda f: f, lambda f: jg.jit(f, backend="python")):
        found = wrap(jg.value_and_grad(lambda p, s: loss(ours, odeint, p, s), (0, 1)))(*arguments(ours.numpy))
        for one, other in zip(tree_util.tree_leaves(found), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(one.numpy(), np.asarray(other), rtol=1e-5, atol=1e-6)


def test_odeint_refuses_another_structure() -> None:
    with pytest.raises(ArgumentError, match="func returns"):
        odeint(lambda y, t: (y["a"],), {"a": 1.0}, TIMES)


def test_check_grads() -> None:
    check_grads(lambda tree: {"y": ours.numpy.sin(tree["x"])}, ({"x": ours.numpy.array([0.3, 1.0])},), order=2)
    wrong = jg.custom_vjp(lambda x: x * x)
    wrong.defvjp(lambda x: (x * x, x), lambda x, g: (g * x,))
    with pytest.raises(GradcheckError):
        check_grads(wrong, (ours.numpy.array([0.3]),), 1, modes="rev")
    with pytest.raises(ArgumentError, match="modes"):
        check_grads(wrong, (ours.numpy.array([0.3]),), 1, modes="backward")


def test_initializers_are_a_module() -> None:
    module = import_module("jitgrad.jax.nn.initializers")
    assert module is ours.nn.initializers
    assert module.glorot_normal()(ours.random.key(0), (2, 3)).shape == (2, 3)


def test_classes_registered_with_keys_have_paths() -> None:
    @tree_util.register_pytree_with_keys_class
    class Pair:
        def __init__(self, one: Any, other: Any) -> None:
            self.one, self.other = one, other

        def tree_flatten_with_keys(self) -> Any:
            return ((tree_util.GetAttrKey("one"), self.one), (tree_util.GetAttrKey("other"), self.other)), None

        @classmethod
        def tree_unflatten(cls, _rest: Any, children: Any) -> Any:
            return cls(*children)

    pairs, _ = tree_util.tree_flatten_with_path([Pair(1.0, {"a": 2.0})])
    assert [tree_util.keystr(path) for path, _ in pairs] == ["[0].one", "[0].other['a']"]
    assert ours.grad(lambda p: p.one * p.other["a"])(Pair(2.0, {"a": 3.0})).other["a"].item() == 2.0


def test_arrays_wait_and_name_their_devices() -> None:
    x = ours.numpy.ones(3).block_until_ready()
    assert x.devices() == {"cpu"}
    compiled = ours.jit(lambda x: (x * 2.0).block_until_ready())
    assert compiled(x).block_until_ready().tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize(
    "function, shapes",
    [
        (lambda x, y: {"product": x @ y, "sum": (x.sum(), y.mean(0))}, {"product": (3, 5), "sum": ((), (5,))}),
        (lambda x, y: [x.T, None, ours.numpy.argmax(y)], [(4, 3), None, ()]),
    ],
)
def test_eval_shape(function: Any, shapes: Any) -> None:
    specs = [ours.ShapeDtypeStruct((3, 4), np.float32), ours.ShapeDtypeStruct((4, 5), np.float32)]
    for given in (specs, [ours.numpy.zeros(spec.shape, spec.dtype) for spec in specs]):
        found = ours.eval_shape(function, *given)
        assert tree_util.tree_map(lambda struct: struct.shape, found) == shapes
    dtypes = tree_util.tree_leaves(tree_util.tree_map(lambda struct: struct.dtype.name, found))
    assert set(dtypes) <= {"float32", "int64"}


@pytest.mark.parametrize("count", [0, 1, 200])
def test_odeint_of_trees_needs_no_ops_for_each_time(count: int) -> None:
    params, start = arguments(ours.numpy)
    solve = jg.jit(lambda t: odeint(field, start, t, params))
    times = jg.linspace(0.0, 1.0, count)

    assert {name: x.shape for name, x in solve(times).items()} == {"x": (count, 2), "v": (count, 2)}
    assert len(solve.graph(times).nodes) < 20
