"""Scripts that run single kernels on recorded inputs and compare them with eager results."""

from __future__ import annotations

import ctypes
import inspect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from jitgrad.backends.base import user_functions
from jitgrad.backends.cpu.backend import native_names
from jitgrad.backends.cpu.row_loops import emit_cpu
from jitgrad.backends.llvm.code_object import compile_entry
from jitgrad.backends.python import DTYPES, Pointer, names, passed
from jitgrad.compiler.lowering.layout import Buffer
from jitgrad.compiler.lowering.loop_nest import ArgSlot
from jitgrad.compiler.plan import KernelStep, Place
from jitgrad.core.ir import evaluate
from jitgrad.core.op import Kind, OpDef
from jitgrad.core.origin import Origin
from jitgrad.eager.interpreter import run_on_arrays
from jitgrad.runtime.program import Program

RecordedWord = int | tuple[str, int]  # a number, or (buffer, offset in bytes)


@dataclass(frozen=True, slots=True)
class BufferExtent:
    """An array in a buffer that a kernel reads or writes; ``strides`` and ``offset`` in bytes."""

    array: str
    buffer: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Record:
    """One launch: sizes of buffers, arrays in them, argument tables, and blocks of iterations."""

    buffers: Mapping[str, int]
    reads: Sequence[BufferExtent]
    writes: Sequence[BufferExtent]
    params: Sequence[str]
    words: Sequence[RecordedWord]
    units: int
    grain: int
    epilogue_params: Sequence[str] = ()
    epilogue_words: Sequence[RecordedWord] = ()


def write_repro(path: str, program: Program, inputs: Sequence[np.ndarray[Any, Any]]) -> None:
    """Write a script to ``path``, and the arrays it needs beside it as ``.npz``.

    The script contains the source of every kernel. It gives each kernel the inputs that eager
    execution of the earlier steps makes, runs it as Python (with ``--native``: as machine code),
    and prints the distance of its results from the eager ones. It exits with 1 if a result is off
    by more than 1e-3 of the largest element. This shows which kernel is wrong, and whether its
    source or its machine code is wrong.
    """
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    parts = []
    kernel_steps = [step for step in program.plan.steps if isinstance(step, KernelStep)]
    for k, (step, ran) in enumerate(zip(kernel_steps, _run_eagerly(program, inputs), strict=True)):
        record = _record(step, f"k{k}")
        for windows, values in ((record.reads, ran[0]), (record.writes, ran[1])):
            arrays.update({w.array: np.asarray(x) for w, x in zip(windows, values, strict=True)})
        parts.append(_kernel_text(k, step, record))
    data = os.path.splitext(path)[0] + ".npz"
    np.savez(data, allow_pickle=False, **arrays)
    graph = "\n".join(f"# {line}".rstrip() for line in str(program.plan.graph).splitlines())
    with open(path, "w", encoding="utf-8") as file:
        file.write(_HEAD.format(graph=graph, data=os.path.basename(data)) + "\n\n".join(parts) + _TAIL)


_HEAD = '''"""Runs kernels alone on recorded inputs against recorded eager results; --native runs machine code."""

import os
import sys

import numpy as np

from jitgrad.jit.repro import Record, BufferExtent, check, kernel_names

globals().update(kernel_names())
with np.load(os.path.join(os.path.dirname(os.path.abspath(__file__)), {data!r})) as file:
    arrays = dict(file)
checks = []

# The program:
{graph}


'''

_TAIL = """

sys.exit(check(checks, arrays, native="--native" in sys.argv))
"""


def _run_eagerly(
    program: Program, inputs: Sequence[np.ndarray[Any, Any]]
) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...]]]:
    """(operands, results) of every kernel, with every step run op by op."""
    kernels = []

    def apply(op: OpDef, operands: tuple[Any, ...], attrs: Mapping[str, Any]) -> Any:
        results = run_on_arrays(op, operands, attrs)
        if op.kind is Kind.FUSED:
            kernels.append((tuple(map(np.copy, operands)), tuple(map(np.copy, results))))
        return results

    evaluate(program.plan.graph, tuple(inputs), apply)
    return iter(kernels)


def _record(step: KernelStep, prefix: str) -> Record:
    labels: dict[Buffer, str] = {}

    def window(place: Place, array: str) -> BufferExtent:
        assert place.location is not None
        buffer = place.location.buffer
        strides = tuple(s * place.aval.dtype.itemsize for s in place.location.strides)
        label = labels.setdefault(buffer, f"b{len(labels)}")
        return BufferExtent(array, label, place.location.offset, place.aval.shape, strides, place.aval.dtype.str)

    def word(w: ArgSlot) -> RecordedWord:
        return w if isinstance(w, int) else (labels.setdefault(w[0], f"b{len(labels)}"), w[1])

    reads = [window(p, f"{prefix}_in{k}") for k, p in enumerate(step.reads)]
    writes = [window(p, f"{prefix}_out{k}") for k, p in enumerate(step.writes)]
    lowered = step.lowered
    words, epilogue_words = list(map(word, lowered.words)), list(map(word, lowered.epilogue_words))
    cut = lowered.schedule
    main, epilogue = emit_cpu(lowered.kernel, cut)
    epilogue_params = epilogue.params if epilogue is not None else ()
    sizes = {label: buffer.nbytes for buffer, label in labels.items()}
    return Record(
        sizes, reads, writes, main.params, words, cut.iterations, cut.block_size, epilogue_params,
        epilogue_words,
    )


