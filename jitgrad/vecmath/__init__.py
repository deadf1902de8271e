"""Vector mathematics, written once for LLVM and for NumPy; imports nothing.

``FUNCTIONS`` describes them. Kernels call the LLVM form, eager execution that of
``numpy_namespace()``.
"""

from __future__ import annotations

from typing import Any

from jitgrad.vecmath.functions import FUNCTIONS, MathFunction
from jitgrad.vecmath.numpy_algebra import numpy_callable

__all__ = ["FUNCTIONS", "MathFunction", "numpy_namespace"]


def numpy_namespace(fused: bool = False) -> dict[str, Any]:
    """Name -> callable on float32 or float64 NumPy arrays and scalars, same dtype out; TypeError
    for other dtypes.

    ``fused``: round like kernels on a CPU with fma, which takes longer.
    """
    return {f.name: numpy_callable(f.definition, fused) for f in FUNCTIONS.values()}
