"""A library op that a kernel written for it computes on the device, in place of NumPy on the host."""

from __future__ import annotations

from dataclasses import dataclass

from jitgrad.backends.codegen.source import Emitter, Source
from jitgrad.backends.cuda.grid_writer import FAULT_WORDS, LAST
from jitgrad.compiler.lowering.kernel_ir import KernelParameter
from jitgrad.device.faults import Fault

CALL_THREADS = 256  # of a block
UNSIGNED = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}  # elements that are only copied are copied as integers


@dataclass(frozen=True, slots=True)
class DeviceCall:
    """One launch.

    Attributes:
        source: its text. The parameters are the results, ``operands``, ``words``, and with a ``fault`` the words for
            faults (`jitgrad.device.faults`) and the number of the launch.
        operands: numbers of the op's operands, in the order of the parameters.
        words: sizes.
        iterations: threads that have work.
        changes: whether the result is the first operand, changed.
        fault: what may be wrong with the values of its operands.
        threads: of a block.
        strided: whether it reads operands where they are, by strides among its words; else it gets contiguous ones.
    """

    source: Source
    operands: tuple[int, ...]
    words: tuple[int, ...]
    iterations: int
    changes: bool = False
    fault: Fault | None = None
    threads: int = CALL_THREADS
    strided: bool = False

    @property
    def blocks(self) -> int:
        return max(1, -(-self.iterations // self.threads))


class CallWriter:
    """Writes the text of a kernel whose thread ``t`` does iteration ``t``: ``with writer as out: out.line(...)``."""

    def __init__(
        self, pointers: dict[str, str], words: list[str], checks_values: bool = False, threads: int = CALL_THREADS
    ) -> None:
        self._params = [KernelParameter(name, f"{kind}*") for name, kind in pointers.items()]
        self._params += [KernelParameter(name, "i64") for name in words]
        if checks_values:
            self._params += [KernelParameter(FAULT_WORDS, "i64*"), KernelParameter("number", "i64")]
        self._threads = threads
        self._out = Emitter(LAST)
        self._blocks = [self._out.block(f"def kernel({', '.join([*(p.name for p in self._params), LAST])}):")]

    def __enter__(self) -> Emitter:
        self._blocks[0].__enter__()
        self._out.line(f"threads({self._threads})")
        self._out.line(f"t = block() * {self._threads} + thread()")
        self._blocks.append(self._out.block(f"if t < {LAST}:"))
        self._blocks[1].__enter__()
        return self._out

    def __exit__(self, *error: object) -> None:
        for block in reversed(self._blocks):
            block.__exit__(None, None, None)

    def source(self) -> Source:
        """The text, once it is complete."""
        return self._out.source(self._params)
