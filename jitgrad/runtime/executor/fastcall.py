"""The native loop as a Python builtin, whose call costs 0.2 microseconds; through ctypes it costs 0.8.

A builtin is a C function ``PyObject *(PyObject *self, PyObject *const *args, Py_ssize_t count)`` and a method
record that names it (CPython C API, ``METH_FASTCALL``). Here the C function is a few lines of LLVM IR that
unpack two integers, release the GIL and call the loop. Interpreters without that C API use ctypes.
"""

from __future__ import annotations

import ctypes
import platform
import struct
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from jitgrad.backends.llvm.code_object import CodeObject, compile_ir, exports
from jitgrad.backends.llvm.effort import BRANCHES
from jitgrad.eager.buffer_pool import DATA_FIELD, address_of

_METH_FASTCALL = 0x80
_NAME = b"run_instructions"

# self is a Python int, the address of a binding of two words: the loop's address and its first argument
_CALL = """
define ptr @call(ptr %self, ptr %args, i64 %count) {
  %two = icmp eq i64 %count, 2
  br i1 %two, label %unpack, label %wrong
unpack:
  %address = call i64 @PyLong_AsLongLong(ptr %self)
  %binding = inttoptr i64 %address to ptr
  %loop = load ptr, ptr %binding
  %second = getelementptr i64, ptr %binding, i64 1
  %control = load ptr, ptr %second
  %first_arg = load ptr, ptr %args
  %table = call i64 @PyLong_AsLongLong(ptr %first_arg)
  %second_field = getelementptr ptr, ptr %args, i64 1
  %second_arg = load ptr, ptr %second_field
  %instructions = call i64 @PyLong_AsLongLong(ptr %second_arg)
  %error = call ptr @PyErr_Occurred()
  %fine = icmp eq ptr %error, null
  br i1 %fine, label %run, label %raised
run:
  %state = call ptr @PyEval_SaveThread()
  call void %loop(ptr %control, i64 %table, i64 %instructions)
  call void @PyEval_RestoreThread(ptr %state)
  call void @Py_IncRef(ptr @_Py_NoneStruct)
  ret ptr @_Py_NoneStruct
wrong:
  %ignored = call i32 @PyErr_BadArgument()
  br label %raised
raised:
  ret ptr null
}
@_Py_NoneStruct = external global i8
declare i64 @PyLong_AsLongLong(ptr)
declare ptr @PyErr_Occurred()
declare i32 @PyErr_BadArgument()
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare void @Py_IncRef(ptr)
"""
_ADDRESS = """
define ptr @address(ptr %self, ptr %array) {
  %field = getelementptr i8, ptr %array, i64 FIELD
  %data = load ptr, ptr %field
  %result = call ptr @PyLong_FromVoidPtr(ptr %data)
  ret ptr %result
}
declare ptr @PyLong_FromVoidPtr(ptr)
"""
# self is the class of NumPy's arrays
_WRITEABLE = """
define ptr @writeable(ptr %self, ptr %args, i64 %count) {
entry:
  br label %check
check:
  %k = phi i64 [ 0, %entry ], [ %next, %flags ]
  %end = icmp eq i64 %k, %count
  br i1 %end, label %answer, label %one
one:
  %place = getelementptr ptr, ptr %args, i64 %k
  %array = load ptr, ptr %place
  %type_field = getelementptr i8, ptr %array, i64 TYPE
  %type = load ptr, ptr %type_field
  %is_array = icmp eq ptr %type, %self
  br i1 %is_array, label %flags, label %answer
flags:
  %flags_field = getelementptr i8, ptr %array, i64 FLAGS_AT
  %found = load i32, ptr %flags_field
  %flag = and i32 %found, FLAG
  %fine = icmp ne i32 %flag, 0
  %next = add i64 %k, 1
  br i1 %fine, label %check, label %answer
answer:
  %result = phi i64 [ 1, %check ], [ 0, %one ], [ 0, %flags ]
  %bool = call ptr @PyBool_FromLong(i64 %result)
  ret ptr %bool
}
declare ptr @PyBool_FromLong(i64)
"""
_METH_O = 0x8
TYPE_FIELD = DATA_FIELD - 8  # PyObject: reference count, type
FLAGS_FIELD = DATA_FIELD + 48  # PyArrayObject: data, nd, dimensions, strides, base, descr, flags
_WRITEABLE_FLAG = 0x400  # NPY_ARRAY_WRITEABLE
_C_API = ("PyLong_AsLongLong", "PyErr_Occurred", "PyEval_SaveThread", "PyCFunction_NewEx", "_Py_NoneStruct")


