"""Runs CUDA kernel source without a GPU: all threads of a block do each statement together, on
NumPy arrays.

Threads that do not take a branch are masked. The emulator refuses accesses out of bounds,
barriers and shuffles that not all threads reach, numbers of a wrong dtype, and races within a block
(`jitgrad.backends.cuda.emulator_memory`). It cannot see the order of memory accesses of different
blocks beyond that.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from jitgrad.backends.codegen.source import Source
from jitgrad.backends.cuda import emulator_functions as functions
from jitgrad.backends.cuda.emulator_memory import (
    EmulatedPointer,
    KernelFault,
    Lanes,
    SharedRegion,
)
from jitgrad.backends.cuda.grid_writer import FAULT_WORDS
from jitgrad.backends.cuda.lock_step import LockStep
from jitgrad.backends.cuda.pointer_roots import read_parameters, written_parameters
from jitgrad.eager.float16 import compute_dtype

THREADS_AT_ONCE = 1 << 16  # more do not stay in a CPU's cache

DeviceMemory = Callable[[int], tuple[np.ndarray[Any, Any], int]]
"""Gives the bytes of the allocation that a device address lies in, and the offset of the address in it."""


@lru_cache(maxsize=512)
def _parsed(text: str) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}


@lru_cache(maxsize=512)
def _accessed(kernel: ast.FunctionDef) -> tuple[frozenset[str], frozenset[str]]:
    """The parameters that a kernel reads and those that it writes: found once for all its launches."""
    return read_parameters(kernel), written_parameters(kernel)


def launch(
    source: Source | str,
    entry: str,
    params: Sequence[str],
    blocks: int,
    threads: int,
    args: Sequence[int],
    memory: DeviceMemory,
    users: Mapping[str, Callable[..., Any]] | None = None,
) -> None:
    """Run the kernel ``entry`` of ``source`` in ``blocks`` of ``threads``.

    Args:
        params: the kinds of its parameters, as `Source.params`.
        args: one word for each of them, then the number of iterations.
        users: the users' functions that it calls.

    Raises:
        KernelFault: if the kernel does what a GPU forbids.
    """
    text = source if isinstance(source, str) else source.identity
    defined = _parsed(text)
    names = {**functions.emulated_functions(), **{name: functions.by_element(f) for name, f in (users or {}).items()}, **defined}
    kernel = defined[entry]
    values = _Arguments(kernel, [*params, "i64"], args, memory).values()
    step = max(1, THREADS_AT_ONCE // threads)
    for first in range(0, blocks, step):
        grid = LockStep(first, min(step, blocks - first), threads, names)
        try:
            with np.errstate(all="ignore"):
                grid.run(kernel, values)
        except KernelFault as fault:
            line = text.splitlines()[grid.line - 1].strip() if grid.line else ""
            raise KernelFault(f"{entry}, line {grid.line}: {line!r}: {fault}\n{text}") from None


class _Arguments:
    """Makes values of argument words: numbers, or pointers into the memory of allocations."""

    def __init__(self, kernel: ast.FunctionDef, params: Sequence[str], args: Sequence[int], memory: DeviceMemory) -> None:
        self.names = [p.arg for p in kernel.args.args]
        if not len(self.names) == len(params) == len(args):
            raise KernelFault(f"takes {len(self.names)} arguments of kinds {', '.join(params)}, found {len(args)}")
        self.given = dict(zip(self.names, zip(params, args, strict=True), strict=True))
        places = {name: memory(word) for name, (kind, word) in self.given.items() if kind.endswith("*")}
        self.places = {name: (whole, self.key(name, whole, offset), offset) for name, (whole, offset) in places.items()}
        read, written = _accessed(kernel)
        self.written = {self.places[name][1] for name in written if name in self.places}
        self.read = {self.places[name][1] for name in read if name in self.places}
        self.regions: dict[Any, SharedRegion] = {}

    def key(self, name: str, allocation: Lanes, offset: int) -> tuple[int, int, np.dtype[Any]]:
        """What elements of one dtype in one allocation have in common, so that accesses through
        several parameters meet."""
        dtype = functions.DTYPE_BY_NAME[self.given[name][0][:-1]]
        if offset % dtype.itemsize and self.given[name][1] % dtype.itemsize:
            raise KernelFault(f"{name} is at {self.given[name][1]:#x}, which is no multiple of {dtype.itemsize}")
        return allocation.__array_interface__["data"][0], offset % dtype.itemsize, dtype

    def values(self) -> dict[str, Any]:
        return {name: self.value(name, *self.given[name]) for name in self.names}

    def value(self, name: str, kind: str, word: int) -> Any:
        if kind.endswith("*"):
            return self.pointer(name, int(word))
        if kind[0] != "f":
            return int(word) if kind == "i64" else np.asarray(word).astype(functions.DTYPE_BY_NAME[kind])[()]
        dtype = functions.DTYPE_BY_NAME[kind]
        return np.array(word, np.int64).astype(f"i{dtype.itemsize}").view(dtype).astype(compute_dtype(dtype))[()]

    def pointer(self, name: str, address: int) -> EmulatedPointer:
        allocation, key, offset = self.places[name]
        _, skipped, dtype = key
        if key not in self.regions:
            size = (allocation.size - skipped) // dtype.itemsize * dtype.itemsize
            elements = allocation[skipped : skipped + size].view(dtype)
            written = key in self.written
            self.regions[key] = SharedRegion(
                elements, name, tracked=key in self.read, fresh=False, written=written, contested=name == FAULT_WORDS
            )
        return EmulatedPointer(self.regions[key], offset // dtype.itemsize, address - offset + skipped)
