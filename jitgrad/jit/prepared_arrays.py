"""The steps of a call that choose the memory which its program reads and overwrites."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitgrad.core.device_array import DeviceArray
from jitgrad.core.tensor import Tensor
from jitgrad.eager.buffer_pool import POOL
from jitgrad.jit.fast_call import FastCallWriter, NotSupportedError, listed
from jitgrad.jit.input_steps import CallState, array_of
from jitgrad.jit.memory_overlap import overlapping
from jitgrad.runtime.ownership import is_unique_owner
from jitgrad.runtime.program import Program
from jitgrad.runtime.program_op import contiguous

# Copying at most so much of the state of a program that takes a second costs it some 2 %.
COPIED_BYTES_PER_SECOND = 1e8


@dataclass(frozen=True, eq=False, slots=True)
class OrderChanged:
    """Tensors that the program changes get row-major memory for good, where nobody else has the memory.

    An eager gradient of a transposed weight is in another order. Kernels would get a copy of it in every call.
    """

    overwritten: tuple[int, ...]

    def run(self, call: CallState) -> None:
        for x in [call.inputs[k] for k in self.overwritten]:
            if isinstance(x, Tensor) and not x._data.flags.c_contiguous and is_unique_owner(x):
                x._data, x._address = contiguous(x._data), 0

    def write(self, w: FastCallWriter) -> None:
        """A fast call misses where memory is in another order."""


@dataclass(frozen=True, eq=False, slots=True)
class PrepareArrays:
    """The program's arrays: copies of donated ones with another owner, where a fast call misses."""

    program: Program
    overwritten: tuple[int, ...]  # positions of the inputs whose memory the program writes
    donated_used: tuple[int, ...]  # positions of the donated arguments among them

    def run(self, call: CallState) -> None:
        inputs = call.inputs
        copied: Sequence[int] = [
            k for k in self.donated_used if not (isinstance(inputs[k], Tensor) and is_unique_owner(inputs[k]))
        ]
        arrays = [contiguous(array_of(x)) if k in self.program.read else array_of(x) for k, x in enumerate(inputs)]
        in_python = self.program.runner.address_space is None  # Ctrl-C stops it anywhere
        if self.overwritten and (
            call.preserve or in_python or overlapping(arrays, self.overwritten) or self._copies_are_cheap(arrays)
        ):
            copied = self.overwritten
        call.interruptible = len(copied) == len(self.overwritten)
        for k in copied:
            arrays[k] = _copy_of(arrays[k])
        call.arrays = arrays

    def _copies_are_cheap(self, arrays: Sequence[np.ndarray]) -> bool:
        """Whether a long program should write to copies, so that Ctrl-C may stop it."""
        allowed = COPIED_BYTES_PER_SECOND * min(self.program.seconds, 1.0)
        return self.program.long and sum(arrays[k].nbytes for k in self.overwritten) <= allowed

    def write(self, w: FastCallWriter) -> None:
        if self.donated_used:
            if w.on_device:
                raise NotSupportedError  # nobody counts the owners of memory there
            w.names["is_unique_owner"] = is_unique_owner
            texts = [w.leaves[w.traced.sources[k].key] for k in self.donated_used]
            w.miss_if(f"not all(map(is_unique_owner, ({listed(texts)},)))")


def _copy_of(array: Any) -> Any:
    if isinstance(array, DeviceArray):
        return array.copy()
    copy = POOL.empty(array.shape, array.dtype)
    np.copyto(copy, array)
    return copy
