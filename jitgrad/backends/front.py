"""Kernel source to LLVM IR: numba's type inference and lowering, without its optimiser and linker.

Import this module only when a kernel is compiled: it imports numba.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Mapping, Sequence
from functools import cache
from inspect import Parameter, Signature, signature
from types import FunctionType
from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba.core import codegen, compiler, dispatcher, typed_passes, types, untyped_passes
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.funcdesc import PythonFunctionDescriptor
from numba.core.registry import cpu_target
from numba.core.target_extension import target_override

from jitgrad.backends import intrinsics, lanes, memory, streams
from jitgrad.backends.interleave import USUAL, vectors_side_by_side
from jitgrad.backends.target import kernel_target
from jitgrad.compiler.collector import collector_paused
from jitgrad.errors import BackendError


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(typed_passes.NativeLowering):  # type: ignore[misc]
    """numba's lowering, less its statistics: to read them it waits until LLVM has finished the kernel before."""

    _name = "kernel_lowering"

    def run_pass(self, state: Any) -> bool:
        target, flags = state.targetctx, state.flags
        descriptor = PythonFunctionDescriptor.from_specialized_function(
            state.func_ir, state.typemap, state.return_type, state.calltypes, mangler=target.mangler,
            inline=flags.forceinline, noalias=flags.noalias, abi_tags=[flags.get_mangle_string()],
        )  # fmt: skip
        with target.push_code_library(state.library):
            lower = self.lowering_class(target, state.library, descriptor, state.func_ir, metadata=state.metadata)
            lower.lower()
        state["cr"] = compiler._LowerResult(descriptor, lower.call_helper, cfunc=None, env=lower.env)
        return True


_PASSES = (
    untyped_passes.TranslateByteCode,
    untyped_passes.FixupArgs,
    untyped_passes.IRProcessing,
    typed_passes.NopythonTypeInference,
    typed_passes.IRLegalization,
    _Lowering,
    typed_passes.NoPythonBackend,
)

_SMALL_LOOP = ('!"llvm.loop.interleave.count", i32 1', '!"llvm.loop.unroll.disable"')


def float16(number: float) -> np.float32:
    """``number`` rounded to float16, as kernels hold it."""
    return np.float32(np.float16(number))


_FLOATS: dict[str, Any] = {"to_f16": float16, "to_f32": np.float32, "to_f64": np.float64}
_METADATA = 1_000_000  # IR metadata from this number on is ours; numba counts from 0
_LABEL = re.compile(r"B(\d+)[\w.]*:$")
_JUMP = re.compile(r"\s+br label %\"B(\d+)\"$")


class _Pipeline(compiler.CompilerBase):  # type: ignore[misc]
    """numba's nopython pipeline less what kernel source never needs (closures, lifting, rewrites)."""

    def define_pipelines(self) -> list[Any]:
        manager = PassManager("kernel")
        for step in _PASSES:
            manager.add_pass(step, step._name)
        manager.finalize()
        return [manager]


@cache
def _platform(maker: Any) -> tuple[str, str]:
    """Triple and data layout of modules. Asked for once: an answer of LLVM has to wait until it stops optimising."""
    return binding.get_process_triple(), maker._data_layout


class _Texts(codegen.CodeLibrary):  # type: ignore[misc]
    """A code library that only collects IR text: optimising and linking is `jitgrad.backends.llvm`'s."""

    def __init__(self, maker: Any, name: str) -> None:
        super().__init__(maker, name)
        self.text = ""
        self.linked: list[Any] = []

    def create_ir_module(self, name: str) -> Any:
        module = ir.Module(name)
        module.triple, module.data_layout = _platform(self._codegen)
        return module

    def add_ir_module(self, ir_module: Any) -> None:
        self.text = str(ir_module)

    def add_linking_library(self, library: Any) -> None:
        self.linked.append(library)

    def finalize(self) -> None:
        self._finalized = True

    def get_function(self, name: str) -> Any:
        raise NotImplementedError("a kernel's IR is read as text")

    def get_llvm_str(self) -> str:
        return self.text

    def get_asm_str(self) -> str:
        return ""


def _flags() -> Any:
    flags = compiler.Flags()
    flags.no_compile = True
    flags.no_cpython_wrapper = True
    flags.no_cfunc_wrapper = True
    flags.no_rewrites = True
    flags.enable_ssa = False
    flags.release_gil = True
    flags.noalias = True
    flags.error_model = "numpy"
    return flags


def numba_type(name: str) -> Any:
    """The numba type of a parameter: a dtype name such as ``"f32"``, with ``*`` for a pointer to it.

    Raises:
        BackendError: for any other name.
    """
    dtype = memory.IN_MEMORY.get(name.removesuffix("*")) if name.endswith("*") else memory.DTYPES.get(name)
    if dtype is None:
        allowed = ", ".join(memory.DTYPES)
        raise BackendError(f"kernel parameter type {name!r}: expected one of {allowed}, or one of them with *")
    return types.CPointer(dtype) if name.endswith("*") else dtype


