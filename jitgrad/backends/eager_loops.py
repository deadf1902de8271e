"""Compiles the loops of `jitgrad.eager.loops`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from jitgrad.backends.codegen.scalar import Arg, render
from jitgrad.backends.codegen.source import unmarked
from jitgrad.backends.codegen.statements import as_stored, as_value
from jitgrad.backends.eager_stages import argument, compile_blocks, needs_numpy
from jitgrad.backends.llvm.code_object import CodeObject, compile_entry
from jitgrad.backends.llvm.library_names import library_key, numpy_rounding_names
from jitgrad.backends.llvm.ufunc import make_ufunc
from jitgrad.compiler.passes.cleanup import eliminate_dead
from jitgrad.compiler.tracer import Trace
from jitgrad.core import config
from jitgrad.core.aval import Aval, dtype_name
from jitgrad.core.context import creating_on, recording_in
from jitgrad.core.ir import Graph
from jitgrad.eager.loops import Loop, make_loops_by


class _Names(Mapping[str, Any]):
    """`numpy_rounding_names`, made when they are first read: never for code from disk."""

    def __getitem__(self, key: str) -> Any:
        return numpy_rounding_names()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(numpy_rounding_names())

    def __len__(self) -> int:
        return len(numpy_rounding_names())


LOOP_NAMES = _Names()


def compile_loop(loop: Loop) -> np.ufunc | None:
    """The ufunc of ``loop``; None where eager execution is not to compile."""
    if config.read("JITGRAD_BACKEND") != "cpu" or config.read("JITGRAD_DISABLE"):
        return None
    graph = _traced(loop)
    dtypes = [*loop.dtypes, graph.outputs[0].aval.dtype]
    if needs_numpy(graph):
        return compile_blocks(loop.name, graph, dtypes, _compiled)
    pointers = [f"{dtype_name(d)}*" for d in dtypes]
    usual = _compiled(kernel_text(graph, loop.numbers, strided=False), pointers)
    strided = _compiled(kernel_text(graph, loop.numbers, strided=True), [*pointers, *["i64"] * len(dtypes)])
    steps = [0 if number else d.itemsize for number, d in zip((*loop.numbers, False), dtypes, strict=True)]
    return make_ufunc(loop.name, usual, strided, dtypes, steps)


def _traced(loop: Loop) -> Graph:
    trace = Trace(loop.name)
    with recording_in(trace), creating_on(None):
        out = loop.function(*[trace.argument(k, Aval((), d)) for k, d in enumerate(loop.dtypes)])
        return eliminate_dead(trace.graph((trace.current(out),)))


def kernel_text(graph: Graph, numbers: Sequence[bool], *, strided: bool) -> str:
    """The loop over all elements, ``s0, s1, ...`` of them apart if ``strided``.

    For ``gelu`` in f32 on contiguous arrays it writes::

        def kernel(x0, y0, start, stop):
            for i in range(start, stop):
                a0 = x0[i]
                t0 = ((to_f32(0.5) * a0) * (to_f32(1.0) + erf((a0 * to_f32(0.7071067811865476)))))
                y0[i] = t0
    """
    count = len(graph.inputs)
    steps = [f"s{k}" for k in range(count + 1)] if strided else []
    parameters = ", ".join([*[f"x{k}" for k in range(count)], "y0", *steps, "start", "stop"])
    before: list[str] = []
    inside: list[str] = []
    args: dict[Any, Arg] = {}
    for k, x in enumerate(graph.inputs):
        first = numbers[k] and not strided
        place = "0" if first else f"i * s{k}" if strided else "i"
        (before if first else inside).append(f"a{k} = {as_value(f'x{k}[{place}]', x.aval.dtype)}")
        args[x] = f"a{k}", x.aval.dtype
    for k, node in enumerate(graph.nodes):
        inside.append(f"t{k} = {unmarked(render(node, [argument(x, args) for x in node.ins]))}")
        args[node.out] = f"t{k}", node.out.aval.dtype
    result, dtype = args[graph.outputs[0]]
    inside.append(f"y0[{f'i * s{count}' if strided else 'i'}] = {as_stored(str(result), dtype)}")
    head = [f"def kernel({parameters}):", *[f"    {line}" for line in before], "    for i in range(start, stop):"]
    return "\n".join([*head, *[f"        {line}" for line in inside], ""])


def _compiled(source: str, params: Sequence[str]) -> CodeObject:
    """Compiled while the caller goes on."""
    return compile_entry(source, "kernel", LOOP_NAMES, params=params, key=f"NumPy's rounding {library_key()}", wait=False)


make_loops_by(compile_loop)
