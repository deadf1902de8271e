"""What NVIDIA's assembler says of kernels: registers, spills, shared memory. It needs no GPU.

The package nvidia-cuda-nvcc-cu12 brings it. Drivers have an assembler of their own, so nothing that
runs kernels needs this one.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple, Protocol

from jitgrad.backends.cuda.compile import for_one_block
from jitgrad.core.errors import BackendError

_HEADER = re.compile(r"^(?:\.version|\.target|\.address_size).*$", re.MULTILINE)
_USAGE = re.compile(
    r"Compiling entry function '(\w+)'.*?Function properties for \1\s+(\d+) bytes stack frame, "
    r"(\d+) bytes spill stores, (\d+) bytes spill loads"
    r".*?Used (\d+) registers",
    re.DOTALL,
)


class PtxText(Protocol):
    """A kernel to assemble."""

    @property
    def ptx(self) -> str: ...

    @property
    def entry(self) -> str: ...


class Usage(NamedTuple):
    """What one kernel needs of a processor.

    Attributes:
        local: bytes of memory that each thread has of its own, because registers did not do.
        spilled: bytes that are written to such memory.
        blocks: 1 if the registers that two blocks leave to a thread did not do.
    """

    registers: int
    local: int
    spilled: int
    blocks: int = 2


@cache
def find_ptxas() -> Path | None:
    """The assembler, from the package nvidia-cuda-nvcc-cu12 or a CUDA toolkit on the path."""
    packaged = Path(sysconfig.get_path("purelib"), "nvidia", "cuda_nvcc", "bin", "ptxas")
    found = packaged if packaged.exists() else shutil.which("ptxas")
    return None if found is None else Path(found)


def assemble(codes: Sequence[PtxText], architecture: str) -> list[Usage]:
    """What the kernels need on GPUs of ``architecture``, such as "sm_90"; they are assembled together, and those that two
    blocks leave too few registers once more for one block, as when a driver loads them.

    Raises:
        BackendError: if there is no assembler, or it refuses the text.
    """
    usage = _assembled([(code.entry, code.ptx) for code in codes], architecture)
    tight = [(k, code.entry, text) for k, code in enumerate(codes) if usage[k].local and (text := for_one_block(code.ptx))]
    if tight:
        again = _assembled([(entry, text) for _, entry, text in tight], architecture)
        for (k, _, _), used in zip(tight, again, strict=True):
            usage[k] = used._replace(blocks=1)
    return usage


def _assembled(codes: Sequence[tuple[str, str]], architecture: str) -> list[Usage]:
    """What kernels need, given by their names and texts."""
    ptxas = find_ptxas()
    if ptxas is None:
        raise BackendError("ptxas is not installed: pip install nvidia-cuda-nvcc-cu12")
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder, "kernels.ptx")
        text.write_text("\n".join(_joined(codes)))
        command = [str(ptxas), f"-arch={architecture}", "-v", str(text), "-o", str(text.with_suffix(".cubin"))]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise BackendError(f"ptxas refuses kernels for {architecture}: {done.stderr}")
    usage = {name: Usage(int(regs), int(local), int(stores)) for name, local, stores, _, regs in _USAGE.findall(done.stderr)}
    return [usage[_name(k)] for k in range(len(codes))]


def _name(number: int) -> str:
    return f"entry{number}"


def _joined(codes: Sequence[tuple[str, str]]) -> Iterator[str]:
    """One text of all kernels, each with names of its own."""
    yield from _HEADER.findall(codes[0][1])
    for k, (entry, ptx) in enumerate(codes):
        text = _HEADER.sub("", ptx)
        text = re.sub(rf"\b{entry}\b(?=\()", _name(k), text)
        text = re.sub(rf"\b{entry}_param_", f"{_name(k)}_param_", text)
        yield re.sub(r"\b(shared|jitgrad_)(?=[\w$])", rf"\g<1>{_name(k)}_", text)
