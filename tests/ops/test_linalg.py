"""matmul and its relatives against NumPy: values, dtypes, errors and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jitgrad.core.errors import ArgumentError, AxisError, DtypeError, ShapeError
from jitgrad.ops.einsum import einsum
from jitgrad.ops.linalg import dot, linear, matmul, outer, tensordot, vecdot
from jitgrad.testing import check_grads

RNG = np.random.default_rng(0)
MATMUL_SHAPES = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 4)),
    ((2, 3), (3, 4)),
    ((5, 2, 3), (3, 4)),
    ((5, 2, 3), (3,)),
    ((3,), (5, 3, 4)),
    ((2, 3), (5, 3, 4)),
    ((5, 1, 2, 3), (4, 3, 2)),
    ((1, 2, 3), (5, 3, 4)),
    ((5, 0, 3), (3, 4)),
    ((5, 2, 3), (3, 0)),
    ((2, 0), (0, 3)),
]
EINSUMS = [
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ij,jk", (2, 3), (3, 4)),
    ("bij,bjk->bik", (5, 2, 3), (5, 3, 4)),
    ("bhqd,bhkd->bhqk", (2, 3, 4, 5), (2, 3, 6, 5)),
    ("ij->ji", (2, 3)),
    ("ij->", (2, 3)),
    ("ji", (2, 3)),
    ("ii->i", (3, 3)),
    ("ii", (3, 3)),
    ("iij->j", (3, 3, 2)),
    ("i,j->ij", (2,), (3,)),
    ("i,i->i", (3,), (3,)),
    ("i,i->", (3,), (3,)),
    ("ij,kl->", (2, 3), (4, 5)),
    ("...ij,...jk->...ik", (5, 2, 3), (3, 4)),
    ("...i,...i", (4, 3), (3,)),
    ("i...->...", (3, 2, 4)),
    ("ab,bc,cd->ad", (2, 3), (3, 4), (4, 5)),
    ("ab,bc,cd,de->", (2, 3), (3, 4), (4, 2), (2, 3)),
    ("ab,b,ac->abc", (2, 3), (3,), (2, 4)),
    ("ij,ij->ij", (2, 3), (1, 3)),
    (" i j , j k -> k i ", (2, 3), (3, 4)),
    ("ij,jk->ik", (0, 3), (3, 2)),
]


def draw(*shapes: tuple[int, ...], dtype: Any = np.float64) -> list[Any]:
    return [RNG.normal(size=shape).astype(dtype) for shape in shapes]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.bool_], ids=lambda d: d.__name__)
@pytest.mark.parametrize(("left", "right"), MATMUL_SHAPES)
def test_matmul_is_numpys(left: tuple[int, ...], right: tuple[int, ...], dtype: Any) -> None:
    x, y = (RNG.integers(0, 3, shape).astype(dtype) for shape in (left, right))

    found = matmul(x, y).numpy()

    assert found.dtype == np.matmul(x, y).dtype
    np.testing.assert_array_equal(found, np.matmul(x, y))


@pytest.mark.parametrize(("left", "right"), MATMUL_SHAPES)
def test_gradients_of_matmul(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    check_grads(matmul, draw(left, right), order=2)


def test_matmul_of_mixed_dtypes_and_layouts() -> None:
    x, y = RNG.normal(size=(4, 6)).astype(np.float32), RNG.normal(size=(6, 4))

    np.testing.assert_allclose(matmul(x[::-1, ::2], y[::2].T[:, ::-1].T).numpy(), x[::-1, ::2] @ y[::2].T[:, ::-1].T)


@pytest.mark.parametrize(("left", "right"), [((), (3,)), ((2, 3), (2, 3)), ((2, 1, 3), (3, 3, 4)[::1]), ((3,), (4,))])
def test_matmul_refuses_what_numpy_refuses(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    x, y = draw(left, right)
    try:
        np.matmul(x, y)
    except ValueError:
        with pytest.raises(ShapeError, match="matmul"):
            matmul(x, y)
    else:
        assert matmul(x, y).shape == np.matmul(x, y).shape


def test_an_error_of_matmul_names_both_shapes() -> None:
    with pytest.raises(ShapeError, match=r"f64\[2,3\] @ f64\[4,5\]: the inner sizes 3 and 4 differ"):
        matmul(*draw((2, 3), (4, 5)))


@pytest.mark.parametrize("lead", [(), (5,), (2, 5)])
def test_linear_has_torchs_layout(lead: tuple[int, ...]) -> None:
    x, w, b = draw((*lead, 3), (4, 3), (4,))

    np.testing.assert_allclose(linear(x, w, b).numpy(), x @ w.T + b)
    np.testing.assert_allclose(linear(x, w).numpy(), x @ w.T)
    check_grads(linear, [x, w, b], order=2)


@pytest.mark.parametrize(
    ("left", "right"), [((), (2, 3)), ((3,), (3,)), ((2, 3), (3, 4)), ((2, 3), (5, 3, 4)), ((2, 2, 3), (3,))]
)
def test_dot_is_numpys(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    x, y = draw(left, right)

    np.testing.assert_allclose(dot(x, y).numpy(), np.dot(x, y))


@pytest.mark.parametrize("axis", [-1, -2])
def test_vecdot_is_numpys(axis: int) -> None:
    x, y = draw((4, 1, 3), (2, 3)) if axis == -1 else draw((4, 2, 3), (2, 1))

    np.testing.assert_allclose(vecdot(x, y, axis=axis).numpy(), np.vecdot(x, y, axis=axis))
    check_grads(lambda x, y: vecdot(x, y, axis=axis), [x, y], order=2)


def test_vecdot_refuses_other_sizes_and_axes() -> None:
    with pytest.raises(ShapeError, match="axis -1"):
        vecdot(*draw((2, 3), (2, 1)))
    with pytest.raises(AxisError):
        vecdot(*draw((3,), (3,)), axis=-2)


def test_small_integers_keep_their_dtype() -> None:
    x = np.array([100, 100], np.int8)

    assert vecdot(x, x).dtype == np.int8 == einsum("i,i->", x, x).dtype


def test_outer_flattens() -> None:
    x, y = draw((2, 2), (3,))

    np.testing.assert_array_equal(outer(x, y).numpy(), np.outer(x, y))


@pytest.mark.parametrize("axes", [0, 1, 2, ([1], [0]), ([0, 1], [1, 0]), (1, 0), ([-1, 0], [-2, -1])])
def test_tensordot_is_numpys(axes: Any) -> None:
    x, y = draw((3, 3), (3, 3))

    np.testing.assert_allclose(tensordot(x, y, axes).numpy(), np.tensordot(x, y, axes), atol=1e-12)
    check_grads(lambda x, y: tensordot(x, y, axes), [x, y], order=2)


@pytest.mark.parametrize(
    ("axes", "error"),
    [(3, ArgumentError), (([0], [0, 1]), ArgumentError), (([0], [1]), ShapeError), (([5], [0]), AxisError)],
)
def test_tensordot_refuses(axes: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="tensordot"):
        tensordot(*draw((2, 3), (2, 3)), axes)


@pytest.mark.parametrize("case", EINSUMS, ids=lambda case: case[0])
def test_einsum_is_numpys(case: Any) -> None:
    subscripts, *shapes = case
    xs = draw(*shapes)

    found = einsum(subscripts, *xs).numpy()

    expected = np.einsum(subscripts, *xs)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("case", EINSUMS[:-1], ids=lambda case: case[0])
def test_gradients_of_einsum(case: Any) -> None:
    subscripts, *shapes = case

    check_grads(lambda *xs: einsum(subscripts, *xs), draw(*shapes), order=2)


def test_einsum_with_lists_of_axes() -> None:
    x, y = draw((2, 3), (3, 4))

    np.testing.assert_allclose(einsum(x, [0, 1], y, [1, 2], [2, 0]).numpy(), (x @ y).T)
    np.testing.assert_allclose(einsum(x, [0, 1], y, [1, 2]).numpy(), x @ y)


@pytest.mark.parametrize(
    ("subscripts", "error"),
    [
        ("ij->ij", ArgumentError),
        ("ij,jk->iz", ArgumentError),
        ("ij,jk->ii", ArgumentError),
        ("i1,jk", ArgumentError),
        ("ijk,jk", ShapeError),
        ("ij,ij", ShapeError),
    ],
)
def test_einsum_refuses(subscripts: str, error: type[Exception]) -> None:
    with pytest.raises(error, match="einsum"):
        einsum(subscripts, *draw((2, 3), (3, 4)))


def test_matmul_refuses_what_is_no_number() -> None:
    with pytest.raises(DtypeError):
        matmul(np.array(["a"]), np.array(["b"]))