class MethodDef(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def has_builtins() -> bool:
    """Whether this interpreter has CPython's C API, by which machine code becomes a builtin."""
    return platform.python_implementation() == "CPython" and exports(_C_API)


@cache
def call_code() -> CodeObject | None:
    """The code of every builtin, which LLVM may still be compiling; None without CPython's C API."""
    return compile_ir(_CALL, "call", key="", effort=BRANCHES, wait=False) if has_builtins() else None


@cache
def _method() -> tuple[MethodDef, CodeObject] | None:
    """The method record and the code it refers to, cached for the process; None without CPython's C API."""
    code = call_code()
    if code is None:
        return None
    doc = b"run_instructions(table, count): run instructions without the GIL"
    return MethodDef(_NAME, code.address, _METH_FASTCALL, doc), code


class _OwnedAddress(int):
    """An address, and the objects that own the memory there."""

    owners: tuple[Any, ...]


def builtin_of(method: tuple[MethodDef, CodeObject], binding: Any, *owners: Any) -> Callable[..., Any]:
    """The builtin of ``method`` whose ``self`` is the address of ``binding``, a ctypes array.

    It refers to ``owners``, so they outlive every running call.
    """
    address = _OwnedAddress(ctypes.addressof(binding))
    address.owners = (binding, *owners)
    return _function(method, address)


def _function(method: tuple[MethodDef, CodeObject], own: Any) -> Callable[..., Any]:
    """The builtin of ``method`` whose ``self`` is ``own``."""
    _KEPT.append(method)  # two threads that ask first at the same time get different records
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.argtypes, make.restype = (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p), ctypes.py_object
    function: Callable[..., Any] = make(ctypes.addressof(method[0]), own, None)
    return function


def bind(loop: int, binding: Any, *owners: Any) -> Callable[[int, int], None]:
    """``run(table, count)`` that calls ``void (*loop)(binding[1], table, count)`` without the GIL.

    Args:
        loop: the address of the native loop, which is also stored in ``binding[0]``.
        binding: a ctypes array of two integers.
        owners: own the loop and the memory at ``binding[1]``. The function refers to them, so they outlive every running
            call.
    """
    binding[0] = loop
    method = _method()
    if method is None:
        return _bind_with_ctypes(loop, binding, owners)
    return builtin_of(method, binding, *owners)


@cache
def data_address() -> Callable[[Any], int]:
    """``address(array)``: the address of an ndarray's first element, in 0.04 us. The argument is not checked."""
    if _method() is None or not exports(("PyLong_FromVoidPtr",)):
        return address_of
    code = compile_ir(_ADDRESS.replace("FIELD", str(DATA_FIELD)), "address", key="")
    record = MethodDef(b"data_address", code.address, _METH_O, b"the address of an ndarray's data")
    return _function((record, code), None)


@cache
def all_writeable() -> Callable[..., bool]:
    """``all_writeable(*arrays)``: whether each is an ndarray whose memory may be changed."""
    if _method() is None or struct.calcsize("P") != 8 or not exports(("PyBool_FromLong",)):
        return _all_writeable
    text = _WRITEABLE.replace("TYPE", str(TYPE_FIELD)).replace("FLAGS_AT", str(FLAGS_FIELD))
    code = compile_ir(text.replace("FLAG", str(_WRITEABLE_FLAG)), "writeable", key="")
    record = MethodDef(b"all_writeable", code.address, _METH_FASTCALL, b"whether arrays may be changed")
    return _function((record, code), np.ndarray)


def _all_writeable(*arrays: Any) -> bool:
    return all(type(array) is np.ndarray and array.flags.writeable for array in arrays)


_KEPT: list[Any] = []  # method records must outlive the functions made from them


def _bind_with_ctypes(loop: int, binding: Any, owners: tuple[Any, ...]) -> Callable[[int, int], None]:
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(loop)
    control = binding[1]

    def run(table: int, count: int) -> None:
        call(control, table, count)

    vars(run)["owners"] = owners
    return run
