"""Makes tensors from Python data, from arrays, and from a shape."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jitgrad.core.aval import Aval, Dtype, Shape, complex_dtype_of, is_number_of_trace, normalize_axis, normalize_shape
from jitgrad.core.config import get_default_dtype
from jitgrad.core.context import creation_device, current_interpreter
from jitgrad.core.dispatch import aval_of
from jitgrad.core.errors import ArgumentError, OperandError, ShapeError
from jitgrad.core.number_range import held_for_certain
from jitgrad.core.op import REGISTRY, Kind, define
from jitgrad.core.storage import DETACHED
from jitgrad.core.tensor import Tensor, check_supported
from jitgrad.device.cuda import cuda_device
from jitgrad.device.exchange import array_from_interface
from jitgrad.eager.numpy_errors import quietly
from jitgrad.eager.remembered import remembered
from jitgrad.ops.arithmetic import add, astype, multiply
from jitgrad.ops.comparison import equal, where
from jitgrad.ops.identity import STOP_GRADIENT
from jitgrad.ops.keywords import takes_dim
from jitgrad.ops.memory_formats import check_memory_format
from jitgrad.ops.movement import SUM, broadcast_to, expand_dims
from jitgrad.ops.operand import Operand, apply
from jitgrad.ops.placement import move, placing
from jitgrad.ops.python_data import array_from, holds_traced, in_order_of_machine, tensor_from
from jitgrad.ops.rounding import floor


def _full(value: Any, *, shape: Shape, dtype: Dtype) -> np.ndarray[Any, Any]:
    if type(value) in (bool, int, float) and value == 0 and math.copysign(1.0, value) > 0:
        return np.zeros(shape, dtype)  # zero pages from the system, where np.full would write them
    return np.full(shape, value, dtype)


def _full_aval(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Aval:
    if avals[0].shape:
        raise ShapeError(f"full: the value must be one number, got {avals[0]}")
    return Aval(attrs["shape"], attrs["dtype"])


def _iota(*, shape: Shape, axis: int | None, dtype: Dtype) -> np.ndarray[Any, Any]:
    if axis is None:
        return np.arange(math.prod(shape)).astype(dtype).reshape(shape)
    column = np.arange(shape[axis]).astype(dtype)
    return np.broadcast_to(column.reshape((-1,) + (1,) * (len(shape) - axis - 1)), shape)


FULL = define(
    "full(value, *, shape, dtype)",
    kind=Kind.OPAQUE,
    eager=_full,
    abstract=_full_aval,
    vjp=(lambda g, _out, _value, *, shape, dtype: apply(SUM, g, axis=tuple(range(len(shape)))),),
    domain=("scalar",),
    sample_attrs={"shape": (3, 4), "dtype": np.dtype(np.float64)},
    takes_complex=True,
)
IOTA = define(
    "iota(*, shape, axis, dtype)",
    kind=Kind.INDEX,
    eager=_iota,
    abstract=lambda _avals, attrs: Aval(attrs["shape"], attrs["dtype"]),
    sample_attrs={"shape": (3, 4), "axis": 1, "dtype": np.dtype(np.int64)},
    takes_complex=True,
)


def _copied(x: Any) -> Any:
    """NumPy's copy in the order of the strides; of what is broadcast, which has no order, in that of the axes."""
    return np.array(x, copy=True, subok=False, order="C" if 0 in getattr(x, "strides", ()) else "K")


COPY = define(
    "copy(x)",
    kind=Kind.OPAQUE,
    eager=_copied,
    abstract=lambda avals, _attrs: Aval(avals[0].shape, avals[0].dtype),
    vjp=(lambda g, _out, _x: g,),
    domain=("real",),
    takes_complex=True,
)


# --- from data ---------------------------------------------------------------------------------------------------


def _finish(out: Tensor, dtype: Any, what: str, requires_grad: bool) -> Tensor:
    if dtype is not None and out.dtype != (wanted := check_supported(what, dtype)):
        out = astype(out, wanted)
    return out.requires_grad_() if requires_grad else out


