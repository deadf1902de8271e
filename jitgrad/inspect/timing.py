"""Times functions in turn, after a warm-up and with the garbage collector off."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jitgrad.core.device_array import to_host
from jitgrad.core.tensor import Tensor
from jitgrad.eager.buffer_pool import POOL
from jitgrad.inspect.roofline import Roofline, StepTime
from jitgrad.jit.executable import Executable
from jitgrad.runtime.program import Program
from jitgrad.runtime.program_op import contiguous

MAX_SAMPLES = 1000
MIN_SAMPLES = 5


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one call: the median of ``samples``, and the 10th and 90th percentile."""

    median: float
    low: float
    high: float
    samples: int

    def __str__(self) -> str:
        return f"{readable_seconds(self.median)}  ({readable_seconds(self.low)} .. {readable_seconds(self.high)})"


def readable_seconds(seconds: float) -> str:
    """``1.23 ms``, ``45.6 us``."""
    for unit, factor in (("s", 1.0), ("ms", 1e3)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def time_in_turn(functions: Sequence[Callable[[], Any]], seconds: float) -> list[Timing]:
    """Time ``functions`` in turn, for the same load of the machine, for about ``seconds`` in total.

    Each runs twice before, and gets at least five samples.
    """
    for function in functions:
        function()
        function()
    times: list[list[float]] = [[] for _ in functions]
    enabled = gc.isenabled()
    gc.disable()
    try:
        end = time.perf_counter() + seconds
        while len(times[0]) < MIN_SAMPLES or (time.perf_counter() < end and len(times[0]) < MAX_SAMPLES):
            for function, samples in zip(functions, times, strict=True):
                start = time.perf_counter()
                function()
                samples.append(time.perf_counter() - start)
    finally:
        if enabled:
            gc.enable()
    return [_timing(samples) for samples in times]


def _timing(samples: Sequence[float]) -> Timing:
    low, median, high = np.percentile(samples, [10, 50, 90])
    return Timing(float(median), float(low), float(high), len(samples))


def program_inputs(compiled: Executable, leaves: Sequence[Any]) -> list[np.ndarray[Any, Any]]:
    """Copies of the inputs of ``compiled`` in this call, on the host."""
    inputs = []
    for x, value in zip(compiled.operands(leaves), compiled.traced.graph.inputs, strict=True):
        array = np.asarray(to_host(x._data) if isinstance(x, Tensor) else x, value.aval.dtype)
        inputs.append(contiguous(array).copy())
    return inputs


def backward_inputs(
    compiled: Executable, inputs: Sequence[np.ndarray[Any, Any]]
) -> list[np.ndarray[Any, Any]]:
    """The inputs of backward after a forward run on ``inputs``, with ones as incoming gradients."""
    split = compiled.op.split
    outs = compiled.op.forward.run(inputs)
    saved = outs[len(outs) - split.saved :] if split.saved else []
    used = [inputs[k] for k in split.used]
    seeds = compiled.op.backward.plan.graph.inputs[len(used) + len(saved) :]
    return [*used, *saved, *(np.ones(v.aval.shape, v.aval.dtype) for v in seeds)]


def step_times(program: Program, inputs: Sequence[np.ndarray[Any, Any]]) -> list[StepTime]:
    """The time of every step of ``program`` alone, run in order on ``inputs``, which are overwritten.

    Each step becomes a program of its own whose buffers are all inputs, so its time includes one call. Buffers exist
    from their first step to their last: a program may have far more temporaries than its arena has room for.
    """
    plan, roofline = program.plan, Roofline()
    last = {buffer: k for k, step in enumerate(plan.steps) for buffer in step.buffers}
    memory = dict(zip(plan.inputs, (x.reshape(-1).view(np.uint8) for x in inputs), strict=True))
    times = []
    for k, step in enumerate(plan.steps):
        buffers = tuple(dict.fromkeys(step.buffers))
        for buffer in buffers:
            if buffer not in memory:
                memory[buffer] = POOL.empty((buffer.nbytes,), np.dtype(np.uint8))  # kernels rely on its alignment
                memory[buffer].fill(0)
        alone = replace(
            plan, inputs=buffers, outputs=(), results=(), steps=(step,), offsets={}, arena_bytes=0, external=(), block_runs=()
        )
        times.append(roofline.time(Program(alone, program.target, program.turns), [memory[buffer] for buffer in buffers]))
        for buffer in buffers:
            if last[buffer] == k:
                del memory[buffer]
    return times
