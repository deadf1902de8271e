"""Kernel source to LLVM IR: numbers keep their dtypes, addresses do not overlap, loops know how wide they should be.

Import this module only when a kernel is compiled: it imports llvmlite.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from llvmlite import ir

from jitgrad.backends.llvm import intrinsics, nontemporal, target, transpose
from jitgrad.backends.llvm.argument_unpacking import unpacking_entry
from jitgrad.backends.llvm.ast_to_llvm import SourceFunction, Translation
from jitgrad.backends.llvm.types import I64, IN_MEMORY, NUMBERS, IRType, PointerType, TypedValue
from jitgrad.backends.llvm.unroll import USUAL, unroll_factor
from jitgrad.compiler.gc_paused import gc_paused
from jitgrad.core.errors import BackendError

_LOOP = re.compile(r'^(!\d+) = !\{ !"loop \d+", (.*) \}$', re.MULTILINE)


class KernelModule(ir.Module):  # type: ignore[misc]
    """A module and the IR that it needs besides."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.triple, self.data_layout = target.platform()
        self.linked: list[str] = []


def kind_of(name: str) -> IRType:
    """The kind of a parameter: a dtype name such as ``"f32"``, with ``*`` for a pointer to it.

    Raises:
        BackendError: for any other name.
    """
    found = IN_MEMORY.get(name.removesuffix("*")) if name.endswith("*") else NUMBERS.get(name)
    if found is None:
        allowed = ", ".join(NUMBERS)
        raise BackendError(f"kernel parameter type {name!r}: expected one of {allowed}, or one of them with *")
    return PointerType(found) if name.endswith("*") else found


@cache
def written(function: Callable[..., Any]) -> SourceFunction:
    """A Python function, as kernel source can call it: translated wherever that is done."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    (definition,) = tree.body
    assert isinstance(definition, ast.FunctionDef)
    return SourceFunction(definition, function.__globals__)


def source_to_llvm(
    source: str, entry: str, params: Sequence[str], namespace: Mapping[str, Any], vector_bits: int, small: bool = False
) -> tuple[str, list[str]]:
    """LLVM IR of ``entry`` and of what it links against, unoptimised.

    Args:
        source: Python text defining ``entry(*params, start, stop)``.
        params: the type of each parameter before ``start`` and ``stop`` (see `kind_of`).
        namespace: names for the source on top of `jitgrad.backends.llvm.intrinsics.INTRINSICS`.
        vector_bits: preferred vector width, 0 for LLVM's own choice.
        small: whether loops stay one vector at a time and are not unrolled: for code that hardly runs.

    Raises:
        BackendError: if the source says what kernel source cannot.
    """
    tree = ast.parse(source)
    names: dict[str, Any] = {**intrinsics.INTRINSICS, **transpose.TRANSPOSES, **namespace}
    names.update({node.name: SourceFunction(node, names) for node in tree.body if isinstance(node, ast.FunctionDef)})
    with gc_paused():
        module = KernelModule(entry)
        hints = _Hints(module, None if small else unroll_factor(tree))
        try:
            _body(module, names[entry], [*map(kind_of, params), I64, I64], vector_bits, hints)
        except BackendError as error:
            raise BackendError(f"{error}\n{source}") from error
        text = nontemporal.mark_stores(_LOOP.sub(r"\1 = distinct !{ \1, \2 }", str(module)), vector_bits)
    at_end = nontemporal.FENCE if nontemporal.has_marks(text) else ""
    return text + unpacking_entry(entry, _name(entry), params, at_end), module.linked


def _name(entry: str) -> str:
    """What the function with typed parameters is called."""
    return f"{entry}.body"


def _body(
    module: KernelModule, entry: SourceFunction, kinds: Sequence[IRType], vector_bits: int, hints: _Hints
) -> None:
    """Define the function with typed parameters; what its pointers point to does not overlap."""
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [kind.llvm for kind in kinds]), _name(entry.definition.name))
    function.linkage = "internal"
    for attribute in ("noinline", "nounwind", *([f'"prefer-vector-width"="{vector_bits}"'] if vector_bits else [])):
        set.add(function.attributes, attribute)  # llvmlite's list of names lacks the last
    for kind, argument in zip(kinds, function.args, strict=True):
        if isinstance(kind, PointerType):
            argument.add_attribute("noalias")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    arguments = [TypedValue(*pair) for pair in zip(kinds, function.args, strict=True)]
    result = Translation(builder, hints.of).function(entry, arguments)
    if result is not None:
        raise BackendError(f"{entry.definition.name} returns {result.kind}, and nobody takes it: store it through a pointer")
    builder.ret_void()


class _Hints:
    """Metadata on every jump back to a loop's head: how many vectors the loop works on side by side.

    Args:
        counts: for each ``for`` loop; None: all loops stay small.
    """

    def __init__(self, module: KernelModule, counts: Mapping[ast.For, int] | None) -> None:
        self.module, self.counts = module, counts
        self.loops = 0

    def of(self, loop: ast.For | ast.While) -> Any:
        """The metadata, which has to be unlike that of all other loops: see ``_LOOP``."""
        count = 1 if self.counts is None else self.counts.get(loop, USUAL) if isinstance(loop, ast.For) else USUAL
        hints = [self._hint("llvm.loop.interleave.count", ir.Constant(ir.IntType(32), count))]
        if self.counts is None:
            hints.append(self._hint("llvm.loop.unroll.disable"))
        self.loops += 1
        return self.module.add_metadata([f"loop {self.loops}", *hints])

    def _hint(self, name: str, *values: Any) -> Any:
        return self.module.add_metadata([name, *values])
