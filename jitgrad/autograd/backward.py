"""Reverse mode: runs the vjp of each node on the tape once, later nodes first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from jitgrad.autograd.backward_pass import BackwardPass, Key, edge_key
from jitgrad.autograd.reachable import reachable_nodes
from jitgrad.core.context import current_interpreter, grad_enabled
from jitgrad.core.errors import AutogradError, ShapeError
from jitgrad.core.tape_node import Edge, edge_of
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import astype
from jitgrad.ops.creation import ones_like, tensor
from jitgrad.ops.keywords import takes_dim


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
    given = grad if isinstance(grad, Tensor) else tensor(grad, dtype=loss.dtype)
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

    ``inside_vjp``: complex seeds and results are as vjps have them (see `jitgrad.autograd.backward_pass.outward`).

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
            BackwardPass(None, None, retain_graph).run(roots)
            return []
        keys = {edge_key(edge) for edge in wanted if edge is not None}
        sweep = BackwardPass(keys, nodes_toward(keys, roots, since), retain_graph)
        sweep.quiet = {edge_key(edge) for edge in quiet if edge is not None}
        sweep.inside_vjp = inside_vjp
        grads = sweep.run(roots)
        return [None if edge is None else grads[edge_key(edge)] for edge in wanted]
    finally:
        grad_enabled.reset(token)


def nodes_toward(keys: set[Key], roots: Iterable[tuple[Edge, Tensor]], since: int) -> set[int]:
    """The ids of the nodes between ``roots`` and ``keys``."""
    toward: set[int] = set()
    for node in reachable_nodes((edge for edge, _ in roots), since):
        for edge in node.edges or ():
            if edge is not None and (edge_key(edge) in keys or (isinstance(edge, tuple) and id(edge[0]) in toward)):
                toward.add(id(node))
                break
    return toward
