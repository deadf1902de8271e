"""Formulas on NumPy arrays: block by block, and the scalar expression of an op as one."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from types import CodeType
from typing import Any

import numpy as np

from jitgrad.aval import Aval, Dtype
from jitgrad.compiler.codegen.vecmath import numpy_namespace
from jitgrad.errors import ArgumentError
from jitgrad.op import OpDef

# What the kernels provide besides their vector mathematics.
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
    "logical_xor": np.logical_xor,
}


BLOCK = 8192  # elements: the temporaries of a formula stay in the L1 and L2 caches


def blockwise(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, a formula on arrays of one float dtype, applied block by block.

    Over whole arrays each of its temporaries would be memory fresh from the system, and its page faults would cost
    several times the arithmetic.
    """

    def call(*arrays: np.ndarray[Any, Any]) -> Any:
        shape = np.broadcast_shapes(*(x.shape for x in arrays))
        count = math.prod(shape)
        if count <= BLOCK:
            return function(*arrays)
        flat = [x if x.ndim == 0 else np.ascontiguousarray(np.broadcast_to(x, shape)).reshape(-1) for x in arrays]
        out = np.empty(count, arrays[0].dtype)
        for start in range(0, count, BLOCK):
            stop = start + BLOCK
            out[start:stop] = function(*(x if x.ndim == 0 else x[start:stop] for x in flat))
        return out.reshape(shape)

    return call


@cache
def scalar_functions(fused: bool = False) -> Mapping[str, Any]:
    """What scalar expressions can call, on arrays; ``fused`` as of `numpy_namespace`."""
    return {**numpy_namespace(fused), **_PLAIN}


def evaluate_scalar(op: OpDef, *arrays: Any, **attrs: Any) -> np.ndarray[Any, Any]:
    """``op.scalar`` on ``arrays``, in the dtypes of the op's rule: what a kernel must compute, without a kernel.

    Constants take the dtype of the operands. A conditional expression evaluates both sides and selects, as a vectorised
    kernel does.

    Raises:
        ArgumentError: ``op`` has no scalar expression.
    """
    return evaluate_with(scalar_functions(), op, arrays, attrs)


def evaluate_with(
    functions: Mapping[str, Any], op: OpDef, arrays: Sequence[Any], attrs: Mapping[str, Any]
) -> np.ndarray[Any, Any]:
    """`evaluate_scalar` with other ``functions`` than those of NumPy's meaning."""
    if op.scalar is None:
        raise ArgumentError(f"evaluate_scalar: op {op} has no scalar expression")
    operands = [np.asarray(x) for x in arrays]
    avals = [Aval(x.shape, x.dtype) for x in operands]
    dtypes, out = op.dtypes(avals, **attrs)
    names = {name: x.astype(d) for name, x, d in zip(op.operands, operands, dtypes, strict=True)}
    code = _code(op.scalar, dtypes[-1])
    with np.errstate(all="ignore"):
        result = eval(code, {**functions, "_select": np.where, "_typed": np.asarray}, {**names, **attrs})
    return np.broadcast_to(np.asarray(result, out), np.broadcast_shapes(*(x.shape for x in operands)))


@lru_cache(maxsize=512)
def _code(scalar: str, dtype: Dtype) -> CodeType:
    tree = _Vectorised(dtype).visit(ast.parse(scalar, mode="eval"))
    return compile(ast.fix_missing_locations(tree), f"<{scalar}>", "eval")


class _Vectorised(ast.NodeTransformer):
    """``a if c else b`` as a selection between arrays, numbers as typed 0-d arrays."""

    def __init__(self, dtype: Dtype) -> None:
        self.dtype = dtype

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        arguments = [self.visit(node.test), self.visit(node.body), self.visit(node.orelse)]
        return ast.Call(ast.Name("_select", ast.Load()), arguments, [])

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.Call(ast.Name("_typed", ast.Load()), [node, ast.Constant(self.dtype.str)], [])
