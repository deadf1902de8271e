"""Differentiates scalar functions with loops: forward mode, which carries the tangent of each variable through the loop."""

from __future__ import annotations

import ast
import linecache
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitgrad.core.context import current_interpreter
from jitgrad.core.errors import OpDefinitionError
from jitgrad.ops.user.scalar_gradient import ScalarDifferentiator, SymbolicInterpreter
from jitgrad.ops.user.scalar_source import (
    CanonicalForm,
    call,
    canonical,
    check_size,
    definition_of,
    number_node,
    replace_names,
)

_ZERO = ast.Constant(0.0)
# How NumPy and Python spell the functions of canonical expressions: numba knows these, and none raises an error.
_NUMPY = {
    "abs": "abs", "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan",
    "atan2": "arctan2", "atanh": "arctanh", "maximum": "maximum", "minimum": "minimum", "pow": "power", "rint": "rint",
    "floor_divide": "floor_divide", "remainder": "remainder", "fmod": "fmod", "sign": "sign", "logaddexp": "logaddexp",
    **{name: name for name in (
        "ceil", "copysign", "cos", "cosh", "exp", "exp2", "expm1", "floor", "hypot", "isfinite", "isinf", "isnan", "log",
        "log10", "log1p", "log2", "signbit", "sin", "sinh", "sqrt", "tan", "tanh", "trunc", "nextafter", "cbrt",
    )},
}  # fmt: skip
_MATH = frozenset({"erf", "erfc"})
_WRITTEN_OUT = {
    "reciprocal": "1.0 / x", "rsqrt": "1.0 / sqrt(x)", "sigmoid": "1.0 / (1.0 + exp(-x))",
    "softplus": "maximum(x, 0.0) + log1p(exp(-abs(x)))",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class LoopFunction:
    """A scalar function of floats with loops: its canonical statements, which can be run and differentiated."""

    name: str
    parameters: tuple[str, ...]
    body: tuple[ast.stmt, ...]

    @staticmethod
    def read(function: Callable[..., Any], name: str) -> LoopFunction:
        """The source of ``function``.

        Raises:
            OpDefinitionError: it has statements or functions that have no derivative here; or no readable source.
        """
        what = _what(name)
        node = definition_of(function)
        if isinstance(node, ast.Lambda):
            raise OpDefinitionError(f"{what}: a lambda has no loops; pass vjp=")
        parameters = tuple(a.arg for a in node.args.args)
        local = {*parameters, *_assigned(node.body)}
        reader = _Reader(what, local, _numbers_outside(function, local))
        return LoopFunction(name, parameters, tuple(reader.block(node.body)))

    def derivative(self, parameter: str) -> LoopFunction:
        """The partial derivative with respect to ``parameter``, a function of the same parameters."""
        names = {*self.parameters, *_assigned(self.body)}
        suffix = f"_d{parameter}"
        while any(name + suffix in names for name in names):
            suffix += "_"
        active = _active(self.body, parameter)
        interpreter = SymbolicInterpreter(_what(self.name))
        token = current_interpreter.set(interpreter)
        try:
            body = _TangentWriter(_what(self.name), names, active, suffix, interpreter).block(self.body)
        finally:
            current_interpreter.reset(token)
        seeds: list[ast.stmt] = [
            _assign(p + suffix, ast.Constant(1.0 if p == parameter else 0.0)) for p in self.parameters if p in active
        ]
        return LoopFunction(f"{self.name}_d{parameter}", self.parameters, (*seeds, *body))

    def compile(self) -> Callable[..., Any]:
        """A Python function that computes it, which numba can compile."""
        arguments = ast.arguments([], [ast.arg(p) for p in self.parameters], None, [], [], None, [])
        body = [_Renderer(_what(self.name)).visit(statement) for statement in _copies(self.body)]
        definition = ast.FunctionDef(self.name, arguments, body, [])
        definition.type_params = []  # type: ignore[attr-defined]
        source = ast.unparse(ast.fix_missing_locations(ast.Module([definition], []))) + "\n"
        file = f"<{self.name}, {len(source)}>"
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        namespace: dict[str, Any] = {"np": np, "math": math}
        exec(compile(source, file, "exec"), namespace)
        return namespace[self.name]  # type: ignore[no-any-return]


def _what(name: str) -> str:
    return f"elementwise({name})"


def _copies(statements: Iterable[ast.stmt]) -> list[ast.stmt]:
    """Fresh trees, because a transformer changes what it visits."""
    text = "\n".join(ast.unparse(ast.fix_missing_locations(s)) for s in statements)
    return ast.parse(text).body


def _assign(name: str, value: ast.expr) -> ast.Assign:
    return ast.Assign([ast.Name(name, ast.Store())], value, lineno=0)


def _targets(statement: ast.stmt) -> list[tuple[str, ast.expr]]:
    """The names that an assignment binds, each with its value."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return [(name, value)]
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)) if len(names) == len(values):
            return [(n.id, v) for n, v in zip(names, values, strict=True) if isinstance(n, ast.Name)]
    return []


def _assigned(statements: Sequence[ast.stmt]) -> set[str]:
    """All local names of ``statements``."""
    nodes = [n for s in statements for n in ast.walk(s)]
    return {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(getattr(n, "ctx", None), ast.Store)}


def _active(statements: Sequence[ast.stmt], parameter: str) -> set[str]:
    """The names whose values depend on ``parameter`` through assignments."""
    pairs = [pair for s in statements for n in ast.walk(s) if isinstance(n, ast.stmt) for pair in _targets(n)]
    active, count = {parameter}, 0
    while count != len(active):
        count = len(active)
        active |= {t for t, v in pairs if any(isinstance(n, ast.Name) and n.id in active for n in ast.walk(v))}
    return active


def _numbers_outside(function: Callable[..., Any], local: set[str]) -> dict[str, ast.expr]:
    """Numbers from outside that ``function`` reads, which its kernel has as constants as well."""
    code = function.__code__
    cells = dict(zip(code.co_freevars, (c.cell_contents for c in function.__closure__ or ()), strict=True))
    found = {**{n: function.__globals__[n] for n in code.co_names if n in function.__globals__}, **cells}
    return {
        name: number_node(value)
        for name, value in found.items()
        if name not in local and isinstance(value, (bool, int, float))
    }


class _Statements:
    """Rewrites statements one by one; what it does not know is refused."""

    def __init__(self, what: str, names: set[str]) -> None:
        self.what = what
        self.names = names

    def block(self, statements: Iterable[ast.stmt]) -> list[ast.stmt]:
        return [new for s in statements for new in self.statement(s)] or [ast.Pass()]

    def statement(self, s: ast.stmt) -> list[ast.stmt]:
        match s:
            case ast.If(test=test, body=body, orelse=orelse):
                return [ast.If(self.condition(test), self.block(body), self.block(orelse) if orelse else [])]
            case ast.While(test=test, body=body, orelse=[]):
                return [ast.While(self.condition(test), self.block(body), [])]
            case ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"), args=args), body=body, orelse=[]):
                start = self.loop_start(name)
                counts = call("range", *map(self.number, args))
                return [ast.For(ast.Name(name, ast.Store()), counts, [*start, *self.block(body)], [], lineno=0)]
            case ast.Return(value=ast.expr() as value):
                return self.returned(value)
            case ast.Break() | ast.Continue() | ast.Pass():
                return [s]
            case ast.Expr(value=ast.Constant()):
                return []
            case ast.AugAssign(target=ast.Name(id=name), op=operator, value=value):
                return self.assignments([(name, ast.BinOp(ast.Name(name), operator, value))])
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                return self.assignments([(name, value)])
        if pairs := _targets(s):
            return self.assignments(pairs)
        text = ast.unparse(s).splitlines()[0]
        raise OpDefinitionError(f"{self.what}: no gradient can be derived through `{text}`; pass vjp=")

    def number(self, tree: ast.expr) -> ast.expr:
        return canonical(self.what, tree, sorted(self.names))

    def condition(self, tree: ast.expr) -> ast.expr:
        form = CanonicalForm(self.what, frozenset(self.names)).truth(tree)
        return ast.fix_missing_locations(form)

    def loop_start(self, _name: str) -> list[ast.stmt]:
        return []

    def returned(self, value: ast.expr) -> list[ast.stmt]:
        return [ast.Return(self.number(value))]

    def assignments(self, pairs: Sequence[tuple[str, ast.expr]]) -> list[ast.stmt]:
        return [_together([(name, self.number(value)) for name, value in pairs])]


def _together(pairs: Sequence[tuple[str, ast.expr]]) -> ast.stmt:
    """One assignment of all, from their old values."""
    if len(pairs) == 1:
        return _assign(*pairs[0])
    names = ast.Tuple([ast.Name(name, ast.Store()) for name, _ in pairs], ast.Store())
    return ast.Assign([names], ast.Tuple([value for _, value in pairs], ast.Load()), lineno=0)


class _Reader(_Statements):
    """Brings the user's statements into canonical form; numbers from outside become constants."""

    def __init__(self, what: str, names: set[str], outside: Mapping[str, ast.expr]) -> None:
        super().__init__(what, names)
        self.outside = outside

    def number(self, tree: ast.expr) -> ast.expr:
        return super().number(replace_names(tree, self.outside))

    def condition(self, tree: ast.expr) -> ast.expr:
        return super().condition(replace_names(tree, self.outside))


class _TangentWriter(_Statements):
    """Puts the assignment of a tangent with each assignment, and returns the tangent."""

    def __init__(
        self, what: str, names: set[str], active: set[str], suffix: str, interpreter: SymbolicInterpreter
    ) -> None:
        super().__init__(what, names | {name + suffix for name in active})
        self.active = active
        self.suffix = suffix
        tangents = {name: ast.Name(name + suffix) for name in active}
        self.differentiator = ScalarDifferentiator(what, interpreter, tangents)

    def tangent(self, tree: ast.expr) -> ast.expr:
        found = self.differentiator.of(self.number(tree))
        if found is None:
            return _ZERO
        check_size(self.what, found)
        return self.number(found)

    def assignments(self, pairs: Sequence[tuple[str, ast.expr]]) -> list[ast.stmt]:
        tangents = [(name + self.suffix, self.tangent(value)) for name, value in pairs if name in self.active]
        return [_together([*tangents, *((name, self.number(value)) for name, value in pairs)])]

    def loop_start(self, name: str) -> list[ast.stmt]:
        return [_assign(name + self.suffix, _ZERO)] if name in self.active else []

    def returned(self, value: ast.expr) -> list[ast.stmt]:
        return [ast.Return(self.tangent(value))]


class _Renderer(ast.NodeTransformer):
    """Spells canonical expressions for Python and numba, which divides by zero here as NumPy does."""

    def __init__(self, what: str) -> None:
        self.what = what

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        operand = self.visit(node.operand)
        return ast.UnaryOp(ast.Not() if isinstance(node.op, ast.Invert) else node.op, operand)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        left, right = self.visit(node.left), self.visit(node.right)
        return _attribute_call("np", "divide", left, right) if isinstance(node.op, ast.Div) else ast.BinOp(left, node.op, right)

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if isinstance(node.value, float) and math.isinf(node.value):
            infinity = ast.Attribute(ast.Name("math", ast.Load()), "inf", ast.Load())
            return infinity if node.value > 0 else ast.UnaryOp(ast.USub(), infinity)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        assert isinstance(node.func, ast.Name)
        name = node.func.id
        if name in _WRITTEN_OUT:
            return self.visit(replace_names(ast.parse(_WRITTEN_OUT[name], mode="eval").body, {"x": node.args[0]}))  # type: ignore[no-any-return]
        args = [self.visit(a) for a in node.args]
        if name in _NUMPY:
            return _attribute_call("np", _NUMPY[name], *args)
        if name in _MATH:
            return _attribute_call("math", name, *args)
        if name == "range":
            return call(name, *args)
        raise OpDefinitionError(f"{self.what}: its derivative needs {name}, which loops cannot compute; pass vjp=")


def _attribute_call(module: str, name: str, *args: ast.expr) -> ast.expr:
    return ast.Call(ast.Attribute(ast.Name(module, ast.Load()), name, ast.Load()), list(args), [])
