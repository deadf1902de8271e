"""custom_jvp gives what JAX gives, eager and compiled, and what derivatives of the plain function give."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import ArgumentError, AutogradError, ShapeError
from tests.compiled import backend  # noqa: F401 - a fixture

X = np.array([0.3, -1.0, 2.0])


def _stable(lib: Any) -> Any:
    f = lib.custom_jvp(lambda x: lib.numpy.log(1 + lib.numpy.exp(x)))

    @f.defjvp
    def derivative(primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        return f(x), t * (1 - 1 / (1 + lib.numpy.exp(x)))

    first = lib.grad(lambda x: f(x).sum())
    return lambda x: (
        f(x), first(x), lib.grad(lambda x: first(x).sum())(x), *lib.jvp(f, (x,), (x * 2,)), lib.vmap(lib.grad(f))(x),
        lib.vmap(lib.grad(lib.grad(f)))(x), lib.jacfwd(f)(x), lib.hessian(lambda x: (f(x) ** 2).sum())(x),
    )  # fmt: skip


def _calls_itself(lib: Any) -> Any:
    f = lib.custom_jvp(lambda x: lib.numpy.exp(x))

    @f.defjvp
    def derivative(primals: Any, tangents: Any) -> Any:
        y = f(primals[0])
        return y, 3.0 * y * tangents[0]  # 3: not the derivative of the plain function

    third = lib.grad(lib.grad(lib.grad(f)))
    return lambda x: (lib.vmap(third)(x), lib.vmap(lib.grad(f))(x), lib.jvp(lib.grad(f), (x[0],), (x[1],))[1])


def _tree(lib: Any) -> Any:
    f = partial(lib.custom_jvp, nondiff_argnums=(0,))(lambda scale, p, y: {"s": p["x"] * y * scale, "d": (p["x"] - y,)})

    @f.defjvp
    def derivative(scale: Any, primals: Any, tangents: Any) -> Any:
        (p, y), (dp, dy) = primals, tangents
        return f(scale, p, y), {"s": scale * (dp["x"] * y + 2 * p["x"] * dy), "d": (7 * dp["x"],)}

    def loss(x: Any) -> Any:
        out = f(1.5, {"x": x}, lib.numpy.sin(x))
        return (out["s"] * out["d"][0]).sum()

    return lambda x: (lib.grad(loss)(x), lib.grad(lambda x: (lib.grad(loss)(x) ** 2).sum())(x), lib.jvp(loss, (x,), (x,))[1])


def _by_argument(lib: Any) -> Any:
    f = lib.custom_jvp(lambda x, y: lib.numpy.sin(x) * y)
    f.defjvps(lambda t, ans, x, y: lib.numpy.cos(x) * y * t, None)
    return lambda x: (*lib.grad(lambda x, y: f(x, y).sum(), argnums=(0, 1))(x, x * 2), f(x, x))


@pytest.mark.peers
@pytest.mark.parametrize("program", [_stable, _calls_itself, _tree, _by_argument])
def test_agrees_with_jax(program: Any) -> None:
    jax = pytest.importorskip("jax")
    import jitgrad.jax as ours

    with jax.enable_x64(True):
        expected = program(jax)(jax.numpy.asarray(X))
        for run in (program(ours), jg.jit(program(ours))):
            for a, b in zip(run(jg.tensor(X)), expected, strict=True):
                np.testing.assert_allclose(a.numpy(), np.asarray(b), rtol=1e-12)


def _sine() -> Any:
    f = jg.custom_jvp(jg.sin)
    f.defjvp(lambda p, t: (f(p[0]), jg.cos(p[0]) * t[0]))
    return f


@pytest.mark.parametrize("x", [np.float32(0.5), np.zeros((0, 2)), X[::-1], np.ones((2, 1, 3)), np.array(np.nan)])
def test_shapes_and_dtypes(x: Any) -> None:
    f = _sine()
    for wrap in (lambda g: g, jg.jit):
        found = wrap(jg.grad(lambda v: (f(v) * 2).sum()))(jg.asarray(x))
        expected = jg.grad(lambda v: (jg.sin(v) * 2).sum())(jg.asarray(x))
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found.numpy(), expected.numpy())


def test_backward_reaches_the_leaves() -> None:
    f = _sine()
    w = jg.tensor(X, requires_grad=True)

    (f(w) * w).sum().backward()

    np.testing.assert_allclose(w.grad.numpy(), np.sin(X) + X * np.cos(X))
    with jg.no_grad():
        assert not f(w).requires_grad


def test_a_change_of_what_the_derivative_reads_is_followed() -> None:
    scale = {"by": 2.0}
    f = jg.custom_jvp(lambda x: x * 1.0)
    f.defjvp(lambda p, t: (f(p[0]), t[0] * scale["by"]))
    slope = jg.jit(jg.grad(f))

    assert slope(jg.tensor(1.0)).item() == 2.0
    scale["by"] = 5.0
    assert slope(jg.tensor(1.0)).item() == 5.0


def test_integers_have_tangents_of_zeros() -> None:
    f = jg.custom_jvp(lambda x, k: (x * k, k))
    f.defjvp(lambda p, t: (f(*p), (t[0] * p[1] + t[1], t[1])))

    def loss(x: Any) -> Any:
        return f(x, jg.tensor(3))[0]

    assert jg.grad(loss)(jg.tensor(2.0)).item() == jg.jit(jg.grad(loss))(jg.tensor(2.0)).item() == 3.0
    assert jg.grad(lambda x: f(x, 4)[0])(jg.tensor(2.0)).item() == 4.0


def test_errors() -> None:
    plain = jg.custom_jvp(jg.sin)
    x = jg.tensor(X, requires_grad=True)
    with pytest.raises(AutogradError, match=r"custom_jvp function 'sin'.*has no gradient yet: call sin.defjvp"):
        plain(x)
    with pytest.raises(ArgumentError, match="has a derivative already"):
        _sine().defjvp(lambda p, t: (p, t))
    with pytest.raises(ArgumentError, match="symbolic_zeros"):
        plain.defjvp(lambda p, t: (p, t), symbolic_zeros=True)
    with pytest.raises(ArgumentError, match="use defjvp with nondiff_argnums"):
        jg.custom_jvp(jg.sin, nondiff_argnums=0).defjvps(None)
    for rule, error, words in (
        (lambda p, t: t[0], AutogradError, "must return"),
        (lambda p, t: (jg.sin(p[0]), t[0][0]), ShapeError, "returned a tangent"),
        (lambda p, t: (jg.sin(p[0]), [t[0], t[0]]), AutogradError, "expected a tensor"),
    ):
        f = jg.custom_jvp(jg.sin)
        f.defjvp(rule)
        with pytest.raises(error, match=words):
            jg.grad(lambda v, f=f: f(v).sum())(jg.tensor(X))


def test_derivatives_of_too_high_order_in_a_trace_say_so() -> None:
    f = jg.custom_vjp(jg.exp)
    f.defvjp(lambda x: (f(x), x), lambda x, g: (g * f(x),))
    g = f
    for order in range(1, 6):
        g = jg.grad(g)
        assert g(jg.tensor(0.5)).item() == pytest.approx(np.exp(0.5))
        if order < 5:
            assert jg.jit(g)(jg.tensor(0.5)).item() == pytest.approx(np.exp(0.5))
    with pytest.raises(AutogradError, match="a derivative of order 5 in a trace"):
        jg.jit(g)(jg.tensor(0.5))
