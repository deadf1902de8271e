"""Compiles CUDA kernels to PTX and assembles them, in several processes, each text once; what came out is kept on disk."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jitgrad.backends.codegen.source import Source
from jitgrad.backends.cuda.capability import Capability
from jitgrad.backends.cuda.compile import CudaCode, compile_source
from jitgrad.backends.cuda.emulator_functions import DTYPE_BY_NAME
from jitgrad.backends.cuda.ptxas import Usage, assemble
from jitgrad.backends.cuda.schedule import VECTOR_BYTES
from jitgrad.backends.cuda_target.ptx_cache import ptx_fingerprint
from tools.collected_kernels import Collected

BATCH = 64  # kernels that ptxas gets at once
_NUMBER = re.compile(r"\b0([fd])[0-9A-Fa-f]{8,16}\b")


class Compiled(NamedTuple):
    """PTX of a kernel, and what is wrong with it."""

    entry: str
    ptx: str
    faults: tuple[str, ...]

    @property
    def text(self) -> str:
        """The PTX, but for its name and the values of its floating-point numbers, which take no registers."""
        return _NUMBER.sub(r"0\1", re.sub(rf"\b{self.entry}\b|\b{self.entry}(?=_param)", "entry", self.ptx))


class Results:
    """Results of pure functions in files of ``folder``, by a digest of what they were computed from."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def path(self, *key: Any) -> Path:
        return self.folder / f"{sha256(json.dumps(key).encode()).hexdigest()[:32]}.json"

    def load(self, *key: Any) -> Any:
        path = self.path(*key)
        return json.loads(path.read_text()) if path.exists() else None

    def store(self, value: Any, *key: Any) -> None:
        path = self.path(*key)
        unfinished = path.with_suffix(f".{os.getpid()}")
        unfinished.write_text(json.dumps(value))
        unfinished.replace(path)  # a run that is stopped leaves no half of a file


def faults_of_text(code: CudaCode) -> Iterator[str]:
    """What is wrong with the PTX of a kernel: vectors of 16 bytes that are no single accesses, or arithmetic of the user
    that became fused multiply-adds, which round once instead of twice. This package's mathematics asks for those it has."""
    text = code.source.identity
    sizes = {name: np.dtype(DTYPE_BY_NAME[kind]).itemsize for name, kind in re.findall(r"(\w+u) = scratch_(\w+)\(", text)}
    loaded = re.findall(r"copy_vector\((?:at\()?(\w+u)\b[^\n]* (\d+)\)$", text, re.MULTILINE)
    stored = re.findall(r"copy_vector\(at\(\w+, [^\n]*\), (?:at\()?(\w+u)\b[^\n]* (\d+)\)$", text, re.MULTILINE)
    for access, vectors in (("ld", loaded), ("st", stored)):
        whole = any(sizes.get(name, 0) * int(count) == VECTOR_BYTES for name, count in vectors)
        used = re.search(rf"\b{access}\.global", code.ptx)  # an op with a constant result reads nothing
        if whole and used and not re.search(rf"\b{access}\.global[.\w]*\.v[248]\.", code.ptx):
            yield f"no vector {access}"
    asked, found = len(re.findall(r"call [^@]*@llvm\.fma\.", code.llvm)), len(re.findall(r"\bfma\.\w+\.", code.ptx))
    if found > asked:
        yield f"{found} fused multiply-adds, {asked} of them asked for"


def compiled(kernels: Sequence[Collected], capability: Capability, jobs: int, results: Results) -> list[Compiled]:
    """The kernels as PTX, in their order. Those that call functions of users are compiled in this process, if not before."""
    alone = [(k, kernel) for k, kernel in enumerate(kernels) if kernel.functions or kernel.ready]
    found = {k: compiled_now(kernel, capability) for k, kernel in alone}
    rest = [(k, kernel) for k, kernel in enumerate(kernels) if not (kernel.functions or kernel.ready)]
    tasks = [(kernel.source.identity, kernel.source.params, kernel.entry) for _, kernel in rest]
    compile_one = partial(_compile_stored, capability=tuple(capability), folder=str(results.folder))
    found.update(zip([k for k, _ in rest], _mapped(compile_one, tasks, jobs, 16), strict=True))
    return [found[k] for k in range(len(kernels))]


def compiled_now(kernel: Collected, capability: Capability) -> Compiled:
    """The kernel as PTX."""
    if (known := kernel.ready.get(str(tuple(capability)))) is not None:
        return Compiled(known[0], known[1], tuple(known[2]))
    code = compile_source(kernel.source, kernel.entry, capability, kernel.functions)
    return Compiled(kernel.entry, code.ptx, tuple(faults_of_text(code)))


def _compile_stored(task: tuple[str, tuple[str, ...], str], capability: tuple[int, int], folder: str) -> Compiled:
    (identity, params, entry), results = task, Results(Path(folder))
    key = ("ptx", *task, capability, ptx_fingerprint())
    if (stored := results.load(*key)) is not None:
        return Compiled(stored[0], stored[1], tuple(stored[2]))
    made = compiled_now(Collected("", Source(identity, identity, tuple(params)), entry, {}), Capability(*capability))
    results.store(made, *key)
    return made


def assembled(codes: Sequence[Compiled], architecture: str, jobs: int, results: Results) -> tuple[list[Usage], int]:
    """What each kernel needs on ``architecture``, and how many different texts there are."""
    different = {code.text: code for code in codes}
    usage = {text: Usage(*known) for text in different if (known := results.load("usage", architecture, text)) is not None}
    missing = [text for text in different if text not in usage]
    batches = [missing[k : k + BATCH] for k in range(0, len(missing), BATCH)]
    tasks = [[(different[text].entry, different[text].ptx, text) for text in batch] for batch in batches]
    assemble_one = partial(_assemble_batch, architecture=architecture, folder=str(results.folder))
    for batch, used in zip(batches, _mapped(assemble_one, tasks, jobs, 1), strict=True):
        usage.update(zip(batch, used, strict=True))
    return [usage[code.text] for code in codes], len(different)


def _assemble_batch(batch: Sequence[tuple[str, str, str]], architecture: str, folder: str) -> list[Usage]:
    usage = assemble([Compiled(entry, ptx, ()) for entry, ptx, _ in batch], architecture)
    for (_, _, text), used in zip(batch, usage, strict=True):
        Results(Path(folder)).store(used, "usage", architecture, text)
    return usage


def _mapped(function: Callable[[Any], Any], tasks: Sequence[Any], jobs: int, chunk: int) -> list[Any]:
    """``function`` of all tasks, in so many processes."""
    if jobs < 2 or len(tasks) < 2:
        return [function(task) for task in tasks]
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        return list(pool.map(function, tasks, chunksize=chunk))
