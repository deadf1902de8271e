"""What a traced function asks of the memory of tensors: the order of their axes, and whether they are elements of others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jitgrad.compiler.input_source import InputSource, SourceKind
from jitgrad.core.ir import Atom, Literal, TraceNode, Value
from jitgrad.core.storage import Lineage, is_in_order
from jitgrad.core.tensor import Tensor
from jitgrad.ops import arithmetic, rounding, transcendental
from jitgrad.ops.views import is_element_view, is_view

Question = Callable[[Lineage | None], bool]
# the operators of Python: of NumPy scalars they make NumPy scalars, other functions make tensors
_OPERATORS = frozenset(
    [
        arithmetic.ADD, arithmetic.SUBTRACT, arithmetic.MULTIPLY, arithmetic.DIVIDE, arithmetic.NEGATIVE, arithmetic.ABS,
        rounding.FLOOR_DIVIDE, rounding.REMAINDER, transcendental.POW,
    ]
)  # fmt: skip


_NAMES: Mapping[Question, str] = {is_in_order: "is_in_order", is_element_view: "is_element", is_view: "is_view"}


class MemoryOrders:
    """The answers of one trace to ``is_contiguous()`` and ``x += y``, which later calls compare.

    An argument may be a view of another tensor in one call and not in the next; the tensor that stands for it in the trace
    is none.

    Attributes:
        arguments: the flat arguments of the call.
        outer: of the trace in which this one is nested.
        answers: by the argument or outside tensor that decided, and the question.
        asked_class: whether the function asked for the class of an array, for which a tensor stands.
    """

    def __init__(self, lifted: Mapping[int, tuple[Any, InputSource, Any]], nodes: Sequence[TraceNode]) -> None:
        self._lifted = lifted
        self._nodes = nodes
        self._scalars: set[Atom] = set()  # what operators made of `_operands` alone
        self._operands: set[Atom] = set()  # arrays without axes, NumPy scalars, and `_scalars`
        self._followed: int = 0  # the nodes that have been looked at for that
        self.arguments: Sequence[Any] = ()
        self.outer: MemoryOrders | None = None
        self.answers: dict[tuple[InputSource, Question], bool] = {}
        self.asked_class: bool = False

    def is_in_order(self, tensor: Tensor) -> bool:
        """Whether eager execution says that ``tensor`` is no view in another order, or of a part of a tensor."""
        root = tensor
        while id(root) not in self._lifted and root._view is not None and (owner := root._view.root()) is not None:
            root = owner
        own = is_in_order(tensor._view)
        return self._of_input(root, is_in_order, True) and own if id(root) in self._lifted else own

    def is_element(self, tensor: Tensor) -> bool:
        """Whether eager execution has an element of a tensor, or a NumPy scalar, for ``tensor``, which has no axes."""
        if type(tensor._data) is not Value:  # a tensor outside, which is one as long as it exists, or is none
            return is_element_view(tensor._view)
        if id(tensor) in self._lifted:
            return self._of_input(tensor, is_element_view, False)
        return is_element_view(tensor._view) or self.is_made_scalar(tensor)

    def is_view(self, tensor: Tensor) -> bool:
        """Whether eager execution has a view of another tensor for ``tensor``."""
        known = id(tensor) in self._lifted
        return self._of_input(tensor, is_view, False) if known else is_view(tensor._view)

    def array_of(self, tensor: Tensor) -> Any:
        """An array or NumPy scalar like that which eager execution may have for ``tensor``, if the call has any; else None."""
        known = self._lifted.get(id(tensor))
        if known is not None and known[1].kind is SourceKind.ARGUMENT and self.arguments:
            argument = self.arguments[known[1].key]
            return argument if isinstance(argument, np.ndarray) else None
        if self.outer is not None:
            return self.outer.array_of(tensor)
        if known is not None or type(tensor._data) is not Value:
            return None
        array = next((x for x in self.arguments if isinstance(x, np.ndarray)), None)  # it may be computed of that
        return tensor.dtype.type(0) if self.is_made_scalar(tensor) or (array is not None and not tensor.shape) else array

    def ask_class(self) -> None:
        """Note that the function asks for the class of what may be an array, for which a tensor stands."""
        self.asked_class |= any(not isinstance(x, Tensor) for x in self.arguments)
        if self.outer is not None:
            self.outer.ask_class()

    def add_array(self, tensor: Tensor) -> None:
        """Note that ``tensor`` stands for an array without axes or a NumPy scalar of the call."""
        self._operands.add(tensor._data)

    def is_made_scalar(self, tensor: Tensor) -> bool:
        """Whether operators made ``tensor`` of NumPy scalars and arrays without axes: eager execution has a NumPy scalar."""
        if self._operands:
            for node in self._nodes[self._followed :]:
                of_scalars = node.op in _OPERATORS and not self._operands.isdisjoint(node.ins)
                if of_scalars and all(atom in self._operands or atom.aval.weak or type(atom) is Literal for atom in node.ins):
                    self._scalars.update(node.outs)
                    self._operands.update(node.outs)
            self._followed = len(self._nodes)
        return tensor._data in self._scalars

    def _of_input(self, tensor: Tensor, question: Question, of_arrays: bool) -> bool:
        """The answer of what ``tensor`` stands for; ``of_arrays``: that of an array, or of what a transform makes."""
        _, source, _ = self._lifted[id(tensor)]
        outside = tensor
        if source.kind is SourceKind.ARGUMENT:
            if self.arguments and isinstance(self.arguments[source.key], np.generic):
                return question is is_element_view
            if not self.arguments or not isinstance(self.arguments[source.key], Tensor):
                return of_arrays
            outside = self.arguments[source.key]
        if self.outer is not None:
            return bool(getattr(self.outer, _NAMES[question])(outside))
        return self.answers.setdefault((source, question), question(outside._view))
