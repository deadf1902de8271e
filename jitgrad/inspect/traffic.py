"""The bytes that a step or an eager program must move at least: every distinct array once."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any

from jitgrad.compiler.plan import Place, Step
from jitgrad.core.ir import Graph, TraceNode, Value
from jitgrad.core.op import Kind


def step_traffic(step: Step) -> tuple[int, int]:
    """(bytes read, bytes written) by one step; an operand that is broadcast counts its own elements once."""
    return _distinct(step.reads), _distinct(step.writes)


def _distinct(places: Iterable[Place]) -> int:
    sizes: dict[Any, int] = {}
    for place in places:
        if place.location is not None:
            axes = [(n, s) for n, s in zip(place.aval.shape, place.location.strides, strict=True) if s != 0]
            key = (place.location.buffer, place.location.offset, tuple(axes))
            sizes[key] = prod(n for n, _ in axes) * place.aval.dtype.itemsize
    return sum(sizes.values())


def eager_traffic(graph: Graph) -> int:
    """Bytes that running ``graph`` op by op reads and writes; views move no bytes."""
    return sum(_node_traffic(node) for node in graph.nodes if node.op.kind is not Kind.MOVEMENT)


def _node_traffic(node: TraceNode) -> int:
    return sum(value.aval.nbytes for value in {x for x in (*node.ins, *node.outs) if isinstance(x, Value)})


def readable_bytes(count: float) -> str:
    """``count`` bytes as text: ``1.5 MB`` (decimal units)."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.3g} {unit}"
        count /= 1000
    raise AssertionError("the last unit always returns")
