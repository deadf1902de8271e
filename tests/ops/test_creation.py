"""Creation: values and dtypes as NumPy and torch users expect, memory shared where promised."""

from __future__ import annotations

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import ArgumentError, DtypeError, OperandError, ShapeError
from jitgrad.ops.creation import iota
from jitgrad.testing.gradients import check_grads


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        (1, "int64"),
        (True, "bool"),
        (1.5, "float32"),
        ([1, 2], "int64"),
        ([[1, 2.0], [3, 4]], "float32"),
        ([], "float32"),
        (np.float64(2), "float64"),
        ([np.float64(2), 1.0], "float64"),
        (np.ones(2, np.float16), "float16"),
        ((np.int8(1), np.int8(2)), "int8"),
        (range(3), "int64"),
    ],
)
def test_tensor_dtypes(data, dtype):
    result = jg.tensor(data)

    assert result.dtype == dtype
    np.testing.assert_array_equal(result.numpy(), np.asarray(data))


@pytest.mark.parametrize("dtype", [">f4", ">f8", ">i2", ">c8"])
def test_arrays_in_another_byte_order(dtype):
    array = np.arange(3).astype(dtype)
    x = jg.tensor(array)

    assert x.dtype.isnative and x.tolist() == array.tolist() and (x + x).tolist() == (array + array).tolist()
    for call in (lambda: jg.asarray(array), lambda: x + array, jg.jit(lambda: jg.tensor(array) + 1)):  # which copy nothing
        with pytest.raises(DtypeError, match=rf"{dtype} is not supported.*byte order of this machine: x.astype\('{dtype[1:]}'\)"):
            call()


def test_default_dtype_can_be_changed():
    jg.set_default_dtype("float64")
    try:
        assert jg.tensor([1.0]).dtype == jg.zeros(2).dtype == jg.arange(0.0, 1.0).dtype == jg.float64
    finally:
        jg.set_default_dtype("float32")
    assert jg.tensor(0.1, dtype="float64").item() == 0.1


def test_tensor_copies_and_asarray_shares():
    array = np.zeros(3)
    copied, shared, same = jg.tensor(array), jg.asarray(array), jg.from_numpy(array)
    array[0] = 5.0

    assert copied[0].item() == 0.0
    assert shared[0].item() == same[0].item() == jg.from_dlpack(array)[0].item() == 5.0
    assert jg.asarray(shared) is shared
    assert jg.asarray(shared, copy=True) is not shared
    assert jg.tensor(shared.requires_grad_()).requires_grad is False


@pytest.mark.parametrize("dtype", [None, "int32", "float64", "bool"])
def test_filled(dtype):
    x = np.arange(6, dtype=np.int16).reshape(2, 3)

    for name in ("zeros", "ones", "empty"):
        assert getattr(jg, name)((2, 3), dtype=dtype).dtype == (dtype or "float32")
        assert getattr(jg, name + "_like")(x, dtype=dtype).dtype == (dtype or "int16")
    np.testing.assert_array_equal(jg.ones(3, dtype=dtype).numpy(), np.ones(3, dtype))
    np.testing.assert_array_equal(jg.full_like(x, 7, dtype=dtype).numpy(), np.full_like(x, 7, dtype))


def test_full_takes_its_dtype_from_the_value():
    assert [jg.full(2, v).dtype for v in (1, 1.0, True, np.int8(1))] == ["int64", "float32", "bool", "int8"]
    assert np.signbit(jg.full(2, -0.0).numpy()).all()
    np.testing.assert_array_equal(jg.full((2, 3), jg.tensor([1.0, 2.0, 3.0])).numpy(), [[1, 2, 3]] * 2)
    check_grads(lambda v: jg.full((2, 3), v) * v, (np.array(1.5),), order=2)


@pytest.mark.parametrize(
    "arguments", [(5,), (2, 9), (9, 2), (9, 2, -3), (0.0, 1.0, 0.1), (1, 2, 0.3), (3, 3), (-2.5,), (2**40, 2**40 + 2)]
)
def test_arange(arguments):
    expected = np.arange(*arguments)

    result = jg.arange(*arguments, dtype="float64" if expected.dtype.kind == "f" else None)

    assert result.dtype == expected.dtype
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-15)


