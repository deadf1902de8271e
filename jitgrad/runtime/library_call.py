"""A step that calls a library: operands fetched, the eager function called, its arrays kept where the plan says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from functools import partial
from typing import Any, Protocol

import numpy as np

from jitgrad.compiler.lowering.layout import Buffer
from jitgrad.compiler.memory.donation import UPDATES
from jitgrad.compiler.plan import OpStep, Place
from jitgrad.core.aval import Aval, dtype_name
from jitgrad.core.op import Kind
from jitgrad.eager.float16 import HALF
from jitgrad.eager.interpreter import checked_result, run_eagerly
from jitgrad.runtime.executor.blas import find_blas
from jitgrad.runtime.executor.gemm import Gemm, gemms_of
from jitgrad.runtime.executor.tiled_products import tiled_product, tiles_pay
from jitgrad.runtime.library.batched_gemm import small_products
from jitgrad.runtime.library.registry import find_kernel


class Memory(Protocol):
    """The memory of one running call."""

    def view(self, place: Place, inputs: Sequence[Any], results: Sequence[Any]) -> Any:
        """The array, or the number, at ``place``."""

    def keep(self, slot: int, array: np.ndarray[Any, Any], inputs: Sequence[Any], results: list[Any]) -> None:
        """``array`` is the memory of ``slot`` in this call."""


class LibraryCall:
    """An `OpStep` with everything found out about it that is the same in all calls.

    ``slots`` are those of the program's inputs and results, ``inputs`` how many of them are inputs, and ``made`` the
    buffers that library calls bring along. ``native``: machine code may stand in for NumPy.

    Attributes:
        small, products: the step as machine code, if it is a product of matrices that can be.
    """

    def __init__(
        self, step: OpStep, slots: Mapping[Buffer, int], inputs: int, made: Sequence[Buffer], *, native: bool
    ) -> None:
        self.step = step
        self.op = step.op
        self.attrs = step.attrs
        self.reads = tuple([(_whole(p, slots), p, p.aval.shape, p.aval.dtype) for p in step.reads])
        self.inputs = inputs
        self.avals: list[Aval] = [p.aval for p in step.reads]
        first = step.writes[0]
        self.into = first if step.op.name == "matmul" and first.aval.ndim >= 2 and first.aval.dtype != HALF else None
        kept = [p.location is not None and p.location.buffer in made for p in step.writes]
        self.writes = tuple([(slots[_buffer(p)] if own else -1, p) for p, own in zip(step.writes, kept, strict=True)])
        found = find_kernel(step.op, self.avals, dict(step.attrs)) if native else None
        at = first.location
        self.over = step.op.name in UPDATES and at is not None and step.reads[0].location is at
        theirs = self.over and at is not None and at.buffer.role == "input"
        # state that a call cannot change must stay as it is; NumPy's functions see to that by themselves
        self.meaning = partial(found, whole=True) if found and theirs else found or step.op.eager
        self.small = small_products(step) if native else None
        self.products = _products(step) if native and self.small is None else None
        # elementwise ops convert operands first, programs look after themselves
        self.plain = step.op.kind in (Kind.OPAQUE, Kind.MOVEMENT, Kind.REDUCE, Kind.INDEX)

    def multiplied_by(self, tiled: Set[Gemm]) -> str:
        """What multiplies the matrices, if ``tiled`` go by tiles; "" of other steps."""
        if self.op.name != "matmul":
            return ""
        if self.small is not None:
            return "small matrices"
        return " and ".join(sorted({"tiles" if gemm in tiled else "BLAS" for gemm in self.products or ()})) or "NumPy"

    def run(self, memory: Memory, inputs: Sequence[Any], results: list[Any]) -> None:
        """Call the op; NumPy's warnings about values are the caller's to switch off."""
        operands = [self.operand(read, memory, inputs, results) for read in self.reads]
        if self.into is not None:
            np.matmul(operands[0], operands[1], out=memory.view(self.into, inputs, results))
            return
        if self.over:  # the result is where the first operand was
            self.meaning(*operands, into=operands[0], **self.attrs)
            return
        if self.op.kind is Kind.ELEMENTWISE:
            found = run_eagerly(self.op, operands, self.avals, self.attrs)
        else:
            found = self.meaning(*operands, **self.attrs)
        for (slot, place), result in zip(self.writes, found if self.op.multiple else (found,), strict=True):
            if self.plain:
                result = checked_result(self.op, result, place.aval)
            if slot < 0:
                np.copyto(memory.view(place, inputs, results), result)
            else:
                memory.keep(slot, _own(result, operands), inputs, results)

    def operand(
        self, read: tuple[int, Place, Any, Any], memory: Memory, inputs: Sequence[Any], results: Sequence[Any]
    ) -> Any:
        slot, place, shape, dtype = read
        if slot >= 0:
            array = inputs[slot] if slot < self.inputs else results[slot - self.inputs]
            if array.shape == shape and array.dtype == dtype:
                return array
        return memory.view(place, inputs, results)


def _buffer(place: Place) -> Buffer:
    assert place.location is not None
    return place.location.buffer


def _products(step: OpStep) -> list[Gemm] | None:
    """The products that ``step`` consists of, if they need no Python. LLVM starts on the code of tiles they may take."""
    gemms = gemms_of(step)
    if gemms is None:
        return None
    tiled = [gemm for gemm in gemms if tiles_pay(gemm)]
    if len(tiled) < len(gemms) and find_blas() is None:
        return None
    for dtype in {dtype_name(gemm.dtype) for gemm in tiled}:
        tiled_product(dtype)
    return gemms


def _whole(place: Place, slots: Mapping[Buffer, int]) -> int:
    """The slot whose whole memory ``place`` is, in order, or -1."""
    at = place.location
    return slots.get(at.buffer, -1) if at is not None and not at.offset and at.is_contiguous(place.aval.shape) else -1


def _own(result: np.ndarray[Any, Any], operands: Sequence[Any]) -> np.ndarray[Any, Any]:
    """``result`` as kernels and callers may have it: C-contiguous, not to be seen through an operand, writeable."""
    if result.base is None:
        shown = any([result is x for x in operands])
    else:
        shown = any([isinstance(x, np.ndarray) and np.may_share_memory(result, x) for x in operands])
    flags = result.flags
    return result.copy("C") if shown or not (flags.c_contiguous and flags.aligned and flags.writeable) else result
