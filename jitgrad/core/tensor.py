"""Tensor: an array or a traced Value, plus autograd state; `jitgrad.ops` attaches operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jitgrad.core.aval import Aval, Dtype, ElementCount, Shape, aval_of_array, element_count, is_differentiable
from jitgrad.core.config import get_default_dtype
from jitgrad.core.context import current_interpreter, text_of_traced
from jitgrad.core.device_array import DeviceArray, DeviceName, to_host
from jitgrad.core.errors import ArgumentError, AutogradError, DeviceError, DonatedError, DtypeError, shown
from jitgrad.core.ir import Value
from jitgrad.core.storage import Lineage, Storage

SUPPORTED = "?bhilqBHILQefdFD"
_HOST, _CUDA = DeviceName("cpu"), DeviceName("cuda")


class Donated:
    """Replaces the data of a donated tensor: any use is an error that names the function."""

    __slots__ = ("_function",)

    def __init__(self, function: str) -> None:
        self._function = function

    def __str__(self) -> str:
        return f"donated to {self._function}"

    def error(self, what: str, aval: Aval | None = None) -> DonatedError:
        """The error for the operation ``what``, which needs the data."""
        shape = "" if aval is None else f" {aval}"
        return DonatedError(
            f"{what}: this tensor{shape} was {self}, whose results may lie in its memory now. Use what that call "
            "returned, donate a .clone(), or drop the argument from donate=."
        )

    def __getattr__(self, name: str) -> Any:
        raise self.error(name)

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise self.error("np.asarray()")


class HookHandle:
    """The result of ``register_hook`` and others; a second ``remove()`` does nothing."""

    __slots__ = ("_hook", "_hooks")

    def __init__(self, hooks: list[Any], hook: Callable[..., Any]) -> None:
        self._hooks = hooks
        self._hook = hook

    def remove(self) -> None:
        for k, other in enumerate(self._hooks):
            if other is self._hook:
                del self._hooks[k]
                break
        self._hooks = []


_new = object.__new__


def _constant_of(given: Sequence[Any]) -> tuple[Any, Aval]:
    """What ``Tensor(*given)`` holds for a list, or for the lengths of axes, in the default dtype as in torch.

    Raises ArgumentError for other values.
    """
    if given and isinstance(given[0], list | tuple | range):
        array = np.array(given[0], get_default_dtype())
    elif all([isinstance(n, int | np.integer) for n in given]):
        array = np.zeros(given or (0,), get_default_dtype())
    else:
        raise ArgumentError(
            f"Tensor() takes a list or the lengths of axes, or wraps an ndarray; got {type(given[0]).__name__}. Use "
            "jitgrad.tensor(data)."
        )
    made = current_interpreter.get().constant(array)
    return made._data, made.aval


class Tensor:
    """An n-dimensional array that takes part in autograd.

    Made by :func:`jitgrad.core.tensor` and the creation functions. Inside ``@jit`` it may hold a
    traced Value in place of data; asking such a tensor for its numbers raises TracedValueError.
    """

    __slots__ = ("_data", "_aval", "_requires_grad", "_grad", "grad_fn", "_out_index", "_memory", "_hooks", "_view",
                 "_address", "__weakref__")  # fmt: skip
    __array_priority__ = 1000

    _data: Any
    _aval: Aval | None
    _grad: Tensor | None
    grad_fn: Any
    _hooks: list[Callable[[Tensor], Tensor | None]] | None
    _memory: Storage | None  # made at the first use: most results are never changed in place
    _view: Lineage | None
    _address: int  # of the data, if kernels can use it without a copy (0: unknown)

    def __init__(self, data: Any = 0, aval: Any = None, storage: Any = None, *lengths: int) -> None:
        """Wrap ``data`` (an ndarray or a DeviceArray, not copied, or a Value). Users call ``jg.tensor``
        or ``jg.asarray`` instead; torch's ``Tensor(2, 3)`` of axes of these lengths is zeros here."""
        if type(data) is Value:
            aval = data.aval
        elif type(data) is not np.ndarray and type(data) is not DeviceArray:
            sizes = [n for n in (aval, storage) if n is not None]
            data, aval = _constant_of([data, *sizes, *lengths])
            storage = None
        self._data = data
        self._aval = aval
        self._requires_grad = False
        self._grad = None
        self.grad_fn = None
        self._out_index = 0
        self._hooks = None
        self._view = None
        self._memory = storage
        self._address = 0

    @staticmethod
    def of_result(data: np.ndarray[Any, Any], aval: Aval, address: int = 0) -> Tensor:
        """A new leaf over ``data``: the cheapest constructor, for results of programs.

        ``address`` is that of the data, if kernels can use it without a copy.
        """
        tensor = _new(Tensor)
        tensor._data = data
        tensor._aval = aval
        tensor._requires_grad = False
        tensor._grad = tensor.grad_fn = tensor._hooks = tensor._view = tensor._memory = None
        tensor._out_index = 0
        tensor._address = address
        return tensor

    @property
    def _storage(self) -> Storage:
        memory = self._memory
        if memory is None:
            memory = self._memory = Storage()
        return memory

    @_storage.setter
    def _storage(self, storage: Storage) -> None:
        self._memory = storage

    # --- shape and dtype --------------------------------------------------------------------------

    @property
    def aval(self) -> Aval:
        aval = self._aval
        if aval is None:
            aval = self._aval = aval_of_array(self._data)
        return aval

    @property
    def shape(self) -> Shape:
        return self.aval.shape

    @property
    def ndim(self) -> int:
        return len(self.aval.shape)

    @property
    def size(self) -> ElementCount:
        """The number of elements; ``size()`` is the shape, and ``size(k)`` a length of it, as in torch."""
        return element_count(self.aval.shape)

    @property
    def dtype(self) -> Dtype:
        return self.aval.dtype

    @property
    def device(self) -> DeviceName:
        """Where the data is: "cpu" or "cuda"."""
        data = self._data
        if type(data) is np.ndarray:
            return _HOST
        name = data.device.name if type(data) is DeviceArray else current_interpreter.get().device
        return _HOST if name == "cpu" else _CUDA

    @property
    def is_leaf(self) -> bool:
        return self.grad_fn is None

    @property
    def requires_grad(self) -> bool:
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, flag: bool) -> None:
        self.requires_grad_(flag)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Let this leaf collect gradients, or not. Raises DtypeError unless it is floating or complex."""
        if requires_grad and not is_differentiable(self.dtype):
            raise DtypeError(
                f"requires_grad_: only floating and complex tensors have gradients; this one is {self.aval}"
            )
        if not requires_grad and self.grad_fn is not None:
            raise AutogradError("requires_grad_(False) on a result of an op: use .detach() for a copy without history")
        if self._requires_grad is not bool(requires_grad):
            if (flags := current_interpreter.get().flags) is not None:
                flags.before_change(self)
            self._requires_grad = bool(requires_grad)
        return self

    @property
    def grad(self) -> Tensor | None:
        """The gradient that ``backward`` accumulated, or None."""
        return current_interpreter.get().read_grad(self)  # type: ignore[no-any-return]

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None and (not isinstance(value, Tensor) or value.shape != self.shape):
            given = value.aval if isinstance(value, Tensor) else type(value).__name__
            raise ArgumentError(f".grad of a tensor {self.aval} must be None or a tensor of that shape, got {given}")
        current_interpreter.get().write_grad(self, value)

    # --- data -------------------------------------------------------------------------------------

    def concrete(self, what: str) -> np.ndarray[Any, Any]:
        """The array, for the Python operation ``what``: a copy if the data is on a device.

        Raises:
            TracedValueError: while only tracing.
            DonatedError: a @jit function took the memory.
        """
        if type(self._data) is Donated:
            raise self._data.error(what, self.aval)
        interpreter = current_interpreter.get()
        data = interpreter.current(self)
        if type(data) is Value and (data := interpreter.known_value(self, what)) is None:
            raise interpreter.explain_missing_value(self, what)
        return to_host(data)  # type: ignore[no-any-return]

    def shared(self, what: str) -> np.ndarray[Any, Any]:
        """The array, whose memory NumPy shares from now on. Raises DeviceError if it is on a device."""
        if type(self._data) is DeviceArray:
            raise DeviceError(
                f"{what} of a tensor {self.aval} on {self.device}: copy it to the host first, with .cpu()"
            )
        return self.concrete(what)

    def numpy(self, *, force: bool = False) -> np.ndarray[Any, Any]:
        """The data, not copied; AutogradError if this tensor requires grad, DeviceError if on a device, unless ``force``."""
        if force:
            return self.concrete("numpy()")
        if self._requires_grad:
            raise AutogradError(
                "numpy() on a tensor that requires grad would cut it from its gradient: call .detach() first"
            )
        return self.shared("numpy()")

    def item(self) -> Any:
        """The only element as a Python number."""
        data = self.concrete("item()")
        if data.size != 1:
            raise ArgumentError(f"item() needs exactly one element, this tensor is {self.aval}")
        return data.item()

    def tolist(self) -> Any:
        return self.concrete("tolist()").tolist()

    def __bool__(self) -> bool:
        data = self.concrete("bool()")
        if data.size != 1:
            raise ArgumentError(f"bool() of a tensor {self.aval} is ambiguous: use .any() or .all()")
        return bool(data)

    def __float__(self) -> float:
        return float(self.concrete("float()").item() if self.size == 1 else self.item())

    def __complex__(self) -> complex:
        return complex(self.concrete("complex()").item() if self.size == 1 else self.item())

    def __int__(self) -> int:
        return int(self.concrete("int()").item() if self.size == 1 else self.item())

    def __index__(self) -> int:
        data = self.concrete("an index")
        if data.size != 1 or data.dtype.kind not in "iu":
            raise TypeError(f"only an integer tensor of one element can be an index, this one is {self.aval}")
        return int(data.item())

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if self._requires_grad:
            raise AutogradError(
                "np.asarray() of a tensor that requires grad would cut its gradient: call .detach() first"
            )
        data = self.shared("np.asarray()")
        if dtype is not None and np.dtype(dtype) != data.dtype:
            if copy is False:
                raise ValueError(f"cannot view {self.aval} as {np.dtype(dtype)} without a copy")
            return data.astype(dtype)
        return data.copy() if copy else data

    def __dlpack__(self, *, stream: Any = None, **keywords: Any) -> Any:
        if type(self._data) is DeviceArray and not self._requires_grad:
            return self._data.device.to_dlpack(self._data, stream, **keywords)
        return self.numpy().__dlpack__(stream=stream, **keywords)

    def __dlpack_device__(self) -> Any:
        if type(self._data) is DeviceArray:
            return self._data.device.dlpack_device
        return self.concrete("__dlpack_device__").__dlpack_device__()

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if type(self._data) is not DeviceArray:
            raise AttributeError("this tensor is not on a CUDA device: it has no __cuda_array_interface__")
        return self._data.device.interface_of(self._data)

    # --- hooks ------------------------------------------------------------------------------------

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> HookHandle:
        """Call ``hook(grad)`` on this tensor's gradient; a result other than None replaces it.

        Returns a handle whose ``remove()`` removes the hook.
        """
        if not self._requires_grad:
            raise AutogradError("register_hook: this tensor does not require grad, so it never gets a gradient")
        if self.grad_fn is None:
            if self._hooks is None:
                self._hooks = []
            hooks = self._hooks
        else:
            hooks = self.grad_fn.hooks_of(self._out_index)
        hooks.append(hook)
        return HookHandle(hooks, hook)

    # --- printing ---------------------------------------------------------------------------------

    def __repr__(self) -> str:
        if type(self._data) is Donated:
            return f"tensor(<{self._data}> {self.aval})"
        data = current_interpreter.get().current(self)
        grad = f", grad_fn=<{self.grad_fn.op}>" if self.grad_fn is not None else ""
        if self._requires_grad and not grad:
            grad = ", requires_grad=True"
        if type(data) is Value:
            return f"tensor({text_of_traced(self.aval)}{grad})"
        text = np.array2string(to_host(data), separator=", ", prefix="tensor(")
        place = f", device='{self.device}'" if type(data) is DeviceArray else ""
        return f"tensor({text}, dtype={data.dtype}{place}{grad})"

    def __format__(self, spec: str) -> str:
        """A tensor of one element formats as its number; others only without a format."""
        return format(self.item(), spec) if spec else str(self)

    if TYPE_CHECKING:  # attached by jitgrad.ops.methods, but for the hash, which is by identity

        def __hash__(self) -> int: ...

        def __getattr__(self, name: str) -> Any: ...
        def __add__(self, other: Any) -> Tensor: ...
        def __radd__(self, other: Any) -> Tensor: ...
        def __sub__(self, other: Any) -> Tensor: ...
        def __rsub__(self, other: Any) -> Tensor: ...
        def __mul__(self, other: Any) -> Tensor: ...
        def __rmul__(self, other: Any) -> Tensor: ...
        def __truediv__(self, other: Any) -> Tensor: ...
        def __rtruediv__(self, other: Any) -> Tensor: ...
        def __pow__(self, other: Any) -> Tensor: ...
        def __matmul__(self, other: Any) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __lt__(self, other: Any) -> Tensor: ...
        def __gt__(self, other: Any) -> Tensor: ...
        def __le__(self, other: Any) -> Tensor: ...
        def __ge__(self, other: Any) -> Tensor: ...
        def __getitem__(self, index: Any) -> Tensor: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...

    else:
        __hash__ = object.__hash__


def check_supported(what: str, dtype: Any) -> Dtype:
    """``dtype`` as a NumPy dtype. Raises DtypeError for object and other dtypes that tensors cannot have."""
    result: Dtype
    try:
        result = np.dtype(dtype)
    except TypeError:
        names = ("bool", "int8", "int16", "int32", "int64", "uint8", "float16", "float32", "float64", "complex64", "complex128")
        instead = getattr(dtype, "instead", "")  # of a dtype that others have
        raise DtypeError(f"{what}: {shown(dtype)} is no dtype{instead}; {', '.join(names)} are") from None
    if result.char not in SUPPORTED or not result.isnative:
        order = "" if result.isnative else f" in the byte order of this machine: x.astype({result.str[1:]!r})"
        raise DtypeError(f"{what}: dtype {result} is not supported; bool, integer, float and complex dtypes are{order}")
    return result
