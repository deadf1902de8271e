"""Evaluates scalar expressions of ops on NumPy arrays, block by block."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from types import CodeType
from typing import Any

import numpy as np

from jitgrad.core.aval import Aval, Dtype
from jitgrad.core.errors import ArgumentError
from jitgrad.core.op import OpDef
from jitgrad.eager import buffer_pool
from jitgrad.eager.where import select_by_mask
from jitgrad.vecmath import numpy_namespace

# The functions of kernels besides vecmath.
_PLAIN: dict[str, Any] = {
    "abs": np.absolute,
    "sign": np.sign,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "floor_divide": np.floor_divide,
    "remainder": np.remainder,
    "fmod": np.fmod,
    "left_shift": np.left_shift,
    "right_shift": np.right_shift,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_not": np.logical_not,
    "logical_xor": np.logical_xor,
}


BLOCK_ELEMENTS = 8192  # the temporaries of an expression stay in the L1 and L2 caches


def blockwise(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` of arrays of one float dtype, applied block by block.

    The temporaries of whole arrays would be fresh memory, whose page faults cost several times the
    arithmetic. The result is marked as one that `jitgrad.eager.large_arrays` may replace.
    """

    def call(*arrays: np.ndarray[Any, Any]) -> Any:
        shape = np.broadcast_shapes(*(x.shape for x in arrays))
        count = math.prod(shape)
        if count <= BLOCK_ELEMENTS:
            return function(*arrays)
        if (order := _order_of(arrays)) is not None:  # the result lies in memory as NumPy's would
            return call(*[x.transpose(order) if x.ndim else x for x in arrays]).transpose(np.argsort(order))
        flat = [x if x.ndim == 0 else np.ascontiguousarray(np.broadcast_to(x, shape)).reshape(-1) for x in arrays]
        out = buffer_pool.empty_buffer((count,), arrays[0].dtype)
        for start in range(0, count, BLOCK_ELEMENTS):
            stop = start + BLOCK_ELEMENTS
            out[start:stop] = function(*(x if x.ndim == 0 else x[start:stop] for x in flat))
        return out.reshape(shape)

    call.takes_many_passes = True  # type: ignore[attr-defined]
    return call


def on_floats(name: str, otherwise: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """The NumPy meaning of the kernel function ``name``, on float32 or float64; ``otherwise`` computes it on complex numbers."""
    function = blockwise(numpy_namespace()[name])
    if otherwise is None:
        return function

    def call(*arrays: np.ndarray[Any, Any]) -> Any:
        return function(*arrays) if arrays[0].dtype.kind == "f" else otherwise(*arrays)

    call.takes_many_passes = True  # type: ignore[attr-defined]
    return call


def _order_of(arrays: Sequence[np.ndarray[Any, Any]]) -> tuple[int, ...] | None:
    """The axes of ``arrays``, which all lie in memory alike, in the order of their strides; None if that is their own order."""
    (strides, *others) = [x.strides for x in arrays if x.ndim]
    if any([other != strides for other in others]):
        return None
    order = tuple(sorted(range(len(strides)), key=lambda k: -abs(strides[k])))
    return None if order == tuple(range(len(strides))) else order


@cache
def scalar_functions(fused: bool = False) -> Mapping[str, Any]:
    """The functions of scalar expressions, on arrays; ``fused`` as in `numpy_namespace`."""
    return {**numpy_namespace(fused), **_PLAIN}


def evaluate_scalar(op: OpDef, *arrays: Any, **attrs: Any) -> np.ndarray[Any, Any]:
    """``op.scalar`` on ``arrays``, in the dtypes of the op's rule, as in a kernel.

    Constants take the dtype of the operands. A conditional expression evaluates both sides and
    selects, as a vectorised kernel does.

    Raises:
        ArgumentError: ``op`` has no scalar expression.
    """
    return evaluate_with(scalar_functions(), op, arrays, attrs)


def evaluate_with(
    functions: Mapping[str, Any], op: OpDef, arrays: Sequence[Any], attrs: Mapping[str, Any]
) -> np.ndarray[Any, Any]:
    """`evaluate_scalar` with the given ``functions``."""
    if op.scalar is None:
        raise ArgumentError(f"evaluate_scalar: op {op} has no scalar expression")
    operands = [np.asarray(x) for x in arrays]
    avals = [Aval(x.shape, x.dtype) for x in operands]
    dtypes, out = op.dtypes(avals, **attrs)
    names = {name: x.astype(d) for name, x, d in zip(op.operands, operands, dtypes, strict=True)}
    code = _code(op.scalar, dtypes[-1])
    with np.errstate(all="ignore"):
        result = eval(code, {**functions, "_select": select_by_mask, "_typed": np.asarray}, {**names, **attrs})
    return np.broadcast_to(np.asarray(result, out), np.broadcast_shapes(*(x.shape for x in operands)))


@lru_cache(maxsize=512)
def _code(scalar: str, dtype: Dtype) -> CodeType:
    tree = _Vectorised(dtype).visit(ast.parse(scalar, mode="eval"))
    return compile(ast.fix_missing_locations(tree), f"<{scalar}>", "eval")


def _call(function: str, *operands: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(function, ast.Load()), list(operands), [])


class _Vectorised(ast.NodeTransformer):
    """Rewrites ``a if c else b`` as a selection between arrays, and numbers as typed 0-d arrays."""

    def __init__(self, dtype: Dtype) -> None:
        self.dtype = dtype

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        return _call("_select", self.visit(node.test), self.visit(node.body), self.visit(node.orelse))

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        name = "logical_and" if isinstance(node.op, ast.And) else "logical_or"
        combined, *rest = [self.visit(value) for value in node.values]
        for part in rest:
            combined = _call(name, combined, part)
        return combined  # type: ignore[no-any-return]

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        operand = self.visit(node.operand)
        if isinstance(node.op, ast.Not):
            return _call("logical_not", operand)
        return ast.UnaryOp(node.op, operand)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        left, right = self.visit(node.left), self.visit(node.right)
        if isinstance(node.op, ast.Pow):
            return _call("pow", left, right)
        return ast.BinOp(left, node.op, right)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return _call("_typed", node, ast.Constant(self.dtype.str))
