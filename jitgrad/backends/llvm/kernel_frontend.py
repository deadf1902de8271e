"""Kernel source to LLVM IR, with what LLVM cannot know: buffers do not overlap, and how far to
interleave each loop.

Import this module only when a kernel is compiled: it imports llvmlite.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from llvmlite import ir

from jitgrad.backends.llvm import (
    block_products,
    intrinsics,
    nontemporal,
    packed_lanes,
    parallel_loops,
    target,
    transpose,
)
from jitgrad.backends.llvm.argument_unpacking import unpacking_entry
from jitgrad.backends.llvm.ast_to_llvm import SourceFunction, Translation
from jitgrad.backends.llvm.parallel_llvm import for_x86
from jitgrad.backends.llvm.syntax_nodes import nodes_in
from jitgrad.backends.llvm.text_builder import TextBuilder
from jitgrad.backends.llvm.types import I64, IN_MEMORY, NUMBERS, IRType, PointerType, TypedValue
from jitgrad.backends.llvm.unroll import USUAL, unroll_factor
from jitgrad.core.errors import BackendError
from jitgrad.core.gc_paused import gc_paused

_MEASURED_BITS = 512  # of vectors with which other numbers of them were measured for short rows
_LOOP = re.compile(r'^(!\d+) = !\{ !"loop \d+", (.*) \}$', re.MULTILINE)


class _KernelModule(ir.Module):  # type: ignore[misc]
    """A module, and IR of other compilers that it links against."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.triple: str
        self.data_layout: str
        self.triple, self.data_layout = target.platform()
        self.linked: list[str] = []


def parameter_type(name: str) -> IRType:
    """The type of a parameter: a dtype name such as ``"f32"``, with ``*`` for a pointer to it.

    Raises:
        BackendError: for any other name.
    """
    type_ = IN_MEMORY.get(name.removesuffix("*")) if name.endswith("*") else NUMBERS.get(name)
    if type_ is None:
        allowed = ", ".join(NUMBERS)
        raise BackendError(f"kernel parameter type {name!r}: expected one of {allowed}, or one of them with *")
    return PointerType(type_) if name.endswith("*") else type_


@cache
def written(function: Callable[..., Any]) -> SourceFunction:
    """A function at the top of a module that kernel source can call."""
    return SourceFunction(_definitions(function.__module__)[function.__name__], function.__globals__)


