"""Makes a canonical expression of a user's scalar function, for kernels, NumPy and gradients."""

from __future__ import annotations

import ast
import dis
import inspect
import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from types import CodeType
from typing import Any

from jitgrad.core.errors import OpDefinitionError
from jitgrad.core.op import SCALAR_FUNCTIONS

# nodes of an expression, which may grow exponentially as local variables are written out
LARGEST_EXPRESSION = 4000

_CONSTANTS = {"pi": math.pi, "e": math.e, "tau": math.tau, "inf": math.inf, "nan": math.nan}
_MODULES = frozenset({"math", "np", "numpy", "jg", "jitgrad"})
_SPELLINGS = {
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2", "arcsinh": "asinh", "arccosh": "acosh",
    "arctanh": "atanh", "fabs": "abs", "absolute": "abs", "power": "pow", "mod": "remainder",
}  # fmt: skip
# Python chooses between these by imports of the module and by enclosing functions.
_SAME_INSTRUCTION = {
    "LOAD_METHOD": "LOAD_ATTR", "LOAD_DEREF": "LOAD_GLOBAL", "PUSH_NULL": "", "PRECALL": "", "COPY_FREE_VARS": "",
    "CALL_METHOD": "CALL",
}  # fmt: skip
_BOOLEAN_CALLS = frozenset({"isnan", "isinf", "isfinite", "signbit", "logical_xor"})


class NotAnExpression(Exception):
    """The function has loops or other statements that are no expression."""


def canonical(what: str, tree: ast.expr, names: Sequence[str]) -> ast.expr:
    """``tree`` in the forms that scalar expressions of ops may use: see :class:`CanonicalForm`.

    Raises:
        OpDefinitionError: it uses a name other than ``names``, an unknown function, or a form with no scalar meaning.
    """
    try:
        result = CanonicalForm(what, frozenset(names)).visit(tree)
    except RecursionError:
        raise OpDefinitionError(f"{what}: the expression is nested too deeply; pass it in parts") from None
    assert isinstance(result, ast.expr)
    return ast.fix_missing_locations(result)


