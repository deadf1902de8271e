"""What to use for the names of NumPy that jitgrad.numpy does not have."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import numpy as np

from jitgrad.core.errors import AutogradError
from jitgrad.core.missing_names import meant
from jitgrad.core.tensor import Tensor
from jitgrad.ops.creation import asarray

_LOOP = "write the operation on whole arrays; jg.elementwise makes an op of a function of scalars"
_INSTEAD = {
    "clongdouble": "the widest complex dtype is complex128", "complex256": "the widest complex dtype is complex128",
    "asfortranarray": "the memory layout of tensors is not chosen; use asarray",
    "frompyfunc": _LOOP, "nditer": _LOOP,
    "matrix": "use matrices of array and the operator @", "asmatrix": "use matrices of array and the operator @",
    "string_": "tensors hold numbers", "str_": "tensors hold numbers", "object_": "tensors hold numbers",
    "longdouble": "the widest float dtype is float64", "float128": "the widest float dtype is float64",
}  # fmt: skip

# NumPy's own: they need no tensors, or take them as arrays by themselves
_OF_NUMPY = frozenset(
    "ScalarType base_repr binary_repr bytes_ char common_type ctypeslib datetime64 dtypes emath exceptions "
    "format_float_positional format_float_scientific get_printoptions geterr info little_endian ma mintypecode ndindex "
    "poly1d polynomial rec sctypeDict seterrcall show_config strings testing timedelta64 typecodes typename typing ufunc "
    "uintc ulong ulonglong ushort".split()
)
# NumPy's own on the arrays of tensors; arrays that they return become tensors
_ON_ARRAYS = frozenset(
    "array2string array_repr array_str asarray_chkfinite bmat einsum_path frombuffer fromfile fromiter fromregex fromstring "
    "genfromtxt isfortran load loadtxt min_scalar_type polydiv real_if_close require save savetxt savez "
    "savez_compressed sort_complex spacing".split()
)


def of_numpy(name: str) -> Any:
    """NumPy's own ``name``, where that is what a program means; None for others.

    A function of arrays raises AutogradError for a tensor that requires grad, and TracedValueError in a trace.
    """
    if name in _ON_ARRAYS:
        return on_arrays(f"numpy.{name}", getattr(np, name))
    return getattr(np, name) if name in _OF_NUMPY else None


def on_arrays(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` of another library, called ``name``, on the arrays of tensors; tensors of arrays that it returns."""

    def array_of(x: Any) -> Any:
        if isinstance(x, (list, tuple)) and type(x) in (list, tuple):
            return type(x)(map(array_of, x))
        if not isinstance(x, Tensor):
            return x
        if x.requires_grad:
            library, _, _ = name.partition(".")
            own = {"scipy": "SciPy's", "numpy": "NumPy's"}[library]
            raise AutogradError(
                f"{name} is {own} own, and has no gradient: pass x.detach(), or make it an op: "
                f"jg.custom_op(forward={name}, vjp=...)"
            )
        return np.asarray(x)

    @wraps(function)
    def on_tensors(*args: Any, **kwargs: Any) -> Any:
        return tensors_of_arrays(function(*map(array_of, args), **{k: array_of(x) for k, x in kwargs.items()}))

    return on_tensors


def tensors_of_arrays(result: Any) -> Any:
    """Arrays and numbers of NumPy as tensors, also in a tuple; everything else as it is."""
    if isinstance(result, (np.ndarray, np.number)) and result.dtype.kind in "biufc":
        return asarray(result)
    return tuple(map(tensors_of_arrays, result)) if type(result) is tuple else result


def missing(name: str, known: Iterable[str]) -> str:
    """What to use instead of ``name``, or which of the ``known`` names is meant."""
    if name in _INSTEAD:
        return _INSTEAD[name]
    if hasattr(np, name):
        return (
            f"compose it of the functions here, make it an op with jg.custom_op(forward=numpy.{name}, vjp=...), "
            f"or, outside of gradients and @jit, call numpy.{name} on x.detach().numpy()"
        )
    return f"and neither has NumPy{meant(name, known)}"
