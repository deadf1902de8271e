"""Writes a fused kernel as one numba function: loops over rows and elements, reductions, and what follows them."""

from __future__ import annotations

from jitgrad.compiler.lowering.loop_nest import Slot
from jitgrad.eject.expressions import numpy_name
from jitgrad.eject.kernel_lines import KernelLines, KernelText
from jitgrad.eject.loops import EpilogueText, Loops


class KernelWriter(KernelLines):
    """Writes the kernel of one group.

    For ``tanh(x) * 0.5`` in f32::

        def kernel(x0, y0, n):
            for i in prange(n):
                a1 = x0[i]
                # demo.py:3: return jg.tanh(x) * 0.5
                tanh_2 = tanh_f32(a1)
                multiply_3 = tanh_2 * np.float32(0.5)
                y0[i] = multiply_3
    """

    def write(self) -> KernelText:
        loops, numbers = Loops(self), self.sizes()
        for p in self.all_params.values():  # scratch arrays are local
            arg = self.args[p.name]
            if isinstance(arg, Slot) and arg.scratch and not self.is_partial(p.name):
                size = self.row_size()
                self.line(f"{p.name} = np.empty({size}, {numpy_name(self.translator.kinds[p.name])})", p.note)
        loops.write()
        if self.kernel.epilogue is not None:
            EpilogueText(self, self.kernel.epilogue).write()
        return self.text([p for p in self.all_params.values() if self.is_parameter(p.name)], numbers)
