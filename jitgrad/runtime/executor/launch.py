"""A kernel step as it is launched."""

from __future__ import annotations

from dataclasses import dataclass

from jitgrad.backends.base import CompiledKernel, CompiledLaunch
from jitgrad.compiler.lowering.layout import ArgSlot
from jitgrad.compiler.plan import KernelStep


@dataclass(eq=False, slots=True)
class Launch:
    """A kernel step with its compiled kernel, and the arguments of its two functions."""

    step: KernelStep
    kernel: CompiledKernel
    args: tuple[ArgSlot, ...]
    epilogue_args: tuple[ArgSlot, ...]

    @staticmethod
    def of(step: KernelStep, compiled: CompiledLaunch) -> Launch:
        args, epilogue_args = (*step.args, *compiled.args), (*step.epilogue_args, *compiled.epilogue_args)
        return Launch(step, compiled.kernel, args, epilogue_args)
