"""Methods of Tensor that only torch has: in-place forms of functions, new tensors of one's dtype, conversions."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any

import numpy as np

from jitgrad.core.aval import is_differentiable
from jitgrad.core.context import current_interpreter
from jitgrad.core.errors import ArgumentError, AutogradError, DtypeError, MeaningWarning, ShapeError, TraceError, shown
from jitgrad.core.origin import Origin
from jitgrad.core.storage import is_in_order
from jitgrad.core.tensor import Tensor
from jitgrad.ops import (
    arithmetic,
    complex_parts,
    creation,
    entropy,
    gamma,
    integers,
    joining,
    movement,
    normal_distribution,
    random,
    reduce,
    scattering,
    torch_arithmetic,
    torch_creation,
    torch_names,
    torch_queries,
    triangles,
)
from jitgrad.ops.arithmetic import multiply
from jitgrad.ops.creation import clone
from jitgrad.ops.draws_in_place import drawn
from jitgrad.ops.in_place_forms import in_place
from jitgrad.ops.indexed_writes import PLACE_WRITERS
from jitgrad.ops.inplace import assign, set_item, update
from jitgrad.ops.keywords import takes_dim
from jitgrad.ops.operand import Operand
from jitgrad.ops.placement import beside
from jitgrad.ops.positional_axes import POSITIONAL_AXES
from jitgrad.ops.quick_writes import clipped, written_at
from jitgrad.ops.random import Generator
from jitgrad.ops.random_numbers import NORMALS, UNITS
from jitgrad.ops.tables import ELEMENTWISE
from jitgrad.ops.windows import windows_along

# --- one name for two meanings -----------------------------------------------------------------------------------


@takes_dim()
def method_repeat(
    self: Tensor, repeats: Any, *more: Any, axis: int | None = None, output_size: int | None = None
) -> Tensor:
    """Each element repeated along ``axis``, as NumPy's method; ``tile`` is what torch calls repeat.

    Numbers that NumPy's method does not take, such as three of them, are torch's: those of `tile`.

    Raises:
        ArgumentError: several numbers and an axis.
    """
    called = f"repeat({', '.join(map(shown, (repeats, *more)))})"
    if more and axis is not None:
        raise ArgumentError(f"{called[:-1]}, axis={axis}) of {self.aval}: expected one count and an axis, as in NumPy")
    if len(more) > 1 or (more and self.ndim == 1 and more[0] not in (0, -1)):
        return joining.tile(self, repeats, *more)
    if more and self.ndim == 2 and more[0] == 1 and repeats != 1:
        warnings.warn(
            f"{Origin.capture().full()}: {called} of {self.aval} repeats each element along axis 1, as in NumPy; torch repeats "
            f"the whole tensor. Write repeat({shown(repeats)}, axis=1), or {called.replace('repeat', 'tile', 1)} for torch's",
            MeaningWarning,
            stacklevel=3,
        )
    return joining.repeat(self, repeats, more[0] if more else axis, output_size=output_size)


@takes_dim(movement.squeeze_where_possible)
def method_squeeze(self: Tensor, *positions: Any, axis: Any = None) -> Tensor:
    """Without axes of length 1: all of them, or those of ``positions``, of which longer ones stay, as in torch.

    Raises ShapeError if one of ``axis`` is longer, as `jitgrad.squeeze` does.
    """
    if not positions or positions == (None,):
        return movement.squeeze(self, axis)
    return movement.squeeze_where_possible(self, positions[0] if len(positions) == 1 else positions)


# --- in place ----------------------------------------------------------------------------------------------------


def _fill_diagonal(self: Tensor, fill_value: Operand, wrap: bool = False) -> Tensor:
    """Make the diagonal ``fill_value``, in place; with ``wrap`` it begins anew below the square of a tall matrix.

    Raises ShapeError for less than two axes, and for more if their lengths differ.
    """
    if self.ndim < 2 or (self.ndim > 2 and len(set(self.shape)) > 1):
        raise ShapeError(f"fill_diagonal_ of {self.aval}: expected a matrix, or more axes of one length")
    if not wrap or self.ndim > 2 or self.shape[0] <= self.shape[1]:
        set_item(self, (np.arange(min(self.shape)),) * self.ndim, fill_value)
        return self
    rows, columns = self.shape
    set_item(self, np.divmod(np.arange(0, rows * columns, columns + 1), columns), fill_value)
    return self


def _adjoint(transposed: Tensor) -> Tensor:
    """The complex conjugate; of real numbers the view itself."""
    return complex_parts.conj(transposed) if complex_parts.is_complex(transposed) else transposed


def _updating(function: Callable[[Any, Any], Tensor]) -> Callable[..., Tensor]:
    """``x = function(x, other)`` in place, with ``alpha * other`` if that is given."""

    def method(self: Tensor, other: Operand, *, alpha: Any = None) -> Tensor:
        return update(function, self, other if alpha is None else multiply(other, alpha))

    method.__doc__ = f"``{function.__name__}`` in place."
    return method


def _clamp(self: Tensor, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    """``clip`` in place."""
    if isinstance(min, int | float) and isinstance(max, int | float) and clipped(self, min, max):
        return self
    return _CLAMP(self, min, max)


def _masked_fill(self: Tensor, mask: Operand, value: Operand) -> Tensor:
    """``masked_fill`` in place."""
    selects = type(mask) is Tensor and mask.dtype == np.bool_ and mask.shape == self.shape
    if selects and type(value) in _NUMBERS and written_at(self, mask, value):
        return self
    return _MASKED_FILL(self, mask, value)


_NUMBERS = frozenset({int, float})
_CLAMP, _MASKED_FILL = in_place(arithmetic.clip), in_place(torch_names.masked_fill)


def _normal(self: Tensor, mean: Any = 0.0, std: Any = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with normal numbers."""
    if drawn(self, NORMALS, std, mean, generator):
        return self
    with beside(self):
        return assign(self, random.normal(mean, std, self.shape, dtype=self.dtype, generator=generator))


