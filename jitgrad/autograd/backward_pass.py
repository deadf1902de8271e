"""One backward pass over the tape: later nodes first, each once.

Gradients are arrays where backward itself is not recorded, and a node runs the rule that was compiled for
ops like it. Elsewhere they are tensors, and a node calls its vjp.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from jitgrad.autograd.array_masks import MaskedArray, on_array, sum_of_masked
from jitgrad.autograd.leaf_gradients import accumulate, own, own_array, run_hooks, run_post_accumulate_hooks
from jitgrad.autograd.local_gradients import check_finite, fit, vjp_of
from jitgrad.autograd.masks import Cotangent, MaskedGradient, settle, total
from jitgrad.autograd.program_results import edges_op_by_op, results_to_open
from jitgrad.autograd.reachable import reachable_nodes
from jitgrad.autograd.rules import gradients_by_rule
from jitgrad.core.context import adjoint_observer, anomaly_detection, current_interpreter, grad_enabled
from jitgrad.core.observed_frames import go_on, is_own, pause
from jitgrad.core.op import Kind
from jitgrad.core.origin import Origin, at_origin
from jitgrad.core.tape_node import Edge, Node, edge_of, next_sequence
from jitgrad.core.tensor import Tensor
from jitgrad.eager import numpy_errors
from jitgrad.eager.compositions import CompositionNode
from jitgrad.ops.arithmetic import conjugated

Key = tuple[int, int]  # (id of a node, which result) or (id of a leaf, -1)
Passed = Cotangent | MaskedArray
Sent = tuple[Edge, Passed]  # a gradient on its way

_ndarray = np.ndarray
_Array = np.ndarray[Any, Any]


def edge_key(edge: Edge) -> Key:
    """The identity of the destination of ``edge``."""
    if isinstance(edge, Tensor):
        return id(edge), -1
    assert edge is not None
    return id(edge[0]), edge[1]


def outward(g: Tensor) -> Tensor:
    """The gradient that users see for one inside of vjps, and the other way round: conjugates if complex.

    Users get dL/dx + i dL/dy, as in torch. With its conjugate, for which dL = Re(g dz), the vjp of a holomorphic function
    has the formula of the real one.
    """
    return conjugated(g)  # type: ignore[no-any-return]


class BackwardPass:
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
        self.tracing: bool = current_interpreter.get().tracing
        self.anomaly: bool = anomaly_detection.get() and not self.tracing  # a trace has no values to check
        self.observer: Callable[[Any, int, Any], None] | None = adjoint_observer.get()
        self.watched: bool = self.observer is not None or keys is not None
        self.on_arrays: bool = (
            numpy_errors.RETURNS_ARRAYS
            and not (self.tracing or self.anomaly or grad_enabled.get())
            and self.observer is None
        )
        self.origin: Origin = Origin()  # of the op that is differentiated now, in a trace
        self.heap: list[tuple[int, Node]] = []
        self.pending: dict[int, dict[int, Passed]] = {}
        self.single: dict[int, Passed] = {}  # on arrays: of nodes with a recipe, which have one result
        self.leaves: dict[int, tuple[Tensor, Passed, Origin]] = {}
        self.opened: list[Node] = []  # compiled calls of which some results went op by op
        self.sums: set[int] = (
            set()
        )  # the ids of arrays in `pending` and `leaves` that were summed here: nothing else has them

    def run(self, roots: Sequence[tuple[Edge, Tensor]]) -> Mapping[Key, Tensor | None]:
        sent = [(edge, self.result(seed)) for edge, seed in roots if self.flows(edge)]
        if self.on_arrays:
            self.run_nodes_on_arrays(sent)
        else:
            self.run_nodes(sent)
        while self.leaves:
            self.finish_leaf()
        for node in self.opened if not self.retain_graph else ():
            node.release()
        return self.results

    def run_nodes(self, sent: Iterable[Sent]) -> None:
        self.send_all(sent)
        paused: Any = None
        try:
            while self.heap:
                _, node = heapq.heappop(self.heap)
                if self.tracing and self.calls_user(node):
                    go_on(paused)
                    paused = None
                elif self.tracing and paused is None:
                    paused = pause()
                if self.tracing or self.observer is not None:
                    self.origin = node.origin.of_gradient()
                    with at_origin(self.origin):  # names the op that a backward op differentiates
                        self.send_all(self.step(node, self.pending.pop(id(node))))
                else:
                    self.send_all(self.step(node, self.pending.pop(id(node))))
        finally:
            go_on(paused)

    def calls_user(self, node: Node) -> bool:
        """Whether `step` of ``node`` may call functions of the user."""
        return self.observer is not None or node.hooks is not None or node.retained is not None or not is_own(node.op)

    def run_nodes_on_arrays(self, sent: Iterable[Sent]) -> None:
        """`run_nodes`, by rules where there are any. NumPy's warnings are off but while other code runs."""
        heap = self.heap
        silence: Any = numpy_errors.silence()
        try:
            self.send_all(sent)
            while heap:
                node = heapq.heappop(heap)[1]
                if node.recipe is not None:
                    g = self.single.pop(id(node))
                    if (
                        (type(g) is _ndarray or type(g) is MaskedArray)
                        and self.may_use_rule(node)
                        and (grads := gradients_by_rule(node, node.recipe, g)) is not None
                    ):
                        self.send_arrays(node, g, grads)
                        continue
                    arrived = {0: g}
                else:
                    arrived = self.pending.pop(id(node))
                restored, silence = silence, None
                numpy_errors.restore(restored)
                sent = self.step(node, arrived)
                silence = numpy_errors.silence()
                self.send_all(sent)
        finally:
            if silence is not None:
                numpy_errors.restore(silence)

    def may_use_rule(self, node: Node) -> bool:
        """Whether a rule can stand for ``node``: nobody looks at its gradient, and all gradients of operands are needed."""
        if node.hooks is not None or node.retained is not None or node.edges is None:
            return False
        if self.keys is not None:
            if (id(node), 0) in self.keys:
                return False
            for edge in node.edges:
                if edge is not None and not self.flows(edge):
                    return False
        return True

    def send_arrays(self, node: Node, g: _Array | MaskedArray, grads: Iterable[Any]) -> None:
        """Send ``grads``, which the rule of ``node`` made of the gradient ``g`` of its result, to its operands."""
        single, sums = self.single, self.sums
        if sums:
            sums.discard(id(g))
        for edge, gx in zip(node.edges, grads):  # type: ignore[arg-type]
            if gx is None:
                continue
            if (
                type(edge) is tuple and edge[0].recipe is not None
            ):  # as `send`, which would be a call for every gradient
                source = edge[0]
                before = single.get(id(source))
                if before is None:
                    single[id(source)] = gx
                    heapq.heappush(self.heap, (-source.sequence, source))
                else:
                    single[id(source)] = self.total(before, gx)
            else:
                self.send(edge, gx)
        if not self.retain_graph:
            node.release()

    def step(self, node: Node, sent_here: dict[int, Passed]) -> list[Sent]:
        """Run the vjp of ``node`` on the arrived gradients; returns what is to be sent to its operands."""
        arrived: dict[int, Cotangent] = {}
        for index, passed in sent_here.items():
            if type(passed) is _ndarray:
                self.sums.discard(id(passed))
            arrived[index] = _wrapped(passed)
        if node.op.kind is Kind.PROGRAM and (opened := results_to_open(node, arrived, self.wanted_of(node))):
            return self.step_op_by_op(node, arrived, opened)
        if self.watched or node.hooks is not None or node.retained is not None:
            self.observe(node, arrived)
        if self.toward is not None and id(node) not in self.toward:
            return []
        if type(node) is CompositionNode:
            return self.step_through(node, arrived[0])
        operands, out = node.unpack()
        assert node.edges is not None
        edges = node.edges if self.keys is None else [edge if self.flows(edge) else None for edge in node.edges]
        sent: list[Sent] = []
        for edge, x, gx in zip(edges, operands, vjp_of(node, edges, arrived, operands, out), strict=True):
            if gx is None or edge is None:
                continue
            gx = fit(node, gx, x)
            if self.anomaly:
                check_finite(node, settle(gx))
            sent.append((edge, gx))
        if not self.retain_graph:
            node.release()
        return sent

    def step_through(self, node: CompositionNode, g: Passed) -> list[Sent]:
        """`step` of a composition, by its rule, or else into the ops of which it is composed."""
        if node.edges is None:
            raise node.freed()
        grads = None
        if self.on_arrays and node.recipe is not None and (array := on_array(g)) is not None:
            grads = numpy_errors.quietly(gradients_by_rule, node, node.recipe, array)
        if grads is not None:
            sent = [(edge, gx) for edge, gx in zip(node.edges, grads, strict=True) if gx is not None and self.flows(edge)]
        else:
            start = next_sequence()
            edge = edge_of(node.opened())
            if self.toward is not None:
                self.toward.update([id(opened) for opened in reachable_nodes([edge], start)])
            sent = [(edge, g)]
        if not self.retain_graph:
            node.release()
        return sent

    def step_op_by_op(self, node: Node, arrived: Mapping[int, Cotangent], opened: Collection[int]) -> list[Sent]:
        """`step` of the results ``opened`` of a compiled call into its ops; those of others wait for what comes from there."""
        start = next_sequence()
        gradients = {k: arrived[k] for k in opened}
        self.observe(node, gradients)
        edges = edges_op_by_op(node, gradients, self.wanted_of(node))
        if self.toward is not None:
            self.toward.update([id(inner) for inner in reachable_nodes(edges.values(), start)])
        self.opened.append(node)
        waiting: list[Sent] = [((node, k), g) for k, g in arrived.items() if k not in gradients]
        return waiting + [(edges[k], g) for k, g in gradients.items()]

    def flows(self, edge: Edge) -> bool:
        """Whether the gradient along ``edge`` is needed."""
        if edge is None or self.keys is None or self.toward is None:
            return edge is not None
        if edge_key(edge) in self.keys:
            return True
        if not isinstance(edge, tuple):
            return False
        node = edge[0]  # a compiled call whose other result is a key: `results_to_open` decides
        return id(node) in self.toward or (node.op.kind is Kind.PROGRAM and bool(self.wanted_of(node)))

    def wanted_of(self, node: Node) -> list[int]:
        """The results of ``node`` whose gradients are keys."""
        return [k for k in range(len(node.out_avals)) if self.keys is not None and (id(node), k) in self.keys]

    def send_all(self, sent: Iterable[Sent]) -> None:
        for edge, g in sent:
            self.send(edge, g)

    def send(self, edge: Edge, g: Passed) -> None:
        """Add ``g`` to the gradient at ``edge``."""
        if self.on_arrays and type(g) is Tensor and type(g._data) is _ndarray:
            g = g._data
        if type(edge) is tuple:
            node, index = edge
            if self.on_arrays and node.recipe is not None:
                before = self.single.get(id(node))
                if before is None:
                    self.single[id(node)] = g
                    heapq.heappush(self.heap, (-node.sequence, node))
                else:
                    self.single[id(node)] = self.total(before, g)
                return
            arrived = self.pending.get(id(node))
            if arrived is None:
                self.pending[id(node)] = {index: g}
                heapq.heappush(self.heap, (-node.sequence, node))
            else:
                before = arrived.get(index)
                arrived[index] = g if before is None else self.total(before, g)
            return
        assert isinstance(edge, Tensor)
        earlier = self.leaves.get(id(edge))
        self.leaves[id(edge)] = (edge, g if earlier is None else self.total(earlier[1], g), self.origin)

    def total(self, a: Passed, b: Passed) -> Passed:
        """The sum of two gradients of one value, in the memory of ``a`` if that is such a sum."""
        if type(a) is not _ndarray or type(b) is not _ndarray:
            if type(a) is MaskedArray and type(b) is MaskedArray and (both := sum_of_masked(a, b)) is not None:
                return both
            self.sums.discard(id(a))  # whose id the next array may get
            return total(_wrapped(a), _wrapped(b))
        if id(a) in self.sums:
            return np.add(a, b, out=a)
        if not a.ndim:
            out = np.add(a, b, out=...)
        else:
            out = np.add(a, b)  # in kept memory, if it is large
        self.sums.add(id(out))
        return out

    def finish_leaf(self) -> None:
        """Hand the whole gradient of a leaf out."""
        leaf, arrived, origin = self.leaves.pop(next(iter(self.leaves)))
        if isinstance(arrived, MaskedArray):
            arrived = arrived.settle()
        if self.keys is None and leaf._hooks is None and type(arrived) is _ndarray and arrived.dtype.kind != "c":
            held = [arrived]
            is_sum = id(arrived) in self.sums
            del arrived  # `own_array` and `own` count references
            accumulate(leaf, Tensor(held[0] if is_sum else own_array(held)))
            return
        with at_origin(origin):
            g = settle(arrived)
        del arrived
        if g.dtype.kind == "c":
            g = self.result(g)
        if self.observer is not None:
            self.observer(leaf, -1, g)
        if (id(leaf), -1) not in self.quiet:
            g = run_hooks(leaf._hooks, g)
        if self.keys is not None:
            self.results[id(leaf), -1] = g
        else:
            final = [g]
            del g
            accumulate(leaf, own(final))
            if leaf._hooks is not None:
                run_post_accumulate_hooks(leaf)

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
                accumulate(tensor, own([outward(settle(arrived[index]))]))

    def result(self, g: Tensor) -> Tensor:
        """``g`` as the caller of this pass wants it; a seed of the caller as vjps want it."""
        return g if self.inside_vjp else outward(g)


def _wrapped(g: Passed) -> Tensor | MaskedGradient:
    if isinstance(g, MaskedArray):
        return g.gradient()
    return Tensor(g) if isinstance(g, np.ndarray) else g
