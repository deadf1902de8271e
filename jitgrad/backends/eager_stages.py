"""Loops of which NumPy computes a part: machine code that calls the loops of NumPy's own ``exp`` and ``log1p`` on blocks.

NumPy's ``exp`` has other bits than that of kernels. A loop with it goes block by block: a kernel up to the first such call,
NumPy's loop on the block, a kernel up to the next, all in the first-level cache.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jitgrad.backends.codegen.scalar import Arg, render
from jitgrad.backends.codegen.source import unmarked
from jitgrad.backends.codegen.statements import as_stored, as_value
from jitgrad.backends.driver_code import DriverCode
from jitgrad.backends.llvm.code_object import CodeObject, compile_control_code
from jitgrad.backends.llvm.ufunc import block_ufunc, numpy_loop
from jitgrad.core.aval import Dtype, dtype_name
from jitgrad.core.ir import Atom, Graph, Literal, TraceNode, Value
from jitgrad.eager.loops import NUMPY_LOOPS

_BLOCK = 1024  # elements: a few buffers of them fit in the first-level cache
_WORDS = 24  # of the driver's tables, before the buffers

# Compiles the text of a kernel with parameters of these types.
KernelCompiler = Callable[[str, Sequence[str]], CodeObject]


def needs_numpy(graph: Graph) -> bool:
    """Whether NumPy computes a part of ``graph`` in eager execution."""
    return any(node.op.name in NUMPY_LOOPS for node in graph.nodes)


@dataclass(slots=True)
class _Stage:
    """What is computed between NumPy's functions, and those that come after it."""

    nodes: list[TraceNode] = field(default_factory=list)
    calls: list[TraceNode] = field(default_factory=list)


def _stages(graph: Graph) -> list[_Stage]:
    """The nodes of ``graph``: NumPy's functions of stage k take what stages up to k compute."""
    level: dict[Atom, int] = dict.fromkeys(graph.inputs, 0)
    stages = [_Stage()]
    for node in graph.nodes:
        at = max([level[x] for x in node.ins if not isinstance(x, Literal)], default=0)
        if node.op.name in NUMPY_LOOPS:
            stages[at].calls.append(node)
            at += 1
            if at == len(stages):
                stages.append(_Stage())
        else:
            stages[at].nodes.append(node)
        level[node.out] = at
    return stages


