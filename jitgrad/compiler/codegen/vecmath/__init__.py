"""Vector mathematics of our own for the insides of fused CPU kernels: each function written once, for LLVM and NumPy.

``FUNCTIONS`` describes them, ``numba_namespace()`` gives them to jitted code, ``numpy_namespace()`` to Python.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from jitgrad.compiler.codegen.vecmath.functions import FUNCTIONS, MathFunction
from jitgrad.compiler.codegen.vecmath.numpy_algebra import numpy_callable

__all__ = ["FUNCTIONS", "MathFunction", "numba_namespace", "numpy_namespace"]


@cache
def _numba_functions() -> dict[str, Any]:
    from jitgrad.compiler.codegen.vecmath.llvm_algebra import numba_intrinsic

    return {f.name: numba_intrinsic(f.name, f.arity, f.definition, f.boolean) for f in FUNCTIONS.values()}


def numba_namespace() -> dict[str, Any]:
    """Name -> numba intrinsic, for the globals of an ``@njit`` or ``@cfunc`` function.

    ``exp(x)`` is float32 for float32 and float64 for float64 (``isnan`` and its kind: boolean); operands of another
    type, or of two types, are a numba TypingError. The emitted code is branch-free and ignores the caller's fastmath.
    """
    return dict(_numba_functions())


def numpy_namespace(fused: bool = False) -> dict[str, Any]:
    """Name -> callable on float32 or float64 NumPy arrays and scalars, same dtype out; TypeError for other dtypes.

    ``fused``: round as kernels do on a CPU with fma, which takes longer.
    """
    return {f.name: numpy_callable(f.definition, fused) for f in FUNCTIONS.values()}
