"""The allocator of `jitgrad.eager.array_memory`: a memory handler of NumPy (NEP 49) in machine code.

NumPy looks the handler up in the current context when it makes an array, and keeps it with the array for the day when that
is freed. So it serves the arrays that NumPy's functions make within eager ops and no others.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from numpy._core import _multiarray_umath as multiarray

from jitgrad.backends.llvm import target
from jitgrad.backends.llvm.code_object import CodeObject, compile_control_code, compile_ir
from jitgrad.backends.llvm.effort import BRANCHES, FEW_STEPS
from jitgrad.core import config
from jitgrad.eager.array_memory import make_handler_by
from jitgrad.runtime.executor.fastcall import has_builtins

KEPT_BYTES = 1 << 17  # bytes of a block that is kept: from there on the C library may ask the system for each
_PLACES = 64  # for blocks that are kept
_SPARE = 64 << 20  # bytes that may be kept; half of those in use if that is more
_HEAD = 5  # words before the places: a lock, bytes that are kept, bytes in use, the place to give up next, C's ``free``
_VERSION = 1  # of NumPy's record of a handler
_SET_HANDLER = 304  # PyDataMem_SetHandler in NumPy's table of C functions

# Who finds the lock taken goes to the C library: a child process may find it so for ever.
_FIND = f"""
def find(state, size, out, start, stop):
    out[0] = 0
    if atomic_replace(state, 0, 0, 1):
        state[2] = state[2] + size
        for k in range(0, {_PLACES}):
            if state[{_HEAD + _PLACES} + k] == size and out[0] == 0:
                out[0] = state[{_HEAD} + k]
                state[{_HEAD + _PLACES} + k] = 0
                state[1] = state[1] - size
        atomic_store(state, 0, 0)
"""
_KEEP = f"""
def give_up(state):
    k = state[3]
    if state[{_HEAD + _PLACES} + k] > 0:
        call_c(state[4], state[{_HEAD} + k], 0, 0)
        state[1] = state[1] - state[{_HEAD + _PLACES} + k]
        state[{_HEAD + _PLACES} + k] = 0
    state[3] = (k + 1) % {_PLACES}

