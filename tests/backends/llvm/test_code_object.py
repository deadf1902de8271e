"""Kernel source to machine code: right values, vector code, no exceptions, and reuse from disk."""

import re
import threading
from pathlib import Path

import numpy as np
import pytest

from jitgrad.backends.llvm import target
from jitgrad.backends.llvm.code_object import compile_entry
from jitgrad.backends.llvm.unroll import USUAL
from jitgrad.core.errors import BackendError
from tests.machine_code import AVX2, AVX512, CPUS, LOOP, kernel_assembly, needs_x86, run, table, unary

FLAT = """
def kernel(x0, x1, y0, y1, alpha, start, stop):
    for i in range(start, stop):
        a0 = x0[i]
        a1 = x1[i]
        t0 = a0 * a1
        t1 = select(t0 > to_f32(0.0), t0, t0 * alpha)
        y0[i] = t1
        y1[i] = t1 + a0
"""
SUM = """
def kernel(x0, p0, grain, start, stop):
    acc = to_f32(0.0)
    for i in range(start, stop):
        acc = reassoc_add(acc, x0[i])
    p0[start // grain] = acc
"""
ROWS = """
def kernel(x0, y0, n, start, stop):
    for r in range(start, stop):
        row = at(x0, r * n)
        out = at(y0, r * n)
        m = to_f32(NEG_INF)
        for i in range(n):
            m = fmax(m, row[i])
        s = to_f32(0.0)
        for i in range(n):
            t = (row[i] - m) * (row[i] - m)
            out[i] = t
            s = reassoc_add(s, t)
        for i in range(n):
            out[i] = out[i] / s
"""
COLUMNS = """
def kernel(x0, p0, n, grain, start, stop):
    acc = at(p0, start // grain * n)
    for j in range(n):
        acc[j] = to_f32(0.0)
    for r in range(start, stop):
        row = at(x0, r * n)
        for j in range(n):
            acc[j] = acc[j] + row[j]
"""
WIDE = "def kernel({names}, y0, start, stop):\n    for i in range(start, stop):\n        y0[i] = {total}\n".format(
    names=", ".join(f"x{k}" for k in range(16)), total=" + ".join(f"x{k}[i]" for k in range(16))
)
FORMS = {
    "flat": (FLAT, ("f32*",) * 4 + ("f32",), 1),
    "sum": (SUM, ("f32*", "f32*", "i64"), 1),
    "rows": (ROWS, ("f32*", "f32*", "i64"), 3),
    "columns": (COLUMNS, ("f32*", "f32*", "i64", "i64"), 1),
    "wide": (WIDE, ("f32*",) * 17, 1),
}
NAMESPACE = {"NEG_INF": float("-inf")}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("JITGRAD_CACHE_DIR", str(tmp_path))
    return tmp_path / "kernels"


def build(name, key=None):
    source, params, _ = FORMS[name]
    return compile_entry(source, "kernel", NAMESPACE, params=params, key=key)


@pytest.mark.parametrize("n", [0, 1, 7, 64, 133])
def test_flat(n):
    rng = np.random.default_rng(n)
    x0, x1 = rng.standard_normal((2, n), np.float32)
    y0, y1 = np.full((2, n), np.nan, np.float32)

    run(build("flat"), table(x0, x1, y0, y1, np.float32(0.1)), 0, n)

    t0 = x0 * x1
    expected = np.where(t0 > 0, t0, t0 * np.float32(0.1))
    np.testing.assert_array_equal(y0, expected)
    np.testing.assert_array_equal(y1, expected + x0)


def test_only_the_range_is_written():
    x0, x1 = np.ones((2, 100), np.float32)
    y0, y1 = np.zeros((2, 100), np.float32)

    run(build("flat"), table(x0, x1, y0, y1, np.float32(0.1)), 33, 71)

    assert np.flatnonzero(y0).tolist() == list(range(33, 71))


