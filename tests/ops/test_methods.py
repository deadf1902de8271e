"""Operators, methods and NumPy interoperation of Tensor."""

from __future__ import annotations

import copy
import operator
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import ArgumentError, AutogradError, DtypeError, OperandError
from jitgrad.ops import methods
from jitgrad.testing.gradients import check_grads

X = np.array([[1.5, -2.0, 3.0], [0.5, 4.0, -1.0]], np.float32)
ARITHMETIC = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.eq,
    operator.ne,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
]
BITWISE = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]


def same(result, expected):
    assert isinstance(result, jg.Tensor)
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result.numpy(), expected)


@pytest.mark.parametrize("op", ARITHMETIC)
@pytest.mark.parametrize("other", [2, 1.5, np.float32(2), np.array([1.0, 2.0, 4.0]), np.array([[3], [2]])], ids=str)
def test_operators_both_ways(op, other):
    same(op(jg.asarray(X), other), op(X, other))
    same(op(other, jg.asarray(X)), op(other, X))
    if not isinstance(other, (int, float)):
        same(op(jg.asarray(X), jg.asarray(other)), op(X, other))


@pytest.mark.parametrize("op", BITWISE)
def test_bitwise_operators(op):
    x = np.array([12, 10, 3])

    same(op(jg.asarray(x), 2), op(x, 2))
    same(op(3, jg.asarray(x)), op(3, x))
    same(operator.invert(jg.asarray(x > 5)), ~(x > 5))


def test_power_matmul_and_divmod():
    x = jg.asarray(X)

    same(x**2, X**2)
    np.testing.assert_allclose((2.0**x).numpy(), 2.0**X, rtol=1e-6)
    np.testing.assert_allclose((x @ X.T).numpy(), X @ X.T)
    np.testing.assert_allclose((X.T @ x).numpy(), X.T @ X)
    for result, expected in zip((*divmod(x, 2), *divmod(7, x)), (*divmod(X, 2), *divmod(7, X)), strict=True):
        same(result, expected)


def test_unary_operators():
    x = jg.asarray(X)

    same(-x, -X)
    same(+x, X)
    same(abs(x), abs(X))
    same(round(x), np.round(X))


def test_foreign_operands_get_their_turn():
    class Foreign:
        def __radd__(self, other):
            return "mine"

    assert jg.ones(2) + Foreign() == "mine"
    assert (jg.ones(2) == None) is False  # noqa: E711
    with pytest.raises(TypeError):
        jg.ones(2) + "text"
    with pytest.raises(TypeError):
        assert jg.ones(2) < {1, 2}
    assert (jg.ones(2) < [1, 2]).tolist() == [False, True]


def test_iteration_and_membership():
    x = jg.asarray(X)

    assert [row.tolist() for row in x] == X.tolist()
    _first, second = x
    same(second, X[1])
    assert 4.0 in x
    assert 5 not in x
    with pytest.raises(TypeError, match="0-d"):
        iter(jg.tensor(1.0))


def test_tensors_are_hashable_by_identity():
    x, y = jg.ones(2), jg.ones(2)

    assert len({x, y}) == 2
    assert {x: 1}[x] == 1


def test_transposed_attributes():
    x = np.arange(24.0).reshape(2, 3, 4)

    same(jg.asarray(x).T, x.T)
    same(jg.asarray(x).mT, x.mT)


def test_every_method_is_the_function_of_its_name():
    for module, names in methods.METHOD_NAMES.items():
        for name in names.split():
            assert getattr(jg.Tensor, name) is getattr(module, name)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.sum(axis=0),
        lambda x: x.mean(1, keepdims=True),
        lambda x: x.reshape(3, -1),
        lambda x: x.reshape((3, 2)),
        lambda x: x.transpose(1, 0),
        lambda x: x.max(axis=-1),
        lambda x: x.argmin(),
        lambda x: x.flatten(),
        lambda x: x.ravel(),
        lambda x: x.cumsum(axis=1),
        lambda x: x.clip(-1, 2),
        lambda x: x.repeat(2, axis=1),
        lambda x: x.swapaxes(0, 1),
        lambda x: x.astype("int32"),
        lambda x: x.take([0, 2], axis=1),
        lambda x: x.round(),
        lambda x: x.all(),
    ],
)
def test_methods_as_numpy_has_them(call):
    same(call(jg.asarray(X)), np.asarray(call(X)))


