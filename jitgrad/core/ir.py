"""The traced program: a straight line of immutable nodes, and how it reads as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jitgrad.core.aval import Aval, Dtype, aval_of_scalar, dtype_name
from jitgrad.core.op import OpDef
from jitgrad.core.origin import Origin


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class Value:
    """A result of a node or an input of a graph; it is its own identity and is named only when printed."""

    aval: Aval


@dataclass(frozen=True, slots=True)
class Literal:
    """A number known while compiling: weakly typed as Python's are, unless it has a dtype.

    ``shape_derived``: it follows from a shape, and is an argument of kernels and not part of their text.
    """

    value: bool | int | float | complex
    dtype: Dtype | None = None
    shape_derived: bool = False

    @property
    def aval(self) -> Aval:
        return aval_of_scalar(self.value) if self.dtype is None else Aval((), self.dtype)

    @property
    def operand(self) -> Any:
        """The number as ops take it: Python's, or NumPy's of its dtype."""
        return self.value if self.dtype is None else self.dtype.type(self.value)

    def __eq__(self, other: object) -> bool:
        # 0.0 and -0.0, 1 and 1.0 and True are different constants; NaN equals itself
        return isinstance(other, Literal) and self.key() == other.key()

    def __hash__(self) -> int:
        return hash(self.value) if self.value == self.value else 0  # NaNs are equal here, and their hashes are not

    def key(self) -> tuple[type, str, str | None, bool]:
        dtype = None if self.dtype is None else self.dtype.str  # np.dtype("f8") == None is true
        return type(self.value), repr(self.value), dtype, self.shape_derived

    def __str__(self) -> str:
        return repr(self.value) if self.dtype is None else f"{dtype_name(self.dtype)}({self.value!r})"


Atom = Value | Literal
Attrs = tuple[tuple[str, Any], ...]


@dataclass(frozen=True, eq=False, slots=True)
class TraceNode:
    """``outs = op(*ins, **attrs)``: one line of a traced program."""

    op: OpDef
    ins: tuple[Atom, ...]
    outs: tuple[Value, ...]
    attrs: Attrs = ()
    origin: Origin = Origin()

    @property
    def out(self) -> Value:
        """The only result."""
        (out,) = self.outs
        return out

    def attr(self, name: str) -> Any:
        return dict(self.attrs)[name]


@dataclass(frozen=True, eq=False, slots=True)
class Graph:
    """``inputs -> outputs`` through ``nodes`` in execution order; every value is defined before it is used."""

    name: str
    inputs: tuple[Value, ...]
    nodes: tuple[TraceNode, ...]
    outputs: tuple[Atom, ...]
    _producers: dict[Atom, TraceNode] | None = field(default=None, init=False, repr=False)  # computed when first needed
    _users: dict[Atom, list[TraceNode]] | None = field(default=None, init=False, repr=False)

    def producer(self, atom: Atom) -> TraceNode | None:
        """The node that computes ``atom``; None for an input or a literal."""
        if self._producers is None:
            object.__setattr__(self, "_producers", {out: node for node in self.nodes for out in node.outs})
        assert self._producers is not None
        return self._producers.get(atom)

    def users(self, value: Value) -> Sequence[TraceNode]:
        """The nodes that read ``value``, in order; a node that reads it twice is listed twice."""
        if self._users is None:
            users: dict[Atom, list[TraceNode]] = {}
            for node in self.nodes:
                for atom in node.ins:
                    if isinstance(atom, Value):
                        users.setdefault(atom, []).append(node)
            object.__setattr__(self, "_users", users)
        assert self._users is not None
        return self._users.get(value, ())

    def copied(self, inputs: Iterable[Atom]) -> tuple[list[TraceNode], list[Atom]]:
        """The nodes with ``inputs`` in place of its own and with new results, and the outputs; attributes are shared."""
        new: dict[Atom, Atom] = dict(zip(self.inputs, inputs, strict=True))
        nodes = []
        for node in self.nodes:
            outs = tuple([Value(out.aval) for out in node.outs])
            nodes.append(TraceNode(node.op, tuple([new.get(a, a) for a in node.ins]), outs, node.attrs, node.origin))
            new.update(zip(node.outs, outs, strict=True))
        return nodes, [new.get(atom, atom) for atom in self.outputs]

    def __str__(self) -> str:
        return format_graph(self)


def exact(value: Any) -> Any:
    """A key for an attribute: equal only for what a kernel may not tell apart (0.0 and -0.0, 1 and True differ)."""
    kind = type(value)
    if kind is tuple:
        return tuple([exact(x) for x in value])
    if kind in (int, str):
        return kind, value
    if kind in (float, bool, complex) or isinstance(value, np.generic):
        return kind, repr(value)
    return value


class Names:
    """Numbers for values, given in the order in which they are first asked for."""

    def __init__(self) -> None:
        self._numbers: dict[Value, int] = {}

    def __call__(self, atom: Atom) -> str:
        if isinstance(atom, Literal):
            return str(atom)
        return f"%{self._numbers.setdefault(atom, len(self._numbers))}"


def format_attr(value: Any) -> str:
    if isinstance(value, Graph):
        return value.name
    return getattr(value, "name", None) or repr(value)


def format_node(node: TraceNode, names: Names, origins: bool = True) -> str:
    """One line: ``%2: f32[8] = add(%0, %1)  # file.py:3``."""
    operands = [names(a) for a in node.ins]
    attrs = [f"{k}={format_attr(v)}" for k, v in node.attrs if k not in ("body", "group")]
    left = ", ".join(f"{names(v)}: {v.aval}" for v in node.outs)
    line = f"{left} = {node.op}({', '.join(operands + attrs)})"
    return f"{line}  # {node.origin}" if origins and node.origin.line else line


