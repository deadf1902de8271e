"""The operators and methods of Tensor: tables of names and functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from jitgrad.core.aval import Aval
from jitgrad.core.config import get_immutable, get_methods_of
from jitgrad.core.context import current_interpreter, grad_enabled
from jitgrad.core.errors import ArgumentError, AutogradError, DtypeError, InPlaceError
from jitgrad.core.ir import Value
from jitgrad.core.op import OpDef
from jitgrad.core.tensor import Tensor, check_supported
from jitgrad.eager.single_ops import single_op
from jitgrad.ops import (
    arithmetic,
    comparison,
    complex_numbers,
    complex_parts,
    creation,
    diagonals,
    entropy,
    gamma,
    grids,
    indexed_sums,
    indexing,
    integers,
    interop,
    joining,
    linalg,
    movement,
    normal_distribution,
    norms,
    reduce,
    rounding,
    scattering,
    sorting,
    torch_arithmetic,
    torch_methods,
    torch_names,
    transcendental,
    triangles,
)
from jitgrad.ops.bit_patterns import view
from jitgrad.ops.creation import clone, detached
from jitgrad.ops.flat_view import FlatView, fill_flat
from jitgrad.ops.indexed_updates import IndexedUpdates
from jitgrad.ops.inplace import assign, copy_, fill_, fill_elements, is_same_view, set_item, update, zero_
from jitgrad.ops.keywords import takes_dim
from jitgrad.ops.linalg import MATMUL, matmul
from jitgrad.ops.matrix_exponential import matrix_exp
from jitgrad.ops.memory_formats import check_memory_format
from jitgrad.ops.operators import Binary, as_operand, forward, is_operand, reflected
from jitgrad.ops.placement import move, names_device
from jitgrad.ops.positional_axes import POSITIONAL_AXES
from jitgrad.ops.subscript import get_item
from jitgrad.ops.tables import ELEMENTWISE
from jitgrad.ops.views import is_element, is_view, keep_elements, stands_for_number

# --- operators ---------------------------------------------------------------------------------------------------


def _in_place(function: Binary) -> Callable[[Tensor, Any], Any]:
    def change(self: Tensor, other: Any) -> Any:
        if (other := as_operand(other)) is None:
            return NotImplemented
        # a float of the caller has no memory: other names of it keep their value
        if (get_immutable() and _is_immutable(self)) or is_element(self) or stands_for_number(self):
            return function(self, other)
        keep_elements(self)
        return update(function, self, other)

    return change


def _is_immutable(tensor: Tensor) -> bool:
    """True, for a process whose programs are JAX's; raises InPlaceError where torch's meaning may be meant."""
    is_parameter = tensor._requires_grad and tensor.grad_fn is None and not grad_enabled.get()
    if is_parameter or get_methods_of() == "torch":
        found = "and jitgrad.torch are imported" if get_methods_of() == "torch" else "is imported, yet this is no_grad()"
        raise InPlaceError(
            f"x += y of a tensor {tensor.aval}: JAX's meaning is a new tensor, torch's a change of x, and jitgrad.jax {found}. "
            "Write x = x + y for the one, x.copy_(x + y) for the other"
        )
    return True


# name -> function; each becomes __name__, __rname__ and __iname__
ARITHMETIC: Mapping[str, Binary] = {
    "add": arithmetic.add,
    "sub": arithmetic.subtract,
    "mul": arithmetic.multiply,
    "truediv": arithmetic.divide,
    "floordiv": rounding.floor_divide,
    "mod": rounding.remainder,
    "pow": transcendental.pow,
    "matmul": matmul,
    "and": comparison.bitwise_and,
    "or": comparison.bitwise_or,
    "xor": comparison.bitwise_xor,
    "lshift": comparison.bitwise_left_shift,
    "rshift": comparison.bitwise_right_shift,
}
# of functions that do nothing but apply an op
OPS: Mapping[str, OpDef] = {
    "add": arithmetic.ADD,
    "sub": arithmetic.SUBTRACT,
    "mul": arithmetic.MULTIPLY,
    "truediv": arithmetic.DIVIDE,
    "matmul": MATMUL,
    "and": comparison.BITWISE_AND,
    "or": comparison.BITWISE_OR,
    "xor": comparison.BITWISE_XOR,
    "eq": comparison.EQUAL,  # but for numbers that do not fit, of which plans take none
    "ne": comparison.NOT_EQUAL,
    "lt": comparison.LESS,
    "le": comparison.LESS_EQUAL,
    "gt": comparison.GREATER,
    "ge": comparison.GREATER_EQUAL,
}
COMPARISON: Mapping[str, Binary] = {
    "eq": comparison.equal,
    "ne": comparison.not_equal,
    "lt": comparison.less,
    "le": comparison.less_equal,
    "gt": comparison.greater,
    "ge": comparison.greater_equal,
}


def _divmod(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    return rounding.floor_divide(x, y), rounding.remainder(x, y)


def _contains(self: Tensor, value: Any) -> bool:
    return bool(reduce.any(comparison.equal(self, value)))


def _iterate(self: Tensor) -> Iterator[Tensor]:
    if not self.shape:
        raise TypeError(f"iteration over a 0-d tensor {self.aval}: it is one number; .item() gives it")
    POSITIONAL_AXES.check(self, "unpacking")
    return iter(joining.unstack(self))


def _round(self: Tensor, ndigits: Any = None) -> Any:
    """``round(x)``: Python's gives an int, so that a traced number needs its value for it."""
    is_number = type(self._data) is Value and self.aval.weak and not self.shape
    rounded = rounding.round(self, ndigits or 0)
    return int(rounded) if ndigits is None and is_number else rounded


