"""The builtin that enters native code: arguments, errors, reference counts, and the ctypes fallback."""

import ctypes
import gc
import sys
import weakref

import pytest

from jitgrad.backends.llvm.code_object import compile_entry
from jitgrad.runtime.executor import fastcall

SOURCE = "def kernel(out, start, stop):\n    out[0] = start\n    out[1] = stop\n"


@pytest.fixture(params=[fastcall.bind, fastcall._bind_with_ctypes])
def bound(request):
    """(function, its recorded calls)."""
    code = compile_entry(SOURCE, "kernel", {}, params=("i64*",), key="")
    out = (ctypes.c_int64 * 2)()
    table = (ctypes.c_int64 * 1)(ctypes.addressof(out))
    words = (ctypes.c_int64 * 2)(0, ctypes.addressof(table))
    arguments = (words, code, table) if request.param is fastcall.bind else (words, (code, table))
    yield request.param(code.address, *arguments), out


@pytest.mark.parametrize("pair", [(0, 0), (1, -1), (2**62, 7), (-(2**63), 2**63 - 1)])
def test_integers_arrive(bound, pair):
    run, out = bound

    assert run(*pair) is None
    assert tuple(out) == pair


@pytest.mark.parametrize("arguments", [(), (1,), (1, 2, 3), (1, "2"), (1.5, None)])
def test_wrong_arguments_are_errors(bound, arguments):
    run, _ = bound

    with pytest.raises((TypeError, ctypes.ArgumentError)):
        run(*arguments)


@pytest.mark.parametrize("bind", [fastcall.bind, lambda loop, words, *owners: fastcall._bind_with_ctypes(loop, words, owners)])
def test_function_owns_the_memory_it_uses(bind):
    """A replaced pool stays alive while a call still uses it."""
    code = compile_entry(SOURCE, "kernel", {}, params=("i64*",), key="")
    table = (ctypes.c_int64 * 1)(0)
    words = (ctypes.c_int64 * 2)(0, ctypes.addressof(table))
    run, alive = bind(code.address, words, code, table), weakref.ref(table)

    del table
    assert alive() is not None
    del run
    gc.collect()
    assert alive() is None


def test_reference_counts_are_kept(bound):
    run, _ = bound
    before = sys.getrefcount(None)
    number = 10**15

    for _ in range(1000):
        run(number, number)

    assert abs(sys.getrefcount(None) - before) < 500
    assert sys.getrefcount(number) < 20
