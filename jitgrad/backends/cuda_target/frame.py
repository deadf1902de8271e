"""The memory of one running call on the device: the arena, inputs from the host, and the tables of calls."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitgrad.backends.cuda_target.call_table import BoundTable, CallTable
from jitgrad.backends.cuda_target.device_program import DeviceProgram
from jitgrad.backends.cuda_target.graphs import Graphs
from jitgrad.backends.cuda_target.host_inputs import HostInputs
from jitgrad.backends.cuda_target.result_sets import ResultSet, ResultSets
from jitgrad.compiler.plan import Place
from jitgrad.core.device_array import DeviceArray, copy_elements, to_host
from jitgrad.core.op import Kind
from jitgrad.eager.run import checked_result, run_eagerly
from jitgrad.runtime.library_call import LibraryCall

_BYTES = np.dtype(np.uint8)

Waiting = Sequence[tuple[int, Any]]
"""Arrays and numbers on the host that are inputs, with their positions."""


class CudaFrame:
    """Runs ``code`` for one call at a time.

    Attributes:
        graphs: those of the whole program; None if it is too small, or has steps that need Python.
    """

    def __init__(self, code: DeviceProgram, overwritten: Sequence[int], results_on_host: bool) -> None:
        self._code = code
        self._device = device = code.device
        self._overwritten = overwritten
        self._results_on_host = results_on_host
        self._arena = device.empty((max(code.program.plan.arena_bytes, 1),), _BYTES)
        self._bases = np.zeros(code.region_count, np.int64)
        self._bases[code.arena] = self._arena.address
        if code.work_bytes:
            self._work = device.empty((code.work_bytes,), _BYTES)
            self._bases[code.work] = self._work.address
        if code.copies_bytes:
            self._copies = device.empty((code.copies_bytes,), _BYTES)
            self._bases[code.copies] = self._copies.address
        if code.uses_products:
            self._bases[code.products] = device.driver.products()
        self._parts = [part.bound(self._bases) if isinstance(part, CallTable) else part for part in code.parts]
        self._slots = struct.Struct(f"{len(code.program.slots)}q")
        self._words = self._bases.data
        self._host_inputs: dict[tuple[int, ...], HostInputs] = {}
        self._host_outputs = [(f, code.program.plan.outputs[k]) for k, f in code.host_work.outputs]
        specs = list(enumerate(code.program.result_specs))
        self._copied = [(r.number, r.region, device.empty((r.nbytes,), _BYTES)) for r in code.copied]
        copied = {number: memory.address for number, _, memory in self._copied}
        self._new = [(k, *spec) for k, spec in specs if k in copied or code.replay is None]
        kept = [spec for k, spec in specs if k not in copied and code.replay is not None]
        self._sets = ResultSets(device, kept, copied)
        self._set: ResultSet | None = None  # the results of the next run, but for those that are new in each run
        self.graphs: Graphs | None = None
        if code.replay is not None:
            (table,) = self._parts
            assert isinstance(table, BoundTable)
            self.graphs = Graphs(device.driver, table, self._bases, code.stream, code.products)
            self._replay = code.replay.bound(self._bases)
        # the pool would give them in another order in each run, and a graph holds their addresses
        temporaries = [x for x in code.external if not x.returned and code.replay is not None]
        self._temporaries = {x.number: device.empty(x.shape, x.dtype) for x in temporaries}

    def results(self) -> list[Any]:
        """Arrays for the results: those at the addresses of a graph if nobody holds them, else new ones."""
        self._set = known = self._sets.take()
        arrays: list[Any] = [*known.arrays]
        for k, shape, dtype in self._new:
            arrays.insert(k, self._device.empty(shape, dtype))
        return arrays

    def run(self, inputs: Sequence[Any], results: list[Any], interruptible: bool = False) -> None:
        """Run all steps; numbers and arrays among ``inputs`` that are on the host are copied to the device."""
        addresses = [x.address if type(x) is DeviceArray else 0 for x in inputs]
        self.start(addresses, [(k, x) for k, x in enumerate(inputs) if type(x) is not DeviceArray], results)

    def start(self, addresses: list[int], waiting: Waiting, results: list[Any]) -> None:
        """`run` with the addresses of the inputs, but for those on the host, which are ``waiting``.

        ``results`` are the arrays that `results` gave, then places for those of library calls.
        """
        code = self._code
        self._device.driver.bind()
        hosted = dict(waiting)
        if code.host_work.calls:
            code.host_work.add_results(hosted, len(addresses))
        host = self._send(addresses, hosted) if waiting else None
        for external in code.external:
            kept = self._temporaries.get(external.number)
            results[external.number] = self._device.empty(external.shape, external.dtype) if kept is None else kept
        if code.checks_values:
            self._device.faults.expect()
        if self.graphs is None or not self._launch_graph(self.graphs, addresses, results):
            self._slots.pack_into(self._words, 0, *addresses, *[0 if a is None else a.address for a in results])
            self._run_parts(len(addresses), results)
        if host is not None:
            self._update_host(hosted, host, len(addresses), results)
        if self._results_on_host:
            results[:] = [to_host(x) for x in results]

    def _send(self, addresses: list[int], hosted: dict[int, Any]) -> HostInputs:
        """Bring inputs on the host, and what the host computed, to the device; ``addresses`` of inputs are filled in."""
        positions = tuple(hosted)
        arrays = list(hosted.values())
        host = self._host_inputs.get(positions)
        if host is None:
            host = self._host_inputs[positions] = HostInputs(self._device, positions, arrays)
        host.send(arrays)
        inputs, first = len(addresses), self._code.host_values
        for k, address in zip(positions, host.addresses, strict=True):
            if k < inputs:
                addresses[k] = address
            else:
                self._bases[first + k - inputs] = address
        return host

    def _update_host(self, arrays: dict[int, Any], host: HostInputs, inputs: int, results: list[Any]) -> None:
        """Give the inputs on the host that the program overwrites their new data."""
        possible = [pair for pair in self._host_outputs if arrays.keys() >= set(pair[0].inputs)]
        computed = [(place, function.compute(arrays)[0]) for function, place in possible]
        written = set()
        for place, array in computed:
            assert place.location is not None
            slot = self._code.program.slots[place.location.buffer]
            written.add(slot)
            if slot < inputs:
                arrays[slot][...] = array
            else:
                results[slot - inputs] = array
        for k, on_device in zip(host.positions, host.arrays, strict=True):
            if k in self._overwritten and k not in written:
                copy_elements(arrays[k], on_device)

    def _launch_graph(self, graphs: Graphs, addresses: Sequence[int], results: Sequence[Any]) -> bool:
        """Whether a graph for the addresses of this call ran."""
        known, self._set = self._set, None
        assert known is not None
        written = known.addresses
        if len(written) < len(results):
            written = written + [0 if a is None else a.address for a in results[len(written) :]]
        graph = graphs.find(self._slots.pack(*addresses, *written))
        if graph:
            words = self._words
            words[self._code.graph] = graph
            for number, region, _ in self._copied:
                words[region] = results[number].address
            self._replay.run()
        return bool(graph)

    def _run_parts(self, inputs: int, results: list[Any]) -> None:
        for part in self._parts:
            if isinstance(part, BoundTable):
                part.run()
            else:
                self._run_on_host(part, inputs, results)

    def _array(self, place: Place) -> DeviceArray:
        """The value at ``place``, in device memory."""
        assert place.location is not None
        buffer, offset, strides, _ = place.location
        region, start = self._code.base(buffer, offset)
        size, address = place.aval.dtype.itemsize, int(self._bases[region]) + start
        return DeviceArray(address, place.aval.shape, place.aval.dtype, None, self._device, [s * size for s in strides])

    def _run_on_host(self, call: LibraryCall, inputs: int, results: list[Any]) -> None:
        """Compute an op that has no kernel by NumPy, on copies."""
        operands = [p.number if p.location is None else to_host(self._array(p)) for _, p, _, _ in call.reads]
        with np.errstate(all="ignore"):
            if call.in_place:
                call.function(*operands, into=operands[0], **call.attrs)
                returned = operands[0]
            elif call.op.kind is Kind.ELEMENTWISE:
                returned = run_eagerly(call.op, operands, call.avals, call.attrs)
            else:
                returned = call.compute(operands)
        for (slot, place), result in zip(call.writes, returned if call.op.multiple else (returned,), strict=True):
            array = checked_result(call.op, result, place.aval)
            if slot < 0:
                self._device.copy_into(self._array(place), array)
            else:
                results[slot - inputs] = kept = self._device.from_host(array)
                self._bases[slot] = kept.address