@cache
def _definitions(module: str) -> dict[str, ast.FunctionDef]:
    """The functions of a module: to look for the text of each takes ten times as long as parsing all of it."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def source_to_llvm(
    source: str,
    entry: str,
    params: Sequence[str],
    namespace: Mapping[str, Any],
    vector_bits: int,
    interleaves: bool = True,
    row_vectors: int | None = None,
) -> tuple[str, list[str]]:
    """LLVM IR of ``entry`` and of what it links against, unoptimised.

    Args:
        source: Python text defining ``entry(*params, start, stop)``.
        params: the type of each parameter before ``start`` and ``stop`` (see `parameter_type`).
        namespace: names for the source on top of `jitgrad.backends.llvm.intrinsics.INTRINSICS`.
        vector_bits: preferred vector width, 0 for LLVM's own choice.
        interleaves: whether loops are interleaved and unrolled.
        row_vectors: of an iteration of the innermost loops; None leaves it to `unroll_factor`.

    Raises:
        BackendError: if ``source`` is not kernel source.
    """
    tree = ast.parse(source)
    moves = {**transpose.TRANSPOSES, **packed_lanes.PACKED_LANES}
    names: dict[str, Any] = {**intrinsics.INTRINSICS, **moves, **block_products.BLOCK_PRODUCTS, **namespace}
    names.update({node.name: SourceFunction(node, names) for node in tree.body if isinstance(node, ast.FunctionDef)})
    with gc_paused():
        module = _KernelModule(entry)
        of_rows = row_vectors if vector_bits >= _MEASURED_BITS else None
        parallel = _parallel(names[entry].definition, params)
        many_registers = vector_bits >= _MEASURED_BITS or not for_x86()
        hints = _Hints(module, unroll_factor(tree, many_registers) if interleaves else None, of_rows, parallel)
        try:
            _body(module, names[entry], [*map(parameter_type, params), I64, I64], vector_bits, hints)
        except BackendError as error:
            raise BackendError(f"{error}\n{source}") from error
        text = parallel_loops.with_distinct_group(_LOOP.sub(r"\1 = distinct !{ \1, \2 }", str(module)))
        text = nontemporal.mark_stores(text, vector_bits)
    at_end = nontemporal.FENCE if nontemporal.has_marks(text) else ""
    return text + unpacking_entry(entry, _name(entry), params, at_end), module.linked


def _parallel(entry: ast.FunctionDef, params: Sequence[str]) -> frozenset[ast.For]:
    pointers = [parameter.arg for parameter, type_ in zip(entry.args.args, params, strict=False) if type_.endswith("*")]
    return parallel_loops.parallel_loops(entry, pointers)


def _name(entry: str) -> str:
    """The name of the function with typed parameters."""
    return f"{entry}.body"


def _body(module: _KernelModule, entry: SourceFunction, types: Sequence[IRType], vector_bits: int, hints: _Hints) -> None:
    """Define the function with typed parameters; its pointers do not alias."""
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [type_.llvm for type_ in types]), _name(entry.definition.name))
    function.linkage = "internal"
    for attribute in ("noinline", "nounwind", *([f'"prefer-vector-width"="{vector_bits}"'] if vector_bits else [])):
        set.add(function.attributes, attribute)  # llvmlite's list of names lacks the last
    if parallel_loops.reads_tables(entry.definition) and (features := target.gather_features()):
        set.add(function.attributes, f'"target-features"="{features}"')
    for type_, argument in zip(types, function.args, strict=True):
        if isinstance(type_, PointerType):
            argument.add_attribute("noalias")
    builder = TextBuilder(function.append_basic_block("entry"))
    arguments = [TypedValue(*pair) for pair in zip(types, function.args, strict=True)]
    result = _KernelTranslation(builder, hints).function(entry, arguments)
    if result is not None:
        raise BackendError(f"{entry.definition.name} returns {result.type}, which has no receiver: store it through a pointer")
    builder.ret_void()


class _KernelTranslation(Translation):
    """Translates kernel source, and marks what parallel loops access."""

    def __init__(self, builder: Any, hints: _Hints) -> None:
        super().__init__(builder, hints.of)
        self.hints = hints

    def statement(self, node: ast.stmt) -> None:
        blocks = self.builder.function.blocks
        before = len(blocks)
        super().statement(node)
        if node in self.hints.parallel:
            parallel_loops.mark_accesses(blocks[before:], self.hints.group)


class _Hints:
    """Metadata on every jump back to a loop's head: its interleave count, and whether it is parallel.

    Args:
        counts: for each ``for`` loop; None: no loop is interleaved or unrolled.
        row_vectors: for innermost loops in place of these.
        parallel: the loops of which no iteration touches what another one writes.
    """

    def __init__(
        self, module: _KernelModule, counts: Mapping[ast.For, int] | None, row_vectors: int | None, parallel: frozenset[ast.For]
    ) -> None:
        self.module, self.counts, self.row_vectors, self.parallel = module, counts, row_vectors, parallel
        self.group: Any = parallel_loops.access_group(module) if parallel else None
        self.loops = 0

    def of(self, loop: ast.For | ast.While) -> Any:
        """The metadata of one loop; ``_LOOP`` makes its node distinct, as LLVM demands."""
        count = 1 if self.counts is None else self.counts.get(loop, USUAL) if isinstance(loop, ast.For) else USUAL
        if self.row_vectors is not None and _is_innermost(loop):
            count = self.row_vectors
        hints = [self._hint("llvm.loop.interleave.count", ir.Constant(ir.IntType(32), count))]
        if count == 1:  # nor peeled, after which LLVM makes no vectors
            hints.append(self._hint("llvm.loop.unroll.disable"))
        if loop in self.parallel:
            hints.append(self._hint("llvm.loop.parallel_accesses", self.group))
        self.loops += 1
        return self.module.add_metadata([f"loop {self.loops}", *hints])

    def _hint(self, name: str, *values: Any) -> Any:
        return self.module.add_metadata([name, *values])


def _is_innermost(loop: ast.For | ast.While) -> bool:
    """Whether ``loop`` computes something, and has no other in it."""
    nodes = nodes_in(*loop.body)
    return isinstance(loop, ast.For) and not any(isinstance(n, (ast.For, ast.While)) for n in nodes)
