"""Runs ejected CUDA modules of a folder without a GPU: in numba's simulator, or up to the PTX of each kernel.

``python run_cuda_modules.py simulate|compile FOLDER`` prints a line for each module that fails. It is a process of its
own because numba reads NUMBA_ENABLE_CUDASIM when it is imported.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import types
from fractions import Fraction
from pathlib import Path
from typing import Any

SIMULATE = sys.argv[1] == "simulate"
os.environ["NUMBA_ENABLE_CUDASIM"] = "1" if SIMULATE else "0"

import numpy as np  # noqa: E402
from numba import cuda  # noqa: E402

CAPABILITY = 8, 0


def load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def fused(a: Any, b: Any, c: Any) -> Any:
    """``a * b + c`` rounded once, which the simulator rounds twice."""
    plain = a * b + c
    if not np.isfinite([a, b, c, plain]).all():
        return plain
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    # a float64 on its way to float32 keeps its last bit set, so that it is rounded once
    near = float(exact)
    if plain.dtype == np.float32 and Fraction(near) != exact and not np.float64(near).view(np.int64) & 1:
        near = float(np.nextafter(near, np.inf if exact > Fraction(near) else -np.inf))
    return plain.dtype.type(near) if near else plain * 0 + near


def compiled_launch(kernel: Any, _geometry: Any) -> Any:
    """In place of a launch: the PTX of ``kernel`` for the types of its arguments."""
    import numba

    def launch(*args: Any) -> None:
        types_ = [t.dtype[::1] if isinstance(t, numba.types.Array) else t for t in map(numba.typeof, args)]
        ptx, _ = cuda.compile_ptx(kernel.py_func, tuple(types_), cc=CAPABILITY)
        assert ".entry" in ptx

    return launch


class HostArray(np.ndarray):
    """An array on the host that says it is on a device."""

    def copy_to_host(self) -> Any:
        return np.array(self)

    def copy_to_device(self, values: Any) -> None:
        self[...] = values

    def is_c_contiguous(self) -> bool:
        return bool(self.flags.c_contiguous)


def few_threads() -> None:
    """Blocks of at most 4 threads, each of which is a thread of Python; kernels ask how many they are."""
    from numba.cuda.simulator.kernel import FakeCUDAKernel

    launched = FakeCUDAKernel.__getitem__
    FakeCUDAKernel.__getitem__ = lambda self, geometry: launched(self, (geometry[0], min(geometry[1], 4)))


def without_a_driver() -> None:
    """Let numba compile kernels and device functions where there is no GPU, and launch nothing."""
    from numba.cuda import compiler, dispatcher

    device = types.SimpleNamespace(compute_capability=CAPABILITY)
    dispatcher.get_current_device = compiler.get_current_device = lambda: device
    dispatcher.CUDADispatcher.__getitem__ = compiled_launch
    cuda.to_device = lambda x: np.array(x).view(HostArray)
    cuda.device_array = lambda n, dtype: np.zeros(n, dtype).view(HostArray)


def simulate(module: Any, data: Path) -> None:
    with np.load(data) as file:
        recorded = dict(file)
    for call in range(int(recorded["calls"])):
        prefix = f"call {call}: "
        own = {k.removeprefix(prefix): x for k, x in recorded.items() if k.startswith(prefix)}
        for name, found in module.example(own).items():
            expected, limit = own[f"expected {name}"], own[f"limit {name}"]
            assert (found.shape, found.dtype) == (expected.shape, expected.dtype), f"{name}: {found.dtype}{found.shape}"
            with np.errstate(all="ignore"):
                near = np.abs(found.astype("f8") - expected.astype("f8")) <= limit
                same = (found == expected) | ((found != found) & (expected != expected)) | near
            assert same.all(), f"{name}: {found[~same][:4]} for {expected[~same][:4]}, limit {np.max(limit)}"


def main() -> int:
    if SIMULATE:
        from numba.cuda.simulator.kernelapi import FakeCUDAModule

        FakeCUDAModule.fma = staticmethod(fused)
        few_threads()
    else:
        without_a_driver()
    failed = 0
    for path in sorted(Path(sys.argv[2]).glob("[!t]*.py")):
        try:
            module = load(path)
            if SIMULATE:
                simulate(module, path.with_suffix(".npz"))
            else:
                with np.load(path.with_suffix(".npz")) as file:
                    module.example({k.removeprefix("call 0: "): file[k] for k in file})
        except Exception as error:
            failed += 1
            text = " ".join(str(error).split())
            print(f"{path.stem}: {type(error).__name__}: {text[-600:]}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
