"""What a driver calls: control code that goes over blocks, and calls kernels and NumPy's loops on each."""

from __future__ import annotations

from collections.abc import Sequence

from jitgrad.backends.llvm.code_object import CodeObject
from jitgrad.backends.llvm.ufunc import NumpyLoop


class DriverCode:
    """The table ``code`` of a driver, and the text of calls of what is in it, with their words in ``scratch``.

    Attributes:
        table: addresses of machine code; of a loop of NumPy, that of its data comes next.
        alive: owns the machine code.
    """

    def __init__(self) -> None:
        self.table: list[int] = []
        self.alive: list[CodeObject] = []

    def kernel_call(self, kernel: CodeObject, words: Sequence[str], stop: str) -> list[str]:
        """The lines that call ``kernel`` with ``words`` as its parameters, from 0 to ``stop``."""
        self.alive.append(kernel)
        self.table.append(kernel.address)
        return [*_stored(words), f"call_kernel(code[{len(self.table) - 1}], scratch, 0, {stop})"]

    def numpy_call(self, loop: NumpyLoop, source: str, target: str, count: str, size: int) -> list[str]:
        """The lines that call ``loop`` on ``count`` contiguous elements of ``size`` bytes.

        Its ``args``, ``dims`` and ``steps`` are in ``scratch[0:5]``, and what it is called with comes after them.
        """
        self.table += [loop.function, loop.data]
        function, data = (f"code[{len(self.table) - k}]" for k in (2, 1))
        words = [source, target, count, str(size), str(size), "scratch", "scratch + 16", "scratch + 24", data]
        return [*_stored(words), f"call_words({function}, scratch + 40)"]


def _stored(words: Sequence[str]) -> list[str]:
    return [f"scratch[{k}] = {word}" for k, word in enumerate(words)]
