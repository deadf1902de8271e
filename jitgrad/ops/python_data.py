"""Numbers, lists and tuples of Python as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitgrad.core.aval import complex_dtype_of, is_number_of_trace
from jitgrad.core.config import get_default_dtype
from jitgrad.core.context import current_interpreter
from jitgrad.core.device_array import to_host
from jitgrad.core.errors import DeviceError, OperandError, TracedValueError
from jitgrad.core.ir import Value
from jitgrad.core.tensor import Tensor, check_supported
from jitgrad.ops.placement import move


def _holds_numpy(data: Any) -> bool:
    """Whether nested sequences hold anything that has a dtype of its own."""
    if isinstance(data, (list, tuple)):
        return any(map(_holds_numpy, data))
    return hasattr(data, "dtype")


def in_order_of_machine(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """``array`` with its bytes in the order of this machine; as it is in a trace, which reads it in each call."""
    swapped = not array.dtype.isnative and not current_interpreter.get().tracing
    return array.astype(array.dtype.newbyteorder("=")) if swapped else array


def holds_traced(data: Any) -> bool:
    """Whether ``data`` is a tensor or a number without a value, or a list or tuple that holds some."""
    if isinstance(data, (list, tuple)):
        return any(map(holds_traced, data))
    return (isinstance(data, Tensor) and type(data._data) is Value) or is_number_of_trace(data)


def array_from(what: str, data: Any) -> np.ndarray[Any, Any]:
    """Python data as an array: floats in the default dtype, complex numbers in its complex one, ints in int64; arrays keep
    their dtype."""
    array = exact_array(what, data)
    if array.dtype.kind in "fc" and not isinstance(data, (np.ndarray, np.generic)) and not _holds_numpy(data):
        default = get_default_dtype()
        array = array.astype(complex_dtype_of(default) if array.dtype.kind == "c" else default)
    return array


def tensor_from(data: Any, dtype: Any) -> Tensor:
    """A copy of a number or nested sequences. With tensors on a device among them, it is there too, as in a trace."""
    try:
        array = array_from("tensor", data)
    except DeviceError:
        devices: list[str] = []
        here = _copied_to_host(data, devices)
        there: Tensor = move(tensor_from(here, dtype), devices[0]).detach()
        return there
    if dtype is not None:
        array = np.asarray(data, check_supported("tensor", dtype))  # from the data: float32 first would round
    made: Tensor = current_interpreter.get().constant(np.array(array, copy=True))
    return made


def _copied_to_host(data: Any, devices: list[str]) -> Any:
    """``data`` with the contents of its tensors; ``devices`` gets those that some are on."""
    if isinstance(data, (list, tuple)):
        return [_copied_to_host(x, devices) for x in data]
    if not isinstance(data, Tensor):
        return data
    if data.device != "cpu":
        devices.append(data.device)
    return to_host(data._data)


def exact_array(what: str, data: Any) -> np.ndarray[Any, Any]:
    """Python data as an array: floats in float64, ints in int64; arrays keep their dtype.

    Raises:
        OperandError: ``data`` has no shape.
        DtypeError: the array has a dtype that tensors cannot have.
    """
    try:
        array = np.asarray(data)
    except TracedValueError as error:
        holder = f"a {type(data).__name__} that holds tensors"
        raise TracedValueError(f"{what} of {holder}: jitgrad.stack joins them. {error}") from None
    except (ValueError, TypeError) as error:
        raise OperandError(f"{what}: cannot make a tensor of {type(data).__name__}: {error}") from None
    check_supported(what, array.dtype)
    return array
