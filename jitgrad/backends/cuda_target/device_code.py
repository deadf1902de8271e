"""One function of a kernel: its text, its PTX, and its handle in the driver."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from jitgrad.backends.codegen.source import Source
from jitgrad.backends.cuda.capability import Capability
from jitgrad.backends.cuda.compile import CudaCode, compile_source, for_one_block
from jitgrad.backends.cuda.ptxas import Usage, assemble
from jitgrad.backends.cuda_target.ptx_cache import KernelPtx, find_ptx
from jitgrad.core.errors import BackendError
from jitgrad.core.fork import cached_property
from jitgrad.device.driver import Driver


class KernelResources(NamedTuple):
    """What one function of a kernel needs of a multiprocessor.

    Attributes:
        threads: of a block.
        shared_bytes: of memory that a block shares.
        registers: of a thread; None if ptxas, which says it, is not installed.
        local_bytes: of memory of its own that each thread has because registers did not do; or None.
    """

    entry: str
    threads: int
    shared_bytes: int
    registers: int | None
    local_bytes: int | None

    def __str__(self) -> str:
        text = f"{self.entry}: {self.threads} threads a block, {self.shared_bytes} bytes shared"
        if self.registers is None:
            return text
        return f"{text}, {self.registers} registers a thread" + (f", {self.local_bytes} bytes local" if self.local_bytes else "")


class DeviceCode:
    """One function of a kernel, compiled or read from disk when it is first asked for, and loaded
    once by each driver.

    Attributes:
        source: what a driver that emulates a device runs.
        functions: the user's functions that the source calls, by name.
    """

    def __init__(self, source: Source, entry: str, capability: Capability, functions: Mapping[str, Any]) -> None:
        self.source = source
        self.entry = entry
        self.functions = functions
        self._capability = capability
        self._handles: WeakKeyDictionary[Driver, int] = WeakKeyDictionary()

    @cached_property
    def _found(self) -> tuple[KernelPtx, CudaCode | None]:
        return find_ptx(self.source, self.entry, self._capability, self.functions)

    @property
    def ptx(self) -> str:
        """PTX text."""
        return self._found[0].ptx

    @property
    def asm(self) -> str:
        """PTX text, which is the assembly language of CUDA."""
        return self.ptx

    @cached_property
    def llvm(self) -> str:
        """Optimised LLVM IR; compiled anew if the PTX came from disk."""
        code = self._found[1] or compile_source(self.source, self.entry, self._capability, self.functions)
        return code.llvm

    @cached_property
    def resources(self) -> KernelResources:
        """What the function needs; ptxas says it for the device's own architecture, where it is installed."""
        code = self._found[0]
        usage: Usage | None = None
        with suppress(BackendError):  # ptxas is not installed, or older than the device
            (usage,) = assemble([code], str(self._capability))
        registers, local = (None, None) if usage is None else (usage.registers, usage.local)
        return KernelResources(self.entry, code.threads, code.shared_bytes, registers, local)

    def function(self, driver: Driver) -> int:
        """What ``driver`` launches."""
        handle = self._handles.get(driver)
        if handle is None:
            handle = driver.load(self)
            if driver.local_bytes(handle) and (roomier := for_one_block(self.ptx)) is not None:
                handle = driver.load(self._found[0]._replace(ptx=roomier))
            self._handles[driver] = handle
        return handle
