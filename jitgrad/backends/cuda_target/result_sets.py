"""Arrays for the results of a program, the same again and again: a graph is captured for their addresses."""

from __future__ import annotations

from collections.abc import Sequence
from sys import getrefcount
from typing import Any

from jitgrad.core.aval import Dtype, Shape
from jitgrad.core.device_array import DeviceArray
from jitgrad.device.cuda_device import CudaDevice

# A caller who replaces gradients frees the old ones after the call, so that two sets take turns.
MAX_SETS = 3

Spec = tuple[Shape, Dtype]


def _references(arrays: Sequence[DeviceArray]) -> list[tuple[int, int]]:
    """How often each array, and its memory, is referred to."""
    return [(getrefcount(array), getrefcount(array.owner)) for array in arrays]


class ResultSets:
    """Sets of arrays for the results ``specs``. A set is used again when the caller holds none of its arrays.

    When all sets are in use, new arrays are made that belong to none.
    """

    def __init__(self, device: CudaDevice, specs: Sequence[Spec]) -> None:
        self._device = device
        self._specs = specs
        device.pool.add_holder(self)
        self._sets: list[tuple[list[DeviceArray], list[tuple[int, int]]]] = []  # with the references to an idle set

    def take(self) -> list[Any]:
        """Arrays that nobody else holds."""
        for arrays, idle in self._sets:
            if _references(arrays) == idle:
                return arrays[:]
        new = [self._device.empty(shape, dtype) for shape, dtype in self._specs]
        if new and len(self._sets) < MAX_SETS:
            self._sets.append((new, _references(new)))
            return new[:]
        return new

    def release(self) -> None:
        """Let go of the sets that nobody uses, because memory is short."""
        self._sets = [(arrays, idle) for arrays, idle in self._sets if _references(arrays) != idle]
