"""NumPy's functions called on tensors: np.exp(t) and np.sum(t) run the ops of the same name."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from jitgrad.core.aval import float_dtype_for
from jitgrad.core.errors import ArgumentError, OperandError
from jitgrad.core.tensor import Tensor
from jitgrad.ops import (
    arithmetic,
    comparison,
    complex_parts,
    creation,
    diagonals,
    einsum,
    grids,
    indexing,
    joining,
    linalg,
    movement,
    norms,
    reduce,
    rounding,
    sorting,
    transcendental,
    triangles,
)
from jitgrad.ops.arithmetic import astype
from jitgrad.ops.operand import dtype_of, is_integral
from jitgrad.ops.placement import beside_operands
from jitgrad.ops.tables import ELEMENTWISE


def _fabs(x: Any) -> Tensor:
    """``|x|`` in floating point, also for integers."""
    dtype = dtype_of(x)
    return arithmetic.abs(x if dtype is None or not is_integral(x) else astype(x, float_dtype_for(dtype)))


# The functions by the names of the ufuncs that mean the same; jitgrad.numpy adds those that are no ops when it is imported.
UFUNCS: dict[str, Callable[..., Any]] = {
    "matmul": linalg.matmul,
    "vecdot": linalg.vecdot,
    "fabs": _fabs,
    "float_power": transcendental.pow,
    "conjugate": complex_parts.conj,
    **{getattr(np, name).__name__: f for name, f in ELEMENTWISE.items() if isinstance(getattr(np, name, None), np.ufunc)},
}


def array_ufunc(self: Tensor, ufunc: np.ufunc, method: str, *inputs: Any, **keywords: Any) -> Any:
    """``ufunc`` called with a tensor among its inputs.

    Raises:
        OperandError: there is no op for it, or the call is ``ufunc.reduce`` or has ``out=``.
    """
    function = UFUNCS.get(ufunc.__name__)
    call = f"np.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}")
    if function is None or method != "__call__":
        raise OperandError(f"{call} has no op for tensors. Call it on t.detach().numpy(), or use functions of jitgrad")
    if keywords:
        raise OperandError(
            f"{call} of a tensor takes no {', '.join(sorted(keywords))}=. To change an ndarray in place by a tensor, "
            "use t.detach().numpy()"
        )
    result = function(*(np.asarray(x) if isinstance(x, (list, tuple)) else x for x in inputs))
    weak = isinstance(result, Tensor) and result.aval.weak  # of what stands for a Python number, NumPy makes a scalar
    return creation.clone(result) if weak else result


def _with_correction(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def call(x: Any, axis: Any = None, *, ddof: float = 0, **keywords: Any) -> Tensor:
        return function(x, axis, **{"correction": ddof, **keywords})

    return call


def _cumsum(x: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    return reduce.cumulative_sum(movement.flatten(x) if axis is None else x, 0 if axis is None else axis, dtype=dtype)


def _where(condition: Any, *choices: Any) -> Any:
    return comparison.where(condition, *choices)


def _array(x: Any) -> Any:
    if isinstance(x, Tensor):
        return x.concrete("a NumPy function")
    return type(x)(map(_array, x)) if type(x) in (list, tuple) else x


# NumPy functions that return no tensors: they get the arrays
ON_ARRAYS = frozenset(
    getattr(np, name)
    for name in [
        "allclose",
        "array_equal",
        "array_equiv",
        "may_share_memory",
        "shares_memory",
        "array2string",
        "array_repr",
        "array_str",
        "save",
        "savetxt",
        "savez",
        "result_type",
        "can_cast",
        "common_type",
    ]
)


def _function_table() -> dict[Any, Callable[..., Any]]:
    """NumPy functions and the functions of jitgrad that they call."""
    same: dict[Any, str] = {
        reduce: "sum prod mean max min all any argmax argmin cumulative_sum",
        movement: "reshape transpose swapaxes moveaxis expand_dims squeeze broadcast_to flip matrix_transpose",
        diagonals: "diagonal",
        joining: "stack split unstack roll repeat tile pad",
        indexing: "take take_along_axis",
        sorting: "sort argsort searchsorted unique",
        comparison: "nonzero",
        creation: "zeros_like ones_like full_like empty_like",
        triangles: "tril triu",
        grids: "meshgrid",
        linalg: "dot outer tensordot",
        einsum: "einsum",
        arithmetic: "clip",
        rounding: "round",
    }
    table = {getattr(np, name): getattr(module, name) for module, names in same.items() for name in names.split()}
    return table | {
        np.concatenate: joining.concat,
        np.where: _where,
        np.cumsum: _cumsum,
        np.var: _with_correction(reduce.var),
        np.std: _with_correction(reduce.std),
        np.linalg.norm: norms.norm,
        np.ravel: movement.flatten,
        np.copy: creation.clone,
        np.shape: lambda x: x.shape,
        np.ndim: lambda x: x.ndim,
        np.size: lambda x, axis=None: x.size if axis is None else x.shape[axis],
    }


NUMPY_FUNCTIONS: dict[Any, Callable[..., Any]] = _function_table()  # jitgrad.numpy adds its own when it is imported


def array_function(self: Tensor, function: Any, types: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """A NumPy function called with a tensor among its arguments.

    Raises:
        OperandError: there is no op for it.
    """
    if not all(issubclass(t, (Tensor, np.ndarray)) for t in types):
        return NotImplemented
    if function in ON_ARRAYS:
        return function(*map(_array, args), **{name: _array(v) for name, v in keywords.items()})
    op_function = NUMPY_FUNCTIONS.get(function)
    if op_function is None:
        name = f"{function.__module__.replace('numpy', 'np', 1)}.{function.__name__}"
        raise OperandError(f"{name} has no op for tensors. Call it on t.detach().numpy(), or use functions of jitgrad")
    return beside_operands(op_function)(*args, **keywords)


def array_namespace(self: Tensor, *, api_version: str | None = None) -> Any:
    """The module with the functions of the array API standard: jitgrad itself."""
    if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
        raise ArgumentError(f"__array_namespace__: version {api_version!r} of the standard is not supported")
    return sys.modules["jitgrad"]
