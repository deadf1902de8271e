"""LLVM's code for the vector mathematics, and the types of the namespaces."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest

from jitgrad.backends.llvm.code_object import compile_entry
from jitgrad.backends.llvm.library_names import native_names
from jitgrad.core.errors import BackendError
from jitgrad.vecmath import FUNCTIONS, numpy_namespace
from tests.machine_code import CPUS, kernel_assembly, needs_x86, run, table
from tests.vecmath.test_functions import loop_source

SCALAR = {"floor_divide", "fmod", "remainder"}  # LLVM has no vector form of frem: a call to libm
BRANCHING = {"sin": "sin", "cos": "cos", "tan": "tan"} | {f"bessel_{name}": "sin|cos" for name in ("j0", "j1", "y0", "y1")}
VECTORISED = sorted(set(FUNCTIONS) - SCALAR)
# every function in both formats and on both CPUs, not each format on each CPU
LOOPS = [(name, width, CPUS[(k + half) % 2]) for k, name in enumerate(VECTORISED) for half, width in enumerate((32, 64))]


@needs_x86
@pytest.mark.parametrize(("name", "width", "cpu"), LOOPS)
def test_a_loop_is_vectorised_and_calls_no_library(name, width, cpu):
    """What is made of sin, cos and tan may call vector forms of these for large arguments."""
    _, text = kernel_assembly(cpu, *loop_source(name, width), interleaves=False)
    addresses = set(re.findall(r"movabsq\s+\$([A-Za-z_][\w.]*)", text))
    called = {name for name in addresses if name != "kernel.body" and not name.startswith("jitgrad.table")}

    assert all(re.fullmatch(rf"jitgrad_({BRANCHING.get(name)})_large_f\d+(_separate)?(_v\d+)?", symbol) for symbol in called)
    assert bool(called) == (name in BRANCHING)
    assert re.search(r"[yz]mm\d", text)
    if called:
        assert any(re.search(r"_v\d+$", symbol) for symbol in called)  # only the kernel's loop can be the caller


def test_one_kernel_may_mix_formats_large_arguments_and_nested_functions():
    text = """
def nested(x):
    return sin(x) + cos(x)


def kernel(x, y, out, start, stop):
    for i in range(start, stop):
        out[i] = nested(x[i]) + to_f64(cos(y[i])) + sin(x[i]) + to_f64(tan(y[i]))
"""
    rng = np.random.default_rng(3)
    x = np.where(rng.random(1003) < 0.1, 1e20, 1.0) * rng.uniform(-30, 30, 1003)
    y, out = x[::-1].astype(np.float32), np.empty(1003)
    code = compile_entry(text, "kernel", native_names(), params=("f64*", "f32*", "f64*"), key=None)
    run(code, table(x, y, out), 0, 1003)
    single = (np.cos(y.astype(np.float64)).astype(np.float32), np.tan(y.astype(np.float64)).astype(np.float32))

    assert np.allclose(out, 2 * np.sin(x) + np.cos(x) + single[0] + single[1], rtol=1e-6, atol=1e-6)


def test_the_package_imports_no_llvm():
    code = "import sys, jitgrad.vecmath; sys.exit('llvmlite' in sys.modules)"

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
    text = "def kernel(x, y, start, stop):\n    x[0] = {}\n"
    for call, found in (("exp(start)", "i64"), ("pow(x[0], y[0])", "f64, f32"), ("exp(x[0], x[0])", "takes 1 operands, found 2")):
        with pytest.raises(BackendError, match=rf"line 2: 'x\[0\] = .*{found}"):
            compile_entry(text.format(call), "kernel", native_names(), params=("f64*", "f32*"), key=None)
    with pytest.raises(TypeError, match="got int64"):
        numpy_namespace()["exp"](np.arange(3))
    with pytest.raises(TypeError, match="float32, float64"):
        numpy_namespace()["pow"](np.float32(2), np.float64(2))