def test_sum_and_columns():
    x = np.random.default_rng(0).standard_normal((50, 37)).astype(np.float32)
    partial, columns = np.zeros(4, np.float32), np.zeros((2, 37), np.float32)

    run(build("sum"), table(x, partial, 500), 1000, 1500)
    run(build("columns"), table(x, columns, 37, 25), 25, 50)

    np.testing.assert_allclose(partial, [0, 0, x.ravel()[1000:1500].sum(), 0], rtol=1e-4)
    np.testing.assert_allclose(columns, [np.zeros(37), x[25:].sum(0)], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("n", [1, 16, 100])
def test_rows(n):
    x = np.random.default_rng(n).standard_normal((9, n)).astype(np.float32)
    x[0, 0] += 1
    out = np.zeros_like(x)

    run(build("rows"), table(x, out, n), 0, 9)

    t = (x - x.max(1, keepdims=True)) ** 2
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(out, t / t.sum(1, keepdims=True), rtol=1e-5)


@needs_x86
@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("name", FORMS)
def test_documented_forms_vectorise(name, cpu):
    source, params, loops = FORMS[name]
    llvm, _ = kernel_assembly(cpu, source, params, NAMESPACE)

    assert llvm.count("vector.body") >= loops
    assert "vector.memcheck" not in llvm


@needs_x86
@pytest.mark.parametrize(("cpu", "floats", "register"), [(AVX2, 8, "ymm"), (AVX512, 16, "zmm")])
def test_vectors_are_as_wide_as_registers(cpu, floats, register):
    llvm, assembly = kernel_assembly(cpu, *FORMS["flat"][:2])

    assert f"<{floats} x float>" in llvm
    assert register in assembly


@needs_x86
@pytest.mark.parametrize("cpu", CPUS)
def test_loops_work_on_several_vectors_at_once(cpu):
    divisions = LOOP + "        y0[i] = to_f32(1.0) / x0[i]\n"
    llvm, _ = kernel_assembly(cpu, divisions, ("f32*", "f32*"))
    assert len(re.findall(r"fdiv <\d+ x float>", llvm)) >= USUAL


def test_maximum_keeps_nan():
    x = np.arange(100, dtype=np.float32)
    x[41] = np.nan
    text = LOOP.replace("for", "m = x0[start]\n    for", 1) + "        m = fmax(m, x0[i])\n    y0[0] = m\n"
    out = np.zeros(1, np.float32)

    run(compile_entry(text, "kernel", {}, params=("f32*", "f32*"), key=None), table(x, out), 0, 100)

    assert np.isnan(out[0])


SCALARS = {"f32": np.float32(-1.5), "f64": np.float64(1e300), "i8": -7, "i16": -300, "i32": -(2**31), "i64": -(2**63)}
SCALARS |= {"u8": 200, "u16": 60_000, "u32": 2**32 - 1, "u64": 2**63 - 1, "bool": True}


@pytest.mark.parametrize("kind", SCALARS)
def test_scalar_parameters_arrive(kind):
    value = SCALARS[kind]
    text = f"def kernel(y0, x, start, stop):\n    y0[start] = to_{kind}(x)\n"
    out = np.zeros(2, np.dtype(kind if kind == "bool" else kind[0] + str(int(kind[1:]) // 8)))

    run(compile_entry(text, "kernel", {}, params=(kind + "*", kind), key=None), table(out, value), 1, 2)

    assert out.tolist() == [0, value]


def test_booleans_in_memory():
    x = np.linspace(-1, 1, 99).astype(np.float32)

    mask = unary("x > to_f32(0.0)", "f32", "bool", x)

    np.testing.assert_array_equal(mask, x > 0)
    np.testing.assert_array_equal(unary("to_f32(to_bool(x))", "bool", "f32", mask), mask.astype(np.float32))


@pytest.mark.parametrize("name", ["rint", "sqrt", "fabs", "floor", "ceil", "trunc"])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_float_functions_agree_with_numpy(name, dtype):
    x = np.abs(np.linspace(-3, 3, 49)).astype(dtype[0] + str(int(dtype[1:]) // 8))

    np.testing.assert_array_equal(unary(f"{name}(x)", dtype, dtype, x), getattr(np, name)(x))


def test_bit_casts():
    x = np.array([1.0, -0.0, np.inf], np.float32)

    np.testing.assert_array_equal(unary("as_i32(x)", "f32", "i32", x), x.view(np.int32))
    np.testing.assert_array_equal(unary("as_f32(as_i32(x))", "f32", "f32", x), x)


def test_user_arithmetic_is_not_reassociated():
    x = np.full(64, 1e-8, np.float32)

    np.testing.assert_array_equal(unary("(x + to_f32(1.0)) - to_f32(1.0)", "f32", "f32", x), np.zeros(64, np.float32))


@pytest.mark.parametrize("sign", ["-", "+"])
def test_multiply_and_add_are_rounded_apart(sign):
    """Fused to one instruction, x * x minus its rounded value would be the rounding error, not zero."""
    x = np.random.default_rng(0).standard_normal(500).astype(np.float32)
    rounded = "to_f32(to_f64(x) * to_f64(x))"
    expression = f"x * x - {rounded}" if sign == "-" else f"x * x + (to_f32(0.0) - {rounded})"

    assert not unary(expression, "f32", "f32", x).any()


def test_fma_rounds_once():
    x = np.random.default_rng(0).standard_normal(500).astype(np.float32)
    y = unary("fma(x, x, to_f32(0.0) - to_f32(to_f64(x) * to_f64(x)))", "f32", "f32", x)

    assert y.any() == target.binding.get_host_cpu_features().get("fma", True)


def test_denormals_are_kept():
    x = np.full(64, 1e-40, np.float32)

    np.testing.assert_array_equal(unary("x * to_f32(1.0) + x", "f32", "f32", x), x + x)


def test_threads_compile_at_once():
    texts = [LOOP + f"        y0[i] = x0[i] * to_f32({k})\n" for k in range(8)]
    x, results = np.ones(20, np.float32), {}

    def work(k):
        y = np.empty_like(x)
        run(compile_entry(texts[k], "kernel", {}, params=("f32*", "f32*"), key=""), table(x, y), 0, 20)
        results[k] = set(y)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert results == {k: {k} for k in range(8)}


def test_memory_of_dropped_kernels_is_freed():
    """Object code lives in its engine's pages; 300 kernels would keep more than 3 MB."""
    code = build("flat")
    path = Path("/proc/self/statm")
    if not path.exists():
        pytest.skip("needs /proc")
    held = [target.load_code(code.object_code, "kernel") for _ in range(20)]
    held.clear()
    before = int(path.read_text().split()[0])
    for _ in range(300):
        target.load_code(code.object_code, "kernel")

    assert int(path.read_text().split()[0]) - before < 400  # pages of 4 kB


@needs_x86
def test_functions_that_numba_compiled_are_inlined():
    from jitgrad.backends.llvm.numba_function import numba_function

    text = LOOP + "        y0[i] = square(x0[i])\n"

    llvm, _ = kernel_assembly(AVX2, text, ("f32*", "f32*"), {"square": numba_function(lambda x: x * x)})

    assert "vector.body" in llvm


@needs_x86
def test_functions_of_the_source_are_inlined():
    text = "def twice(x):\n    return x + x\n\n\ndef fourfold(x):\n    return twice(twice(x))\n\n\n"
    x = np.arange(40, dtype=np.float32)
    y = np.empty_like(x)

    text += LOOP + "        y0[i] = fourfold(x0[i])\n"
    code = compile_entry(text, "kernel", {}, params=("f32*", "f32*"), key=None)
    run(code, table(x, y), 0, 40)

    assert "vector.body" in kernel_assembly(AVX2, text, ("f32*", "f32*"))[0]
    np.testing.assert_array_equal(y, 4 * x)


@pytest.mark.parametrize("dtype", ["f32", "f64", "i8", "u64"])
@pytest.mark.parametrize("n", [1, 3, 8, 16])
def test_rows_are_added_as_one_vector(dtype, n):
    text = f"def kernel(y, x, start, stop):\n    for k in range(start, stop):\n        add_row(y, at(x, k * {n}), {n})\n"
    code = compile_entry(text, "kernel", {}, params=(dtype + "*", dtype + "*"), key=None)
    kind = np.dtype(dtype[0] + str(int(dtype[1:]) // 8))
    x = np.random.default_rng(n).integers(0, 100, (5, n)).astype(kind)
    y = np.ones(n + 1, kind)

    run(code, table(y, x), 0, 5)

    np.testing.assert_array_equal(y, np.append(x.sum(0, dtype=kind) + kind.type(1), kind.type(1)))
    if dtype[0] == "f" and n == 8:
        assert "fadd <8 x" in code.llvm


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("n", [1, 3, 8, 31])
def test_a_multiple_of_a_row_is_subtracted_as_one_vector(dtype, n):
    text = f"def kernel(y, x, f, start, stop):\n    subtract_row(at(y, 1), f, x, {n})\n"
    code = compile_entry(text, "kernel", {}, params=(dtype + "*", dtype + "*", dtype), key=None)
    kind = np.dtype(dtype[0] + str(int(dtype[1:]) // 8))
    x, y = np.arange(n, dtype=kind) + 1, np.ones(n + 2, kind)

    run(code, table(y, x, kind.type(2.5)), 0, 1)

    np.testing.assert_array_equal(y, np.concatenate([[1], 1 - 2.5 * x, [1]]))


def test_source_that_can_raise_is_refused():
    text = "def kernel(y0, n, start, stop):\n    for i in range(start, stop, n):\n        y0[i] = i\n"

    with pytest.raises(BackendError, match="can raise"):
        compile_entry(text, "kernel", {}, params=("i64*", "i64"), key=None)


def test_mistyped_source_is_an_error():
    text = "def kernel(y0, start, stop):\n    y0[0] = select(start > 0, to_f32(1.0), 2)\n"

    with pytest.raises(BackendError, match="one dtype"):
        compile_entry(text, "kernel", {}, params=("f32*",), key=None)
    row = "def kernel(y0, start, stop):\n    add_row(y0, y0, stop)\n"
    with pytest.raises(BackendError, match="a literal number"):
        compile_entry(row, "kernel", {}, params=("f32*",), key=None)
    for row in ("subtract_row(y0, to_f64(1.0), y0, 8)", "subtract_row(y0, to_f32(1.0), start, 8)"):
        with pytest.raises(BackendError, match="pointer"):
            compile_entry(f"def kernel(y0, start, stop):\n    {row}\n", "kernel", {}, params=("f32*",), key=None)
    with pytest.raises(BackendError, match="parameter type 'f128"):
        compile_entry(text, "kernel", {}, params=("f128*",), key=None)


def test_unknown_symbols_are_not_loaded():
    assert target.resolvable(("fmodf", "memset"))
    assert not target.resolvable(("no_such_symbol_anywhere",))
