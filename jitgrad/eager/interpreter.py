"""The eager interpreter: runs the NumPy function of each op on converted operands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from jitgrad.core.aval import Aval
from jitgrad.core.context import Untraced, creation_device, current_interpreter
from jitgrad.core.device_array import Device, DeviceArray, to_host
from jitgrad.core.dispatch import aval_of, make_plans_by
from jitgrad.core.errors import DeviceError, LeakedTracerError, ReadOnlyError
from jitgrad.core.number_range import check_complex, check_numbers
from jitgrad.core.op import Kind, OpDef
from jitgrad.core.origin import UsersCall
from jitgrad.core.tensor import Donated, Tensor
from jitgrad.core.traced_constants import fill_constant
from jitgrad.eager.plans import make_op_plan
from jitgrad.eager.run import run_eagerly


def _device_for(op: OpDef, operands: tuple[Any, ...], arrays: list[Any]) -> Device | None:
    """Where ``op`` runs: where its tensors are. NumPy arrays, and tensors of one number, are copied there.

    Raises:
        DeviceError: if tensors are in different places.
    """
    if op.moves:
        return None
    for k, array in enumerate(arrays):
        if type(array) is DeviceArray:
            for x, other in zip(operands, arrays, strict=True):
                if isinstance(x, Tensor) and type(other) is np.ndarray and other.ndim:
                    raise _in_two_places(UsersCall.to(op.name), operands[k], x)
            return array.device
    device = creation_device.get()
    return None if device is None or any(isinstance(x, Tensor) for x in operands) else device


def _in_two_places(call: UsersCall, on_device: Tensor, on_host: Tensor) -> DeviceError:
    """The error of ``call``, which came to an op of these two; it names the arguments, if these are others in two places."""
    labels = ["", ""]
    given = [(name, x) for name, x in _tensors_of(call) if x.ndim or x.device != "cpu"]
    places: dict[str, tuple[str, Tensor]] = {x.device: (name, x) for name, x in reversed(given)}
    name = on_device.device
    if places.keys() == {name, "cpu"} and (places[name][1] is not on_device or places["cpu"][1] is not on_host):
        (first, on_device), (second, on_host) = places[name], places["cpu"]
        labels = [f" ({x})" if x != "self" else "" for x in (first, second)]
    return DeviceError(
        f"{call.name}: a tensor {on_device.aval}{labels[0]} is on {name}, and another {on_host.aval}{labels[1]} is on the host. "
        f'Move one of them, with .to("{name}") or .cpu()'
    )


def _tensors_of(call: UsersCall) -> Iterator[tuple[str, Tensor]]:
    """The tensors among the arguments of ``call``, and in lists of them, with their names."""
    for name, x in call.arguments.items():
        if isinstance(x, Tensor):
            yield name, x
        elif isinstance(x, (list, tuple)):
            yield from ((f"{name}[{k}]", part) for k, part in enumerate(x) if isinstance(part, Tensor))


def _is_view(result: Any, array: Any) -> bool:
    """Whether a result on a device is a view of ``array``."""
    return type(result) is DeviceArray and type(array) is DeviceArray and result.owner is array.owner


class EagerInterpreter(Untraced):
    """Runs ops at once: on NumPy, or on the device of their operands."""

    tracing = False
    device = "cpu"
    generator_states: tuple[Any, ...] = ()

    def apply(self, op: OpDef, operands: tuple[Any, ...], attrs: Mapping[str, Any]) -> Any:
        avals = [x.aval if type(x) is Tensor else aval_of(op, x) for x in operands]
        arrays: list[Any] = []
        device = creation_device.get()
        for x in operands:
            if isinstance(x, Tensor):
                data = x._data
                if type(data) is not np.ndarray:
                    data = self._array(x, op.name)
                    device = data.device if type(data) is DeviceArray else device
                arrays.append(data)
            else:
                arrays.append(x)
        if device is not None:
            device = _device_for(op, operands, arrays)
        if not op.takes_complex:
            check_complex(op, avals)
        check_numbers(op, operands, avals, attrs)
        result = (run_eagerly if device is None else device.apply)(op, arrays, avals, attrs)
        if op.multiple:
            return _results(op, result, avals, attrs)
        if op.moves:
            return Tensor(result, avals[0])
        shares = np.may_share_memory if device is None else _is_view
        if op.views and isinstance(operands[0], Tensor) and shares(result, arrays[0]):
            view = Tensor(result, storage=operands[0]._storage)
            view._storage.share(operands[0], view, op, attrs)
            return view
        weak = op.weak_results or (op.kind is Kind.ELEMENTWISE and all(a.weak for a in avals))
        if weak and result.ndim == 0 and result.dtype.kind != "b":
            return Tensor(result, Aval((), result.dtype, weak=True))
        return Tensor(result)

    def _array(self, x: Any, what: str) -> Any:
        if not isinstance(x, Tensor):
            return x
        data = x._data
        if type(data) is not np.ndarray and type(data) is not DeviceArray:
            if not fill_constant(x):
                raise self.explain_missing_value(x, what)
            data = x._data
        return data

    def current(self, tensor: Tensor) -> Any:
        return self._array(tensor, "an op")

    def write(self, target: Tensor, value: Any) -> None:
        data = self._array(target, "in-place change")
        new = self._array(value, "in-place change")
        if type(data) is DeviceArray:
            data.device.copy_into(data, np.asarray(new, data.dtype) if not isinstance(new, DeviceArray) else new)
        elif not data.flags.writeable:
            raise ReadOnlyError.of(target.aval)
        else:
            np.copyto(data, to_host(new))
        target._storage.bump()

    def replace(self, target: Tensor, new: Tensor) -> None:
        if target._data is new._data:
            return
        target._storage.bump()  # a backward pass that needs the old contents says so
        target._data, target._aval, target._address = new._data, new._aval, 0
        target._memory = new._storage
        new._storage.share(new, target)

    def knows(self, tensor: Tensor) -> bool:
        return isinstance(tensor._data, (np.ndarray, DeviceArray))

    def take_over(self, target: Tensor, source: Tensor) -> None:
        """Nothing to do: the tape has the history."""

    def constant(self, array: np.ndarray[Any, Any]) -> Tensor:
        device = creation_device.get()
        return Tensor(array if device is None else device.from_host(array))

    def explain_missing_value(self, tensor: Tensor, what: str) -> Exception:
        if type(tensor._data) is Donated:
            return tensor._data.error(what, tensor.aval)
        return LeakedTracerError(
            f"{what}: this tensor {tensor.aval} was made while @jit or vmap traced a function and has no data. It escaped from "
            "the trace through a global, an attribute or a list; return it from the function instead."
        )


def _results(op: OpDef, arrays: Sequence[Any], avals: Sequence[Aval], attrs: Mapping[str, Any]) -> tuple[Tensor, ...]:
    """Tensors of several results: weak where a trace has weak ones, as the numbers of a schedule."""
    if not op.weak_results:
        return tuple(map(Tensor, arrays))
    expected = op.abstract(avals, attrs)
    assert isinstance(expected, tuple)
    return tuple([Tensor(x, aval if aval.weak else None) for x, aval in zip(arrays, expected, strict=True)])


current_interpreter.eager = EagerInterpreter()
make_plans_by(make_op_plan)