class CanonicalForm(ast.NodeTransformer):
    """Rewrites Python's forms: ``**`` to pow, ``and`` to ``&``, math.exp to exp, and others.

    ``min`` and ``max`` become Python's comparisons, which treat NaN as the user's function does.
    """

    def __init__(self, what: str, names: frozenset[str]) -> None:
        self.what = what
        self.names = names

    def generic_visit(self, node: ast.AST) -> ast.AST:
        raise OpDefinitionError(f"{self.what}: {ast.unparse(node)!r} has no meaning in a scalar expression")

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self.names:
            raise OpDefinitionError(
                f"{self.what}: uses {node.id!r}, which is neither a parameter nor a local variable. A value from "
                "outside would be frozen here: make it a parameter (perhaps with a default) or write the number."
            )
        return ast.Name(node.id)

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if not isinstance(node.value, (bool, int, float)):
            raise OpDefinitionError(f"{self.what}: constant {node.value!r} is no number")
        return number_node(node.value)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if isinstance(node.value, ast.Name) and node.value.id in _MODULES and node.attr in _CONSTANTS:
            return number_node(_CONSTANTS[node.attr])
        return self.generic_visit(node)  # type: ignore[return-value]

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        if isinstance(node.op, ast.UAdd):
            operand: ast.expr = self.visit(node.operand)
            return operand
        if isinstance(node.op, ast.Not):
            return ast.UnaryOp(ast.Invert(), self.truth(node.operand))
        return ast.UnaryOp(node.op, self.visit(node.operand))

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        left, right = self.visit(node.left), self.visit(node.right)
        match node.op:
            case ast.Pow():
                if isinstance(right, ast.Constant) and right.value == 2:
                    return ast.BinOp(left, ast.Mult(), left)
                return call("pow", left, right)
            case ast.FloorDiv():
                return call("floor_divide", left, right)
            case ast.Mod():
                return call("remainder", left, right)
            case ast.Add() | ast.Sub() | ast.Mult() | ast.Div() | ast.BitAnd() | ast.BitOr() | ast.BitXor():
                return ast.BinOp(left, node.op, right)
        return self.generic_visit(node)  # type: ignore[return-value]

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        values = [self.visit(value) for value in node.values]
        if not all(map(is_boolean, values)):
            raise OpDefinitionError(
                f"{self.what}: {ast.unparse(node)!r}: `and` and `or` take conditions, not numbers, here"
            )
        return _chain(ast.BitAnd() if isinstance(node.op, ast.And) else ast.BitOr(), values)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        parts = [self.visit(x) for x in (node.left, *node.comparators)]
        for operator in node.ops:
            if not isinstance(operator, (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)):
                return self.generic_visit(node)  # type: ignore[return-value]
        pairs = [ast.Compare(a, [op], [b]) for a, op, b in zip(parts, node.ops, parts[1:], strict=False)]
        return _chain(ast.BitAnd(), pairs)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        return ast.IfExp(self.truth(node.test), self.visit(node.body), self.visit(node.orelse))

    def visit_Call(self, node: ast.Call) -> ast.expr:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
            name = node.func.attr if node.func.value.id in _MODULES else ""
        name = _SPELLINGS.get(name, name)
        args = [self.visit(a) for a in node.args]
        if name == "float" and len(args) == 1:
            only: ast.expr = args[0]
            return only
        if name in ("min", "max") and len(args) > 1:
            return self._extremum(ast.Lt() if name == "min" else ast.Gt(), args)
        if name not in SCALAR_FUNCTIONS or node.keywords:
            raise OpDefinitionError(
                f"{self.what}: {ast.unparse(node)!r} is no scalar function; there are {sorted(SCALAR_FUNCTIONS)}"
            )
        return call(name, *args)

    def _extremum(self, operator: ast.cmpop, args: Sequence[ast.expr]) -> ast.expr:
        best = args[0]
        for x in args[1:]:
            best = ast.IfExp(ast.Compare(x, [operator], [best]), x, best)
        return best

    def truth(self, node: ast.expr) -> ast.expr:
        """``node`` as a condition."""
        tree: ast.expr = self.visit(node)
        return tree if is_boolean(tree) else ast.Compare(tree, [ast.NotEq()], [ast.Constant(0)])


def number_node(value: bool | int | float) -> ast.expr:
    """A constant whose text is an expression again: NaN has no literal."""
    if math.isnan(value):
        return ast.BinOp(ast.Constant(math.inf), ast.Sub(), ast.Constant(math.inf))
    return ast.Constant(value)


def call(name: str, *args: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(name), list(args), [])


def _chain(operator: ast.operator, parts: Sequence[ast.expr]) -> ast.expr:
    result = parts[0]
    for part in parts[1:]:
        result = ast.BinOp(result, operator, part)
    return result


def is_boolean(tree: ast.expr) -> bool:
    """Whether a canonical expression is true or false rather than a number."""
    match tree:
        case ast.Compare() | ast.Constant(value=bool()):
            return True
        case ast.UnaryOp(op=ast.Invert(), operand=x):
            return is_boolean(x)
        case ast.BinOp(left=left, op=ast.BitAnd() | ast.BitOr() | ast.BitXor(), right=right):
            return is_boolean(left) and is_boolean(right)
        case ast.IfExp(body=body, orelse=orelse):
            return is_boolean(body) and is_boolean(orelse)
        case ast.Call(func=ast.Name(id=name)):
            return name in _BOOLEAN_CALLS
    return False


