"""Ops on device arrays outside of a compiled function: one cached program each."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from jitgrad.backends.cuda_target.target import CUDA
from jitgrad.compiler.compiler_ops import IDENTITY
from jitgrad.core.aval import Aval, Shape
from jitgrad.core.device_array import VIEWS, DeviceArray, to_host
from jitgrad.core.fork import fork_safe_lock
from jitgrad.core.ir import Graph, TraceNode, Value
from jitgrad.core.op import OpDef
from jitgrad.device.cuda_device import CudaDevice
from jitgrad.eager.run import run_eagerly
from jitgrad.ops.creation import COPY, FULL
from jitgrad.runtime.program import Program
from jitgrad.runtime.program_op import compile_graph

_REMEMBERED = 4096  # programs


class OneOpPrograms:
    """The programs of single ops, by op, attributes, and the avals and strides of operands.

    Numbers are inputs, so a new value needs no new program.
    """

    def __init__(self) -> None:
        self._programs: OrderedDict[Hashable, Program] = OrderedDict()
        self._lock = fork_safe_lock()

    def apply(
        self, device: CudaDevice, op: OpDef, operands: Sequence[Any], avals: Sequence[Aval], attrs: Mapping[str, Any]
    ) -> Any:
        """The result(s) of ``op`` on the device; operands are DeviceArrays, ndarrays and numbers."""
        if operands and isinstance(operands[0], DeviceArray):
            if op.name in VIEWS:
                return VIEWS[op.name](operands[0], **attrs)
            if op is COPY:
                return operands[0].copy()
        if op is FULL and not isinstance(operands[0], DeviceArray):
            op.abstract(avals, attrs)
            return device.full(attrs["shape"], operands[0], attrs["dtype"])
        inputs: list[Any] = [*operands]
        strides: list[Shape | None] = [None] * len(operands)
        for k, x in enumerate(operands):
            if type(x) is not DeviceArray:
                inputs[k] = np.asarray(x, avals[k].dtype)
            elif not x.is_contiguous:
                strides[k] = _strides(x)
        program = self._program(device, op, tuple(avals), attrs, tuple(strides))
        if program is None:
            return _on_host(device, op, operands, avals, attrs)
        results = program.run(inputs)
        return tuple(results) if op.multiple else results[0]

    def copy_strided(self, target: DeviceArray, source: DeviceArray) -> None:
        """Copy between arrays of the same shape, of which one is not contiguous, by a kernel."""
        strides = _strides(target), _strides(source)
        aval = Aval(target.shape, target.dtype)
        key = "copy", aval, strides, target.device
        program = self._programs.get(key)
        if program is None:
            old, new, result = Value(aval), Value(aval), Value(aval)
            graph = Graph("copy", (old, new), (TraceNode(IDENTITY, (new,), (result,)),), (result,))
            program = self._compile(graph, strides, {0: old})
            self._keep(key, program)
        program.run([target, source])

    def _program(
        self, device: CudaDevice, op: OpDef, avals: tuple[Aval, ...], attrs: Mapping[str, Any], strides: tuple[Any, ...]
    ) -> Program | None:
        """The program of ``op``; None if its attributes cannot be compared."""
        key = op, avals, tuple(sorted(attrs.items())) if attrs else (), strides, device
        try:
            program = self._programs.get(key)
        except TypeError:
            return None
        if program is None:
            expected = op.abstract(avals, attrs)
            inputs = tuple([Value(a) for a in avals])
            outs = tuple([Value(a) for a in (expected if isinstance(expected, tuple) else (expected,))])
            node = TraceNode(op, inputs, outs, tuple(sorted(attrs.items())))
            program = self._compile(Graph(op.name, inputs, (node,), outs), strides, {})
            self._keep(key, program)
        return program

    def _compile(self, graph: Graph, strides: Sequence[Shape | None], donated: Mapping[int, Value]) -> Program:
        return compile_graph(graph, CUDA, donated, strides=strides)

    def _keep(self, key: Hashable, program: Program) -> None:
        with self._lock:
            self._programs[key] = program
            if len(self._programs) > _REMEMBERED:
                self._programs.popitem(last=False)


def _strides(x: Any) -> Shape | None:
    """The strides of ``x`` in elements; None if it is in row-major order."""
    if not isinstance(x, DeviceArray) or x.is_contiguous:
        return None
    return tuple([s // x.dtype.itemsize for s in x.strides])


def _on_host(
    device: CudaDevice, op: OpDef, operands: Sequence[Any], avals: Sequence[Aval], attrs: Mapping[str, Any]
) -> Any:
    """The result(s) of ``op`` by NumPy, copied to the device."""
    result = run_eagerly(op, [to_host(x) for x in operands], list(avals), attrs)
    return tuple(map(device.from_host, result)) if op.multiple else device.from_host(result)


CudaDevice.kernels = OneOpPrograms()
