"""Elementwise ops on float16, with the same bits as in kernels, and whether kernels have float16.

An op computes in float32 and rounds its result once. For ``+ - * /`` and square roots that is the
correctly rounded float16 result, as in NumPy's loops, because float32 has the necessary 2 * 11 + 2
bits (S. A. Figueroa, "When is double rounding innocuous?", SIGNUM Newsletter 30, 1995).
"""

from __future__ import annotations

import ast
import platform
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy._core._multiarray_umath import __cpu_features__ as FEATURES  # type: ignore[import-not-found]

from jitgrad.core.aval import Dtype
from jitgrad.core.op import OpDef
from jitgrad.eager.scalar_eval import blockwise, evaluate_with, scalar_functions

# np.show_runtime() prints FEATURES. LLVM has the same information, but takes longer to import.
HALF: Dtype = np.dtype(np.float16)
SINGLE: Dtype = np.dtype(np.float32)

# Their results are operands, exact, or not numbers, so there is nothing to round.
_EXACT = frozenset("abs sign minimum maximum floor ceil trunc rint copysign isnan isinf isfinite signbit".split())
_ROUNDING = frozenset("sqrt fmod remainder floor_divide".split())
_OF_THE_FORMAT = frozenset({"nextafter"})  # the next float16 is not the next float32, rounded


@cache
def in_kernels() -> bool:
    """Whether the CPU converts vectors of float16; else LLVM calls a function per number."""
    return platform.machine() in ("aarch64", "arm64") or bool(FEATURES.get("F16C", False))


def compute_dtype(dtype: Dtype) -> Dtype:
    """The dtype that kernels compute in for ``dtype``: float32 for float16."""
    return SINGLE if dtype == HALF else dtype


@cache
def _parts(scalar: str) -> tuple[frozenset[str], int, bool]:
    """(functions that ``scalar`` calls, number of its operators, whether its constants are exact in
    float16)."""
    nodes = list(ast.walk(ast.parse(scalar, mode="eval")))
    called = {n.func.id for n in nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    called |= {"pow" for n in nodes if isinstance(n, ast.Pow)}
    numbers = [n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, (int, float))]
    with np.errstate(over="ignore"):
        exact = all(float(np.float16(n)) == n for n in numbers)
    return frozenset(called), sum(isinstance(n, ast.BinOp) for n in nodes), exact


@cache
def is_exact(scalar: str) -> bool:
    """Whether the expression needs no rounding on float16 numbers."""
    called, operators, exact_constants = _parts(scalar)
    return called <= _EXACT and operators == 0 and exact_constants


def has_kernel_form(op: OpDef) -> bool:
    """Whether kernels can compute ``op`` on float16; functions of users are called eagerly."""
    return op.scalar is not None and op.function is None and not _parts(op.scalar)[0] & _OF_THE_FORMAT


@cache
def rounds_once(scalar: str) -> bool:
    """Whether NumPy's loops for float16, which round the result of each, round only once for the
    expression."""
    called, operators, exact_constants = _parts(scalar)
    return called <= _EXACT | _ROUNDING and operators + len(called & _ROUNDING) <= 1 and exact_constants


def eager_function(op: OpDef, dtypes: Sequence[Dtype]) -> Callable[..., Any]:
    """The NumPy function of the elementwise ``op`` on ``dtypes``, with the bits of kernels."""
    if HALF not in dtypes or not has_kernel_form(op):
        return op.eager
    assert op.scalar is not None
    # attributes are not rounded
    as_numpy = is_exact(op.scalar) or (rounds_once(op.scalar) and not op.attrs)
    return op.eager if as_numpy else _in_single(op)


def computes_as_numpy(op: OpDef, dtypes: Sequence[Dtype]) -> bool:
    """Whether NumPy's function of ``op`` on ``dtypes``, among them float16, has the bits of float32 that is rounded once."""
    if HALF not in dtypes or not has_kernel_form(op) or op.attrs:
        return False
    assert op.scalar is not None
    exact = _parts(op.scalar)[0] <= (_EXACT | {"sqrt"}) - {"minimum", "maximum"}  # of zeros, NumPy's extrema are the first one
    return exact and (is_exact(op.scalar) or rounds_once(op.scalar))


@lru_cache(maxsize=256)
def _in_single(op: OpDef) -> Callable[..., Any]:
    """``op`` computed with the functions of kernels in float32, and rounded at the end.

    One varying operand has at most 65,536 values. If it has more elements than that, results come
    from a table.
    """

    def compute(*arrays: np.ndarray[Any, Any], **attrs: Any) -> Any:
        wide = [x.astype(SINGLE) if x.dtype == HALF else x for x in arrays]
        numbers = {name: SINGLE.type(value) for name, value in attrs.items()}
        return evaluate_with(scalar_functions(bool(FEATURES.get("FMA3", True))), op, wide, numbers).astype(HALF)

    @cache
    def table() -> np.ndarray[Any, Any]:
        return np.asarray(compute(_every_half()))

    def call(*arrays: np.ndarray[Any, Any], **attrs: Any) -> Any:
        if attrs:
            return compute(*arrays, **attrs)
        if len(arrays) == 1:
            return _looked_up(table(), arrays[0])
        varying = [k for k, x in enumerate(arrays) if x.ndim]
        if len(varying) == 1 and arrays[k := varying[0]].dtype == HALF and arrays[k].size > _every_half().size:
            results = compute(*arrays[:k], _every_half(), *arrays[k + 1 :])
            return _looked_up(results, arrays[k])
        return blockwise(compute)(*arrays)

    return call


@cache
def _every_half() -> np.ndarray[Any, Any]:
    """float16[65536]: the number with each bit pattern."""
    return np.arange(1 << 16, dtype=np.uint16).view(HALF)


def _looked_up(table: np.ndarray[Any, Any], x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The entry of ``table`` for each element of ``x``, in its shape and layout."""
    out = np.empty_like(x)
    np.take(table, x.view(np.uint16), out=out, mode="clip")  # this mode writes to ``out`` directly
    return out