def line_of(value: Any, graph: Graph, form: str) -> str:
    """The line of ``graph``'s text that computes ``value``, put into ``form``; "" if none does."""
    names = Names()
    for v in graph.inputs:
        names(v)
    lines = [(node, format_node(node, names)) for node in graph.nodes]
    return next((form.format(text) for node, text in reversed(lines) if any(out is value for out in node.outs)), "")


def _lines(graph: Graph, origins: bool, indent: str, mark: TraceNode | None) -> Iterator[str]:
    names = Names()
    inputs = ", ".join(f"{names(v)}: {v.aval}" for v in graph.inputs)
    yield f"{indent}graph {graph.name}({inputs}) {{"
    for node in graph.nodes:
        prefix = "> " if node is mark else "  "
        yield f"{indent}{prefix}{format_node(node, names, origins)}"
        body = dict(node.attrs).get("body")
        body = getattr(body, "graph", body)  # of a loop
        if isinstance(body, Graph):
            yield from _lines(body, origins, indent + "    ", mark)
    yield f"{indent}  return {', '.join(names(a) for a in graph.outputs)}"
    yield f"{indent}}}"


def format_graph(graph: Graph, *, origins: bool = True, mark: TraceNode | None = None) -> str:
    """The program as text; ``mark`` puts ``>`` before one node."""
    return "\n".join(_lines(graph, origins, "", mark))


def evaluate(
    graph: Graph, arguments: tuple[Any, ...], apply: Callable[[OpDef, tuple[Any, ...], Mapping[str, Any]], Any]
) -> tuple[Any, ...]:
    """Run ``graph`` node by node with ``apply(op, operands, attrs)``, dropping each result after its last use."""
    last_use: dict[Atom, int] = {}
    for k, node in enumerate(graph.nodes):
        for atom in (*node.ins, *node.outs):
            last_use[atom] = k
    for atom in graph.outputs:
        last_use[atom] = len(graph.nodes)
    results: dict[Atom, Any] = dict(zip(graph.inputs, arguments, strict=True))

    def read(atom: Atom) -> Any:
        if isinstance(atom, Value):
            return results[atom]
        return atom.operand

    for k, node in enumerate(graph.nodes):
        result = apply(node.op, tuple(map(read, node.ins)), dict(node.attrs))
        results.update(zip(node.outs, result if node.op.multiple else (result,), strict=True))
        for atom in (*node.ins, *node.outs):
            if last_use[atom] == k:
                results.pop(atom, None)
    return tuple(map(read, graph.outputs))
