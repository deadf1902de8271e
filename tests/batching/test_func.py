"""jitgrad.func: torch.func's names, with the values that jitgrad's own functions give."""

from __future__ import annotations

from typing import Any

import numpy as np
import optree
import pytest

import jitgrad as jg
from jitgrad import func, nn
from jitgrad.core.errors import ArgumentError, AutogradError

RNG = np.random.default_rng(3)
X = jg.tensor(RNG.normal(size=3))
Y = {"w": jg.tensor(RNG.normal(size=(3, 2))), "b": jg.tensor(RNG.normal(size=()))}


def g(x: Any, y: Any) -> Any:
    return {"a": jg.tanh(x @ y["w"]), "b": x.sum() * y["b"]}


def assert_trees_close(found: Any, expected: Any) -> None:
    a, structure = optree.tree_flatten(found)
    b, other = optree.tree_flatten(expected)
    assert structure == other
    for x, y in zip(a, b, strict=True):
        assert x.shape == y.shape and x.dtype == y.dtype
        np.testing.assert_allclose(x.detach().numpy(), y.detach().numpy(), rtol=1e-9, atol=1e-12)


def by_rows(f: Any, *args: Any) -> Any:
    """The Jacobian with respect to all arguments, by one backward pass for each element of the result."""
    out, pull = jg.vjp(f, *args)
    leaves, structure = optree.tree_flatten(out)
    blocks = []
    for k, y in enumerate(leaves):
        rows = []
        for n in range(y.size):
            seed = jg.tensor(np.eye(y.size)[n].reshape(y.shape))
            rows.append(pull(optree.tree_unflatten(structure, [seed if j == k else z * 0 for j, z in enumerate(leaves)])))
        blocks.append(optree.tree_map(lambda *gs, y=y: jg.stack(gs).reshape((*y.shape, *gs[0].shape)), *rows))
    return optree.tree_unflatten(structure, blocks)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("argnums", [0, 1, (0, 1), -1])
@pytest.mark.parametrize("jacobian", [func.jacrev, func.jacfwd])
def test_jacobians(jacobian: Any, argnums: Any, compiled: bool) -> None:
    f = jacobian(g, argnums)
    expected = by_rows(g, X, Y)
    if argnums != (0, 1):
        expected = {name: block[argnums] for name, block in expected.items()}

    assert_trees_close((jg.jit(f) if compiled else f)(X, Y), expected)


def test_hessian() -> None:
    def h(x: Any, y: Any) -> Any:
        return jg.exp(-(x * x).sum()) * y["b"] + jg.tanh(x @ y["w"]).sum()

    expected = by_rows(lambda x: jg.grad(h)(x, Y), X)[0]
    assert_trees_close(func.hessian(h)(X, Y), expected)
    assert_trees_close(func.hessian(h, (0, 1))(X, Y), by_rows(jg.grad(h, (0, 1)), X, Y))
    assert_trees_close(func.jacfwd(func.jacrev(h))(X, Y), expected)
    assert_trees_close(func.jacrev(func.jacfwd(h))(X, Y), expected)


@pytest.mark.parametrize("jacobian", [func.jacrev, func.jacfwd])
def test_jacobians_of_compiled_functions_and_within_gradients(jacobian: Any) -> None:
    def h(x: Any) -> Any:
        return jg.tanh(x) * x.sum()

    assert_trees_close(jacobian(jg.jit(h))(X), by_rows(h, X)[0])
    norm = jg.grad(lambda x: (jacobian(h)(x) ** 2).sum())(X)
    assert_trees_close(norm, jg.grad(lambda x: (by_rows(h, x)[0] ** 2).sum())(X))


def test_values_beside_derivatives() -> None:
    def h(x: Any) -> Any:
        return (x * x).sum(), x.sum()

    gradient, (value, aux) = func.grad_and_value(h, has_aux=True)(X)
    assert_trees_close((gradient, value, aux), (X * 2, (X * X).sum(), X.sum()))
    for jacobian in (func.jacrev, func.jacfwd):
        rows, aux = jacobian(lambda x: (x * 2, x.sum()), has_aux=True)(X)
        assert_trees_close((rows, aux), (2 * jg.eye(3, dtype=jg.float64), X.sum()))
        assert not aux.requires_grad
    out, pull, aux = func.vjp(h, X, has_aux=True)
    assert_trees_close((out, *pull(jg.tensor(1.0, dtype=jg.float64)), aux), ((X * X).sum(), X * 2, X.sum()))
    out, tangent, aux = func.jvp(h, (X,), (X,), has_aux=True)
    assert_trees_close((out, tangent, aux), ((X * X).sum(), 2 * (X * X).sum(), X.sum()))
    with pytest.raises(AutogradError, match="must return \\(result, aux\\)"):
        func.vjp(lambda x: x, X, has_aux=True)
    with pytest.raises(ArgumentError, match="argnums=2"):
        func.jacrev(g, 2)(X, Y)


