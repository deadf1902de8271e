"""The form of kernels without rows: every thread takes vectors of elements."""

from __future__ import annotations

from jitgrad.backends.cuda.element_loops import ElementWriter
from jitgrad.backends.cuda.grid_writer import LAST
from jitgrad.compiler.lowering.kernel_ir import Accumulate


class Flat(ElementWriter):
    """Elements; a block takes one vector for each thread, or a range of elements if it adds them up.

    For ``tanh(x) * 0.5`` in f32::

        def kernel(x0, y0, iterations):
            threads(256)
            x0u = scratch_f32(4)
            y0u = scratch_f32(4)
            whole = is_aligned(x0, 16) and is_aligned(y0, 16)
            j = (block() * 256 + thread()) * 4
            if j < iterations:
                if whole and j + 4 <= iterations:
                    copy_vector(x0u, at(x0, j), 4)
                else:
                    for u in range(4):
                        x0u[u] = x0[min(j + u, iterations - 1)]
                for u in range(4):
                    a1 = x0u[u]
                    t2 = tanh(a1)
                    t3 = (t2 * to_f32(0.5))
                    y0u[u] = t3
                if whole and j + 4 <= iterations:
                    copy_vector(at(y0, j), y0u, 4)
                else:
                    for u in range(4):
                        if j + u < iterations:
                            y0[j + u] = y0u[u]
    """

    def grid(self) -> None:
        out, width = self.out, self.vector
        self.open_vectors()
        self.check_alignment()
        self.open_totals()
        (sweep,) = self.kernel.sweeps
        self.stop = LAST
        if not any(isinstance(s, Accumulate) for s in sweep.body):
            thread = f"block() * {self.schedule.threads} + thread()"
            out.line(f"j = ({thread}) * {width}" if width > 1 else f"j = {thread}")
            with out.block(f"if j < {LAST}:"):
                self.elements(sweep.body)
            return
        self.stop: str = "stop"
        self.block_range()
        first = f"start + thread() * {width}" if width > 1 else "start + thread()"
        self.sum_loop(sweep.body, first, "stop", self.schedule.threads * width, runs=True)
        self.close_totals()
