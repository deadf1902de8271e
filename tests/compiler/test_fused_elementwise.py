"""Every elementwise op, compiled, gives what it gives eagerly: dtypes, shapes, layouts and special values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.aval import Aval
from jitgrad.core.dispatch import apply_op
from jitgrad.core.errors import DtypeError
from jitgrad.core.op import REGISTRY, Kind, OpDef
from jitgrad.jit.decorator import jit
from jitgrad.testing import sample_operands

OPS = [op for op in REGISTRY.values() if op.kind is Kind.ELEMENTWISE and op.domain and not op.name.startswith("philox")]
SCALAR = [op for op in OPS if op.scalar is not None]
SEVERAL = [op for op in OPS if len(op.operands) > 1]
INTEGERS = ("?", "b", "h", "i", "l", "B", "H", "I", "L")
LOOSE = {"logaddexp": 32.0}  # where its operands cancel, NumPy's own error is measured against them
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-40, -1e-40, 1e30, -1e30, np.inf, -np.inf, np.nan)


def accepts(op: OpDef, dtype: Any) -> bool:
    """Whether ``op`` is defined for ``dtype``."""
    avals = [Aval((), np.dtype(dtype))] * len(op.operands)
    try:
        op.abstract(avals, op.sample_attrs)
    except DtypeError:
        return False
    return True


def ulp_of(op: OpDef) -> float:
    """Plain arithmetic agrees bit for bit; functions, and compositions of them, within a few ULP."""
    plain = op.scalar is None or "(" not in op.scalar.replace("abs(", "").replace("sqrt(", "")
    return 0.0 if plain else LOOSE.get(op.name, 4.0)


def applied(op: OpDef) -> Callable[[list[list[Any]]], list[Any]]:
    def run(lists: list[list[Any]]) -> list[Any]:
        return [apply_op(op, *xs, **op.sample_attrs) for xs in lists]

    return run


def mixed(op: OpDef, shapes: Any, dtype: Any = np.float64) -> list[Any]:
    """Operand k of ``op`` with ``shapes[k]`` (cyclic)."""
    rng = np.random.default_rng(1)
    return [sample_operands(op, rng, shapes[k % len(shapes)], dtype)[k] for k in range(len(op.operands))]


@pytest.mark.parametrize("dtype", ["f", "d"])
@pytest.mark.parametrize("op", OPS, ids=str)
def test_shapes_and_layouts(op: OpDef, dtype: str, same: Any, steps_of: Any) -> None:
    plain = sample_operands(op, np.random.default_rng(0), (3, 4), dtype)
    plain = [np.broadcast_to(x, (3, 4)).copy() for x in plain]
    wide = [np.repeat(np.repeat(x, 2, 0), 3, 1) for x in plain]
    cases = [
        plain,
        mixed(op, [()], dtype),
        mixed(op, [(0,)], dtype),
        mixed(op, [(2, 0, 3)], dtype),
        [w[::2, ::3] for w in wide],
        [w[::-2, ::-3] for w in wide],
        [np.asfortranarray(x) for x in plain],
    ]

    compiled = same(applied(op), cases, ulp=ulp_of(op))

    if op.scalar is not None:
        assert op.name not in steps_of(compiled, cases), "the op was not compiled at all"


@pytest.mark.parametrize("op", SEVERAL, ids=str)
def test_operands_broadcast(op: OpDef, same: Any) -> None:
    cases = [
        mixed(op, shapes)
        for shapes in (
            [(3, 4), (4,)],  # row
            [(3, 4), (3, 1)],  # column
            [(3, 4), ()],
            [(), (3, 4)],
            [(3, 1), (1, 4)],
            [(2, 1, 3), (4, 1), (3,)],
            [(2, 3, 1, 2), (3, 1, 1)],
            [(0, 3), (3,)],
            [(1,), (0,)],
        )
    ]

    same(applied(op), cases, ulp=ulp_of(op))


@pytest.mark.parametrize(
    ("op", "dtype"), [pytest.param(o, d, id=f"{o}-{d}") for o in OPS for d in "efd" if accepts(o, d)]
)
def test_special_values(op: OpDef, dtype: str, same: Any) -> None:
    with np.errstate(all="ignore"):
        values = np.array(SPECIAL, dtype)
        cases = [[np.roll(values, shift * k) for k in range(len(op.operands))] for shift in (0, 1, 5)]
        same(applied(op), cases if len(op.operands) > 1 else cases[:1], ulp=ulp_of(op))


@pytest.mark.parametrize("op", [op for op in OPS if any(accepts(op, d) for d in INTEGERS)], ids=str)
def test_integers_and_bools(op: OpDef, same: Any) -> None:
    rng = np.random.default_rng(2)
    cases = []
    for dtype in INTEGERS:
        if accepts(op, dtype):
            low = -5 if dtype in "bhil" and "pow" not in op.name else 0
            cases.append(
                [
                    rng.integers(0 if dtype == "?" else low, 2 if dtype == "?" else 6, 9).astype(dtype)
                    for _ in op.operands
                ]
            )

    with np.errstate(all="ignore"):
        same(applied(op), cases, ulp=ulp_of(op))


@pytest.mark.parametrize("op", SEVERAL, ids=str)
def test_mixed_dtypes(op: OpDef, same: Any) -> None:
    ones = {d: np.array([1, 1, 0], d) for d in "?bBilLefd"}
    pairs = [(a, b) for a in ones for b in ones if a != b]
    cases = []
    for a, b in pairs:
        operands = [ones[(a, b)[k % 2]] for k in range(len(op.operands))]
        avals = [Aval(x.shape, x.dtype) for x in operands]
        try:
            op.dtypes(avals, **op.sample_attrs)
        except DtypeError:
            continue
        cases.append(operands)
    if not cases:
        pytest.skip("the op takes one dtype only")

    with np.errstate(all="ignore"):
        same(applied(op), cases, ulp=ulp_of(op))


@pytest.mark.parametrize("op", [op for op in SEVERAL if accepts(op, "f")], ids=str)
def test_python_numbers_beside_arrays(op: OpDef, same: Any) -> None:
    """As literals in the function and as arguments of the call; neither widens float32."""
    x = np.full((3,), 0.5, np.float32)
    rest = len(op.operands) - 1
    literal: list[list[Any]] = [[x, *[0.25] * rest], [*[0.75] * rest, x], [x, *[2] * rest], [x, *[True] * rest]]
    cases = [[True, x, 0.25], [x > 0, 0.5, x], [x > 0, x, 3]] if op.domain[0] == "bool" else literal
    if op.domain[0] == "bool" and op.name != "where":
        pytest.skip("takes bools")

    same(
        lambda x: [apply_op(op, *[x if o is c[0] else o for o in c], **op.sample_attrs) for k, c in enumerate(cases)],
        x,
        ulp=ulp_of(op),
    )
    same(applied(op), cases, ulp=ulp_of(op))


def test_float_arguments_are_inputs_and_weak() -> None:
    compiled = jit(lambda x, a: x * a + a)
    x = jg.tensor(np.arange(3, dtype=np.float32))

    first, second = compiled(x, 0.1), compiled(x, 0.7)

    assert first.dtype == second.dtype == np.float32
    np.testing.assert_array_equal(second.numpy(), x.numpy() * np.float32(0.7) + np.float32(0.7))
    assert compiled.cache_info().traces == 1


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("shapes", [((4,), ()), ((4,), (4,)), ((1, 4), (5, 1)), ((4, 1), (4, 5)), ((4,), (1,))])
def test_a_power_with_an_exponent_of_one_half_is_that_of_c_wherever_the_exponent_is_broadcast(shapes, dtype):
    x = jg.tensor(np.array([-np.inf, -0.0, -1.0, 4.0], dtype).reshape(shapes[0]))
    y = jg.full(shapes[1], 0.5, dtype=dtype)
    expected = np.broadcast_to(np.array([np.inf, 0.0, np.nan, 2.0], dtype).reshape(shapes[0]), np.broadcast_shapes(*shapes))

    for f in (jg.pow, jg.jit(jg.pow, check="off")):
        found = f(x, y).numpy()
        np.testing.assert_array_equal(found, expected)
        assert not np.signbit(found[found == 0]).any()  # NumPy takes a square root in some of these
