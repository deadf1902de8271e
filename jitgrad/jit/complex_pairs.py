"""Complex numbers as pairs of real ones, for the first-call check: rounding takes each part its own way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from jitgrad.compiler.passes.decompose_complex import decompose_complex
from jitgrad.core.aval import Aval, real_dtype_of
from jitgrad.core.ir import Graph, TraceNode, Value
from jitgrad.core.op import Kind, OpDef, define


def as_pairs(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A complex array [...] as real numbers [..., 2]; others as they are."""
    if x.dtype.kind != "c":
        return x
    return np.ascontiguousarray(x).reshape(x.shape)[..., None].view(real_dtype_of(x.dtype))


PAIRS: OpDef = define(
    "pairs(x)",
    kind=Kind.OPAQUE,
    eager=as_pairs,
    abstract=lambda avals, _attrs: Aval((*avals[0].shape, 2), real_dtype_of(avals[0].dtype)),
    register=False,
)


def results_as_pairs(graph: Graph) -> Graph:
    """``graph`` computed by parts, as kernels do, with pairs for complex results."""
    graph = decompose_complex(graph)
    nodes, outputs = list(graph.nodes), list(graph.outputs)
    for k, out in enumerate(outputs):
        if out.aval.dtype.kind == "c":
            pairs = Value(Aval((*out.aval.shape, 2), real_dtype_of(out.aval.dtype)))
            nodes.append(TraceNode(PAIRS, (out,), (pairs,)))
            outputs[k] = pairs
    return replace(graph, nodes=tuple(nodes), outputs=tuple(outputs))


def pairs_of(found: Mapping[int, tuple[str, Any, Any]]) -> dict[int, tuple[str, Any, Any]]:
    """(name, ours, eager) of every result, with pairs for complex arrays."""
    return {k: (name, as_pairs(ours), as_pairs(eager)) for k, (name, ours, eager) in found.items()}
