"""What to use for the names of NumPy that jitgrad.numpy does not have."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from jitgrad.core.missing_names import meant

_FILES = "use NumPy's on x.detach().numpy()"
_LOOP = "write the operation on whole arrays; jg.elementwise makes an op of a function of scalars"
_INSTEAD = {
    "clongdouble": "the widest complex dtype is complex128", "complex256": "the widest complex dtype is complex128",
    "save": _FILES, "savez": _FILES, "savetxt": _FILES, "load": _FILES, "loadtxt": _FILES, "genfromtxt": _FILES,
    "array2string": _FILES, "array_repr": _FILES, "array_str": _FILES,
    "asfortranarray": "the memory layout of tensors is not chosen; use asarray",
    "frompyfunc": _LOOP, "nditer": _LOOP,
    "ndindex": "use numpy.ndindex, which needs no tensors",
    "matrix": "use matrices of array and the operator @", "asmatrix": "use matrices of array and the operator @",
    "string_": "tensors hold numbers", "str_": "tensors hold numbers", "object_": "tensors hold numbers",
    "longdouble": "the widest float dtype is float64", "float128": "the widest float dtype is float64",
    "testing": "use numpy.testing on x.detach().numpy()",
}  # fmt: skip


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
