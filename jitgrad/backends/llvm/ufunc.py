"""NumPy ufuncs whose loop is machine code."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy._core import _multiarray_umath

from jitgrad.backends.llvm.code_object import CodeObject, compile_ir
from jitgrad.core.aval import Dtype

_FROM_FUNCTIONS = 1  # the place of PyUFunc_FromFuncAndData in NumPy's table of C functions
_NO_IDENTITY = -1
_ALIVE: list[Any] = []  # ufuncs refer to code, and live as long as the process


def inner_loop(itemsizes: Sequence[int], expected: Sequence[int]) -> str:
    """LLVM IR of the loop of a ufunc, ``void loop(char **args, intptr *dims, intptr *steps, void *data)``.

    ``data`` has the addresses of two kernels, which take the table ``args``: one for operands whose elements are
    ``expected`` bytes apart, and one that finds these distances, in elements, in the table behind the pointers.
    ``itemsizes`` are those of operands and result.
    """
    count = len(itemsizes)
    lines = ["define void @loop(ptr %args, ptr %dims, ptr %steps, ptr %data) nounwind {", "%n = load i64, ptr %dims"]
    lines += [f"%table = alloca [{2 * count} x i64]", "%c = icmp eq i64 0, 0"]
    before = "%c"
    for k, size in enumerate(expected):
        lines += [
            f"%p{k} = getelementptr i64, ptr %steps, i64 {k}",
            f"%s{k} = load i64, ptr %p{k}",
            f"%e{k} = icmp eq i64 %s{k}, {size}",
            f"%c{k} = and i1 {before}, %e{k}",
        ]
        before = f"%c{k}"
    lines += [f"br i1 {before}, label %usual, label %strided", "usual:"]
    lines += ["%f = load ptr, ptr %data", "call void %f(ptr %args, i64 0, i64 %n)", "ret void", "strided:"]
    for k, size in enumerate(itemsizes):
        lines += [
            f"%a{k} = getelementptr i64, ptr %args, i64 {k}",
            f"%x{k} = load i64, ptr %a{k}",
            f"%t{k} = getelementptr i64, ptr %table, i64 {k}",
            f"store i64 %x{k}, ptr %t{k}",
            f"%d{k} = sdiv i64 %s{k}, {size}",
            f"%u{k} = getelementptr i64, ptr %table, i64 {count + k}",
            f"store i64 %d{k}, ptr %u{k}",
        ]
    lines += [
        "%h = getelementptr ptr, ptr %data, i64 1",
        "%g = load ptr, ptr %h",
        "call void %g(ptr %table, i64 0, i64 %n)",
    ]
    return "\n".join([*lines, "ret void", "}", ""])


def make_ufunc(
    name: str, usual: CodeObject, strided: CodeObject, dtypes: Sequence[Dtype], steps: Sequence[int]
) -> np.ufunc | None:
    """A ufunc of operands and a result of ``dtypes`` that runs ``usual`` where elements are ``steps`` bytes apart.

    None if NumPy has no way to it.
    Elements must be aligned to their size, which NumPy sees to for dtypes whose alignment is their size.
    """
    capsule = getattr(_multiarray_umath, "_UFUNC_API", None)
    if capsule is None or any(d.alignment != d.itemsize for d in dtypes):
        return None
    loop = compile_ir(inner_loop([d.itemsize for d in dtypes], steps), "loop", key="")
    pointer = ctypes.c_void_p
    functions = (pointer * 1)(loop.address)
    kernels = (pointer * 2)(usual.address, strided.address)
    data = (pointer * 1)(ctypes.addressof(kernels))
    types = ctypes.create_string_buffer(bytes([d.num for d in dtypes]))
    text = ctypes.create_string_buffer(name.encode())
    ufunc = _constructor(capsule)(functions, data, types, 1, len(dtypes) - 1, 1, _NO_IDENTITY, text, text, 0)
    _ALIVE.append((loop, usual, strided, functions, kernels, data, types, text))
    return ufunc  # type: ignore[no-any-return]


def _constructor(capsule: Any) -> Callable[..., Any]:
    """NumPy's PyUFunc_FromFuncAndData."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(get(capsule, None), ctypes.POINTER(ctypes.c_void_p))
    pointer, number = ctypes.c_void_p, ctypes.c_int
    prototype = ctypes.PYFUNCTYPE(
        ctypes.py_object, pointer, pointer, pointer, number, number, number, number, pointer, pointer, number
    )
    return prototype(table[_FROM_FUNCTIONS])
