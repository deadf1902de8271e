"""Reverse mode: runs the vjp of each node on the tape once, later nodes first."""

from __future__ import annotations

import heapq
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from jitgrad.autograd.local_gradients import check_finite, fit, vjp_of
from jitgrad.autograd.masks import Cotangent, settle, total
from jitgrad.core.context import adjoint_observer, anomaly_detection, current_interpreter, grad_enabled
from jitgrad.core.device_array import DeviceArray
from jitgrad.core.errors import AutogradError, ShapeError
from jitgrad.core.fork import fork_safe_lock
from jitgrad.core.origin import Origin, at_origin
from jitgrad.core.tape_node import Edge, Node, edge_of
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import add, astype, conjugated
from jitgrad.ops.creation import ones_like
from jitgrad.ops.keywords import takes_dim

Key = tuple[int, int]  # (id of a node, which result) or (id of a leaf, -1)
Hook = Callable[[Tensor], Tensor | None]

_accumulating = fork_safe_lock()


@takes_dim(gradient="grad")
def backward(loss: Tensor, grad: Any = None, *, retain_graph: bool = False, create_graph: bool = False) -> None:
    """Accumulate d(loss)/d(leaf) into ``leaf.grad`` for every leaf that requires grad.

    Args:
        grad: the incoming gradient, of ``loss``'s shape; may be omitted for a loss of one element
            (then it is 1).
        retain_graph: keep the saved tensors, so that backward can run again.
        create_graph: record the gradient computation itself, for higher derivatives; implies
            ``retain_graph``.

    Raises:
        AutogradError: ``loss`` does not require grad, or has more than one element and ``grad`` is
            missing.
        GraphFreedError: an earlier backward freed the graph.
        InPlaceError: a tensor that backward needs was changed in place.
    """
    seed = seed_gradient(loss, grad)
    run_backward([(edge_of(loss), seed)], retain_graph=retain_graph or create_graph, create_graph=create_graph)


def retain_grad(tensor: Tensor) -> None:
    """Let backward fill ``.grad`` of a tensor that is no leaf (leaves always get it).

    Raises:
        AutogradError: it does not require grad.
    """
    if not tensor._requires_grad:
        raise AutogradError(
            f"retain_grad on a tensor {tensor.aval} that does not require grad: it never gets a gradient"
        )
    if tensor.grad_fn is not None:
        tensor.grad_fn.retain_grad(tensor)


def seed_gradient(loss: Tensor, grad: Any) -> Tensor:
    """The incoming gradient for ``loss``: ``grad`` after a check, or ones."""
    if not loss._requires_grad:
        raise AutogradError(
            f"backward on a tensor {loss.aval} that does not require grad: none of its inputs has requires_grad=True, "
            "it was computed under no_grad, or it was detached"
        )
    if grad is None:
        if loss.dtype.kind == "c":
            raise AutogradError(
                f"backward on a complex tensor {loss.aval} needs backward(grad): a loss must be real, such as x.real or "
                "abs(x)**2, or weighted by a complex gradient"
            )
        if loss.size != 1:
            raise AutogradError(
                f"backward on a tensor {loss.aval} of several elements needs backward(grad) of that shape"
            )
        if current_interpreter.get().tracing:
            return ones_like(loss)
        return ones_like(loss) if loss.device != "cpu" else Tensor(np.ones(loss.shape, loss.dtype))
    given = grad if isinstance(grad, Tensor) else current_interpreter.get().constant(np.array(grad, loss.dtype))
    if given.shape != loss.shape:
        raise ShapeError(f"backward: grad is {given.aval}, the tensor is {loss.aval}; their shapes must be equal")
    return given if given.dtype == loss.dtype else astype(given, loss.dtype)


def gradients(
    outputs: Sequence[Tensor],
    seeds: Sequence[Tensor],
    inputs: Sequence[Tensor],
    *,
    retain_graph: bool = False,
    create_graph: bool = False,
    since: int = 0,
    quiet: Iterable[Edge] = (),
    inside_vjp: bool = False,
) -> list[Tensor | None]:
    """d(outputs)/d(inputs) weighted by ``seeds``, without ``.grad``; None if independent.

    ``inside_vjp``: complex seeds and results are as vjps have them (see `outward`).

    Only nodes between ``inputs`` and ``outputs`` run (and are freed). The caller promises that no
    node with a sequence number below ``since`` depends on an input, so the search stops there.
    Hooks of the tensors at ``quiet`` do not run, because only a part of their gradient arrives.
    """
    roots = [(edge, seed) for out, seed in zip(outputs, seeds, strict=True) if (edge := edge_of(out)) is not None]
    return run_backward(
        roots,
        wanted=[edge_of(x) for x in inputs],
        retain_graph=retain_graph or create_graph,
        create_graph=create_graph,
        since=since,
        quiet=quiet,
        inside_vjp=inside_vjp,
    )