def _stacked(data: Any, dtype: Any) -> Tensor:
    """Nested sequences with traced tensors, in the dtype that NumPy finds for their values; numbers alone in the default one."""
    own: list[bool] = []

    def join(part: Any) -> Tensor:
        if isinstance(part, (list, tuple)):
            parts = [join(x) for x in part]
            return apply(REGISTRY["concat"], *[expand_dims(x, 0) for x in parts], axis=0)
        if is_number_of_trace(part):
            own.append(False)
            return clone(astype(part, np.int64 if isinstance(part, int) else np.float64))
        own.append(hasattr(part, "dtype") and not (isinstance(part, Tensor) and part.aval.weak))
        return asarray(part) if hasattr(part, "dtype") else asarray(np.asarray(part))

    out = join(data)
    return out if any(own) or out.dtype.kind not in "f" else astype(out, dtype or get_default_dtype())


@placing
def tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A new tensor with a copy of ``data``: nested sequences, numbers, an ndarray, a Tensor.

    Python floats become the default dtype (float32 unless :func:`jitgrad.set_default_dtype` changed it), Python ints
    int64; an ndarray and a Tensor keep their dtype, in the byte order of this machine. The copy has no history.

    Raises:
        DtypeError: string or object data, or ``requires_grad`` of a dtype that is neither floating nor complex.
        OperandError: ragged data.
    """
    if isinstance(data, (Tensor, np.ndarray)):
        if not isinstance(data, Tensor):
            check_supported("tensor", (data := in_order_of_machine(data)).dtype)
        out = detached(apply(COPY, data))
        dtype = _dtype_of_number(data) if dtype is None and isinstance(data, Tensor) and data.aval.weak else dtype
    elif current_interpreter.get().tracing and holds_traced(data):
        out = detached(_stacked(data, dtype))
    else:
        out = tensor_from(data, dtype)
    return _finish(out if device is None else detached(move(out, device)), dtype, "tensor", requires_grad)


def asarray(data: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Tensor:
    """``data`` as a tensor: a Tensor itself, an ndarray by sharing its memory, anything else as :func:`tensor`.

    ``copy=True`` always copies, ``copy=False`` raises ArgumentError where a copy would be needed.
    """
    if type(data) is Tensor and dtype is None and device is None and not copy:
        return data
    if not isinstance(data, Tensor) and hasattr(data, "__cuda_array_interface__"):
        data = Tensor(array_from_interface(cuda_device(), data))
    on_host = not current_interpreter.get().tracing and creation_device.get() is None
    shared = isinstance(data, Tensor) or (isinstance(data, np.ndarray) and on_host)
    if copy is False and (not shared or (dtype is not None and np.dtype(dtype) != data.dtype)):
        raise ArgumentError(f"asarray: {type(data).__name__} cannot become a tensor without a copy (copy=False)")
    number = dtype is not None and isinstance(data, Tensor) and data.aval.weak  # it would take the dtype of other operands
    if copy or not shared or number:
        return tensor(data, dtype=dtype, device=device)
    out = data if isinstance(data, Tensor) else Tensor(array_from("asarray", data))
    out = out if device is None else move(out, device)
    return _finish(out, dtype, "asarray", requires_grad=False)


def from_numpy(array: np.ndarray[Any, Any]) -> Tensor:
    """A tensor that shares memory with the ndarray ``array``. Raises OperandError for others."""
    if not isinstance(array, np.ndarray):
        raise OperandError(f"from_numpy: expected an ndarray, got {type(array).__name__}")
    return asarray(array)


def clone(x: Operand, *, memory_format: Any = None) -> Tensor:
    """A copy of ``x`` in memory of its own, through which gradients flow. ``memory_format`` changes nothing."""
    check_memory_format("clone", memory_format)
    return apply(COPY, x)


def detached(x: Tensor) -> Tensor:
    """``x`` over the same memory, without its history; in a trace it stops gradients."""
    interpreter = current_interpreter.get()
    if interpreter.tracing:
        return apply(STOP_GRADIENT, x)
    new = Tensor.of_result(interpreter.current(x), x._aval or x.aval)
    memory = new._memory = x._memory or x._storage
    memory.share_through(x, new, DETACHED)
    return new


# --- from a shape ------------------------------------------------------------------------------------------------


def _dtype_of_number(value: Any) -> Dtype:
    aval = aval_of(FULL, value)  # a Python number, or what stands for one, is weak
    kind, default = aval.dtype.kind if aval.weak else "", get_default_dtype()
    return default if kind == "f" else complex_dtype_of(default) if kind == "c" else aval.dtype


def _checked_shape(what: str, shape: Any) -> Shape:
    """``shape`` as a tuple of ints. Raises ShapeError if one is negative."""
    lengths = normalize_shape(what, shape)
    if any(n < 0 for n in lengths):
        raise ShapeError(f"{what}: a shape must not have negative lengths, got {lengths}")
    return lengths


@takes_dim(size="shape")
@remembered
@placing
def full(
    shape: Any, fill_value: Operand, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """A tensor of ``shape`` holding ``fill_value`` everywhere; gradients flow to a ``fill_value`` that is a tensor.

    Without ``dtype`` a Python float gets the default dtype, an int int64, a tensor keeps its own.
    """
    return _filled(shape, fill_value, dtype, requires_grad)


@placing
def _filled_on(shape: Any, value: int, dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    """Zeros or ones: where the default dtype is not asked for a number, and nothing is worth remembering."""
    return _filled(shape, value, dtype or get_default_dtype(), requires_grad)


def _filled(shape: Any, fill_value: Operand, dtype: Any, requires_grad: bool) -> Tensor:
    lengths = _checked_shape("full", shape)
    wanted = _dtype_of_number(fill_value) if dtype is None else check_supported("full", dtype)
    if current_interpreter.other() is None and creation_device.get() is None and held_for_certain(fill_value, wanted):
        out = Tensor(quietly(_full, fill_value, shape=lengths, dtype=wanted))  # as the op does
    elif aval_of(FULL, fill_value).shape:
        out = clone(broadcast_to(astype(fill_value, wanted), lengths))
    else:
        out = apply(FULL, fill_value, shape=lengths, dtype=wanted)
    return out.requires_grad_() if requires_grad else out


@takes_dim(size="shape")
def zeros(shape: Any, *more: int, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Zeros of ``shape`` (``zeros((2, 3))`` or ``zeros(2, 3)``), in the default float dtype unless one is given."""
    return _filled_on((shape, *more) if more else shape, 0, dtype, device, requires_grad)