class _TypedNumbers(ast.NodeTransformer):
    """Puts a name for a typed number in place of every ``to_f32(0.5)``: numba has one step to take instead of three."""

    def __init__(self, names: dict[str, Any]) -> None:
        self._names = names

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        kind = _FLOATS.get(node.func.id) if isinstance(node.func, ast.Name) else None
        if kind is None or not isinstance(number := _literal(node.args[0]), float):
            return node
        name = f"{kind.__name__}({number!r})"
        with np.errstate(over="ignore"):  # beyond the largest lies infinity
            self._names[name] = kind(number)
        return ast.copy_location(ast.Name(name, ast.Load()), node)


def _literal(node: ast.expr) -> Any:
    """The number that ``node`` writes out, signed or not; None if it is something else."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        return -node.operand.value  # type: ignore[operator]
    return node.value if isinstance(node, ast.Constant) else None


def _target_for(namespace: Mapping[str, Any]) -> Any:
    """The numba target that can compile calls of everything in ``namespace``: numba's own if it has functions of it."""
    of_numba = any(isinstance(value, dispatcher.Dispatcher) for value in namespace.values())
    return cpu_target if of_numba else kernel_target


def _define(target: Any, tree: ast.Module, entry: str, namespace: Mapping[str, Any]) -> dict[str, Any]:
    """The names that the source of ``tree`` sees and defines; functions other than ``entry`` become callable from it."""
    names: dict[str, Any] = {**intrinsics.NAMES, **lanes.NAMES, **namespace}
    exec(compile(_TypedNumbers(names).visit(tree), f"<{entry}>", "exec"), names)
    for name, value in tuple(names.items()):
        if isinstance(value, FunctionType) and name != entry:
            names[name] = _callable(target, value)
    return names


def _compile(target: Any, function: FunctionType, kinds: Sequence[Any], result: Any) -> tuple[Any, _Texts]:
    """numba's description of ``function`` for these argument types, and the IR it lowers to."""
    typing, lowering = target.typing_context, target.target_context
    library = _Texts(lowering.codegen(), function.__name__)
    compiled = compiler.compile_extra(typing, lowering, function, kinds, result, _flags(), {}, library, _Pipeline)
    return compiled, library


@cache
def _callable(target: Any, function: FunctionType) -> Any:
    """``function`` in a form that kernels can call: compiled like them, once per combination of types.

    numba's own ``njit`` would optimise and emit each function by itself, which takes five times as long.
    """
    compiled: dict[tuple[Any, ...], tuple[Any, _Texts]] = {}

    def typed(typing: Any, *given: Any) -> Any:
        kinds = tuple(types.unliteral(kind) for kind in given)
        if kinds not in compiled:
            compiled[kinds] = _compile(target, function, kinds, None)
        result, library = compiled[kinds]

        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            context.active_code_library.add_linking_library(library)
            return context.call_internal(builder, result.fndesc, signature, args)

        return result.signature, build

    parameters = [Parameter("typing", Parameter.POSITIONAL_ONLY), *signature(function).parameters.values()]
    typed.__name__ = function.__name__
    typed.__signature__ = Signature(parameters)  # type: ignore[attr-defined]  # numba asks for it
    return memory.intrinsic(typed)


def _linked(library: _Texts) -> dict[int, str]:
    """IR of everything that ``library`` calls, directly or not, each once."""
    found: dict[int, str] = {}
    waiting = list(library.linked)
    while waiting:
        other = waiting.pop()
        if id(other) in found:
            continue
        if isinstance(other, _Texts):
            found[id(other)] = other.text
            waiting += other.linked
        else:
            found[id(other)] = str(other._get_module_for_linking())
    return found


def lower(
    source: str, entry: str, params: Sequence[str], namespace: Mapping[str, Any], vector_bits: int, small: bool = False
) -> tuple[str, list[str]]:
    """LLVM IR of ``entry`` and of what it links against, unoptimised.

    Args:
        source: Python text defining ``entry(*params, start, stop)``.
        params: the type of each parameter before ``start`` and ``stop`` (see `numba_type`).
        namespace: names for the source on top of `jitgrad.backends.intrinsics.NAMES`.
        vector_bits: preferred vector width, 0 for LLVM's own choice.
        small: whether loops stay one vector at a time and are not unrolled: for code that hardly runs.

    Raises:
        BackendError: if numba refuses the source; the message carries numba's.
    """
    target = _target_for(namespace)
    tree = ast.parse(source)
    counts = None if small else vectors_side_by_side(tree)
    names = _define(target, tree, entry, namespace)
    kinds = [numba_type(name) for name in params] + [types.int64, types.int64]
    try:
        with global_compiler_lock, collector_paused(), target_override(target.target_context.target_name):
            target.target_context.refresh()
            result, library = _compile(target, names[entry], kinds, types.void)
    except Exception as error:  # numba lets its own TypeErrors and AssertionErrors through
        raise BackendError(f"numba cannot compile kernel {entry}: {error}\n{source}") from error
    text = _as_internal(library.text, result.fndesc.mangled_name, vector_bits)
    text = _with_loop_hints(text, counts)
    text = streams.marked(text, vector_bits)
    at_end = streams.FENCE if streams.has_marks(text) else ""
    return text + _table_entry(entry, result.fndesc.mangled_name, params, at_end), list(_linked(library).values())


