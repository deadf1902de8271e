"""The scalar expression of an op evaluated in plain NumPy: what a kernel must compute, without a kernel."""

from __future__ import annotations

import ast
from functools import cache
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


@cache
def _functions() -> dict[str, Any]:
    return {**numpy_namespace(), **_PLAIN}


def evaluate_scalar(op: OpDef, *arrays: Any, **attrs: Any) -> np.ndarray[Any, Any]:
    """``op.scalar`` on ``arrays``, in the dtypes of the op's rule: constants take the dtype of the operands.

    A conditional expression evaluates both sides and selects, as a vectorised kernel does.

    Raises:
        ArgumentError: ``op`` has no scalar expression.
    """
    if op.scalar is None:
        raise ArgumentError(f"evaluate_scalar: op {op} has no scalar expression")
    operands = [np.asarray(x) for x in arrays]
    avals = [Aval(x.shape, x.dtype) for x in operands]
    dtypes, out = op.dtypes(avals, **attrs)
    names = {name: x.astype(d) for name, x, d in zip(op.operands, operands, dtypes, strict=True)}
    tree = _Vectorised(dtypes[-1]).visit(ast.parse(op.scalar, mode="eval"))
    code = compile(ast.fix_missing_locations(tree), f"<scalar of {op}>", "eval")
    with np.errstate(all="ignore"):
        result = eval(code, {**_functions(), "_select": np.where, "_typed": np.asarray}, {**names, **attrs})
    return np.broadcast_to(np.asarray(result, out), np.broadcast_shapes(*(x.shape for x in operands)))


class _Vectorised(ast.NodeTransformer):
    """``a if c else b`` as a selection between arrays, numbers as typed 0-d arrays."""

    def __init__(self, dtype: Dtype) -> None:
        self.dtype = dtype

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        arguments = [self.visit(node.test), self.visit(node.body), self.visit(node.orelse)]
        return ast.Call(ast.Name("_select", ast.Load()), arguments, [])

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.Call(ast.Name("_typed", ast.Load()), [node, ast.Constant(self.dtype.str)], [])
