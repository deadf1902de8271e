"""Casts of kernels have NumPy's results, and one result where C has none."""

import numpy as np
import pytest

from jitgrad.backends.llvm import casts
from tests.machine_code import unary

EDGES = np.array([0.0, -0.0, 1.5, -1.5, 127.9, 128.0, 255.9, -129.0, 65535.0, 2.0**31, -(2.0**31), 4e9, 2.0**40])


@pytest.mark.parametrize("source", ["f32", "f64"])
@pytest.mark.parametrize("target", ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool", "f32", "f64"])
def test_casts_from_floats_agree_with_numpy(source, target):
    x = EDGES.astype(source[0] + str(int(source[1:]) // 8))
    dtype = np.dtype(target if target == "bool" else target[0] + str(int(target[1:]) // 8))
    fits = np.ones(x.shape, bool)
    if dtype.kind in "iu":
        fits = (x.astype(np.float64) > float(np.iinfo(dtype).min) - 1) & (x < float(np.iinfo(dtype).max) + 1)

    got = unary(f"to_{target}(x)", source, target, x)

    np.testing.assert_array_equal(got[fits], x[fits].astype(dtype))


@pytest.mark.parametrize("lacks", [True, False])
@pytest.mark.parametrize("source", ["f32", "f64"])
def test_casts_to_int64_are_exact_with_and_without_the_instruction(source, lacks, monkeypatch):
    monkeypatch.setattr(casts, "lacks_wide_casts", lambda: lacks)
    magnitudes = np.ldexp(np.random.default_rng(0).uniform(1, 2, 640), np.repeat(np.arange(-1, 63), 10))
    near = [2.0**31, 2.0**32, 2.0**52, 2.0**53, 2.0**62, 0.5, 1.0, 4294967295.0, 4294967297.0]
    x = np.concatenate([magnitudes, near, np.nextafter(near, 0), [0.0]]).astype(f"f{int(source[1:]) // 8}")
    x = np.concatenate([x, -x, [-(2.0**63)]]).astype(x.dtype)
    x = x[(x < 2.0**63)]

    np.testing.assert_array_equal(unary("to_i64(x)", source, "i64", x), x.astype(np.int64))
    outside = np.array([np.nan, np.inf, -np.inf, 2.0**63, 1e30, -1e30], x.dtype)
    assert set(unary("to_i64(x)", source, "i64", outside)) == {-(2**63)}


def test_casts_that_c_leaves_undefined_are_fixed():
    x = np.array([np.nan, np.inf, -np.inf, 1e30] * 20, np.float32)

    assert set(unary("to_i32(x)", "f32", "i32", x)) == {-(2**31)}
    assert set(unary("to_i64(x)", "f32", "i64", x)) == {-(2**63)}
    assert set(unary("to_u8(x)", "f32", "u8", np.full(40, -1.0, np.float32))) == {255}
    assert unary("to_u64(x)", "f64", "u64", np.array([2.0**63, 2.0**64 - 4096])).tolist() == [2**63, 2**64 - 4096]


@pytest.mark.parametrize("target", ["i8", "u16", "i64", "u64", "f32", "bool"])
@pytest.mark.parametrize("source", ["i8", "u8", "i32", "i64"])
def test_casts_from_integers_agree_with_numpy(source, target):
    dtype = np.dtype(source[0] + str(int(source[1:]) // 8))
    x = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max, 0, 1, 100], dtype)
    to = np.dtype(target if target == "bool" else target[0] + str(int(target[1:]) // 8))

    np.testing.assert_array_equal(unary(f"to_{target}(x)", source, target, x), x.astype(to))
