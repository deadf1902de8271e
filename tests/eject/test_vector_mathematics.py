"""The functions of ejected modules round as the NumPy forms of the same definitions do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jitgrad.eject.support import SupportLibrary
from jitgrad.eject.vector_math import MathLibrary
from jitgrad.vecmath import FUNCTIONS, numpy_namespace

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def namespace(text: str) -> dict[str, Any]:
    names: dict[str, Any] = {"np": np, "njit": lambda function: function}
    exec(text, names)
    return names


@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_bits_of_functions(name: str, kind: str) -> None:
    library = MathLibrary()
    called = library.function(name, kind)
    function = eval(called, namespace(library.text))
    rng, dtype = np.random.default_rng(0), np.dtype(f"f{int(kind[1:]) // 8}")
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0]
    numbers = [*rng.normal(0.0, 3.0, 12), *rng.uniform(-1.0, 1.0, 12), *10.0 ** rng.uniform(-40, 38, 8), *special]
    x = np.array(numbers, np.float64).astype(dtype)
    operands = [x, *(rng.permutation(x) for _ in range(FUNCTIONS[name].arity - 1))]
    found = np.array([function(*xs) for xs in zip(*operands, strict=True)])
    expected = numpy_namespace()[name](*operands)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found) | np.isnan(found), np.signbit(expected) | np.isnan(expected))


def support(*names: str) -> dict[str, Any]:
    library = SupportLibrary()
    for name in names:
        library.function(name)
    return namespace(library.text)


def test_every_float16() -> None:
    functions, bits = support("half_to_float", "float_to_half"), np.arange(1 << 16, dtype=np.uint16)[::7]
    found = np.array([functions["half_to_float"](b) for b in bits])
    expected = bits.view(np.float16).astype(np.float32)
    np.testing.assert_array_equal(found, expected)
    back = np.array([functions["float_to_half"](x) for x in expected[~np.isnan(expected)]])
    np.testing.assert_array_equal(back, bits[~np.isnan(expected)])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_to_float16(dtype: Any) -> None:
    functions, rng = support("round_to_half", "round_to_odd"), np.random.default_rng(0)
    near_ties = 1.0 + (2 * rng.integers(0, 1024, 300) + 1) / 2048 + rng.choice([1e-12, -1e-12, 0.0], 300)
    x = np.concatenate([10.0 ** rng.uniform(-9, 6, 500), near_ties, [65519.9, 65520.0, 3e-8, -0.0, np.inf]]).astype(dtype)
    single = [functions["round_to_odd"](e) for e in x] if dtype is np.float64 else x
    found = np.array([functions["round_to_half"](e) for e in single])
    np.testing.assert_array_equal(found, x.astype(np.float16).astype(np.float32))


@pytest.mark.parametrize("name", ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"])
def test_floats_to_integers(name: str) -> None:
    function = support(f"float_to_{name}")[f"float_to_{name}"]
    x = np.array([0.5, -1.5, 100.7, -100.7, 300.7, 1e5])
    expected = x.astype(f"{name[0]}{int(name[1:]) // 8}")
    np.testing.assert_array_equal([function(e) for e in x], expected)
    assert function(np.nan).dtype == expected.dtype
