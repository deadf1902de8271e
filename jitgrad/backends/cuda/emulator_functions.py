"""The functions and operators of kernel source on NumPy arrays that hold one number for each
thread."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from jitgrad.backends.cuda.emulator_memory import KernelFault
from jitgrad.backends.llvm.kernel_library import INTEGER_FUNCTIONS
from jitgrad.core.aval import dtype_name
from jitgrad.core.fork import importing
from jitgrad.eager.float16 import compute_dtype
from jitgrad.vecmath import numpy_namespace
from jitgrad.vecmath.numpy_algebra import NumpyAlgebra

DTYPE_BY_NAME = {dtype_name(np.dtype(c)): np.dtype(c) for c in "?bhilBHILefd"}

_INTEGERS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b, ast.Sub: lambda a, b: a - b, ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b, ast.Mod: lambda a, b: a % b, ast.LShift: lambda a, b: a << b,
    ast.RShift: lambda a, b: a >> b, ast.BitAnd: lambda a, b: a & b, ast.BitOr: lambda a, b: a | b,
    ast.BitXor: lambda a, b: a ^ b,
}  # fmt: skip
_FLOATS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: np.add, ast.Sub: np.subtract, ast.Mult: np.multiply, ast.Div: np.divide,
}  # fmt: skip
_LOGICAL = (ast.BitAnd, ast.BitOr, ast.BitXor)
_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: lambda a, b: a < b, ast.LtE: lambda a, b: a <= b, ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b, ast.Eq: lambda a, b: a == b, ast.NotEq: lambda a, b: a != b,
}  # fmt: skip


def is_literal(x: Any) -> bool:
    """Whether ``x`` is a Python integer: a literal, or an index that all threads have."""
    return type(x) is int


def number_dtype(x: Any) -> np.dtype[Any]:
    """The dtype of a number: a Python integer is an i64, a Python float an f64."""
    if isinstance(x, (bool, np.bool_)):
        return np.dtype(np.bool_)
    return np.dtype(np.int64) if is_literal(x) else np.dtype(np.float64) if type(x) is float else x.dtype


def common(a: Any, b: Any) -> tuple[Any, Any]:
    """Two integers in the 64-bit type that holds both, as in `jitgrad.backends.llvm.operators`."""
    if is_literal(a) and is_literal(b):
        return a, b
    types = number_dtype(a), number_dtype(b)
    if any(t.kind == "f" for t in types):
        raise KernelFault(f"{types[0]} and {types[1]} do not meet: one of them needs a cast")
    unsigned = [t.kind == "u" or (is_literal(x) and x >= 0) for x, t in zip((a, b), types, strict=True)]
    wide = np.dtype(np.uint64 if all(unsigned) and any(t.kind == "u" for t in types) else np.int64)
    if wide.kind == "i" and np.dtype(np.uint64) in types:
        raise KernelFault(f"{types[0]} and {types[1]} have no common integers: one of them needs a cast")
    return as_dtype(a, wide), as_dtype(b, wide)


def as_dtype(x: Any, dtype: np.dtype[Any]) -> Any:
    return x if isinstance(x, np.ndarray) and x.dtype == dtype else np.asarray(x).astype(dtype)[()]


def apply_binary(op: ast.operator, a: Any, b: Any) -> Any:
    """``a op b``."""
    types = number_dtype(a), number_dtype(b)
    if types[0].kind == "f" and types[1].kind == "f" and type(op) in _FLOATS:
        if types[0] != types[1]:
            raise KernelFault(f"{types[0]} and {types[1]} do not meet: one of them needs a cast")
        return _FLOATS[type(op)](a, b)
    if types[0].kind == types[1].kind == "b" and isinstance(op, _LOGICAL):
        return _INTEGERS[type(op)](a, b)
    return _INTEGERS[type(op)](*common(a, b))


def apply_unary(op: ast.unaryop, x: Any) -> Any:
    """``-x`` or ``~x``."""
    if not is_literal(x) and number_dtype(x).kind in "iub":
        x = as_dtype(x, np.dtype(np.uint64 if number_dtype(x).kind == "u" else np.int64))
    return -x if isinstance(op, ast.USub) else ~x


def apply_comparison(op: ast.cmpop, a: Any, b: Any) -> Any:
    """``a op b``, a bool."""
    types = number_dtype(a), number_dtype(b)
    if types[0] != types[1]:
        a, b = common(a, b)
    return _COMPARISONS[type(op)](a, b)


def select(condition: Any, a: Any, b: Any) -> Any:
    if number_dtype(a) != number_dtype(b):
        raise KernelFault(f"select takes two values of one dtype, found {number_dtype(a)} and {number_dtype(b)}")
    if isinstance(condition, (bool, np.bool_)):
        return a if condition else b
    return np.where(condition, a, b)


def _cast(dtype: np.dtype[Any]) -> Callable[[Any], Any]:
    held = compute_dtype(dtype)

    def convert(x: Any) -> Any:
        return as_dtype(as_dtype(x, dtype), held)

    return convert


def _extremum(ufunc: Any, of_integers: Callable[[int, int], int]) -> Callable[[Any, Any], Any]:
    def extremum(a: Any, b: Any) -> Any:
        if is_literal(a) and is_literal(b):
            return of_integers(a, b)
        if number_dtype(a) != number_dtype(b):
            raise KernelFault(f"takes numbers of one dtype, found {number_dtype(a)} and {number_dtype(b)}")
        return ufunc(a, b)

    return extremum


def _half(x: Any) -> Any:
    if number_dtype(x) != np.float16:
        raise KernelFault(f"as_half takes the bits of a float16, found {number_dtype(x)}")
    return as_dtype(x, np.dtype(np.float32))


def _multiply_add(a: Any, b: Any, c: Any) -> Any:
    """``a * b + c``, rounded once."""
    dtypes = {number_dtype(x) for x in (a, b, c)}
    if len(dtypes) > 1:
        raise KernelFault(f"fma takes numbers of one dtype, found {', '.join(sorted(map(str, dtypes)))}")
    return NumpyAlgebra(8 * dtypes.pop().itemsize, True).fma(a, b, c)


@cache
def emulated_functions() -> Mapping[str, Any]:
    """What kernel source calls; integer functions are syntax trees, which are run like the
    source."""
    largest, smallest = _extremum(np.maximum, max), _extremum(np.minimum, min)
    return {
        **numpy_namespace(fused=True),
        **{name: function_tree(f) for name, f in INTEGER_FUNCTIONS.items()},
        **{f"to_{name}": _cast(dtype) for name, dtype in DTYPE_BY_NAME.items()},
        "select": select,
        "abs": np.abs,
        "fma": _multiply_add,
        "fmax": largest, "max": largest, "fmin": smallest, "min": smallest,
        "reassoc_add": lambda a, x: apply_binary(ast.Add(), a, x),
        "reassoc_mul": lambda a, x: apply_binary(ast.Mult(), a, x),
        "as_half": _half,
        "as_bits": lambda x: as_dtype(x, np.dtype(np.float16)),
        "freeze": lambda x: x,
        "u64": _cast(np.dtype(np.uint64)),
        "INF": float("inf"),
        "NAN": float("nan"),
    }  # fmt: skip


def function_tree(function: Callable[..., Any]) -> ast.FunctionDef:
    """The syntax tree of a Python function."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(definition, ast.FunctionDef)
    return definition


def by_element(function: Callable[..., Any]) -> Callable[..., Any]:
    """A user's scalar function, compiled by numba as kernels have it, on the operands of all
    threads."""
    with importing:
        import numba

    compiled = function if hasattr(function, "py_func") else numba.njit(function, error_model="numpy")

    def apply(*operands: Any) -> Any:
        arrays = np.broadcast_arrays(*operands)
        results = [compiled(*row) for row in zip(*(a.ravel() for a in arrays), strict=True)]
        return np.array(results).reshape(arrays[0].shape)[()]

    return apply
