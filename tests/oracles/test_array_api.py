"""The array API standard: names, parameters and promotion as in array-api-strict, special cases as in NumPy."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import ArgumentError, DtypeError

LISTED = Path(__file__).with_name("array_api_differences.txt")
OF_THE_LIBRARY = {"ArrayAPIStrictFlags", "Device", "__version__"}  # array-api-strict's own
MISSING = object()
DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64".split()
UNARY = (
    "abs acos acosh asin asinh atan atanh ceil cos cosh exp expm1 floor isfinite isinf isnan log log10 log1p log2 "
    "logical_not negative positive reciprocal round sign signbit sin sinh sqrt square tan tanh trunc"
).split()
BINARY = (
    "add atan2 copysign divide equal floor_divide greater greater_equal hypot less less_equal logaddexp logical_and "
    "logical_or logical_xor maximum minimum multiply nextafter not_equal pow remainder subtract"
).split()


def listed() -> dict[tuple[str, str], str]:
    lines = [line.strip() for line in LISTED.read_text(encoding="utf-8").splitlines()]
    parts = [tuple(part.strip() for part in line.split(" :: ")) for line in lines if line and line[0] != "#"]
    return {(name, what): reason for name, what, reason in parts}


# --- special cases: signed zeros, infinities, NaN, the ends of the range -----------------------------------------


def special_values(dtype: Any) -> Any:
    ends = np.finfo(dtype)
    positive = [0.0, ends.smallest_subnormal, ends.tiny, 1e-3, 0.5, 1 - ends.epsneg, 1.0, 1 + ends.eps, 1.5, 2.0, 2.5, 3.0]
    positive += [np.pi / 2, np.pi, 7.5, 2.0**23 + 1, 2.0**53 - 1, ends.max, np.inf]
    return np.array([*positive, *(-x for x in positive), np.nan], dtype)


def assert_same_specials(name: str, found: Any, expected: Any, *operands: Any) -> None:
    """NaN, infinities and the signs of zeros are the same, other values equal as far as rounding allows."""
    assert found.dtype == expected.dtype, name
    if found.dtype.kind == "b":
        wrong = found != expected
    else:
        limits = np.finfo(found.dtype)
        named = ~np.isfinite(expected) | (expected == 0) | (found == 0)
        if name in ("maximum", "minimum"):  # the standard leaves open which of 0.0 and -0.0 is larger, and NumPy gives both
            named &= expected != 0
        signs = named & ~np.isnan(expected) & (np.signbit(found) != np.signbit(expected))
        close = np.isclose(found, expected, rtol=8 * limits.eps, atol=4 * limits.smallest_subnormal, equal_nan=True)
        wrong = signs | ~close
    places = [tuple(x[i] for x in operands) for i in np.flatnonzero(wrong)[:3]]
    assert not wrong.any(), f"{name}{places}: {found[wrong][:3]}, expected {expected[wrong][:3]}"


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("names", [UNARY, BINARY], ids=["unary", "binary"])
def test_special_cases(names: list[str], dtype: Any, compiled: bool) -> None:
    x = special_values(dtype)
    operands = (x,) if names is UNARY else tuple(v.ravel().copy() for v in np.meshgrid(x, x))

    def every(*xs: Any) -> list[Any]:
        return [getattr(jg, name)(*xs) for name in names]

    run = jg.jit(every, check="off") if compiled else every
    with np.errstate(all="ignore"):
        results = run(*map(jg.asarray, operands))
        for name, result in zip(names, results, strict=True):
            assert_same_specials(name, result.numpy(), getattr(np, name)(*operands), *operands)


# --- names and parameters ----------------------------------------------------------------------------------------


def functions_of_the_standard() -> Iterator[tuple[str, Any, Any]]:
    """Each name of array-api-strict with what it and jitgrad have under it."""
    strict: Any = pytest.importorskip("array_api_strict")
    for name in strict.__all__:
        if name not in OF_THE_LIBRARY and "array_api_strict" not in name:
            yield name, getattr(strict, name), getattr(jg, name, MISSING)
    for space in ("linalg", "fft"):
        theirs, ours = getattr(strict, space), getattr(jg, space)
        for name in theirs.__all__:
            yield f"{space}.{name}", getattr(theirs, name), getattr(ours, name, MISSING)


def lacking_parameters(theirs: Any, ours: Any) -> Iterator[str]:
    """The parameters that a call after the standard can give, and ``ours`` doesn't take."""
    own = inspect.signature(ours).parameters
    kinds = inspect.Parameter
    places = sum(p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD) for p in own.values())
    places = 99 if any(p.kind is kinds.VAR_POSITIONAL for p in own.values()) else places
    for place, parameter in enumerate(inspect.signature(theirs).parameters.values()):
        by_name = parameter.kind in (kinds.KEYWORD_ONLY, kinds.POSITIONAL_OR_KEYWORD)
        by_place = parameter.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)
        optional = parameter.default is not parameter.empty
        if (by_place and place >= places) or (by_name and optional and parameter.name not in own):
            yield parameter.name


