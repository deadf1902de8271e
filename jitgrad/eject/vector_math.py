"""Writes the functions of `jitgrad.vecmath` as plain numba functions: the third algebra, besides those of
LLVM and of NumPy."""

from __future__ import annotations

import ast
import inspect
import math
import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from jitgrad.vecmath import FUNCTIONS

LONGEST_EXPRESSION = 76  # characters; longer ones get a name
EXACT = frozenset(
    "floor ceil trunc rint copysign sqrt minimum maximum fmod nextafter signbit isnan isinf isfinite".split()
)
"""Functions without rounding of their own, or with IEEE's: NumPy's are the same, and numba has them."""

_FMA_64 = '''
@njit
def fma_f64(a, b, c):
    """a * b + c, rounded once, by Dekker's exact product; a plain product where that overflows."""
    product = a * b
    t = a * 134217729.0
    a_high = t - (t - a)
    a_low = a - a_high
    t = b * 134217729.0
    b_high = t - (t - b)
    b_low = b - b_high
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    total = product + c
    part = total - product
    exact = total + (((product - (total - part)) + (c - part)) + error)
    return exact if np.isfinite(exact) else total
'''


class Expression:
    """A value of the algebra: text that computes it from other values.

    Attributes:
        kind: "f32", "f64", "i32", "i64" or "bool".
        number: the value of a constant, else None.
        uses: how often other expressions read it.
    """

    __slots__ = ("kind", "name", "number", "operands", "template", "uses", "writer")

    def __init__(
        self, writer: _FunctionWriter, kind: str, template: str, operands: Sequence[Expression] = (), number: Any = None
    ) -> None:
        self.writer: _FunctionWriter = writer
        self.kind: str = kind
        self.template: str = template
        self.operands: Sequence[Expression] = operands
        self.number: Any = number
        self.uses: int = 0
        self.name: str = ""
        if number is None:
            writer.expressions.append(self)
            for x in operands:
                x.uses += 1

    def _of(self, other: Any) -> Expression:
        return other if isinstance(other, Expression) else self.writer.number(self.kind, other)

    def _arithmetic(self, symbol: str, left: Any, right: Any) -> Expression:
        template = f"{{}} {symbol} {{}}"
        if self.kind == "i32":  # numba computes with 64 bits
            return self.writer.apply(self.kind, f"np.int32({template})", self._of(left), self._of(right))
        return self.writer.apply(self.kind, template, self._of(left), self._of(right))

    def _compared(self, symbol: str, other: Any) -> Expression:
        return self.writer.apply("bool", f"{{}} {symbol} {{}}", self, self._of(other))

    def __add__(self, other: Any) -> Expression:
        return self._arithmetic("+", self, other)

    def __radd__(self, other: Any) -> Expression:
        return self._arithmetic("+", other, self)

    def __sub__(self, other: Any) -> Expression:
        return self._arithmetic("-", self, other)

    def __rsub__(self, other: Any) -> Expression:
        return self._arithmetic("-", other, self)

    def __mul__(self, other: Any) -> Expression:
        return self._arithmetic("*", self, other)

    def __rmul__(self, other: Any) -> Expression:
        return self._arithmetic("*", other, self)

    def __truediv__(self, other: Any) -> Expression:
        return self._arithmetic("/", self, other)

    def __rtruediv__(self, other: Any) -> Expression:
        return self._arithmetic("/", other, self)

    def __and__(self, other: Any) -> Expression:
        return self._arithmetic("&", self, other)

    def __or__(self, other: Any) -> Expression:
        return self._arithmetic("|", self, other)

    def __xor__(self, other: Any) -> Expression:
        return self._arithmetic("^", self, other)

    def __lshift__(self, other: Any) -> Expression:
        return self._arithmetic("<<", self, other)

    def __rshift__(self, other: Any) -> Expression:
        return self._arithmetic(">>", self, other)

    def __neg__(self) -> Expression:
        if self.number is not None:
            return self.writer.number(self.kind, -self.number)
        return self.writer.apply(self.kind, "np.int32(-{})" if self.kind == "i32" else "-{}", self)

    def __lt__(self, other: Any) -> Expression:
        return self._compared("<", other)

    def __le__(self, other: Any) -> Expression:
        return self._compared("<=", other)

    def __gt__(self, other: Any) -> Expression:
        return self._compared(">", other)

    def __ge__(self, other: Any) -> Expression:
        return self._compared(">=", other)

    def __eq__(self, other: object) -> Any:
        return self._compared("==", other)

    def __ne__(self, other: object) -> Any:
        return self._compared("!=", other)

    def __hash__(self) -> int:
        return object.__hash__(self)

    def text(self, *, inside: bool = False, typed: bool = False) -> str:
        """The expression, or its name if it has one; ``inside``: as a part of another, in parentheses if need be."""
        if self.number is not None:
            return _literal(self.kind, self.number, typed=typed)
        if self.name:
            return self.name
        is_choice = " if {} else {}" in self.template
        parts = [x.text(inside=True, typed=is_choice) for x in self.operands]
        if self.template.startswith("{}.view("):
            parts[0] = _as_numpy_number(parts[0], self.operands[0].kind)
        return f"({self.template.format(*parts)})" if inside else self.template.format(*parts)


