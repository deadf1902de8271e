"""Compiles the programs of `jitgrad.eager.row_programs`.

A driver goes over blocks of rows that fit in the first-level cache. Within a block, a stage is a kernel for what each row
has once and one for the elements, then NumPy's loops of ``exp`` and its like, and the reductions, on which the next stage
depends.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from jitgrad.backends.array_call import MOST_ARRAYS, bind_arrays, can_bind_arrays
from jitgrad.backends.codegen.scalar import Arg, render
from jitgrad.backends.codegen.source import unmarked
from jitgrad.backends.codegen.statements import as_stored, as_value, fold_statement, initial
from jitgrad.backends.driver_code import DriverCode
from jitgrad.backends.eager_loops import LOOP_NAMES
from jitgrad.backends.llvm.code_object import CodeObject, compile_control_code, compile_entry
from jitgrad.backends.llvm.library_names import library_key
from jitgrad.backends.llvm.pairwise_sum import compile_row_sums
from jitgrad.backends.llvm.ufunc import numpy_loop
from jitgrad.core import config
from jitgrad.core.aval import Aval, Dtype, dtype_name
from jitgrad.core.ir import TraceNode, Value
from jitgrad.core.monoid import SUM_MONOID
from jitgrad.core.op import Kind
from jitgrad.eager.loops import NUMPY_LOOPS
from jitgrad.eager.row_programs import (
    RowBinder,
    RowCall,
    RowProgram,
    RowScope,
    RowStep,
    RowValue,
    make_row_kernels_by,
)

_BLOCK = 1024  # elements: a few buffers of them fit in the first-level cache
_WORDS = 64  # of the driver's tables, before the buffers
_NAMES = {RowScope.ELEMENT: "x", RowScope.ROW: "r", RowScope.COLUMN: "c", RowScope.NUMBER: "n"}


@dataclass(slots=True)
class _Stage:
    """Steps by what they have a result for, sums over rows among those of elements, and the calls after them."""

    rows: list[RowStep] = field(default_factory=list)
    elements: list[RowStep] = field(default_factory=list)
    calls: list[RowStep] = field(default_factory=list)


def _stages(program: RowProgram) -> list[_Stage]:
    """The steps of ``program``: what the calls of a stage compute is there for later stages."""
    level = dict.fromkeys(range(program.inputs), 0)
    stages = [_Stage()]
    for step in program.steps:
        at = max(level[k] for k in step.operands)
        scope = program.values[step.out].scope
        if scope is not RowScope.COLUMN and (step.op.kind is Kind.REDUCE or step.op.name in NUMPY_LOOPS):
            stages[at].calls.append(step)
            at += 1
            if at == len(stages):
                stages.append(_Stage())
        else:
            (stages[at].rows if scope is RowScope.ROW else stages[at].elements).append(step)
        level[step.out] = at
    return stages


class _Driver:
    """The text of a driver under construction: where values lie, and the code that it calls."""

    def __init__(self, program: RowProgram) -> None:
        self.program = program
        self.places: dict[int, str] = {}
        self.buffers: dict[RowScope, int] = {RowScope.ELEMENT: 0, RowScope.ROW: 0}
        self.code: DriverCode = DriverCode()
        self.lines: list[str] = []
        self.first: list[str] = []  # lines that run before the first block
        # arrays of a call: operands, results, then numbers
        order = [*range(program.inputs), *program.outputs]
        self.arrays = {k: j for j, k in enumerate(order)}
        self.numbers = program.numbers
        for k in order:
            self._locate(k)

    def _locate(self, k: int) -> None:
        """Name the place of value ``k``, an operand or a result, in a block."""
        scope, dtype = self.program.values[k]
        step = {RowScope.ELEMENT: f" + first * n * {dtype.itemsize}", RowScope.ROW: f" + first * {dtype.itemsize}"}.get(scope, "")
        self.places[k] = f"{_NAMES[scope]}{k}"
        self.lines.append(f"{self.places[k]} = arrays[ARRAY{k}]{step}")

    def place(self, k: int) -> str:
        """The place of value ``k``; a new buffer if it has none."""
        if k not in self.places:
            scope = self.program.values[k].scope
            j = self.buffers[scope]
            self.buffers[scope] += 1
            base = f"scratch + {_WORDS * 8}"
            elements = f"{base} + {j} * size" if scope is RowScope.ELEMENT else f"{base} + ELEMENTS * size + {j * _BLOCK * 8}"
            self.places[k] = f"({elements})"
        return self.places[k]


def compile_rows(program: RowProgram) -> RowBinder | None:
    """How to call ``program``; None where eager execution is not to compile, or NumPy's loops are not found."""
    if config.read("JITGRAD_BACKEND") != "cpu" or config.read("JITGRAD_DISABLE"):
        return None
    driver = _Driver(program)
    if len(driver.arrays) > MOST_ARRAYS or not can_bind_arrays():
        return None
    stages = _stages(program)
    for k, stage in enumerate(stages):
        later = [step for s in stages[k + 1 :] for step in (*s.rows, *s.elements, *s.calls)]
        read = {x for step in (*later, *stage.calls) for x in step.operands} | {*program.outputs}
        if not _add_stage(driver, stage, read):
            return None
    code = compile_control_code(_driver_text(driver), "loop", "thread_pool")
    return _binding(driver, code)


