"""What a backend is: it turns a Kernel of the loop IR into something a program's steps can run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from jitgrad.compiler.codegen.cpu import Source
from jitgrad.compiler.kernel import Kernel


@dataclass(eq=False, slots=True)
class CompiledKernel:
    """One kernel as compiled: shared by all launches that are structurally equal."""

    name: str
    main: Source
    finish: Source | None
    kernel: Kernel
    main_code: Any
    finish_code: Any
    from_disk: bool

    @property
    def source(self) -> str:
        """Readable source of everything that runs."""
        return self.main.text + ("\n" + self.finish.text if self.finish is not None else "")


class Backend(Protocol):
    """Compiles kernels."""

    name: str
    native: bool  # whether code is machine code at an address, run by the native instruction loop

    def compile(self, kernel: Kernel) -> tuple[CompiledKernel, bool]:
        """The compiled kernel, and whether it was compiled just now (not found among earlier ones)."""
