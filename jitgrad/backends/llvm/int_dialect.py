"""Control code of the runtime: Python text about 64-bit integers, which addresses are, too.

Source defines functions of integers; the one that is compiled is called like a kernel::

    def entry(first, second, start, stop):
        for i in range(start, stop):
            if first[i] > second or i == 7:
                first[i] = note(first, i) // 2

``p[i]`` is the i-th word at address ``p``. What else can be said is `jitgrad.backends.llvm.ast_to_llvm`'s to say; all variables
are integers, and what holds is 1. There are calls of the source's own functions and of those that `WORD_FUNCTIONS` and a dialect
add. Import this module only when something is compiled: it imports llvmlite.
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
from jitgrad.backends.llvm.types import I64, DialectFunction, DialectTypeError, TypedValue, number
from jitgrad.core.errors import BackendError

OnWords = Callable[..., Any]  # (builder, *words) to a word, or to None


def word_at(builder: Any, pointer: Any, index: Any) -> Any:
    """Where the word ``pointer[index]`` lies."""
    return builder.inttoptr(builder.add(pointer, builder.mul(word(8), word(index))), WORD.as_pointer())


def _select(builder: Any, condition: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.icmp_signed("!=", condition, word(0)), a, b)


WORD_FUNCTIONS: dict[str, OnWords] = {
    "select": _select,
    "min": lambda builder, a, b: builder.select(builder.icmp_signed("<", a, b), a, b),
    "max": lambda builder, a, b: builder.select(builder.icmp_signed(">", a, b), a, b),
}


def _as_word(builder: Any, value: TypedValue) -> TypedValue:
    if number(value).category == "f":
        raise DialectTypeError(f"takes integers, found {value.kind}")
    return emit_cast(builder, value, I64)


class _Words(Translation):
    """The dialect in which every value is a word, and a word may be an address."""

    def assign(self, name: str, value: TypedValue) -> None:
        super().assign(name, _as_word(self.builder, value))

    def leave(self, value: TypedValue | None) -> None:
        super().leave(None if value is None else _as_word(self.builder, value))

    def place(self, node: ast.Subscript) -> Any:
        return word_at(self.builder, *(_as_word(self.builder, self.value(part)).ir for part in (node.value, node.slice)))

    def load(self, node: ast.Subscript) -> TypedValue:
        return TypedValue(I64, self.builder.load(self.place(node)))

    def store(self, node: ast.Subscript, value: TypedValue) -> None:
        self.builder.store(_as_word(self.builder, value).ir, self.place(node))


def translate(source: str, entry: str, dialect: Mapping[str, OnWords]) -> str:
    """LLVM IR of ``void entry(int64_t *args, int64_t start, int64_t stop)``; word k of ``args`` is its k-th parameter.

    Raises:
        BackendError: if the source contains something else than the module's docstring lists.
    """
    tree = ast.parse(source)
    module = ir.Module(name=entry)
    definitions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    called = Counter(n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name))
    functions = {name: _declared(module, f"{entry}.{name}", node, called[name]) for name, node in definitions.items()}
    own: dict[str, OnWords] = {name: partial(_called, function) for name, function in functions.items()}
    every = {**WORD_FUNCTIONS, **dialect, **own}
    names: dict[str, DialectFunction] = {name: partial(_on_words, function) for name, function in every.items()}
    for name, node in definitions.items():
        builder = ir.IRBuilder(functions[name].append_basic_block("entry"))
        result = _Words(builder).function(SourceFunction(node, names), [TypedValue(I64, x) for x in functions[name].args])
        builder.ret_void() if result is None else builder.ret(result.ir)
    if functions[entry].function_type.return_type == WORD:
        raise BackendError(f"{entry} returns a value, and nobody takes it: store it at an address")
    parameters = ["i64"] * (len(functions[entry].args) - 2)
    return str(module) + unpacking_entry(entry, functions[entry].name, parameters)


def _declared(module: Any, name: str, node: ast.FunctionDef, calls: int) -> Any:
    gives = any(isinstance(n, ast.Return) and n.value is not None for n in ast.walk(node))
    kind = ir.FunctionType(WORD if gives else ir.VoidType(), [WORD] * len(node.args.args))
    function = ir.Function(module, kind, name)
    function.linkage = "internal"
    function.attributes.add("optsize")  # its loops run a few times: neither vectors nor copies of them
    if calls > 1:
        function.attributes.add("noinline")
    return function


def _called(function: Any, builder: Any, *words: Any) -> Any:
    called = builder.call(function, words)
    return called if function.function_type.return_type == WORD else None


def _on_words(function: OnWords, builder: Any, *values: TypedValue) -> TypedValue | None:
    found = function(builder, *(_as_word(builder, value).ir for value in values))
    return TypedValue(I64, found) if isinstance(found, ir.Value) else None
