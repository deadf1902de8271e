"""The part of the tape that a gradient would pass."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

from jitgrad.core.tape_node import Edge, Node


def reachable_nodes(edges: Iterable[Edge], since: int) -> list[Node]:
    """All nodes from ``since`` on that ``edges`` depend on, in execution order.

    Raises:
        GraphFreedError: a backward freed one of the nodes.
    """
    nodes: dict[int, Node] = {}
    stack = [edge[0] for edge in edges if isinstance(edge, tuple)]
    while stack:
        node = stack.pop()
        if id(node) in nodes or node.sequence < since:
            continue
        nodes[id(node)] = node
        if node.edges is None:
            node.unpack()  # raises: it has been freed
        for edge in node.edges or ():
            if isinstance(edge, tuple):
                stack.append(edge[0])
    return sorted(nodes.values(), key=attrgetter("sequence"))
