"""Kernel text, line by line, as plain numba: casts by NumPy's names, choices as Python writes them, and functions
by the dtype that they are called with."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

import numpy as np

from jitgrad.core.errors import CodegenError
from jitgrad.eject.support import SupportLibrary
from jitgrad.eject.vector_math import MathLibrary
from jitgrad.vecmath import FUNCTIONS

Typed = tuple[ast.expr, str]  # an expression, and the name of its dtype
_MARK = re.compile(r"⟨\w*:([^⟩]*)⟩")  # a number from the user's code
_NUMPY_NAMES = {
    "f": "float", "i": "int", "u": "uint",
}  # fmt: skip
USER_RESULT = "any"  # what a user's function returns; its result is always cast


def numpy_name(name: str) -> str:
    """``np.float32`` for f32."""
    return "np.bool_" if name == "bool" else f"np.{_NUMPY_NAMES[name[0]]}{name[1:]}"


class LineTranslator:
    """Translates the lines of one kernel.

    Attributes:
        kinds: the dtypes of locals and parameters, by their names in the translated text.
        renamed: the names of locals that are called otherwise in the translated text.
        user_functions: the names of users' scalar functions in the translated text.
    """

    def __init__(
        self, kinds: dict[str, str], mathematics: MathLibrary, support: SupportLibrary, user_functions: Mapping[str, str]
    ) -> None:
        self.kinds = kinds
        self.renamed: dict[str, str] = {}
        self.mathematics = mathematics
        self.support = support
        self.user_functions = user_functions

    def line(self, text: str) -> str:
        """``text``, an assignment of the kernel dialect, as plain numba."""
        statement = ast.parse(_MARK.sub(r"\1", text)).body[0]
        if not isinstance(statement, ast.Assign):
            raise CodegenError(f"kernel text {text!r} is no assignment")
        value, kind = self.visit(statement.value)
        target, _ = self._target(statement.targets[0], kind)
        return f"{ast.unparse(target)} = {ast.unparse(value)}"

    def expression(self, text: str) -> str:
        """``text``, an expression of the kernel dialect, as plain numba."""
        return ast.unparse(self.visit(ast.parse(_MARK.sub(r"\1", text), mode="eval").body)[0])

    def _target(self, target: ast.expr, kind: str) -> Typed:
        if isinstance(target, ast.Name):
            name = self.renamed.get(target.id, target.id)
            self.kinds[name] = kind
            return ast.Name(name), kind
        return self.visit(target)

    def visit(self, tree: ast.expr) -> Typed:
        method = getattr(self, f"on_{type(tree).__name__}", None)
        if method is None:
            raise CodegenError(f"{ast.unparse(tree)!r} has no numba form")
        typed: Typed = method(tree)
        return typed

    def on_Name(self, tree: ast.Name) -> Typed:
        name = self.renamed.get(tree.id, tree.id)
        return ast.Name(name), self.kinds.get(name, "i64")

    def on_Constant(self, tree: ast.Constant) -> Typed:
        kind = "bool" if isinstance(tree.value, bool) else "i64" if isinstance(tree.value, int) else "f64"
        return tree, kind

    def on_Subscript(self, tree: ast.Subscript) -> Typed:
        array, kind = self.visit(tree.value)
        return ast.Subscript(array, self.visit(tree.slice)[0]), kind

    def on_UnaryOp(self, tree: ast.UnaryOp) -> Typed:
        operand, kind = self.visit(tree.operand)
        return ast.UnaryOp(tree.op, operand), kind

    def on_BinOp(self, tree: ast.BinOp) -> Typed:
        left, kind = self.visit(tree.left)
        return ast.BinOp(left, tree.op, self.visit(tree.right)[0]), kind

    def on_Compare(self, tree: ast.Compare) -> Typed:
        left, _ = self.visit(tree.left)
        return ast.Compare(left, tree.ops, [self.visit(x)[0] for x in tree.comparators]), "bool"

    def on_Call(self, tree: ast.Call) -> Typed:
        assert isinstance(tree.func, ast.Name)
        name = tree.func.id
        if name.startswith("to_"):
            return self.cast(tree.args[0], name[3:]), "f32" if name == "to_f16" else name[3:]
        args = [self.visit(x) for x in tree.args]
        if name == "select":
            (condition, _), (yes, kind), (no, _) = args
            return ast.IfExp(condition, yes, no), kind
        if name == "freeze":
            return args[0]
        if name == "element_at":
            (table, kind), (position, _) = args
            return ast.Subscript(table, position), kind
        if name in ("reassoc_add", "reassoc_mul"):
            symbol = ast.Add() if name == "reassoc_add" else ast.Mult()
            return ast.BinOp(args[0][0], symbol, args[1][0]), args[0][1]
        function, kind = self.function(name, args[0][1])
        return _call(function, *(x for x, _ in args)), kind

    def function(self, name: str, kind: str) -> tuple[str, str]:
        """What the function ``name`` for operands of dtype ``kind`` is called, and the dtype of its result."""
        if name in self.user_functions:
            return self.user_functions[name], USER_RESULT
        if name in ("fmax", "fmin"):
            return ("np.maximum" if name == "fmax" else "np.minimum"), kind
        if name == "abs":
            return "abs", kind
        if name == "as_half":
            return self.support.function("half_to_float"), "f32"
        if name == "as_bits":
            return self.support.function("float_to_half"), "u16"
        if name in FUNCTIONS:
            return self.mathematics.function(name, kind), "bool" if FUNCTIONS[name].boolean else kind
        return self.support.function(name), kind

    def cast(self, tree: ast.expr, wanted: str) -> ast.expr:
        """``tree`` as a number of dtype ``wanted``; a float16 is the float32 that equals it."""
        if (number := _number(tree)) is not None and wanted != "bool":
            return _literal(number, wanted)
        operand, kind = self.visit(tree)
        if wanted == "f16":
            return self._to_half(operand, kind)
        if kind == wanted:
            return operand
        if wanted == "bool":
            return ast.Compare(operand, [ast.NotEq()], [_literal(0, kind)])
        if kind in ("f32", "f64", USER_RESULT) and wanted[0] in "iu":
            if kind == USER_RESULT:
                operand = _call("np.float64", operand)
            return _call(self.support.function(f"float_to_{wanted}"), operand)
        return _call(numpy_name(wanted), operand)

    def _to_half(self, operand: ast.expr, kind: str) -> ast.expr:
        if kind == "f64":
            operand = _call(self.support.function("round_to_odd"), operand)
        elif kind != "f32":
            operand = _call("np.float32", operand)
        return _call(self.support.function("round_to_half"), operand)


def _call(name: str, *args: ast.expr) -> ast.expr:
    return ast.Call(ast.parse(name, mode="eval").body, list(args), [])


def _number(tree: ast.expr) -> int | float | None:
    """The number that ``tree`` writes out, else None."""
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
        number = _number(tree.operand)
        return None if number is None else -number
    if isinstance(tree, ast.Name) and tree.id in ("INF", "NAN"):
        return float(tree.id)
    if isinstance(tree, ast.Constant) and type(tree.value) in (int, float):
        return tree.value  # type: ignore[return-value]
    return None


def _literal(number: float, kind: str) -> ast.expr:
    """``number`` as a literal of dtype ``kind``."""
    if kind == "f16":
        with np.errstate(over="ignore"):
            return _literal(float(np.float16(number)), "f32")
    if kind[0] == "f":
        value = float(number)
        text = repr(value).replace("inf", "np.inf").replace("nan", "np.nan")
        return ast.parse(f"{numpy_name(kind)}({text})", mode="eval").body
    if kind == "bool":
        return ast.Constant(bool(number))
    return ast.parse(f"{numpy_name(kind)}({int(number)})", mode="eval").body
