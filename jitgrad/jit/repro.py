"""Scripts that run single kernels on recorded inputs and compare them with eager results."""

from __future__ import annotations

import ctypes
import dataclasses
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from jitgrad.backends.base import user_functions
from jitgrad.backends.cpu.emit import emit_kernel
from jitgrad.backends.llvm.code_object import compile_entry
from jitgrad.backends.llvm.library_names import native_names
from jitgrad.backends.python import DTYPES, Pointer, names, passed
from jitgrad.compiler.loops.loop_op import LOOP
from jitgrad.compiler.lowering.layout import ArgSlot, Buffer
from jitgrad.compiler.plan import KernelStep, Place
from jitgrad.core.axis_runs import positions_read, whole
from jitgrad.core.ir import Graph, TraceNode, evaluate
from jitgrad.core.op import Kind, OpDef
from jitgrad.core.origin import Origin
from jitgrad.eager.run import run_on_arrays
from jitgrad.jit.isolate import kernel_nodes
from jitgrad.jit.rounding_judge import measure
from jitgrad.jit.suspects import distance, last_rounding
from jitgrad.runtime.program import Program

RecordedArg = int | tuple[str, int]  # a number, or (buffer, offset in bytes)


@dataclass(frozen=True, slots=True)
class BufferExtent:
    """An array in a buffer that a kernel reads or writes; ``strides`` and ``offset`` in bytes.

    ``axes``: of an array that is read at other positions, those of each axis, -1 for zeros.
    """

    array: str
    buffer: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    axes: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """The arguments of a kernel function, and the iterations that it does in blocks."""

    params: Sequence[str]
    args: Sequence[RecordedArg]
    iterations: int
    block_size: int


@dataclass(frozen=True, slots=True)
class Record:
    """One launch: sizes of buffers, arrays in them, and calls of the kernel and its epilogue."""

    buffers: Mapping[str, int]
    reads: Sequence[BufferExtent]
    writes: Sequence[BufferExtent]
    calls: Sequence[FunctionCall]