def _uniform(self: Tensor, low: Any = 0.0, high: Any = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with uniform numbers in [low, high)."""
    if type(low) is type(high) is float and drawn(self, UNITS, high - low, low, generator):
        return self
    with beside(self):
        return assign(self, random.uniform(low, high, self.shape, dtype=self.dtype, generator=generator))


def _bernoulli(self: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fill with ones of probability ``p``, else zeros."""
    with beside(self):
        return assign(self, random.bernoulli(p, self.shape, dtype=self.dtype, generator=generator))


def _random(self: Tensor, low: int = 0, high: int | None = None, *, generator: Generator | None = None) -> Tensor:
    """Fill with integers in [low, high), or [0, low); by default [0, 2**24), which every float32 holds."""
    start, stop = (0, low or 2**24) if high is None else (low, high)
    with beside(self):
        return assign(self, arithmetic.astype(random.randint(start, stop, self.shape, generator=generator), self.dtype))


def _exponential(self: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers of the exponential distribution of rate ``lambd``."""
    with beside(self):
        u = random.rand(self.shape, dtype=self.dtype, generator=generator)
    return assign(self, arithmetic.divide(ELEMENTWISE["log1p"](arithmetic.negative(u)), -lambd))


def _geometric(self: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Fill with the numbers of trials, each with probability ``p``, up to the first success: 1, 2, ..."""
    if not 0 < p < 1:
        raise ArgumentError(f"geometric_: p must be between 0 and 1, got {p}")
    with beside(self):
        u = random.rand(self.shape, dtype=self.dtype if self.dtype.kind == "f" else np.float64, generator=generator)
    failures = ELEMENTWISE["floor"](arithmetic.divide(ELEMENTWISE["log1p"](arithmetic.negative(u)), math.log1p(-p)))
    return assign(self, arithmetic.astype(arithmetic.add(failures, 1.0), self.dtype))


def _log_normal(self: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers whose logarithms are normal, of the given mean and standard deviation."""
    with beside(self):
        logarithms = random.normal(mean, std, self.shape, dtype=self.dtype, generator=generator)
    return assign(self, ELEMENTWISE["exp"](logarithms))


def _cauchy(self: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers of the Cauchy distribution around ``median``, of the scale ``sigma``."""
    with beside(self):
        u = random.rand(self.shape, dtype=self.dtype, generator=generator)
    turned = ELEMENTWISE["tan"](arithmetic.multiply(arithmetic.subtract(u, 0.5), math.pi))
    return assign(self, arithmetic.add(arithmetic.multiply(turned, sigma), median))


# Elementwise functions with an in-place method (add_, sub_, mul_ and div_ take alpha, and are below).
_ELEMENTWISE = (
    "abs neg negative reciprocal square sqrt rsqrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh "
    "cosh tanh asinh acosh atanh sigmoid erf erfc floor ceil round trunc sign relu relu6 leaky_relu elu selu celu silu "
    "mish hardtanh hardsigmoid hardswish pow remainder fmod floor_divide lerp copysign hypot atan2 "
    "bitwise_and bitwise_or bitwise_xor logical_and logical_or logical_xor logical_not absolute fix nextafter arcsin arccos "
    "arctan arcsinh arccosh arctanh arctan2 bitwise_left_shift bitwise_right_shift bitwise_not"
)
# module -> other functions with an in-place method
_OTHERS: Mapping[Any, str] = {
    torch_names: "clamp_min clamp_max addmm addmv baddbmm addcmul addcdiv",
    triangles: "tril triu",
    torch_arithmetic: "frac sgn addr addbmm",
    scattering: "masked_scatter scatter_reduce",
    integers: "gcd lcm ldexp",
    gamma: "digamma",
    normal_distribution: "erfinv",
    entropy: "logit xlogy",
}
IN_PLACE: Mapping[str, Any] = {
    **{f"{name}_": in_place(ELEMENTWISE[name]) for name in _ELEMENTWISE.split()},
    **{f"{name}_": in_place(getattr(module, name)) for module, names in _OTHERS.items() for name in names.split()},
    **PLACE_WRITERS,
    "clip_": _clamp,
    "clamp_": _clamp,
    "masked_fill_": _masked_fill,
    "add_": _updating(arithmetic.add),
    "sub_": _updating(arithmetic.subtract),
    "mul_": _updating(arithmetic.multiply),
    "div_": _updating(arithmetic.divide),
    "lgamma_": in_place(gamma.gammaln),
    "cumsum_": in_place(reduce.cumulative_sum),
    "true_divide_": _updating(arithmetic.divide),
    "subtract_": _updating(arithmetic.subtract),
    "multiply_": _updating(arithmetic.multiply),
    "divide_": _updating(arithmetic.divide),
    "fill_diagonal_": _fill_diagonal,
    "normal_": _normal,
    "random_": _random,
    "exponential_": _exponential,
    "geometric_": _geometric,
    "log_normal_": _log_normal,
    "cauchy_": _cauchy,
    "uniform_": _uniform,
    "bernoulli_": _bernoulli,
}

# --- new tensors of the same dtype, in the same place ----------------------------------------------------------


def _new(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def method(self: Tensor, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
        # entering `beside`, which changes nothing on the host, takes longer than the function
        with nullcontext() if type(self._data) is np.ndarray else beside(self):
            return function(*size, dtype=dtype or self.dtype, device=device, requires_grad=requires_grad)

    method.__doc__ = f"``{function.__name__}`` in the dtype of this tensor, and where it is."
    return method


# --- conversions and questions -----------------------------------------------------------------------------------


def _type(self: Tensor, dtype: Any = None) -> Any:
    """This tensor in ``dtype``; without one, the dtype's name."""
    if dtype is None:
        return str(self.dtype)
    wanted = np.dtype(dtype)
    return self if wanted == self.dtype else arithmetic.astype(self, wanted)


def _is_contiguous(self: Tensor, **_layout: Any) -> bool:
    """Whether this is no view of another tensor in another order, or of a part of one."""
    orders = current_interpreter.get().orders
    return bool(is_in_order(self._view) if orders is None else orders.is_in_order(self))


def _contiguous(self: Tensor, **_layout: Any) -> Tensor:
    """This tensor; a copy if it is a view of another one in another order, or of a part of it."""
    return self if _is_contiguous(self) else clone(self)


def _as_shape_of(function: Callable[..., Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda self, other: function(self, other.shape)


def _set_data(self: Tensor, new: Any) -> None:
    """Let this tensor have the memory of the tensor ``new``, without a history of it.

    Those who share the old memory, such as an earlier ``tensor.data``, keep that.
    Raises ArgumentError if ``new`` is no tensor; DtypeError if this one could not have a gradient then.
    """
    if not isinstance(new, Tensor):
        raise ArgumentError(f"tensor.data = {type(new).__name__}: expected a tensor; jitgrad.tensor(...) makes one")
    if self._requires_grad and not is_differentiable(new.dtype):
        raise DtypeError(f"tensor.data = {new.aval}: a tensor that requires grad is floating or complex")
    current_interpreter.get().replace(self, new)


_OUT_OF_PLACE = {"resize_": "reshape", "resize_as_": "reshape"}


def _permutes(new: Tensor) -> bool:
    """Whether the last view op that made ``new`` has changed the order of axes."""
    op, attrs = new._view.steps[-1] if new._view is not None else (None, {})
    return op is movement.PERMUTE_DIMS and attrs["axes"] != tuple(range(new.ndim))


def _reshaping(name: str, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The shape of a tensor changed in place: afterwards it is a view of what it was."""

    out_of_place = _OUT_OF_PLACE.get(name, name.rstrip("_"))

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if self._requires_grad:
            raise AutogradError(f"{name} of {self.aval}, which requires grad: its history is that of another shape; assign the "
                                f"result of {out_of_place}")  # fmt: skip
        new = function(creation.detached(self), *args, **kwargs)
        if new.shape == self.shape and not _permutes(new):
            return self
        if current_interpreter.get().tracing:
            raise TraceError(f"{name} of {self.aval} to {new.aval}: @jit keeps the shapes of tensors, and the order of their "
                             f"axes; assign the result of {out_of_place}")  # fmt: skip
        _set_data(self, new)
        return self

    method.__doc__ = f"``{name.rstrip('_')}`` in place: this tensor becomes a view of its elements in the new shape."
    return method


def _resized(self: Tensor, *sizes: Any, memory_format: Any = None) -> Tensor:
    shape = sizes[0] if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes
    return torch_creation.resized("resize_", self, shape)


def _new_empty_strided(self: Tensor, size: Any, stride: Any, **options: Any) -> Tensor:
    """Zeros of the shape ``size`` in the dtype of this tensor, and where it is."""
    with beside(self):
        return torch_creation.empty_strided(size, stride, **{"dtype": self.dtype, **options})


ONLY_IN_TORCH: Mapping[str, Any] = {
    "new_empty_strided": _new_empty_strided,
    "sum_to_size": torch_creation.sum_to_size,
    "resize_": _reshaping("resize_", _resized),
    "resize_as_": _reshaping("resize_as_", lambda self, other, memory_format=None: _resized(self, other.shape)),
    "unsqueeze_": _reshaping("unsqueeze_", movement.expand_dims),
    "squeeze_": _reshaping("squeeze_", method_squeeze),
    "transpose_": _reshaping("transpose_", movement.transpose),
    "swapaxes_": _reshaping("swapaxes_", movement.swapaxes),
    "swapdims_": _reshaping("swapdims_", movement.swapaxes),
    "t_": _reshaping("t_", torch_names.t),
    "adjoint": lambda self: _adjoint(movement.matrix_transpose(self)),
    "is_signed": lambda self: self.dtype.kind in "ifc",
    "is_same_size": lambda self, other: self.shape == other.shape,
    "is_conj": lambda self: False,
    "is_neg": lambda self: False,
    "is_inference": lambda self: False,
    "get_device": lambda self: -1 if self.device == "cpu" else 0,
    "conj_physical": complex_parts.conj,
    "resolve_neg": lambda self: self,
    "new_zeros": _new(creation.zeros),
    "new_ones": _new(creation.ones),
    "new_empty": _new(creation.empty),
    "new_full": _new(creation.full),
    "new_tensor": _new(creation.tensor),
    "type": _type,
    "contiguous": _contiguous,
    "is_contiguous": _is_contiguous,
    "view_as": _as_shape_of(movement.reshape),
    "reshape_as": _as_shape_of(movement.reshape),
    "expand_as": _as_shape_of(movement.broadcast_to),
    "data": property(creation.detached, _set_data, doc="This tensor without its history, over the same memory."),
    "ndimension": lambda self: self.ndim,
    "nelement": lambda self: int(self.size),
    "itemsize": property(lambda self: self.dtype.itemsize, doc="The bytes of an element."),
    "nbytes": property(lambda self: self.aval.nbytes, doc="The bytes of all elements."),
    "is_cpu": property(lambda self: self.device == "cpu", doc="Whether the data is on the host."),
    "H": property(lambda self: _adjoint(movement.transpose(self)), doc="The conjugate transpose of a matrix."),
    "mH": property(lambda self: _adjoint(movement.matrix_transpose(self)), doc="The conjugate transposes of matrices."),
    "unfold": windows_along,
    "pin_memory": lambda self: self,
    "is_complex": complex_parts.is_complex,
    "resolve_conj": lambda self: self,
    "values": property(lambda x: POSITIONAL_AXES.pair_of(x).values, doc="The values of torch's pair, of `x.max(1)` alone."),
    "indices": property(lambda x: POSITIONAL_AXES.pair_of(x).indices, doc="The indices of torch's pair, of `x.max(1)` alone."),
    "is_nonzero": lambda self: bool(self),
    "is_sparse": property(lambda self: False, doc="False: there are no sparse tensors."),
    "stride": torch_queries.stride_of,
    "strides": property(torch_queries.strides_in_bytes, doc="The strides, in bytes, of the elements in a row."),
    "element_size": lambda self: self.dtype.itemsize,
    "is_cuda": property(lambda self: self.device != "cpu", doc="Whether the data is on a CUDA device."),
}
