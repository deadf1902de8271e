"""A library op that a kernel written for it computes on the device, in place of NumPy on the host."""

from __future__ import annotations

from dataclasses import dataclass

from jitgrad.backends.codegen.source import Emitter, Source
from jitgrad.backends.cuda.grid_writer import LAST
from jitgrad.compiler.lowering.kernel_ir import KernelParameter

CALL_THREADS = 256  # of a block
UNSIGNED = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}  # elements that are only copied are copied as integers


@dataclass(frozen=True, slots=True)
class DeviceCall:
    """One launch.

    Attributes:
        source: its text. The parameters are the result, ``operands``, ``words``, and with ``checks_bounds`` the words
            for faults (`jitgrad.device.cuda_device.Faults`) and the number of the launch.
        operands: numbers of the op's operands, in the order of the parameters.
        words: sizes.
        iterations: threads that have work.
        changes: whether the result is the first operand, changed.
    """

    source: Source
    operands: tuple[int, ...]
    words: tuple[int, ...]
    iterations: int
    changes: bool = False
    checks_bounds: bool = False

    @property
    def blocks(self) -> int:
        return max(1, -(-self.iterations // CALL_THREADS))


class CallWriter:
    """Writes the text of a kernel whose thread ``t`` does iteration ``t``: ``with writer as out: out.line(...)``."""

    def __init__(self, pointers: dict[str, str], words: list[str], checks_bounds: bool = False) -> None:
        self._params = [KernelParameter(name, f"{kind}*") for name, kind in pointers.items()]
        self._params += [KernelParameter(name, "i64") for name in words]
        if checks_bounds:
            self._params += [KernelParameter("faults", "i64*"), KernelParameter("number", "i64")]
        self._out = Emitter(LAST)
        self._blocks = [self._out.block(f"def kernel({', '.join([*(p.name for p in self._params), LAST])}):")]

    def __enter__(self) -> Emitter:
        self._blocks[0].__enter__()
        self._out.line(f"threads({CALL_THREADS})")
        self._out.line(f"t = block() * {CALL_THREADS} + thread()")
        self._blocks.append(self._out.block(f"if t < {LAST}:"))
        self._blocks[1].__enter__()
        return self._out

    def __exit__(self, *error: object) -> None:
        for block in reversed(self._blocks):
            block.__exit__(None, None, None)

    def source(self) -> Source:
        """The text, once it is complete."""
        return self._out.source(self._params)
