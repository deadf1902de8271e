"""Where tensors are: moves between the host and a device, and the place of new tensors."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from jitgrad.core.aval import Aval
from jitgrad.core.context import creating_on, current_interpreter
from jitgrad.core.device_array import DeviceArray, to_host
from jitgrad.core.dispatch import apply_op
from jitgrad.core.errors import DeviceError
from jitgrad.core.op import Kind, define
from jitgrad.core.parameters import parameters_of
from jitgrad.core.storage import Storage
from jitgrad.core.tensor import Tensor
from jitgrad.device.cuda import find_device

P = ParamSpec("P")
Q = ParamSpec("Q")  # behind a tensor and an index
R = TypeVar("R")


def _moved(x: Any, *, device: str, back: str) -> Any:
    """``x`` as an array in another place; ``back`` is where it is now."""
    target = find_device(device)
    host = to_host(x)
    return np.array(host) if target is None else target.from_host(host)


MOVE = define(
    "move(x, *, device, back)",
    kind=Kind.OPAQUE,
    eager=_moved,
    abstract=lambda avals, _attrs: Aval(avals[0].shape, avals[0].dtype, avals[0].weak),
    vjp=(lambda g, _out, _x, *, device, back: move(g, back),),
    moves=True,
    takes_complex=True,
    register=False,
)


def move(x: Tensor, device: Any) -> Tensor:
    """``x`` on ``device``: itself if it is there. Gradients flow back to where it was.

    Raises:
        ArgumentError, CudaError: there is no such device.
        DeviceError: a @jit function runs on another one.
    """
    name = _name_of(device)
    if current_interpreter.get().tracing:
        _check_traced_place(name)
        return x
    if x.device == name:
        return x
    return apply_op(MOVE, x, device=name, back=x.device)  # type: ignore[no-any-return]


def _name_of(device: Any) -> str:
    place = find_device(device)
    return "cpu" if place is None else place.name


def names_device(given: Any) -> bool:
    """Whether ``given``, an argument of ``to``, is a device and no dtype: a name, or as in torch a number."""
    return type(given) is int or (isinstance(given, str) and given.split(":")[0] in ("cpu", "cuda", "mps"))


def _check_traced_place(name: str) -> None:
    """A @jit function runs in one place: that of its tensors, else that of the first tensor it makes."""
    interpreter = current_interpreter.get()
    if interpreter.device == "cpu" != name:
        interpreter.device = name  # that it has tensors on the host as well is found after the trace
    elif interpreter.device != name:
        raise DeviceError(
            f"a @jit function of tensors on {interpreter.device} makes a tensor on {name}, or moves one there: a compiled "
            "function runs on one device. Move tensors outside of it"
        )


@contextmanager
def placed_on(device: Any) -> Iterator[None]:
    """Within it, new tensors are on ``device``. Raises as `move` does."""
    if current_interpreter.get().tracing:
        _check_traced_place(_name_of(device))
        yield
        return
    with creating_on(find_device(device)):
        yield


def placing(function: Callable[P, R]) -> Callable[P, R]:
    """``function``, which makes tensors, with the meaning of its parameter ``device``."""
    positional = parameters_of(function).positional
    position = positional.index("device") if "device" in positional else sys.maxsize

    @wraps(function)
    def placed(*args: P.args, **kwargs: P.kwargs) -> R:
        device = args[position] if len(args) > position else kwargs.get("device")
        if device is None:
            return function(*args, **kwargs)
        with placed_on(device):
            return function(*args, **kwargs)

    return placed


def beside(*tensors: Any) -> AbstractContextManager[None]:
    """Within it, new tensors are where the first of ``tensors`` on a device is, else where they are without it."""
    for x in tensors:
        if isinstance(x, Tensor) and type(x._data) is DeviceArray:
            return creating_on(x._data.device)
    return _ANYWHERE


_ANYWHERE: AbstractContextManager[None] = nullcontext()  # a generator would take longer than many an op


def beside_operands(function: Callable[P, R]) -> Callable[P, R]:
    """``function``, whose new tensors, and those made of lists and arrays among its arguments, are where the first tensor
    among these on a device is."""

    @wraps(function)
    def placed(*args: P.args, **kwargs: P.kwargs) -> R:
        device = _device_among(args) or _device_among(kwargs.values())
        if device is None:
            return function(*args, **kwargs)
        with creating_on(device):
            return function(*args, **kwargs)

    return placed


def _device_among(values: Iterable[Any]) -> Any:
    """The device of the first tensor on one, among ``values`` and in lists of them; None if there is none."""
    for x in values:
        if isinstance(x, Tensor):
            if type(x._data) is DeviceArray:
                return x._data.device
        elif isinstance(x, (list, tuple)) and (found := _device_among(x)) is not None:
            return found
    return None


def beside_indexed(function: Callable[Concatenate[Tensor, Any, Q], R]) -> Callable[Concatenate[Tensor, Any, Q], R]:
    """``function(x, index, ...)``: of a tensor on a device, with the index there. As in torch, indices may be on the host, and
    only they: so positions that the host draws select from a data set on the device."""

    @wraps(function)
    def placed(x: Tensor, index: Any, /, *args: Q.args, **kwargs: Q.kwargs) -> R:
        data = x._data
        if type(data) is not DeviceArray:
            return function(x, index, *args, **kwargs)
        entries = index if isinstance(index, tuple) else (index,)
        there = tuple([move(e, data.device.name) if isinstance(e, Tensor) else e for e in entries])
        with creating_on(data.device):
            return function(x, there if isinstance(index, tuple) else there[0], *args, **kwargs)

    return placed


def replace_data(tensor: Tensor, dtype: Any, device: Any) -> None:
    """Give ``tensor`` and its gradient data of ``dtype`` (if it is floating) on ``device``; None changes nothing.

    Those who hold the tensor, such as optimisers, keep it.
    """
    new = tensor.detach()
    if dtype is not None and tensor.dtype.kind == "f" and tensor.dtype != dtype:
        new = new.astype(dtype)
    if device is not None:
        new = move(new, device)
    if new._data is not tensor._data:
        tensor._data, tensor._aval, tensor._address = new._data, new._aval, 0
        tensor._storage = Storage()
    if (grad := tensor.grad) is not None:
        replace_data(grad, dtype, device)
