"""Recorded ops as text and as Graphviz."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from jitgrad.autograd.reachable import reachable_nodes
from jitgrad.core.aval import Aval
from jitgrad.core.errors import AutogradError
from jitgrad.core.ir import format_attr
from jitgrad.core.origin import Origin
from jitgrad.core.tape_node import Edge, Node, edge_of
from jitgrad.core.tensor import Tensor


@dataclass(frozen=True, slots=True)
class PrintedOperand:
    """An operand of a recorded op: result ``index`` of the entry ``source``, leaf number
    ``source``, or a constant."""

    kind: str
    source: int
    index: int
    aval: Aval | None

    def __str__(self) -> str:
        if self.kind == "result":
            return f"%{self.source}" + (f".{self.index}" if self.index else "")
        return f"leaf{self.source}" if self.kind == "leaf" else str(self.aval or "number")


@dataclass(frozen=True, slots=True)
class Entry:
    """One recorded op, without references that would keep the graph alive."""

    number: int
    op: str
    operands: tuple[PrintedOperand, ...]
    attrs: tuple[tuple[str, Any], ...]
    outs: tuple[Aval, ...]
    origin: Origin

    def __str__(self) -> str:
        listed = [*map(str, self.operands), *(f"{k}={format_attr(v)}" for k, v in self.attrs)]
        line = f"%{self.number}: {', '.join(map(str, self.outs))} = {self.op}({', '.join(listed)})"
        return f"{line}  # {self.origin}" if self.origin.line else line


class Listing:
    """Lists nodes as entries, and numbers entries and leaves in order of appearance."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.leaves: list[Tensor] = []  # strong references, so that no id is reused
        self._leaf_numbers: dict[int, int] = {}
        self._numbers: dict[int, int] = {}  # by the sequence number of the node

    def add(self, node: Node, operands: Iterable[Any]) -> None:
        """Append the entry of ``node``; ``operands`` are Tensors, Avals and numbers."""
        edges = node.edges or ()
        described = tuple(self._operand(x, edge) for x, edge in zip(operands, edges, strict=True))
        number = self._numbers[node.sequence] = len(self.entries)
        attrs = tuple((k, v) for k, v in node.attrs.items() if k not in ("body", "graph"))
        self.entries.append(Entry(number, node.op.name, described, attrs, node.out_avals, node.origin))

    def knows(self, edge: Edge) -> bool:
        """Whether the result or leaf at ``edge`` is listed."""
        if isinstance(edge, Tensor):
            return id(edge) in self._leaf_numbers
        return edge is not None and edge[0].sequence in self._numbers

    def _operand(self, x: Any, edge: Edge) -> PrintedOperand:
        aval = x if isinstance(x, Aval) else getattr(x, "aval", None)
        if isinstance(edge, Tensor):
            number = self._leaf_numbers.setdefault(id(edge), len(self.leaves))
            if number == len(self.leaves):
                self.leaves.append(edge)
            return PrintedOperand("leaf", number, 0, aval)
        if edge is None or edge[0].sequence not in self._numbers:
            return PrintedOperand("constant", 0, 0, aval)
        return PrintedOperand("result", self._numbers[edge[0].sequence], edge[1], aval)

    def text(self) -> str:
        """One line per leaf and per entry."""
        lines = [f"leaf{k}: {leaf.aval}" for k, leaf in enumerate(self.leaves)]
        return "\n".join(lines + [str(entry) for entry in self.entries])

    def dot(self, name: str) -> str:
        """The graph in the language of Graphviz: boxes for ops, ellipses for leaves."""
        lines = [f"digraph {name} {{", "  node [shape=box];"]
        lines += [f'  leaf{k} [shape=ellipse, label="leaf{k}\\n{leaf.aval}"];' for k, leaf in enumerate(self.leaves)]
        for entry in self.entries:
            label = "\\n".join([entry.op, ", ".join(map(str, entry.outs)), str(entry.origin)]).replace('"', "'")
            lines.append(f'  n{entry.number} [label="{label}"];')
            for x in entry.operands:
                if x.kind != "constant":
                    source = f"n{x.source}" if x.kind == "result" else f"leaf{x.source}"
                    lines.append(f'  {source} -> n{entry.number} [label="{x.aval}"];')
        return "\n".join([*lines, "}"])


def format_history(loss: Tensor) -> str:
    """The ops that computed ``loss``, in execution order: one line each, with the user's line.

    Raises:
        AutogradError: ``loss`` has no history.
        GraphFreedError: backward freed it.
    """
    if loss.grad_fn is None:
        raise AutogradError(
            f"print_graph: this tensor {loss.aval} has no history: it is a leaf or does not require grad"
        )
    listing = Listing()
    for node in reachable_nodes([edge_of(loss)], 0):
        listing.add(node, [aval if type(x) is tuple else x for x, aval in zip(node.saved, node.avals, strict=True)])
    return f"{listing.text()}\nreturn %{len(listing.entries) - 1}" + (f".{loss._out_index}" if loss._out_index else "")


def print_graph(loss: Tensor, write: Callable[[str], object] = print) -> None:
    """Print the ops that computed ``loss``; see :func:`format_history`."""
    write(format_history(loss))