def keep(state, size, out, start, stop):
    if atomic_replace(state, 0, 0, 1):
        state[2] = state[2] - size
        allowed = max(state[2] // 2, {_SPARE})
        if size <= allowed:
            for j in range(0, {_PLACES}):
                if state[1] + size > allowed:
                    give_up(state)
            place = -1
            for k in range(0, {_PLACES}):
                if state[{_HEAD + _PLACES} + k] == 0:
                    place = k
            if place < 0:
                place = state[3]
                give_up(state)
            state[{_HEAD} + place] = out[0]
            state[{_HEAD + _PLACES} + place] = size
            state[1] = state[1] + size
            out[0] = 0
        atomic_store(state, 0, 0)
"""

# The first argument is the handler's own table: the state, `find` and `keep`. Sizes of blocks are rounded up to one of eight
# steps per doubling. Each block is one of the C library, so it may free and resize it. ``functions(k)`` is the address of
# the k-th of them.
_FUNCTIONS = """
define private i64 @rounded(i64 %size) {
  %zeros = call i64 @llvm.ctlz.i64(i64 %size, i1 false)
  %shift = sub i64 60, %zeros
  %step = shl i64 1, %shift
  %less = sub i64 %step, 1
  %up = add i64 %size, %less
  %mask = xor i64 %less, -1
  %class = and i64 %up, %mask
  ret i64 %class
}
define private ptr @call(ptr %table, i64 %which, i64 %class, ptr %block) {
  %args = alloca [3 x i64]
  %out = alloca i64
  %given = ptrtoint ptr %block to i64
  store i64 %given, ptr %out
  %state = load i64, ptr %table
  store i64 %state, ptr %args
  %second = getelementptr i64, ptr %args, i64 1
  store i64 %class, ptr %second
  %third = getelementptr i64, ptr %args, i64 2
  %address = ptrtoint ptr %out to i64
  store i64 %address, ptr %third
  %field = getelementptr ptr, ptr %table, i64 %which
  %function = load ptr, ptr %field
  call void %function(ptr %args, i64 0, i64 0)
  %after = load ptr, ptr %out
  ret ptr %after
}
define ptr @take(ptr %table, i64 %size) {
  %large = icmp uge i64 %size, KEPT_BYTES
  br i1 %large, label %search, label %small
small:
  %few = call ptr @malloc(i64 %size)
  ret ptr %few
search:
  %class = call i64 @rounded(i64 %size)
  %block = call ptr @call(ptr %table, i64 1, i64 %class, ptr null)
  %found = icmp ne ptr %block, null
  br i1 %found, label %give, label %new
give:
  ret ptr %block
new:
  %many = call ptr @aligned_alloc(i64 64, i64 %class)
  ret ptr %many
}
define ptr @take_zeros(ptr %table, i64 %count, i64 %each) {
  %pair = call {i64, i1} @llvm.umul.with.overflow.i64(i64 %count, i64 %each)
  %size = extractvalue {i64, i1} %pair, 0
  %over = extractvalue {i64, i1} %pair, 1
  br i1 %over, label %impossible, label %possible
impossible:
  ret ptr null
possible:
  %large = icmp uge i64 %size, KEPT_BYTES
  br i1 %large, label %search, label %small
small:
  %few = call ptr @calloc(i64 %count, i64 %each)
  ret ptr %few
search:
  %class = call i64 @rounded(i64 %size)
  %block = call ptr @call(ptr %table, i64 1, i64 %class, ptr null)
  %found = icmp ne ptr %block, null
  br i1 %found, label %clear, label %new
clear:
  call void @llvm.memset.p0.i64(ptr %block, i8 0, i64 %size, i1 false)
  ret ptr %block
new:
  %many = call ptr @calloc(i64 1, i64 %class)
  ret ptr %many
}
define ptr @resize(ptr %table, ptr %block, i64 %size) {
  %large = icmp uge i64 %size, KEPT_BYTES
  br i1 %large, label %round, label %go
round:
  %class = call i64 @rounded(i64 %size)
  br label %go
go:
  %bytes = phi i64 [ %size, %0 ], [ %class, %round ]
  %new = call ptr @realloc(ptr %block, i64 %bytes)
  ret ptr %new
}
define void @give(ptr %table, ptr %block, i64 %size) {
  %large = icmp uge i64 %size, KEPT_BYTES
  br i1 %large, label %check, label %drop
check:
  %class = call i64 @rounded(i64 %size)
  %holds = call i64 @malloc_usable_size(ptr %block)
  %whole = icmp uge i64 %holds, %class
  br i1 %whole, label %keep, label %drop
keep:
  %rest = call ptr @call(ptr %table, i64 2, i64 %class, ptr %block)
  br label %drop
drop:
  %left = phi ptr [ %block, %0 ], [ %block, %check ], [ %rest, %keep ]
  call void @free(ptr %left)
  ret void
}
define i64 @functions(i64 %k) {
  %a = ptrtoint ptr @take to i64
  %b = ptrtoint ptr @take_zeros to i64
  %c = ptrtoint ptr @resize to i64
  %d = ptrtoint ptr @give to i64
  %e = ptrtoint ptr @free to i64
  switch i64 %k, label %last [i64 0, label %first
                              i64 1, label %second
                              i64 2, label %third
                              i64 3, label %fourth]
first:
  ret i64 %a
second:
  ret i64 %b
third:
  ret i64 %c
fourth:
  ret i64 %d
last:
  ret i64 %e
}
declare ptr @malloc(i64)
declare ptr @calloc(i64, i64)
declare ptr @realloc(ptr, i64)
declare ptr @aligned_alloc(i64, i64)
declare i64 @malloc_usable_size(ptr)
declare void @free(ptr)
declare i64 @llvm.ctlz.i64(i64, i1)
declare {i64, i1} @llvm.umul.with.overflow.i64(i64, i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"""
_C_LIBRARY = ("malloc", "calloc", "realloc", "aligned_alloc", "malloc_usable_size", "free")


class _Handler(ctypes.Structure):
    """NumPy's PyDataMem_Handler."""

    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("table", ctypes.c_void_p),
        ("functions", ctypes.c_void_p * 4),
    )


@cache
def _code() -> tuple[CodeObject, CodeObject, CodeObject]:
    """The functions of a handler, which LLVM compiles in the background, and what they call."""
    text = _FUNCTIONS.replace("KEPT_BYTES", str(KEPT_BYTES))
    functions = compile_ir(text, "functions", key="", effort=FEW_STEPS, wait=False)
    find = compile_control_code(_FIND, "find", "thread_pool", effort=BRANCHES, wait=False)
    return functions, find, compile_control_code(_KEEP, "keep", "thread_pool", effort=BRANCHES, wait=False)


def _handler() -> Any:
    """The handler as NumPy takes it; it and its code stay for the rest of the process, for arrays may be freed last of all."""
    code = _code()
    address_of = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code[0].address)
    state = (ctypes.c_int64 * (_HEAD + 2 * _PLACES))()
    state[_HEAD - 1] = address_of(4)
    table = (ctypes.c_int64 * 3)(ctypes.addressof(state), code[1].address, code[2].address)
    record = _Handler(b"jitgrad", _VERSION, ctypes.addressof(table), (ctypes.c_void_p * 4)(*map(address_of, range(4))))
    make = ctypes.pythonapi.PyCapsule_New
    make.argtypes, make.restype = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p), ctypes.py_object
    capsule = make(ctypes.addressof(record), b"mem_handler", None)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object((code, state, table, record, capsule)))
    return capsule


def install_handler(wait: bool = False) -> Any:
    """Let the current context have the handler: what NumPy's ``PyDataMem_SetHandler`` does. Returns the handler.

    None where eager execution is not to compile, or this NumPy or C library is another one, and without ``wait`` as long as
    LLVM compiles it: a first call would wait for that as long as for its own kernels.
    """
    if config.read("JITGRAD_BACKEND") != "cpu" or config.read("JITGRAD_DISABLE") or not has_builtins():
        return None
    if not target.resolvable(_C_LIBRARY) or not hasattr(multiarray, "get_handler_version"):
        return None
    if not wait and not all([code.ready for code in _code()]):
        return None
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.argtypes, pointer.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p
    functions = ctypes.cast(pointer(multiarray._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(functions[_SET_HANDLER])
    handler = _handler()
    set_handler(handler)
    return handler if multiarray.get_handler_name() == "jitgrad" else None


make_handler_by(install_handler)
