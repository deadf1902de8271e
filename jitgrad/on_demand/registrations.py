"""Stands where the compiler registers itself in rooms below it, and imports it when it is asked to compile.

The modules that are imported register themselves, and so replace what stands here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jitgrad.autograd.replaced_gradient import Capture, GradientRule, capture_rules_by
from jitgrad.core.aval import Aval, Dtype
from jitgrad.core.device_array import DeviceArray
from jitgrad.core.op import OpDef
from jitgrad.core.tensor import Tensor
from jitgrad.device.cuda_device import CudaDevice, DeviceKernels
from jitgrad.eager.array_memory import make_handler_by
from jitgrad.eager.large_arrays import compute_by
from jitgrad.eager.library_kernels import KernelFinder, find_library_kernels_by
from jitgrad.eager.loops import Loop, make_loops_by
from jitgrad.eager.row_programs import RowBinder, RowMaker, RowProgram, make_row_kernels_by
from jitgrad.on_demand.fresh_import import imported


def _compile_loop(loop: Loop) -> np.ufunc | None:
    return imported(_loop_compiler)(loop)


def _loop_compiler() -> Callable[[Loop], np.ufunc | None]:
    from jitgrad.backends.eager_loops import compile_loop

    return compile_loop


def _compile_rows(program: RowProgram) -> RowBinder | None:
    return imported(_row_compiler)(program)


def _row_compiler() -> RowMaker:
    from jitgrad.backends.eager_rows import compile_rows

    return compile_rows


def _make_handler() -> Any:
    return imported(_handler_maker)()


def _handler_maker() -> Callable[[], Any]:
    from jitgrad.backends.array_memory import install_handler

    return install_handler


def _compute(op: OpDef, function: Callable[..., Any], out: Dtype, arrays: tuple[np.ndarray[Any, Any], ...]) -> Any:
    return imported(_kernels)(op, function, out, arrays)


def _kernels() -> Callable[..., Any]:
    from jitgrad.backends.eager_kernels import compute

    return compute


def _find_kernel(op: OpDef, avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Callable[..., Any] | None:
    return imported(_library)(op, avals, attrs)


def _library() -> KernelFinder:
    from jitgrad.runtime.library.eager_calls import find_eager_kernel

    return find_eager_kernel


def _capture(name: str, rule: GradientRule, residuals: Sequence[Tensor]) -> tuple[GradientRule, Sequence[Any]]:
    return imported(_rule_recorder)(name, rule, residuals)


def _rule_recorder() -> Capture:
    from jitgrad.compiler.captured_rule import capture_rule

    return capture_rule


class _KernelsOfDevices:
    """Stands for the programs of single ops on devices."""

    def apply(
        self, device: CudaDevice, op: OpDef, operands: Sequence[Any], avals: Sequence[Aval], attrs: Mapping[str, Any]
    ) -> Any:
        return imported(_programs_of_ops).apply(device, op, operands, avals, attrs)

    def copy_strided(self, target: DeviceArray, source: DeviceArray) -> None:
        imported(_programs_of_ops).copy_strided(target, source)


def _programs_of_ops() -> DeviceKernels:
    import jitgrad.backends.cuda_target.eager  # noqa: F401 - takes the place of the one above

    return CudaDevice.kernels


make_loops_by(_compile_loop)
make_row_kernels_by(_compile_rows)
make_handler_by(_make_handler)
compute_by(_compute)
find_library_kernels_by(_find_kernel)
capture_rules_by(_capture)
CudaDevice.kernels = _KernelsOfDevices()
