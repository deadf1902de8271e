"""Tracing: the interpreter under which ops are recorded as TraceNodes instead of run."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

import numpy as np

from jitgrad.compiler.constant_values import known_contents, missing_value, raise_leaked
from jitgrad.compiler.decisions import Decisions
from jitgrad.compiler.input_source import InputSource, SourceKind
from jitgrad.compiler.memory_orders import MemoryOrders
from jitgrad.compiler.number_classes import NumberClasses
from jitgrad.compiler.replaced_data import assign_data
from jitgrad.compiler.requires_grad_flags import RequiresGradFlags
from jitgrad.compiler.reshape_views import ReshapeViews, View, repeats
from jitgrad.compiler.runtime_number import RuntimeNumber, argument_number, aval_of_number, check_operands, value_needed
from jitgrad.core import traced_constants
from jitgrad.core.aval import Aval, Count
from jitgrad.core.context import grad_enabled, unrecorded
from jitgrad.core.device_array import DeviceArray
from jitgrad.core.dispatch import aval_of
from jitgrad.core.errors import TraceError
from jitgrad.core.ir import Atom, Graph, Literal, TraceNode, Value
from jitgrad.core.number_range import check_complex, check_numbers
from jitgrad.core.op import OpDef
from jitgrad.core.origin import Origin
from jitgrad.core.tape_node import Edge, History, Node, edge_of, next_sequence, record
from jitgrad.core.tensor import Donated, Tensor
from jitgrad.ops.arithmetic import ASTYPE
from jitgrad.ops.identity import ALIAS, STOP_GRADIENT, UPDATED
from jitgrad.ops.movement import RESHAPE
from jitgrad.ops.views import WRITERS


class Trace(NumberClasses):
    """Records every op applied under it. Touched outside Tensors become inputs; their changes are kept here."""

    tracing = True

    def __init__(self, name: str, device: str = "cpu") -> None:
        super().__init__()
        self.name = name
        self.since: int = next_sequence()  # the nodes of its tensors have higher numbers
        self.generator_states: list[Tensor] = []  # may be on the host, whatever the device
        self.device: str = device  # "cuda" once a tensor on that device was seen
        self.nodes: list[TraceNode] = []
        self.inputs: list[Value] = []
        self.sources: list[InputSource] = []
        self.owned: set[Value] = set()
        self.tainted: set[Atom] = set()  # values that depend on a tensor that requires grad
        self.lifted: dict[int, tuple[Any, InputSource, Value]] = {}
        self.flags: RequiresGradFlags = RequiresGradFlags(self.lifted)
        self.orders: MemoryOrders = MemoryOrders(self.lifted, self.nodes)
        self.written: dict[int, tuple[Tensor, Value]] = {}
        self.replaced: set[int] = set()  # ids of tensors whose data was assigned: they get other memory
        self.grads: dict[int, tuple[Tensor, Tensor | None]] = {}
        self.grads_read: dict[int, tuple[Tensor, Tensor | None]] = {}  # what the first look at them gave
        self.views: dict[int, list[View]] = {}  # by the id of the root tensor's storage
        self.reshapes: ReshapeViews = ReshapeViews()
        self.histories: dict[int, tuple[Tensor, History]] = {}  # before the function, of what it changes in place
        self.moved: dict[int, Edge] = {}  # where gradients of those go that have another one, by their ids
        self.leaves: dict[int, Atom] = {}  # values with the histories of what leaves stand for, by their ids
        self.before: dict[Edge, Atom] = {}  # results of nodes before they were changed in place, by node
        self.has_numbers: bool = False  # whether an argument is a RuntimeNumber
        self.relied: list[tuple[np.ndarray[Any, Any] | Tensor, Origin]] = []  # whose elements decided what was recorded
        self.decisions: Decisions = Decisions()
        self.alive: list[Any] = []  # keeps objects alive whose id is a key above

    # --- inputs --------------------------------------------------------------------------------------------------

    def add_input(self, aval: Aval, source: InputSource, requires_grad: bool = False) -> Value:
        value = self.own(Value(aval))
        self.inputs.append(value)
        self.sources.append(source)
        if requires_grad:
            self.tainted.add(value)
        return value

    def argument(self, position: int, aval: Aval, requires_grad: bool = False) -> Tensor:
        """A leaf Tensor that stands for the flat argument number ``position``."""
        source = InputSource(SourceKind.ARGUMENT, position)
        return self._argument_tensor(self.add_input(aval, source, requires_grad), source, requires_grad)

    def stand_in(self, source: InputSource, outside: Tensor) -> Tensor:
        """A Tensor that stands for ``outside``, an argument or a gradient, which comes from ``source``.

        If that has a history, so has the result, which may therefore be changed in place: one that
        leads to a leaf of the trace.
        """
        wanted = outside._requires_grad
        leaf = self._argument_tensor(self.add_input(outside.aval, source, wanted), source, wanted)
        leaf._grad, leaf._hooks = outside._grad, outside._hooks and [*outside._hooks]
        if outside.grad_fn is None or not outside._requires_grad:
            return leaf
        computed = self._argument_tensor(leaf._data, source, True)
        computed._grad, computed.grad_fn = outside._grad, Node(UPDATED, (leaf, leaf), {}, (computed,), (leaf, None))
        return computed

    def _argument_tensor(self, value: Value, source: InputSource, requires_grad: bool) -> Tensor:
        tensor = Tensor(value)
        tensor._requires_grad = requires_grad
        self.lifted[id(tensor)] = (tensor, source, value)
        return tensor

    def number_argument(self, position: int, number: int | float) -> RuntimeNumber:
        """A number that stands for ``number``, the flat argument number ``position``."""
        self.has_numbers = True
        self.numbers.add(value := self.add_input(aval_of_number(number), InputSource(SourceKind.ARGUMENT, position)))
        self.scalars[value] = position, number
        return argument_number(value, position)

    def own(self, value: Value) -> Value:
        self.owned.add(value)
        return value

    def lift(self, x: Any, kind: SourceKind) -> Value:
        """The input Value for an object from outside the trace."""
        if (known := self.lifted.get(id(x))) is None:
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
            return x.value if x.value in self.owned else raise_leaked("a number", self.name)
        if isinstance(x, np.ndarray):
            return self.lift(x, SourceKind.ARRAY)
        if isinstance(x, np.generic):
            return Literal(x.item(), x.dtype)
        return Literal(int(x), shape_derived=True) if isinstance(x, Count) else Literal(x)

    # --- the Interpreter protocol --------------------------------------------------------------------------------

    def apply(self, op: OpDef, operands: tuple[Any, ...], attrs: Mapping[str, Any]) -> Any:
        avals = [x.aval if type(x) is Tensor else aval_of(op, x) for x in operands]
        if not op.takes_complex:
            check_complex(op, avals)
        expected = op.abstract(avals, attrs)
        check_numbers(op, operands, avals, attrs)
        if self.has_numbers:
            check_operands(op, operands, avals, attrs)
        atoms = tuple([self._operand(op, x) for x in operands])
        values = self.emit(op, atoms, expected, attrs)
        if self.numbers and values[0].aval.weak and all(atom in self.numbers or type(atom) is Literal for atom in atoms):
            self.numbers.update(values)
        outs = tuple([Tensor(value) for value in values])
        # without elements there is nothing to share, but a broadcast is read-only
        if op.views and isinstance(operands[0], Tensor):
            view = View(weakref.ref(outs[0]), operands[0], op, attrs)
            if outs[0].size or repeats([*self.views_above(operands[0]), view]):
                self.remember_view(view)
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
        """The atom of ``x``, from which gradients flow through the graph to where they flow through the tape."""
        own = type(x) is Tensor and type(x._data) is Value and x._data in self.owned
        atom = x._data if own else self.atom(op, x)
        return self.with_history(atom, x) if isinstance(x, Tensor) and grad_enabled.get() else atom

    def with_history(self, atom: Atom, x: Tensor) -> Atom:
        """``atom``, the contents of ``x``, with the history of ``x`` in the graph.

        They differ if ``x`` was detached or made under no_grad, or has been changed without
        history: then it has the new numbers, and the gradient of what it was before.
        """
        return self.flowing(atom, edge_of(x)) if x._requires_grad else self._cut(atom)

    def flowing(self, atom: Atom, edge: Edge) -> Atom:
        """``atom`` if gradients flow from it to ``edge`` in the graph; else made so."""
        if isinstance(edge, Tensor):
            known = self.lifted.get(id(edge))
            before = self.leaves.get(id(edge)) if known is None else known[2]
            if before is None:
                return self._cut(atom)
        else:
            before = self.before.get(edge, atom)
        if before is atom:
            return atom
        return self.emit(UPDATED, (before, self._cut(atom)), atom.aval, {})[0]

    def _cut(self, atom: Atom) -> Atom:
        return self.emit(STOP_GRADIENT, (atom,), atom.aval, {})[0] if atom in self.tainted else atom

    def current(self, tensor: Tensor) -> Any:
        data = tensor._data
        if type(data) is Value:
            if data not in self.owned and not traced_constants.fill_constant(tensor):
                raise_leaked(f"a tensor {tensor.aval}", self.name)
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
        if not target.shape and self.orders.array_of(target) is not None:
            self.orders.ask_class()  # eager execution may have a NumPy scalar, of which other names keep their value
        above = self.views_above(target)
        self.reshapes.before_change(target, above, self.current(above[0].parent if above else target), self.nodes)
        self._keep_histories(target)
        self.rebind(target, atom)
        target._storage.bump()
        self._propagate(target)
        self.reshapes.after_change(target._storage, self.current(above[0].parent if above else target))

    def replace(self, target: Tensor, new: Tensor) -> None:
        self._keep_histories(target)
        assign_data(self, target, new)
        target._storage.bump()

    def _keep_histories(self, target: Tensor) -> None:
        """Before a write to ``target``: the histories of it and its views, and what has them in the graph."""
        for t in (target, *target._storage.others(target)):
            if type(t._data) is not Value or id(t) in self.lifted:
                self.histories.setdefault(id(t), (t, (t.grad_fn, t._out_index, t._requires_grad)))
            if (t is target or self.knows(t)) and t.grad_fn is not None:
                self.before.setdefault((t.grad_fn, t._out_index), self.current(t))

    def take_over(self, target: Tensor, source: Tensor) -> None:
        """``target``, which has the contents of ``source``, gets its history as well; a leaf stands for it."""
        value = self.current(source)
        self.rebind(target, value)
        if target._requires_grad and target.grad_fn is None:
            self.alive.append(target)
            self.leaves[id(target)] = self.with_history(value, source)

    def knows(self, tensor: Tensor) -> bool:
        """Not what an earlier trace has left, or this one has not used."""
        return id(tensor) in self.lifted or (type(tensor._data) is Value and tensor._data in self.owned)

    def share(self, tensor: Tensor, view: Tensor) -> None:
        self.remember_view(View(weakref.ref(view), tensor, ALIAS, {}))

    def restore_histories(self) -> None:
        """Give tensors from outside the trace the histories that they had before it; ``moved`` has the others."""
        for key, (t, history) in self.histories.items():
            if (t.grad_fn, t._out_index, t._requires_grad) != history:
                self.moved[key] = edge_of(t)
                t.grad_fn, t._out_index, t._requires_grad = history

    def rebind(self, target: Tensor, value: Value) -> None:
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
        before, source = tensor._grad, InputSource(SourceKind.GRADIENT, self.source_of(tensor))
        result = None if before is None else self.stand_in(source, before)
        self.grads[id(tensor)] = self.grads_read[id(tensor)] = (tensor, result)
        return result

    def write_grad(self, tensor: Tensor, grad: Tensor | None) -> None:
        if type(tensor._data) is Value and id(tensor) not in self.lifted:
            tensor._grad = grad
        else:
            self.source_of(tensor)
            self.grads[id(tensor)] = (tensor, grad)

    def known_value(self, tensor: Tensor, what: str) -> Any:
        return known_contents(self, tensor, what)

    def rely_on(self, source: np.ndarray[Any, Any] | Tensor) -> None:
        self.relied.append((source, Origin.capture()))

    def draw(self, _generator: Any, _shape: Any, _per_element: int) -> Any:
        return None

    def explain_missing_value(self, tensor: Tensor, what: str) -> Exception:
        value = self.current(tensor)
        return value_needed(self, value, what) or missing_value(self.graph(()), value, tensor, what)

    # --- views ---------------------------------------------------------------------------------------------------

    def remember_view(self, view: View) -> None:
        tensor = view.tensor()
        assert tensor is not None
        if view.op is RESHAPE:
            above = self.views_above(view.parent)
            self.alive += [view.parent, tensor._storage]
            if not self.reshapes.shares(view, above, held := self.current(above[0].parent if above else view.parent)):
                self.reshapes.copies[id(tensor)] = view, self.current(tensor), held
                return  # eager copies
        if view.op is not ALIAS:  # which has that storage
            tensor._storage = view.parent._storage
            tensor._storage.share(view.parent, tensor, view.op, view.attrs)
        self.alive.append(view.parent)
        self.views.setdefault(id(view.parent._storage), []).append(view)

    def _propagate(self, changed: Tensor) -> None:
        """After a write to ``changed``: write through to what it is a view of, then refresh the other live views.

        The caller moves their histories.
        """
        if not (family := self.views.get(id(changed._storage))):
            return
        child, value = changed, self.current(changed)
        while (view := self.view_of(child)) is not None:
            whole = view.op in (STOP_GRADIENT, ALIAS)
            if (writer := (lambda _base, new, _attrs: new) if whole else WRITERS.get(view.op.name)) is None:
                raise TraceError(
                    f"in-place change at {Origin.capture().full()} of a tensor {child.aval} that is a view made by "
                    f"{view.op}: @jit cannot write through it. Change the base tensor with base[...] = value."
                )
            with unrecorded():
                value = self.current(writer(Tensor(self.current(view.parent)), Tensor(value), view.attrs))
            self.rebind(view.parent, value)
            child = view.parent
        for view in family:
            tensor = view.tensor()
            if tensor is not None and tensor is not changed and tensor._storage is changed._storage:
                parent = self.current(view.parent)
                tensor._data = self.emit(view.op, (parent,), tensor.aval, view.attrs)[0]

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
        view, value, held = self.reshapes.copies.get(id(tensor), (None, None, None))
        if view is None or view.tensor() is not tensor or self.current(tensor) is not value:
            return None
        above = self.views_above(view.parent)
        known = self.lifted.get(id(above[0].parent if above else view.parent))
        return view if known is not None and self.current(known[0]) is held else None

    def graph(self, outputs: tuple[Atom, ...]) -> Graph:
        return Graph(self.name, tuple(self.inputs), tuple(self.nodes), outputs)
