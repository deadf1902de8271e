"""Reverse-mode accumulation over the record that the tape made: each node once, later ones first."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitgrad.errors import AnomalyError, AutogradError, ShapeError
from jitgrad.ops.movement import sum_to
from jitgrad.ops.creation import ones_like, zeros
from jitgrad.ops.elementwise import add, astype
from jitgrad.recorder import Edge, Node, edge_of
from jitgrad.scope import anomaly_detection, current_interpreter, grad_enabled
from jitgrad.tensor import Tensor


def backward(loss: Tensor, grad: Any = None, *, retain_graph: bool = False, create_graph: bool = False) -> None:
    """Accumulate d(loss)/d(leaf) into ``leaf.grad`` for every leaf that requires grad.

    Args:
        grad: the incoming gradient, of ``loss``'s shape; may be omitted for a loss of one element (then it is 1).
        retain_graph: keep what was saved, so that backward can run again.
        create_graph: record the gradient computation itself, for higher derivatives; implies ``retain_graph``.

    Raises:
        AutogradError: ``loss`` does not require grad, or has more than one element and ``grad`` is missing.
        GraphFreedError: an earlier backward freed the graph.
        InPlaceError: a tensor that backward needs was changed in place.
    """
    seed = seed_gradient(loss, grad)
    run_backward([(edge_of(loss), seed)], retain_graph=retain_graph or create_graph, create_graph=create_graph)


def seed_gradient(loss: Tensor, grad: Any) -> Tensor:
    """The incoming gradient for ``loss``: ``grad`` checked, or one."""
    if not loss._requires_grad:
        raise AutogradError(
            f"backward on a tensor {loss.aval} that does not require grad: none of its inputs has requires_grad=True, "
            "it was computed under no_grad, or it was detached"
        )
    if grad is None:
        if loss.size != 1:
            raise AutogradError(f"backward on a tensor {loss.aval} of several elements needs backward(grad) of that shape")
        return ones_like(loss)
    given = grad if isinstance(grad, Tensor) else Tensor(np.asarray(grad, loss.dtype))
    if given.shape != loss.shape:
        raise ShapeError(f"backward: grad is {given.aval}, the tensor is {loss.aval}; their shapes must be equal")
    return given


def gradients(
    outputs: Sequence[Tensor],
    seeds: Sequence[Tensor],
    inputs: Sequence[Tensor],
    *,
    retain_graph: bool = False,
    create_graph: bool = False,
) -> list[Tensor | None]:
    """d(outputs)/d(inputs) weighted by ``seeds``, without touching any ``.grad``; None where nothing flows."""
    wanted = [edge_of(x) for x in inputs]
    roots = [(edge_of(out), seed) for out, seed in zip(outputs, seeds, strict=True)]
    return run_backward(
        [r for r in roots if r[0] is not None],
        wanted=wanted,
        retain_graph=retain_graph or create_graph,
        create_graph=create_graph,
    )


def run_backward(
    roots: list[tuple[Edge, Tensor]],
    *,
    wanted: Sequence[Edge] | None = None,
    retain_graph: bool,
    create_graph: bool,
) -> list[Tensor | None]:
    """Run every node between ``roots`` and the leaves (or the ``wanted`` edges) once, in reverse execution order.

    Nodes carry a counter that grows with execution, so a heap on it is a topological order and nothing recurses.
    """
    token = grad_enabled.set(create_graph)
    try:
        return _Sweep(wanted, retain_graph).run(roots)
    finally:
        grad_enabled.reset(token)


class _Sweep:
    """One backward pass: the gradients that have arrived so far, by node and result, and by leaf."""

    def __init__(self, wanted: Sequence[Edge] | None, retain_graph: bool) -> None:
        self.wanted = wanted
        self.keys = None if wanted is None else {_key(edge) for edge in wanted if edge is not None}
        self.found: dict[tuple[int, int], Tensor] = {}
        self.retain_graph = retain_graph
        self.heap: list[tuple[int, Node]] = []
        self.pending: dict[int, dict[int, Tensor]] = {}
        self.leaves: dict[int, tuple[Tensor, Tensor]] = {}

    def run(self, roots: list[tuple[Edge, Tensor]]) -> list[Tensor | None]:
        for edge, seed in roots:
            self.send(edge, seed)
        while self.heap:
            _, node = heapq.heappop(self.heap)
            self.step(node)
        for leaf, g in self.leaves.values():
            self.finish_leaf(leaf, g)
        if self.wanted is None:
            return []
        return [None if edge is None else self.found.get(_key(edge)) for edge in self.wanted]

    def send(self, edge: Edge, g: Tensor) -> None:
        """Add ``g`` to what has arrived at ``edge``."""
        if edge is None:
            return
        if isinstance(edge, Tensor):
            seen = self.leaves.get(id(edge))
            self.leaves[id(edge)] = (edge, g if seen is None else add(seen[1], g))
            return
        node, index = edge
        arrived = self.pending.get(id(node))
        if arrived is None:
            arrived = self.pending[id(node)] = {}
            heapq.heappush(self.heap, (-node.sequence, node))
        seen_here = arrived.get(index)
        arrived[index] = g if seen_here is None else add(seen_here, g)

    def step(self, node: Node) -> None:
        """Run ``node``'s vjp on the gradients that have arrived and pass the results on."""
        arrived = self.pending.pop(id(node))
        for index, hooks in (node.hooks or {}).items():
            for hook in tuple(hooks):
                if index in arrived and (new := hook(arrived[index])) is not None:
                    arrived[index] = new
        if self.keys is not None:
            for index, g in arrived.items():
                if (id(node), index) in self.keys:
                    self.found[id(node), index] = g
        operands, out = node.unpack()
        edges = node.edges
        assert edges is not None
        for edge, x, gx in zip(edges, operands, vjp_of(node, arrived, operands, out), strict=True):
            if gx is None or edge is None:
                continue
            gx = fit(gx, x)
            if anomaly_detection.get():
                check_finite(node, gx)
            self.send(edge, gx)
        if not self.retain_graph:
            node.release()

    def finish_leaf(self, leaf: Tensor, g: Tensor) -> None:
        for hook in tuple(leaf._hooks or ()):
            new = hook(g)
            g = g if new is None else new
        if self.keys is not None:
            if (id(leaf), -1) in self.keys:
                self.found[id(leaf), -1] = g
            return
        interpreter = current_interpreter.get()
        before = interpreter.read_grad(leaf)
        interpreter.write_grad(leaf, own(g) if before is None else add(before, g))


