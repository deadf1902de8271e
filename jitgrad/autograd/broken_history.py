"""Finds in advance what backward reaches: a graph that was freed, data that has changed, or a leaf."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jitgrad.core.errors import AutogradError, GraphFreedError
from jitgrad.core.tape_node import Edge, Node
from jitgrad.core.tensor import Tensor
from jitgrad.ops.identity import UPDATED


class HistoryNotKept(Node):
    """The history of a tensor that a compiled call does not keep, for the reason in ``why``: backward from there is an error."""

    __slots__ = ("why",)

    why: str

    def __init__(self, x: Tensor, why: str) -> None:
        super().__init__(UPDATED, (x, x), {}, (x,), (None, None))
        self.why = why
        self.edges, self.saved = None, ()

    def freed(self) -> GraphFreedError:
        return GraphFreedError(
            f"backward through a history that a compiled call does not keep: {self.why}. Compute on with it in that function, "
            "return it, or set .grad to None there."
        )


Failure = tuple[int, AutogradError]  # of the node with this sequence number


def broken_histories(starts: Mapping[int, Edge], since: int) -> dict[int, AutogradError]:
    """The errors that backward from those of ``starts`` would raise, at nodes from ``since`` on, that would fail.

    Of several errors it is that of the latest node, which backward reaches first.
    """
    roots = {k: edge[0] for k, edge in starts.items() if isinstance(edge, tuple)}
    failures: dict[Node, Failure | None] = {}
    for node in sorted(_reached(roots.values(), since), key=lambda node: node.sequence):
        own = node.failure()
        if own is not None:
            failures[node] = node.sequence, own
            continue
        below = [failures.get(edge[0]) for edge in node.edges or () if isinstance(edge, tuple)]
        failures[node] = max((f for f in below if f is not None), key=lambda f: f[0], default=None)
    found = {k: failures.get(root) for k, root in roots.items()}
    return {k: failure[1] for k, failure in found.items() if failure is not None}


def reaches(roots: Iterable[Node], leaves: Mapping[int, Tensor], since: int) -> Tensor | None:
    """One of ``leaves``, which are by id, to which backward from ``roots`` gives a gradient."""
    edges = [edge for node in _reached(roots, since) for edge in node.edges or ()]
    return next((leaves[id(edge)] for edge in edges if id(edge) in leaves), None)


def awaiting_gradient(root: Node, since: int) -> Node | None:
    """A node to which backward from ``root`` gives a gradient that a hook or retain_grad() waits for."""
    return next((node for node in _reached([root], since) if node.retained or any((node.hooks or {}).values())), None)


def _reached(roots: Iterable[Node], since: int) -> set[Node]:
    """The nodes from ``since`` on that ``roots`` depend on."""
    reached: set[Node] = set()
    stack = [*roots]
    while stack:
        node = stack.pop()
        if node not in reached and node.sequence >= since:
            reached.add(node)
            stack.extend(edge[0] for edge in node.edges or () if isinstance(edge, tuple))
    return reached