def _driver_text(driver: _Driver) -> str:
    """The driver of softmax in f32, shortened, is::

        def loop(arrays, code, scratch, rows, n, start, stop):
            size = max(n, 1024) * 8
            block = max(1024 // n, 1)
            for k in range(0, (rows + block - 1) // block):
                first = k * block
                count = min(rows - first, block)
                x0 = arrays[0] + first * n * 4
                ...
                scratch[0] = x0
                scratch[1] = (scratch + 512 + 2 * size + 0)
                scratch[2] = n
                call_kernel(code[0], scratch, 0, count)     # the largest element of each row
                ...
    """
    head = [
        "def loop(arrays, code, scratch, rows, n, start, stop):",
        f"    size = max(n, {_BLOCK}) * 8",
        f"    block = max({_BLOCK} // n, 1)",
        *[f"    {line}" for line in driver.first],
        "    for k in range(0, (rows + block - 1) // block):",
        "        first = k * block",
        "        count = min(rows - first, block)",
    ]
    text = "\n".join([*head, *[f"        {line}" for line in driver.lines], ""])
    text = text.replace("ELEMENTS", str(driver.buffers[RowScope.ELEMENT]))
    operands = driver.program.inputs - driver.numbers
    results = len(driver.program.outputs)
    for k, j in driver.arrays.items():
        place = j + results if operands <= j < driver.program.inputs else j - driver.numbers if j >= operands else j
        text = text.replace(f"[ARRAY{k}]", f"[{place}]")
    return text


def _binding(driver: _Driver, code: CodeObject) -> RowBinder:
    table = (ctypes.c_int64 * max(len(driver.code.table), 1))(*driver.code.table)
    elements, rows = driver.buffers[RowScope.ELEMENT], driver.buffers[RowScope.ROW]
    arrays = len(driver.arrays) - driver.numbers
    alive = driver.code.alive

    def bind(count: int, columns: int, numbers: Sequence[np.ndarray[Any, Any]]) -> RowCall:
        scratch = (_WORDS + elements * max(columns, _BLOCK) + rows * _BLOCK) * 8
        return bind_arrays(code, table, (count, columns), scratch, arrays, numbers, alive)

    return bind


def _add_stage(driver: _Driver, stage: _Stage, read: set[int]) -> bool:
    """Write the calls of ``stage``, whose results in ``read`` are stored; False if one of them cannot be made."""
    values = driver.program.values
    for_elements = {x for step in stage.elements for x in step.operands}
    kept = [step.out for step in stage.rows if step.out in read | for_elements]
    if kept:
        _add_kernel(driver, stage.rows, kept, False)
    kept = [step.out for step in stage.elements if step.out in read]
    if kept:
        _add_kernel(driver, stage.elements, kept, True)
    for step in stage.calls:
        (x,) = step.operands
        source, dtype = values[x]
        if step.op.kind is Kind.REDUCE:
            words = [driver.place(x), driver.place(step.out), "n"]
            driver.lines += driver.code.kernel_call(_reduction(step, dtype), words, "count")
            continue
        loop = numpy_loop(NUMPY_LOOPS[step.op.name], dtype)
        if loop is None:
            return False
        count = "count * n" if source is RowScope.ELEMENT else "count"
        driver.lines += driver.code.numpy_call(loop, driver.place(x), driver.place(step.out), count, dtype.itemsize)
    return True


@cache
def _row_sums(dtype: Dtype) -> CodeObject:
    return compile_row_sums(dtype)


def _reduction(step: RowStep, dtype: Dtype) -> CodeObject:
    """``kernel(x, y, n, start, stop)`` that reduces rows."""
    assert step.op.monoid is not None
    if step.op.monoid is SUM_MONOID:
        return _row_sums(dtype)
    fold = fold_statement(step.op.monoid, dtype, "m", "row[i]")
    text = (
        "def kernel(x, y, n, start, stop):\n    for r in range(start, stop):\n        row = at(x, r * n)\n"
        f"        m = {initial(step.op.monoid, dtype)}\n        for i in range(0, n):\n            m = {fold}\n"
        "        y[r] = m\n"
    )
    pointer = f"{dtype_name(dtype)}*"
    return _compiled(text, [pointer, pointer, "i64"])