def test_methods_as_torch_has_them():
    x = jg.asarray(X)

    assert x.view(6).unsqueeze(0).shape == (1, 6)
    assert x.permute(1, 0).shape == x.t().shape == (3, 2)
    assert x.unsqueeze(1).expand(-1, 4, -1).shape == (2, 4, 3)
    assert (x.numel(), x.dim()) == (6, 2)
    assert [x.double().dtype, x.half().dtype, x.long().dtype, x.bool().dtype] == ["float64", "float16", "int64", "bool"]
    assert x.masked_fill(x < 0, 9.0).tolist() == np.where(X < 0, 9.0, X).tolist()
    assert x.type_as(jg.ones(1, dtype="int8")).dtype == "int8"
    assert [t.shape for t in x.unbind(1)] == [(2,)] * 3


def test_to():
    x = jg.asarray(X)

    assert x.to("cpu") is x.to(jg.float32) is x.cpu() is x
    assert x.to("float64").dtype == x.to("cpu", np.float64).dtype == x.to(dtype=float).dtype == "float64"
    with pytest.raises(ArgumentError, match="one CUDA device"):
        x.to("cuda:1")
    assert x.to(np.complex64).dtype == jg.complex64
    with pytest.raises(DtypeError, match="not supported"):
        x.to(np.clongdouble)


def test_zero_grad_and_deepcopy():
    x = jg.tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    twin = copy.deepcopy({"a": x, "b": x})

    assert twin["a"] is twin["b"]
    assert twin["a"].requires_grad
    assert twin["a"].grad.tolist() == [2.0, 4.0]
    x.zero_grad(set_to_none=False)
    assert x.grad.tolist() == [0.0, 0.0]
    x.zero_grad()
    assert x.grad is None
    assert twin["a"].grad is not None
    with pytest.raises(AutogradError, match="deepcopy"):
        copy.deepcopy(x * 2)


# --- NumPy -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        np.exp,
        np.abs,
        lambda x: np.add(np.ones(3, np.float32), x),
        lambda x: np.multiply(x, [1.0, 2.0, 3.0]),
        lambda x: np.power(x, 2),
        lambda x: np.arctan2(x, 2.0),
        lambda x: np.ones(3) * x,
        lambda x: np.float32(2) - x,
        lambda x: np.matmul(x, np.ones((3, 2), np.float32)),
        lambda x: np.sum(x, axis=0),
        lambda x: np.mean(x, keepdims=True),
        lambda x: np.var(x, axis=1, ddof=1),
        lambda x: np.concatenate([x, X], axis=1),
        lambda x: np.stack([x, x]),
        lambda x: np.where(x > 0, x, 0),
        np.cumsum,
        lambda x: np.linalg.norm(x, axis=1),
        lambda x: np.reshape(x, (3, 2)),
        np.transpose,
        lambda x: np.clip(x, -1, 1),
        lambda x: np.einsum("ij,kj->ik", x, X),
        np.zeros_like,
        lambda x: np.argmax(x, axis=1),
    ],
)
def test_numpy_functions_give_tensors(call):
    result, expected = call(jg.asarray(X)), np.asarray(call(X))

    assert isinstance(result, jg.Tensor)
    assert result.dtype == expected.dtype
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-6)


def test_numpy_functions_are_differentiable():
    check_grads(lambda x: np.sum(np.exp(x) * np.arange(3.0), axis=0), (X.astype(np.float64),), order=2)


def test_numpy_functions_about_arrays():
    x = jg.asarray(X).requires_grad_()

    assert np.shape(x) == (2, 3)
    assert np.ndim(x) == 2
    assert np.size(x) == 6
    assert np.allclose(x, X)
    assert np.array_equal(x, X)
    np.testing.assert_array_equal(np.asarray(x.detach()), X)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (np.spacing, "np.spacing"),
        (np.add.reduce, "np.add.reduce"),
        (lambda x: np.add(X, x, out=X.copy()), "out="),
        (lambda x: operator.iadd(X.copy(), x), "out="),
        (np.sort_complex, "sort_complex"),
    ],
)
def test_unsupported_numpy_functions_say_what_to_do(call, words):
    with pytest.raises(OperandError, match=words) as caught:
        call(jg.asarray(X))
    assert "detach().numpy()" in str(caught.value)