def _as_internal(text: str, mangled: str, vector_bits: int) -> str:
    """``text`` with the function private to its module, and with its preferred vector width."""
    attribute = f'"prefer-vector-width"="{vector_bits}"' if vector_bits else ""
    pattern = re.compile(rf'^define (i32 @"{re.escape(mangled)}"\(.*\))$', re.MULTILINE)
    changed, count = pattern.subn(lambda m: f"define internal {m[1]} noinline nounwind {attribute}", text)
    if count != 1:
        raise BackendError(f"numba's IR does not define {mangled} once")
    return changed


def _with_loop_hints(text: str, counts: Sequence[int] | None) -> str:
    """``text`` with a hint for LLVM on every jump back to a loop's head: how many vectors it works on side by side.

    Args:
        counts: one for each loop, in the order in which they end; None: all loops stay small.

    numba names a block after the position of its first byte code, so a jump to a lower number closes a loop.
    """
    lines = text.splitlines()
    here, closing = -1, []
    for k, line in enumerate(lines):
        if label := _LABEL.match(line):
            here = int(label[1])
        elif (jump := _JUMP.match(line)) and int(jump[1]) < here:
            closing.append((here, k))
    closing.sort()
    hints: list[tuple[str, ...]] = [_SMALL_LOOP] * len(closing)
    if counts is not None:
        counts = counts if len(counts) == len(closing) else [USUAL] * len(closing)  # other loops than ``for``
        hints = [(f'!"llvm.loop.interleave.count", i32 {count}',) for count in counts]
    numbers = itertools.count(_METADATA)
    for (_, k), texts in zip(closing, hints, strict=True):
        loop, *names = [f"!{next(numbers)}" for _ in range(1 + len(texts))]
        lines[k] += f", !llvm.loop {loop}"
        lines.append(f"{loop} = distinct !{{{', '.join([loop, *names])}}}")
        lines += [f"{name} = !{{{text}}}" for name, text in zip(names, texts, strict=True)]
    return "\n".join(lines)


def _table_entry(entry: str, mangled: str, params: Sequence[str], at_end: str) -> str:
    """IR of ``void entry(i64* args, i64 start, i64 stop)``: unpacks the table, calls the kernel, and does ``at_end``.

    For ``("f32*", "f32")`` it writes::

        %p0 = getelementptr i64, ptr %args, i64 0
        %w0 = load i64, ptr %p0
        %a0 = inttoptr i64 %w0 to ptr
        %p1 = getelementptr i64, ptr %args, i64 1
        %w1 = load i64, ptr %p1
        %t1 = trunc i64 %w1 to i32
        %a1 = bitcast i32 %t1 to float
        %s = call i32 @kernel(ptr %ret, ptr %exc, ptr %a0, float %a1, i64 %start, i64 %stop)
    """
    lines = [f"define void @{entry}(ptr %args, i64 %start, i64 %stop) nounwind {{"]
    lines += ["%ret = alloca ptr", "%exc = alloca ptr"]
    passed = ["ptr %ret", "ptr %exc"]
    for k, name in enumerate(params):
        lines += [f"%p{k} = getelementptr i64, ptr %args, i64 {k}", f"%w{k} = load i64, ptr %p{k}"]
        lines += _decode(k, name)
        passed.append(f"{_llvm_name(name)} %a{k}")
    lines.append(f'%s = call i32 @"{mangled}"({", ".join(passed)}, i64 %start, i64 %stop)')
    return "\n".join(["", *lines, at_end, "ret void", "}", ""])


def _llvm_name(name: str) -> str:
    if name.endswith("*"):
        return "ptr"
    if name == "bool":
        return "i1"
    return {"f16": "float", "f32": "float", "f64": "double"}.get(name, f"i{name[1:]}")


def _decode(k: int, name: str) -> list[str]:
    """IR lines that turn word ``%w{k}`` into the argument ``%a{k}``."""
    if name.endswith("*"):
        return [f"%a{k} = inttoptr i64 %w{k} to ptr"]
    if name == "f16":
        bits = [f"%t{k} = trunc i64 %w{k} to i16", f"%h{k} = bitcast i16 %t{k} to half"]
        return [*bits, f"%a{k} = fpext half %h{k} to float"]
    if name == "f32":
        return [f"%t{k} = trunc i64 %w{k} to i32", f"%a{k} = bitcast i32 %t{k} to float"]
    if name == "f64":
        return [f"%a{k} = bitcast i64 %w{k} to double"]
    if name in ("i64", "u64"):
        return [f"%a{k} = add i64 %w{k}, 0"]
    return [f"%a{k} = trunc i64 %w{k} to {_llvm_name(name)}"]