def _kernel_text(k: int, step: KernelStep, record: Record) -> str:
    """The kernel as functions ``kernel_k`` and ``epilogue_k``, and the line that checks them."""
    main, epilogue = emit_cpu(step.lowered.kernel, step.lowered.schedule)
    lines = [f"# kernel {k}: {step.lowered.kernel.name}"]
    for name, function in user_functions(step.lowered.kernel).items():
        where = Origin.of_code_of(function).full()
        lines.append(f'raise SystemExit("set {name} here to the scalar function from {where}, and delete this line")')
    lines.append(main.text.replace("def kernel(", f"def kernel_{k}("))
    if epilogue is not None:
        lines.append(epilogue.text.replace("def epilogue(", f"def epilogue_{k}("))
    fields = [f"    {key}={_literal(getattr(record, key))}," for key in asdict(record)]
    functions = f"kernel_{k}, {'None' if epilogue is None else f'epilogue_{k}'}"
    lines.append("\n".join([f"checks.append(({functions}, Record(", *fields, ")))"]))
    return "\n".join(lines)


def _literal(x: Any) -> str:
    if isinstance(x, (list, tuple)) and any(isinstance(w, BufferExtent) for w in x):
        return "[\n        " + ",\n        ".join(map(repr, x)) + ",\n    ]"
    return repr(x)


# --- called by scripts ----------------------------------------------------------------------------

KernelCheck = tuple[Callable[..., None], Callable[..., None] | None, Record]

TOLERANCE = 1e-3  # of the largest element: rounding errors are far smaller, those of a wrong kernel rarely are


def kernel_names() -> dict[str, Any]:
    """The names that the source of a kernel uses, besides Python's own."""
    return dict(names())


def check(checks: Sequence[KernelCheck], arrays: Mapping[str, np.ndarray[Any, Any]], *, native: bool = False) -> int:
    """Run every kernel and print the distance of its results; 1 if any is wrong, else 0."""
    wrong = False
    for kernel, epilogue, record in checks:
        memory = {name: np.zeros(max(1, size), np.uint8) for name, size in record.buffers.items()}
        for w in record.reads:
            np.copyto(_view(memory, w), arrays[w.array])
        if native:
            _run_native(kernel, epilogue, record, memory)
        else:
            _run_python(kernel, epilogue, record, memory)
        for w in record.writes:
            distance, scale = _distance(_view(memory, w), arrays[w.array])
            bad = not distance <= TOLERANCE * scale
            wrong |= bad
            verdict = "WRONG" if bad else "ok"
            where = f"{kernel.__name__} {w.array} {w.dtype}{list(w.shape)}"
            print(f"{where}: off by {distance:.3g} of {scale:.3g}  {verdict}")
    return int(wrong)


def _view(memory: Mapping[str, np.ndarray[Any, Any]], w: BufferExtent) -> np.ndarray[Any, Any]:
    return np.ndarray(w.shape, np.dtype(w.dtype), memory[w.buffer], w.offset, w.strides)


def _distance(actual: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> tuple[float, float]:
    """(largest difference, largest expected element); NaN if NaN or Inf are elsewhere."""
    a, b = actual.astype(np.float64), expected.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        distance = float(np.max(np.abs(a - b)[~same], initial=0.0))
    return distance, float(np.max(np.abs(b[np.isfinite(b)]), initial=0.0))


def _run_python(
    kernel: Callable[..., None],
    epilogue: Callable[..., None] | None,
    record: Record,
    memory: Mapping[str, np.ndarray[Any, Any]],
) -> None:
    def table(words: Sequence[RecordedWord], params: Sequence[str]) -> list[Any]:
        return [_pointer(w, kind, memory) for w, kind in zip(words, params, strict=True)]

    with np.errstate(all="ignore"):
        main = table(record.words, record.params)
        for start in range(0, record.units, record.grain):
            kernel(*main, start, min(start + record.grain, record.units))
        if epilogue is not None:
            epilogue(*table(record.epilogue_words, record.epilogue_params), 0, 1)


def _pointer(word: RecordedWord, kind: str, memory: Mapping[str, np.ndarray[Any, Any]]) -> Any:
    if isinstance(word, int):
        return passed(word, kind)
    name, offset = word
    dtype = DTYPES[kind.rstrip("*")]
    memory_bytes = memory[name]
    whole = memory_bytes[: memory_bytes.size // dtype.itemsize * dtype.itemsize]
    return Pointer(whole.view(dtype), offset // dtype.itemsize)


def _run_native(
    kernel: Callable[..., None],
    epilogue: Callable[..., None] | None,
    record: Record,
    memory: Mapping[str, np.ndarray[Any, Any]],
) -> None:
    """Run the kernel as machine code, compiled from the source of the functions in the script."""
    calls = [(kernel, record.params, record.words, record.units, record.grain)]
    if epilogue is not None:
        calls.append((epilogue, record.epilogue_params, record.epilogue_words, 1, 1))
    for function, params, words, units, grain in calls:
        source = inspect.getsource(function)
        code = compile_entry(source, function.__name__, native_names(), params=params, key=None)
        run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(code.address)
        table = np.array([w if isinstance(w, int) else memory[w[0]].ctypes.data + w[1] for w in words], np.int64)
        for start in range(0, units, grain):
            run(table.ctypes.data, start, min(start + grain, units))
