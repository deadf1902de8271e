"""The methods of NumPy's ufuncs, ``add.at``, ``multiply.outer``, ``maximum.reduce`` and their like; ndenumerate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from jitgrad.core.context import current_interpreter
from jitgrad.core.errors import OperandError
from jitgrad.core.tensor import Tensor
from jitgrad.numpy.arguments import in_dtype, refuse, tensor_of
from jitgrad.numpy.output import takes_out
from jitgrad.ops import reduce as reductions
from jitgrad.ops.inplace import assign
from jitgrad.ops.movement import reshape
from jitgrad.ops.torch_names import cummax, cummin
from jitgrad.ops.views import keep_elements

_REDUCTIONS: Mapping[str, Callable[..., Tensor]] = {
    "add": reductions.sum, "multiply": reductions.prod, "maximum": reductions.max, "minimum": reductions.min,
    "logical_and": reductions.all, "logical_or": reductions.any,
}  # fmt: skip
_ACCUMULATIONS: Mapping[str, Callable[..., Tensor]] = {
    "add": lambda x, axis: reductions.cumulative_sum(x, axis=axis),
    "maximum": lambda x, axis: cummax(x, axis)[0],
    "minimum": lambda x, axis: cummin(x, axis)[0],
}
_UPDATES = {"add": "add", "subtract": "subtract", "multiply": "multiply", "divide": "divide", "maximum": "max", "minimum": "min"}
_BINARY = "add subtract multiply divide true_divide floor_divide power maximum minimum equal less greater arctan2 hypot logaddexp"


def ndenumerate(arr: Any) -> Iterator[tuple[tuple[int, ...], Tensor]]:
    """The index and the value of each element, in C order."""
    x = tensor_of(arr)
    yield from ((index, x[index]) for index in np.ndindex(*x.shape))


def install_methods(functions: Mapping[str, Any]) -> None:
    """Give the functions of that name the methods that NumPy's have."""
    for name in _BINARY.split():
        vars(functions[name])["outer"] = _outer(functions[name])
    for name, reduction in _REDUCTIONS.items():
        vars(functions[name])["reduce"] = _reduce(name, reduction)
    for name, accumulation in _ACCUMULATIONS.items():
        vars(functions[name])["accumulate"] = _accumulate(name, accumulation)
    for name, update in _UPDATES.items():
        vars(functions[name])["at"] = _at(name, update)


def _outer(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def outer(A: Any, B: Any, **keywords: Any) -> Tensor:
        """The function of each element of ``A`` with each of ``B``: the axes of ``A``, then those of ``B``."""
        a, b = tensor_of(A), tensor_of(B)
        return function(reshape(a, a.shape + (1,) * b.ndim), b, **keywords)

    return outer


def _reduce(name: str, reduction: Callable[..., Tensor]) -> Callable[..., Tensor]:
    @takes_out
    def reduce(array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False, **more: Any) -> Tensor:
        """The function of all elements along ``axis``, by default the first; along all for None."""
        refuse(f"{name}.reduce", **more)
        return reduction(in_dtype(tensor_of(array), dtype), axis=axis, keepdims=keepdims)

    return reduce


def _accumulate(name: str, accumulation: Callable[..., Tensor]) -> Callable[..., Tensor]:
    @takes_out
    def accumulate(array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Tensor:
        """The function of all elements up to each one along ``axis``."""
        return accumulation(in_dtype(tensor_of(array), dtype), axis)

    return accumulate


def _at(name: str, update: str) -> Callable[..., None]:
    def at(a: Any, indices: Any, b: Any) -> None:
        """Change the tensor ``a`` in place by ``b`` at the indices, of which equal ones count each; outside of @jit also
        an array of NumPy.

        Raises OperandError if ``a`` is something else; IndexingError for arrays of integers as indices, unless the
        function is add or subtract.
        """
        if isinstance(a, np.ndarray) and not current_interpreter.get().tracing:
            getattr(np, name).at(a, indices, b.numpy() if isinstance(b, Tensor) else b)
            return
        if not isinstance(a, Tensor):
            given = type(a).__name__
            raise OperandError(f"jitgrad.numpy.{name}.at changes a tensor in place, got {given}: make it one with asarray(x)")
        keep_elements(a)
        assign(a, getattr(a.at[indices], update)(tensor_of(b, a.dtype)))

    return at
