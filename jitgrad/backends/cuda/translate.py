"""Kernel source of the CUDA target to LLVM IR for NVPTX. This module imports llvmlite."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from llvmlite import ir

from jitgrad.backends.cuda.pointer_roots import scratch_names, written_parameters
from jitgrad.backends.cuda.simt import SIMT
from jitgrad.backends.llvm import intrinsics, memory_access
from jitgrad.backends.llvm.ast_to_llvm import SourceFunction, Translation
from jitgrad.backends.llvm.kernel_frontend import parameter_type, written
from jitgrad.backends.llvm.kernel_library import INTEGER_FUNCTIONS
from jitgrad.backends.llvm.text_builder import TextBuilder
from jitgrad.backends.llvm.types import I64, PointerType, TypedValue
from jitgrad.backends.llvm.vector_functions import VECTOR_FUNCTIONS
from jitgrad.core.errors import BackendError
from jitgrad.core.gc_paused import gc_paused

TRIPLE = "nvptx64-nvidia-cuda"
# Registers do for two blocks of 256 threads at once; left to itself, ptxas spills some kernels for a third block. Kernels
# of very many arrays, whose addresses alone take half of these registers, have a processor for each block, and so has
# what the assembler cannot fit into them (`jitgrad.backends.cuda.compile.for_one_block`).
BLOCKS_PER_PROCESSOR = 2
MANY_ARRAYS = 24
SHORT_LOOP, UNROLLED = 8, 4  # iterations of a loop that is unrolled whole, and of a longer one that is unrolled
_WORD = ir.IntType(32)
_LOOP = re.compile(r'^(!\d+) = !\{ !"loop \d+", (.*) \}$', re.MULTILINE)


class _SimtModule(ir.Module):  # type: ignore[misc]
    """A module for a GPU.

    Attributes:
        linked: IR of other compilers that it links against.
        shared: the bytes of each array that the threads of a block share.
        block_threads: the threads of a block; None until the source says it.
    """

    def __init__(self, name: str, layout: str) -> None:
        super().__init__(name)
        self.triple: str = TRIPLE
        self.data_layout = layout
        self.linked: list[str] = []
        self.shared: list[int] = []
        self.block_threads: int | None = None


def new_module(name: str, layout: str) -> Any:
    """An empty module of llvmlite for a GPU whose data layout is ``layout``."""
    return _SimtModule(name, layout)


@dataclass(frozen=True, slots=True)
class Translated:
    """LLVM IR of a kernel, unoptimised, and what a launch of it needs."""

    text: str
    linked: tuple[str, ...]
    threads: int
    shared_bytes: int


@cache
def simt_names() -> Mapping[str, Any]:
    """All functions of kernel source but those of users."""
    integers = {name: written(function) for name, function in INTEGER_FUNCTIONS.items()}
    numbers = {"INF": float("inf"), "NAN": float("nan")}
    return {**intrinsics.INTRINSICS, **VECTOR_FUNCTIONS, **integers, **SIMT, **numbers}


def translate_kernel(source: str, entry: str, params: Sequence[str], functions: Mapping[str, Any], layout: str) -> Translated:
    """LLVM IR of ``entry``, a kernel of one argument for each of ``params``, and the number of its
    iterations.

    Args:
        functions: the users' functions, as kernel source calls them.
        layout: LLVM's data layout of the GPU.

    Raises:
        BackendError: if ``source`` is not kernel source.
    """
    tree = ast.parse(source)
    scope: dict[str, Any] = {**simt_names(), **functions}
    scope.update({node.name: SourceFunction(node, scope) for node in tree.body if isinstance(node, ast.FunctionDef)})
    with gc_paused():
        module = _SimtModule(entry, layout)
        try:
            _kernel(module, scope[entry], [*params, "i64"])
        except BackendError as error:
            raise BackendError(f"{error}\n{source}") from error
        if module.block_threads is None:
            raise BackendError(f"{entry} does not say how many threads a block has: it starts with threads(256)\n{source}")
        text = _LOOP.sub(r"\1 = distinct !{ \1, \2 }", str(module))
    return Translated(text, tuple(module.linked), module.block_threads, sum(module.shared))


def _kernel(module: _SimtModule, entry: SourceFunction, params: Sequence[str]) -> None:
    """Define the kernel; its pointers do not alias, so what it only reads goes through the read-only cache."""
    types = [parameter_type(name) for name in params]
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [_argument(t) for t in types]), entry.definition.name)
    function.calling_convention = "ptx_kernel"
    function.attributes.add("nounwind")
    builder = TextBuilder(function.append_basic_block("entry"))
    written = written_parameters(entry.definition)
    for type_, argument, parameter in zip(types, function.args, entry.definition.args.args, strict=True):
        if isinstance(type_, PointerType):
            argument.add_attribute("noalias")
            if parameter.arg not in written:
                set.add(argument.attributes, "readonly")  # llvmlite's list of names lacks it
    given = zip(params, types, function.args, strict=True)
    arguments = [TypedValue(type_, _received(builder, name, type_, word)) for name, type_, word in given]
    arrays = sum(isinstance(t, PointerType) for t in types)
    unrolled = _Unrolled(module, entry.definition)
    translation = Translation(builder, unrolled.hint) if arrays <= MANY_ARRAYS else _ManyArrays(builder, unrolled)
    translation.function(entry, arguments)
    builder.ret_void()
    if module.block_threads is not None:
        blocks = 1 if arrays > MANY_ARRAYS else BLOCKS_PER_PROCESSOR
        for limit, count in {"maxntidx": module.block_threads, "minctasm": blocks}.items():
            module.add_named_metadata("nvvm.annotations", [function, limit, ir.Constant(_WORD, count)])


class _ManyArrays(Translation):
    """Translates kernels of very many arrays. LLVM would keep an address for each array that a loop goes through, which
    takes two registers; it cannot follow an index through ``mov``, so each address is made of the index where it is used."""

    def __init__(self, builder: Any, unrolled: _Unrolled) -> None:
        super().__init__(builder, unrolled.hint)
        self.scratch = unrolled.scratch

    def load(self, node: ast.Subscript) -> TypedValue:
        return memory_access.emit_load(self.builder, self.value(node.value), self.hidden(node))

    def store(self, node: ast.Subscript, value: TypedValue) -> None:
        memory_access.emit_store(self.builder, self.value(node.value), self.hidden(node), value)

    def hidden(self, node: ast.Subscript) -> TypedValue:
        """The index of ``node``, but of scratch, whose indices have to be literals."""
        index = self.value(node.slice)
        if index.type != I64 or (isinstance(node.value, ast.Name) and node.value.id in self.scratch):
            return index
        moved = self.builder.asm(ir.FunctionType(I64.llvm, [I64.llvm]), "mov.b64 $0, $1;", "=l,l", [index.ir], False)
        return TypedValue(I64, moved)


class _Unrolled:
    """Metadata for loops with literal bounds: the short ones, and those that go through scratch, are unrolled, so that
    scratch is in registers. Others are unrolled a few times: whole, ptxas would hold all that they load at once."""

    def __init__(self, module: _SimtModule, kernel: ast.FunctionDef) -> None:
        self.module = module
        self.scratch = scratch_names(kernel)
        self.loops = 0

    def hint(self, loop: ast.For | ast.While) -> Any:
        """The metadata of one loop; ``_LOOP`` makes its node distinct, as LLVM demands."""
        if not isinstance(loop, ast.For) or not isinstance(loop.iter, ast.Call):
            return None
        bounds = [b.value for b in loop.iter.args if isinstance(b, ast.Constant) and isinstance(b.value, int)]
        if len(bounds) < len(loop.iter.args):
            return None
        whole = len(range(*bounds)) <= SHORT_LOOP or self.goes_through_scratch(loop)
        how = ["llvm.loop.unroll.full"] if whole else ["llvm.loop.unroll.count", ir.Constant(_WORD, UNROLLED)]
        self.loops += 1
        return self.module.add_metadata([f"loop {self.loops}", self.module.add_metadata(how)])

    def goes_through_scratch(self, loop: ast.For) -> bool:
        """Whether the variable of ``loop`` is part of an index into scratch."""
        assert isinstance(loop.target, ast.Name)
        for node in ast.walk(loop):
            match node:
                case ast.Subscript(value=ast.Name(id=name), slice=index):
                    pass
                case ast.Call(func=ast.Name(id="at"), args=[ast.Name(id=name), index]):
                    pass
                case _:
                    continue
            if name in self.scratch and any(isinstance(n, ast.Name) and n.id == loop.target.id for n in ast.walk(index)):
                return True
        return False


def _argument(type_: Any) -> Any:
    """Every argument is one word, as in the argument tables of the CPU."""
    return type_.llvm if isinstance(type_, PointerType) else I64.llvm


def _received(builder: Any, name: str, type_: Any, argument: Any) -> Any:
    """The parameter of a type of that name that an argument word holds."""
    if isinstance(type_, PointerType) or type_ == I64:
        return argument
    if name == "f16":
        half = builder.bitcast(builder.trunc(argument, ir.IntType(16)), ir.HalfType())
        return builder.fpext(half, type_.llvm)
    if type_.category == "f":
        bits = argument if type_.bits == 64 else builder.trunc(argument, _WORD)
        return builder.bitcast(bits, type_.llvm)
    return argument if type_.bits == 64 else builder.trunc(argument, type_.llvm)