def _literal(kind: str, number: Any, *, typed: bool) -> str:
    if kind == "bool":
        return repr(bool(number))
    if kind[0] == "i":
        return f"np.int{kind[1:]}({int(number)})" if typed else repr(int(number))
    value = float(np.float32(number)) if kind == "f32" else float(number)
    text = "np.nan" if math.isnan(value) else f"{'-' if value < 0 else ''}np.inf" if math.isinf(value) else ""
    text = text or (str(np.float32(value)) if kind == "f32" else repr(value))
    return f"np.float{kind[1:]}({text})" if kind == "f32" or typed else text


def _as_numpy_number(text: str, kind: str) -> str:
    """``text`` as a call of its dtype, as numba wants it where ``.view`` follows."""
    name = f"np.{'float' if kind[0] == 'f' else 'int'}{kind[1:]}"
    tree = ast.parse(text, mode="eval").body
    return text if isinstance(tree, ast.Call) and ast.unparse(tree.func) == name else f"{name}({text})"


def _plain(text: str) -> str:
    """``text`` without parentheses that change nothing."""
    return ast.unparse(ast.parse(text, mode="eval"))


class _FunctionWriter:
    """Collects the expressions of one function, and writes them as statements."""

    def __init__(self) -> None:
        self.expressions: list[Expression] = []

    def number(self, kind: str, number: Any) -> Expression:
        return Expression(self, kind, "", number=number)

    def apply(self, kind: str, template: str, *operands: Expression) -> Expression:
        return Expression(self, kind, template, operands)

    def lines(self, result: Expression) -> list[str]:
        """Statements: what is read twice, or makes a line long, gets a name."""
        lines: list[str] = []
        for x in self.expressions:
            if x is result or (x.uses and not x.name):
                self._shorten(x, lines)
                if x.uses > 1 and x is not result:
                    self._give_name(x, lines)
        return [*lines, f"return {_plain(result.text())}"]

    def _shorten(self, x: Expression, lines: list[str]) -> None:
        """Give names to operands of ``x`` until its text fits in a line."""
        while len(x.text()) > LONGEST_EXPRESSION:
            longest = max(x.operands, key=lambda operand: 0 if operand.name else len(operand.text()))
            if longest.name or longest.number is not None:
                return
            self._give_name(longest, lines)

    def _give_name(self, x: Expression, lines: list[str]) -> None:
        text = _plain(x.text())
        x.name = f"t{len(lines) + 1}"
        lines.append(f"{x.name} = {text}")


