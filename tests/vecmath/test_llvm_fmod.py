"""The exact remainder in LLVM IR: that which kernels for GPUs call, compiled for the host, and that of vectors."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from llvmlite import binding, ir

from jitgrad.backends.eager_loops import compile_loop
from jitgrad.core.op import REGISTRY
from jitgrad.eager.loops import loop_of_op
from jitgrad.vecmath.llvm_fmod import exact_fmod

KINDS = {np.float32: (ir.FloatType(), ctypes.c_float, np.uint32), np.float64: (ir.DoubleType(), ctypes.c_double, np.uint64)}


@pytest.fixture(params=KINDS, ids=lambda dtype: dtype.__name__)
def compiled(request: Any) -> Iterator[tuple[Any, Any]]:
    kind, c_type, _ = KINDS[request.param]
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    module = ir.Module("remainder")
    exact_fmod(module, kind).linkage = "external"
    parsed = binding.parse_assembly(str(module))
    parsed.verify()
    engine = binding.create_mcjit_compiler(parsed, binding.Target.from_default_triple().create_target_machine())
    engine.finalize_object()
    address = engine.get_function_address(f"jitgrad.fmod.{kind}")
    yield request.param, ctypes.CFUNCTYPE(c_type, c_type, c_type)(address)
    engine.close()


def operands(dtype: Any) -> Iterator[tuple[Any, Any]]:
    rng, bits = np.random.default_rng(0), KINDS[dtype][2]
    info = np.finfo(dtype)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -3.0, 7.5, info.max, info.tiny, info.smallest_subnormal]
    yield from ((dtype(x), dtype(y)) for x in special for y in special)
    raw = rng.integers(0, np.iinfo(bits).max, (2, 1000), dtype=bits, endpoint=True).view(dtype)
    yield from zip(*raw, strict=True)
    near = rng.standard_normal(1000).astype(dtype)
    yield from zip((near * rng.integers(1, 1 << 20, 1000)).astype(dtype), near, strict=True)  # near a multiple


def test_remainders_have_the_bits_of_fmod(compiled: tuple[Any, Any]) -> None:
    dtype, function = compiled
    pairs = list(operands(dtype))
    found = np.array([function(x, y) for x, y in pairs], dtype)
    with np.errstate(all="ignore"):
        expected = np.fmod(*np.array(pairs, dtype).T)
    np.testing.assert_array_equal(found, expected)
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found[number]), np.signbit(expected[number]))


@pytest.mark.parametrize("name", ["fmod", "remainder", "floor_divide"])
@pytest.mark.parametrize("dtype", KINDS, ids=lambda dtype: dtype.__name__)
def test_vectors_have_the_bits_of_numpy(dtype: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Quotients that round up to an integer, or are too large for it, in vectors with others and without."""
    monkeypatch.setenv("JITGRAD_BACKEND", "cpu")
    x, y = np.array(list(operands(dtype)), dtype).T.copy()
    ufunc = compile_loop(loop_of_op(REGISTRY[name], (x.dtype, y.dtype), (False, False)))
    assert ufunc is not None

    for first in range(0, 40):
        with np.errstate(all="ignore"):
            found, expected = ufunc(x[first:], y[first:]), getattr(np, name)(x[first:], y[first:])
        np.testing.assert_array_equal(found, expected)
        number = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found[number]), np.signbit(expected[number]))
