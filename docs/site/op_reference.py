"""A directive for Sphinx, ``op-reference``: one table of all ops, read from the registry when the pages are built.

    :::{op-reference} elementwise
    :::

The argument is a kind of ops. Names that users call are found by the functions that they stand for.
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import jitgrad as jg
import jitgrad.nn.functional
from jitgrad.core.aval import Aval
from jitgrad.core.errors import JitgradError
from jitgrad.core.op import REGISTRY, Kind, OpDef

NAMESPACES = (
    ("jg", jg),
    ("np", jg.numpy),
    ("np.linalg", jg.numpy.linalg),
    ("F", jg.nn.functional),
    ("special", jg.scipy.special),
)
SAMPLES = ("float32", "float64", "int64", "bool")
SHORT = {"float16": "f16", "float32": "f32", "float64": "f64", "int64": "i64", "int32": "i32", "int8": "i8"}
RUNS = {
    Kind.ELEMENTWISE: "in kernels, with its neighbours",
    Kind.REDUCE: "in kernels, with what feeds and what follows it",
    Kind.MOVEMENT: "in kernels, as an index of the loads",
    Kind.INDEX: "in kernels, as the loop's index",
    Kind.OPAQUE: "a call between kernels",
}


def public_functions() -> dict[str, dict[str, list[str]]]:
    """{function's own name: {namespace: names}} of all public functions."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for prefix, module in NAMESPACES:
        listed = getattr(module, "__all__", None) or [name for name in vars(module) if name[0] != "_"]
        for name in listed:
            value = inspect.unwrap(getattr(module, name))
            if inspect.isfunction(value) and value.__module__.startswith("jitgrad"):
                found[value.__name__][prefix].append(name)
    return found


def callers(op: OpDef, functions: dict[str, dict[str, list[str]]]) -> str:
    """The public names of ``op``, as ``jg.asin arcsin, np.asin arcsin``; "" for one that only other functions use."""
    own = functions.get(op.name, {})
    return ", ".join(f"{prefix}.{' '.join(names)}" for prefix, names in own.items())


def dtypes(op: OpDef) -> str:
    """The dtype of the result for operands of each sample dtype: ``f32→f32, i64→f64``."""
    shown = []
    for name in SAMPLES if op.kind in (Kind.ELEMENTWISE, Kind.REDUCE, Kind.MOVEMENT) else ():
        avals = [Aval((), np.dtype(name)) for _ in op.operands]
        try:
            result = op.dtypes(avals, **op.sample_attrs)[1].name
        except (JitgradError, TypeError, KeyError):
            continue
        shown.append(f"{SHORT.get(name, name)}→{SHORT.get(result, result)}")
    return ", ".join(shown)


def call_of(op: OpDef) -> str:
    """``name(x, y, *, attr)``, as the op is recorded in a graph."""
    operands = [*op.operands[:-1], f"*{op.operands[-1]}"] if op.variadic else [*op.operands]
    return f"{op.name}({', '.join([*operands, *(['*', *op.attrs] if op.attrs else [])])})"


def rows(kind: Kind) -> Iterator[tuple[str, ...]]:
    """The table's rows: call, names, dtypes, gradient, formula."""
    functions = public_functions()
    for op in sorted(REGISTRY.values(), key=lambda op: op.name):
        if op.kind is kind:
            formula = op.scalar if op.scalar and len(op.scalar) <= 60 else ""
            gradient = "yes" if op.vjp is not None else "no"
            yield call_of(op), callers(op, functions), dtypes(op), gradient, formula


def table_of(titles: tuple[str, ...], lines: list[tuple[str, ...]], literal: Callable[[int], bool]) -> nodes.table:
    """A docutils table without the columns that are empty in every row."""
    kept = [k for k in range(len(titles)) if any(line[k] for line in lines)]
    group = nodes.tgroup(cols=len(kept))
    group += [nodes.colspec(colwidth=1) for _ in kept]
    head, body = nodes.thead(), nodes.tbody()
    head += row_of([nodes.Text(titles[k]) for k in kept])
    for line in lines:
        body += row_of([nodes.literal(text=line[k]) if literal(k) and line[k] else nodes.Text(line[k]) for k in kept])
    group += [head, body]
    table = nodes.table()
    table += group
    return table


def row_of(cells: list[Any]) -> nodes.row:
    row = nodes.row()
    row += [nodes.entry("", nodes.paragraph("", "", cell)) for cell in cells]
    return row


class OpReference(SphinxDirective):
    """The table of one kind of ops."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        kind = Kind(self.arguments[0])
        lines = list(rows(kind))
        text = f"{len(lines)} ops. They run {RUNS[kind]}."
        titles = ("op", "names", "dtypes", "gradient", "formula")
        return [nodes.paragraph(text=text), table_of(titles, lines, lambda k: k in (0, 1, 4))]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("op-reference", OpReference)
    return {"parallel_read_safe": True}
