"""Which tensors from outside a trace have another ``requires_grad`` after it than before."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from jitgrad.core.errors import UnguardableError
from jitgrad.core.ir import Value
from jitgrad.core.origin import Origin
from jitgrad.core.tensor import Tensor


class RequiresGradFlags:
    """The flags of arguments and outside tensors before the traced function changed them.

    A function may freeze tensors for a part of a step. A change that stays would have to reach the caller's tensor before
    the program runs, which gives results their histories.
    """

    def __init__(self, inputs: Collection[int]) -> None:
        self._inputs = inputs  # ids of the tensors that stand for inputs of the trace
        self._before: dict[int, tuple[Tensor, bool, Origin]] = {}
        self.detached: list[Tensor] = []  # arguments that have lost their history for good

    def before_change(self, tensor: Tensor) -> None:
        if type(tensor._data) is not Value or id(tensor) in self._inputs:
            self._before.setdefault(id(tensor), (tensor, tensor._requires_grad, Origin.capture()))

    def before_detaching(self, tensor: Tensor) -> None:
        """``tensor``, which has a history, loses it in place. Raises UnguardableError if it is no argument of the function."""
        if type(tensor._data) is not Value:
            raise UnguardableError(
                f"detach_() at {Origin.capture().full()} of a tensor {tensor.aval} with history that is no argument of the @jit "
                "function: a later call would find it without. Pass it as an argument, or use .detach()."
            )
        if id(tensor) in self._inputs:
            self.detached.append(tensor)

    def changed(self) -> Iterator[tuple[Tensor, Origin]]:
        """The tensors with another flag than before, and where it was first changed."""
        for tensor, before, origin in self._before.values():
            if tensor._requires_grad is not before:
                yield tensor, origin

    def restore(self) -> None:
        for tensor, before, _ in self._before.values():
            tensor._requires_grad = before
