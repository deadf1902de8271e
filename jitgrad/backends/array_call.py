"""Machine code as a Python builtin that takes arrays: a call costs 0.2 microseconds and 0.01 for each array."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from jitgrad.backends.llvm.code_object import CodeObject, compile_ir, exports
from jitgrad.eager.buffer_pool import DATA_FIELD
from jitgrad.runtime.executor.fastcall import FLAGS_FIELD, TYPE_FIELD, MethodDef, builtin_of, has_builtins

MOST_ARRAYS = 64
_METH_FASTCALL = 0x80
_FLAGS = 0x1 | 0x100  # NPY_ARRAY_C_CONTIGUOUS, NPY_ARRAY_ALIGNED
_HEAD = 7  # words of a binding before the addresses of its last operands

# self is a Python int, the address of a binding: the driver, its code, the numbers of rows and columns, bytes of scratch
# memory, the number of arrays, that of further operands, and their addresses
_CALL = """
define ptr @call(ptr %self, ptr %args, i64 %count) {
entry:
  %table = alloca [MOST x i64]
  %words = alloca [5 x i64]
  %address = call i64 @PyLong_AsLongLong(ptr %self)
  %binding = inttoptr i64 %address to ptr
  %driver = load ptr, ptr %binding
  %b5 = getelementptr i64, ptr %binding, i64 5
  %arrays = load i64, ptr %b5
  %b6 = getelementptr i64, ptr %binding, i64 6
  %others = load i64, ptr %b6
  %fine = icmp eq i64 %arrays, %count
  br i1 %fine, label %check, label %refuse
check:
  %k = phi i64 [ 0, %entry ], [ %k1, %take ]
  %end = icmp eq i64 %k, %count
  br i1 %end, label %others_first, label %one
one:
  %place = getelementptr ptr, ptr %args, i64 %k
  %array = load ptr, ptr %place
  %type_field = getelementptr i8, ptr %array, i64 TYPE
  %type = load i64, ptr %type_field
  %is_array = icmp eq i64 %type, NDARRAY
  br i1 %is_array, label %flags, label %refuse
flags:
  %flags_field = getelementptr i8, ptr %array, i64 FLAGS_AT
  %found = load i32, ptr %flags_field
  %both = and i32 %found, FLAGS
  %contiguous = icmp eq i32 %both, FLAGS
  br i1 %contiguous, label %take, label %refuse
take:
  %field = getelementptr i8, ptr %array, i64 DATA
  %data = load i64, ptr %field
  %slot = getelementptr i64, ptr %table, i64 %k
  store i64 %data, ptr %slot
  %k1 = add i64 %k, 1
  br label %check
others_first:
  %none = icmp eq i64 %others, 0
  br i1 %none, label %run, label %other
other:
  %j = phi i64 [ 0, %others_first ], [ %j1, %other ]
  %from = add i64 %j, HEAD
  %source = getelementptr i64, ptr %binding, i64 %from
  %word = load i64, ptr %source
  %to = add i64 %arrays, %j
  %target = getelementptr i64, ptr %table, i64 %to
  store i64 %word, ptr %target
  %j1 = add i64 %j, 1
  %more = icmp ult i64 %j1, %others
  br i1 %more, label %other, label %run
run:
  %b4 = getelementptr i64, ptr %binding, i64 4
  %bytes = load i64, ptr %b4
  %scratch = call ptr @PyMem_RawMalloc(i64 %bytes)
  %no_memory = icmp eq ptr %scratch, null
  br i1 %no_memory, label %refuse, label %call
call:
  store ptr %table, ptr %words
  %w1 = getelementptr i64, ptr %words, i64 1
  %b1 = getelementptr i64, ptr %binding, i64 1
  %code = load i64, ptr %b1
  store i64 %code, ptr %w1
  %w2 = getelementptr i64, ptr %words, i64 2
  store ptr %scratch, ptr %w2
  %w3 = getelementptr i64, ptr %words, i64 3
  %b2 = getelementptr i64, ptr %binding, i64 2
  %rows = load i64, ptr %b2
  store i64 %rows, ptr %w3
  %w4 = getelementptr i64, ptr %words, i64 4
  %b3 = getelementptr i64, ptr %binding, i64 3
  %columns = load i64, ptr %b3
  store i64 %columns, ptr %w4
  %state = call ptr @PyEval_SaveThread()
  call void %driver(ptr %words, i64 0, i64 0)
  call void @PyEval_RestoreThread(ptr %state)
  call void @PyMem_RawFree(ptr %scratch)
  %yes = call ptr @PyBool_FromLong(i64 1)
  ret ptr %yes
refuse:
  %no = call ptr @PyBool_FromLong(i64 0)
  ret ptr %no
}
declare i64 @PyLong_AsLongLong(ptr)
declare ptr @PyMem_RawMalloc(i64)
declare void @PyMem_RawFree(ptr)
declare ptr @PyBool_FromLong(i64)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
"""
_C_API = ("PyMem_RawMalloc", "PyMem_RawFree", "PyBool_FromLong")


@cache
def _method() -> tuple[MethodDef, CodeObject] | None:
    """The method record and the code it refers to; None where builtins cannot be made."""
    if not has_builtins() or not exports(_C_API) or struct.calcsize("P") != 8:
        return None
    text = _CALL.replace("MOST", str(MOST_ARRAYS)).replace("NDARRAY", str(id(np.ndarray))).replace("TYPE", str(TYPE_FIELD))
    text = text.replace("FLAGS_AT", str(FLAGS_FIELD)).replace("FLAGS", str(_FLAGS)).replace("DATA", str(DATA_FIELD))
    code = compile_ir(text.replace("HEAD", str(_HEAD)), "call", key=None)
    return MethodDef(b"run_rows", code.address, _METH_FASTCALL, b"run machine code on arrays"), code


def can_bind_arrays() -> bool:
    """Whether machine code can be called with arrays."""
    return _method() is not None


def bind_arrays(
    driver: CodeObject,
    code: Any,
    size: tuple[int, int],
    scratch: int,
    arrays: int,
    others: Sequence[np.ndarray[Any, Any]],
    alive: Any,
) -> Callable[..., bool]:
    """``run(*arrays)``, of so many ``arrays``, calls ``driver(words, 0, 0)`` without the GIL.

    ``words`` has the addresses of a table of the arrays' data, followed by those of ``others``, of ``code``, a ctypes array,
    and of ``scratch`` bytes of memory, then ``size``. It returns False, and calls nothing, if an array is not contiguous.
    ``alive`` owns what the driver calls. Only where `can_bind_arrays`.
    """
    method = _method()
    assert method is not None and arrays + len(others) <= MOST_ARRAYS
    head = [driver.address, ctypes.addressof(code), *size, scratch, arrays, len(others)]
    words = [*head, *[x.ctypes.data for x in others]]
    binding = (ctypes.c_int64 * len(words))(*words)
    return builtin_of(method, binding, driver, code, others, alive)
