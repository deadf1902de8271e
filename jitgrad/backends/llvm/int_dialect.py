"""The int dialect, for control code of the runtime: Python text about 64-bit integers and
addresses.

Source defines functions of integers; the one that is compiled is called like a kernel::

    def entry(first, second, start, stop):
        for i in range(start, stop):
            if first[i] > second or i == 7:
                first[i] = note(first, i) // 2

``p[i]`` is the i-th 64-bit integer at address ``p``. `jitgrad.backends.llvm.ast_to_llvm` lists the
statements and expressions. All variables are integers, and a true condition is 1. Source may call
its own functions, `INT_FUNCTIONS`, and those of a library that is passed in. Import this module
only when something is compiled: it imports llvmlite.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from llvmlite import ir

from jitgrad.backends.llvm.argument_unpacking import unpacking_entry
from jitgrad.backends.llvm.ast_to_llvm import SourceFunction, Translation
from jitgrad.backends.llvm.casts import emit_cast
from jitgrad.backends.llvm.ir_builder import WORD, word
from jitgrad.backends.llvm.syntax_nodes import nodes_in
from jitgrad.backends.llvm.text_builder import TextBuilder
from jitgrad.backends.llvm.types import I64, DialectFunction, DialectTypeError, TypedValue, number
from jitgrad.core.errors import BackendError

IntFunction = Callable[..., Any]  # (builder, *integers) to an integer, or to None


def word_at(builder: Any, pointer: Any, index: Any) -> Any:
    """The address of ``pointer[index]``."""
    return builder.inttoptr(builder.add(pointer, builder.mul(word(8), word(index))), WORD.as_pointer())


def _select(builder: Any, condition: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.icmp_signed("!=", condition, word(0)), a, b)


INT_FUNCTIONS: dict[str, IntFunction] = {
    "select": _select,
    "min": lambda builder, a, b: builder.select(builder.icmp_signed("<", a, b), a, b),
    "max": lambda builder, a, b: builder.select(builder.icmp_signed(">", a, b), a, b),
}


def _as_int(builder: Any, value: TypedValue) -> TypedValue:
    if number(value).category == "f":
        raise DialectTypeError(f"takes integers, found {value.type}")
    return emit_cast(builder, value, I64)


class _IntTranslation(Translation):
    """Translates source in which every value is a 64-bit integer, which may be an address."""

    def assign(self, name: str, value: TypedValue) -> None:
        super().assign(name, _as_int(self.builder, value))

    def leave(self, value: TypedValue | None) -> None:
        super().leave(None if value is None else _as_int(self.builder, value))

    def place(self, node: ast.Subscript) -> Any:
        return word_at(self.builder, *(_as_int(self.builder, self.value(part)).ir for part in (node.value, node.slice)))

    def load(self, node: ast.Subscript) -> TypedValue:
        return TypedValue(I64, self.builder.load(self.place(node)))

    def store(self, node: ast.Subscript, value: TypedValue) -> None:
        self.builder.store(_as_int(self.builder, value).ir, self.place(node))


def translate(source: str, entry: str, library: Mapping[str, IntFunction]) -> str:
    """LLVM IR of ``void entry(int64_t *args, int64_t start, int64_t stop)``; ``args[k]`` is its
    k-th parameter.

    Raises:
        BackendError: if the source is not of this dialect.
    """
    tree = ast.parse(source)
    module = ir.Module(name=entry)
    definitions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    called = Counter(n.func.id for n in nodes_in(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name))
    functions = {name: _declared(module, f"{entry}.{name}", node, called[name]) for name, node in definitions.items()}
    own: dict[str, IntFunction] = {name: partial(_called, function) for name, function in functions.items()}
    names: dict[str, DialectFunction] = {name: partial(_on_ints, f) for name, f in {**INT_FUNCTIONS, **library, **own}.items()}
    for name, node in definitions.items():
        builder = TextBuilder(functions[name].append_basic_block("entry"))
        args = [TypedValue(I64, x) for x in functions[name].args]
        result = _IntTranslation(builder).function(SourceFunction(node, names), args)
        builder.ret_void() if result is None else builder.ret(result.ir)
    if functions[entry].function_type.return_type == WORD:
        raise BackendError(f"{entry} returns a value, which has no receiver: store it at an address")
    parameters = ["i64"] * (len(functions[entry].args) - 2)
    return str(module) + unpacking_entry(entry, functions[entry].name, parameters)


def _declared(module: Any, name: str, node: ast.FunctionDef, calls: int) -> Any:
    gives = any(isinstance(n, ast.Return) and n.value is not None for n in nodes_in(node))
    type_ = ir.FunctionType(WORD if gives else ir.VoidType(), [WORD] * len(node.args.args))
    function = ir.Function(module, type_, name)
    function.linkage = "internal"
    function.attributes.add("optsize")  # its loops run a few times: vectors and unrolling do not pay
    function.attributes.add("noinline" if calls > 1 else "alwaysinline")
    return function


def _called(function: Any, builder: Any, *args: Any) -> Any:
    called = builder.call(function, args)
    return called if function.function_type.return_type == WORD else None


def _on_ints(function: IntFunction, builder: Any, *values: TypedValue) -> TypedValue | None:
    result = function(builder, *(_as_int(builder, value).ir for value in values))
    return TypedValue(I64, result) if isinstance(result, ir.Value) else None
