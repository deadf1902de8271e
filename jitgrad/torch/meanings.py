"""Functions with torch's meaning of calls that NumPy understands differently."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitgrad.core.config import get_default_dtype, set_methods_of
from jitgrad.core.tensor import Tensor
from jitgrad.eager.compositions import composed
from jitgrad.eager.stable_order import equal_arrays
from jitgrad.numpy import creation as creation_of_arrays
from jitgrad.numpy import shared_with_torch, statistics
from jitgrad.ops import (
    arithmetic,
    comparison,
    creation,
    grids,
    joining,
    movement,
    reduce,
    scattering,
    sorting,
    torch_names,
)  # fmt: skip
from jitgrad.ops.operand import Operand, ValuesAndIndices, host_array


@dataclass(frozen=True, slots=True)
class AbsentDtype:
    """A dtype of torch that NumPy has not: programs may name it, as for autocast, but no tensor can have it."""

    name: str
    instead: str

    def __repr__(self) -> str:
        return f"torch.{self.name}"


bfloat16: AbsentDtype = AbsentDtype("bfloat16", " here (NumPy has none of its kind): use torch.float32, or float16 for memory")


def _is_axis(given: Any) -> bool:
    return isinstance(given, (int, np.integer)) and not isinstance(given, bool)


def _by_keyword(names: Sequence[str], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """All arguments by torch's keywords, which say whose meaning a call has."""
    if len(args) > len(names):
        raise TypeError(f"expected at most {len(names) + 1} arguments by position, got {len(args) + 1}")
    return dict(zip(names, args, strict=False)) | kwargs