class Replace(ast.NodeTransformer):
    """Puts expressions in place of names."""

    def __init__(self, names: Mapping[str, ast.expr]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.names.get(node.id, node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        return ast.Call(node.func, [self.visit(a) for a in node.args], node.keywords)


def replace_names(tree: ast.expr, names: Mapping[str, ast.expr]) -> ast.expr:
    """A copy of ``tree`` with ``names`` written out."""
    fresh = ast.parse(ast.unparse(tree), mode="eval").body  # a transformer changes its tree
    result = Replace(names).visit(fresh)
    assert isinstance(result, ast.expr)
    return result


def body_of(function: Callable[..., Any]) -> ast.expr:
    """The result of ``function`` as one expression of its parameters; branches are conditionals.

    Raises:
        NotAnExpression: it has loops or other statements.
        OpDefinitionError: its source cannot be read, or a path returns nothing.
    """
    name = getattr(function, "__name__", str(function))
    node = definition_of(function)
    return _block(name, node.body, {}) if isinstance(node, ast.FunctionDef) else node.body


def definition_of(function: Callable[..., Any]) -> ast.FunctionDef | ast.Lambda:
    """The syntax tree of ``function``. Raises OpDefinitionError if its source cannot be read."""
    name = getattr(function, "__name__", str(function))
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        raise OpDefinitionError(
            f"elementwise({name}): its source cannot be read here; write elementwise('name(x)', scalar='...') instead"
        ) from None
    code = getattr(function, "__code__", None)
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.Lambda)) and code is not None and _compiles_to(node, code):
            return node
    raise OpDefinitionError(
        f"elementwise({name}): its source file does not show the function that runs (was it edited since?)"
        "; write elementwise('name(x)', scalar='...') instead"
    )


def _compiles_to(node: ast.FunctionDef | ast.Lambda, code: CodeType) -> bool:
    """Whether ``node`` compiles to ``code``: lambdas may share a line, and files change."""
    if isinstance(node, ast.FunctionDef):
        node = ast.FunctionDef(node.name, node.args, node.body, [], node.returns, node.type_comment)
    statement = node if isinstance(node, ast.FunctionDef) else ast.Expr(node)
    module = ast.fix_missing_locations(ast.Module([statement], []))
    compiled = compile(module, "<source>", "exec", dont_inherit=True)
    inner = next((c for c in compiled.co_consts if isinstance(c, CodeType) and c.co_name == code.co_name), None)
    return inner is not None and _instructions(inner) == _instructions(code)


def _instructions(code: CodeType) -> list[tuple[str, Any]]:
    """The instructions of ``code``, without kinds of names and targets of jumps."""
    instructions = []
    for instruction in dis.get_instructions(code):
        name = _SAME_INSTRUCTION.get(instruction.opname, instruction.opname)
        if name:
            instructions.append((name, repr(instruction.argval) if instruction.opcode not in dis.hasjrel else ""))
    return instructions


def _block(name: str, statements: Sequence[ast.stmt], env: dict[str, ast.expr]) -> ast.expr:
    """The value that ``statements`` return, with the local variables ``env`` written out."""
    for k, statement in enumerate(statements):
        match statement:
            case ast.Return(value=ast.expr() as value):
                return replace_names(value, env)
            case ast.If(test=test, body=body, orelse=orelse):
                rest = list(statements[k + 1 :])
                yes, no = _block(name, body + rest, env), _block(name, orelse + rest, env)
                return ast.IfExp(replace_names(test, env), yes, no)
            case ast.Assign(targets=[ast.Name(id=target)], value=value):
                env = _bind(name, env, target, replace_names(value, env))
            case ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value):
                env = _bind(name, env, target, replace_names(value, env))
            case ast.AugAssign(target=ast.Name(id=target), op=operator, value=value):
                value = ast.BinOp(env.get(target, ast.Name(target)), operator, replace_names(value, env))
                env = _bind(name, env, target, value)
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                pass
            case _:
                raise NotAnExpression
    raise OpDefinitionError(f"elementwise({name}): it must return a value on every path")


def _bind(name: str, env: dict[str, ast.expr], target: str, value: ast.expr) -> dict[str, ast.expr]:
    check_size(f"elementwise({name})", value)
    return {**env, target: value}


def check_size(what: str, tree: ast.expr) -> None:
    """Raise OpDefinitionError if ``tree`` is too large to be written out."""
    if sum(1 for _ in ast.walk(tree)) > LARGEST_EXPRESSION:
        raise OpDefinitionError(
            f"{what}: written out as one expression it has more than {LARGEST_EXPRESSION} parts; split it into several "
            "ops, or pass vjp= if this is about its derivative"
        )
