"""Every op that takes complex numbers: results as NumPy's, gradients of both orders, layouts, odd shapes, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jitgrad.core.dispatch import apply_op
from jitgrad.core.errors import DtypeError
from jitgrad.core.op import REGISTRY, Kind, OpDef
from jitgrad.testing import check_grads, sample_operands
from jitgrad.testing.samples import DOMAINS
from tests.determined import determined

SAMPLED = [op for op in REGISTRY.values() if op.domain and set(op.domain) <= set(DOMAINS)]
COMPLEX = [op for op in SAMPLED if op.takes_complex]
DIFFERENTIABLE = [op for op in COMPLEX if op.vjp is not None]
ELEMENTWISE = [op for op in COMPLEX if op.kind is Kind.ELEMENTWISE]


def attrs_of(op: OpDef) -> dict[str, Any]:
    return {name: np.dtype(np.complex128) if name == "dtype" else value for name, value in op.sample_attrs.items()}


def run(op: OpDef, *operands: Any) -> np.ndarray[Any, Any]:
    return apply_op(op, *operands, **attrs_of(op)).concrete("a test")  # type: ignore[no-any-return]


@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=str)
def test_vjp_agrees_with_finite_differences(op: OpDef) -> None:
    xs = sample_operands(op, np.random.default_rng(0), dtype=np.complex128)

    check_grads(lambda *xs: determined(op, *xs, **attrs_of(op)), xs, order=2)


@pytest.mark.parametrize("op", [op for op in DIFFERENTIABLE if len(op.operands) == 2], ids=str)
@pytest.mark.parametrize("first", [True, False], ids=["real first", "real second"])
def test_a_real_operand_beside_a_complex_one_has_a_real_gradient(op: OpDef, first: bool) -> None:
    xs = sample_operands(op, np.random.default_rng(1), dtype=np.complex128)
    k = 0 if first else 1
    if xs[k].dtype.kind != "c" or op.name == "put_slice":
        pytest.skip("it is no number")
    if op.name in ("index_add", "scatter_add"):
        pytest.skip("complex numbers cannot be added to real ones in place")
    xs[k] = np.ascontiguousarray(xs[k].real)

    check_grads(lambda *xs: apply_op(op, *xs, **attrs_of(op)), xs, order=2)


@pytest.mark.parametrize("op", [op for op in ELEMENTWISE if len(op.operands) > 1], ids=str)
def test_vjp_undoes_broadcasting(op: OpDef) -> None:
    rng = np.random.default_rng(1)
    shapes = ((2, 1, 3), (4, 1), (3,))
    xs = [sample_operands(op, rng, shape, np.complex128)[k] for k, shape in zip(range(len(op.operands)), shapes, strict=False)]

    if op.vjp is not None:
        check_grads(lambda *xs: apply_op(op, *xs, **attrs_of(op)), xs, order=2)


@pytest.mark.parametrize("op", COMPLEX, ids=str)
def test_complex64_stays_complex64(op: OpDef) -> None:
    xs = sample_operands(op, np.random.default_rng(2), dtype=np.complex64)
    narrow = {"dtype": np.dtype(np.complex64)} if "dtype" in op.attrs else {}
    results = determined(op, *xs, **{**op.sample_attrs, **narrow})
    wide = determined(op, *[x.astype(np.complex128) if x.dtype.kind == "c" else x for x in xs], **attrs_of(op))

    for result, expected in zip(results, wide, strict=True):
        assert result.dtype in (np.complex64, np.float32, np.bool_, np.int32)  # int32: rows that are exchanged
        np.testing.assert_allclose(result.concrete("a test"), expected.concrete("a test"), 2e-4, 1e-5)


@pytest.mark.parametrize("op", ELEMENTWISE, ids=str)
def test_memory_layout_does_not_matter(op: OpDef) -> None:
    xs = [np.broadcast_to(x, (3, 4)) for x in sample_operands(op, np.random.default_rng(3), dtype=np.complex128)]
    expected = run(op, *[np.ascontiguousarray(x) for x in xs])

    for change in (
        lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
        lambda x: np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1],
        lambda x: np.ascontiguousarray(x.T).T,
    ):
        np.testing.assert_allclose(run(op, *map(change, xs)), expected, 1e-14)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2)])
@pytest.mark.parametrize("op", ELEMENTWISE, ids=str)
def test_empty_and_zero_dimensional_operands(op: OpDef, shape: tuple[int, ...]) -> None:
    assert run(op, *sample_operands(op, np.random.default_rng(4), shape, np.complex128)).shape == shape


@pytest.mark.parametrize("op", [op for op in SAMPLED if not op.takes_complex and "complex" not in op.domain], ids=str)
def test_other_ops_refuse_complex_operands(op: OpDef) -> None:
    xs = sample_operands(op, np.random.default_rng(5), dtype=np.complex128)
    if not any(x.dtype.kind == "c" for x in xs):
        pytest.skip("its operands are integers")

    with pytest.raises(DtypeError, match=f"{op.name}.*complex"):
        apply_op(op, *xs, **op.sample_attrs)
