"""Kernel functions of the dialect as numba intrinsics, and kernel source compiled by numba.

Import this module only when a kernel is compiled: it imports numba (0.3 s).
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any

from llvmlite import ir
from numba import cfunc, njit, types
from numba.extending import intrinsic

from jitgrad.backends.llvm import intrinsics, packed_lanes, transpose, vector_functions
from jitgrad.backends.llvm.casts import half_of_bits
from jitgrad.backends.llvm.kernel_frontend import parameter_type
from jitgrad.backends.llvm.kernel_library import INTEGER_FUNCTIONS
from jitgrad.backends.llvm.memory_access import emit_load, emit_store
from jitgrad.backends.llvm.numba_function import NUMBA_TYPES
from jitgrad.backends.llvm.parallel_llvm import LLVM_LOCK
from jitgrad.backends.llvm.types import I64, U16, DialectFunction, IRType, PointerType, ScalarType, TypedValue

_SCALARS = {numba_type: ScalarType(name) for name, numba_type in NUMBA_TYPES.items()}
_BUILTINS = ("range", "min", "max")
_OPTIONS = {"error_model": "numpy", "nogil": True}


def _stream(builder: Any, pointer: TypedValue, index: TypedValue, value: TypedValue) -> None:
    """An ordinary store: numba runs LLVM's passes itself, and those vectorise no loop with
    non-temporal stores."""
    emit_store(builder, pointer, index, value)


_DIALECT = {
    **intrinsics.INTRINSICS,
    **transpose.TRANSPOSES,
    **packed_lanes.PACKED_LANES,
    **vector_functions.VECTOR_FUNCTIONS,
    "stream": _stream,
}


def _ir_type(numba_type: Any) -> IRType:
    if isinstance(numba_type, types.CPointer):
        return PointerType(_SCALARS[numba_type.dtype])
    return _SCALARS[types.unliteral(numba_type)]


def _numba_type(type_: IRType) -> Any:
    return types.CPointer(_numba_type(type_.element)) if isinstance(type_, PointerType) else NUMBA_TYPES[type_.name]


def _typed_value(numba_type: Any, value: Any) -> TypedValue:
    if isinstance(numba_type, types.IntegerLiteral):
        value = ir.Constant(ir.IntType(64), numba_type.literal_value)
    return TypedValue(_ir_type(numba_type), value)


def _result_type(function: DialectFunction, operands: Sequence[Any]) -> Any:
    """The numba type of a call's result: that of the instructions which ``function`` writes into a
    scratch module."""
    parameters = [_ir_type(operand).llvm for operand in operands]
    scratch = ir.Function(ir.Module(), ir.FunctionType(ir.VoidType(), parameters), "scratch")
    result = function(ir.IRBuilder(scratch.append_basic_block()), *map(_typed_value, operands, scratch.args))
    return types.void if result is None else _numba_type(result.type)


@cache
def _as_intrinsic(function: DialectFunction, arity: int) -> Any:
    """``function`` of ``arity`` operands as numba code can call it; numba asks for a signature with
    named parameters."""

    def typed(_context: Any, *operands: Any) -> Any:
        def emit(_target: Any, builder: Any, signature: Any, values: Sequence[Any]) -> Any:
            result = function(builder, *map(_typed_value, signature.args, values))
            return None if result is None else result.ir

        return _result_type(function, operands)(*operands), emit

    parameters = ", ".join(["context", *(f"x{k}" for k in range(arity))])
    return intrinsic(prefer_literal=True)(eval(f"lambda {parameters}: typed({parameters})", {"typed": typed}))


@cache
def _library_function(name: str) -> Any:
    return njit(INTEGER_FUNCTIONS[name], **_OPTIONS)


def _calls(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """(name, number of operands) of every call."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id, len(node.args)


def _argument(builder: Any, args: TypedValue, index: TypedValue, *, name: str) -> TypedValue:
    """Word ``index`` of a kernel's arguments as the parameter type ``name``."""
    type_, word = parameter_type(name), emit_load(builder, args, index).ir
    if isinstance(type_, PointerType):
        return TypedValue(type_, builder.inttoptr(word, type_.llvm))
    if name == "f16":
        return half_of_bits(builder, TypedValue(U16, builder.trunc(word, ir.IntType(16))))
    bits = word if type_.bits == I64.bits else builder.trunc(word, ir.IntType(type_.bits))
    return TypedValue(type_, builder.bitcast(bits, type_.llvm) if type_.category == "f" else bits)


@cache
def _argument_of(name: str) -> Any:
    return _as_intrinsic(partial(_argument, name=name), 2)


def compile_with_numba(source: str, entry: str, params: Sequence[str], functions: Mapping[str, Callable[..., Any]]) -> Any:
    """The function ``entry`` of kernel source as a C callback ``void (int64_t *args, int64_t start,
    int64_t stop)``.

    Args:
        params: the types of the parameters before ``start`` and ``stop``.
        functions: scalar functions of users, by the names that the source gives them.
    """
    tree = ast.parse(source)
    scope: dict[str, Any] = {"INF": math.inf, "NAN": math.nan}
    for name, arity in _calls(tree):
        if name in functions:
            scope[name] = njit(functions[name], **_OPTIONS) if not hasattr(functions[name], "py_func") else functions[name]
        elif name in INTEGER_FUNCTIONS:
            scope[name] = _library_function(name)
        elif name in _DIALECT and name not in _BUILTINS:
            scope[name] = _as_intrinsic(_DIALECT[name], arity)
    scope |= {f"argument_{k}": _argument_of(name) for k, name in enumerate(params)}
    arguments = ", ".join([*(f"argument_{k}(args, {k})" for k in range(len(params))), "start", "stop"])
    exec(f"{source}\ndef unpack(args, start, stop):\n    {entry}({arguments})\n", scope)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            scope[node.name] = njit(scope[node.name], **_OPTIONS)
    signature = types.void(types.CPointer(types.int64), types.int64, types.int64)
    with LLVM_LOCK:
        return cfunc(signature, **_OPTIONS)(scope["unpack"])
