"""Programs with vmap give what JAX's and torch's vmap give, eager and compiled."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import optree
import pytest

import jitgrad as jg
from jitgrad import func
from tests.batching.programs import PROGRAMS

JITGRAD = SimpleNamespace(
    tanh=jg.tanh, exp=jg.exp, log=jg.log, logsumexp=jg.logsumexp, solve=jg.linalg.solve,
    eye=lambda n: jg.eye(n, dtype=jg.float64), vmap=jg.vmap, grad=jg.grad, jvp=jg.jvp, jacobian=jg.jacobian, hessian=jg.hessian,
)  # fmt: skip


def arguments(name: str, convert: Any) -> Any:
    return optree.tree_map(convert, PROGRAMS[name][1](np.random.default_rng(11)))


def run(name: str, library: Any, convert: Any) -> list[np.ndarray[Any, Any]]:
    result = PROGRAMS[name][0](library, *arguments(name, convert))
    return [np.asarray(x) for x in optree.tree_leaves(result)]


def assert_close(found: list[Any], expected: list[Any]) -> None:
    for a, b in zip(found, expected, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_programs_give_what_eager_ones_give(name: str) -> None:
    f = PROGRAMS[name][0]
    compiled = jg.jit(lambda *args: f(JITGRAD, *args))(*arguments(name, jg.tensor))

    assert_close([np.asarray(x) for x in optree.tree_leaves(compiled)], run(name, JITGRAD, jg.tensor))


@pytest.mark.parametrize("name", PROGRAMS)
def test_forward_jacobians_serve_as_well(name: str) -> None:
    forward = SimpleNamespace(**{**vars(JITGRAD), "jacobian": func.jacfwd, "hessian": lambda f: func.jacfwd(func.jacrev(f))})

    assert_close(run(name, forward, jg.tensor), run(name, JITGRAD, jg.tensor))


@pytest.mark.peers
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_in_jax(name: str) -> None:
    jax = pytest.importorskip("jax")
    jnp, nn = jax.numpy, jax.nn
    library = SimpleNamespace(
        tanh=jnp.tanh, exp=jnp.exp, log=jnp.log, logsumexp=nn.logsumexp, solve=jnp.linalg.solve, eye=jnp.eye, vmap=jax.vmap,
        grad=jax.grad, jvp=jax.jvp, jacobian=jax.jacrev, hessian=jax.hessian,
    )  # fmt: skip
    with jax.enable_x64(True):
        expected = run(name, library, jnp.asarray)

    assert_close(run(name, JITGRAD, jg.tensor), expected)


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch uses what it deprecates
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_in_torch(name: str) -> None:
    torch = pytest.importorskip("torch")
    f = torch.func
    library = SimpleNamespace(
        tanh=torch.tanh, exp=torch.exp, log=torch.log, logsumexp=torch.logsumexp, solve=torch.linalg.solve,
        eye=lambda n: torch.eye(n, dtype=torch.float64), vmap=f.vmap, grad=f.grad, jvp=f.jvp, jacobian=f.jacrev,
        hessian=f.hessian,
    )  # fmt: skip

    assert_close(run(name, JITGRAD, jg.tensor), run(name, library, torch.tensor))
