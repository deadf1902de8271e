"""What LLVM makes of the vector mathematics, and how the namespaces treat types."""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from jitgrad.compiler.codegen.vecmath import FUNCTIONS, numba_namespace, numpy_namespace

SCALAR = {"floor_divide", "fmod", "remainder"}  # LLVM has no vector form of frem: a call to libm
BRANCHING = {"sin", "cos", "tan"}
VECTORISED = sorted(set(FUNCTIONS) - SCALAR)


def cfunc_of(name: str, width: int, **options: bool) -> Any:
    """``y[i] = name(x[i])`` or ``name(a[i], b[i])`` over pointers, as kernels call it."""
    import numba
    from numba import types

    element = types.float32 if width == 32 else types.float64
    function, pointer = numba_namespace()[name], types.CPointer(element)
    result = types.uint8 if FUNCTIONS[name].boolean else element

    def unary(x, y, n):
        for i in range(n):
            y[i] = function(x[i])

    def binary(a, b, y, n):
        for i in range(n):
            y[i] = function(a[i], b[i])

    arity = FUNCTIONS[name].arity
    signature = types.void(*[pointer] * arity, types.CPointer(result), types.intp)
    return numba.cfunc(signature, error_model="numpy", **options)(unary if arity == 1 else binary)


def assembly(name: str, width: int) -> str:
    return cfunc_of(name, width)._library.get_asm_str().split("\tcfunc.")[0]  # without the wrapper, which calls it


def has_wide_vectors() -> bool:
    from llvmlite import binding

    return binding.get_host_cpu_features().get("avx2", False)


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("name", VECTORISED)
def test_a_loop_is_vectorised_and_calls_no_library(name, width):
    """sin, cos and tan may call vector forms of their own, for large arguments."""
    text = assembly(name, width)
    called = set(re.findall(r"movabsq\s+\$([A-Za-z_]\w*)", text)) if re.search(r"\bcall", text) else set()

    assert all(re.fullmatch(rf"jitgrad_{name}_large_f{width}(_v\d+)?", symbol) for symbol in called)
    assert bool(called) == (name in BRANCHING)
    if has_wide_vectors():
        assert re.search(r"[yz]mm\d", text)
    if called and has_wide_vectors():
        assert any(re.search(r"_v\d+$", symbol) for symbol in called)  # only the kernel's loop can be the caller


@pytest.mark.skipif(not has_wide_vectors(), reason="reads x86 assembly with 256-bit vectors")
@pytest.mark.parametrize("name", sorted(BRANCHING))
def test_a_kernel_calls_the_vector_forms_for_large_arguments(name):
    """LLVM's list of used functions has to keep them in the module until the vectoriser comes to the loop."""
    from jitgrad.backends import front, llvm

    source = f"def kernel(x, y, start, stop):\n    for i in range(start, stop):\n        y[i] = {name}(x[i])\n"
    text, linked = front.lower(source, "kernel", ("f32*", "f32*"), numba_namespace(), llvm.vector_bits())
    kernel = llvm.assembly(llvm.optimize(text, linked, "kernel"))

    assert re.search(rf"movabsq\s+\$jitgrad_{name}_large_f32_v(8|16)\b", kernel)


def test_one_kernel_may_mix_formats_large_arguments_and_nested_functions():
    import numba

    sin, cos, tan = (numba_namespace()[name] for name in ("sin", "cos", "tan"))
    nested = numba.njit(lambda x: sin(x) + cos(x))

    @numba.njit(error_model="numpy")
    def kernel(x, y, out):
        for i in range(x.size):
            out[i] = nested(x[i]) + cos(y[i]) + sin(x[i]) + tan(y[i])

    rng = np.random.default_rng(3)
    x = np.where(rng.random(1003) < 0.1, 1e20, 1.0) * rng.uniform(-30, 30, 1003)
    y, out = x[::-1].astype(np.float32), np.empty(1003)
    kernel(x, y, out)
    single = (np.cos(y.astype(np.float64)).astype(np.float32), np.tan(y.astype(np.float64)).astype(np.float32))

    assert np.allclose(out, 2 * np.sin(x) + np.cos(x) + single[0] + single[1], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["exp", "log1p", "sin", "log2", "erfc"])
def test_fast_math_of_the_caller_changes_no_bit(name):
    x = np.random.default_rng(0).uniform(0.01, 30, 1000)
    plain, fast = np.empty_like(x), np.empty_like(x)
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_ssize_t)
    for out, options in ((plain, {}), (fast, {"fastmath": True})):
        function = cfunc_of(name, 64, **options)
        prototype(function.address)(x.ctypes.data, out.ctypes.data, out.size)

    assert np.array_equal(plain, fast)


def test_the_package_imports_no_numba():
    code = "import sys, jitgrad.compiler.codegen.vecmath; sys.exit('numba' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_results_have_the_type_of_the_operands(name):
    for dtype in (np.float32, np.float64):
        operands = [dtype(1.5), dtype(0.5)][: FUNCTIONS[name].arity]
        scalar = numpy_namespace()[name](*operands)
        array = numpy_namespace()[name](*[np.full((2, 3), x) for x in operands])

        assert scalar.dtype == (np.bool_ if FUNCTIONS[name].boolean else dtype)
        assert scalar.shape == ()
        assert array.shape == (2, 3)
        assert array.dtype == scalar.dtype


def test_other_types_are_refused():
    import numba
    from numba.core.errors import TypingError

    exp, pow_ = numba_namespace()["exp"], numba_namespace()["pow"]
    with pytest.raises(TypingError, match="float32 or all float64"):
        numba.njit(lambda x: exp(x + 1))(3)
    with pytest.raises(TypingError, match="float32 or all float64"):
        numba.njit(lambda x, y: pow_(y, x))(np.float64(2), np.float32(2))
    with pytest.raises(TypeError, match="got int64"):
        numpy_namespace()["exp"](np.arange(3))
    with pytest.raises(TypeError, match="float32, float64"):
        numpy_namespace()["pow"](np.float32(2), np.float64(2))


@pytest.mark.parametrize("name", ["COS", "SINH"])
def test_the_fitting_script_made_the_coefficients(name):
    import mpmath as mp

    from jitgrad.compiler.codegen.vecmath import coefficients, fit

    with mp.workprec(160):
        target = next(t for t in fit.targets() if t.name == name)
        values, error = fit.fit(target, 32, target.degrees[0])

    assert tuple(values) == getattr(coefficients, name)[32]
    assert error < 2.0**-30
