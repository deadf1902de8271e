"""The public elementwise functions against NumPy: values, dtypes (NEP 50), edge cases, names."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import jitgrad as jg
from jitgrad.autograd.backward import gradients
from jitgrad.core.errors import ArgumentError, DtypeError, OperandError
from jitgrad.core.tensor import Tensor
from jitgrad.ops.interop import UFUNCS
from jitgrad.ops.tables import ELEMENTWISE
from jitgrad.testing import check_grads

OURS = {"fabs": UFUNCS["fabs"], **ELEMENTWISE}
IN_NUMPY = {
    name: [p.annotation for p in inspect.signature(f).parameters.values()]
    for name, f in ELEMENTWISE.items()
    if hasattr(np, name) and name not in ("reciprocal", "rint")  # NumPy's 1 // x of integers; its rint of them is floating
}
UNARY = ["fabs", *(name for name, types in IN_NUMPY.items() if types in (["Operand"], ["Operand", "int"]))]
BINARY = [name for name, types in IN_NUMPY.items() if types == ["Operand", "Operand"]]
# functions of jitgrad's own, within 2 units in the last place as NumPy's are
OWN = frozenset(
    "exp2 expm1 log2 log10 log1p logaddexp tan sinh cosh asin acos atan atan2 asinh acosh atanh "
    "arcsin arccos arctan arctan2 arcsinh arccosh arctanh".split()
)
DTYPES = ["?", "b", "B", "h", "i", "l", "L", "e", "f", "d"]


def array(dtype: str, seed: int, shape: tuple[int, ...] = (3, 4)) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(seed)
    if dtype == "?":
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype in "efd":
        return rng.normal(0.0, 2.0, shape).astype(dtype)
    return rng.integers(0, 6, shape).astype(dtype)


def values(x: Any) -> np.ndarray[Any, Any]:
    assert isinstance(x, Tensor)
    return x.concrete("a test")


def assert_same_as_numpy(name: str, *operands: Any) -> None:
    """Same values and dtype, as far as functions are NumPy's, or an error in both."""
    with np.errstate(all="ignore"):
        try:
            expected = np.asarray(getattr(np, "trunc" if name == "fix" else name)(*operands))  # NumPy 2.5 deprecates fix
        except (TypeError, OverflowError):
            with pytest.raises((DtypeError, OverflowError)):
                OURS[name](*operands)
            return
    found = values(OURS[name](*operands))
    assert found.dtype == expected.dtype
    if name in OWN and expected.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=4 * np.finfo(expected.dtype).eps, atol=0)
        zero = expected == 0
        np.testing.assert_array_equal(np.signbit(found[zero]), np.signbit(expected[zero]))
    else:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", UNARY)
def test_unary_functions_are_numpys(name: str, dtype: str) -> None:
    assert_same_as_numpy(name, array(dtype, 0))


@pytest.mark.parametrize("left", DTYPES)
@pytest.mark.parametrize("name", BINARY)
def test_binary_functions_are_numpys(name: str, left: str) -> None:
    for right in DTYPES:
        assert_same_as_numpy(name, array(left, 0), array(right, 1, (4,)))


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
@pytest.mark.parametrize("number", [True, 3, 2.5, -1, 1e300], ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["add", "multiply", "divide", "maximum", "less", "equal", "atan2", "remainder"])
def test_python_numbers_are_weak_as_in_numpy(name: str, dtype: str, number: Any) -> None:
    assert_same_as_numpy(name, array(dtype, 0), number)
    assert_same_as_numpy(name, number, array(dtype, 0))