class _Places:
    """Where values lie in a block: an operand, a buffer, or the result; and the code that the driver calls."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.text: dict[Atom, str] = {x: f"x{k}" for k, x in enumerate(graph.inputs)}
        self.buffers = 0
        self.code: DriverCode = DriverCode()

    def buffer(self) -> str:
        """The address of a new buffer."""
        self.buffers += 1
        return f"scratch + {_WORDS * 8 + (self.buffers - 1) * _BLOCK * 8}"

    def of(self, x: Value) -> str:
        """The place of ``x``, a new buffer if it has none."""
        if x not in self.text:
            self.text[x] = "y" if x is self.graph.outputs[0] else self.buffer()
        return self.text[x]


def compile_blocks(name: str, graph: Graph, dtypes: Sequence[Dtype], kernel: KernelCompiler) -> np.ufunc | None:
    """The ufunc of ``graph`` on operands of ``dtypes``, the last of which is the result's; None if there is no way to it.

    The driver of ``1 / (1 + exp(-x))`` in f32 is::

        def loop(args, dims, steps, code, scratch, start, stop):
            for k in range(0, (dims[0] + 1023) // 1024):
                begin = k * 1024
                count = min(dims[0] - begin, 1024)
                x0 = args[0] + begin * steps[0]
                if steps[0] != 4:
                    ...                                # copied to a buffer
                y = args[1] + begin * steps[1]
                ...
                scratch[0] = x0
                scratch[1] = scratch + 192
                call_kernel(code[1], scratch, 0, count)
                ...                                    # NumPy's loop of exp, from one buffer to another
                call_kernel(code[4], scratch, 0, count)
    """
    if sys.platform == "win32":  # where large buffers on the stack need care
        return None
    places = _Places(graph)
    lines = _operand_lines(places, dtypes, kernel)
    for lines_of_stage in _stage_lines(places, kernel):
        if lines_of_stage is None:
            return None
        lines += lines_of_stage
    lines += _result_lines(places, dtypes[-1], len(graph.inputs), kernel)
    text = "\n        ".join([
        f"def loop(args, dims, steps, code, scratch, start, stop):\n    for k in range(0, (dims[0] + {_BLOCK - 1}) // {_BLOCK}):",
        f"begin = k * {_BLOCK}",
        f"count = min(dims[0] - begin, {_BLOCK})",
        *lines,
    ])  # fmt: skip
    driver = compile_control_code(f"{text}\n", "loop", "thread_pool")
    size = _WORDS * 8 + places.buffers * _BLOCK * 8
    return block_ufunc(name, driver, places.code.table, places.code.alive, dtypes, size)


def _stage_lines(places: _Places, kernel: KernelCompiler) -> Iterator[list[str] | None]:
    """The lines of each stage, and of NumPy's functions after it; None for one that cannot be called."""
    outputs = places.graph.outputs
    stages = _stages(places.graph)
    for k, stage in enumerate(stages):
        later = [node for s in stages[k + 1 :] for node in (*s.nodes, *s.calls)]
        read = {x for node in (*stage.calls, *later) for x in node.ins} | {outputs[0]}
        yield _kernel_lines(places, stage, [node.out for node in stage.nodes if node.out in read], kernel)
        for node in stage.calls:
            loop = numpy_loop(NUMPY_LOOPS[node.op.name], node.out.aval.dtype)
            source = node.ins[0]
            if loop is None or isinstance(source, Literal) or source.aval.dtype != node.out.aval.dtype:
                yield None
            else:
                size = node.out.aval.dtype.itemsize
                yield places.code.numpy_call(loop, places.of(source), places.of(node.out), "count", size)


def _operand_lines(places: _Places, dtypes: Sequence[Dtype], kernel: KernelCompiler) -> list[str]:
    """Operands of a block, copied where their elements are apart or one number, and the place of the result."""
    lines = []
    for k in range(len(places.graph.inputs)):
        size = dtypes[k].itemsize
        lines += [f"x{k} = args[{k}] + begin * steps[{k}]", f"if steps[{k}] != {size}:"]
        lines += [f"    {line}" for line in _copy_lines(places, f"x{k}", places.buffer(), dtypes[k], k, kernel)]
    last, size = len(dtypes) - 1, dtypes[-1].itemsize
    lines += [f"y = args[{last}] + begin * steps[{last}]", f"if steps[{last}] != {size}:", f"    y = {places.buffer()}"]
    return lines


def _copy_lines(places: _Places, place: str, buffer: str, dtype: Dtype, k: int, kernel: KernelCompiler) -> list[str]:
    code = kernel(_copy_text("i * s", "i"), _copy_types(dtype))
    words = [place, buffer, f"steps[{k}] // {dtype.itemsize}"]
    return [*places.code.kernel_call(code, words, "count"), f"{place} = {buffer}"]


def _result_lines(places: _Places, dtype: Dtype, k: int, kernel: KernelCompiler) -> list[str]:
    """The result of a block, copied from its buffer where its elements are to be apart."""
    code = kernel(_copy_text("i", "i * s"), _copy_types(dtype))
    words = ["y", f"args[{k}] + begin * steps[{k}]", f"steps[{k}] // {dtype.itemsize}"]
    copy = places.code.kernel_call(code, words, "count")
    return [f"if steps[{k}] != {dtype.itemsize}:", *[f"    {line}" for line in copy]]


def _copy_text(source: str, target: str) -> str:
    return f"def kernel(x, y, s, start, stop):\n    for i in range(start, stop):\n        y[{target}] = x[{source}]\n"


def _copy_types(dtype: Dtype) -> list[str]:
    word = f"u{8 * dtype.itemsize}*"
    return [word, word, "i64"]


def _kernel_lines(places: _Places, stage: _Stage, outputs: Sequence[Value], kernel: KernelCompiler) -> list[str]:
    """The call of the kernel of ``stage``, which stores ``outputs``."""
    if not outputs:
        return []
    own = {node.out for node in stage.nodes}
    inputs = list(dict.fromkeys([x for node in stage.nodes for x in node.ins if isinstance(x, Value) and x not in own]))
    text = _kernel_text(stage.nodes, inputs, outputs)
    code = kernel(text, [f"{dtype_name(x.aval.dtype)}*" for x in (*inputs, *outputs)])
    return places.code.kernel_call(code, [places.of(x) for x in (*inputs, *outputs)], "count")


def _kernel_text(nodes: Sequence[TraceNode], inputs: Sequence[Value], outputs: Sequence[Value]) -> str:
    """A kernel over contiguous arrays, as `jitgrad.backends.eager_loops.kernel_text` with several results."""
    parameters = [*[f"x{k}" for k in range(len(inputs))], *[f"y{k}" for k in range(len(outputs))], "start", "stop"]
    inside: list[str] = []
    args: dict[Any, Arg] = {}
    for k, x in enumerate(inputs):
        inside.append(f"a{k} = {as_value(f'x{k}[i]', x.aval.dtype)}")
        args[x] = f"a{k}", x.aval.dtype
    for k, node in enumerate(nodes):
        inside.append(f"t{k} = {unmarked(render(node, [argument(x, args) for x in node.ins]))}")
        args[node.out] = f"t{k}", node.out.aval.dtype
    for k, x in enumerate(outputs):
        inside.append(f"y{k}[i] = {as_stored(str(args[x][0]), x.aval.dtype)}")
    head = [f"def kernel({', '.join(parameters)}):", "    for i in range(start, stop):"]
    return "\n".join([*head, *[f"        {line}" for line in inside], ""])


def argument(x: Atom, args: Mapping[Any, Arg]) -> Arg:
    """``x`` as an operand of an expression: a number, or the name that ``args`` has for it."""
    if isinstance(x, Literal):
        assert not isinstance(x.value, complex)
        return x.value, x.aval.dtype
    return args[x]
