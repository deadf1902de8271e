"""Records, within a trace, the function that computes a replaced gradient, as a graph of its own.

The graph of a trace is differentiated later, perhaps twice, when the function must not run again: what it reads is
guarded only while it is traced.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from jitgrad.autograd.replaced_gradient import GradientRule, capture_rules_by
from jitgrad.compiler.loops.invariants import replayed
from jitgrad.compiler.nested_trace import NestedTrace
from jitgrad.compiler.passes.cleanup import eliminate_dead
from jitgrad.core.aval import strong_aval
from jitgrad.core.context import current_interpreter, grad_enabled
from jitgrad.core.errors import AutogradError, InPlaceError, TracedValueError
from jitgrad.core.ir import Atom
from jitgrad.core.tape_node import edge_of
from jitgrad.core.tensor import Tensor


class RuleTrace(NestedTrace):
    """Records the function, with the histories of what it computes."""

    @contextmanager
    def running(self) -> Iterator[None]:
        with super().running():
            token = grad_enabled.set(True)
            try:
                yield
            finally:
                grad_enabled.reset(token)

    def result(self, tensor: Tensor) -> Atom:
        """The atom of a gradient, from which gradients flow as they do from ``tensor`` on the tape."""
        atom: Atom = self.current(tensor)
        return self.flowing(atom, edge_of(tensor)) if tensor._requires_grad else self._cut(atom)

    def refuse_changes(self) -> None:
        """Raise InPlaceError if a tensor from outside was changed: the gradient may run later, or not at all."""
        changed = [tensor for tensor, _ in self.written.values()]
        tensors = [(t, value) for t, _, value in self.lifted.values() if isinstance(t, Tensor)]
        changed += [t for t, value in tensors if self.is_own(t) and t._data is not value]
        for tensor in changed:
            raise InPlaceError(
                f"the gradient of {self.name!r} changes in place, at {tensor._storage.changed_at.full()}, a tensor "
                f"{tensor.aval} from outside, such as the state of a random generator. Compute it in the forward function"
            )
        for tensor, _ in self.grads.values():
            raise InPlaceError(f"the gradient of {self.name!r} sets the .grad of a tensor {tensor.aval}: return gradients")


def capture_rule(name: str, rule: GradientRule, residuals: Sequence[Any]) -> tuple[GradientRule, Sequence[Any]]:
    """``rule`` as a graph, and all that this reads of the current trace as residuals.

    A function that decides by values, such as a loop until it converges, has no graph of its own: only the trace knows
    the gradients that it gets, so that it runs where this differentiates the results, and nowhere else.
    """
    try:
        return _recorded(name, rule, residuals)
    except TracedValueError as error:
        return _within_trace(name, rule, error), residuals


def _within_trace(name: str, rule: GradientRule, error: TracedValueError) -> GradientRule:
    made_in = current_interpreter.get()

    def pull(g: Sequence[Any], outs: Sequence[Any], read: Sequence[Any]) -> Sequence[Tensor | None]:
        if current_interpreter.get() is not made_in:
            raise AutogradError(
                f"the gradient of {name!r} decides by values, so that it is computed only in the function of @jit or vmap that "
                f"calls {name!r}: take the gradient there, as in jit(grad(f)) in place of grad(jit(f)). It failed on its own: "
                f"{error}"
            ) from error
        return rule.pull(g, outs, read)

    return replace(rule, pull=pull, lazy=True)


def _recorded(name: str, rule: GradientRule, residuals: Sequence[Any]) -> tuple[GradientRule, Sequence[Any]]:
    trace = RuleTrace(name, current_interpreter.get())
    avals = [strong_aval(a.shape, a.dtype) for a in rule.avals]
    with trace.running():
        g = [trace.argument(k, aval, True) for k, aval in enumerate(avals)]
        outs = [trace.argument(len(g) + k, aval, True) for k, aval in enumerate(avals)] if rule.reads_outs else []
        grads = rule.pull(g, outs, residuals)
        atoms = tuple([trace.result(gx) for gx in grads if gx is not None])
    trace.refuse_changes()
    body = eliminate_dead(trace.graph(atoms))
    present = tuple([gx is not None for gx in grads])

    def pull(g: Sequence[Any], outs: Sequence[Any], read: Sequence[Any]) -> list[Any]:
        results = iter(replayed(body, (*g, *outs, *read)))
        return [next(results) if there else None for there in present]

    read = [trace.contents[value] for value in body.inputs[len(g) + len(outs) :]]
    return replace(rule, pull=pull, fill=True, body=body, present=present), read


capture_rules_by(capture_rule)
