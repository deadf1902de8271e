"""The step of a call that looks whether the memory that the function changes may be changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jitgrad.compiler.input_source import InputSource, SourceKind
from jitgrad.core.errors import ReadOnlyError
from jitgrad.core.origin import Origin
from jitgrad.jit.fast_call import FEW, FastCallWriter, listed
from jitgrad.jit.input_steps import CallState, array_of
from jitgrad.jit.trace_result import Effect, TraceResult
from jitgrad.runtime.executor.fastcall import all_writeable


@dataclass(frozen=True, eq=False, slots=True)
class CheckWritable:
    """Memory that the function changes in place is writeable; kernels, which get addresses, would write to any.

    The flag of an array can change between calls, so that each one looks.
    """

    traced: TraceResult
    origin: Origin

    def run(self, call: CallState) -> None:
        for effect in self._changes():
            data = array_of(effect.target.resolve(call.leaves))
            if isinstance(data, np.ndarray) and not data.flags.writeable:
                raise ReadOnlyError(
                    f"@jit function {self.traced.graph.name!r} at {self.origin.full()} changes "
                    f"{self.traced.describe(effect.target)} in place, an array of shape {data.shape} over read-only memory: "
                    "pass a .clone() of it, or np.array(x)"
                )

    def _changes(self) -> list[Effect]:
        """The effects that write to memory; data that was assigned brings its own."""
        return [e for e in self.traced.effects if not e.replaced]

    def write(self, w: FastCallWriter) -> None:
        targets = [effect.target for effect in self._changes()]
        on_host = [s for s in targets if not w.on_device or w.stays_on_host(s)]
        if on_host:
            w.names["all_writeable"] = all_writeable()
            w.miss_if(f"not all_writeable({self._arrays(w, on_host)})")

    def _arrays(self, w: FastCallWriter, sources: Sequence[InputSource]) -> str:
        """Arguments: the arrays of ``sources``, those of many outside tensors by a loop."""
        tensors = [s.key for s in sources if s.kind is SourceKind.TENSOR]
        if len(tensors) <= FEW:
            return listed([w.data_text(s) for s in sources])
        others = [w.data_text(s) for s in sources if s.kind is not SourceKind.TENSOR]
        return listed([f"*[t._data for t in {w.constant('L', tuple(tensors))}]", *others])
