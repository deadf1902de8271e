"""Machine code on disk: which code is loaded again, and which must never be stored."""

import ctypes
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from jitgrad.backends.llvm import disk_cache
from jitgrad.backends.llvm.code_object import compile_entry
from jitgrad.core.errors import CacheWarning

FLAT = """
def kernel(x0, x1, y0, y1, alpha, start, stop):
    for i in range(start, stop):
        a0 = x0[i]
        t0 = a0 * x1[i]
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
FORMS = {"flat": (FLAT, ("f32*",) * 4 + ("f32",)), "sum": (SUM, ("f32*", "f32*", "i64"))}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("JITGRAD_CACHE_DIR", str(tmp_path))
    return tmp_path / "kernels"


def build(name, key):
    source, params = FORMS[name]
    return compile_entry(source, "kernel", {}, params=params, key=key)


def test_second_compilation_comes_from_disk():
    first, second = build("flat", key=""), build("flat", key="")
    x = np.ones(10, np.float32)
    y0, y1 = np.zeros((2, 10), np.float32)

    words = np.array([x.ctypes.data, x.ctypes.data, y0.ctypes.data, y1.ctypes.data, int(np.float32(1).view("u4"))])
    kernel = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(second.address)
    kernel(words.ctypes.data, 0, 10)

    assert (first.from_disk, second.from_disk) == (False, True)
    assert (first.object_code, first.source) == (second.object_code, second.source)
    assert y1.tolist() == [2.0] * 10
    assert "vector.body" in second.llvm


def test_key_and_parameters_are_in_the_disk_key():
    build("flat", key="")

    assert not build("flat", key="other").from_disk
    assert not build("flat", key=None).from_disk
    assert len(disk_cache.entries()) == 2


def test_damaged_entry_is_compiled_again(folder):
    build("sum", key="")
    (path,) = folder.glob("*.kernel")
    path.write_bytes(path.read_bytes()[:-10])

    with pytest.warns(CacheWarning):
        assert not build("sum", key="").from_disk
    assert build("sum", key="").from_disk


def test_absolute_addresses_stay_off_the_disk():
    from llvmlite import ir

    from jitgrad.backends.llvm.types import F32, PointerType, TypedValue

    def here(builder):
        kind = PointerType(F32)
        return TypedValue(kind, ir.Constant(ir.IntType(64), 0x7F0000001000).inttoptr(kind.llvm))

    text = "def kernel(y0, start, stop):\n    y0[0] = here()[start]\n"
    compile_entry(text, "kernel", {"here": here}, params=("f32*",), key="")

    assert disk_cache.entries() == []


def test_second_process_needs_no_numba(folder):
    build("sum", key="")
    script = (
        "import sys\n"
        "from jitgrad.backends.llvm.code_object import compile_entry\n"
        f"code = compile_entry({SUM!r}, 'kernel', {{}}, params={FORMS['sum'][1]!r}, key='')\n"
        "print(code.from_disk, 'numba' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)

    assert done.stdout.split() == ["True", "False"], done.stderr


def test_code_that_calls_what_this_process_lacks_is_compiled_again(monkeypatch):
    """LLVM ends the process when it meets a name that it cannot find."""
    build("sum", key="")
    load = disk_cache.load_entry
    monkeypatch.setattr(disk_cache, "load_entry", lambda name: replace(load(name), externals=("no_such_symbol",)))

    assert not build("sum", key="").from_disk
