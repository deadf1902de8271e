"""Eager execution of long elementwise functions on large arrays: some thousand elements at a time.

Op by op, each result of a million elements goes through memory. Here elementwise ops on large arrays of one shape wait until
someone needs their elements. Then NumPy's functions run on one block after the other, whose temporaries stay in the cache,
and several threads share the blocks. Every element comes from the same NumPy functions on the same numbers as otherwise, so
results have the same bits. What nobody refers to any more is never a whole array.

A tensor whose elements are not there yet holds a `Value`, as in a trace.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from threading import Thread
from typing import Any

import numpy as np

from jitgrad.core.aval import Aval, Dtype, Shape, strong_aval
from jitgrad.core.dispatch import aval_of
from jitgrad.core.ir import Graph, Value
from jitgrad.core.number_range import check_numbers
from jitgrad.core.op import REGISTRY, Kind, OpDef
from jitgrad.core.tensor import Tensor
from jitgrad.eager.float16 import HALF, eager_function
from jitgrad.eager.interpreter import EagerInterpreter
from jitgrad.eager.numpy_errors import quietly

BLOCK_BYTES = 1 << 17  # of a result: a few of them stay in the second-level cache; starting an op takes a tenth of its time
FEWEST_ELEMENTS = 1 << 16  # of a result that waits: smaller ones stay in the cache as they are
_MOST_STEPS = 4096  # so that what waits does not keep everything
_WORTHWHILE = 1 << 24  # elements of large results: their arithmetic takes longer than that threads start
_ELEMENTS_OF_A_NODE = 1 << 14  # in the mean: an op that waits takes longer to record than one with a plan to run

_Array = np.ndarray[Any, Any]


def is_worthwhile(graph: Graph) -> bool:
    """Whether most of the time of an eager run of ``graph`` goes into elementwise ops on large arrays."""
    sizes = [math.prod(node.outs[0].aval.shape) for node in graph.nodes if node.op.kind is Kind.ELEMENTWISE]
    elements = sum(n for n in sizes if n >= FEWEST_ELEMENTS)
    return elements >= _WORTHWHILE and elements >= _ELEMENTS_OF_A_NODE * len(graph.nodes)


@dataclass(frozen=True, slots=True)
class _Step:
    """An op that waits. Operands are places in a list of values: the k-th array from outside has -1 - k."""

    function: Callable[..., Any]
    operands: tuple[int, ...]
    result: Aval


def _is_in_order(x: Any) -> bool:
    """Whether NumPy lays results out in the order of axes for an operand ``x``, as what waits will be."""
    array = x._data if isinstance(x, Tensor) else x
    if type(array) is not np.ndarray or array.flags.c_contiguous:
        return True
    strides = [s for s, n in zip(array.strides, array.shape, strict=True) if n > 1 and s]
    return all(s > 0 for s in strides) and strides == sorted(strides, reverse=True)


def _function_of(op: OpDef, avals: Sequence[Aval], dtypes: Sequence[Dtype], attrs: Mapping[str, Any], out: Dtype) -> Any:
    """The NumPy function of ``op`` on arrays of ``avals``, which converts to ``dtypes`` and ``out`` where it must."""
    function = eager_function(op, dtypes)
    fits = not attrs and all([a.dtype == d for a, d in zip(avals, dtypes, strict=True)])
    if fits and isinstance(function, np.ufunc) and function.resolve_dtypes((*dtypes, None)) == (*dtypes, out):
        return function

    def call(*arrays: _Array) -> _Array:
        given = [x if x.dtype == d else x.astype(d) for x, d in zip(arrays, dtypes, strict=True)]
        return np.asarray(function(*given, **attrs), out)

    return call


class BlockedInterpreter(EagerInterpreter):
    """The eager interpreter, but for elementwise ops on large arrays, which wait. Call `finish` at the end.

    While ops wait, no one else may write to the arrays that tensors hold: it is for functions without side effects.
    """

    def __init__(self, threads: int = 1) -> None:
        self._threads = threads
        self._shape: Shape = ()
        self._steps: list[_Step] = []
        self._outside: list[_Array] = []
        self._places: dict[int, int] = {}  # by the ids of arrays from outside, which are kept
        self._waiting: weakref.WeakKeyDictionary[Value, int] = weakref.WeakKeyDictionary()
        self._arrays: weakref.WeakKeyDictionary[Value, _Array] = weakref.WeakKeyDictionary()
        self._made: list[weakref.ref[Tensor]] = []

    # --- what ops and tensors ask an interpreter ------------------------------------------------------

    def apply(self, op: OpDef, operands: tuple[Any, ...], attrs: Mapping[str, Any]) -> Any:
        if op.kind is Kind.ELEMENTWISE and REGISTRY.get(op.name) is op and not (op.multiple or op.moves or op.views):
            avals = [aval_of(op, x) for x in operands]
            expected = op.abstract(avals, attrs)
            assert isinstance(expected, Aval)
            large = math.prod(expected.shape) >= FEWEST_ELEMENTS and all(map(_is_in_order, operands))
            if large and all(a.dtype.kind in "fiub" and a.dtype != HALF for a in (*avals, expected)):
                check_numbers(op, operands, avals, attrs)
                return self._later(op, operands, avals, attrs, strong_aval(expected.shape, expected.dtype))
        return super().apply(op, operands, attrs)

    def current(self, tensor: Tensor) -> Any:
        """The array, or the Value of one that waits: the tape saves it as it is."""
        data = tensor._data
        return data if type(data) is Value and data in self._waiting else super().current(tensor)

    def known_value(self, tensor: Tensor, _what: str) -> Any:
        self._fill(tensor)
        return tensor._data if type(tensor._data) is np.ndarray else None

    def knows(self, tensor: Tensor) -> bool:
        self._fill(tensor)
        return super().knows(tensor)

    def write(self, target: Tensor, value: Any) -> None:
        self.run_waiting()
        super().write(target, value)

    def replace(self, target: Tensor, new: Tensor) -> None:
        self.run_waiting()
        self._fill(new)
        super().replace(target, new)

    def write_grad(self, tensor: Tensor, grad: Tensor | None) -> None:
        if grad is not None:  # stays when the function has returned
            self._fill(grad)
        super().write_grad(tensor, grad)

    def _array(self, x: Any, what: str) -> Any:
        if isinstance(x, Tensor):
            self._fill(x)
        return super()._array(x, what)

    def _fill(self, tensor: Tensor) -> None:
        """Give ``tensor`` its array, if it is one of those that waited."""
        data = tensor._data
        if type(data) is Value:
            if data in self._waiting:
                self.run_waiting()
            if (array := self._arrays.get(data)) is not None:
                tensor._data = array

    # --- what waits -----------------------------------------------------------------------------------

    def _later(
        self, op: OpDef, operands: tuple[Any, ...], avals: Sequence[Aval], attrs: Mapping[str, Any], result: Aval
    ) -> Tensor:
        if result.shape != self._shape or len(self._steps) >= _MOST_STEPS:
            self.run_waiting()
            self._shape = result.shape
        dtypes, _ = op.dtypes(avals, **attrs)
        places = tuple([self._place(x, op, d) for x, d in zip(operands, dtypes, strict=True)])
        given = [strong_aval(a.shape, d) if a.weak else a for a, d in zip(avals, dtypes, strict=True)]
        value = Value(result)
        self._waiting[value] = len(self._steps)
        self._steps.append(_Step(_function_of(op, given, dtypes, dict(attrs), result.dtype), places, result))
        tensor = Tensor(value)
        self._made.append(weakref.ref(tensor))
        return tensor

    def _place(self, x: Any, op: OpDef, dtype: Dtype) -> int:
        if isinstance(x, Tensor):
            if type(x._data) is Value and (place := self._waiting.get(x._data)) is not None:
                return place
            array = self._array(x, op.name)
            if x.aval.weak and array.dtype != dtype:
                array = array.astype(dtype)
        else:
            array = np.asarray(x, dtype)
        place = self._places.get(id(array), 0)
        if not place:
            self._outside.append(array)
            place = self._places[id(array)] = -len(self._outside)
        return place

    def run_waiting(self) -> None:
        """Compute what waits, as far as someone refers to it."""
        steps, outside, shape = self._steps, self._outside, self._shape
        self._steps, self._outside, self._places, self._shape = [], [], {}, ()
        waiting, self._waiting = self._waiting, weakref.WeakKeyDictionary()
        if not waiting:
            return
        run = _BlockedRun(steps, outside, shape, sorted(waiting.values()))
        quietly(run.run, self._threads)
        self._arrays.update([(value, run.results[k]) for value, k in waiting.items()])

    def finish(self, results: Iterable[Any]) -> None:
        """Compute what waits, and give every tensor its array; ``results`` may have been made of others."""
        self.run_waiting()
        for tensor in (*results, *[reference() for reference in self._made]):
            if isinstance(tensor, Tensor):
                self._fill(tensor)


class _BlockedRun:
    """``steps`` on arrays from ``outside``, block by block; ``results`` are the whole arrays of the steps ``wanted``."""

    def __init__(self, steps: Sequence[_Step], outside: Sequence[_Array], shape: Shape, wanted: Sequence[int]) -> None:
        self.results: dict[int, _Array] = {k: np.empty(shape, steps[k].result.dtype) for k in wanted}
        self.length = len(steps)
        written, self.shape = self.results, shape
        if all(x.size == 1 or (x.shape == shape and x.flags.c_contiguous) for x in outside):  # as if there were one axis
            outside = [x.reshape(-1 if x.size > 1 else ()) for x in outside]
            written, self.shape = {k: x.reshape(-1) for k, x in self.results.items()}, (math.prod(shape),)
        self.outside = [(x, x.ndim == len(self.shape) and len(x) == self.shape[0] > 1) for x in reversed(outside)]
        self.steps = list[tuple[Callable[..., Any], tuple[int, ...], int, _Array | None, tuple[int, ...]]]()
        needed = set(wanted)
        for k in range(len(steps) - 1, -1, -1):
            if k in needed:
                last = tuple([place for place in {*steps[k].operands} if place >= 0 and place not in needed])
                needed.update(steps[k].operands)
                self.steps.append((steps[k].function, steps[k].operands, k, written.get(k), last))
        self.steps.reverse()

    def run(self, threads: int) -> None:
        """Raises what a step raises."""
        widest = max(array.dtype.itemsize for array in self.results.values())
        rows = max(1, BLOCK_BYTES // (widest * math.prod(self.shape[1:])))
        starts = iter(range(0, self.shape[0], rows))  # which threads share
        errors: list[BaseException] = []
        others = [
            Thread(target=copy_context().run, args=(self._run_blocks, starts, rows, errors), daemon=True)
            for _ in range(min(threads, -(-self.shape[0] // rows)) - 1)
        ]
        for thread in others:
            thread.start()
        self._run_blocks(starts, rows, errors)
        for thread in others:
            thread.join()
        if errors:
            raise errors[0]

    def _run_blocks(self, starts: Iterator[int], rows: int, errors: list[BaseException]) -> None:
        try:
            for start in starts:
                if errors:
                    return
                self._run_block(slice(start, start + rows))
        except BaseException as error:
            errors.append(error)

    def _run_block(self, rows: slice) -> None:
        values: list[Any] = [None] * self.length
        values += [x[rows] if varies else x for x, varies in self.outside]
        for function, operands, k, written, last in self.steps:
            if len(operands) == 2:
                result = function(values[operands[0]], values[operands[1]])
            else:
                result = function(*[values[place] for place in operands])
            if written is not None:
                written[rows] = result
            values[k] = result
            for place in last:
                values[place] = None