def outward(g: Tensor) -> Tensor:
    """The gradient that users see for one inside of vjps, and the other way round: conjugates if complex.

    Users get dL/dx + i dL/dy, as in torch. With its conjugate, for which dL = Re(g dz), the vjp of a holomorphic function
    has the formula of the real one.
    """
    return conjugated(g)  # type: ignore[no-any-return]


def run_backward(
    roots: Sequence[tuple[Edge, Tensor]],
    *,
    wanted: Sequence[Edge] | None = None,
    retain_graph: bool,
    create_graph: bool,
    since: int = 0,
    quiet: Iterable[Edge] = (),
    inside_vjp: bool = False,
) -> list[Tensor | None]:
    """Run every node between ``roots`` and the leaves (or ``wanted``) once, last ones first.

    Sequence numbers grow with execution, so a heap of them gives a topological order without
    recursion.
    """
    token = grad_enabled.set(create_graph)
    try:
        if wanted is None:
            _Sweep(None, None, retain_graph).run(roots)
            return []
        keys = {edge_key(edge) for edge in wanted if edge is not None}
        sweep = _Sweep(keys, nodes_toward(keys, roots, since), retain_graph)
        sweep.quiet = {edge_key(edge) for edge in quiet if edge is not None}
        sweep.inside_vjp = inside_vjp
        grads = sweep.run(roots)
        return [None if edge is None else grads[edge_key(edge)] for edge in wanted]
    finally:
        grad_enabled.reset(token)


def edge_key(edge: Edge) -> Key:
    """The identity of the destination of ``edge``."""
    if isinstance(edge, Tensor):
        return id(edge), -1
    assert edge is not None
    return id(edge[0]), edge[1]


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
        stack.extend(edge[0] for edge in node.edges or () if isinstance(edge, tuple))
    return sorted(nodes.values(), key=lambda node: node.sequence)


def nodes_toward(keys: set[Key], roots: Iterable[tuple[Edge, Tensor]], since: int) -> set[int]:
    """The ids of the nodes between ``roots`` and ``keys``."""
    toward: set[int] = set()
    for node in reachable_nodes((edge for edge, _ in roots), since):
        for edge in node.edges or ():
            if edge is not None and (edge_key(edge) in keys or (isinstance(edge, tuple) and id(edge[0]) in toward)):
                toward.add(id(node))
                break
    return toward


