"""The current interpreter, grad mode and open tapes, per thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import Any, Protocol

from jitgrad.core.device_array import Device
from jitgrad.core.op import OpDef


class Interpreter(Protocol):
    """Evaluates ops: eager execution, or the recording of a trace."""

    tracing: bool
    device: str  # of what a trace computes
    generator_states: Any  # of generators that a trace draws from
    flags: Any  # notes which tensors get another `requires_grad`; None: no one asks
    orders: Any  # tells which tensors lie in memory in the order of their axes; None: their lineage does

    def apply(self, op: OpDef, operands: tuple[Any, ...], attrs: Mapping[str, Any]) -> Any:
        """The result Tensor(s) of ``op``; operands are Tensors, arrays and Python numbers."""

    def write(self, target: Any, value: Any) -> None:
        """Replace the contents of ``target`` in place by ``value`` of the same shape and dtype."""

    def replace(self, target: Any, new: Any) -> None:
        """Let ``target`` have the memory of ``new`` from now on, and leave its own to those who share it."""

    def take_over(self, target: Any, source: Any) -> None:
        """Note that ``target`` gets the history of ``source``, whose contents it has; a leaf stands for ``source``."""

    def knows(self, tensor: Any) -> bool:
        """Whether ``tensor`` has contents here, without becoming an input for that."""

    def share(self, tensor: Any, view: Any) -> None:
        """Note that ``view`` has the memory of ``tensor``, and a history of its own."""

    def constant(self, array: Any) -> Any:
        """A new Tensor that holds ``array``."""

    def read_grad(self, tensor: Any) -> Any:
        """``tensor.grad`` inside the running function."""

    def write_grad(self, tensor: Any, grad: Any) -> None:
        """Set ``tensor.grad`` inside the running function."""

    def stands_for_number(self, tensor: Any) -> bool:
        """Whether ``tensor`` stands for a Python number: an argument, or what Python arithmetic made of some."""

    def current(self, tensor: Any) -> Any:
        """The present contents of ``tensor``: an array, or a traced Value."""

    def known_value(self, tensor: Any, what: str) -> Any:
        """The array of a traced ``tensor``, if this interpreter can give one to the operation ``what``; else None."""

    def rely_on(self, array: Any) -> None:
        """What runs reads the elements of ``array`` itself: a trace is right for these alone."""

    def draw(self, generator: Any, shape: Any, per_element: int) -> Any:
        """What ``generator.bits(shape, per_element)`` gives, if a trace does not record how it is computed; else None."""

    def explain_missing_value(self, tensor: Any, what: str) -> Exception:
        """The error for the operation ``what``, which needs data that a trace does not have."""


class Untraced:
    """What interpreters that record no trace have in common: no tensor stands for something that is known later."""

    flags = None
    orders = None

    def read_grad(self, tensor: Any) -> Any:
        return tensor._grad

    def write_grad(self, tensor: Any, grad: Any) -> None:
        tensor._grad = grad

    def knows(self, _tensor: Any) -> bool:
        return False

    def share(self, _tensor: Any, _view: Any) -> None:
        """The memory itself is shared."""

    def stands_for_number(self, _tensor: Any) -> bool:
        return False

    def known_value(self, _tensor: Any, _what: str) -> None:
        """A traced tensor that outlives its trace has no value."""

    def rely_on(self, _array: Any) -> None:
        """What runs now reads the present elements."""

    def draw(self, _generator: Any, _shape: Any, _per_element: int) -> None:
        """Numbers are computed by ops."""


class CurrentInterpreter:
    """A ContextVar whose default is the eager interpreter, which registers itself."""

    __slots__ = ("_variable", "eager", "other")

    def __init__(self) -> None:
        self._variable: ContextVar[Interpreter | None] = ContextVar("current_interpreter", default=None)
        # the interpreter if it is not the eager one, else None: the quickest question
        self.other: Callable[[], Interpreter | None] = self._variable.get
        self.eager: Interpreter

    def get(self) -> Interpreter:
        return self._variable.get() or self.eager

    def before_write(self) -> None:
        """Let an interpreter whose ops wait run them, before someone writes to the array of a tensor."""
        if (run_waiting := getattr(self._variable.get(), "run_waiting", None)) is not None:
            run_waiting()

    def set(self, interpreter: Interpreter) -> Token[Interpreter | None]:
        return self._variable.set(interpreter)

    def reset(self, token: Token[Interpreter | None]) -> None:
        self._variable.reset(token)


current_interpreter: CurrentInterpreter = CurrentInterpreter()
grad_enabled: ContextVar[bool] = ContextVar("grad_enabled", default=True)
open_tapes: ContextVar[tuple[Any, ...]] = ContextVar("open_tapes", default=())
# Where ops without operands put their results: the host if None.
creation_device: ContextVar[Device | None] = ContextVar("creation_device", default=None)
anomaly_detection: ContextVar[bool] = ContextVar("anomaly_detection", default=False)
# Told of every whole adjoint in a backward pass: (node, which result, adjoint), or (leaf, -1, adjoint).
adjoint_observer: ContextVar[Callable[[Any, int, Any], None] | None] = ContextVar("adjoint_observer", default=None)
# Told of every traced tensor that is written as text, which has no elements then.
text_observer: ContextVar[Callable[[Any], None] | None] = ContextVar("text_observer", default=None)
# Counts the changes of Python state that the observer of a traced function has seen so far.
state_changes: ContextVar[Callable[[], int] | None] = ContextVar("state_changes", default=None)
TEXT_OF_TRACED = "<traced "  # in the text of every tensor without elements


def text_of_traced(aval: Any) -> str:
    """What stands for the elements in the text of a traced tensor."""
    if (tell := text_observer.get()) is not None:
        tell(aval)
    return f"{TEXT_OF_TRACED}{aval}>"


@contextmanager
def creating_on(device: Device | None) -> Iterator[None]:
    """Within it, ops without operands put their results on ``device``."""
    token = creation_device.set(device)
    try:
        yield
    finally:
        creation_device.reset(token)


@contextmanager
def recording_in(trace: Interpreter) -> Iterator[None]:
    """Within it, ops are recorded by ``trace``, and no tape or observer from outside sees them."""
    tokens = current_interpreter.set(trace), open_tapes.set(()), adjoint_observer.set(None)
    try:
        yield
    finally:
        adjoint_observer.reset(tokens[2])
        open_tapes.reset(tokens[1])
        current_interpreter.reset(tokens[0])


@contextmanager
def unrecorded() -> Iterator[None]:
    """Within it, ops have no history: what no_grad() does, without frames that guards follow and keep alive."""
    token = grad_enabled.set(False)
    try:
        yield
    finally:
        grad_enabled.reset(token)