@pytest.mark.parametrize("endpoint", [True, False])
@pytest.mark.parametrize("num", [0, 1, 2, 7])
@pytest.mark.parametrize(("start", "stop"), [(0.0, 1.0), (3, -3), (2.0, 2.0)])
def test_linspace(start, stop, num, endpoint):
    result = jg.linspace(start, stop, num, endpoint, dtype="float64")

    np.testing.assert_array_equal(result.numpy(), np.linspace(start, stop, num, endpoint))


def test_linspace_of_integers_rounds_down():
    np.testing.assert_array_equal(jg.linspace(-1, 3, 7, dtype="int64").numpy(), np.linspace(-1, 3, 7, dtype="int64"))


@pytest.mark.parametrize("k", [-4, -1, 0, 2, 9])
def test_diagonals_and_triangles(k):
    x = np.arange(1.0, 25.0).reshape(2, 3, 4)

    np.testing.assert_array_equal(jg.eye(3, 4, k).numpy(), np.eye(3, 4, k))
    np.testing.assert_array_equal(jg.tril(jg.asarray(x), k).numpy(), np.tril(x, k))
    np.testing.assert_array_equal(jg.triu(jg.asarray(x > 3), k).numpy(), np.triu(x > 3, k))
    check_grads(lambda t: jg.tril(t, k), (x,), order=1)


@pytest.mark.parametrize("indexing", ["xy", "ij"])
@pytest.mark.parametrize("lengths", [(2,), (2, 3), (2, 3, 4), (0, 2)])
def test_meshgrid(lengths, indexing):
    xs = [np.arange(float(n)) for n in lengths]

    for result, expected in zip(jg.meshgrid(*xs, indexing=indexing), np.meshgrid(*xs, indexing=indexing), strict=True):
        np.testing.assert_array_equal(result.numpy(), expected)


def test_iota():
    np.testing.assert_array_equal(iota((2, 3), 0).numpy(), [[0, 0, 0], [1, 1, 1]])
    np.testing.assert_array_equal(iota((2, 3), -1).numpy(), [[0, 1, 2], [0, 1, 2]])
    np.testing.assert_array_equal(iota((2, 3), None, "float32").numpy(), [[0, 1, 2], [3, 4, 5]])


def test_clone_and_detach():
    x = jg.tensor([1.0, 2.0], requires_grad=True)
    y = x.clone()
    (y * y).sum().backward()

    assert x.grad.tolist() == [2.0, 4.0]
    detached = y.detach()
    assert not detached.requires_grad
    assert detached.is_leaf
    detached[0] = 9.0
    assert y[0].item() == 9.0
    assert x[0].item() == 1.0


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: jg.tensor(np.zeros(2, np.clongdouble)), DtypeError, "not supported"),
        (lambda: jg.tensor("text"), DtypeError, "not supported"),
        (lambda: jg.tensor([[1], [1, 2]]), OperandError, "list"),
        (lambda: jg.tensor([1, 2], requires_grad=True), DtypeError, "floating and complex"),
        (lambda: jg.tensor(1.0, device="tpu"), ArgumentError, "expected 'cpu' or 'cuda'"),
        (lambda: jg.asarray([1.0], copy=False), ArgumentError, "copy"),
        (lambda: jg.from_numpy([1.0]), OperandError, "list"),
        (lambda: jg.zeros((2, -1)), ShapeError, "negative"),
        (lambda: jg.zeros("ab"), ShapeError, "sequence of ints"),
        (lambda: jg.arange(0, 1, 0), ArgumentError, "never end"),
        (lambda: jg.arange("a"), OperandError, "number"),
        (lambda: jg.linspace(0, 1, -1), ArgumentError, "negative"),
        (lambda: jg.tril(jg.ones(3)), ShapeError, "two axes"),
        (lambda: jg.meshgrid(jg.ones((2, 2))), ShapeError, "1-D"),
        (lambda: jg.meshgrid(jg.ones(2), indexing="yx"), ArgumentError, "indexing"),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()
