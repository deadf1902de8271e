"""Tensors for which eager execution has numbers: a trace knows which, and what they are asked."""

from __future__ import annotations

from typing import Any

from jitgrad.compiler.memory_orders import MemoryOrders
from jitgrad.compiler.runtime_number import value_needed
from jitgrad.core.ir import Atom, Value
from jitgrad.core.tensor import Tensor


class NumberClasses:
    """What a trace knows of number arguments.

    Attributes:
        numbers: the arguments and results of these alone.
        scalars: positions and values of the arguments.
        values_needed: positions of those whose value the function asked for.
        orders: what the trace knows of arrays.
    """

    orders: MemoryOrders

    def __init__(self) -> None:
        self.numbers: set[Atom] = set()
        self.scalars: dict[Atom, tuple[int, Any]] = {}
        self.values_needed: set[int] = set()

    def stands_for_number(self, tensor: Tensor) -> bool:
        return type(tensor._data) is Value and tensor._data in self.numbers

    def like_number(self, tensor: Tensor) -> Any:
        """A number of the class that eager execution has for ``tensor``; None if it is a tensor or an array there."""
        known = self.scalars.get(tensor._data) if type(tensor._data) is Value else None
        return known[1] if known is not None else tensor.dtype.type(0) if self.stands_for_number(tensor) else None

    def need_class(self, tensor: Tensor | None) -> None:
        """Remember that the function asks for the class of ``tensor``, or of what it computed if that is None."""
        if tensor is None or value_needed(self, tensor._data, "type()") is None:
            self.orders.ask_class()