def _add_kernel(driver: _Driver, steps: Sequence[RowStep], kept: Sequence[int], elements: bool) -> None:
    """Write the call of the kernel of ``steps``, which stores ``kept``, for rows or for their ``elements``."""
    values = driver.program.values
    own = {step.out for step in steps}
    inputs = [k for k in dict.fromkeys([k for step in steps for k in step.operands]) if k not in own]
    used = {values[k].scope for k in (*inputs, *kept)}
    flat = not elements or not used & {RowScope.ROW, RowScope.COLUMN}
    text = _kernel_text(driver.program, steps, inputs, kept, flat)
    code = _compiled(text, [*[f"{dtype_name(values[k].dtype)}*" for k in (*inputs, *kept)], "i64"])
    words = [*[driver.place(k) for k in (*inputs, *kept)], "n"]
    driver.lines += driver.code.kernel_call(code, words, "count * n" if flat and elements else "count")
    for k in kept:
        if values[k].scope is RowScope.COLUMN:
            zeros = _compiled(_zeros_text(values[k].dtype), [f"{dtype_name(values[k].dtype)}*"])
            driver.first += driver.code.kernel_call(zeros, [f"arrays[ARRAY{k}]"], "n")


def _zeros_text(dtype: Dtype) -> str:
    return f"def kernel(y, start, stop):\n    for i in range(start, stop):\n        y[i] = to_{dtype_name(dtype)}(0.0)\n"


def _kernel_text(
    program: RowProgram, steps: Sequence[RowStep], inputs: Sequence[int], kept: Sequence[int], flat: bool
) -> str:
    """The kernel of ``steps``, over rows and their elements, or ``flat`` over either.

    For the division at the end of a softmax in f32 it writes::

        def kernel(p0, p1, p2, n, start, stop):
            for r in range(start, stop):
                a1 = p1[r]
                q0 = at(p0, r * n)
                q2 = at(p2, r * n)
                for i in range(0, n):
                    a0 = q0[i]
                    t2 = (a0 / a1)
                    q2[i] = t2
    """
    values = program.values
    text = _KernelText(flat)
    for j, k in enumerate(inputs):
        text.read(j, k, values[k])
    outputs = {k: len(inputs) + j for j, k in enumerate(kept)}
    nodes = [Value(Aval((), v.dtype)) for v in values]
    for step in steps:
        scope, dtype = values[step.out]
        if scope is RowScope.COLUMN:
            place = f"p{outputs[step.out]}[i]"
            text.inside.append(f"{place} = {place} + {text.args[step.operands[0]][0]}")
            continue
        node = TraceNode(step.op, tuple([nodes[k] for k in step.operands]), (nodes[step.out],))
        text.inside.append(f"t{step.out} = {unmarked(render(node, [text.args[k] for k in step.operands]))}")
        text.args[step.out] = f"t{step.out}", dtype
    for k, j in outputs.items():
        if values[k].scope is not RowScope.COLUMN:
            text.inside.append(f"{text.place(j)} = {as_stored(str(text.args[k][0]), values[k].dtype)}")
    return text.function(", ".join([*[f"p{j}" for j in range(len(inputs) + len(kept))], "n", "start", "stop"]))


class _KernelText:
    """The text of a kernel under construction: before its loops, in that over rows, and in the innermost one."""

    def __init__(self, flat: bool) -> None:
        self.flat = flat
        self.before: list[str] = []
        self.of_row: list[str] = []
        self.inside: list[str] = []
        self.args: dict[int, Arg] = {}

    def place(self, j: int) -> str:
        """Parameter ``j`` at the element of the innermost loop."""
        if self.flat:
            return f"p{j}[r]"
        self.of_row.append(f"q{j} = at(p{j}, r * n)")
        return f"q{j}[i]"

    def read(self, j: int, k: int, value: RowValue) -> None:
        """Read value ``k``, which is parameter ``j``, where it changes."""
        if value.scope is RowScope.NUMBER:
            place, lines = f"p{j}[0]", self.before
        elif value.scope is RowScope.COLUMN:
            place, lines = f"p{j}[i]", self.inside
        elif value.scope is RowScope.ROW:
            place, lines = f"p{j}[r]", self.inside if self.flat else self.of_row
        else:
            place, lines = self.place(j), self.inside
        lines.append(f"a{k} = {as_value(place, value.dtype)}")
        self.args[k] = f"a{k}", value.dtype

    def function(self, parameters: str) -> str:
        """The loop over rows and, unless flat, that over elements."""
        head = [f"def kernel({parameters}):", *[f"    {line}" for line in self.before], "    for r in range(start, stop):"]
        if self.flat:
            return "\n".join([*head, *[f"        {line}" for line in self.inside], ""])
        inner = [f"            {line}" for line in self.inside]
        return "\n".join([*head, *[f"        {line}" for line in self.of_row], "        for i in range(0, n):", *inner, ""])


def _compiled(source: str, params: Sequence[str]) -> CodeObject:
    """Compiled while the caller goes on."""
    key = f"NumPy's rounding {library_key()}"
    return compile_entry(source, "kernel", LOOP_NAMES, params=params, key=key, wait=False)


make_row_kernels_by(compile_rows)
