"""One function of a kernel: its text, its PTX, and its handle in the driver."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from jitgrad.backends.base import user_functions
from jitgrad.backends.codegen.source import Source
from jitgrad.backends.cuda.capability import Capability
from jitgrad.backends.cuda.compile import CudaCode, compile_source
from jitgrad.compiler.lowering.kernel_ir import Kernel
from jitgrad.core.fork import cached_property
from jitgrad.device.driver import Driver


class DeviceCode:
    """One function of a kernel, compiled when it is first asked for, and loaded once by each driver.

    Attributes:
        source: what a driver that emulates a device runs.
        functions: the user's functions that the source calls, by name.
    """

    def __init__(self, kernel: Kernel, source: Source, entry: str, capability: Capability) -> None:
        self.source = source
        self.entry = entry
        self.functions = user_functions(kernel)
        self._capability = capability
        self._handles: WeakKeyDictionary[Driver, int] = WeakKeyDictionary()

    @cached_property
    def code(self) -> CudaCode:
        """The PTX, and how many threads a block of it has."""
        return compile_source(self.source, self.entry, self._capability, self.functions)

    @property
    def ptx(self) -> str:
        """PTX text."""
        return self.code.ptx

    def function(self, driver: Driver) -> int:
        """What ``driver`` launches."""
        handle = self._handles.get(driver)
        if handle is None:
            handle = self._handles[driver] = driver.load(self)
        return handle