class _Sweep:
    """One backward pass, with the arrived gradients by node and result, and by leaf.

    ``keys`` are the destinations whose gradients are returned (None: accumulate into all leaves).
    ``toward`` holds the nodes to run.
    """

    def __init__(self, keys: set[Key] | None, toward: set[int] | None, retain_graph: bool) -> None:
        self.keys = keys
        self.toward = toward
        self.quiet: set[Key] = set()
        self.inside_vjp = False
        self.results: defaultdict[Key, Tensor | None] = defaultdict(lambda: None)
        self.retain_graph = retain_graph
        self.tracing = current_interpreter.get().tracing
        self.anomaly = anomaly_detection.get() and not self.tracing  # a trace has no values to check
        self.observer = adjoint_observer.get()
        self.watched = self.observer is not None or keys is not None
        self.origin = Origin()  # of the op that is differentiated now, in a trace
        self.heap: list[tuple[int, Node]] = []
        self.pending: dict[int, dict[int, Cotangent]] = {}
        self.leaves: dict[int, tuple[Tensor, Cotangent, Origin]] = {}

    def run(self, roots: Sequence[tuple[Edge, Tensor]]) -> Mapping[Key, Tensor | None]:
        for edge, seed in roots:
            if self.flows(edge):
                self.send(edge, self.result(seed))
        while self.heap:
            _, node = heapq.heappop(self.heap)
            if self.tracing or self.observer is not None:
                self.origin = node.origin.of_gradient()
                with at_origin(self.origin):  # names the op that a backward op differentiates
                    self.step(node)
            else:
                self.step(node)
        while self.leaves:
            leaf, arrived, origin = self.leaves.pop(next(iter(self.leaves)))
            if type(arrived) is Tensor:
                g = arrived
            else:
                with at_origin(origin):
                    g = settle(arrived)
            del arrived  # `own` counts references
            if g.dtype.kind == "c":
                g = self.result(g)
            if self.observer is not None:
                self.observer(leaf, -1, g)
            if (id(leaf), -1) not in self.quiet:
                g = run_hooks(leaf._hooks, g)
            if self.keys is not None:
                self.results[id(leaf), -1] = g
                continue
            accumulate(leaf, own(g))
        return self.results

    def flows(self, edge: Edge) -> bool:
        """Whether the gradient along ``edge`` is needed."""
        if edge is None or self.keys is None or self.toward is None:
            return edge is not None
        return edge_key(edge) in self.keys or (isinstance(edge, tuple) and id(edge[0]) in self.toward)

    def send(self, edge: Edge, g: Cotangent) -> None:
        """Add ``g`` to the gradient at ``edge``."""
        assert edge is not None
        if isinstance(edge, Tensor):
            earlier = self.leaves.get(id(edge))
            self.leaves[id(edge)] = (edge, g if earlier is None else total(earlier[1], g), self.origin)
            return
        node, index = edge
        arrived = self.pending.get(id(node))
        if arrived is None:
            arrived = self.pending[id(node)] = {}
            heapq.heappush(self.heap, (-node.sequence, node))
        before = arrived.get(index)
        arrived[index] = g if before is None else total(before, g)

    def step(self, node: Node) -> None:
        """Run the vjp of ``node`` on the arrived gradients and send the results to its operands."""
        arrived = self.pending.pop(id(node))
        if self.watched or node.hooks is not None or node.retained is not None:
            self.observe(node, arrived)
        if self.toward is not None and id(node) not in self.toward:
            return
        operands, out = node.unpack()
        assert node.edges is not None
        edges = node.edges if self.keys is None else [edge if self.flows(edge) else None for edge in node.edges]
        for edge, x, gx in zip(edges, operands, vjp_of(node, edges, arrived, operands, out), strict=True):
            if gx is None or edge is None:
                continue
            gx = fit(node, gx, x)
            if self.anomaly:
                check_finite(node, settle(gx))
            self.send(edge, gx)
        if not self.retain_graph:
            node.release()

    def observe(self, node: Node, arrived: dict[int, Cotangent]) -> None:
        """Run hooks on the gradients of ``node``'s results, and keep requested gradients."""
        if self.observer is not None:
            for index, cotangent in arrived.items():
                self.observer(node, index, outward(settle(cotangent)))
        for index, hooks in (node.hooks or {}).items():
            if index in arrived and (id(node), index) not in self.quiet:
                g = outward(settle(arrived[index]))
                seen = run_hooks(hooks, g)
                if seen is not g:
                    arrived[index] = outward(seen)
        if self.keys is not None:
            for index, cotangent in arrived.items():
                if (id(node), index) in self.keys:
                    self.results[id(node), index] = self.result(settle(cotangent))
            return
        for index, reference in (node.retained or {}).items():
            tensor = reference()
            if tensor is not None and index in arrived:
                accumulate(tensor, own(outward(settle(arrived[index]))))

    def result(self, g: Tensor) -> Tensor:
        """``g`` as the caller of this sweep wants it; a seed of the caller as vjps want it."""
        return g if self.inside_vjp else outward(g)


def run_hooks(hooks: Sequence[Hook] | None, g: Tensor) -> Tensor:
    """``g`` after all hooks. Raises ShapeError if one changes its shape."""
    for hook in tuple(hooks or ()):
        new = hook(g)
        if new is None:
            continue
        if not isinstance(new, Tensor) or new.shape != g.shape:
            returned = new.aval if isinstance(new, Tensor) else type(new).__name__
            raise ShapeError(
                f"a hook must return None or a gradient like the one it got, {g.aval}; it returned {returned}"
            )
        g = new
    return g


def accumulate(tensor: Tensor, g: Tensor) -> None:
    """``tensor.grad += g``, out of place; threads may share a leaf."""
    interpreter = current_interpreter.get()
    with _accumulating:
        before = interpreter.read_grad(tensor)
        interpreter.write_grad(tensor, g if before is None else add(before, g))


def own(g: Tensor) -> Tensor:
    """``g`` as a ``.grad`` that may be changed in place, because nothing else shares its memory.

    A vjp may return its incoming gradient, or a broadcast view of it, for several operands.
    Reference counts show whether the caller's ``g`` is the only owner of the memory; if in doubt,
    it is copied.
    """
    data = current_interpreter.get().current(g)
    if isinstance(data, DeviceArray):
        data = data.copy()
    elif isinstance(data, np.ndarray):
        # references: the caller's variable, the parameter and the call; g._data, `data` and the
        # call
        alone = sys.getrefcount(g) <= 3 and sys.getrefcount(data) <= 3
        if not alone or data.base is not None or not data.flags.writeable:
            data = data.copy()
    new = Tensor(data, g._aval)
    if g._requires_grad:
        new.grad_fn, new._out_index, new._requires_grad = g.grad_fn, g._out_index, True
    return new
