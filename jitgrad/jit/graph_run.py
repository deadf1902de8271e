"""Runs a graph op by op, with every rounding replaced by a random one that is several times as large.

The distance between such runs and an undisturbed one shows how far rounding can move each result of
any correct evaluation: cancellation, long sums and decisions near a tie need no rules of their own
(D. S. Parker, "Monte Carlo Arithmetic", UCLA 1997).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jitgrad.core.ir import Atom, Graph, TraceNode, Value
from jitgrad.core.op import Kind
from jitgrad.jit.disturbed_run import Disturbance, PartialDisturbance, run_disturbed
from jitgrad.runtime.library.registry import find_kernel


class GraphRun:
    """Runs ``graph`` on ``inputs`` as often as wanted; results are dropped after their last use."""

    def __init__(self, graph: Graph, inputs: Sequence[Any]) -> None:
        self.graph = graph
        self.inputs: tuple[Any, ...] = tuple(inputs)
        last: dict[Atom, int] = {}
        for k, node in enumerate(graph.nodes):
            last.update(dict.fromkeys((*node.ins, *node.outs), k))
        for atom in graph.outputs:
            last.pop(atom, None)
        self._drops: list[list[Atom]] = [[] for _ in graph.nodes]
        for atom, k in last.items():
            self._drops[k].append(atom)
        self._attrs = [dict(node.attrs) for node in graph.nodes]
        self._library = [_library_function(node, attrs) for node, attrs in zip(graph.nodes, self._attrs, strict=True)]

    def __call__(self, disturbance: Disturbance | PartialDisturbance | None) -> list[Any]:
        """The outputs; without a disturbance those of eager execution."""
        results: dict[Atom, Any] = dict(zip(self.graph.inputs, self.inputs, strict=True))

        def read(atom: Atom) -> Any:
            if isinstance(atom, Value):
                return results[atom]
            return atom.operand

        steps = zip(self.graph.nodes, self._attrs, self._library, self._drops, strict=True)
        for node, attrs, library, drops in steps:
            arrays = [read(a) for a in node.ins]
            if library is not None:
                result = library(*arrays, **attrs)
            elif disturbance is None:
                result = run_disturbed(node, arrays, attrs, None)
            else:
                result = disturbance.run(node, arrays, attrs)
            results.update(zip(node.outs, result if node.op.multiple else (result,), strict=True))
            for atom in drops:
                results.pop(atom, None)
        return [np.asarray(read(atom)) for atom in self.graph.outputs]


def _library_function(node: TraceNode, attrs: Mapping[str, Any]) -> Callable[..., Any] | None:
    """Machine code with the same bits for an op that is not disturbed: movement, sums in a fixed order."""
    if node.op.kind is not Kind.OPAQUE or node.op.contraction:
        return None
    return find_kernel(node.op, [atom.aval for atom in node.ins], attrs)