def test_names_and_parameters() -> None:
    found = set()
    for name, theirs, ours in functions_of_the_standard():
        if ours is MISSING:
            found.add((name, "missing"))
        elif inspect.isfunction(theirs) and not name.startswith("__"):
            found |= {(name, parameter) for parameter in lacking_parameters(theirs, ours)}

    assert found == set(listed())


@pytest.mark.parametrize("name", "add subtract multiply pow maximum where concat".split())
def test_promotion(name: str) -> None:
    strict: Any = pytest.importorskip("array_api_strict")
    for one, other in product(DTYPES[1:], DTYPES[1:]):
        try:
            expected = strict.result_type(getattr(strict, one), getattr(strict, other))
        except TypeError:  # the standard leaves it open
            continue
        x, y = jg.asarray(np.ones(2, one)), jg.asarray(np.ones(2, other))
        call = {"where": lambda: jg.where(x > 0, x, y), "concat": lambda: jg.concat([x, y])}
        result = call.get(name, lambda: getattr(jg, name)(x, y))()
        assert str(expected).endswith(result.dtype.name), f"{name}: {one}, {other}"
        assert jg.result_type(x, y) == jg.result_type(x.dtype, y.dtype) == result.dtype


# --- functions that only the standard has ------------------------------------------------------------------------


def test_dtype_functions() -> None:
    assert jg.result_type(jg.zeros(2, dtype=jg.float32), 1.5, 2) == jg.float32
    assert jg.result_type(jg.int8, jg.zeros(1, dtype=jg.uint8)) == jg.int16
    assert jg.can_cast(jg.int32, jg.float64) and not jg.can_cast(jg.zeros(1), jg.int64)
    assert jg.isdtype(jg.uint8, "integral") and not jg.isdtype(jg.bool, "numeric")
    assert jg.isdtype(jg.float32, (jg.float64, "real floating")) and jg.isdtype(jg.int8, jg.int8)
    with pytest.raises(DtypeError, match="kind must be one of"):
        jg.isdtype(jg.int8, "whole")
    with pytest.raises(ArgumentError, match="at least one"):
        jg.result_type()


def test_distinct_elements() -> None:
    x = jg.tensor(np.array([[3.0, 1.0], [np.nan, 3.0], [np.nan, 1.0]]), requires_grad=True)

    values, indices, inverse, counts = jg.unique_all(x)

    np.testing.assert_array_equal(values.detach().numpy(), [1.0, 3.0, np.nan, np.nan])
    assert indices.numpy().tolist() == [1, 0, 2, 4] and counts.numpy().tolist() == [2, 2, 1, 1]
    assert inverse.shape == (3, 2) and inverse.numpy()[1, 1] == 1
    assert jg.unique_counts(x).counts.numpy().tolist() == [2, 2, 1, 1]
    np.testing.assert_array_equal(jg.unique_inverse(x).inverse_indices.numpy(), inverse.numpy())
    values[:2].sum().backward()
    assert x.grad.numpy().tolist() == [[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]]


def test_cumulative_prod() -> None:
    x = np.array([[2.0, 0.0, 3.0], [4.0, 5.0, 6.0]])

    found = jg.cumulative_prod(jg.tensor(x), axis=1, include_initial=True).numpy()

    np.testing.assert_array_equal(found, [[1.0, 2.0, 0.0, 0.0], [1.0, 4.0, 20.0, 120.0]])
    assert jg.cumulative_prod(jg.tensor([2, 3], dtype=jg.uint8)).dtype == jg.uint64  # as NumPy's sums and products
    with pytest.raises(ArgumentError, match="needs an axis"):
        jg.cumulative_prod(jg.tensor(x))


def test_namespace_info() -> None:
    info = jg.__array_namespace_info__()

    assert jg.__array_api_version__ == "2024.12" and info.default_device() in info.devices()
    assert info.capabilities()["boolean indexing"] is True
    assert info.default_dtypes()["real floating"] == jg.float32
    assert list(info.dtypes(kind="real floating")) == ["float32", "float64"]
    assert info.default_dtypes()["complex floating"] == jg.complex64
    assert list(info.dtypes(kind="complex floating")) == ["complex64", "complex128"]
    assert set(info.dtypes()) == {*DTYPES, "complex64", "complex128"}
    assert set(info.dtypes(kind=("bool", "integral"))) == set(DTYPES[:-2])
