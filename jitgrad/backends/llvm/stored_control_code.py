"""LLVM IR of the runtime's control code, which the package brings along for x86 CPUs.

Its text is the same in every process, and translating it took a third of the first call of a small program. A test compares
the files with the translation, and writes them with ``--update-golden``. Import this module only when something is compiled:
it imports llvmlite.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from llvmlite import binding

from jitgrad.backends.llvm import atomics, int_dialect, tiles
from jitgrad.backends.llvm.ir_builder import WORD

FOLDER = Path(__file__).parent / "control_code"


def control_code(source: str, entry: str, library: str) -> str:
    """LLVM IR of control code; arguments are those of `compile_control_code`.

    Raises:
        BackendError: if ``source`` is not of the int dialect.
    """
    return stored(source, entry, library) or translated(source, entry, library)


def translated(source: str, entry: str, library: str) -> str:
    """The IR by the translator."""
    functions = atomics.ATOMICS if library == "thread_pool" else tiles.functions(library)
    return int_dialect.translate(source, entry, functions)


def stored(source: str, entry: str, library: str) -> str | None:
    """The IR from the file; None if there is none of this source for this machine and this llvmlite."""
    path = file_of(entry, library)
    first, _, text = path.read_text(encoding="utf-8").partition("\n") if path.exists() else ("", "", "")
    return text if first == first_line(source) else None


def file_of(entry: str, library: str) -> Path:
    return FOLDER / f"{entry}.{library}.ll"


def first_line(source: str) -> str:
    """A comment that tells what the IR depends on; old versions of llvmlite write pointers in another way."""
    machine = binding.get_process_triple().split("-")[0]
    return f"; {machine}, pointers as {WORD.as_pointer()}, source {hashlib.sha256(source.encode()).hexdigest()}"
