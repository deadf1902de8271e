"""Runs every op of the registry, and random programs, on the CUDA device against NumPy and the cpu target.

    python tools/check_cuda_ops.py            # on the emulated device
    python tools/check_cuda_ops.py --hardware # on the GPU
    python tools/check_cuda_ops.py --seconds 100 # what there is time for, in an order that spreads over all

Ops run eager and compiled, with gradients, in float32 and float64, and those that take complex numbers on these;
programs compiled, and every eighth eager as well. The last line is the row of `tools/check_cuda_hardware.py`.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import jitgrad as jg
from jitgrad.backends.cuda_target.emulated_device import emulated_device
from jitgrad.core.errors import RetraceWarning
from jitgrad.testing.on_device import compare_on_device, compare_program_on_device, ops_to_check
from tools.hardware_run import Row

DTYPES = (np.float32, np.float64, np.complex64, np.complex128)


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return jg.jit(function, check="off")


def checks(programs: int) -> Iterator[tuple[str, Callable[[], None]]]:
    """All checks with their names."""
    for dtype in DTYPES:
        for op in ops_to_check(dtype):
            yield f"op {op} {np.dtype(dtype)}", lambda op=op, dtype=dtype: compare_on_device(op, compiled, dtype)
    for seed in range(programs):
        yield f"random program {seed}", lambda seed=seed: compare_program_on_device(seed, compiled)


def main() -> int:
    """The number of checks that fail."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hardware", action="store_true", help="use the GPU of this machine")
    parser.add_argument("--programs", type=int, default=300, help="random programs")
    parser.add_argument("--seconds", type=float, default=math.inf, help="start no check later")
    options = parser.parse_args()
    warnings.simplefilter("ignore", RetraceWarning)
    done = wrong = 0
    start = time.perf_counter()
    every = list(checks(options.programs))
    if options.seconds < math.inf:
        random.Random(0).shuffle(every)  # so that what there is time for has some of each
    with nullcontext() if options.hardware else emulated_device():
        for name, check in every:
            if time.perf_counter() - start > options.seconds:
                break
            done += 1
            try:
                check()
            except Exception as error:
                wrong += 1
                print(f"{name}: {type(error).__name__}: {str(error)[:300]}", flush=True)
    ops, complex_ops = len(ops_to_check()), len(ops_to_check(np.complex64))
    print(f"{ops} ops in float32 and float64, {complex_ops} of them on complex numbers, {options.programs} random programs: "
          f"{wrong} of {done} checks fail; {time.perf_counter() - start:.0f} s")  # fmt: skip
    left = f"; no time was left for {len(every) - done}" if done < len(every) else ""
    row = Row("ops", f"{ops} ops, {options.programs} programs", f"{wrong} of {done} checks fail{left}", not wrong and done > 0)
    print(json.dumps(asdict(row)), flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(min(main(), 1))
