"""Differentiates scalar expressions, by the vjps of the ops in them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jitgrad.core.aval import Aval
from jitgrad.core.context import Untraced, current_interpreter
from jitgrad.core.dispatch import aval_of
from jitgrad.core.errors import OpDefinitionError
from jitgrad.core.ir import Value
from jitgrad.core.op import REGISTRY, Kind, OpDef
from jitgrad.core.tensor import Tensor
from jitgrad.ops import tables as _tables  # noqa: F401 - fills the registry that is read here
from jitgrad.ops.comparison import Selected
from jitgrad.ops.user.scalar_source import check_size, is_boolean, number_node, replace_names

_OP_OF: dict[type, str] = {
    ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide", ast.USub: "negative",
}  # fmt: skip
_REAL = Aval((), np.dtype(np.float64))
_ZERO = ast.Constant(0.0)


class SymbolicInterpreter(Untraced):
    """Runs no ops: each result is a symbol of the scalar expression that computes it."""

    tracing = True
    device = "cpu"
    generator_states: tuple[Any, ...] = ()

    def __init__(self, what: str) -> None:
        self.what = what
        self.expressions: dict[Value, ast.expr] = {}

    def symbol(self, tree: ast.expr, aval: Aval = _REAL) -> Tensor:
        """A Tensor that is a symbol of ``tree``."""
        value = Value(aval)
        self.expressions[value] = tree
        return Tensor(value)

    def expression(self, x: Any) -> ast.expr:
        """The expression of the symbol ``x``."""
        if isinstance(x, Tensor):
            tree = self.expressions.get(x._data)
            if tree is None:
                raise self.explain_missing_value(x, "an op")
            return tree
        return number_node(x.item() if isinstance(x, (np.generic, np.ndarray)) else x)

    def apply(self, op: OpDef, operands: tuple[Any, ...], attrs: Mapping[str, Any]) -> Any:
        avals = [aval_of(op, x) for x in operands]
        out = op.abstract(avals, attrs)
        parts = [self.expression(x) for x in operands]
        if op.name == "full" and attrs["shape"] == ():
            return self.symbol(parts[0])
        if op.kind is not Kind.ELEMENTWISE or op.scalar is None or not isinstance(out, Aval):
            raise OpDefinitionError(f"{self.what}: its derivative needs {op}, which is no scalar function; pass vjp=")
        tree = ast.parse(op.scalar, mode="eval").body
        values = {name: number_node(v) for name, v in attrs.items() if isinstance(v, (bool, int, float))}
        tree = simplified(replace_names(tree, {**dict(zip(op.operands, parts, strict=True)), **values}))
        if is_boolean(tree) and out.dtype.kind == "f":
            tree = ast.IfExp(tree, ast.Constant(1.0), ast.Constant(0.0))
        check_size(self.what, tree)
        return self.symbol(tree, Aval((), out.dtype))

    def constant(self, array: Any) -> Tensor:
        return self.symbol(number_node(array.item()), Aval((), array.dtype))

    def current(self, tensor: Tensor) -> Any:
        return tensor._data

    def write(self, target: Any, value: Any) -> None:
        raise OpDefinitionError(f"{self.what}: its derivative changes a tensor in place; pass vjp=")

    take_over = write
    replace = write

    def explain_missing_value(self, tensor: Tensor, what: str) -> Exception:
        return OpDefinitionError(f"{self.what}: its derivative needs the value of a tensor, in {what}; pass vjp=")


def simplified(tree: ast.expr) -> ast.expr:
    """``tree`` without conditionals on constants."""
    if isinstance(tree, ast.IfExp) and isinstance(tree.test, ast.Constant):
        return tree.body if tree.test.value else tree.orelse
    return tree


def derivative(what: str, tree: ast.expr, name: str, g: str) -> ast.expr:
    """``g * d(tree)/d(name)`` as an expression. Of a conditional, each branch is differentiated on its own.

    So a branch that is not selected puts no NaN into the gradient, to any order.

    Raises:
        OpDefinitionError: a function in it has no derivative, or the result is too large.
    """
    token = current_interpreter.set(interpreter := SymbolicInterpreter(what))
    try:
        tangent = ScalarDifferentiator(what, interpreter, {name: ast.Name(g)}).of(tree)
    finally:
        current_interpreter.reset(token)
    result = _ZERO if tangent is None else tangent
    check_size(what, result)
    return ast.fix_missing_locations(result)


class ScalarDifferentiator:
    """Forward mode: an elementwise vjp is its own transpose, so it maps tangents to tangents.

    ``tangents`` are those of the names that are not constant.
    """

    def __init__(self, what: str, interpreter: SymbolicInterpreter, tangents: Mapping[str, ast.expr]) -> None:
        self.what = what
        self.interpreter = interpreter
        self.tangents = tangents

    def of(self, tree: ast.expr) -> ast.expr | None:
        """The tangent of ``tree``; None where it is zero."""
        if is_boolean(tree):
            return None
        match tree:
            case ast.Name(id=name):
                return self.tangents.get(name)
            case ast.Constant():
                return None
            case ast.IfExp(test=test, body=body, orelse=orelse):
                yes, no = self.of(body), self.of(orelse)
                return None if yes is None and no is None else ast.IfExp(test, yes or _ZERO, no or _ZERO)
            case ast.UnaryOp(op=op, operand=x) if type(op) in _OP_OF:
                return self.through(_OP_OF[type(op)], tree, [x])
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OP_OF:
                return self.through(_OP_OF[type(op)], tree, [left, right])
            case ast.Call(func=ast.Name(id=name), args=args):
                return self.through("round" if name == "rint" else name, tree, args)
        raise OpDefinitionError(f"{self.what}: {ast.unparse(tree)!r} has no derivative; pass vjp=")

    def through(self, op_name: str, out: ast.expr, args: Sequence[ast.expr]) -> ast.expr | None:
        """The sum over ``args`` of the op's vjp applied to their tangents."""
        tangents = [self.of(a) for a in args]
        if all(t is None for t in tangents):
            return None
        op = REGISTRY.get(op_name)
        if op is None or not isinstance(op.vjp, tuple) or len(op.vjp) != len(args):
            raise OpDefinitionError(f"{self.what}: the derivative of {op_name} is not known; pass vjp=")
        terms = [self.term(f, t, out, args) for f, t in zip(op.vjp, tangents, strict=True) if f and t is not None]
        total = None
        for term in terms:
            if isinstance(term, ast.Constant) and term.value == 0:
                continue
            total = term if total is None else ast.BinOp(total, ast.Add(), term)
        return total

    def term(self, f: Callable[..., Any], tangent: ast.expr, out: ast.expr, args: Sequence[ast.expr]) -> ast.expr:
        symbol = self.interpreter.symbol
        operands = [a.value if isinstance(a, ast.Constant) else symbol(a) for a in args]
        result = f(symbol(tangent), symbol(out), *operands)
        return self.interpreter.expression(result.tensor() if isinstance(result, Selected) else result)
