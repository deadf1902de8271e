"""The memory of one running call: an arena for temporaries, and views of it for library calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitgrad.compiler.lowering.layout import Buffer
from jitgrad.compiler.plan import Place
from jitgrad.core.axis_runs import positions_read, read_axes, whole
from jitgrad.eager.buffer_pool import address_of
from jitgrad.runtime.program import Program


class HostFrame:
    """The arena of one call at a time, and where the buffers of the program lie in it."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.arena: np.ndarray[Any, np.dtype[np.uint8]] = np.empty(max(64, program.plan.arena_bytes) + 64, np.uint8)
        self.shift: int = -address_of(self.arena) % 64  # the arena proper starts at a cache line

    def results(self) -> list[Any]:
        """New arrays for the results of the program's kernels."""
        allocate = self.program.target.allocate
        return [allocate(shape, dtype) for shape, dtype in self.program.result_specs]

    def bytes_of(self, buffer: Buffer, inputs: Sequence[Any], results: Sequence[Any]) -> np.ndarray[Any, Any]:
        """The memory of ``buffer`` as a flat array of bytes."""
        slot = self.program.slots.get(buffer)
        if slot is None:
            offset = self.shift + self.program.plan.offsets[buffer]
            return self.arena[offset : offset + buffer.nbytes]
        array: np.ndarray[Any, Any] = inputs[slot] if slot < len(inputs) else results[slot - len(inputs)]
        return array.reshape(-1).view(np.uint8)

    def view(self, place: Place, inputs: Sequence[Any], results: Sequence[Any]) -> Any:
        """The array or the number that a library call gets for ``place``."""
        if place.location is None:
            return place.number
        aval, location = place.aval, place.location
        if not aval.size:  # NumPy refuses the strides of turned axes
            return np.empty(aval.shape, aval.dtype)
        memory = self.bytes_of(location.buffer, inputs, results)
        strides = tuple(s * aval.dtype.itemsize for s in location.strides)
        if not location.runs:
            return np.ndarray(aval.shape, aval.dtype, memory, location.offset, strides)
        axes = [runs or whole(n) for runs, n in zip(location.runs, aval.shape, strict=True)]
        source = tuple([1 + int(positions_read(runs).max()) for runs in axes])
        return read_axes(np.ndarray(source, aval.dtype, memory, location.offset, strides), axes)

    def keep(self, slot: int, array: np.ndarray[Any, Any], inputs: Sequence[Any], results: list[Any]) -> None:
        """``array``, which a library call returned, is the memory of ``slot`` in this call."""
        results[slot - len(inputs)] = array