@dataclass(frozen=True, slots=True)
class Cut:
    """How much of large arrays a script keeps: ``nbytes`` of each, half of it around ``center``, a
    fraction of the array."""

    nbytes: int
    center: float

    def inputs(self, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Some elements of ``x``, which scripts repeat to its shape, if it is large."""
        flat = x.reshape(-1)
        count = self.nbytes // x.dtype.itemsize
        if flat.size <= count:
            return flat
        start = min(max(0, int(self.center * flat.size) - count // 4), flat.size - count)
        spread = np.linspace(0, flat.size - 1, count - count // 2).astype(np.int64)
        return np.concatenate([flat[start : start + count // 2], flat[spread]])

    def positions_read(self, size: int) -> np.ndarray[Any, Any]:
        """The elements of a result that a script compares."""
        count = self.nbytes // 24  # each with its position and its limit
        return np.arange(size) if size <= count else np.unique(np.linspace(0, size - 1, count).astype(np.int64))


DATA_BYTES = 600_000  # before compression
_MOST_KERNELS = 20
_MOST_LINES = 400  # of the program
_DISTURBED_RUNS = 16


def write_repro(
    path: str,
    program: Program,
    inputs: Sequence[np.ndarray[Any, Any]],
    numbers: Sequence[int] | None = None,
    center: float = 0.0,
) -> None:
    """Write a script to ``path``, and the arrays it needs beside it as ``.npz``: together at most 1 MB.

    The script contains the source of the kernels with these numbers, or of all. It gives each the
    inputs that eager execution of the earlier steps makes, runs it as Python (with ``--native``: as
    machine code), and compares its results with eager ones. It exits with 1 if rounding does not
    explain the difference. This shows which kernel is wrong, and whether its source or its machine
    code is wrong. Of large inputs it has a part, taken around ``center``, repeated to their shapes.
    """
    nodes = kernel_nodes(program)
    chosen = dict.fromkeys(nodes if numbers is None else [nodes[k] for k in numbers])
    steps = [s for s in program.plan.steps if isinstance(s, KernelStep) and s.node in chosen][:_MOST_KERNELS]
    operands = _operands_of(program, inputs, [step.node for step in steps])
    cut = Cut(DATA_BYTES // max(1, sum(len(s.reads) + len(s.writes) for s in steps)), center)
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    parts = []
    for k, step in enumerate(steps):
        record = _record(step, f"k{k}")
        arrays.update(_recorded_arrays(step.node, record, operands[step.node], cut))
        parts.append(_kernel_text(k, step, record))
    data = os.path.splitext(path)[0] + ".npz"
    np.savez_compressed(data, allow_pickle=False, **arrays)
    graph = "\n".join(f"# {line}".rstrip()[:200] for line in str(program.plan.graph).splitlines()[:_MOST_LINES])
    with open(path, "w", encoding="utf-8") as file:
        file.write(_HEAD.format(graph=graph, data=os.path.basename(data)) + "\n\n".join(parts) + _TAIL)


def _recorded_arrays(
    node: TraceNode, record: Record, operands: Sequence[Any], cut: Cut
) -> dict[str, np.ndarray[Any, Any]]:
    """What the script reads: parts of the inputs, and elements of the results with their positions
    and limits."""
    arrays = {w.array: cut.inputs(np.asarray(x)) for w, x in zip(record.reads, operands, strict=True)}
    whole = [np.resize(arrays[w.array], w.shape) for w in record.reads]
    body: Graph = node.attr("body")
    positions = {k: cut.positions_read(value.aval.size) for k, value in enumerate(body.outputs)}
    measured = measure(body, whole, positions, _DISTURBED_RUNS)
    for w, at, (values, moves) in zip(record.writes, positions.values(), measured, strict=True):
        arrays |= {w.array: values, f"{w.array}_at": at, f"{w.array}_limit": moves + last_rounding(values)}
    return arrays


_HEAD = '''"""AxisRuns kernels alone on recorded inputs against recorded eager results; --native runs machine code."""

import os
import sys

import numpy as np

from jitgrad.jit.repro import BufferExtent, FunctionCall, Record, check, kernel_names

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


def _operands_of(
    program: Program, inputs: Sequence[np.ndarray[Any, Any]], nodes: Sequence[TraceNode]
) -> dict[TraceNode, tuple[Any, ...]]:
    """The operands of ``nodes``, with every step of the program run op by op."""
    fused = iter(kernel_nodes(program))
    found = {}

    def apply(op: OpDef, operands: tuple[Any, ...], attrs: Mapping[str, Any]) -> Any:
        node = next(fused) if op is LOOP or op.kind is Kind.FUSED else None
        if node is not None and node in nodes:
            found[node] = tuple(map(np.copy, operands))
        return run_on_arrays(op, operands, attrs)

    evaluate(program.plan.graph, tuple(inputs), apply)
    return found


def _record(step: KernelStep, prefix: str) -> Record:
    labels: dict[Buffer, str] = {}

    def window(place: Place, array: str) -> BufferExtent:
        assert place.location is not None
        buffer = place.location.buffer
        strides = tuple(s * place.aval.dtype.itemsize for s in place.location.strides)
        label = labels.setdefault(buffer, f"b{len(labels)}")
        pairs = zip(place.location.runs, place.aval.shape, strict=False)
        axes = tuple([tuple(positions_read(runs or whole(n)).tolist()) for runs, n in pairs])
        return BufferExtent(array, label, place.location.offset, place.aval.shape, strides, place.aval.dtype.str, axes)

    def arg(slot: ArgSlot) -> RecordedArg:
        return slot if isinstance(slot, int) else (labels.setdefault(slot[0], f"b{len(labels)}"), slot[1])

    reads = [window(p, f"{prefix}_in{k}") for k, p in enumerate(step.reads)]
    writes = [window(p, f"{prefix}_out{k}") for k, p in enumerate(step.writes)]
    lowered, schedule = step.lowered, step.lowered.schedule
    main, epilogue = emit_kernel(lowered.kernel, schedule)
    calls = [FunctionCall(main.params, [*map(arg, step.args)], schedule.iterations, schedule.block_size)]
    if epilogue is not None:
        calls.append(FunctionCall(epilogue.params, [*map(arg, step.epilogue_args)], 1, 1))
    return Record({label: buffer.nbytes for buffer, label in labels.items()}, reads, writes, calls)


def _kernel_text(k: int, step: KernelStep, record: Record) -> str:
    """The kernel as functions ``kernel_k`` and ``epilogue_k``, and the line that checks them."""
    main, epilogue = emit_kernel(step.lowered.kernel, step.lowered.schedule)
    lines = [f"# kernel {k}: {step.lowered.kernel.name}"]
    for name, function in user_functions(step.lowered.kernel).items():
        where = Origin.of_code_of(function).full()
        lines.append(f'raise SystemExit("set {name} here to the scalar function from {where}, and delete this line")')
    lines.append(main.text.replace("def kernel(", f"def kernel_{k}("))
    if epilogue is not None:
        lines.append(epilogue.text.replace("def epilogue(", f"def epilogue_{k}("))
    fields = [f"    {field.name}={_literal(getattr(record, field.name))}," for field in dataclasses.fields(record)]
    functions = ", ".join(f"{name}_{k}" for name in ("kernel", "epilogue")[: len(record.calls)])
    lines.append("\n".join([f"checks.append((({functions},), Record(", *fields, ")))"]))
    return "\n".join(lines)


def _literal(x: Any) -> str:
    if isinstance(x, (list, tuple)) and any(isinstance(w, (BufferExtent, FunctionCall)) for w in x):
        return "[\n        " + ",\n        ".join(map(repr, x)) + ",\n    ]"
    return repr(x)


# --- called by scripts ----------------------------------------------------------------------------

RecordedArrays = Mapping[str, np.ndarray]
KernelCheck = tuple[tuple[Callable[..., None], ...], Record]


def kernel_names() -> dict[str, Any]:
    """The names that the source of a kernel uses, besides Python's own."""
    return dict(names())


def check(checks: Sequence[KernelCheck], arrays: Mapping[str, np.ndarray[Any, Any]], *, native: bool = False) -> int:
    """AxisRun every kernel and print the distance of its results from eager ones; 1 if any is wrong, else 0."""
    wrong = False
    for functions, record in checks:
        memory = {name: np.zeros(max(1, size), np.uint8) for name, size in record.buffers.items()}
        for w in record.reads:
            _fill(memory, w, np.resize(arrays[w.array], w.shape))
        for function, call in zip(functions, record.calls, strict=True):
            run = (_native if native else _python)(function, call, memory)
            with np.errstate(all="ignore"):
                for start in range(0, call.iterations, call.block_size):
                    run(start, min(start + call.block_size, call.iterations))
        for w in record.writes:
            found = _view(memory, w).reshape(-1)[arrays[f"{w.array}_at"]]
            apart, limit = distance(found, arrays[w.array]), arrays[f"{w.array}_limit"]
            worst = int(np.argmax(apart - limit)) if apart.size else None
            bad = bool(np.any(~(apart <= limit)))
            wrong |= bad
            sizes = "" if worst is None else f": off by {apart[worst]:.3g}, rounding explains {limit[worst]:.3g}"
            print(f"{functions[0].__name__} {w.array} {w.dtype}{list(w.shape)}{sizes}  {'WRONG' if bad else 'ok'}")
    return int(wrong)


def _fill(memory: RecordedArrays, w: BufferExtent, array: np.ndarray[Any, Any]) -> None:
    """Write ``array`` to where ``w`` is read from."""
    if not w.axes:
        np.copyto(_view(memory, w), array)
        return
    axes = [np.array(places) for places in w.axes]
    source = _view(memory, dataclasses.replace(w, shape=tuple([1 + int(places.max()) for places in axes])))
    source[np.ix_(*[places[places >= 0] for places in axes])] = array[np.ix_(*[places >= 0 for places in axes])]


def _view(memory: RecordedArrays, w: BufferExtent) -> np.ndarray[Any, Any]:
    return np.ndarray(w.shape, np.dtype(w.dtype), memory[w.buffer], w.offset, w.strides)


def _python(function: Callable[..., None], call: FunctionCall, memory: RecordedArrays) -> Callable[[int, int], None]:
    """``function`` with the arguments of ``call``."""
    return partial(function, *(_pointer(x, kind, memory) for x, kind in zip(call.args, call.params, strict=True)))


def _pointer(arg: RecordedArg, kind: str, memory: RecordedArrays) -> Any:
    if isinstance(arg, int):
        return passed(arg, kind)
    name, offset = arg
    dtype = DTYPES[kind.rstrip("*")]
    whole = memory[name][: memory[name].size // dtype.itemsize * dtype.itemsize]
    return Pointer(whole.view(dtype), offset // dtype.itemsize)


def _native(function: Callable[..., None], call: FunctionCall, memory: RecordedArrays) -> Callable[[int, int], None]:
    """``function`` as machine code, compiled from its source in the script, with its arguments."""
    code = compile_entry(inspect.getsource(function), function.__name__, native_names(), params=call.params, key=None)
    entry = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(code.address)
    table = [x if isinstance(x, int) else memory[x[0]].ctypes.data + x[1] for x in call.args]
    args = (ctypes.c_int64 * len(table))(*table)

    def run(start: int, stop: int, code: Any = code) -> None:  # which keeps the machine code alive
        entry(args, start, stop)

    return run
