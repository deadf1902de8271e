"""Which tensors from outside a trace have another ``requires_grad`` after it than before."""

from __future__ import annotations

from collections.abc import Collection, Iterator

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

    def before_change(self, tensor: Tensor) -> None:
        if type(tensor._data) is not Value or id(tensor) in self._inputs:
            self._before.setdefault(id(tensor), (tensor, tensor._requires_grad, Origin.capture()))

    def changed(self) -> Iterator[tuple[Tensor, Origin]]:
        """The tensors with another flag than before, and where it was first changed."""
        for tensor, before, origin in self._before.values():
            if tensor._requires_grad is not before:
                yield tensor, origin

    def restore(self) -> None:
        for tensor, before, _ in self._before.values():
            tensor._requires_grad = before
