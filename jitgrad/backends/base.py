"""What a backend is: it turns a Kernel of the loop IR into something a program's steps can run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from jitgrad.backends.codegen.source import Source
from jitgrad.compiler.lowering.kernel_ir import Kernel


@dataclass(eq=False, slots=True)
class CompiledKernel:
    """One kernel as compiled: shared by all launches that are structurally equal.

    A ``general`` one has the user's float literals as parameters: launches that differ in them share it too, and the
    values in the notes of its text are those of the first.
    """

    name: str
    main: Source
    epilogue: Source | None
    kernel: Kernel
    main_code: Any
    epilogue_code: Any
    from_disk: bool
    general: bool = False

    @property
    def source(self) -> str:
        """Readable source of everything that runs."""
        return self.main.text + ("\n" + self.epilogue.text if self.epilogue is not None else "")


@dataclass(frozen=True, slots=True)
class CompiledLaunch:
    """A compiled kernel for one launch.

    Attributes:
        new: whether it was compiled just now, not found among earlier ones.
        words, epilogue_words: argument words of the launch's float literals, if the kernel has them as parameters: they
            follow the launch's other words.
    """

    kernel: CompiledKernel
    new: bool
    words: tuple[int, ...] = ()
    epilogue_words: tuple[int, ...] = ()


class Backend(Protocol):
    """Compiles kernels."""

    name: str
    native: bool  # whether code is machine code at an address, run by the native instruction loop

    def compile(self, kernel: Kernel) -> CompiledLaunch:
        """The compiled kernel for one launch."""


class KernelCache:
    """What a backend has compiled, by the structure of kernels.

    The first kernel of a structure is compiled with its float literals in the text, where they cost nothing. When the
    structure comes again with other literals, it is compiled once more with the literals as parameters, and that
    serves every further value. So a number read from a global costs two compiles, however many values it takes.
    """

    def __init__(self) -> None:
        self._compiled: dict[Any, CompiledKernel] = {}
        self._met: set[Any] = set()
        self._lock = threading.Lock()

    def find(
        self, main: Source, epilogue: Source | None, build: Callable[[Source, Source | None, bool], CompiledKernel]
    ) -> CompiledLaunch:
        """The kernel of these sources; ``build(main, epilogue, general)`` compiles one if there is none yet."""
        wide, wide_epilogue = main.generalised, epilogue and epilogue.generalised
        words = wide.words, wide_epilogue.words if wide_epilogue is not None else ()
        exact, structure = _identity(main, epilogue), _identity(wide, wide_epilogue)
        with self._lock:
            if (known := self._compiled.get(exact)) is not None:
                return CompiledLaunch(known, False)
            if (known := self._compiled.get(structure)) is not None:
                return CompiledLaunch(known, False, *words)
            if structure not in self._met:
                self._compiled[exact] = new = build(main, epilogue, False)
                self._met.add(structure)
                return CompiledLaunch(new, True)
            self._compiled[structure] = new = build(wide, wide_epilogue, True)
            return CompiledLaunch(new, True, *words)


def _identity(main: Source, epilogue: Source | None) -> tuple[Any, ...]:
    return (main.identity, main.params, epilogue and epilogue.identity, epilogue and epilogue.params)
