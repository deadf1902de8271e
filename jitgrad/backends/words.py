"""Control code of the runtime: Python text about 64-bit integers, translated to LLVM IR. numba takes 2 ms for a line of it.

Source defines functions of integers (addresses are integers, too); the one that is compiled is called like a kernel::

    def entry(first, second, start, stop):
        for i in range(start, stop):
            if first[i] > second or i == 7:
                first[i] = note(first, i) // 2

``p[i]`` is the i-th word at address ``p``. There are ``if``, ``while``, ``for`` over ``range`` with a step above zero,
``return``, assignments, integer operators as Python has them except that they wrap around, comparisons (chained, too),
``and``, ``or`` and ``not`` (which give 1 or 0), and calls of the source's own functions and of those that `FUNCTIONS` and
a dialect add.
Import this module only when something is compiled: it imports llvmlite.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

from jitgrad.errors import BackendError

WORD, BIT = ir.IntType(64), ir.IntType(1)
Function = Callable[..., Any]  # (builder, *values) to a value, or to None

_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.LShift: "shl", ast.RShift: "ashr", ast.BitAnd: "and_", ast.BitOr: "or_",
}  # fmt: skip
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip


def number(value: Any) -> Any:
    """A Python integer as a constant word; a word as it is."""
    return ir.Constant(WORD, value) if isinstance(value, int) else value


def word_at(builder: Any, pointer: Any, index: Any) -> Any:
    """Where the word ``pointer[index]`` lies."""
    return builder.inttoptr(builder.add(pointer, builder.mul(number(8), number(index))), WORD.as_pointer())


@contextmanager
def counted(builder: Any, start: Any, stop: Any, step: Any = 1) -> Iterator[Any]:
    """``for i in range(start, stop, step)`` for ``step > 0``; gives i."""
    with builder.goto_entry_block():
        counter = builder.alloca(WORD)
    builder.store(number(start), counter)
    head, body, end = (builder.append_basic_block(name) for name in ("head", "body", "end"))
    builder.branch(head)
    builder.position_at_end(head)
    index = builder.load(counter)
    builder.cbranch(builder.icmp_signed("<", index, number(stop)), body, end)
    builder.position_at_end(body)
    yield index
    if not builder.block.is_terminated:
        builder.store(builder.add(index, number(step)), counter)
        builder.branch(head)
    builder.position_at_end(end)


def _select(builder: Any, condition: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.icmp_signed("!=", condition, number(0)), a, b)


FUNCTIONS: dict[str, Function] = {
    "select": _select,
    "min": lambda builder, a, b: builder.select(builder.icmp_signed("<", a, b), a, b),
    "max": lambda builder, a, b: builder.select(builder.icmp_signed(">", a, b), a, b),
}


def translate(source: str, entry: str, dialect: Mapping[str, Function]) -> str:
    """LLVM IR of ``void entry(int64_t *args, int64_t start, int64_t stop)``; word k of ``args`` is its k-th parameter.

    Raises:
        BackendError: if the source contains something else than the module's docstring lists.
    """
    tree = ast.parse(source)
    module, known = ir.Module(name=entry), {**FUNCTIONS, **dialect}
    definitions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    functions: dict[str, Any] = {}
    calls = Counter(n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name))
    for node in definitions:
        gives = any(isinstance(n, ast.Return) and n.value is not None for n in ast.walk(node))
        kind = ir.FunctionType(WORD if gives else ir.VoidType(), [WORD] * len(node.args.args))
        functions[node.name] = ir.Function(module, kind, f"{entry}.{node.name}")
        functions[node.name].linkage = "internal"
        functions[node.name].attributes.add("optsize")  # its loops run a few times: neither vectors nor copies of them
        if calls[node.name] > 1:
            functions[node.name].attributes.add("noinline")
    for node in definitions:
        _Body(node, functions, known).write()
    _table_entry(module, entry, functions[entry])
    return str(module)


def _table_entry(module: Any, entry: str, function: Any) -> None:
    kind = ir.FunctionType(ir.VoidType(), [WORD.as_pointer(), WORD, WORD])
    outer = ir.Function(module, kind, entry)
    builder = ir.IRBuilder(outer.append_basic_block())
    table, start, stop = outer.args
    words = [builder.load(builder.gep(table, [number(k)])) for k in range(len(function.args) - 2)]
    builder.call(function, [*words, start, stop])
    builder.ret_void()


class _Body:
    """The translation of one function; its variables lie in memory, until LLVM makes registers of them."""

    def __init__(self, node: ast.FunctionDef, functions: Mapping[str, Any], known: Mapping[str, Function]) -> None:
        self.node, self.functions, self.known = node, functions, known
        self.function = functions[node.name]
        self.builder = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.variables: dict[str, Any] = {}

    def write(self) -> None:
        for parameter, value in zip(self.node.args.args, self.function.args, strict=True):
            self.assign(parameter.arg, value)
        self.statements(self.node.body)
        if not self.builder.block.is_terminated:
            gives = self.function.function_type.return_type == WORD
            self.builder.ret(number(0)) if gives else self.builder.ret_void()

    def refuse(self, node: ast.AST) -> BackendError:
        line = getattr(node, "lineno", self.node.lineno)
        return BackendError(f"{self.node.name}, line {line}: {ast.unparse(node)!r} is nothing that control code can say")

    def assign(self, name: str, value: Any) -> None:
        if name not in self.variables:
            with self.builder.goto_entry_block():
                self.variables[name] = self.builder.alloca(WORD, name=name)
        self.builder.store(value, self.variables[name])

    def place(self, node: ast.Subscript) -> Any:
        return word_at(self.builder, self.value(node.value), self.value(node.slice))

    # --- statements ------------------------------------------------------------------------------------------------

    def statements(self, nodes: Sequence[ast.stmt]) -> None:
        for node in nodes:
            if self.builder.block.is_terminated:
                return
            self.statement(node)

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self.assign(name, self.value(value))
            case ast.Assign(targets=[ast.Subscript() as target], value=value):
                self.builder.store(self.value(value), self.place(target))
            case ast.AugAssign(target=ast.Name(id=name) as target, op=op, value=value):
                self.assign(name, self.value(ast.BinOp(ast.Name(target.id, ast.Load()), op, value)))
            case ast.Expr(value=ast.Call() as call):
                self.call(call)
            case ast.If():
                self.choose(node)
            case ast.While():
                self.repeat(node)
            case ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"), args=args)):
                first, *others = args if len(args) > 1 else (ast.Constant(0), *args)
                stop, step = others if len(others) > 1 else (*others, ast.Constant(1))
                with counted(self.builder, *map(self.value, (first, stop, step))) as index:
                    self.assign(name, index)
                    self.statements(node.body)
            case ast.Return(value=value):
                self.builder.ret_void() if value is None else self.builder.ret(self.value(value))
            case ast.Pass():
                pass
            case _:
                raise self.refuse(node)

    def block(self, block: Any, nodes: Sequence[ast.stmt], after: Any) -> None:
        """What ``block`` does before control goes to ``after``."""
        self.builder.position_at_end(block)
        self.statements(nodes)
        if not self.builder.block.is_terminated:
            self.builder.branch(after)

    def choose(self, node: ast.If) -> None:
        yes, no, end = (self.builder.append_basic_block(name) for name in ("yes", "no", "end"))
        self.branch(node.test, yes, no)
        self.block(yes, node.body, end)
        self.block(no, node.orelse, end)
        self.builder.position_at_end(end)

    def repeat(self, node: ast.While) -> None:
        head, body, end = (self.builder.append_basic_block(name) for name in ("head", "body", "end"))
        self.builder.branch(head)
        self.builder.position_at_end(head)
        self.branch(node.test, body, end)
        self.block(body, node.body, head)
        self.builder.position_at_end(end)

    # --- values ----------------------------------------------------------------------------------------------------

    def branch(self, node: ast.expr, yes: Any, no: Any) -> None:
        """Go on at ``yes`` if ``node`` holds, else at ``no``; what does not decide that is not looked at."""
        match node:
            case ast.BoolOp(op=op, values=[*first, last]):
                for value in first:
                    rest = self.builder.append_basic_block("rest")
                    self.branch(value, *((rest, no) if isinstance(op, ast.And) else (yes, rest)))
                    self.builder.position_at_end(rest)
                self.branch(last, yes, no)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self.branch(operand, no, yes)
            case ast.Compare():
                self.builder.cbranch(self.comparison(node), yes, no)
            case _:
                self.builder.cbranch(self.builder.icmp_signed("!=", self.value(node), number(0)), yes, no)

    def comparison(self, node: ast.Compare) -> Any:
        values = [self.value(operand) for operand in (node.left, *node.comparators)]
        found = ir.Constant(BIT, 1)
        for a, op, b in zip(values, node.ops, values[1:], strict=False):
            if type(op) not in _COMPARISONS:
                raise self.refuse(node)
            found = self.builder.and_(found, self.builder.icmp_signed(_COMPARISONS[type(op)], a, b))
        return found

    def value(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=int() as value):
                return number(int(value))
            case ast.Name(id=name) if name in self.variables:
                return self.builder.load(self.variables[name])
            case ast.Subscript():
                return self.builder.load(self.place(node))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self.builder.neg(self.value(operand))
            case ast.UnaryOp(op=ast.Invert(), operand=operand):
                return self.builder.not_(self.value(operand))
            case ast.BinOp(left=left, op=op, right=right):
                return self.operation(node, op, self.value(left), self.value(right))
            case ast.Compare():
                return self.builder.zext(self.comparison(node), WORD)
            case ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
                return self.decided(node)
            case ast.Call():
                return self.call(node)
        raise self.refuse(node)

    def operation(self, node: ast.BinOp, op: ast.operator, a: Any, b: Any) -> Any:
        if isinstance(op, (ast.FloorDiv, ast.Mod)):
            quotient, rest = self.builder.sdiv(a, b), self.builder.srem(a, b)
            differ = self.builder.icmp_signed("<", self.builder.xor(rest, b), number(0))
            below = self.builder.and_(differ, self.builder.icmp_signed("!=", rest, number(0)))
            if isinstance(op, ast.FloorDiv):
                return self.builder.sub(quotient, self.builder.zext(below, WORD))
            return self.builder.add(rest, self.builder.select(below, b, number(0)))
        if type(op) not in _OPERATORS:
            raise self.refuse(node)
        return getattr(self.builder, _OPERATORS[type(op)])(a, b)

    def decided(self, node: ast.expr) -> Any:
        yes, no, end = (self.builder.append_basic_block(name) for name in ("yes", "no", "end"))
        self.branch(node, yes, no)
        for block in (yes, no):
            self.builder.position_at_end(block)
            self.builder.branch(end)
        self.builder.position_at_end(end)
        found = self.builder.phi(WORD)
        found.add_incoming(number(1), yes)
        found.add_incoming(number(0), no)
        return found

    def call(self, node: ast.Call) -> Any:
        if not isinstance(node.func, ast.Name) or node.keywords:
            raise self.refuse(node)
        name, values = node.func.id, [self.value(argument) for argument in node.args]
        if name in self.functions:
            return self.builder.call(self.functions[name], values)
        if name not in self.known:
            raise self.refuse(node)
        return self.known[name](self.builder, *values)
