"""Saves the state that a function changes, and restores it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitgrad.core.device_array import copy_elements
from jitgrad.core.origin import CallPlace
from jitgrad.core.storage import Storage
from jitgrad.core.tensor import Tensor
from jitgrad.guards.writes import undo
from jitgrad.jit.trace_result import TraceResult


@dataclass(frozen=True, eq=False, slots=True)
class _Saved:
    """A tensor with its saved data, gradient and version."""

    tensor: Tensor
    data: Any
    copy: Any
    grad: Tensor | None
    grad_copy: Any
    storage: Storage
    version: int
    changed_place: CallPlace
    history: tuple[Any, int, bool]


class Snapshot:
    """Copies of what a call of ``traced`` changes: tensors, arrays and places that hold tensors.

    `restore` writes them back in place, gradients included.
    """

    def __init__(self, traced: TraceResult, leaves: Sequence[Any]) -> None:
        self._places = [store.saved() for store in traced.stores]
        targets = [source.resolve(leaves) for source in traced.changed()]
        distinct = {id(x): x for x in targets}
        self._tensors = [_save(x) for x in distinct.values() if isinstance(x, Tensor)]
        self._arrays = [(x, x.copy()) for x in distinct.values() if isinstance(x, np.ndarray)]

    def restore(self) -> None:
        """Write the saved values back, and the versions by which autograd notices changes."""
        for place in self._places:
            undo(place)
        for array, copy in self._arrays:
            np.copyto(array, copy)
        for s in self._tensors:
            copy_elements(s.data, s.copy)
            if s.tensor._data is not s.data:  # tensor.data = new
                s.tensor._data, s.tensor._address, s.tensor._memory = s.data, 0, s.storage
            s.tensor._grad = s.grad
            if s.grad is not None and s.grad_copy is not None:
                copy_elements(s.grad._data, s.grad_copy)
            s.tensor.grad_fn, s.tensor._out_index, s.tensor._requires_grad = s.history
            s.tensor._storage.version, s.tensor._storage.changed_place = s.version, s.changed_place


def _save(tensor: Tensor) -> _Saved:
    grad, storage = tensor._grad, tensor._storage
    grad_copy = None if grad is None else grad._data.copy()
    history = (tensor.grad_fn, tensor._out_index, tensor._requires_grad)
    data, version = tensor._data, storage.version
    return _Saved(tensor, data, data.copy(), grad, grad_copy, storage, version, storage.changed_place, history)
