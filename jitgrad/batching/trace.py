"""The trace of a function of one example, nested in whatever runs `vmap`: eager execution, @jit or another vmap."""

from __future__ import annotations

from typing import Any

from jitgrad.batching.array_run import ArrayRun
from jitgrad.compiler.input_source import InputSource, SourceKind
from jitgrad.compiler.nested_trace import NestedTrace
from jitgrad.core.aval import Aval, Shape
from jitgrad.core.context import Interpreter, current_interpreter, grad_enabled
from jitgrad.core.errors import ArgumentError, InPlaceError, RandomnessError, TracedValueError
from jitgrad.core.ir import Atom, Value
from jitgrad.core.origin import Origin
from jitgrad.core.tape_node import edge_of
from jitgrad.core.tensor import Tensor
from jitgrad.ops.random import Generator


class ExampleTrace(NestedTrace):
    """Records what the function does with one of ``size`` examples.

    Tensors from outside are the same for all examples. ``contents`` has what each input stands for:
    a tensor with the examples along axis 0 if it is in ``mapped``, or an operand that is the same for all.
    """

    def __init__(self, name: str, size: int, randomness: str, outer: Interpreter) -> None:
        super().__init__(name, outer)
        self.size = size
        self.randomness = randomness
        self.mapped: set[Value] = set()
        self._drawn: dict[int, Tensor] = {}  # states of generators that numbers were drawn from outside, by their ids
        self._known: ArrayRun | None = None

    # --- inputs ----------------------------------------------------------------------------------

    def example_of(self, position: int, whole: Tensor) -> Tensor:
        """A Tensor for one example of ``whole``, the flat argument number ``position``, along its axis 0."""
        aval = Aval(whole.shape[1:], whole.dtype)
        if whole.device != "cpu":
            self.device: str = whole.device
        tensor = self.argument(position, aval, whole._requires_grad)
        self.contents[tensor._data] = whole
        self.mapped.add(tensor._data)
        return tensor

    def lift(self, x: Any, kind: SourceKind) -> Value:
        if id(x) in self._drawn:
            raise RandomnessError(
                f"vmap of {self.name!r} at {Origin.capture().full()} reads the state of a generator that it also draws "
                "from: numbers of all examples are drawn together. Read the state outside of vmap"
            )
        return super().lift(x, kind)

    # --- gradients of leaves ---------------------------------------------------------------------

    def read_grad(self, tensor: Tensor) -> Tensor | None:
        if id(tensor) in self.grads:
            return self.grads[id(tensor)][1]
        return tensor._grad if self.is_own(tensor) else self.outer.read_grad(tensor)

    def write_grad(self, tensor: Tensor, grad: Tensor | None) -> None:
        if not self.is_own(tensor):
            raise InPlaceError(
                f"vmap of {self.name!r} at {Origin.capture().full()} changes the gradient of a tensor {tensor.aval} from "
                "outside, as backward() does: every example has its own. Use jitgrad.grad in the function"
            )
        if type(tensor._data) is Value and id(tensor) not in self.lifted:
            tensor._grad = grad
        else:
            self.grads[id(tensor)] = (tensor, grad)

    # --- random numbers --------------------------------------------------------------------------

    def draw(self, generator: Generator, shape: Shape, per_element: int) -> tuple[Tensor, ...] | None:
        """Random bits of ``shape`` for an example; None if the generator is the function's own.

        Raises:
            RandomnessError: it was not said whether examples get the same numbers, or the generator's
                state is part of what is recorded.
        """
        state = generator.state
        if self.is_own(state):
            return None  # it starts anew for each example
        if self.randomness == "error":
            raise RandomnessError(
                f"vmap of {self.name!r} at {Origin.capture().full()} draws random numbers. Say which: "
                'vmap(..., randomness="different") for others in each example, randomness="same" for the same in all; or draw '
                "them outside of vmap and pass them as an argument"
            )
        if current_interpreter.get() is not self or id(state) in self.lifted:
            raise RandomnessError(
                f"vmap of {self.name!r} at {Origin.capture().full()} draws random numbers inside checkpoint, or from a "
                "generator whose state it reads or sets. Draw them outside of vmap, and pass them as an argument"
            )
        self._drawn[id(state)] = state
        different = self.randomness == "different"
        with self.in_outer():
            drawn = generator.bits((self.size, *shape) if different else shape, per_element)
        return tuple([self._drawn_input(bits, shape, different) for bits in drawn])

    def _drawn_input(self, bits: Tensor, shape: Shape, different: bool) -> Tensor:
        value = self.add_input(Aval(shape, bits.dtype), InputSource(SourceKind.TENSOR, bits))
        self.contents[value] = bits
        if different:
            self.mapped.add(value)
        return Tensor(value)

    # --- values ----------------------------------------------------------------------------------

    def known_value(self, tensor: Tensor, what: str) -> Any:
        """The contents of a tensor that is the same for all examples, if it has any; None for others."""
        value = self.current(tensor)
        if self._known is None:
            self._known = ArrayRun(self)
        token = grad_enabled.set(False)
        try:
            whole, mapped = self._known.value_of(value)
        finally:
            grad_enabled.reset(token)
        if mapped:
            return None
        with self.in_outer():
            return whole.concrete(what)

    def explain_missing_value(self, tensor: Tensor, what: str) -> Exception:
        return TracedValueError(
            f"{what} needs the value of a tensor {tensor.aval} at {Origin.capture().full()}, which differs between the "
            f"examples of vmap: {self.name!r} runs once for all of them. Use jitgrad.where(cond, a, b) for a choice per "
            "example, and an axis of fixed length for a number of elements that depends on values"
        )

    # --- the end ---------------------------------------------------------------------------------

    def result(self, x: Any) -> Atom:
        """The atom of a result of the function, from which gradients flow as they do from ``x`` on the tape."""
        try:
            tensor = x if isinstance(x, Tensor) else self.constant_number(x)
        except (TypeError, ValueError):
            tensor = None
        if tensor is None or tensor.dtype.kind not in "biufc":
            raise ArgumentError(f"vmap: {self.name!r} returned a {type(x).__name__}: results are tensors, arrays and numbers")
        atom: Atom = self.current(tensor)
        if not grad_enabled.get():
            return atom
        node = tensor.grad_fn
        if tensor._requires_grad and (node is None or node.edges is not None):
            return self.flowing(atom, edge_of(tensor))
        return self._cut(atom)

    def changes(self) -> list[tuple[Tensor, Value]]:
        """The tensors from outside that the function changed in place, with what they hold now.

        Raises:
            InPlaceError: a change is not the same for all examples, or has a history.
        """
        for tensor, _, value in self.lifted.values():
            if isinstance(tensor, Tensor) and self.is_own(tensor) and tensor._data is not value:
                raise InPlaceError(f"{self._in_place(tensor)}, an argument: change a .clone() of it")
        for tensor, _ in self.written.values():
            if id(tensor) in self.moved:
                raise InPlaceError(f"{self._in_place(tensor)} from outside with its history: return the new value instead")
            if any(type(t._data) is not Value for t in tensor._storage.others(tensor)):
                raise InPlaceError(f"{self._in_place(tensor)} from outside that shares its memory: return the new value instead")
        return list(self.written.values())

    def _in_place(self, tensor: Tensor) -> str:
        line = tensor._storage.changed_at.full()
        return f"vmap of {self.name!r} changes in place, at {line}, a tensor {tensor.aval}"

    def refuse_mapped(self, tensor: Tensor) -> InPlaceError:
        """The error for a change of ``tensor`` by values that differ between the examples."""
        return InPlaceError(
            f"{self._in_place(tensor)} from outside, which all examples share, by values that differ between them: return "
            "the new value, or pass a tensor with an axis of examples"
        )