@takes_dim(size="shape")
def ones(shape: Any, *more: int, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Ones of ``shape``, which may be given as in :func:`zeros`, in the default float dtype unless one is given."""
    return _filled_on((shape, *more) if more else shape, 1, dtype, device, requires_grad)


@takes_dim(size="shape")
def empty(shape: Any, *more: int, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Zeros: uninitialised memory would differ between eager and compiled runs."""
    return _filled_on((shape, *more) if more else shape, 0, dtype, device, requires_grad)


def full_like(
    x: Operand,
    fill_value: Operand,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """``fill_value`` in the shape and dtype of ``x``. ``memory_format`` changes nothing."""
    if memory_format is not None:
        check_memory_format("full_like", memory_format)
    aval = aval_of(FULL, x)
    on_host = current_interpreter.other() is None and type(getattr(x, "_data", 0)) is np.ndarray
    held_by_all = on_host and type(fill_value) is int and fill_value in (0, 1) and not aval.weak
    if held_by_all and dtype is None and device is None and not requires_grad:
        return Tensor.of_result(_full(fill_value, shape=aval.shape, dtype=aval.dtype), aval)  # as below, at once
    if device is None and isinstance(x, Tensor) and not (on_host and creation_device.get() is None):
        device = x.device
    return full(aval.shape, fill_value, dtype=dtype or aval.dtype, device=device, requires_grad=requires_grad)


def zeros_like(
    x: Operand, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, memory_format: Any = None
) -> Tensor:
    """Zeros in the shape and dtype of ``x``."""
    return full_like(x, 0, dtype=dtype, device=device, requires_grad=requires_grad, memory_format=memory_format)


def ones_like(
    x: Operand, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, memory_format: Any = None
) -> Tensor:
    """Ones in the shape and dtype of ``x``."""
    return full_like(x, 1, dtype=dtype, device=device, requires_grad=requires_grad, memory_format=memory_format)


def empty_like(
    x: Operand, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, memory_format: Any = None
) -> Tensor:
    """A tensor to be filled (it holds zeros) in the shape and dtype of ``x``."""
    return full_like(x, 0, dtype=dtype, device=device, requires_grad=requires_grad, memory_format=memory_format)


# --- from indices ------------------------------------------------------------------------------------------------


def iota(shape: Shape, axis: int | None, dtype: Any = np.int64) -> Tensor:
    """Each element's coordinate along ``axis``, or its row-major position for ``axis=None``."""
    lengths = normalize_shape("iota", shape)
    k = None if axis is None else normalize_axis("iota", axis, len(lengths))
    return apply(IOTA, shape=lengths, axis=k, dtype=check_supported("iota", dtype))


def _number(what: str, x: Any) -> int | float:
    """A bound of a range as a Python number. Raises TracedValueError for a traced tensor."""
    if isinstance(x, Tensor):
        x = x.concrete(what)
    value = x.item() if isinstance(x, (np.ndarray, np.generic)) else x
    if not isinstance(value, (int, float)):
        raise OperandError(f"{what}: expected a number, got {type(x).__name__}")
    return value


@takes_dim(end="stop")
@remembered
@placing
def arange(
    start: Any,
    stop: Any = None,
    step: Any = 1,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """``start, start + step, ...`` up to but without ``stop``: int64 for ints, else the default float dtype.

    Element k is ``start + k * step``, rounded once from float64 (int64 for ints).
    """
    first, last, by = (_number("arange", v) for v in ((0, start, step) if stop is None else (start, stop, step)))
    if by == 0 or not math.isfinite((last - first) / by):
        raise ArgumentError(f"arange({first}, {last}, {by}) would never end")
    exact = all(isinstance(v, int) for v in (first, last, by))
    length = max(0, -((first - last) // by) if exact else math.ceil((last - first) / by))
    if dtype is not None:
        wanted = check_supported("arange", dtype)
    else:
        wanted = np.dtype(np.int64) if exact else get_default_dtype()
    k = iota((int(length),), 0, np.int64 if exact else np.float64)
    values = k if (first, by) == (0, 1) else add(multiply(k, by), first)
    return _finish(values, wanted, "arange", requires_grad)


@takes_dim(end="stop", steps="num")
@remembered
@placing
def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """``num`` numbers at equal distances from ``start`` to ``stop``, which is the last one if ``endpoint``.

    Computed in float64 and rounded once; an integer dtype rounds down, as in NumPy.
    """
    first, last = float(_number("linspace", start)), float(_number("linspace", stop))
    count = operator.index(num)
    if count < 0:
        raise ArgumentError(f"linspace: num must not be negative, got {count}")
    k = iota((count,), 0, np.float64)
    intervals = count - 1 if endpoint else count
    values = add(multiply(k, (last - first) / intervals if intervals > 0 else last - first), first)
    if endpoint and count > 1:
        values = where(equal(k, float(count - 1)), last, values)
    wanted = get_default_dtype() if dtype is None else check_supported("linspace", dtype)
    return _finish(floor(values) if wanted.kind in "iu" else values, wanted, "linspace", requires_grad)


@takes_dim(n="n_rows", m="n_cols")
@remembered
@placing
def eye(
    n_rows: int,
    n_cols: int | None = None,
    k: int = 0,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A matrix with ones on the ``k``-th diagonal and zeros elsewhere."""
    shape = _checked_shape("eye", (n_rows, n_rows if n_cols is None else n_cols))
    if current_interpreter.other() is None and creation_device.get() is None and type(k) is int:
        out = Tensor(np.eye(shape[0], shape[1], k, dtype=check_supported("eye", dtype or get_default_dtype())))
        return out.requires_grad_() if requires_grad else out
    on_diagonal = equal(add(iota(shape, 0), k), iota(shape, 1))
    return _finish(on_diagonal, dtype or get_default_dtype(), "eye", requires_grad)
