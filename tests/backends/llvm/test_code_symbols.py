"""Functions that LLVM's code generator calls without naming them in the module."""

import ctypes

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.backends.llvm import code_symbols, target
from jitgrad.core.errors import BackendError

MISSING = """
declare i64 @jitgrad_no_such_function()
define i64 @entry() {
  %r = call i64 @jitgrad_no_such_function()
  ret i64 %r
}
"""
SINGLE_OF_HALF = """
define float @rounded(double %x) {
  %half = fptrunc double %x to half
  %single = fpext half %half to float
  ret float %single
}
"""


def test_a_function_without_address_is_an_error_not_a_jump_to_0():
    code = target.emit(target.optimize(MISSING, [], "entry"))
    with pytest.raises(BackendError, match="jitgrad_no_such_function"):
        target.load_code(code, "entry")


def test_undefined_symbols_are_those_without_a_definition():
    code = target.emit(target.optimize(MISSING, [], "entry"))
    if code[:4] != b"\x7fELF":
        pytest.skip("reads ELF only")
    assert code_symbols.undefined_symbols(code) == {"jitgrad_no_such_function"}
    assert code_symbols.undefined_symbols(b"no object code") == frozenset()


def test_doubles_are_rounded_to_halves_once():
    rng = np.random.default_rng(0)
    halves = rng.integers(0, 0x7C00, 2000).astype(np.uint16).view(np.float16).astype(np.float64)
    ties = (halves + np.nextafter(halves.astype(np.float16), np.float16(np.inf)).astype(np.float64)) / 2
    beside = np.concatenate([np.nextafter(ties, 0), np.nextafter(ties, np.inf), -ties])
    x = np.concatenate([halves, ties, beside, [np.nan, np.inf, 1e30, 1e-30, 65520.0]])
    engine, address = target.load_code(target.emit(target.optimize(SINGLE_OF_HALF, [], "rounded")), "rounded")
    rounded = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_double)(address)
    with np.errstate(over="ignore"):
        expected = x.astype(np.float16).astype(np.float32)
    np.testing.assert_array_equal(np.array([rounded(v) for v in x], np.float32), expected)
    assert engine is not None


def test_a_sign_taken_from_a_small_integer_in_float16():
    """copysign with a double's sign is folded into float16, which rounds the sign: a jump to 0."""
    x = np.arange(-9, 10, dtype=np.int8)
    for op in (jg.erfinv, jg.arcsin, jg.arctan, jg.sinh):
        compiled, eager = jg.jit(lambda x, op=op: op(x))(jg.tensor(x)), op(jg.tensor(x))
        np.testing.assert_allclose(np.asarray(compiled), np.asarray(eager), rtol=2e-3)
