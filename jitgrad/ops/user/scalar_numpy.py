"""Evaluates canonical scalar expressions on NumPy arrays."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitgrad.core.errors import OpDefinitionError
from jitgrad.core.op import REGISTRY

_BINARY: dict[type, Callable[..., Any]] = {
    ast.Add: np.add, ast.Sub: np.subtract, ast.Mult: np.multiply, ast.Div: np.divide,
    ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
    ast.Lt: np.less, ast.LtE: np.less_equal, ast.Gt: np.greater, ast.GtE: np.greater_equal,
    ast.Eq: np.equal, ast.NotEq: np.not_equal, ast.USub: np.negative, ast.Invert: np.invert,
}  # fmt: skip
_OTHER_NAMES: dict[str, Callable[..., Any]] = {
    "rint": np.rint, "left_shift": np.left_shift, "right_shift": np.right_shift,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class NumpyExpression:
    """A straight-line program for NumPy: callable as an op's ``eager(*arrays, **attrs)``.

    Equal sub-expressions are computed once. Constants and attributes are converted to the dtype of the first operand,
    as kernels do. Both sides of a conditional are computed and one is selected.
    """

    operands: tuple[str, ...]
    constants: tuple[bool | int | float, ...]
    attrs: tuple[str, ...]
    steps: tuple[tuple[Callable[..., Any], tuple[int, ...]], ...]

    def __call__(self, *arrays: Any, **attrs: Any) -> Any:
        dtype = arrays[0].dtype
        values: list[Any] = list(arrays)
        for x in (*self.constants, *(attrs[name] for name in self.attrs)):
            values.append(np.bool_(x) if isinstance(x, bool) else dtype.type(x))
        for function, places in self.steps:
            values.append(function(*(values[k] for k in places)))
        return np.broadcast_to(values[-1], np.broadcast_shapes(*(a.shape for a in arrays)))


class _Compiler:
    """Numbers the parts of an expression: operands, constants, attributes, one step per other part."""

    def __init__(self, what: str, tree: ast.expr, operands: Sequence[str], attrs: Sequence[str]) -> None:
        self.what = what
        numbers = {_constant_key(n): n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)}
        self.constants: tuple[Any, ...] = tuple(numbers.values())
        self.places: dict[Any, int] = {name: k for k, name in enumerate(operands)}
        self.places |= {key: len(operands) + k for k, key in enumerate(numbers)}
        first = len(self.places)
        self.places |= {name: first + k for k, name in enumerate(attrs)}
        self.steps: list[tuple[Callable[..., Any], tuple[int, ...]]] = []
        self.done: dict[Any, int] = {}

    def place(self, tree: ast.expr) -> int:
        match tree:
            case ast.Name(id=name):
                return self.places[name]
            case ast.Constant():
                return self.places[_constant_key(tree)]
            case ast.BinOp(left=left, op=op, right=right):
                return self.step(_BINARY[type(op)], left, right)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self.step(_BINARY[type(op)], left, right)
            case ast.UnaryOp(op=op, operand=x):
                return self.step(_BINARY[type(op)], x)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self.step(np.where, test, body, orelse)
            case ast.Call(func=ast.Name(id=name), args=args):
                return self.step(self.function(name), *args)
        raise OpDefinitionError(f"{self.what}: {ast.unparse(tree)!r} has no meaning on arrays")

    def step(self, function: Callable[..., Any], *parts: ast.expr) -> int:
        places = tuple(map(self.place, parts))
        key = (id(function), places)
        if key not in self.done:
            self.done[key] = len(self.places) + len(self.steps)
            self.steps.append((function, places))
        return self.done[key]

    def function(self, name: str) -> Callable[..., Any]:
        op = REGISTRY.get(name)
        function = _OTHER_NAMES.get(name) if op is None or op.attrs else op.eager
        if function is None:
            raise OpDefinitionError(f"{self.what}: {name} cannot be used in a user-defined op")
        return function


def _constant_key(tree: ast.Constant) -> tuple[type, str]:
    return type(tree.value), repr(tree.value)


def numpy_expression(what: str, tree: ast.expr, operands: Sequence[str], attrs: Sequence[str]) -> NumpyExpression:
    """``tree`` on NumPy arrays. Raises OpDefinitionError for a function that NumPy does not have."""
    compiler = _Compiler(what, tree, operands, attrs)
    last = compiler.place(tree)
    steps = compiler.steps
    if not steps or last != len(compiler.places) + len(steps) - 1:
        steps.append((np.positive, (last,)))  # the result is an operand, a constant or a part of another part
    return NumpyExpression(tuple(operands), compiler.constants, tuple(attrs), tuple(steps))
