"""The builtin that enters native code: arguments, errors, reference counts, and the ctypes fallback."""

import ctypes
import sys

import pytest

from jitgrad.backends.machine import compile_entry
from jitgrad.runtime import builtin

SOURCE = "def kernel(out, start, stop):\n    out[0] = start\n    out[1] = stop\n"


@pytest.fixture(params=[builtin.bind, builtin._bind_with_ctypes])
def bound(request):
    """(function, what it was called with)."""
    code = compile_entry(SOURCE, "kernel", {}, params=("i64*",), key="")
    out = (ctypes.c_int64 * 2)()
    table = (ctypes.c_int64 * 1)(ctypes.addressof(out))
    words = (ctypes.c_int64 * 2)(0, ctypes.addressof(table))
    yield request.param(code.address, words), out
    assert (code, words) is not None


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


def test_reference_counts_are_kept(bound):
    run, _ = bound
    before = sys.getrefcount(None)
    number = 10**15

    for _ in range(1000):
        run(number, number)

    assert abs(sys.getrefcount(None) - before) < 500
    assert sys.getrefcount(number) < 20
