"""Discrete Fourier transforms: of complex numbers, of real ones to half a spectrum, and back.

The matrix of a transform is symmetric, so its transpose, the vjp, is the same transform. Of half a spectrum every element
but the first, and the last of an even length, stands for two (J. W. Cooley, P. A. W. Lewis, P. D. Welch, "The fast Fourier
transform algorithm: programming considerations in the calculation of sine, cosine and Laplace transforms", 1970).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jitgrad.core.aval import Aval, Shape, complex_dtype_of, normalize_axis, real_dtype_of
from jitgrad.core.errors import ArgumentError, DtypeError, ShapeError, shown
from jitgrad.core.op import Kind, OpDef, define
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import astype, conjugated, multiply
from jitgrad.ops.comparison import equal, logical_or, where
from jitgrad.ops.creation import asarray, iota
from jitgrad.ops.movement import place, slice
from jitgrad.ops.operand import Operand, apply
from jitgrad.ops.placement import beside

NORMS = ("backward", "ortho", "forward")  # which direction divides by the number of points; "ortho": both, by its root
_OPPOSITE = {"backward": "forward", "ortho": "ortho", "forward": "backward"}

# --- records -----------------------------------------------------------------------------------------------------


def _transformed(x: Any, *, axes: tuple[int, ...], inverse: bool, norm: Any) -> Any:
    function = np.fft.ifft if inverse else np.fft.fft
    for axis in reversed(axes):
        x = function(x, axis=axis, norm=norm)
    return x


def _half_aval(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Aval:
    (x,), axis = avals, attrs["axis"]
    return Aval(_with_length(x.shape, axis, x.shape[axis] // 2 + 1), complex_dtype_of(x.dtype))


def _whole_aval(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Aval:
    (x,), axis, n = avals, attrs["axis"], attrs["n"]
    if x.shape[axis] != n // 2 + 1:
        raise ShapeError(f"irdft of {x}: {n} real numbers have {n // 2 + 1} complex ones in half of their spectrum")
    return Aval(_with_length(x.shape, axis, n), real_dtype_of(complex_dtype_of(x.dtype)))


def _with_length(shape: Shape, axis: int, n: int) -> Shape:
    return (*shape[:axis], n, *shape[axis + 1 :])


def _by_multiplicity(x: Tensor, axis: int, n: int, single: float, double: float) -> Tensor:
    """Half a spectrum of ``n`` numbers times ``double`` where an element stands for two, else times ``single``."""
    shape = tuple(m if k == axis else 1 for k, m in enumerate(x.shape))
    with beside(x):
        k = iota(shape, axis)
    alone = equal(k, 0) if n % 2 else logical_or(equal(k, 0), equal(k, n // 2))
    return multiply(x, astype(where(alone, single, double), real_dtype_of(x.dtype)))


def _half_vjp(g: Tensor, _out: Any, _x: Any, *, axis: int, norm: str) -> Tensor:
    n = _x.shape[axis]
    halved = _by_multiplicity(conjugated(g), axis, n, 1.0, 0.5)
    return apply(IRDFT, halved, axis=axis, n=n, norm=_OPPOSITE[norm])


def _whole_vjp(g: Tensor, _out: Any, _x: Any, *, axis: int, n: int, norm: str) -> Tensor:
    return _by_multiplicity(conjugated(apply(RDFT, g, axis=axis, norm=_OPPOSITE[norm])), axis, n, 1.0, 2.0)


DFT: OpDef = define(
    "dft(x, *, axes, inverse, norm)",
    kind=Kind.OPAQUE,
    eager=_transformed,
    abstract=lambda avals, _attrs: Aval(avals[0].shape, complex_dtype_of(avals[0].dtype)),
    vjp=(lambda g, _out, _x, **attrs: apply(DFT, g, **attrs),),
    domain=("complex",),
    sample_attrs={"axes": (0, 1), "inverse": True, "norm": "forward"},
    takes_complex=True,
)
RDFT: OpDef = define(
    "rdft(x, *, axis, norm)",
    kind=Kind.OPAQUE,
    eager=lambda x, *, axis, norm: np.fft.rfft(x, axis=axis, norm=norm),
    abstract=_half_aval,
    vjp=(_half_vjp,),
    domain=("real",),
    sample_attrs={"axis": 1, "norm": "forward"},
)
IRDFT: OpDef = define(
    "irdft(x, *, axis, n, norm)",
    kind=Kind.OPAQUE,
    eager=lambda x, *, axis, n, norm: np.fft.irfft(x, n, axis=axis, norm=norm),
    abstract=_whole_aval,
    vjp=(_whole_vjp,),
    domain=("complex",),
    sample_attrs={"axis": 1, "n": 7, "norm": "backward"},
    takes_complex=True,
)

TRANSFORMS = frozenset({DFT, RDFT, IRDFT})

# --- arguments ---------------------------------------------------------------------------------------------------


def norm_of(what: str, norm: str | None) -> str:
    """``norm``, by default "backward". Raises ArgumentError for a name that is none of `NORMS`."""
    if norm is None:
        return "backward"
    if norm not in NORMS:
        raise ArgumentError(f"{what}: norm must be one of {', '.join(NORMS)} or None, got {shown(norm)}")
    return norm


def axes_of(what: str, x: Tensor, s: Sequence[int | None] | None, axes: Sequence[int] | None) -> tuple[int, ...]:
    """The axes to transform: ``axes``, else as many of the last ones as ``s`` has lengths, else all.

    Raises:
        AxisError: an axis does not exist. ArgumentError: one is named twice, or ``s`` has another number of lengths.
    """
    if axes is None:
        axes = range(x.ndim if s is None else -len(s), 0) if s is not None else range(x.ndim)
    positions = tuple(normalize_axis(what, k, x.ndim) for k in axes)
    if len(set(positions)) < len(positions):
        raise ArgumentError(f"{what}: axes {tuple(axes)} names an axis twice")
    if not positions:
        raise ArgumentError(f"{what} of {x.aval}: there is no axis to transform")
    if s is not None and len(s) != len(positions):
        raise ArgumentError(f"{what}: s has {len(s)} lengths for {len(positions)} axes")
    return positions


def fitted(what: str, x: Tensor, lengths: Mapping[int, int]) -> Tensor:
    """``x`` with the given lengths of axes: cropped at the end, or padded with zeros.

    Raises:
        ShapeError: a length is not positive.
    """
    for axis, n in lengths.items():
        if n < 1:
            raise ShapeError(f"{what} of {x.aval} with {n} points along axis {axis}: a transform needs at least one")
    wanted = tuple(lengths.get(k, n) for k, n in enumerate(x.shape))
    kept = tuple((0, 1, min(n, m)) for n, m in zip(x.shape, wanted, strict=True))
    if any(n < m for n, m in zip(wanted, x.shape, strict=True)):
        x = slice(x, kept)
    return x if x.shape == wanted else place(x, wanted, kept)


def _lengths(x: Tensor, s: Sequence[int | None] | None, axes: Sequence[int]) -> dict[int, int]:
    """The number of points along each of ``axes``; that of ``x`` where ``s`` says None or -1."""
    given = [None] * len(axes) if s is None else s
    return {k: x.shape[k] if n is None or n == -1 else n for k, n in zip(axes, given, strict=True)}


# --- transforms --------------------------------------------------------------------------------------------------


def transform(
    what: str, x: Operand, s: Sequence[int | None] | None, axes: Sequence[int] | None, norm: str | None, *, inverse: bool
) -> Tensor:
    """The transform of real or complex ``x`` over ``axes``, cropped or padded to ``s``; complex."""
    given = asarray(x)
    positions = axes_of(what, given, s, axes)
    return apply(
        DFT, fitted(what, given, _lengths(given, s, positions)), axes=positions, inverse=inverse, norm=norm_of(what, norm)
    )


def transform_real(
    what: str, x: Operand, s: Sequence[int | None] | None, axes: Sequence[int] | None, norm: str | None
) -> Tensor:
    """The transform of real ``x`` over ``axes``, of which the last one holds half of the spectrum.

    Raises:
        DtypeError: ``x`` is complex.
    """
    given = asarray(x)
    if given.dtype.kind == "c":
        raise DtypeError(f"{what} of {given.aval}: it takes real numbers; use the transform without r, or x.real")
    positions = axes_of(what, given, s, axes)
    padded = fitted(what, given, _lengths(given, s, positions))
    kind = norm_of(what, norm)
    half = apply(RDFT, padded, axis=positions[-1], norm=kind)
    return apply(DFT, half, axes=positions[:-1], inverse=False, norm=kind) if positions[1:] else half


def transform_to_real(
    what: str, x: Operand, s: Sequence[int | None] | None, axes: Sequence[int] | None, norm: str | None
) -> Tensor:
    """The real numbers whose spectrum over ``axes`` is ``x``, of which the last axis holds half.

    Without a length in ``s`` that axis gets an even one, ``2 * (m - 1)``.
    """
    given = asarray(x)
    positions = axes_of(what, given, s, axes)
    lengths, last = _lengths(given, s, positions), positions[-1]
    n = s[-1] if s is not None and s[-1] not in (None, -1) else 2 * (given.shape[last] - 1)
    assert n is not None
    if n < 1:
        raise ShapeError(f"{what} of {given.aval} with {n} points along axis {last}: a transform needs at least one")
    padded = fitted(what, given, {**lengths, last: n // 2 + 1})
    kind = norm_of(what, norm)
    if positions[1:]:
        padded = apply(DFT, padded, axes=positions[:-1], inverse=True, norm=kind)
    return apply(IRDFT, padded, axis=last, n=n, norm=kind)


def hermitian(
    what: str, x: Operand, s: Sequence[int | None] | None, axes: Sequence[int] | None, norm: str | None
) -> Tensor:
    """The real spectrum over ``axes`` of the numbers of which ``x`` is half, the others being their conjugates."""
    return transform_to_real(what, conjugated(asarray(x)), s, axes, _OPPOSITE[norm_of(what, norm)])


def to_hermitian(
    what: str, x: Operand, s: Sequence[int | None] | None, axes: Sequence[int] | None, norm: str | None
) -> Tensor:
    """Half of the numbers that have the real spectrum ``x`` over ``axes``."""
    out: Tensor = conjugated(transform_real(what, x, s, axes, _OPPOSITE[norm_of(what, norm)]))
    return out