def _extreme(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    def extreme(input: Operand, *args: Any, **kwargs: Any) -> Any:
        if args and not _is_axis(args[0]):
            return function(input, *args, **kwargs)
        return function(input, **_by_keyword(["dim", "keepdim"], args, kwargs))

    extreme.__name__ = extreme.__qualname__ = name
    extreme.__doc__ = (
        f"The {name} of all elements; ``{name}(x, dim)``: values and positions; ``{name}(x, other)``: per element.\n\n"
        f"    Raises what `jitgrad.{name}` does."
    )
    return extreme


max: Callable[..., Any] = _extreme(reduce.max, "max")
min: Callable[..., Any] = _extreme(reduce.min, "min")


@composed
def _median_of_all(x: Operand) -> Tensor:
    flat = movement.flatten(x)
    middle = torch_names.kthvalue(flat, (flat.shape[0] + 1) // 2, axis=0).values
    if flat.dtype.kind != "f":
        return middle
    chosen = comparison.logical_or(comparison.equal(flat, creation.detached(middle)), comparison.isnan(flat))
    return reduce.max(comparison.where(chosen, flat, -math.inf))


def median(input: Operand, *args: Any, **kwargs: Any) -> Any:
    """The median of all elements, the lower of the two in the middle; ``median(x, dim)``: values and positions.

    Of all elements it is NaN if any of them is; elements equal to it share its gradient, as in torch.
    """
    if not args and not kwargs:
        return _median_of_all(input)
    return shared_with_torch.SHARED["median"](input, **_by_keyword(["dim", "keepdim"], args, kwargs))


def nanmedian(input: Operand, *args: Any, **kwargs: Any) -> Any:
    """The median of the elements that are not NaN, the lower of the two in the middle; ``nanmedian(x, dim)``: and positions."""
    if not args and not kwargs:
        return shared_with_torch.SHARED["nanmedian"](movement.flatten(input), dim=0).values
    return shared_with_torch.SHARED["nanmedian"](input, **_by_keyword(["dim", "keepdim"], args, kwargs))


def cov(input: Operand, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Tensor:
    """The covariance matrix of the rows of ``input``, in its dtype."""
    out = statistics.cov(input, ddof=correction, fweights=fweights, aweights=aweights)
    return _in_dtype_of(input, out)


def corrcoef(input: Operand) -> Tensor:
    """The matrix of correlation coefficients of the rows of ``input``, in its dtype."""
    return _in_dtype_of(input, statistics.corrcoef(input))


def _in_dtype_of(input: Operand, out: Tensor) -> Tensor:
    dtype = getattr(input, "dtype", out.dtype)
    return arithmetic.astype(out, dtype if dtype.kind in "fc" else get_default_dtype(), copy=False)


def logspace(start: Any, end: Any, steps: int, base: float = 10.0, *, dtype: Any = None, **options: Any) -> Tensor:
    """``steps`` numbers from ``base ** start`` to ``base ** end``, in the default dtype unless ``dtype`` is given."""
    out = shared_with_torch.SHARED["logspace"](start, end, steps, base=base)
    return creation.tensor(out, dtype=get_default_dtype() if dtype is None else dtype, **options)


def sort(input: Operand, dim: int = -1, descending: bool = False, stable: bool = False) -> ValuesAndIndices:
    """The elements sorted along ``dim``, and their positions. Equal ones keep their order, whatever ``stable`` says."""
    pair: ValuesAndIndices = sorting.sort(input, dim=dim, descending=descending)  # type: ignore[call-arg, assignment]
    return pair


def _spread(function: Callable[..., Tensor], name: str) -> Callable[..., Tensor]:
    def spread(input: Operand, *args: Any, **kwargs: Any) -> Tensor:
        if args and isinstance(args[0], bool):
            given = _by_keyword(["unbiased"], args, kwargs)
        elif len(args) > 1:
            given = _by_keyword(["dim", "unbiased", "keepdim"], args, kwargs)
        else:
            given = _by_keyword(["dim"], args, kwargs)
        if "unbiased" not in given and given.get("correction") is None:
            given["correction"] = 1
        return function(input, **given)

    spread.__name__ = spread.__qualname__ = name
    spread.__doc__ = f"`jitgrad.{name}` with ``correction=1``, unless ``unbiased`` or ``correction`` says otherwise."
    return spread


var: Callable[..., Tensor] = _spread(reduce.var, "var")
std: Callable[..., Tensor] = _spread(reduce.std, "std")


def squeeze(input: Operand, *args: Any, **kwargs: Any) -> Tensor:
    """Without axes of length 1: all of them, or those of ``dim``, of which longer ones stay."""
    return movement.squeeze(input, **_by_keyword(["dim"], args, kwargs))


def split(tensor: Operand, split_size_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """``tensor`` cut along ``dim`` into pieces of one size, of which the last may be shorter, or of these sizes; views."""
    return joining.chunked(tensor, split_size_or_sections, dim)


def method_split(self: Tensor, split_size: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """`split` of this tensor."""
    return joining.chunked(self, split_size, dim)


def diag(input: Operand, diagonal: int = 0) -> Tensor:
    """A copy of the ``diagonal``-th diagonal of a matrix, or a matrix with the vector ``input`` on it."""
    found = creation_of_arrays.diag(input, diagonal)
    return creation.clone(found) if np.ndim(input) == 2 else found


def can_cast(from_: Any, to: Any) -> bool:
    """Whether torch lets a result in the dtype ``from_`` be written into ``to``: any but a higher kind into a lower one."""
    kinds = "buifc"
    one, other = np.dtype(from_).kind, np.dtype(to).kind
    return kinds.index(one) <= kinds.index(other) or {one, other} == {"i", "u"}


def equal(input: Operand, other: Operand) -> bool:
    """Whether both have one shape and the same elements. In @jit: raises TracedValueError, as any look at elements does."""
    x, y = host_array(input), host_array(other)
    if x is not None and y is not None and x.dtype == y.dtype:
        return x.shape == y.shape and equal_arrays(x, y)
    if np.shape(input) != np.shape(other):
        return False
    return bool(reduce.all(comparison.equal(input, other)))


def nonzero(input: Operand, *, as_tuple: bool = False) -> Any:
    """The positions of the elements that are not zero, one in each row; with ``as_tuple`` a tensor per axis."""
    return comparison.nonzero(input, as_tuple=as_tuple)


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Coordinates of the grid over the 1-D ``tensors``, in the order of the arguments unless ``indexing="xy"``."""
    return grids.meshgrid(*tensors, indexing=indexing)


def tile(tensor: Tensor, *repeats: Any) -> Tensor:
    """The whole ``tensor`` so many times along each axis: torch's ``x.repeat``."""
    return joining.tile(tensor, *repeats)


METHODS: Mapping[str, Callable[..., Any]] = {
    "max": max, "min": min, "median": median, "sort": sort, "var": var, "std": std, "split": method_split, "diag": diag,
    "equal": equal,
    "nonzero": nonzero, "repeat": tile, "nanmedian": nanmedian, "cov": cov, "corrcoef": corrcoef,
    "put": scattering.put,
}  # fmt: skip


def install_methods() -> None:
    """Give `METHODS` to all tensors of the process: a program whose functions are torch's means torch's methods."""
    for name, function in METHODS.items():
        setattr(Tensor, name, function)
    set_methods_of("torch")
