"""NumPy's functions of many transforms or matrices, shared among threads: NumPy computes one after the other on one thread.

Each transform and each matrix is computed as NumPy computes it alone, so the bits are those of eager execution.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from jitgrad.core.aval import Array, Aval
from jitgrad.core.errors import MatrixError
from jitgrad.core.op import OpDef
from jitgrad.eager.buffer_pool import empty_buffer
from jitgrad.ops.decompositions import EIG, EIGH, QR, SVD
from jitgrad.ops.fourier import DFT, IRDFT, RDFT
from jitgrad.ops.lu import LU
from jitgrad.runtime.executor.library_threads import run_shared

_MIN_TRANSFORMED = 1 << 16  # elements, which take some 0.2 ms; waking a thread of Python takes some 0.05
_MIN_MATRICES = 128  # which take some 1 us each, however small
_MAX_ROWS = 64  # for larger matrices LAPACK may use threads itself
_Transform = Callable[..., Array]
_Shared = Callable[..., Any] | None

# --- transforms --------------------------------------------------------------------------------------------------


def _shared_along(transform: _Transform, x: Array, out: Array, axis: int) -> Array:
    """``transform`` of ``x`` over ``axis`` into ``out``, shared along the longest other axis."""
    others = [n if k != axis else 0 for k, n in enumerate(x.shape)]
    at = (slice(None),) * others.index(max(others))

    def of_part(part: slice) -> None:
        transform(x[(*at, part)], axis=axis, out=out[(*at, part)])

    run_shared(of_part, max(others))
    return out


def _dft(x: Array, *, axes: tuple[int, ...], inverse: bool, norm: Any, result: Aval) -> Array:
    transform = partial(np.fft.ifft if inverse else np.fft.fft, norm=norm)
    out = empty_buffer(result.shape, result.dtype)
    for axis in reversed(axes):
        x = _shared_along(transform, x, out, axis)
    return x


def _rdft(x: Array, *, axis: int, norm: Any, result: Aval) -> Array:
    return _shared_along(partial(np.fft.rfft, norm=norm), x, empty_buffer(result.shape, result.dtype), axis)


def _irdft(x: Array, *, axis: int, n: int, norm: Any, result: Aval) -> Array:
    return _shared_along(partial(np.fft.irfft, n=n, norm=norm), x, empty_buffer(result.shape, result.dtype), axis)


def find_transforms(op: OpDef, operands: Sequence[Aval], attrs: Mapping[str, Any]) -> _Shared:
    """For `jitgrad.runtime.library.registry`."""
    (x,) = operands
    if x.dtype.char not in "fdFD" or x.size < _MIN_TRANSFORMED or x.ndim < 2:
        return None
    result = op.abstract(operands, attrs)
    assert isinstance(result, Aval)
    return partial(_TRANSFORMS[op], result=result)


_TRANSFORMS: Mapping[OpDef, _Transform] = {DFT: _dft, RDFT: _rdft, IRDFT: _irdft}


# --- matrices ----------------------------------------------------------------------------------------------------


def _of_matrices(op: OpDef, results: tuple[Aval, ...], x: Array, **attrs: Any) -> tuple[Array, ...]:
    rank = x.ndim - 2
    longest = max(range(rank), key=x.shape.__getitem__)
    at = (slice(None),) * longest
    outs = tuple([empty_buffer(aval.shape, aval.dtype) for aval in results])

    def of_part(part: slice) -> None:
        for out, computed in zip(outs, op.eager(x[(*at, part)], **attrs), strict=True):
            out[(*at, part)] = computed

    try:
        run_shared(of_part, x.shape[longest])
    except MatrixError:
        op.eager(x, **attrs)  # the error of eager execution, which names the shape of the whole
        raise
    return outs


def find_decompositions(op: OpDef, operands: Sequence[Aval], attrs: Mapping[str, Any]) -> _Shared:
    """For `jitgrad.runtime.library.registry`."""
    (x,) = operands
    rows, columns = x.shape[-2:]
    if not 0 < max(rows, columns) <= _MAX_ROWS or math.prod(x.shape[:-2]) < _MIN_MATRICES:
        return None
    results = op.abstract(operands, attrs)
    assert isinstance(results, tuple)
    return partial(_of_matrices, op, results)


FOUND_BY = {
    **dict.fromkeys(_TRANSFORMS, find_transforms),
    **dict.fromkeys((EIG, EIGH, QR, SVD, LU), find_decompositions),
}
