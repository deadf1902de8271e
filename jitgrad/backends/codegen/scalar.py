"""Scalar expressions of ops as kernel text: typed constants, explicit casts, selects instead of
branches."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from jitgrad.backends.codegen.source import marked
from jitgrad.compiler.compiler_ops import ELEMENT_AT
from jitgrad.compiler.lowering.kernel_ir import Accumulate
from jitgrad.core.aval import Dtype, dtype_name
from jitgrad.core.errors import CodegenError
from jitgrad.core.ir import TraceNode
from jitgrad.core.op import OpDef, parsed_scalar
from jitgrad.eager.float16 import HALF, compute_dtype, is_exact

Arg = tuple[str | bool | int | float, Dtype]

# Functions whose integer meaning is not that of the vector mathematics library.
_INTEGER_FORMS: Mapping[str, str] = {
    "abs": "select({0} < {z}, {to}(-{0}), {0})",
    "sign": "select({0} > {z}, {o}, select({0} < {z}, {to}(-{o}), {z}))",
    "minimum": "fmin({0}, {1})",
    "maximum": "fmax({0}, {1})",
    "floor_divide": "floor_divide_int({0}, {1})",
    "remainder": "remainder_int({0}, {1})",
    "fmod": "fmod_int({0}, {1})",
    "floor": "{0}",
    "ceil": "{0}",
    "trunc": "{0}",
    "rint": "{0}",
}


def typed(number: bool | int | float, dtype: Dtype) -> str:
    """A literal of ``dtype``: a bare one is an f64 or an i64."""
    if dtype.kind == "b":
        return "True" if number else "False"
    if dtype.kind == "f":
        value = float(number)
        if math.isnan(value):
            return f"to_{dtype_name(dtype)}(NAN)"
        if math.isinf(value):
            return f"to_{dtype_name(dtype)}({'-' if value < 0 else ''}INF)"
        return f"to_{dtype_name(dtype)}({value!r})"
    return f"to_{dtype_name(dtype)}({int(number)})"


def given(number: bool | int | float, dtype: Dtype, operand: str = "") -> str:
    """A literal from the user's code: a float may differ in the next kernel, which can have it as a
    parameter."""
    text = typed(number, dtype)
    return marked(text, operand) if dtype.kind == "f" else text


def cast(text: str, dtype: Dtype, wanted: Dtype) -> str:
    """``text`` of ``dtype``, converted to ``wanted`` as NumPy does.

    A float16 is held as the float32 that equals it; ``to_f16`` rounds to such a number.
    """
    if dtype == wanted or compute_dtype(dtype) == wanted:
        return text
    if wanted.kind == "b":
        return f"({text} != {typed(0, dtype)})"
    return f"to_{dtype_name(wanted)}({text})"


class _Renderer:
    """Prints one expression; every sub-expression keeps the dtype it is computed in."""

    def __init__(self, op: OpDef, names: Mapping[str, tuple[str, Dtype]], dtype: Dtype) -> None:
        self.op = op
        self.names = names
        self.dtype = dtype  # of constants and arithmetic

    def render(self, tree: ast.expr) -> tuple[str, Dtype]:
        method = getattr(self, f"on_{type(tree).__name__}", None)
        if method is None:
            raise CodegenError(f"op {self.op}: {ast.unparse(tree)!r} cannot appear in a scalar expression")
        return method(tree)  # type: ignore[no-any-return]

    def in_dtype(self, tree: ast.expr, dtype: Dtype) -> str:
        if isinstance(tree, ast.Constant):
            return typed(tree.value, dtype)  # type: ignore[arg-type]
        text, rendered_dtype = self.render(tree)
        return cast(text, rendered_dtype, dtype)

    def common(self, *trees: ast.expr) -> Dtype:
        """The dtype that the parts are computed in: that of a part that is no constant."""
        dtypes = [self.render(t)[1] for t in trees if not isinstance(t, ast.Constant)]
        if not dtypes:
            return self.dtype
        return np.result_type(*dtypes) if len(set(dtypes)) > 1 else dtypes[0]

    def on_Constant(self, tree: ast.Constant) -> tuple[str, Dtype]:
        return typed(tree.value, self.dtype), self.dtype  # type: ignore[arg-type]

    def on_Name(self, tree: ast.Name) -> tuple[str, Dtype]:
        return self.names[tree.id]

    def on_IfExp(self, tree: ast.IfExp) -> tuple[str, Dtype]:
        dtype = self.common(tree.body, tree.orelse)
        condition = self.in_dtype(tree.test, np.dtype(np.bool_))
        return f"select({condition}, {self.in_dtype(tree.body, dtype)}, {self.in_dtype(tree.orelse, dtype)})", dtype

    def on_Compare(self, tree: ast.Compare) -> tuple[str, Dtype]:
        if len(tree.ops) != 1:
            raise CodegenError(f"op {self.op}: chained comparison {ast.unparse(tree)!r}")
        dtype = self.common(tree.left, tree.comparators[0])
        symbol = _COMPARISONS[type(tree.ops[0])]
        operands = self.render(tree.left), self.render(tree.comparators[0])
        if dtype.kind == "f" and all(kind.kind in "iu" for _, kind in operands):
            return self.compared_exactly(symbol, *operands), np.dtype(np.bool_)
        left, right = self.in_dtype(tree.left, dtype), self.in_dtype(tree.comparators[0], dtype)
        return f"({left} {symbol} {right})", np.dtype(np.bool_)

    def compared_exactly(self, symbol: str, left: tuple[str, Dtype], right: tuple[str, Dtype]) -> str:
        """A uint64 against a signed integer, of which no float has all values: first by the sign, then as uint64."""
        if left[1].kind == "i":
            return self.compared_exactly(_MIRRORED[symbol], right, left)
        (unsigned, dtype), (signed, signed_dtype) = left, right
        same_sign = f"({unsigned} {symbol} {cast(signed, signed_dtype, dtype)})"
        zero = typed(0, signed_dtype)
        if symbol in (">", ">=", "!="):
            return f"to_bool(({signed} < {zero}) | {same_sign})"
        return f"to_bool(({signed} >= {zero}) & {same_sign})"

    def on_UnaryOp(self, tree: ast.UnaryOp) -> tuple[str, Dtype]:
        text, dtype = self.render(tree.operand)
        if isinstance(tree.op, ast.USub):
            return self.wrapped(f"(-{text})", dtype)
        if isinstance(tree.op, ast.UAdd):
            return text, dtype
        if dtype.kind == "b":
            return f"({text} == False)", dtype
        if isinstance(tree.op, ast.Not):
            return f"({text} == {typed(0, dtype)})", np.dtype(np.bool_)
        return self.wrapped(f"(~{text})", dtype)

    def on_BoolOp(self, tree: ast.BoolOp) -> tuple[str, Dtype]:
        symbol = " & " if isinstance(tree.op, ast.And) else " | "
        parts = [self.in_dtype(v, np.dtype(np.bool_)) for v in tree.values]
        return f"to_bool({symbol.join(parts)})", np.dtype(np.bool_)

    def on_BinOp(self, tree: ast.BinOp) -> tuple[str, Dtype]:
        if isinstance(tree.op, ast.Pow):
            return self.call("pow", [tree.left, tree.right])
        if isinstance(tree.op, (ast.LShift, ast.RShift, ast.FloorDiv, ast.Mod)):
            name = _AS_CALLS[type(tree.op)]
            return self.call(name, [tree.left, tree.right])
        dtype = self.common(tree.left, tree.right)
        symbol = _BINARY[type(tree.op)]
        left, right = self.in_dtype(tree.left, dtype), self.in_dtype(tree.right, dtype)
        if dtype.kind == "b":
            symbol = {"+": "|", "*": "&"}.get(symbol, symbol)
            return f"to_bool({left} {symbol} {right})", dtype
        return self.wrapped(f"({left} {symbol} {right})", dtype)

    def on_Call(self, tree: ast.Call) -> tuple[str, Dtype]:
        assert isinstance(tree.func, ast.Name)
        return self.call(tree.func.id, tree.args)

    def call(self, name: str, args: Sequence[ast.expr]) -> tuple[str, Dtype]:
        if name.startswith("philox"):
            parts = [self.in_dtype(a, np.dtype(np.uint64)) for a in args]
            return f"{name}_{dtype_name(self.dtype)}({', '.join(parts)})", self.dtype
        dtype = self.common(*args)
        parts = [self.in_dtype(a, dtype) for a in args]
        if name in ("isnan", "isinf", "isfinite", "signbit"):
            return f"{name}({', '.join(parts)})", np.dtype(np.bool_)
        if name in ("left_shift", "right_shift"):
            return self.wrapped(f"{name}_int({', '.join(parts)})", dtype)
        if name == "abs" and dtype.kind in "bu":
            return parts[0], dtype
        if dtype.kind != "f":
            form = _INTEGER_FORMS.get(name)
            if form is None:
                raise CodegenError(f"op {self.op}: {name} has no integer form")
            to = f"to_{dtype_name(dtype)}"  # kernels negate in 64 bits, and select wants arms of one dtype
            return self.wrapped(form.format(*parts, z=typed(0, dtype), o=typed(1, dtype), to=to), dtype)
        if name == "sign":  # NaN stays NaN, and both zeros give 0.0
            zero, one = typed(0, dtype), typed(1, dtype)
            x = parts[0]
            return (
                f"select({x} > {zero}, {one}, select({x} < {zero}, -{one}, select({x} == {zero}, {zero}, {x})))",
                dtype,
            )
        return f"{name}({', '.join(parts)})", dtype

    def wrapped(self, text: str, dtype: Dtype) -> tuple[str, Dtype]:
        """The integer ``text`` at its own width: arithmetic in kernels is 64 bits wide."""
        if dtype.kind in "iu" and dtype != np.dtype(np.int64):
            return f"to_{dtype_name(dtype)}({text})", dtype
        return text, dtype


_COMPARISONS: Mapping[type, str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
_MIRRORED: Mapping[str, str] = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_BINARY: Mapping[type, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/",
    ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
}  # fmt: skip
_AS_CALLS: Mapping[type, str] = {
    ast.LShift: "left_shift", ast.RShift: "right_shift", ast.FloorDiv: "floor_divide", ast.Mod: "remainder",
}  # fmt: skip


def render(node: TraceNode, args: Sequence[Arg]) -> str:
    """The right-hand side for ``node`` applied to locals and literals, in the dtype of its result.

    For ``leaky_relu`` in f32 on the local ``t0`` and the literal 0.1 it writes ``select((t0 >
    to_f32(0.0)), t0, (to_f32(0.1) * t0))``, and in f16 ``to_f16(select((t0 > to_f32(0.0)), t0,
    (to_f16(0.1) * t0)))``.
    """
    op, out = node.op, node.out.aval.dtype
    if op is ELEMENT_AT:
        (table, _), (position, _) = args
        return f"element_at({table}, {position})"
    attrs: dict[str, Any] = dict(node.attrs)
    dtypes, computed = op.dtypes([a.aval for a in node.ins], **attrs)
    texts: dict[str, str] = {}
    for name, (value, arg_dtype), wanted in zip(op.operands, args, dtypes, strict=True):
        texts[name] = cast(value, arg_dtype, wanted) if isinstance(value, str) else given(value, wanted, name)
    if op.function is not None:
        # numba makes a float64 of a float32 and a number that the function writes
        result = f"to_{dtype_name(computed)}({function_name(op)}({', '.join(texts.values())}))"
        return cast(result, computed, out)
    wide, inner = tuple(map(compute_dtype, dtypes)), compute_dtype(computed)
    for name, value in attrs.items():
        if isinstance(value, (bool, int, float)):
            texts[name] = given(value, inner, name) if isinstance(value, float) else typed(value, inner)
    assert op.scalar is not None
    if HALF in dtypes and is_exact(op.scalar):
        out = compute_dtype(out)
    parts = _template(op, op.scalar, wide, inner, out, tuple(texts))
    return "".join([texts[part] if k % 2 else part for k, part in enumerate(parts)])


def accumulated(statement: Accumulate, dtype: Dtype) -> str:
    """The operand of a reduction, converted to ``dtype``."""
    operand, local_dtype = statement.local, statement.local_dtype
    return cast(operand if isinstance(operand, str) else given(operand, local_dtype), local_dtype, dtype)


@lru_cache(maxsize=2048)
def _template(
    op: OpDef, scalar: str, dtypes: tuple[Dtype, ...], computed: Dtype, out: Dtype, names: tuple[str, ...]
) -> tuple[str, ...]:
    """The expression ``scalar`` of ``op`` cut at names: every second part is the name of an operand
    or attribute."""
    floats = [d for d in dtypes if d.kind == "f"]
    inner = floats[0] if floats else (dtypes[-1] if dtypes and not scalar.startswith("philox") else computed)
    of_names = zip(names, (*dtypes, *[computed] * (len(names) - len(dtypes))), strict=True)
    places = {name: (f"\0{name}\0", dtype) for name, dtype in of_names}
    text, rendered_dtype = _Renderer(op, places, inner).render(parsed_scalar(scalar))
    return tuple(cast(text, rendered_dtype, out).split("\0"))


def function_name(op: OpDef) -> str:
    """The name of a user's scalar function in kernel text, unique per function."""
    return f"{op.name}_{id(op):x}"