def _operators() -> dict[str, Any]:
    table: dict[str, Any] = {}
    for name, function in ARITHMETIC.items():
        table[f"__{name}__"] = forward(function, OPS.get(name))
        table[f"__r{name}__"] = reflected(function, OPS.get(name))
        table[f"__i{name}__"] = _in_place(function)
    table |= {f"__{name}__": forward(function, OPS[name]) for name, function in COMPARISON.items()}
    table |= {
        "__divmod__": lambda self, other: _divmod(self, other) if is_operand(other) else NotImplemented,
        "__rdivmod__": lambda self, other: _divmod(other, self) if is_operand(other) else NotImplemented,
        "__neg__": arithmetic.negative,
        "__pos__": arithmetic.positive,
        "__abs__": arithmetic.abs,
        "__invert__": comparison.bitwise_invert,
        "__round__": _round,
        "__getitem__": get_item,
        "__setitem__": set_item,
        "__iter__": _iterate,
        "__contains__": _contains,
        "__array_ufunc__": interop.array_ufunc,
        "__array_function__": interop.array_function,
        "__array_namespace__": interop.array_namespace,
        "__copy__": _copy,
        "__deepcopy__": _deepcopy,
        "__reduce__": _reduce,
    }
    return table


def _detach_(self: Tensor) -> Tensor:
    """Cut this tensor from its history. Raises AutogradError if it is a view, whose base keeps its own."""
    if self.grad_fn is None:
        return self.requires_grad_(False)
    orders = current_interpreter.get().orders
    if is_view(self._view) if orders is None else orders.is_view(self):
        raise AutogradError(f"detach_ of {self.aval}, a view with history: use .detach(), a new tensor without it")
    if (flags := current_interpreter.get().flags) is not None:
        flags.before_detaching(self)
    self.grad_fn = None
    self._requires_grad = False
    return self


def _copy(self: Tensor) -> Tensor:
    return self if stands_for_number(self) else clone(self)


def _deepcopy(self: Tensor, memo: dict[int, Any]) -> Tensor:
    if stands_for_number(self):
        return self
    if self.grad_fn is not None:
        raise AutogradError(f"deepcopy of {self.aval}, a result with history: copy .detach() of it, or .clone() it")
    new = detached(clone(detached(self)))
    new._requires_grad = self._requires_grad
    grad = self.grad
    memo[id(self)] = new
    if grad is not None:
        new.grad = clone(grad)
    return new


