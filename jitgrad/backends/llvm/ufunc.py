"""NumPy ufuncs whose loop is machine code."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

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
    return _ufunc(capsule, name, loop, [usual.address, strided.address], (usual, strided), dtypes)


def _ufunc(
    capsule: Any, name: str, loop: CodeObject, table: Sequence[int], alive: Any, dtypes: Sequence[Dtype]
) -> np.ufunc:
    """A ufunc with the inner loop ``loop``, whose ``data`` are the words of ``table``."""
    pointer = ctypes.c_void_p
    functions = (pointer * 1)(loop.address)
    words = (pointer * len(table))(*table)
    data = (pointer * 1)(ctypes.addressof(words))
    types = ctypes.create_string_buffer(bytes([d.num for d in dtypes]))
    text = ctypes.create_string_buffer(name.encode())
    ufunc = _constructor(capsule)(functions, data, types, 1, len(dtypes) - 1, 1, _NO_IDENTITY, text, text, 0)
    _ALIVE.append((loop, alive, functions, words, data, types, text))
    return ufunc  # type: ignore[no-any-return]


def block_loop(size: int) -> str:
    """LLVM IR of the loop of a ufunc that calls the driver at ``data[0]`` with a table.

    The table has the loop's arguments ``args``, ``dims`` and ``steps``, then the address behind ``data[0]`` and that of
    ``size`` bytes on the stack.
    """
    lines = ["define void @loop(ptr %args, ptr %dims, ptr %steps, ptr %data) nounwind {"]
    lines += [f"%scratch = alloca [{size} x i8], align 64", "%table = alloca [5 x ptr]"]
    lines += ["%code = getelementptr ptr, ptr %data, i64 1", "%driver = load ptr, ptr %data"]
    for k, name in enumerate(["args", "dims", "steps", "code", "scratch"]):
        lines += [f"%p{k} = getelementptr ptr, ptr %table, i64 {k}", f"store ptr %{name}, ptr %p{k}"]
    return "\n".join([*lines, "call void %driver(ptr %table, i64 0, i64 0)", "ret void", "}", ""])


def block_ufunc(
    name: str, driver: CodeObject, code: Sequence[int], alive: Any, dtypes: Sequence[Dtype], size: int
) -> np.ufunc | None:
    """A ufunc as `make_ufunc` makes it, which calls ``driver`` with the table that `block_loop` describes."""
    capsule = getattr(_multiarray_umath, "_UFUNC_API", None)
    if capsule is None or any(d.alignment != d.itemsize for d in dtypes):
        return None
    loop = compile_ir(block_loop(size), "loop", key="")
    return _ufunc(capsule, name, loop, [driver.address, *code], (driver, alive), dtypes)


class NumpyLoop(NamedTuple):
    """Addresses of the inner loop of a ufunc of NumPy's for one dtype, and of what it takes as its ``data``."""

    function: int
    data: int


def numpy_loop(ufunc: np.ufunc, dtype: Dtype) -> NumpyLoop | None:
    """The loop of ``ufunc``, of one operand, from ``dtype`` to ``dtype``; None if this NumPy has another layout.

    It is read from the fields of PyUFuncObject, which are part of NumPy's C ABI: four ints, then the tables of functions
    and of data, then the number of types.
    """
    head, pointer, number = object.__basicsize__, ctypes.sizeof(ctypes.c_void_p), ctypes.sizeof(ctypes.c_int)
    ints = [ctypes.c_int.from_address(id(ufunc) + head + k * number).value for k in range(3)]
    tables = head + 4 * number
    count = ctypes.c_int.from_address(id(ufunc) + tables + 2 * pointer).value
    wanted = f"{dtype.char}->{dtype.char}"
    if [*ints, count] != [ufunc.nin, ufunc.nout, ufunc.nargs, ufunc.ntypes] or ints != [1, 1, 2] or wanted not in ufunc.types:
        return None
    k = ufunc.types.index(wanted)
    functions, data = [ctypes.c_void_p.from_address(id(ufunc) + tables + j * pointer).value or 0 for j in range(2)]
    function = ctypes.c_void_p.from_address(functions + k * pointer).value if functions else None
    given = ctypes.c_void_p.from_address(data + k * pointer).value or 0 if data else 0
    return None if function is None else NumpyLoop(function, given)


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
