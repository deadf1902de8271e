"""Records, within a trace, the function that computes a replaced gradient, as a graph of its own.

The graph of a trace is differentiated later, perhaps twice, when the function must not run again: what it reads is
guarded only while it is traced.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from jitgrad.autograd.replaced_gradient import GradientRule, capture_rules_by
from jitgrad.compiler.input_source import InputSource, SourceKind
from jitgrad.compiler.passes.cleanup import eliminate_dead
from jitgrad.compiler.runtime_number import RuntimeNumber
from jitgrad.compiler.tracer import Trace
from jitgrad.core.aval import strong_aval
from jitgrad.core.context import Interpreter, adjoint_observer, current_interpreter, grad_enabled, open_tapes
from jitgrad.core.dispatch import apply_op
from jitgrad.core.errors import InPlaceError
from jitgrad.core.ir import Atom, Graph, Value, evaluate
from jitgrad.core.op import OpDef
from jitgrad.core.origin import Origin, at_origin
from jitgrad.core.tape_node import edge_of
from jitgrad.core.tensor import Tensor


class RuleTrace(Trace):
    """Nested in the trace ``outer``; ``contents`` has what each input is there."""

    def __init__(self, name: str, outer: Interpreter) -> None:
        super().__init__(name, outer.device)
        self.outer = outer
        self.contents: dict[Value, Any] = {}
        self.has_numbers = getattr(outer, "has_numbers", False)
        self._numbers: dict[Value, Value] = {}  # for those of the run-time numbers of the outer trace

    @contextmanager
    def running(self) -> Iterator[None]:
        """Within it, ops are recorded here, with their histories, and no tape or observer from outside sees them."""
        tokens = current_interpreter.set(self), open_tapes.set(()), adjoint_observer.set(None), grad_enabled.set(True)
        try:
            yield
        finally:
            self.restore_histories()
            grad_enabled.reset(tokens[3])
            adjoint_observer.reset(tokens[2])
            open_tapes.reset(tokens[1])
            current_interpreter.reset(tokens[0])
            if self.values_needed:  # run-time numbers belong to the outer trace
                self.outer.values_needed |= self.values_needed  # type: ignore[attr-defined]

    def lift(self, x: Any, kind: SourceKind) -> Value:
        value = super().lift(x, kind)
        if value not in self.contents:
            self.contents[value] = self._outside(x) if kind is SourceKind.CONSTANT else x
        return value

    def _outside(self, constant: Any) -> Any:
        token = current_interpreter.set(self.outer)
        try:
            return self.outer.constant(constant)
        finally:
            current_interpreter.reset(token)

    def atom(self, op: OpDef, x: Any) -> Atom:
        if type(x) is not RuntimeNumber or x.value in self.owned:
            return super().atom(op, x)
        value = self._numbers.get(x.value)
        if value is None:
            value = self._numbers[x.value] = self.add_input(x.value.aval, InputSource(SourceKind.TENSOR, x))
            self.contents[value] = x
        return value

    def current(self, tensor: Tensor) -> Any:
        data = tensor._data
        if type(data) is not Value or data in self.owned:
            return super().current(tensor)
        self.outer.current(tensor)  # raises if it belongs to no running trace
        written = self.written.get(id(tensor))
        if written is not None:
            return written[1]
        self.alive.append(tensor)
        return self.lift(tensor, SourceKind.TENSOR)

    def result(self, tensor: Tensor) -> Atom:
        """The atom of a gradient, from which gradients flow as they do from ``tensor`` on the tape."""
        atom: Atom = self.current(tensor)
        return self.flowing(atom, edge_of(tensor)) if tensor._requires_grad else self._cut(atom)

    def refuse_changes(self) -> None:
        """Raise InPlaceError if a tensor from outside was changed: the gradient may run later, or not at all."""
        changed = [tensor for tensor, _ in self.written.values()]
        changed += [t for t, _, value in self.lifted.values() if isinstance(t, Tensor) and self._replaced(t, value)]
        for tensor in changed:
            raise InPlaceError(
                f"the gradient of {self.name!r} changes in place, at {tensor._storage.changed_at.full()}, a tensor "
                f"{tensor.aval} from outside, such as the state of a random generator. Compute it in the forward function"
            )
        for tensor, _ in self.grads.values():
            raise InPlaceError(f"the gradient of {self.name!r} sets the .grad of a tensor {tensor.aval}: return gradients")

    def _replaced(self, tensor: Tensor, value: Value) -> bool:
        return type(tensor._data) is Value and tensor._data in self.owned and tensor._data is not value


def capture_rule(name: str, rule: GradientRule, residuals: Sequence[Any]) -> tuple[GradientRule, Sequence[Any]]:
    """``rule`` as a graph, and all that this reads of the current trace as residuals."""
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
        results = iter(_replayed(body, (*g, *outs, *read)))
        return [next(results) if there else None for there in present]

    read = [trace.contents[value] for value in body.inputs[len(g) + len(outs) :]]
    return replace(rule, pull=pull, fill=True, body=body, present=present), read


def _replayed(body: Graph, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The results of ``body``, every op with the line it had."""
    origins = iter([node.origin for node in body.nodes])

    def apply(op: OpDef, operands: tuple[Any, ...], attrs: Mapping[str, Any]) -> Any:
        origin: Origin = next(origins)
        with at_origin(origin):
            return apply_op(op, *operands, **attrs)

    return evaluate(body, arguments, apply)


capture_rules_by(capture_rule)
