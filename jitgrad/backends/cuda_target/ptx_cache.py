"""PTX on disk between processes, in the cache of machine code."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from jitgrad import vecmath
from jitgrad.backends import cuda
from jitgrad.backends.codegen.source import Source
from jitgrad.backends.cuda.capability import Capability, ptx_version
from jitgrad.backends.cuda.compile import CudaCode, compile_source
from jitgrad.backends.llvm import code_object
from jitgrad.backends.llvm import disk_cache as disk
from jitgrad.core.fork import importing


class KernelPtx(NamedTuple):
    """PTX of one kernel, as `jitgrad.backends.cuda.compile.CudaCode` has it."""

    ptx: str
    entry: str
    threads: int
    shared_bytes: int


@cache
def ptx_fingerprint() -> str:
    """A digest of everything besides the source and the GPU that PTX depends on."""
    with importing:
        from jitgrad.backends.llvm import target

    folders = (Path(module.__file__ or "").parent for module in (cuda, vecmath))
    texts = [path.read_text() for folder in folders for path in sorted(folder.glob("*.py"))]
    return target.digest(code_object.fingerprint(), *texts)


def find_ptx(
    source: Source, entry: str, capability: Capability, functions: Mapping[str, Callable[..., Any]]
) -> tuple[KernelPtx, CudaCode | None]:
    """PTX of the kernel ``entry`` of ``source``: from disk (then without CudaCode), or compiled and stored.

    Kernels that call users' ``functions`` are not stored: what these call is not known.

    Raises:
        BackendError: as `compile_source` does.
    """
    with importing:
        from jitgrad.backends.cuda import ptx
        from jitgrad.backends.llvm import target

    version = ptx_version(capability, ptx.llvm_version())
    key = target.digest("ptx", source.identity, entry, *source.params, *version, ptx_fingerprint())
    stored = None if functions else disk.load_entry(key)
    if stored is not None and stored.source == source.identity:
        code_object.COUNTERS.from_disk += 1
        return KernelPtx(**json.loads(stored.object_code)), None
    code_object.COUNTERS.compiled += 1
    code = compile_source(source, entry, capability, functions)
    found = KernelPtx(code.ptx, entry, code.threads, code.shared_bytes)
    if not functions:
        disk.store_entry(key, disk.Stored(source.identity, json.dumps(found._asdict()).encode(), ()))
    return found, code