def test_a_jacobian_by_jacrev_is_one_backward_pass() -> None:
    w = jg.tensor(RNG.normal(size=(3, 8)))
    graph = str(jg.jit(func.jacrev(lambda x: jg.tanh(x @ w))).graph(X, stage="trace"))

    assert graph.count("matmul") == 2


# --- modules -----------------------------------------------------------------------------------------------------


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(3, 4)
        self.weight = nn.Parameter(jg.randn(4))
        self.scale = 2.0

    def forward(self, x: Any) -> Any:
        return (jg.tanh(self.hidden(x)) * self.weight).sum(-1) * self.scale


XS = jg.tensor(RNG.normal(size=(6, 3)))


def state(module: nn.Module) -> dict[str, Any]:
    return {name: p.detach() for name, p in module.named_parameters()}


def test_functional_call_uses_the_given_parameters_and_puts_its_own_back() -> None:
    model, other = Net().double(), Net().double()
    before = dict(model.named_parameters())

    assert_trees_close(func.functional_call(model, state(other), (XS,)), other(XS))
    assert_trees_close(func.functional_call(model, {"weight": other.weight}, XS), model(XS) * 0 + func.functional_call(other, {
        "hidden.weight": model.hidden.weight, "hidden.bias": model.hidden.bias}, kwargs={"x": XS}))  # fmt: skip
    with pytest.raises(Exception, match="the last axes of x"):
        func.functional_call(model, {"hidden.weight": jg.ones((4, 5), dtype=jg.float64)}, (XS,))
    assert all(p is before[name] for name, p in model.named_parameters())


def test_compiled_functional_call_is_traced_once() -> None:
    model = Net().double()
    call = jg.jit(lambda params, x: func.functional_call(model, params, (x,)))
    for k in range(1, 4):
        params = {name: p * k for name, p in state(model).items()}
        assert_trees_close(call(params, XS), func.functional_call(model, params, (XS,)))
    assert call.cache_info().traces == 1

    model.scale = 3.0
    assert_trees_close(call(params, XS), func.functional_call(model, params, (XS,)))


def test_gradients_of_each_example() -> None:
    model = Net().double()
    params = state(model)

    def loss(params: Any, x: Any) -> Any:
        return (func.functional_call(model, params, (x,)) ** 2).sum()

    each = jg.vmap(jg.grad(loss), (None, 0))
    rows = [jg.grad(loss)(params, x) for x in XS]
    expected = {name: jg.stack([row[name] for row in rows]) for name in params}
    assert_trees_close(each(params, XS), expected)
    assert_trees_close(jg.jit(each)(params, XS), expected)


def test_an_ensemble_of_stacked_modules() -> None:
    models = [Net().double() for _ in range(3)]
    parameters, buffers = func.stack_module_state(models)
    out = jg.vmap(lambda p, b, x: func.functional_call(models[0], (p, b), (x,)), (0, 0, None))(parameters, buffers, XS)

    assert_trees_close(out, jg.stack([m(XS) for m in models]))
    out.sum().backward()
    models[1](XS).sum().backward()
    assert_trees_close(parameters["weight"].grad[1], models[1].weight.grad)


def test_shared_parameters_are_replaced_under_all_names() -> None:
    first = nn.Linear(3, 3).double()
    second = nn.Linear(3, 3).double()
    second.weight = first.weight
    both = nn.Sequential(first, second)
    new = jg.eye(3, dtype=jg.float64)

    tied = func.functional_call(both, {"0.weight": new}, (XS,))
    assert_trees_close(tied, XS + first.bias + second.bias)
    alone = func.functional_call(both, {"0.weight": new}, (XS,), tie_weights=False)
    assert_trees_close(alone, second(XS + first.bias))
    with pytest.raises(ArgumentError, match="one tensor"):
        func.functional_call(both, {"0.weight": new, "1.weight": new * 2}, (XS,))


def test_running_statistics_of_each_member_of_an_ensemble() -> None:
    models = [nn.BatchNorm1d(3).double() for _ in range(2)]
    parameters, buffers = func.stack_module_state(models)

    def member(p: Any, b: Any) -> Any:
        own = {name: x.clone() for name, x in b.items()}
        return func.functional_call(models[0], (p, own), (XS,)), own

    out, new = jg.vmap(member)(parameters, buffers)
    assert_trees_close(out, jg.stack([m(XS) for m in models]))
    assert_trees_close(new["running_mean"], jg.stack([m.running_mean for m in models]))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda m: func.functional_call(m, {"nothing": XS}, (XS,)), "no nothing in it. It has .*hidden.weight"),
        (lambda m: func.functional_call(m, {"weight": XS}, (XS,), strict=True), "hidden.bias.* not given"),
        (lambda m: func.functional_call(m, [{"weight": XS}, {"weight": XS}], (XS,)), "several of the dicts"),
        (lambda m: func.stack_module_state([]), "none"),
        (lambda m: func.stack_module_state([m, nn.Linear(2, 2)]), "Linear, Net"),
    ],
)
def test_what_does_not_fit_is_refused(call: Any, text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        call(Net())
