"""A step that calls a library: it fetches operands, calls a function, and stores the results where
the plan says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, Protocol

import numpy as np

from jitgrad.compiler.lowering.layout import Buffer
from jitgrad.compiler.plan import OpStep, Place
from jitgrad.core.aval import Aval, Dtype, Shape, dtype_name
from jitgrad.core.errors import IndexingError, MatrixError
from jitgrad.core.op import Kind, OpDef
from jitgrad.eager.blas import find_blas
from jitgrad.eager.float16 import HALF
from jitgrad.eager.lu import has_lapack
from jitgrad.eager.run import checked_result, run_eagerly
from jitgrad.ops.factors import BY_FACTORS
from jitgrad.ops.triangular import TRIANGULAR_SOLVE
from jitgrad.runtime.executor.gemm import Gemm, gemms_of
from jitgrad.runtime.executor.instruction_loop import Instruction
from jitgrad.runtime.executor.tiled_products import tiled_product, tiles_pay
from jitgrad.runtime.library.batched_gemm import small_products
from jitgrad.runtime.library.convolutions import convolution
from jitgrad.runtime.library.indexed_steps import ACCESSES, indexed_step
from jitgrad.runtime.library.registry import find_kernel
from jitgrad.runtime.library.small_systems import SYSTEMS, small_system
from jitgrad.runtime.library.windows import window_copies


class Memory(Protocol):
    """The memory of one running call."""

    def view(self, place: Place, inputs: Sequence[Any], results: Sequence[Any]) -> Any:
        """The array or number at ``place``."""

    def keep(self, slot: int, array: np.ndarray[Any, Any], inputs: Sequence[Any], results: list[Any]) -> None:
        """``array`` is the memory of ``slot`` in this call."""


class LibraryCall:
    """An `OpStep` with all decisions about it that are the same in every call.

    ``slots`` are those of the program's inputs and results, the first ``inputs`` of them inputs.
    Library calls allocate the ``external`` buffers themselves. ``native``: machine code may replace
    NumPy.

    Attributes:
        instruction, products: the step as one instruction for the native loop, or a matrix product
            as several; they need no Python.
        in_place: the result takes the memory of the first operand.
        function: computes the op.
    """

    def __init__(
        self, step: OpStep, slots: Mapping[Buffer, int], inputs: int, external: Sequence[Buffer], *, native: bool
    ) -> None:
        self.step = step
        self.op: OpDef = step.op
        self.attrs: Mapping[str, Any] = step.attrs
        self.reads: tuple[tuple[int, Place, Shape, Dtype], ...] = tuple(
            [(_whole_slot(p, slots), p, p.aval.shape, p.aval.dtype) for p in step.reads]
        )
        self.inputs = inputs
        self.avals: list[Aval] = [p.aval for p in step.reads]
        first = step.writes[0]
        is_matmul = step.op.contraction
        self.matmul_result: Place | None = first if is_matmul and first.aval.ndim >= 2 and first.aval.dtype != HALF else None
        self.writes: tuple[tuple[int, Place], ...] = tuple([(_allocated_slot(p, slots, external), p) for p in step.writes])
        self.in_place: bool = step.op.updates_first_operand and step.reads[0].location is first.location
        self.instruction: Instruction | None = _instruction(step) if native else None
        has_instruction = not native or step.op in ACCESSES  # of which all others are left to NumPy
        kernel = None if has_instruction else find_kernel(step.op, self.avals, dict(step.attrs))
        self.function: Callable[..., Any] = kernel or step.op.eager
        self.products: list[Gemm] | None = _products(step) if native and self.instruction is None else None
        # elementwise ops convert operands first, and programs return what they promise
        self.check_results: bool = step.op.kind in (Kind.OPAQUE, Kind.MOVEMENT, Kind.REDUCE, Kind.INDEX)

    def computed_by(self, tiled: Set[Gemm]) -> str:
        """What multiplies the matrices, if ``tiled`` go by tiles, solves the system, or goes by indices; "" of other steps."""
        if self.op in ACCESSES:
            return "NumPy" if self.instruction is None else "machine code"
        if self.op in BY_FACTORS:
            return "LAPACK" if has_lapack() else "NumPy"
        if not self.op.contraction and self.op not in SYSTEMS:
            return ""
        if self.instruction is not None:
            return "small matrices"
        if self.op is TRIANGULAR_SOLVE and self.step.writes[0].aval.dtype.char in "fd" and find_blas() is not None:
            return "BLAS"
        return " and ".join(sorted({"tiles" if gemm in tiled else "BLAS" for gemm in self.products or ()})) or "NumPy"

    def compute(self, operands: Sequence[Any]) -> Any:
        """The op's result. Raises what the op does; errors about matrices say in which line."""
        return self._located(self.function, operands, self.attrs)

    def _located(self, function: Callable[..., Any], operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        try:
            return function(*operands, **attrs)
        except MatrixError as error:
            raise MatrixError(f"{error} (in {self.step.node.origin.described()})") from None
        except IndexError as error:
            raise IndexingError(f"{error} (in {self.step.node.origin.described()})") from None

    def run(self, memory: Memory, inputs: Sequence[Any], results: list[Any]) -> None:
        """Call the op. The caller switches off NumPy's warnings about values."""
        operands = [self.operand(read, memory, inputs, results) for read in self.reads]
        if self.matmul_result is not None:
            np.matmul(operands[0], operands[1], out=memory.view(self.matmul_result, inputs, results))
            return
        if self.in_place:
            self._located(self.function, operands, {**self.attrs, "into": operands[0]})
            return
        if self.op.kind is Kind.ELEMENTWISE:
            returned = run_eagerly(self.op, operands, self.avals, self.attrs)
        else:
            returned = self.compute(operands)
        for (slot, place), result in zip(self.writes, returned if self.op.multiple else (returned,), strict=True):
            if self.check_results:
                result = checked_result(self.op, result, place.aval)
            if slot < 0:
                np.copyto(memory.view(place, inputs, results), result)
            else:
                memory.keep(slot, _owned(result, operands), inputs, results)

    def operand(
        self, read: tuple[int, Place, Any, Any], memory: Memory, inputs: Sequence[Any], results: Sequence[Any]
    ) -> Any:
        slot, place, shape, dtype = read
        if slot >= 0:
            array = inputs[slot] if slot < self.inputs else results[slot - self.inputs]
            if array.shape == shape and array.dtype == dtype:
                return array
        return memory.view(place, inputs, results)


def _allocated_slot(place: Place, slots: Mapping[Buffer, int], external: Sequence[Buffer]) -> int:
    """The slot whose memory the library call allocates, or -1."""
    at = place.location
    return slots[at.buffer] if at is not None and at.buffer in external else -1


def _instruction(step: OpStep) -> Instruction | None:
    """The machine code that computes ``step`` without Python."""
    return small_products(step) or convolution(step) or window_copies(step) or small_system(step) or indexed_step(step)


def _products(step: OpStep) -> list[Gemm] | None:
    """The products of ``step``, if they need no Python. LLVM begins with the code of tiles."""
    gemms = gemms_of(step)
    if gemms is None:
        return None
    tiled = [gemm for gemm in gemms if tiles_pay(gemm)]
    if len(tiled) < len(gemms) and find_blas() is None:
        return None
    for dtype in {dtype_name(gemm.dtype) for gemm in tiled}:
        tiled_product(dtype)
    return gemms


def _whole_slot(place: Place, slots: Mapping[Buffer, int]) -> int:
    """The slot whose whole memory is ``place`` in C order, or -1."""
    at = place.location
    return slots.get(at.buffer, -1) if at is not None and not at.offset and at.is_contiguous(place.aval.shape) else -1


def _owned(result: np.ndarray[Any, Any], operands: Sequence[Any]) -> np.ndarray[Any, Any]:
    """``result`` as a C-contiguous, aligned, writeable array that shares no memory with operands."""
    if result.base is None:
        shared = any([result is x for x in operands])
    else:
        shared = any([isinstance(x, np.ndarray) and np.may_share_memory(result, x) for x in operands])
    flags = result.flags
    return result.copy("C") if shared or not (flags.c_contiguous and flags.aligned and flags.writeable) else result
