"""Runs every op of the registry on the CUDA device, eager and compiled, with gradients, against NumPy.

    python tools/check_cuda_ops.py            # on the emulated device
    python tools/check_cuda_ops.py --hardware # on the GPU
"""

from __future__ import annotations

import sys
import time
from contextlib import nullcontext

import numpy as np

import jitgrad as jg
from jitgrad.backends.cuda_target.emulated_device import emulated_device
from jitgrad.testing.on_device import compare_on_device, ops_to_check


def main(arguments: list[str]) -> int:
    """The number of ops that differ."""
    wrong = 0
    start = time.perf_counter()
    with nullcontext() if "--hardware" in arguments else emulated_device():
        for op in ops_to_check():
            for dtype in (np.float32, np.float64):
                try:
                    compare_on_device(op, lambda f: jg.jit(f, check="off"), dtype)
                except Exception as error:
                    wrong += 1
                    print(f"{op} {np.dtype(dtype)}: {type(error).__name__}: {str(error)[:300]}")
    print(f"{len(ops_to_check())} ops, float32 and float64: {wrong} differ; {time.perf_counter() - start:.0f} s")
    return wrong


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
