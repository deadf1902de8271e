"""Whether tensors lie in memory in the order of their axes, as a traced function asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jitgrad.compiler.input_source import InputSource, SourceKind
from jitgrad.core.storage import is_in_order
from jitgrad.core.tensor import Tensor


class MemoryOrders:
    """The answers of one trace to ``is_contiguous()``, which later calls compare.

    An argument may be a view of another tensor in one call and not in the next; the tensor that stands for it in the trace
    is none.

    Attributes:
        arguments: the flat arguments of the call.
        outer: of the trace in which this one is nested.
        answers: by the argument or outside tensor that decided.
    """

    def __init__(self, lifted: Mapping[int, tuple[Any, InputSource, Any]]) -> None:
        self._lifted = lifted
        self.arguments: Sequence[Any] = ()
        self.outer: MemoryOrders | None = None
        self.answers: dict[InputSource, bool] = {}

    def is_in_order(self, tensor: Tensor) -> bool:
        """Whether eager execution says that ``tensor`` is no view in another order, or of a part of a tensor."""
        root = tensor
        while id(root) not in self._lifted and root._view is not None and (owner := root._view.root()) is not None:
            root = owner
        own = is_in_order(tensor._view)
        return self._of_input(root) and own if id(root) in self._lifted else own

    def _of_input(self, tensor: Tensor) -> bool:
        _, source, _ = self._lifted[id(tensor)]
        outside = tensor
        if source.kind is SourceKind.ARGUMENT:
            if not self.arguments or not isinstance(self.arguments[source.key], Tensor):
                return True  # an array, or what a transform makes
            outside = self.arguments[source.key]
        if self.outer is not None:
            return self.outer.is_in_order(outside)
        return self.answers.setdefault(source, is_in_order(outside._view))