def _reduce(self: Tensor) -> tuple[Any, ...]:
    """What pickle saves: the elements, and for a leaf whether it requires grad, its gradient, and where it is."""
    if self.grad_fn is not None:
        raise AutogradError(f"pickle of {self.aval}, a result with history: pickle .detach() of it")
    return _loaded, (np.array(self.concrete("pickle")), self.aval.weak, self.requires_grad, self.grad, str(self.device))


def _loaded(data: Any, weak: bool, requires_grad: bool, grad: Tensor | None, device: str) -> Tensor:
    """The tensor that pickle saved."""
    new = move(Tensor(data, Aval(data.shape, data.dtype, weak=weak)), device)
    new._requires_grad = requires_grad
    new.grad = grad
    return new


# --- methods -----------------------------------------------------------------------------------------------------


def _to(
    self: Tensor,
    *where: Any,
    dtype: Any = None,
    device: Any = None,
    copy: bool = False,
    non_blocking: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Convert device or dtype: ``t.to("cpu")``, ``t.to(jg.float64)``, ``t.to(other)``.

    ``non_blocking`` and ``memory_format`` change nothing here. True or False by position are, as in torch,
    ``non_blocking`` and ``copy``.
    """
    check_memory_format("to", memory_format)
    copy = copy or [flag for flag in where if isinstance(flag, bool)][1:] == [True]
    for given in where:
        if isinstance(given, bool):
            continue
        if isinstance(given, Tensor):
            dtype, device = given.dtype, given.device
        elif names_device(given):
            device = given
        else:
            dtype = given
    self = self if device is None else move(self, device)
    out = self if dtype is None or check_supported("to", dtype) == self.dtype else arithmetic.astype(self, dtype)
    return clone(out) if copy and out is self else out


def _zero_grad(self: Tensor, set_to_none: bool = True) -> None:
    """Drop the gradient; with ``set_to_none=False`` fill it with zeros, in place unless it has a history."""
    if set_to_none:
        self.grad = None  # whatever it is: a trace that does not look needs no check
    elif (grad := self.grad) is not None and not grad._requires_grad:
        zero_(grad)
    elif grad is not None:
        self.grad = creation.zeros_like(grad)


def _part(part_of: Callable[[Any], Tensor], doc: str) -> property:
    """A part of complex numbers as a property; ``x.real = y`` and ``x.real += y`` change ``x`` in place."""

    def change(self: Tensor, value: Any) -> None:
        if not complex_parts.is_complex(self):
            raise DtypeError(f"assignment to a part of {self.aval}, which is not complex: change it as x[...] = value")
        part = part_of(self)
        changed = (
            isinstance(value, Tensor) and value._storage is part._storage and is_same_view(value._view, part._view)
        )
        if not changed:
            assign(part, value)

    return property(part_of, change, doc=doc)


def _cast(dtype: Any) -> Callable[..., Tensor]:
    return single_op(lambda self, memory_format=None: _to(self, dtype=dtype, memory_format=memory_format))


@takes_dim()
def _cumsum(self: Tensor, axis: int | None = None, dtype: Any = None) -> Tensor:
    return reduce.cumulative_sum(self if axis is not None or self.ndim == 1 else movement.flatten(self), axis, dtype=dtype)


# module -> the names of its functions that are methods as well, with the tensor as first argument
METHOD_NAMES: Mapping[Any, str] = {
    reduce: "sum prod mean max min var std logsumexp all any argmax argmin cumulative_sum softmax log_softmax",
    movement: "reshape permute_dims transpose matrix_transpose swapaxes moveaxis expand_dims flip "
    "flatten",
    diagonals: "diagonal",
    joining: "split unstack roll tile pad",
    indexing: "take take_along_axis gather",
    indexed_sums: "scatter_add index_add",
    comparison: "nonzero",
    sorting: "argsort topk unique searchsorted",
    creation: "clone",
    triangles: "tril triu",
    linalg: "matmul dot vecdot outer tensordot",
    torch_names: "mm mv bmm addmm addmv baddbmm addcmul addcdiv masked_fill masked_select unflatten index_select "
    "take_along_dim narrow select chunk permute expand t amax amin kthvalue cummax cummin clamp_min clamp_max "
    "is_floating_point numel",
    torch_arithmetic: "div rsub frac sgn dist addr addbmm aminmax logcumsumexp unique_consecutive bucketize",
    scattering: "slice_scatter select_scatter diagonal_scatter as_strided index_fill index_copy scatter masked_scatter index_put "
    "scatter_reduce",
    integers: "gcd lcm ldexp frexp isin",
    grids: "diag_embed",
    gamma: "digamma",
    normal_distribution: "erfinv",
    entropy: "logit xlogy",
}
OTHER_METHODS: Mapping[str, Any] = {
    "detach": detached,
    "detach_": _detach_,
    "flat": property(FlatView, fill_flat, doc="The elements in C order, to read, write and iterate over."),
    "to": _to,
    "cpu": lambda self: move(self, "cpu"),
    "cuda": lambda self, device="cuda": move(self, device),
    "zero_grad": _zero_grad,
    "copy": clone,
    "cumsum": _cumsum,
    "matrix_exp": matrix_exp,
    "ravel": movement.flatten,
    "view": view,
    "unsqueeze": movement.expand_dims,
    "movedim": movement.moveaxis,
    "swapdims": movement.swapaxes,
    "unbind": joining.unstack,
    "norm": norms.method_norm,
    "repeat": torch_methods.method_repeat,
    "squeeze": torch_methods.method_squeeze,
    "repeat_interleave": joining.repeat,
    "lgamma": gamma.gammaln,
    "ger": linalg.outer,
    "dim": lambda self: self.ndim,
    "where": lambda self, condition, other: comparison.where(condition, self, other),
    "float": _cast(np.float32),
    "double": _cast(np.float64),
    "half": _cast(np.float16),
    "byte": _cast(np.uint8),
    "char": _cast(np.int8),
    "short": _cast(np.int16),
    "int": _cast(np.int32),
    "long": _cast(np.int64),
    "bool": _cast(np.bool_),
    "type_as": _to,
    "zero_": zero_,
    "fill_": fill_,
    "fill": fill_elements,
    "copy_": copy_,
    "cfloat": _cast(np.complex64),
    "cdouble": _cast(np.complex128),
    "conj": complex_parts.conj,
    "conjugate": complex_parts.conj,
    "angle": complex_numbers.angle,
    "real": _part(
        complex_parts.real, "The real part, a view; of a real tensor its elements. Assigning to it changes them."
    ),
    "imag": _part(
        complex_parts.imag, "The imaginary part, a view; of a real tensor zeros. Assigning changes a complex one."
    ),
    "at": property(IndexedUpdates, doc="JAX's x.at[index].set(v), add(v) and others, which return new tensors."),
    "T": property(movement.transpose, doc="The tensor with its axes reversed; a view."),
    "mT": property(movement.matrix_transpose, doc="The tensor with its last two axes exchanged; a view."),
}


def _methods() -> dict[str, Any]:
    table = {name: getattr(module, name) for module, names in METHOD_NAMES.items() for name in names.split()}
    return {**ELEMENTWISE, **table, **OTHER_METHODS, **torch_methods.ONLY_IN_TORCH, **torch_methods.IN_PLACE}


def install(table: Mapping[str, Any]) -> None:
    """Make each function of ``table`` a method (or operator, or property) of Tensor under its name.

    Raises:
        ArgumentError: Tensor has that name already.
    """
    for name, function in table.items():
        if name in Tensor.__dict__ and name != "__hash__":
            raise ArgumentError(f"Tensor.{name} exists already")
        setattr(Tensor, name, function)


install(_operators())
install(_methods())
