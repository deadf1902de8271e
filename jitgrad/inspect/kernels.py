"""The kernels of a compiled function as records: source, LLVM IR, assembly, ops, lines, bytes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from jitgrad.backends.base import Target
from jitgrad.core.errors import BackendError
from jitgrad.core.origin import Origin
from jitgrad.inspect.stages import has_backward
from jitgrad.inspect.traffic import plan_traffic
from jitgrad.jit.executable import Executable
from jitgrad.runtime.executor.launch import Launch
from jitgrad.runtime.loop_call import LoopCall
from jitgrad.runtime.program import Program


@dataclass(frozen=True, slots=True)
class KernelView:
    """One launch of a kernel.

    Attributes:
        name: its ops, joined.
        part: "forward" or "backward" of a function that gradients flow through, else "program".
        source: readable Python, one line per statement, annotated with op and user line.
        ops, origins: its ops and the user's lines that they come from, both in program order.
        bytes_read, bytes_written: every distinct array once.
    """

    name: str
    part: str
    source: str
    ops: tuple[str, ...]
    origins: tuple[Origin, ...]
    bytes_read: int
    bytes_written: int
    _codes: tuple[Any, ...] = field(repr=False)

    @property
    def llvm(self) -> str:
        """Optimised LLVM IR. Raises BackendError if the kernel is not machine code."""
        return "\n".join(code.llvm for code in self._machine_code())

    @property
    def asm(self) -> str:
        """Assembly text; PTX on a CUDA device. Raises BackendError if the kernel is not machine code."""
        return "\n".join(code.asm for code in self._machine_code())

    @property
    def ptx(self) -> str | None:
        """CUDA assembly; None if this kernel runs on the CPU."""
        return "\n".join(code.ptx for code in self._codes) if self._on_device else None

    @property
    def resources(self) -> tuple[Any, ...]:
        """Threads, registers and shared memory of the kernel and of its epilogue; empty if it runs on the CPU."""
        return tuple(code.resources for code in self._codes) if self._on_device else ()

    @property
    def _on_device(self) -> bool:
        return all(hasattr(code, "ptx") for code in self._codes)

    def _machine_code(self) -> tuple[Any, ...]:
        if not all(hasattr(code, "llvm") for code in self._codes):
            raise BackendError(
                f"kernel {self.name} runs as Python (JITGRAD_BACKEND=python) and has no machine code; "
                "JITGRAD_BACKEND=cpu compiles it"
            )
        return self._codes

    def __str__(self) -> str:
        return self.source


def kernel_views(compiled: Executable) -> list[KernelView]:
    """Every kernel launch of ``compiled``, in order; those of the backward program follow. Those of a loop are of one turn."""
    if not compiled.traced.differentiable:
        return _views(compiled.program, "program")
    views = _views(compiled.op.forward, "forward")
    if has_backward(compiled):
        views += _views(compiled.op.backward, "backward")
    return views


def _views(program: Program, part: str) -> list[KernelView]:
    traffic = plan_traffic(program.plan)
    views = []
    for step in program.steps:
        if isinstance(step, Launch):
            views.append(_view(step, part, program.target, *traffic[step.step]))
        elif isinstance(step, LoopCall):
            views += _views(step.program, f"turn of {part}")
    return views


def _view(launch: Launch, part: str, target: Target, read: int, written: int) -> KernelView:
    # launches of equal structure share code; ops and lines are those of this launch
    kernel = launch.step.lowered.kernel
    main, epilogue = target.emit(kernel, launch.step.lowered.schedule)
    if launch.kernel.general:
        main, epilogue = main.generalised, epilogue and epilogue.generalised
    codes = tuple(code for code in (launch.kernel.main_code, launch.kernel.epilogue_code) if code is not None)
    return KernelView(
        name=kernel.name,
        part=part,
        source=main.text + ("\n" + epilogue.text if epilogue is not None else ""),
        ops=kernel.ops,
        origins=launch.step.origins,
        bytes_read=read,
        bytes_written=written,
        _codes=codes,
    )