def test_array_namespace():
    assert jg.ones(1).__array_namespace__() is jg
    assert jg.ones(1).__array_namespace__(api_version="2024.12") is jg
    with pytest.raises(ArgumentError, match="1999"):
        jg.ones(1).__array_namespace__(api_version="1999")


def test_installing_a_name_twice_is_refused():
    with pytest.raises(ArgumentError, match="sum"):
        methods.install({"sum": jg.sum})


# --- the package -------------------------------------------------------------------------------------------------


def test_exported_names_exist_once():
    assert len(set(jg.__all__)) == len(jg.__all__)
    assert [name for name in jg.__all__ if not hasattr(jg, name)] == []


def test_importing_jitgrad_does_not_import_numba():
    code = "import sys, jitgrad; print(any(name.split('.')[0] in ('numba', 'llvmlite') for name in sys.modules))"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "False"


def test_a_tensor_of_one_element_formats_as_its_number() -> None:
    assert f"{jg.tensor([0.12345])[0]:.3f}" == "0.123"
    assert f"{jg.tensor([1, 2])}" == str(jg.tensor([1, 2]))
    with pytest.raises(ArgumentError, match="exactly one element"):
        format(jg.tensor([1.0, 2.0]), ".3f")


@pytest.mark.parametrize("compiled", [False, True])
def test_repeat_with_torchs_numbers_warns_where_they_are_numpys_too(compiled: bool):
    def call(f: Any, x: Any) -> Any:
        return (jg.jit(f, backend="python") if compiled else f)(x)

    x = jg.tensor(np.arange(6.0).reshape(2, 3))
    with pytest.warns(jg.errors.MeaningWarning, match=r"test_methods.py:\d+: repeat\(2, 1\) .* or tile\(2, 1\) for torch's"):
        assert call(lambda t: t.repeat(2, 1), x).shape == (2, 6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for f, shape in (
            (lambda t: t.repeat(2, axis=1), (2, 6)),
            (lambda t: t.repeat(2, 0), (4, 3)),
            (lambda t: t.repeat(1, 1), (2, 3)),
            (lambda t: t.repeat(2), (12,)),
            (lambda t: t[0].repeat(2, 0), (6,)),
            (lambda t: t.repeat_interleave(2, 1), (2, 6)),
            (lambda t: t.tile(2, 1), (4, 3)),
        ):
            assert call(f, x).shape == shape
        for f, tiled in ((lambda t: t.repeat(2, 1, 1), (2, 2, 3)), (lambda t: t[0].repeat(2, 1), (2, 3))):  # torch's alone
            assert call(f, x).shape == tiled
    with pytest.raises(jg.errors.ArgumentError, match="one count and an axis"):
        call(lambda t: t.repeat(2, 1, axis=0), x)


@pytest.mark.parametrize("compiled", [False, True])
def test_the_method_squeeze_keeps_longer_axes_that_are_given_by_position(compiled: bool):
    def call(f: Any) -> tuple[int, ...]:
        return (jg.jit(f, backend="python") if compiled else f)(jg.ones((1, 3, 1))).shape

    assert call(lambda t: t.squeeze(1)) == call(lambda t: t.squeeze(dim=1)) == (1, 3, 1)
    assert call(lambda t: t.squeeze(-1)) == call(lambda t: t.squeeze(2)) == (1, 3)
    assert call(lambda t: t.squeeze((0, 1))) == (3, 1)
    assert call(lambda t: t.squeeze()) == call(lambda t: t.squeeze(axis=(0, 2))) == (3,)
    with pytest.raises(jg.errors.ShapeError, match="length 3"):
        call(lambda t: t.squeeze(axis=1))


def test_the_method_norm_is_that_of_vectors_whatever_the_number_of_axes():
    x = jg.tensor(X)

    np.testing.assert_allclose(x.norm(2).item(), np.linalg.norm(X.ravel()), rtol=1e-6)
    np.testing.assert_allclose(x.norm(1).item(), np.abs(X).sum(), rtol=1e-6)
    np.testing.assert_allclose(x.norm(p=3, dim=(0, 1)).item(), (np.abs(X) ** 3).sum() ** (1 / 3), rtol=1e-6)
    np.testing.assert_allclose(x.norm(2, dim=1, keepdim=True).numpy(), np.linalg.norm(X, axis=1, keepdims=True), rtol=1e-6)
    with pytest.raises(ArgumentError, match="matrix norm"):
        jg.norm(x, 2)
