"""The table of C functions that the native loop calls, and how the driver captures one."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import numpy as np
import pytest

from jitgrad.backends.cuda_target.call_table import (
    Address,
    CallTable,
    DriverCall,
    copy_call,
    graph_call,
    launch_call,
    product_call,
)
from jitgrad.core.errors import CudaError
from jitgrad.device.cuda_driver import CudaDriver
from jitgrad.device.driver import COPY_MEMORY, LAUNCH_GRAPH, LAUNCH_KERNEL, PRODUCTS
from jitgrad.runtime.executor.gemm import BatchAxis, Gemm, MatrixLayout
from tests.device.test_driver import Library


class Noting:
    """A driver whose C functions note the words that they get, and return what ``statuses`` says."""

    def __init__(self, statuses: tuple[int, ...] = ()) -> None:
        self.calls: list[tuple[str, tuple[int, ...]]] = []
        self.arguments: list[list[int]] = []
        self.statuses = list(statuses)
        self.libraries_lock = threading.Lock()
        lengths = {LAUNCH_KERNEL: 11, COPY_MEMORY: 4, LAUNCH_GRAPH: 2, **dict.fromkeys(PRODUCTS.values(), 18)}
        self._kept = {name: self._function(name, count) for name, count in lengths.items()}

    def _function(self, name: str, count: int) -> Any:
        def noted(*words: int) -> int:
            self.calls.append((name, words))
            if name == LAUNCH_KERNEL:
                extra = (ctypes.c_int64 * 5).from_address(words[10])
                size = ctypes.c_int64.from_address(extra[3]).value
                self.arguments.append(list((ctypes.c_int64 * (size // 8)).from_address(extra[1])))
            return self.statuses.pop(0) if self.statuses else 0

        return ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_int64] * count)(noted)

    def function(self, name: str) -> int:
        return ctypes.cast(self._kept[name], ctypes.c_void_p).value or 0

    def check(self, function: str, status: int) -> None:
        raise CudaError(f"{function} returned {status}")


def run(calls: list[DriverCall], bases: list[int], driver: Noting) -> None:
    CallTable(calls, driver).bound(np.array(bases, np.int64)).run()  # type: ignore[arg-type]


def test_launches_pass_their_arguments_in_one_buffer() -> None:
    driver = Noting()
    calls = [launch_call(7, 3, 256, (Address(0, 16), -5, 1 << 60), Address(2, 0)), launch_call(8, 1, 32, (Address(1, 0),), 0)]

    run(calls, [1000, 2000, 77], driver)

    assert driver.arguments == [[1016, -5, 1 << 60], [2000]]
    assert [words[:10] for _, words in driver.calls] == [(7, 3, 1, 1, 256, 1, 1, 0, 77, 0), (8, 1, 1, 1, 32, 1, 1, 0, 0, 0)]


def test_a_table_is_relocated_at_every_run() -> None:
    driver, bases = Noting(), np.array([100, 200], np.int64)
    bound = CallTable([copy_call(Address(0, 8), Address(1, 0), 64, 0), graph_call(Address(0, 0), 5)], driver).bound(bases)  # type: ignore[arg-type]
    bound.run()
    bases[:] = 300, 400
    bound.run()

    assert driver.calls == [
        (COPY_MEMORY, (108, 200, 64, 0)), (LAUNCH_GRAPH, (100, 5)), (COPY_MEMORY, (308, 400, 64, 0)), (LAUNCH_GRAPH, (300, 5))
    ]  # fmt: skip


def test_the_first_failure_ends_the_run_and_names_the_function() -> None:
    driver = Noting((0, 719))

    with pytest.raises(CudaError, match="cuMemcpyDtoDAsync_v2 returned 719"):
        run([graph_call(1, 0), copy_call(1, 2, 3, 0), graph_call(2, 0)], [0], driver)
    assert len(driver.calls) == 2


@pytest.mark.parametrize(
    ("dtype", "letter"), [(np.float32, "S"), (np.float64, "D"), (np.complex64, "C"), (np.complex128, "Z")]
)
def test_a_product_is_that_of_the_columns(dtype: Any, letter: str) -> None:
    driver = Noting()
    rows, columns = MatrixLayout(False, 10), MatrixLayout(True, 11)
    gemm = Gemm(np.dtype(dtype), (2, 3, 4), rows, columns, MatrixLayout(False, 12), (), BatchAxis(5, (6, 0, 8)))

    run([product_call(gemm, (Address(0, 0), Address(1, 0), Address(2, 4)), 9)], [100, 200, 300], driver)

    ((name, words),) = driver.calls
    assert name == f"cublas{letter}gemmStridedBatched"
    factors = [ctypes.string_at(words[k] & (1 << 64) - 1, np.dtype(dtype).itemsize) for k in (6, 13)]
    assert factors == [np.array(factor, dtype).tobytes() for factor in (1, 0)]
    left, right, out = (100, 10, 6), (200, 11, 0), (304, 12, 8)
    assert words[:6] + words[7:13] + words[14:] == (9, 1, 0, 4, 2, 3, *right, *left, *out, 5)


def test_an_empty_table_does_nothing() -> None:
    run([], [0], Noting())


def test_a_capture_ends_whatever_happens() -> None:
    library = Library()
    driver = CudaDriver(library)

    driver.capture(lambda stream, products: None, products=False)
    with pytest.raises(ZeroDivisionError):
        driver.capture(lambda stream, products: 1 // 0, products=False)  # type: ignore[arg-type,return-value]

    names = [name for name, *_ in library.calls if "Graph" in name or "Stream" in name]
    assert names == [
        "cuStreamCreate", "cuStreamBeginCapture_v2", "cuStreamEndCapture", "cuGraphInstantiateWithFlags", "cuGraphDestroy",
        "cuStreamBeginCapture_v2", "cuStreamEndCapture",
    ]  # fmt: skip