class SourceAlgebra:
    """Operations that write text. A product and a sum round twice, as `NumpyAlgebra` does without ``fused``."""

    def __init__(self, library: MathLibrary, writer: _FunctionWriter, width: int) -> None:
        self.library = library
        self.writer = writer
        self.width = width
        self._float, self._int = f"f{width}", f"i{width}"

    def wide(self) -> SourceAlgebra:
        return SourceAlgebra(self.library, self.writer, 64)

    def unfused(self) -> SourceAlgebra:
        return self

    def const(self, number: float) -> Expression:
        return self.writer.number(self._float, number)

    def widen(self, x: Expression) -> Expression:
        return self.writer.apply("f64", "np.float64({})", x)

    def narrow(self, x: Expression) -> Expression:
        return self.writer.apply("f32", "np.float32({})", x)

    def fma(self, a: Any, b: Any, c: Any) -> Expression:
        if name := self.library.fused(self.width):
            return self._apply(f"{name}({{}}, {{}}, {{}})", a, b, c)
        wide = self.widen(self._value(a)) * self.widen(self._value(b)) + self.widen(self._value(c))
        return self.narrow(wide)

    def mad(self, a: Any, b: Any, c: Any) -> Expression:
        return self._value(a) * self._value(b) + self._value(c)

    def rint(self, x: Any) -> Expression:
        return self._exact("rint", x)

    def floor(self, x: Any) -> Expression:
        return self._exact("floor", x)

    def ceil(self, x: Any) -> Expression:
        return self._exact("ceil", x)

    def trunc(self, x: Any) -> Expression:
        return self._exact("trunc", x)

    def abs(self, x: Any) -> Expression:
        return self._apply("abs({})", x)

    def copysign(self, x: Any, sign: Any) -> Expression:
        return self._exact("copysign", x, sign)

    def sqrt(self, x: Any) -> Expression:
        return self._exact("sqrt", x)

    def minimum(self, x: Any, y: Any) -> Expression:
        return self._exact("minimum", x, y)

    def maximum(self, x: Any, y: Any) -> Expression:
        return self._exact("maximum", x, y)

    def fmod(self, x: Any, y: Any) -> Expression:
        return self._exact("fmod", x, y)

    def select(self, condition: Expression, yes: Any, no: Any) -> Expression:
        kind = next((x.kind for x in (yes, no) if isinstance(x, Expression)), self._float)
        arms = [x if isinstance(x, Expression) else self.writer.number(kind, x) for x in (yes, no)]
        return self.writer.apply(kind, "{} if {} else {}", arms[0], condition, arms[1])

    def beyond(self, bound: float, slow: Callable[..., Any], x: Expression, usual: Expression) -> Expression:
        name = self.library.define(slow, self.width, slow.__name__)
        return self.select(self.abs(x) > bound, self._apply(f"{name}({{}})", x), usual)

    def bits(self, x: Expression) -> Expression:
        if x.number is not None:
            number = np.array(x.number, f"f{self.width // 8}").view(f"i{self.width // 8}")
            return self.writer.number(self._int, int(number))
        return self.writer.apply(self._int, f"{{}}.view(np.int{self.width})", x)

    def from_bits(self, i: Expression) -> Expression:
        return self.writer.apply(self._float, f"{{}}.view(np.float{self.width})", i)

    def lookup(self, table: tuple[float, ...], index: Expression) -> Expression:
        name = self.library.table(table, self.width)
        return self.writer.apply(self._float, f"{name}[{{}}]", index)

    def _value(self, x: Any) -> Expression:
        return x if isinstance(x, Expression) else self.const(x)

    def _exact(self, name: str, *operands: Any) -> Expression:
        places = ", ".join("{}" for _ in operands)
        return self._apply(f"{self.library.exact(name, self.width)}({places})", *operands)

    def _apply(self, template: str, *operands: Any) -> Expression:
        return self.writer.apply(self._float, template, *map(self._value, operands))


class MathLibrary:
    """The functions that a module needs, in the order of their definitions."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._tables: dict[tuple[tuple[float, ...], int], str] = {}

    @property
    def text(self) -> str:
        """Definitions of everything that was asked for."""
        return "".join([*self._table_texts(), *self._texts.values()])

    def _table_texts(self) -> Iterator[str]:
        for (table, width), name in self._tables.items():
            numbers = textwrap.fill(", ".join(map(repr, table)), 96, initial_indent="    ", subsequent_indent="    ")
            yield f"\n{name} = np.array(\n    [\n{textwrap.indent(numbers, '    ')}\n    ],\n    np.float{width},\n)\n"

    def add_text(self, name: str, text: str) -> str:
        """Add a function as it is; its name."""
        self._texts.setdefault(name, text)
        return name

    def function(self, name: str, kind: str) -> str:
        """The text that calls the function ``name`` of `FUNCTIONS` for floats of ``kind``, without its arguments."""
        if name in EXACT:
            return self.exact(name, int(kind[1:]))
        return self.define(FUNCTIONS[name].definition, int(kind[1:]), name)

    def exact(self, name: str, width: int) -> str:
        """The text that calls ``name`` of `EXACT` for floats of ``width`` bits."""
        return f"np.{name}"

    def fused(self, width: int) -> str:
        """The function that computes ``a * b + c`` with one rounding; "" if the next wider dtype serves."""
        return self.add_text("fma_f64", _FMA_64) if width == 64 else ""

    def define(self, definition: Callable[..., Any], width: int, base: str) -> str:
        """The name of ``definition`` for floats of ``width`` bits, added now if it is new."""
        name = f"{base.strip('_')}_f{width}"
        if name not in self._texts:
            writer = _FunctionWriter()
            parameters = list(inspect.signature(definition).parameters)[1:]
            operands = [writer.apply(f"f{width}", p) for p in parameters]
            for x, p in zip(operands, parameters, strict=True):
                x.name = p
            result = definition(SourceAlgebra(self, writer, width), *operands)
            doc = (inspect.getdoc(definition) or name).split("\n\n")[0].replace("\n", " ")
            lines = [*textwrap.wrap(f'"""{doc}"""', 96), *writer.lines(result)]
            body = "".join(f"    {line}\n" for line in lines)
            self._texts[name] = f"\n\n@njit\ndef {name}({', '.join(parameters)}):\n{body}"
        return name

    def table(self, table: tuple[float, ...], width: int) -> str:
        return self._tables.setdefault((table, width), f"TABLE_{len(self._tables)}")
