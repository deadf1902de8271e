"""Each rule of the algebra: what it makes of an expression, what it leaves alone, and the same bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.compiler.passes.simplify import simplify
from jitgrad.jit.decorator import jit

X = np.random.default_rng(5).standard_normal((4, 6)).astype(np.float32)
X[0, :3] = [0.0, -0.0, np.nan]
ROW = X[:1]


def ops(f: Callable[..., Any], *args: Any) -> list[str]:
    """The names of the ops of ``f`` that are needed, simplified."""
    graph = simplify(jit(f, check="off").graph(*map(jg.tensor, args), stage="trace"))
    needed, names = set(graph.outputs), []
    for node in reversed(graph.nodes):
        if not needed.isdisjoint(node.outs):
            needed.update(node.ins)
            names.append(node.op.name)
    return names[::-1]


def twice_broadcast(x: Any) -> Any:
    return jg.argsort(jg.broadcast_to(jg.broadcast_to(x, (2, 6)), (3, 2, 6)))


Case = tuple[str, Callable[..., Any], tuple[np.ndarray, ...], list[str]]

SIMPLER: list[Case] = [
    ("x * 1", lambda x: x * 1.0, (X,), []),
    ("1 * x", lambda x: 1.0 * x, (X,), []),
    ("x / 1", lambda x: x / 1.0, (X,), []),
    ("x + -0.0", lambda x: x + -0.0, (X,), []),
    ("x - 0", lambda x: x - 0.0, (X,), []),
    ("integer + 0", lambda x: x + 0, (np.arange(4),), []),
    ("0 + integer", lambda x: 0 + x, (np.arange(4),), []),
    ("-(-x)", lambda x: jg.negative(-x), (X,), []),
    ("+x", lambda x: +x, (X,), []),
    ("pow(x, 1)", lambda x: jg.pow(x, jg.full_like(x, 1.0)), (X,), []),
    ("pow(x, 2)", lambda x: jg.pow(x, jg.full_like(x, 2.0)), (X,), ["multiply"]),
    ("pow(x, 3)", lambda x: jg.pow(x, jg.full_like(x, 3.0)), (X,), ["multiply", "multiply"]),
    ("where(True)", lambda x, y: jg.where(jg.full_like(x, True, dtype=bool), x, y), (X, X * 2), []),
    ("where(False)", lambda x, y: jg.where(jg.zeros_like(x, dtype=bool), x, y), (X, X * 2), []),
    ("where(c, x, x)", lambda x, y: jg.where(y > 0, x, x), (X, X * 2), []),
    ("where(True) of a row", lambda x, y: jg.where(jg.full_like(y, True, dtype=bool), x, y), (ROW, X), ["broadcast_to"]),
    ("where(not c)", lambda x, y: jg.where(jg.logical_not(x > y), x, y), (X, X * 2), ["greater", "where"]),
    ("astype its dtype", lambda x: x.astype(jg.float32), (X,), []),
    ("detach", lambda x: x.detach() * 2.0, (X,), ["multiply"]),
    ("copy", lambda x: x.copy() * 2.0, (X,), ["multiply"]),
    ("numbers alone", lambda x: x * (jg.full_like(x, 2.0) * 3.0 + 1.0), (X,), ["multiply"]),
    ("a number's slice", lambda x: x[1:] * jg.full_like(x, 2.0)[1:], (X,), ["slice", "multiply"]),
    ("two reshapes", lambda x: x.reshape(3, 8).reshape(6, 4) * 2.0, (X,), ["reshape", "multiply"]),
    ("there and back", lambda x: x.reshape(3, 8).reshape(4, 6) * 2.0, (X,), ["multiply"]),
    ("an axis by reshape", lambda x: x.reshape(4, 1, 6) * 2.0, (X,), ["expand_dims", "multiply"]),
    ("an axis fewer by reshape", lambda x: x.reshape(4, 6) * 2.0, (X[:, None],), ["squeeze", "multiply"]),
    ("two broadcasts", twice_broadcast, (ROW,), ["broadcast_to", "argsort"]),
    ("a broadcast to the same", lambda x: jg.broadcast_to(x, x.shape) * 2.0, (X,), ["multiply"]),
    ("a broadcast that multiply does", lambda x, y: jg.broadcast_to(y, x.shape) * x, (X, ROW), ["multiply"]),
    ("two transposes", lambda x: x.T.T * 2.0, (X,), ["multiply"]),
    ("three axes", lambda x: x.transpose(1, 2, 0).transpose(1, 0, 2) * 2.0, (X[None],), ["permute_dims", "multiply"]),
    ("a product's transpose", lambda x, y: (x @ y.T).T, (X, X), ["permute_dims", "matmul"]),
    ("everything of x", lambda x: x[:, 0:6] * 2.0, (X,), ["multiply"]),
    ("a sum over one, which is 0.0 for -0.0", lambda x: x.sum(axis=1), (X[:, None],), ["squeeze", "add"]),
    ("a sum over one, wider", lambda x: x.sum(axis=1), (np.arange(4, dtype=np.int8)[:, None],), ["astype", "squeeze"]),
    ("any over one", lambda x: jg.any(x, axis=0), (ROW > 0,), ["squeeze"]),
    ("a sum over no axes", lambda x: x.sum(axis=()), (X,), ["add"]),
    ("a maximum over one", lambda x: x.max(axis=1) * 2.0, (X[:, None],), ["squeeze", "multiply"]),
]  # fmt: skip

LEFT: list[Case] = [
    ("x + 0.0, which is 0.0 for -0.0", lambda x: x + 0.0, (X,), ["add"]),
    ("x - -0.0, likewise", lambda x: x - -0.0, (X,), ["subtract"]),
    ("x * 2", lambda x: x * 2.0, (X,), ["multiply"]),
    ("1 / x", lambda x: 1.0 / x, (X,), ["divide"]),
    ("0 - x", lambda x: 0.0 - x, (X,), ["subtract"]),
    ("pow(x, 5)", lambda x: jg.pow(x, jg.full_like(x, 5.0)), (X,), ["pow"]),
    ("pow(x, 2.5)", lambda x: jg.pow(x, jg.full_like(x, 2.5)), (X,), ["pow"]),
    ("pow(2, x)", lambda x: jg.pow(2.0, x), (X,), ["pow"]),
    ("a power of integers", lambda x: jg.pow(x, 2), (np.arange(4),), ["integer_pow"]),
    ("integer * 1.0", lambda x: x * 1.0, (np.arange(4),), ["multiply"]),
    ("where(c, x, y)", lambda x, y: jg.where(x > y, x, y), (X, X * 2), ["greater", "where"]),
    ("astype", lambda x: x.astype(jg.float64), (X,), ["astype"]),
    ("a broadcast row", lambda x: jg.argsort(jg.broadcast_to(x, (4, 6))), (ROW,), ["broadcast_to", "argsort"]),
    ("a row times a row", lambda x: jg.broadcast_to(x, (4, 6)) * 2.0, (ROW,), ["broadcast_to", "multiply"]),
    ("a reshape that moves", lambda x: x.reshape(6, 4) * 2.0, (X,), ["reshape", "multiply"]),
    ("a transpose", lambda x: x.T * 2.0, (X,), ["permute_dims", "multiply"]),
    ("part of x", lambda x: x[:, 0:5] * 2.0, (X,), ["slice", "multiply"]),
    ("every other of x", lambda x: x[::2] * 2.0, (X,), ["slice", "multiply"]),
    ("x backwards", lambda x: x[::-1] * 2.0, (X,), ["slice", "multiply"]),
    ("a sum over one and others", lambda x: x.sum(axis=(1, 2)), (X[:, None],), ["sum"]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "f", "args", "expected"), SIMPLER + LEFT, ids=[c[0] for c in SIMPLER + LEFT])
def test_rules(name: str, f: Callable[..., Any], args: tuple[np.ndarray, ...], expected: list[str]) -> None:
    assert ops(f, *args) == expected

    eager, fused = f(*map(jg.tensor, args)), jit(f, check="off", backend="python")(*map(jg.tensor, args))
    assert fused.dtype == eager.dtype and fused.shape == eager.shape
    if "pow" in name or "matmul" in expected:
        np.testing.assert_allclose(fused.numpy(), eager.numpy(), rtol=1e-6)
    else:
        assert fused.numpy().tobytes() == eager.numpy().tobytes()


def test_an_assignment_to_all_of_an_array_is_its_new_value() -> None:
    def f(x: Any, y: Any) -> Any:
        z = jg.zeros_like(x)
        z[:] = y
        return z * 2.0

    assert ops(f, X, X) == ["multiply"]


def test_an_assignment_to_a_part_stays() -> None:
    def f(x: Any, y: Any) -> Any:
        z = x * 1.0
        z[1:] = y[1:]
        return z

    assert "put_slice" in ops(f, X, X)


def test_an_assignment_converts() -> None:
    def f(x: Any, y: Any) -> Any:
        z = jg.zeros_like(x)
        z[:] = y
        return z

    assert ops(f, X, X.astype(np.float64)) == ["astype"]


@pytest.mark.parametrize("backend", ["python", "cpu"])
@pytest.mark.parametrize(
    ("shape", "axis"), [((4, 1, 6), 1), ((4, 2, 6), 1), ((4, 1), 1), ((40, 3), 1), ((3, 4000), 0), ((1,), None)]
)
def test_the_sum_of_negative_zeros_is_zero_as_in_eager(shape: tuple[int, ...], axis: int | None, backend: str) -> None:
    x = jg.tensor(np.full(shape, -0.0, np.float32))

    def f(x: Any) -> Any:
        return 1.0 / x.sum(axis=axis)

    fused = jit(f, check="off", backend=backend)(x)
    assert np.array_equal(fused.numpy(), f(x).numpy()) and (fused.numpy() > 0).all()
