"""Tracing: the interpreter under which ops are recorded as TraceNodes instead of run."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from jitgrad.compiler.reshape_views import ReshapeViews, View
from jitgrad.compiler.runtime_number import INT_AVAL, RuntimeNumber, argument_number, check_operands
from jitgrad.core import traced_constants
from jitgrad.core.aval import Aval, Count
from jitgrad.core.context import grad_enabled
from jitgrad.core.device_array import DeviceArray
from jitgrad.core.dispatch import aval_of
from jitgrad.core.errors import LeakedTracerError, TracedValueError, TraceError
from jitgrad.core.ir import Atom, Graph, Literal, Names, TraceNode, Value, format_node
from jitgrad.core.op import OpDef
from jitgrad.core.origin import Origin
from jitgrad.core.tape_node import Edge, edge_of, next_sequence, record
from jitgrad.core.tensor import Donated, Tensor
from jitgrad.ops.arithmetic import ASTYPE
from jitgrad.ops.identity import STOP_GRADIENT, UPDATED
from jitgrad.ops.movement import RESHAPE
from jitgrad.ops.views import WRITERS


class SourceKind(Enum):
    """What the key of an `InputSource` is."""

    ARGUMENT = "the position among the flat arguments"
    TENSOR = "a tensor that was reached through a closure, a global or an attribute"
    ARRAY = "an array that was reached in the same way"
    CONSTANT = "an array that the trace made"
    GRADIENT = "the InputSource of the tensor whose .grad is read"
    SEED = "the position of the output that a gradient comes from"


@dataclass(frozen=True, eq=False, slots=True)
class InputSource:
    """Where a program input comes from at call time."""

    kind: SourceKind
    key: Any

    def resolve(self, leaves: Sequence[Any]) -> Any:
        """The object in a call with the flat arguments ``leaves``."""
        if self.kind is SourceKind.ARGUMENT:
            return leaves[self.key]
        return self.key.resolve(leaves)._grad if self.kind is SourceKind.GRADIENT else self.key


History = tuple[Any, int, bool]  # of a tensor: its grad_fn, which result of that it is, whether it requires grad


class Trace:
    """Records every op applied under it. Touched outside Tensors become inputs; their changes are kept here."""

    tracing = True

    def __init__(self, name: str, device: str = "cpu") -> None:
        self.name = name
        self.since = next_sequence()  # the nodes of its tensors have higher numbers
        self.generator_states: list[Tensor] = []  # may be on the host, whatever the device
        self.device = device  # "cuda" once a tensor on that device was seen
        self.nodes: list[TraceNode] = []
        self.inputs: list[Value] = []
        self.sources: list[InputSource] = []
        self.owned: set[Value] = set()
        self.tainted: set[Atom] = set()  # values that depend on a tensor that requires grad
        self.lifted: dict[int, tuple[Any, InputSource, Value]] = {}
        self.written: dict[int, tuple[Tensor, Value]] = {}
        self.grads: dict[int, tuple[Tensor, Tensor | None]] = {}
        self.grads_read: dict[int, tuple[Tensor, bool]] = {}
        self.views: dict[int, list[View]] = {}  # by the id of the root tensor's storage
        self.reshapes = ReshapeViews()
        self.histories: dict[int, tuple[Tensor, History]] = {}  # before the function, of what it changes in place
        self.moved: dict[int, Edge] = {}  # where gradients of those go that have another one, by their ids
        self.has_numbers = False  # whether an argument is a RuntimeNumber
        self.values_needed: frozenset[int] = frozenset()  # positions of those whose value the function asked for
        self.alive: list[Any] = []  # keeps objects alive whose id is a key above

    # --- inputs --------------------------------------------------------------------------------------------------

    def add_input(self, aval: Aval, source: InputSource, requires_grad: bool = False) -> Value:
        value = self.own(Value(aval))
        self.inputs.append(value)
        self.sources.append(source)
        if requires_grad:
            self.tainted.add(value)
        return value

    def argument(self, position: int, aval: Aval, requires_grad: bool, grad: Tensor | None = None) -> Tensor:
        """A leaf Tensor that stands for the flat argument number ``position``, whose gradient so far is ``grad``."""
        source = InputSource(SourceKind.ARGUMENT, position)
        tensor = Tensor(self.add_input(aval, source, requires_grad))
        tensor._requires_grad = requires_grad
        tensor._grad = grad
        self.lifted[id(tensor)] = (tensor, source, tensor._data)
        return tensor

    def int_argument(self, position: int) -> RuntimeNumber:
        """A number that stands for the int argument number ``position``."""
        self.has_numbers = True
        return argument_number(self.add_input(INT_AVAL, InputSource(SourceKind.ARGUMENT, position)), position)

    def own(self, value: Value) -> Value:
        self.owned.add(value)
        return value

    def lift(self, x: Any, kind: SourceKind) -> Value:
        """The input Value for an object from outside the trace."""
        known = self.lifted.get(id(x))
        if known is None:
            if isinstance(x, Tensor):
                if type(x._data) is Donated:
                    raise x._data.error(f"@jit function {self.name!r}", x.aval)
                value = self.add_input(x.aval, InputSource(kind, x), x._requires_grad)
                if type(x._data) is DeviceArray:
                    self.device = x.device
            else:
                value = self.add_input(Aval(x.shape, x.dtype), InputSource(kind, x))
                traced_constants.add_array(value, x)
            known = self.lifted[id(x)] = (x, self.sources[-1], value)
        return known[2]

    def source_of(self, tensor: Tensor) -> InputSource:
        """Where ``tensor``, an argument or an outside tensor, comes from at call time."""
        if id(tensor) not in self.lifted:
            self.current(tensor)
        return self.lifted[id(tensor)][1]

    def atom(self, op: OpDef, x: Any) -> Atom:
        if isinstance(x, Tensor):
            return self.current(x)  # type: ignore[no-any-return]
        if type(x) is RuntimeNumber:
            return x.value
        if isinstance(x, np.ndarray):
            return self.lift(x, SourceKind.ARRAY)
        if isinstance(x, np.generic):
            return Literal(x.item(), x.dtype)
        return Literal(int(x), shape_derived=True) if isinstance(x, Count) else Literal(x)

    # --- the Interpreter protocol --------------------------------------------------------------------------------

    def apply(self, op: OpDef, operands: tuple[Any, ...], attrs: Mapping[str, Any]) -> Any:
        avals = [x.aval if type(x) is Tensor else aval_of(op, x) for x in operands]
        expected = op.abstract(avals, attrs)
        if self.has_numbers:
            check_operands(op, operands, avals, attrs)
        atoms = tuple([self._operand(op, x) for x in operands])
        outs = tuple([Tensor(value) for value in self.emit(op, atoms, expected, attrs)])
        if op.views and isinstance(operands[0], Tensor) and outs[0].size:  # without elements there is nothing to share
            self._remember_view(View(weakref.ref(outs[0]), operands[0], op, attrs))
        return outs if op.multiple else outs[0]

    def apply_recorded(self, op: OpDef, operands: tuple[Any, ...], attrs: Mapping[str, Any]) -> Any:
        from_apply = self.apply(op, operands, attrs)
        record(op, operands, attrs, from_apply)
        return from_apply

    def emit(
        self, op: OpDef, atoms: tuple[Atom, ...], expected: Aval | tuple[Aval, ...], attrs: Mapping[str, Any]
    ) -> tuple[Value, ...]:
        """Append the node; its results."""
        avals = expected if isinstance(expected, tuple) else (expected,)
        outs = tuple([Value(aval) for aval in avals])
        self.owned.update(outs)
        traced_constants.add_results(op, atoms, attrs, outs)
        listed = tuple(sorted(attrs.items())) if attrs else ()
        self.nodes.append(TraceNode(op, atoms, outs, listed, Origin.capture()))
        if op is not STOP_GRADIENT and not self.tainted.isdisjoint(atoms):
            self.tainted.update(outs)
        return outs

    def _operand(self, op: OpDef, x: Any) -> Atom:
        """The atom of ``x``, cut from its history in the graph as well if it was detached or made under no_grad."""
        own = type(x) is Tensor and type(x._data) is Value and x._data in self.owned
        atom = x._data if own else self.atom(op, x)
        if not isinstance(x, Tensor) or atom not in self.tainted or not grad_enabled.get():
            return atom
        if x._requires_grad:
            return atom if x.grad_fn is not None else self._as_leaf(x, atom)
        return self.emit(STOP_GRADIENT, (atom,), atom.aval, {})[0]

    def _as_leaf(self, leaf: Tensor, atom: Atom) -> Atom:
        """``atom``, the contents of ``leaf``; gradients end at the leaf, also after it was updated without history."""
        known = self.lifted.get(id(leaf))
        if known is None or known[2] is atom:
            return atom
        assert isinstance(atom, Value)
        new = self.emit(STOP_GRADIENT, (atom,), atom.aval, {})[0]
        return self.emit(UPDATED, (known[2], new), atom.aval, {})[0]

    def current(self, tensor: Tensor) -> Any:
        data = tensor._data
        if type(data) is Value:
            if data not in self.owned and not traced_constants.fill_constant(tensor):
                raise LeakedTracerError(
                    f"a tensor {tensor.aval} that was made while tracing another @jit call is used while tracing "
                    f"{self.name!r}. It escaped through a global, an attribute or a list; return it instead."
                )
            if data in self.owned:
                return data
        written = self.written.get(id(tensor))
        if written is not None:
            return written[1]
        if tensor.grad_fn is not None and tensor._requires_grad and id(tensor) not in self.lifted:
            self.alive.append(tensor)
        return self.lift(tensor, SourceKind.TENSOR)

    def write(self, target: Tensor, value: Any) -> None:
        atom = self.atom(STOP_GRADIENT, value)
        if isinstance(atom, Literal):
            raise TraceError("in-place change to a number: pass a tensor")
        above = self.views_above(target)
        self.reshapes.before_change(target, self.current(above[0].parent if above else target), self.nodes)
        self._keep_histories(target)
        self._rebind(target, atom)
        target._storage.bump()
        self._propagate(target, isinstance(value, Tensor) and value._requires_grad)

    def _keep_histories(self, target: Tensor) -> None:
        """Before a write to ``target``: the histories of it and its views, if they are from outside the trace."""
        for t in (target, *target._storage.others(target)):
            if type(t._data) is not Value or id(t) in self.lifted:
                self.histories.setdefault(id(t), (t, (t.grad_fn, t._out_index, t._requires_grad)))

    def restore_histories(self) -> None:
        """Give tensors from outside the trace the histories that they had before it; ``moved`` has the others."""
        for key, (t, history) in self.histories.items():
            if (t.grad_fn, t._out_index, t._requires_grad) != history:
                self.moved[key] = edge_of(t)
                t.grad_fn, t._out_index, t._requires_grad = history

    def _rebind(self, target: Tensor, value: Value) -> None:
        if type(target._data) is Value:
            target._data = value
        else:
            self.current(target)  # lifts it, so that the program knows its place
            self.written[id(target)] = (target, value)

    def constant(self, array: np.ndarray[Any, Any]) -> Tensor:
        self.alive.append(array)
        if array.ndim == 0:
            literal = Literal(array.item(), array.dtype)
            return Tensor(self.emit(ASTYPE, (literal,), literal.aval, {"dtype": array.dtype})[0])
        return Tensor(self.lift(array, SourceKind.CONSTANT))

    def constant_number(self, number: Any) -> Tensor:
        """A 0-d tensor of a Python or NumPy number."""
        return self.constant(np.asarray(number))

    def read_grad(self, tensor: Tensor) -> Tensor | None:
        known = self.grads.get(id(tensor))
        if known is not None:
            return known[1]
        if type(tensor._data) is Value and id(tensor) not in self.lifted:
            return tensor._grad
        before, source = tensor._grad, self.source_of(tensor)
        self.grads_read[id(tensor)] = (tensor, before is not None)
        result = None
        if before is not None:
            result = Tensor(self.add_input(before.aval, InputSource(SourceKind.GRADIENT, source)))
        self.grads[id(tensor)] = (tensor, result)
        return result

    def write_grad(self, tensor: Tensor, grad: Tensor | None) -> None:
        if type(tensor._data) is Value and id(tensor) not in self.lifted:
            tensor._grad = grad
        else:
            self.source_of(tensor)
            self.grads[id(tensor)] = (tensor, grad)

    def explain_missing_value(self, tensor: Tensor, what: str) -> Exception:
        value = self.current(tensor)
        names = Names()
        for v in self.inputs:
            names(v)
        line = ""
        for node in self.nodes:
            text = format_node(node, names)
            if any(out is value for out in node.outs):
                line = f"    {text}\n"
        return TracedValueError(
            f"{what} needs the value of an array that is only being traced: {tensor.aval}, "
            f"at {Origin.capture().full()}\n{line}"
            "@jit runs the function once per input shape, with no data in it. Use jitgrad.where(cond, a, b) for a choice "
            "per element, pass Python values through static_argnames, move this line out of the @jit function, or use "
            '@jit(fallback="eager").'
        )

    # --- views ---------------------------------------------------------------------------------------------------

    def _remember_view(self, view: View) -> None:
        tensor = view.tensor()
        assert tensor is not None
        if view.op is RESHAPE:
            above = self.views_above(view.parent)
            self.alive += [view.parent, tensor._storage]
            if not self.reshapes.shares(view, above, self.current(above[0].parent if above else view.parent)):
                self.reshapes.copies[id(tensor)] = view, self.current(tensor)
                return  # eager copies
        tensor._storage = view.parent._storage
        tensor._storage.share(view.parent, tensor, view.op, view.attrs)
        self.alive.append(view.parent)
        self.views.setdefault(id(view.parent._storage), []).append(view)

    def _propagate(self, changed: Tensor, flows: bool) -> None:
        """After a write to ``changed``: write through to what it is a view of, then refresh the other live views.

        ``flows``: gradients flow to the new value. The old parts keep theirs.
        """
        family = self.views.get(id(changed._storage))
        if not family:
            return
        child, value = changed, self._cut_unless(flows, self.current(changed))
        while (view := self.view_of(child)) is not None:
            writer = WRITERS.get(view.op.name, _same if view.op is STOP_GRADIENT else None)
            if writer is None:
                raise TraceError(
                    f"in-place change at {Origin.capture().full()} of a tensor {child.aval} that is a view made by "
                    f"{view.op}: @jit cannot write through it. Change the base tensor with base[...] = value."
                )
            base = self._cut_unless(view.parent._requires_grad, self.current(view.parent))
            token = grad_enabled.set(False)  # the caller moves the histories
            try:
                value = self.current(writer(Tensor(base), Tensor(value), view.attrs))
            finally:
                grad_enabled.reset(token)
            self._rebind(view.parent, value)
            child = view.parent
        for view in family:
            tensor = view.tensor()
            if tensor is not None and tensor is not changed:
                parent = self.current(view.parent)
                tensor._data = self.emit(view.op, (parent,), tensor.aval, view.attrs)[0]

    def _cut_unless(self, flows: bool, value: Value) -> Value:
        if flows or value not in self.tainted:
            return value
        return self.emit(STOP_GRADIENT, (value,), value.aval, {})[0]

    def view_of(self, tensor: Tensor) -> View | None:
        """What ``tensor`` was made a view of by an op of this trace."""
        family = self.views.get(id(tensor._memory), ())
        return next((v for v in family if v.tensor() is tensor), None)

    def views_above(self, tensor: Tensor) -> list[View]:
        """The views that lead to ``tensor``, from the tensor that has the memory on."""
        views: list[View] = []
        while (view := self.view_of(tensor)) is not None:
            views.insert(0, view)
            tensor = view.parent
        return views

    def copy_of(self, tensor: Tensor) -> View | None:
        """The reshape that made ``tensor``, if eager copies and neither has been changed since."""
        view, value = self.reshapes.copies.get(id(tensor), (None, None))
        if view is None or view.tensor() is not tensor or self.current(tensor) is not value:
            return None
        above = self.views_above(view.parent)
        known = self.lifted.get(id(above[0].parent if above else view.parent))
        return view if known is not None and self.current(known[0]) is known[2] else None

    def outside(self, tensor: Tensor) -> tuple[InputSource, bool] | None:
        """Where ``tensor`` comes from, if that is outside of the trace, and whether it was changed in place since."""
        known = self.lifted.get(id(tensor))
        return None if known is None else (known[1], self.current(tensor) is not known[2])

    # --- the result ----------------------------------------------------------------------------------------------

    def graph(self, outputs: tuple[Atom, ...]) -> Graph:
        return Graph(self.name, tuple(self.inputs), tuple(self.nodes), outputs)


def _same(_base: Tensor, new: Tensor, _attrs: Mapping[str, Any]) -> Tensor:
    """What a write through ``detach()`` makes of the base."""
    return new