@pytest.mark.parametrize("number", [-1, 256, 1 << 70, -(1 << 70)], ids=str)
@pytest.mark.parametrize("name", ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"])
def test_integers_compare_with_python_ints_outside_their_range(name: str, number: int) -> None:
    assert_same_as_numpy(name, np.array([0, 255], np.uint8), number)
    assert_same_as_numpy(name, number, np.array([0, 255], np.uint8))


def test_an_int_that_does_not_fit_is_an_error_elsewhere() -> None:
    with pytest.raises(OverflowError):
        jg.add(np.array([1], np.uint8), 256)


@given(
    hnp.arrays(np.float32, 4, elements=st.floats(width=32)),
    hnp.arrays(np.float32, 4, elements=st.floats(width=32)),
)
def test_any_floats(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> None:
    for name in (
        "add",
        "divide",
        "remainder",
        "fmod",
        "maximum",
        "hypot",
        "atan2",
        "floor_divide",
        "logaddexp",
    ):
        assert_same_as_numpy(name, x, y)


def test_where_selects_and_promotes_the_choices_alone() -> None:
    x = np.array([1.0, 2.0], np.float32)

    found = values(jg.where(np.array([1.0, 0.0]), x, 5))

    np.testing.assert_array_equal(found, np.array([1.0, 5.0], np.float32))
    assert found.dtype == np.float32


def test_clip_takes_any_of_its_bounds() -> None:
    x = np.array([-3, 0, 3], np.int8)
    for low, high in ((-1, 1), (None, 1), (-1, None), (None, None)):
        found = values(jg.clip(x, low, high))
        np.testing.assert_array_equal(found, np.clip(x, low, high))
        assert found.dtype == np.int8


@pytest.mark.parametrize("bounds", [(-1.0, 1.0), (None, 1.0), (-1.0, None)], ids=str)
def test_clip_passes_the_gradient_on_its_bounds(bounds: tuple[float | None, float | None]) -> None:
    x = Tensor(np.array([-1.0, 0.0, 1.0])).requires_grad_()

    (g,) = gradients([jg.clip(x, *bounds)], [Tensor(np.ones(3))], [x])

    np.testing.assert_array_equal(values(g), [1.0, 1.0, 1.0])


@pytest.mark.parametrize("decimals", [2, 1, 0, -1])
@pytest.mark.parametrize("dtype", ["f", "d", "l"])
def test_round_to_decimals(dtype: str, decimals: int) -> None:
    x = np.array([12.345, -6.25, 14.5, 15.0, 25.0]).astype(dtype)

    found = values(jg.round(x, decimals))

    np.testing.assert_allclose(found, np.round(x, decimals), rtol=1e-6)
    assert found.dtype == x.dtype


def test_erf_is_accurate_in_every_float_dtype() -> None:
    x = np.linspace(-6.0, 6.0, 1001)
    expected = np.vectorize(math.erf)(x)

    np.testing.assert_allclose(values(jg.erf(x)), expected, rtol=5e-16)
    single = x.astype(np.float32)
    np.testing.assert_allclose(values(jg.erf(single)), np.vectorize(math.erf)(single), rtol=3e-7)
    tail = np.linspace(0.0, 26.0, 200)
    np.testing.assert_allclose(values(jg.erfc(tail)), np.vectorize(math.erfc)(tail), rtol=1e-15)
    half = values(jg.erf(x.astype(np.float16)))
    assert half.dtype == np.float16
    np.testing.assert_allclose(half, expected, atol=2e-3)


def test_sigmoid_does_not_overflow() -> None:
    x = np.array([-1e4, -100.0, -88.9, 0.0, 100.0], np.float32)

    found = values(jg.sigmoid(x))

    np.testing.assert_allclose(found, [0.0, 3.720076e-44, 2.461614e-39, 0.5, 1.0], rtol=1e-6, atol=2e-45)
    assert found[1] > 0.0


def test_logaddexp_shares_the_gradient_between_equal_infinities() -> None:
    for value in (np.inf, -np.inf):
        x, y = (Tensor(np.array(value)).requires_grad_() for _ in range(2))
        found = gradients([jg.logaddexp(x, y)], [Tensor(np.array(1.0))], [x, y])
        assert [values(g) for g in found] == [0.5, 0.5]


@pytest.mark.parametrize("f", [jg.hypot, jg.atan2], ids=["hypot", "atan2"])
def test_gradient_at_the_origin_is_zero(f: Any) -> None:
    x, y = (Tensor(np.array(0.0)).requires_grad_() for _ in range(2))

    found = gradients([f(x, y)], [Tensor(np.array(1.0))], [x, y])

    assert [values(g) for g in found] == [0.0, 0.0]


def test_where_keeps_nan_of_the_other_branch_out_of_the_gradient() -> None:
    x = Tensor(np.array([0.0, 4.0])).requires_grad_()
    safe = jg.where(jg.greater(x, 0.0), x, 1.0)

    (g,) = gradients([jg.where(jg.greater(x, 0.0), jg.log(safe), 0.0)], [Tensor(np.ones(2))], [x])

    np.testing.assert_array_equal(values(g), [0.0, 0.25])


# --- pow ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exponent", [-2, -1, -0.5, 0, 0.5, 1, 2, 3, 4, 5, 2.5], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_pow_of_a_number_is_within_two_ulp(exponent: float, dtype: Any) -> None:
    x = np.random.default_rng(0).uniform(0.1, 9.0, 200).astype(dtype)
    exact = np.power(x.astype(np.longdouble), exponent)

    found = values(jg.pow(x, exponent))

    assert found.dtype == dtype
    assert np.max(np.abs(found - exact) / np.spacing(found)) <= 2.0


def gradient_of_pow(x: float, y: Any) -> float:
    base = Tensor(np.array(x)).requires_grad_()
    (g,) = gradients([jg.pow(base, y)], [Tensor(np.array(1.0))], [base])
    return float(values(g))


@pytest.mark.parametrize(
    ("x", "y", "slope"),
    [
        (-3.0, 2, -6.0),
        (-2.0, 3, 12.0),
        (0.0, 2, 0.0),
        (0.0, 1, 1.0),
        (0.0, 0, 0.0),
        (5.0, 0, 0.0),
        (2.0, -1, -0.25),
    ],
)
def test_pow_base_gradient_needs_no_logarithm(x: float, y: int, slope: float) -> None:
    for exponent in (y, float(y), np.array(float(y))):
        assert gradient_of_pow(x, exponent) == slope


def test_pow_exponent_gradient_at_a_zero_base() -> None:
    y = Tensor(np.array([2.0, 0.0])).requires_grad_()

    (g,) = gradients([jg.pow(np.zeros(2), y)], [Tensor(np.ones(2))], [y])

    np.testing.assert_array_equal(values(g), [0.0, 0.0])


def test_pow_mixed_second_derivative_where_the_exponent_is_zero() -> None:
    check_grads(jg.pow, [np.array([0.7, 2.0]), np.array([0.0, 0.0])], order=2)


def test_pow_of_integers() -> None:
    x = np.array([-2, 3], np.int64)

    np.testing.assert_array_equal(values(jg.pow(x, 5)), x**5)
    assert values(jg.pow(np.array([2], np.int8), 3)).dtype == np.int8
    np.testing.assert_array_equal(values(jg.pow(2.0, x)), [0.25, 8.0])
    for exponent in (-1, np.array([-1, 2])):
        with pytest.raises(ArgumentError, match="negative integer powers"):
            jg.pow(x, exponent)


# --- operands and dtypes -----------------------------------------------------------------------------------------


def test_astype_converts_and_its_gradient_converts_back() -> None:
    x = Tensor(np.array([1.5, -2.5], np.float32)).requires_grad_()
    wide = jg.astype(x, np.float64)

    (g,) = gradients([wide], [Tensor(np.array([1.0, 2.0]))], [x])

    assert wide.dtype == np.float64
    np.testing.assert_array_equal(values(g), np.array([1.0, 2.0], np.float32))
    assert g is not None and g.dtype == np.float32
    assert jg.astype(x, np.float32, copy=False) is x
    np.testing.assert_array_equal(values(jg.astype(x, int)), [1, -2])


def test_complex_and_unknown_operands_are_errors() -> None:
    with pytest.raises(DtypeError, match="not supported"):
        jg.exp(np.array([1j], np.clongdouble))
    with pytest.raises(DtypeError, match="maximum is not defined for complex operands"):
        jg.maximum(np.array([1j]), 1.0)
    with pytest.raises(OperandError, match="str"):
        jg.add("a", 1.0)  # type: ignore[arg-type]
    with pytest.raises(DtypeError):
        jg.astype(np.ones(2), "datetime64[s]")


def test_rounding_has_the_zero_gradient_even_for_an_infinite_one() -> None:
    x = Tensor(np.array([1.5])).requires_grad_()

    (g,) = gradients([jg.floor(x)], [Tensor(np.array([np.inf]))], [x])

    np.testing.assert_array_equal(values(g), [0.0])


def test_every_elementwise_function_is_public_and_a_method() -> None:
    assert not [name for name in ELEMENTWISE if name not in jg.__all__ or not hasattr(Tensor, name)]


@pytest.mark.parametrize("shape", [(20001,), (3, 7001), (2, 1, 9000)], ids=str)
def test_large_arrays_are_computed_block_by_block_to_the_same_values(shape: tuple[int, ...]) -> None:
    """Formulas run over blocks of a flat copy: every block, the short last one and strided operands come out right."""
    x = np.random.default_rng(0).normal(0.0, 2.0, shape)
    for f in (jg.sigmoid, jg.erf):
        expected = np.array([values(f(part)) for part in x.reshape(-1)[::997]]).reshape(-1)

        np.testing.assert_allclose(values(f(x)).reshape(-1)[::997], expected, rtol=1e-15)
        np.testing.assert_array_equal(values(f(x[..., ::-1])), values(f(x))[..., ::-1])
