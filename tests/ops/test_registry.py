"""Every elementwise op of the registry: eager function, scalar expression, shapes and dtypes agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from jitgrad.core.aval import Aval
from jitgrad.core.dispatch import apply_op
from jitgrad.core.errors import DtypeError, ShapeError
from jitgrad.core.op import REGISTRY, Kind, OpDef
from jitgrad.testing import evaluate_scalar, sample_operands

ELEMENTWISE = [op for op in REGISTRY.values() if op.kind is Kind.ELEMENTWISE and op.domain and op.name[:6] != "philox"]
SCALAR = [op for op in ELEMENTWISE if op.scalar is not None]
EXACT_DTYPES = ("?", "b", "i", "l", "B", "L")
FLOATS = ("f", "d")
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-40, -1e-40, 1e30, -1e30, np.inf, -np.inf, np.nan)


def run(op: OpDef, *operands: Any) -> np.ndarray[Any, Any]:
    return apply_op(op, *operands, **op.sample_attrs).concrete("a test")  # type: ignore[no-any-return]


def accepts(op: OpDef, dtype: Any) -> bool:
    try:
        op.abstract([Aval((), np.dtype(dtype))] * len(op.operands), op.sample_attrs)
    except DtypeError:
        return False
    return True


def pairs(ops: list[OpDef], dtypes: Sequence[str]) -> list[Any]:
    """The ops with the dtypes that each is defined for."""
    return [pytest.param(op, d, id=f"{op}-{d}") for op in ops for d in dtypes if accepts(op, d)]


def in_dtypes_of_functions(op: OpDef, dtype: str) -> bool:
    """Whether ``op`` on ``dtype`` computes in a dtype that the functions of kernels have: all but float16."""
    avals = [Aval((), np.dtype(dtype))] * len(op.operands)
    return all(d.char != "e" for d in op.dtypes(avals, **op.sample_attrs)[0])


def assert_close(found: Any, expected: Any, ulp: float) -> None:
    """Equal NaN, infinities and integers; floats within ``ulp`` ULP, for 0 equal in their signed zeros as well."""
    assert found.dtype == expected.dtype and found.shape == expected.shape
    if found.dtype.kind != "f":
        np.testing.assert_array_equal(found, expected)
        return
    with np.errstate(all="ignore"):
        limit = ulp * np.abs(np.spacing(expected))
        bad = ~((found == expected) | (np.isnan(found) & np.isnan(expected)) | (np.abs(found - expected) <= limit))
    assert not bad.any(), f"{found[bad]} is not {expected[bad]}"
    if ulp == 0.0:
        np.testing.assert_array_equal(np.signbit(found) | np.isnan(found), np.signbit(expected) | np.isnan(expected))


def ulp_of(op: OpDef) -> float:
    """Plain arithmetic agrees bit for bit; functions within 2 ULP each; compositions may lose a little more."""
    assert op.scalar is not None
    if "(" not in op.scalar.replace("abs(", "").replace("sqrt(", ""):
        return 0.0
    return 4.0


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", SCALAR, ids=str)
def test_scalar_expression_means_what_eager_means(op: OpDef, dtype: str) -> None:
    xs = sample_operands(op, np.random.default_rng(1), (7, 9), dtype)

    assert_close(evaluate_scalar(op, *xs, **op.sample_attrs), run(op, *xs), ulp_of(op))


@pytest.mark.parametrize(("op", "dtype"), pairs(SCALAR, FLOATS))
def test_scalar_expression_and_eager_agree_on_special_values(op: OpDef, dtype: str) -> None:
    values = np.array(SPECIAL, dtype)
    grids = np.meshgrid(*[values] * min(len(op.operands), 2), indexing="ij")
    third = [np.full(grids[0].shape, 1.5, dtype)] * (len(op.operands) - len(grids))

    found, expected = evaluate_scalar(op, *grids, *third, **op.sample_attrs), run(op, *grids, *third)

    assert_close(found, expected, max(ulp_of(op), 4.0) if ulp_of(op) else 0.0)


@pytest.mark.parametrize(("op", "dtype"), [p for p in pairs(SCALAR, EXACT_DTYPES) if in_dtypes_of_functions(*p.values)])
def test_scalar_expression_on_integers_and_bools(op: OpDef, dtype: str) -> None:
    rng = np.random.default_rng(2)
    shape = (40,)
    xs = [rng.integers(0, 2 if dtype == "?" else 6, shape).astype(dtype) for _ in op.operands]

    assert_close(evaluate_scalar(op, *xs, **op.sample_attrs), run(op, *xs), ulp_of(op))


def variants(x: np.ndarray[Any, Any]) -> dict[str, np.ndarray[Any, Any]]:
    """The same elements in other memory layouts."""
    wide = np.repeat(x, 2, axis=-1)
    return {
        "strided": wide[..., ::2],
        "negative": np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1],
        "transposed": np.ascontiguousarray(x.T).T,
    }


@pytest.mark.parametrize("layout", ["strided", "negative", "transposed"])
@pytest.mark.parametrize("op", ELEMENTWISE, ids=str)
def test_memory_layout_does_not_matter(op: OpDef, layout: str) -> None:
    xs = sample_operands(op, np.random.default_rng(3))
    expected = run(op, *xs)

    found = run(op, *[variants(np.broadcast_to(x, (3, 4)))[layout] for x in xs])

    assert_close(found, np.broadcast_to(expected, found.shape), 1.0)  # NumPy's strided loops may round differently


@pytest.mark.parametrize("op", ELEMENTWISE, ids=str)
def test_empty_and_zero_dimensional_operands(op: OpDef) -> None:
    for shape in ((), (0,), (3, 0, 2)):
        xs = sample_operands(op, np.random.default_rng(4), shape)
        expected = op.abstract([Aval(x.shape, x.dtype) for x in xs], op.sample_attrs)

        found = run(op, *xs)

        assert isinstance(expected, Aval)
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)


@pytest.mark.parametrize("op", [op for op in ELEMENTWISE if len(op.operands) > 1], ids=str)
def test_operands_broadcast(op: OpDef) -> None:
    rng = np.random.default_rng(5)
    shapes = ((4, 1, 3), (5, 1), (3,))
    xs = [sample_operands(op, rng, shape)[k] for k, shape in zip(range(len(op.operands)), shapes, strict=False)]
    full = np.broadcast_arrays(*xs)

    assert_close(run(op, *xs), run(op, *[np.ascontiguousarray(x) for x in full]), 1.0)


@pytest.mark.parametrize("op", [op for op in ELEMENTWISE if len(op.operands) > 1], ids=str)
def test_shapes_that_do_not_broadcast_are_an_error_that_names_the_op(op: OpDef) -> None:
    rng = np.random.default_rng(6)
    xs = sample_operands(op, rng, (2,))
    xs[-1] = sample_operands(op, rng, (3,))[-1]

    with pytest.raises(ShapeError, match=op.name):
        run(op, *xs)


@pytest.mark.parametrize(("op", "dtype"), pairs(ELEMENTWISE, "?bBhilLefd"))
def test_eager_result_has_the_dtype_of_the_rule(op: OpDef, dtype: str) -> None:
    xs = [np.ones((2,), dtype) for _ in op.operands]
    _, expected = op.dtypes([Aval(x.shape, x.dtype) for x in xs], **op.sample_attrs)

    assert run(op, *xs).dtype == expected


@pytest.mark.parametrize("op", [op for op in ELEMENTWISE if len(op.operands) > 1 and accepts(op, "f")], ids=str)
def test_python_numbers_are_weak(op: OpDef) -> None:
    """A Python float beside float32 changes nothing (NEP 50)."""
    x = np.full((2,), 0.5, np.float32)
    operands: list[Any] = [x, *[0.25] * (len(op.operands) - 1)]
    if op.domain[0] == "bool" and op.name == "where":
        operands = [True, x, 0.25]

    result = run(op, *operands)

    assert result.dtype in (
        np.dtype(np.float32),
        np.dtype(np.complex64),
        np.dtype(np.bool_),
        *[np.dtype(d) for d in op.sample_attrs.values()],
    )
