"""CUDA graphs of a call table: captured for the addresses that come again, and launched in place of its calls."""

from __future__ import annotations

import warnings
import weakref
from collections import OrderedDict, deque
from typing import Any

import numpy as np

from jitgrad.backends.cuda_target.call_table import BoundTable
from jitgrad.core.errors import CudaError, JitgradWarning
from jitgrad.device.driver import Driver

# Estimates from published costs of a launch (2 us from machine code) and of a graph (some 7 us, whatever is in it).
MIN_CALLS = 6  # a table of fewer calls is as quick call by call
MAX_GRAPHS = 8  # of one frame
_REMEMBERED = 64  # tuples of addresses that came once


class Graphs:
    """The graphs of ``table``, by the bases for which they were captured.

    A graph holds addresses. It is launched only if all of them are those of the call, so it never touches memory that
    belongs to something else by then.

    Attributes:
        refusal: what the driver said when it could not capture the table; nothing is captured after that.
    """

    def __init__(self, driver: Driver, table: BoundTable, bases: np.ndarray[Any, Any], stream: int, products: int) -> None:
        """``stream`` and ``products`` are the regions of the stream and of cuBLAS's handle."""
        self._driver, self._table, self._bases = driver, table, bases
        self._handles = [stream, products]
        self._graphs: OrderedDict[bytes, int] = OrderedDict()
        self._seen: deque[bytes] = deque(maxlen=_REMEMBERED)
        self.refusal: str = ""
        finalizer = weakref.finalize(self, _destroy, driver, self._graphs)
        finalizer.atexit = False  # the driver may be gone by then

    def find(self, key: bytes) -> int:
        """The graph for bases that begin with the words ``key``, captured when they come a second time; 0 if there is none."""
        graph = self._graphs.get(key)
        if graph is not None:
            self._graphs.move_to_end(key)
            return graph
        if key in self._seen and not self.refusal:
            return self._capture(key)
        self._seen.append(key)
        return 0

    def _capture(self, key: bytes) -> int:
        self._bases[: len(key) // self._bases.itemsize] = np.frombuffer(key, self._bases.dtype)
        try:
            graph = self._driver.capture(self._record, self._table.table.products)
        except CudaError as error:
            self.refusal = str(error)
            warnings.warn(f"a program is launched kernel by kernel, not as a CUDA graph: {error}", JitgradWarning, stacklevel=2)
            return 0
        self._graphs[key] = graph
        if len(self._graphs) > MAX_GRAPHS:
            self._driver.destroy_graph(self._graphs.popitem(last=False)[1])
        return graph

    def _record(self, stream: int, products: int) -> None:
        """Make the calls of the table for a stream that captures them."""
        before = self._bases[self._handles]
        self._bases[self._handles] = stream, products
        try:
            self._table.run()
        finally:
            self._bases[self._handles] = before


def _destroy(driver: Driver, graphs: OrderedDict[bytes, int]) -> None:
    for graph in graphs.values():
        driver.destroy_graph(graph)
