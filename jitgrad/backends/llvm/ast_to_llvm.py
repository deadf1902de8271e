"""Translates Python syntax trees to LLVM instructions, for kernels and for the runtime's control
code.

The subset of Python has ``if``, ``while``, ``for`` over ``range`` with a positive step, ``return``,
assignments (also of several names), operators (`jitgrad.backends.llvm.operators`), chained
comparisons, ``and``, ``or``, ``not``, elements of pointers, and calls of functions that the source
defines or is given. A variable keeps the type of its first assignment. One with several assignments
lives in memory until LLVM promotes it to a register. This module imports llvmlite: import it at the first compile.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from llvmlite import ir

from jitgrad.backends.llvm import memory_access, operators
from jitgrad.backends.llvm.casts import CASTS, as_index, emit_cast
from jitgrad.backends.llvm.ir_builder import counted, local
from jitgrad.backends.llvm.single_assignment import single_assignments
from jitgrad.backends.llvm.types import (
    BOOL,
    F64,
    I64,
    U64,
    DialectFunction,
    DialectTypeError,
    IRType,
    ScalarType,
    TypedValue,
    constant,
)
from jitgrad.core.aval import dtype_name
from jitgrad.core.errors import BackendError
from jitgrad.core.fork import cached_property


@dataclass(frozen=True)
class SourceFunction:
    """A Python function, which is translated at each of its calls."""

    definition: ast.FunctionDef
    names: Mapping[str, Any]

    @cached_property
    def single(self) -> frozenset[str]:
        """The variables that need no memory."""
        return single_assignments(self.definition)


def _no_hint(loop: ast.For | ast.While) -> Any:
    return None


@dataclass
class FunctionScope:
    """The names of a function that is being translated, and the block after its ``return``.

    Attributes:
        names: constants and functions.
        single: the variables that need no memory.
        values: the value of each of those.
        variables: the type and the address of each other one.
        result: the type and the address of the returned value; None before the first ``return``
            with a value.
    """

    node: ast.FunctionDef
    names: Mapping[str, Any]
    end: Any
    single: frozenset[str] = frozenset()
    values: dict[str, TypedValue] = field(default_factory=dict)
    variables: dict[str, tuple[IRType, Any]] = field(default_factory=dict)
    result: tuple[IRType, Any] | None = None


class Translation:
    """Writes the instructions of functions at the position of ``builder``.

    Args:
        hint: gives the metadata for the jump back to the head of a loop, or None.
    """

    def __init__(self, builder: Any, hint: Callable[[ast.For | ast.While], Any] = _no_hint) -> None:
        self.builder = builder
        self.hint = hint
        self.calls: list[FunctionScope] = []

    @property
    def scope(self) -> FunctionScope:
        return self.calls[-1]

    def function(self, written: SourceFunction, operands: Sequence[TypedValue]) -> TypedValue | None:
        """Inline ``written`` with these ``operands``; gives its result."""
        node = written.definition
        parameters = [parameter.arg for parameter in node.args.args]
        if len(parameters) != len(operands):
            raise DialectTypeError(f"takes {len(parameters)} operands, found {len(operands)}")
        if any(scope.node is node for scope in self.calls):
            raise DialectTypeError("calls itself")
        self.calls.append(FunctionScope(node, written.names, self.builder.append_basic_block("end"), written.single))
        for name, value in zip(parameters, operands, strict=True):
            self.assign(name, value)
        self.statements(node.body)
        scope = self.calls.pop()
        if not self.builder.block.is_terminated:
            if scope.result is not None:
                raise DialectTypeError(f"{node.name} ends without a result on one of its paths")
            self.builder.branch(scope.end)
        self.builder.position_at_end(scope.end)
        return None if scope.result is None else TypedValue(scope.result[0], self.builder.load(scope.result[1]))

    def refusal(self, node: ast.AST, reason: str = "is not part of kernel source") -> BackendError:
        name, line = self.scope.node.name, getattr(node, "lineno", self.scope.node.lineno)
        return BackendError(f"{name}, line {line}: {ast.unparse(node)!r} {reason}")

    # --- statements ------------------------------------------------------------------------------------------------

    def statements(self, nodes: Sequence[ast.stmt]) -> None:
        for node in nodes:
            if self.builder.block.is_terminated:
                return
            try:
                self.statement(node)
            except DialectTypeError as error:
                raise self.refusal(node, f"cannot be compiled: {error}") from error

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=[target], value=value):
                self.assigned(target, value)
            case ast.AugAssign(target=ast.Name() | ast.Subscript() as target, op=op, value=value):
                self.assigned(target, ast.copy_location(ast.BinOp(target, op, value), node))
            case ast.Expr(value=ast.Call() as call):
                self.call(call)
            case ast.Expr(value=ast.Constant(value=str())) | ast.Pass():
                pass
            case ast.If():
                self.choose(node)
            case ast.While(orelse=[]):
                self.repeat(node)
            case ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"), args=args), orelse=[]):
                with counted(self.builder, *self.bounds(node, args), self.hint(node)) as index:
                    self.assign(name, TypedValue(I64, index))
                    self.statements(node.body)
            case ast.Return(value=value):
                self.leave(None if value is None else self.value(value))
            case _:
                raise self.refusal(node)

    def bounds(self, node: ast.For, args: Sequence[ast.expr]) -> tuple[Any, Any, Any]:
        """Start, stop and step of a range."""
        first, *others = args if len(args) > 1 else (ast.Constant(0), *args)
        stop, step = others if len(others) > 1 else (*others, ast.Constant(1))
        by = self.value(step)
        if by.literal is None or by.literal < 1:
            raise self.refusal(node.iter, "can raise: its step has to be a positive literal")
        return *(as_index(self.builder, self.value(bound)) for bound in (first, stop)), by.ir

    def assigned(self, target: ast.expr, value: ast.expr) -> None:
        match target, value:
            case ast.Name(id=name), _:
                self.assign(name, self.value(value))
            case ast.Subscript(), _:
                self.store(target, self.value(value))
            case ast.Tuple(elts=targets), ast.Tuple(elts=values) if len(targets) == len(values):
                for part, result in zip(targets, [self.value(part) for part in values], strict=True):
                    if not isinstance(part, ast.Name):
                        raise self.refusal(target)
                    self.assign(part.id, result)
            case _:
                raise self.refusal(target)

    def assign(self, name: str, value: TypedValue) -> None:
        if name in self.scope.single and value.literal is None:  # a variable is no literal, whatever it holds
            self.scope.values[name] = value
            return
        if name not in self.scope.variables:
            self.scope.variables[name] = value.type, local(self.builder, value.type.llvm, name)
        self.keep(value, *self.scope.variables[name])

    def keep(self, value: TypedValue, type_: IRType, where: Any) -> None:
        """Store ``value`` in a variable of this type; smaller integers are widened."""
        if value.type != type_:
            if type_ != I64 or not isinstance(value.type, ScalarType) or value.type.category == "f" or value.type == U64:
                raise DialectTypeError(f"the variable is {type_}, found {value.type}")
            value = emit_cast(self.builder, value, I64)
        self.builder.store(value.ir, where)

    def leave(self, value: TypedValue | None) -> None:
        """``return value``."""
        if value is not None:
            if self.scope.result is None:
                self.scope.result = value.type, local(self.builder, value.type.llvm)
            self.keep(value, *self.scope.result)
        self.builder.branch(self.scope.end)

    def block(self, block: Any, nodes: Sequence[ast.stmt], after: Any, hint: Any = None) -> bool:
        """Write ``nodes`` into ``block``, then a jump to ``after`` if control gets that far."""
        self.builder.position_at_end(block)
        self.statements(nodes)
        if self.builder.block.is_terminated:
            return False
        jump = self.builder.branch(after)
        if hint is not None:
            jump.set_metadata("llvm.loop", hint)
        return True

    def choose(self, node: ast.If) -> None:
        yes, no, end = (self.builder.append_basic_block(name) for name in ("yes", "no", "end"))
        self.branch(node.test, yes, no)
        goes_on = [self.block(block, nodes, end) for block, nodes in ((yes, node.body), (no, node.orelse))]
        self.builder.position_at_end(end)
        if not any(goes_on):
            self.builder.unreachable()

    def repeat(self, node: ast.While) -> None:
        head, body, end = (self.builder.append_basic_block(name) for name in ("head", "body", "end"))
        self.builder.branch(head)
        self.builder.position_at_end(head)
        self.branch(node.test, body, end)
        self.block(body, node.body, head, self.hint(node))
        self.builder.position_at_end(end)

    # --- values ----------------------------------------------------------------------------------------------------

    def load(self, node: ast.Subscript) -> TypedValue:
        return memory_access.emit_load(self.builder, self.value(node.value), self.value(node.slice))

    def store(self, node: ast.Subscript, value: TypedValue) -> None:
        memory_access.emit_store(self.builder, self.value(node.value), self.value(node.slice), value)

    def branch(self, node: ast.expr, yes: Any, no: Any) -> None:
        """Jump to ``yes`` if ``node`` is true, else to ``no``. ``and`` and ``or`` evaluate only the
        operands they need."""
        match node:
            case ast.BoolOp(op=op, values=[*first, last]):
                for value in first:
                    rest = self.builder.append_basic_block("rest")
                    self.branch(value, *((rest, no) if isinstance(op, ast.And) else (yes, rest)))
                    self.builder.position_at_end(rest)
                self.branch(last, yes, no)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self.branch(operand, no, yes)
            case _:
                self.builder.cbranch(operators.truth(self.builder, self.value(node)), yes, no)

    def value(self, node: ast.expr) -> TypedValue:
        match node:
            case ast.Constant(value=bool() as value):
                return constant(BOOL, value)
            case ast.Constant(value=int() as value):
                return constant(I64, value)
            case ast.Constant(value=float() as value):
                return constant(F64, value)
            case ast.Name(id=name):
                return self.named(node, name)
            case ast.Subscript():
                return self.load(node)
            case ast.UnaryOp(op=ast.USub() | ast.Invert() as op, operand=operand):
                return operators.unary(self.builder, op, self.value(operand))
            case ast.BinOp(left=left, op=op, right=right):
                return operators.binary(self.builder, op, self.value(left), self.value(right))
            case ast.Compare():
                return TypedValue(BOOL, self.comparison(node))
            case ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
                return self.decided(node)
            case ast.Call():
                result = self.call(node)
                if result is not None:
                    return result
        raise self.refusal(node)

    def named(self, node: ast.expr, name: str) -> TypedValue:
        if (known := self.scope.values.get(name)) is not None:
            return known
        if name in self.scope.variables:
            type_, where = self.scope.variables[name]
            return TypedValue(type_, self.builder.load(where))
        number = self.scope.names.get(name)
        if not isinstance(number, float):
            raise self.refusal(node, "is not defined")
        return constant(F64, number)

    def comparison(self, node: ast.Compare) -> Any:
        values = [self.value(operand) for operand in (node.left, *node.comparators)]
        bits = [operators.emit_comparison(self.builder, op, a, b) for a, op, b in zip(values, node.ops, values[1:], strict=False)]
        result = bits[0]
        for bit in bits[1:]:
            result = self.builder.and_(result, bit)
        return result

    def decided(self, node: ast.expr) -> TypedValue:
        yes, no, end = (self.builder.append_basic_block(name) for name in ("yes", "no", "end"))
        self.branch(node, yes, no)
        for block in (yes, no):
            self.builder.position_at_end(block)
            self.builder.branch(end)
        self.builder.position_at_end(end)
        bit = self.builder.phi(BOOL.llvm)
        bit.add_incoming(ir.Constant(BOOL.llvm, 1), yes)
        bit.add_incoming(ir.Constant(BOOL.llvm, 0), no)
        return TypedValue(BOOL, bit)

    def call(self, node: ast.Call) -> TypedValue | None:
        if not isinstance(node.func, ast.Name) or node.keywords:
            raise self.refusal(node)
        called: Any = self.scope.names.get(node.func.id)
        operands = [self.value(argument) for argument in node.args]
        if isinstance(called, SourceFunction):
            return self.function(called, operands)
        if isinstance(called, type) and issubclass(called, np.generic):
            called = CASTS[f"to_{dtype_name(np.dtype(called))}"]
        if not callable(called):
            raise self.refusal(node, f"calls {node.func.id}, which is not defined")
        function: DialectFunction = called
        try:
            return function(self.builder, *operands)
        except TypeError as error:  # more operands than it takes, or fewer
            raise DialectTypeError(str(error)) from error