def _key(edge: Edge) -> tuple[int, int]:
    if isinstance(edge, Tensor):
        return id(edge), -1
    assert edge is not None
    return id(edge[0]), edge[1]


def own(g: Tensor) -> Tensor:
    """``g`` as a tensor that no one else holds as ``.grad``: two leaves must not share one gradient object."""
    new = Tensor(current_interpreter.get().current(g), g._aval, g._storage)
    if g._requires_grad:
        new.grad_fn, new._out_index, new._requires_grad = g.grad_fn, g._out_index, True
    return new


def vjp_of(node: Node, arrived: dict[int, Tensor], operands: list[Any], out: Any) -> Sequence[Tensor | None]:
    """The gradients of ``node``'s operands, before broadcasting is undone."""
    op = node.op
    assert op.vjp is not None and node.edges is not None
    g: Any
    if op.multiple:
        g = tuple(arrived.get(k) or zeros(a.shape, dtype=a.dtype) for k, a in enumerate(node.out_avals))
    else:
        g = arrived[0]
    if isinstance(op.vjp, tuple):
        return [
            None if f is None or edge is None else f(g, out, *operands, **node.attrs)
            for f, edge in zip(op.vjp, node.edges, strict=True)
        ]
    result = op.vjp(g, out, *operands, **node.attrs)
    grads = tuple(result) if isinstance(result, (tuple, list)) else (result,)
    if len(grads) != len(operands):
        raise AutogradError(f"the vjp of {op} returned {len(grads)} gradients for {len(operands)} operands")
    return grads


def fit(g: Any, x: Any) -> Tensor:
    """``g`` in the shape and dtype of the operand ``x``: the one place where broadcasting is undone."""
    shape, dtype = x.shape, x.dtype
    if not isinstance(g, Tensor):
        g = Tensor(np.asarray(g))
    if g.shape != shape:
        g = sum_to(g, shape)
    return g if g.dtype == dtype else astype(g, dtype)


def check_finite(node: Node, g: Tensor) -> None:
    """Raise AnomalyError if ``g`` has NaN or Inf in it."""
    data = g.concrete("detect_anomaly")
    if not np.isfinite(data).all():
        kind = "NaN" if np.isnan(data).any() else "Inf"
        made = f", made at:\n{node.stack}" if node.stack else ""
        raise AnomalyError(f"the gradient that {node.op} at {node.origin.full()} returned has {kind} in it{made}")
