"""Results whose gradient is computed by a function of the user: the op behind custom_vjp and Function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jitgrad.autograd.backward_pass import edge_key
from jitgrad.autograd.level import Level, same_memory, unrecorded_level
from jitgrad.autograd.modes import enable_grad
from jitgrad.autograd.reachable import reachable_nodes
from jitgrad.core.aval import Aval, is_differentiable
from jitgrad.core.context import current_interpreter, grad_enabled, open_tapes
from jitgrad.core.dispatch import apply_op
from jitgrad.core.errors import AutogradError, InPlaceError, ShapeError, shown
from jitgrad.core.ir import Graph
from jitgrad.core.op import Kind, OpDef, define
from jitgrad.core.origin import Origin
from jitgrad.core.tape_node import Edge, edge_of, next_sequence, record
from jitgrad.core.tensor import Tensor
from jitgrad.ops.creation import clone, detached, zeros

# (gradients of the results, the results if it reads them, residuals) -> gradients of the inputs
Pull = Callable[[Sequence[Any], Sequence[Any], Sequence[Any]], Sequence[Tensor | None]]


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class GradientRule:
    """How the gradients of ``inputs`` inputs come from those of the results ``avals``.

    ``fill``: results without a gradient have one of zeros, not None. In a trace, ``body`` is the graph of ``pull``,
    and ``present`` says which inputs have one of its results as their gradient; there is none if ``pull`` is to run
    only once it is needed (``lazy``).
    """

    avals: tuple[Aval, ...]
    inputs: int
    pull: Pull
    reads_outs: bool = False
    fill: bool = True
    what: str = ""  # the function, in messages
    body: Graph | None = None
    present: tuple[bool, ...] = ()
    lazy: bool = False

    def __repr__(self) -> str:
        return f"<gradients of {self.inputs} operands>"

    def filled(self, g: Sequence[Any]) -> list[Any]:
        """``g`` with zeros for None."""
        return [zeros(a.shape, dtype=a.dtype) if gx is None else gx for gx, a in zip(g, self.avals, strict=True)]


def _first_operands(*operands: Any, rule: GradientRule) -> tuple[Any, ...]:
    return operands[: len(rule.avals)]


def _abstract(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> tuple[Aval, ...]:
    return tuple(avals[: len(attrs["rule"].avals)])


def _vjp(g: tuple[Tensor | None, ...], out: Any, *operands: Any, rule: GradientRule) -> list[Tensor | None]:
    results = len(rule.avals)
    residuals = operands[results + rule.inputs :]
    given = rule.filled(g) if rule.fill else g
    outs = out if rule.reads_outs else ()
    level = None if rule.body is not None or grad_enabled.get() else unrecorded_level.get()
    grads = rule.pull(given, outs, residuals) if level is None else _pulled_within(level, rule, given, outs, residuals)
    return [*[None] * results, *grads, *[None] * len(residuals)]


def _pulled_within(
    level: Level, rule: GradientRule, g: Sequence[Any], outs: Sequence[Any], residuals: Sequence[Any]
) -> list[Tensor | None]:
    """The gradients, which must not depend on what an outer level may differentiate by: nothing records that.

    What is saved has told the level so before.
    """
    given = [[same_memory(x) if isinstance(x, Tensor) else x for x in xs] for xs in (g, outs, residuals)]
    token = open_tapes.set(())
    try:
        with enable_grad():
            grads = rule.pull(*given)
    finally:
        open_tapes.reset(token)
    level.look_outside([gx for gx in grads if gx is not None])
    if level.nested:
        raise AutogradError(
            f"the backward function of {rule.what} reads a tensor that requires grad and is neither an argument nor saved by "
            "its forward function. Save it there, as a residual or with save_for_backward, or use its .detach()"
        )
    return [None if gx is None else same_memory(gx) for gx in grads]


# Operands are the results, without history, the inputs, and the residuals, through which no gradient flows. Their
# histories are there for derivatives of the gradient. `jitgrad.compiler.passes.gradient_rules` removes it.
REPLACED_GRADIENT = define(
    "replaced_gradient(*operands, rule)",
    kind=Kind.OPAQUE,
    eager=_first_operands,
    abstract=_abstract,
    vjp=_vjp,
    multiple=True,
    partial_vjp=True,
    takes_complex=True,
    register=False,
)


def replaces_gradient(op: OpDef) -> bool:
    """Whether ``op`` is made by `with_gradient`."""
    return op.eager is _first_operands


# (name, rule, residuals) -> the rule as a graph, and its residuals
Capture = Callable[[str, GradientRule, Sequence[Any]], tuple[GradientRule, Sequence[Any]]]


class _Registered:
    capture: Capture


def capture_rules_by(capture: Capture) -> None:
    """Let ``capture`` record rules in a trace."""
    _Registered.capture = staticmethod(capture)


def with_gradient(
    name: str, outs: Sequence[Tensor], inputs: Sequence[Tensor], residuals: Sequence[Any], rule: GradientRule
) -> tuple[Tensor, ...]:
    """``outs``, whose gradients reach ``inputs`` by ``rule`` and nothing else."""
    tracing = current_interpreter.get().tracing
    if tracing and not rule.lazy:
        rule, residuals = _Registered.capture(name, rule, residuals)
    operands = (*map(same_memory, outs), *inputs, *residuals)
    first = len(outs) + len(inputs)
    saves = (frozenset(range(first, len(operands))),)
    op = replace(REPLACED_GRADIENT, name=name, saves=saves, saves_out=(rule.reads_outs,))
    if tracing:
        return apply_op(op, *operands, rule=rule)  # type: ignore[no-any-return]
    fresh = [same_memory(x) for x in outs]
    record(op, operands, {"rule": rule}, fresh)
    return tuple(fresh)


class Forward:
    """One run of a forward function, and the check of what it did.

    ``what`` names the function in messages, ``tensors`` are its arguments, and gradients may go to ``inputs``.
    """

    def __init__(self, what: str, tensors: Sequence[Tensor], inputs: Sequence[Tensor]) -> None:
        self.what = what
        self.since: int = next_sequence()
        self.tensors = tensors
        self.versions: list[int] = [x._storage.version for x in tensors]
        self.inputs: list[Tensor] = [x for x in inputs if x._requires_grad and is_differentiable(x.dtype)]

    def check(self, outs: Sequence[Any]) -> None:
        """Raise unless ``outs`` depend on no other tensor that requires grad, and no argument was changed in place.

        Raises:
            InPlaceError, AutogradError: otherwise.
        """
        for x, version in zip(self.tensors, self.versions, strict=True):
            if x._storage.version != version:
                raise InPlaceError(
                    f"{self.what} changes its argument {x.aval} in place, at {x._storage.changed_at.full()}: its results "
                    "have a gradient of their own. Change a .clone() of the argument"
                )
        own = {edge_key(edge_of(x)) for x in self.inputs}
        edges: list[tuple[Edge, Origin | None]] = [(edge_of(x), None) for x in outs]
        for node in reachable_nodes([edge for edge, _ in edges], self.since):
            edges.extend((edge, node.origin) for edge in node.edges or ())
        for edge, origin in edges:
            if edge is not None and edge_key(edge) not in own:
                self._check_edge(edge, origin)

    def _check_edge(self, edge: Edge, origin: Origin | None) -> None:
        assert edge is not None
        if not isinstance(edge, Tensor) and edge[0].sequence >= self.since:
            return
        aval = edge.aval if isinstance(edge, Tensor) else edge[0].out_avals[edge[1]]
        place = "" if origin is None else f" at {origin.full()}"
        raise AutogradError(
            f"{self.what} uses{place} a tensor {aval} that requires grad and is not among the arguments with a gradient, so "
            "it would get none. Pass it as such an argument, or use its .detach()"
        )

    def unshared(self, leaves: Sequence[Any]) -> list[Any]:
        """The results ``leaves``, in memory that no argument and no other result has."""
        taken = {id(x._storage) for x in self.tensors}
        own: list[Any] = []
        for x in leaves:
            if isinstance(x, Tensor):
                made_here = x.grad_fn is not None or not grad_enabled.get()
                if id(x._storage) in taken or not made_here:
                    x = clone(x)
                taken.add(id(x._storage))
            own.append(x)
        return own


def result_places(leaves: Sequence[Any], excluded: Iterable[Any] = ()) -> list[int]:
    """Which of the results ``leaves`` can have a gradient; all but ``excluded``."""
    left_out = {id(x) for x in excluded}
    return [
        k for k, x in enumerate(leaves) if isinstance(x, Tensor) and is_differentiable(x.dtype) and id(x) not in left_out
    ]


def without_history(x: Any) -> Any:
    """A result that gets no gradient."""
    return detached(x) if isinstance(x, Tensor) and x._requires_grad else x


def checked_gradient(what: str, place: str, g: Any, x: Aval) -> Tensor | None:
    """``g`` as the gradient of a tensor ``x``.

    Raises:
        ShapeError, AutogradError: it cannot be one.
    """
    if g is None or isinstance(g, Tensor):
        tensor = g
    elif isinstance(g, (np.ndarray, np.generic, int, float, complex)):
        tensor = current_interpreter.get().constant(np.asarray(g, x.dtype))
    else:
        raise AutogradError(f"{what} returned {shown(g)} as the gradient of {place}, {x}: expected a Tensor, or None")
    if tensor is not None and tensor.shape != x.shape:
        raise ShapeError(
            f"{what} returned a gradient {tensor.aval} for {place}, which is {x}: their shapes must be equal"
        )
    return tensor
