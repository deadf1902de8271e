"""Joining, cutting and repeating tensors: concat as the one op, the others composed of movement."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from jitgrad.core.aval import Aval, normalize_axis, promote
from jitgrad.core.context import current_interpreter
from jitgrad.core.dispatch import aval_of
from jitgrad.core.errors import ArgumentError, AxisError, OperandError, ShapeError, shown
from jitgrad.core.op import Kind, define
from jitgrad.core.tensor import Tensor
from jitgrad.eager.compositions import composed
from jitgrad.eager.op_sequences import op_sequence
from jitgrad.ops.creation import clone, full
from jitgrad.ops.keywords import takes_dim
from jitgrad.ops.movement import (
    AxisArgument,
    broadcast_to,
    cut,
    expand_dims,
    flatten,
    place,
    reshape,
    slice,
    squeeze,
)
from jitgrad.ops.operand import Operand, apply, contents_of
from jitgrad.ops.placement import beside_operands
from jitgrad.ops.repeating import repeated_by_counts
from jitgrad.ops.view_lists import cut_at_once, lists_views


def _concat_aval(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Aval:
    axis, first = attrs["axis"], avals[0]
    for a in avals[1:]:
        if a.ndim != first.ndim or any(n != m for k, (n, m) in enumerate(zip(a.shape, first.shape)) if k != axis):
            listed = ", ".join(map(str, avals))
            raise ShapeError(f"concat along axis {axis}: all other axes must have equal lengths, got {listed}")
    shape = list(first.shape)
    shape[axis] = sum(a.shape[axis] for a in avals)
    return Aval(tuple(shape), promote(*avals))


def _concat_vjp(g: Tensor, _out: Any, *_xs: Any, axis: int) -> tuple[Tensor, ...]:
    ends = accumulate((x.shape[axis] for x in _xs), initial=0)
    return tuple(cut(g, axis, start, stop) for start, stop in pairwise(ends))


def _prepare_concat(avals: Sequence[Aval], attrs: Mapping[str, Any]) -> Callable[..., Any] | None:
    if any(a.dtype != avals[0].dtype for a in avals):
        return None
    axis = attrs["axis"]
    return lambda *xs: np.concatenate(xs, axis)


CONCAT = define(
    "concat(*xs, axis)",
    kind=Kind.OPAQUE,
    eager=lambda *xs, axis: np.concatenate(xs, axis=axis),
    prepare=_prepare_concat,
    abstract=_concat_aval,
    vjp=_concat_vjp,
    domain=("real", "real"),
    sample_attrs={"axis": 1},
    takes_complex=True,
)


def _sequence(what: str, xs: Any) -> tuple[Any, ...]:
    if isinstance(xs, Tensor) and xs.shape:
        return unstack(xs)
    if not isinstance(xs, Iterable):
        raise OperandError(f"{what} takes a sequence of tensors, got {type(xs).__name__}")
    tensors = tuple(xs)
    if not tensors:
        raise ArgumentError(f"{what} of an empty sequence: the shape and dtype of the result are unknown")
    return tensors


@op_sequence
@takes_dim(tensors="xs")
def concat(xs: Sequence[Operand] | Tensor, axis: int | None = 0) -> Tensor:
    """The tensors ``xs`` one after the other along an axis that exists (``axis=None``: flattened first).

    Raises:
        ShapeError: the other axes differ. ArgumentError: no tensors.
    """
    parts = _sequence("concat", xs)
    if axis is None:
        parts, axis = tuple(map(flatten, parts)), 0
    aval = aval_of(CONCAT, parts[0])
    if not aval.ndim:
        raise AxisError("concat: 0-d arrays have no axis to be joined along; use stack")
    return apply(CONCAT, *parts, axis=normalize_axis("concat", axis, aval.ndim))


@op_sequence
@takes_dim(tensors="xs")
def stack(xs: Sequence[Operand] | Tensor, axis: int = 0) -> Tensor:
    """The tensors ``xs``, all of one shape, along a new axis at position ``axis``."""
    parts = _sequence("stack", xs)
    avals = [aval_of(CONCAT, x) for x in parts]
    if any(a.shape != avals[0].shape for a in avals):
        raise ShapeError(f"stack: all tensors must have the same shape, got {', '.join(map(str, avals))}")
    k = normalize_axis("stack", axis, avals[0].ndim + 1)
    return _stacked(*parts, axis=k)


@composed
@beside_operands
def _stacked(*xs: Operand, axis: int) -> Tensor:
    return concat([expand_dims(x, axis) for x in xs], axis)


def chunked(x: Operand, sizes: int | Sequence[int], axis: int = 0) -> tuple[Tensor, ...]:
    """``x`` cut along ``axis`` into pieces of one size, of which the last may be shorter, or of these sizes; views.

    Raises:
        ArgumentError: the sizes do not add up to the axis.
    """
    found = None
    if type(x) is Tensor and max(x.shape, default=0) > _MANY:
        bounds, k = _bounds(x, sizes, axis)
        found = cut_at_once(x, k, bounds, False)
    return _chunked(x, sizes, axis) if found is None else found


@lists_views
def _chunked(x: Operand, sizes: int | Sequence[int], axis: int) -> tuple[Tensor, ...]:
    bounds, k = _bounds(x, sizes, axis)
    return tuple(cut(x, k, start, stop) for start, stop in pairwise(bounds))


def _bounds(x: Operand, sizes: int | Sequence[int], axis: int) -> tuple[list[int], int]:
    """Where the pieces of `chunked` begin and end, and the axis."""
    shape = aval_of(CONCAT, x).shape
    k = normalize_axis("split", axis, len(shape))
    n = shape[k] if shape else 0
    if isinstance(sizes, Iterable):
        bounds = list(accumulate(map(operator.index, sizes), initial=0))
        if bounds[-1] != n or min(sizes, default=0) < 0:
            raise ArgumentError(f"split: sizes {shown(sizes)} do not add up to axis {k}, of length {n}")
    else:
        size = operator.index(sizes)
        if size < 0 or (size == 0 and n):
            raise ArgumentError(f"split: pieces of size {size} do not cut axis {k} of length {n}")
        bounds = [*range(0, n, size), n] if n else [0, 0]
    return bounds, k


@takes_dim(
    lambda x, indices_or_sections, axis=0: chunked(x, indices_or_sections, axis),
    split_size_or_sections="indices_or_sections",
    split_size="indices_or_sections",
)
@lists_views
def split(x: Operand, indices_or_sections: int | Sequence[int], axis: int = 0) -> tuple[Tensor, ...]:
    """``x`` cut along ``axis`` into so many equal parts, or before the given positions (NumPy's split); views.

    ``split(x, size, dim=k)`` is torch's, into pieces of that size, or of the sizes in a list.

    Raises:
        ArgumentError: the axis cannot be cut into equal parts.
    """
    shape = aval_of(CONCAT, x).shape
    k = normalize_axis("split", axis, len(shape))
    n = shape[k] if shape else 0
    if isinstance(indices_or_sections, Iterable):
        bounds = [0, *(min(max(i + n if i < 0 else i, 0), n) for i in indices_or_sections), n]
    else:
        sections = operator.index(indices_or_sections)
        if sections < 1 or n % sections:
            raise ArgumentError(f"split: axis {k} of length {n} cannot be cut into {sections} equal parts")
        bounds = list(range(0, n + 1, n // sections)) if n else [0] * (sections + 1)
    return tuple(cut(x, k, start, max(start, stop)) for start, stop in pairwise(bounds))


@takes_dim()
def unstack(x: Operand, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices of ``x`` along ``axis``, without that axis; views."""
    found = None
    if type(x) is Tensor and max(x.shape, default=0) > _MANY:
        k = normalize_axis("unstack", axis, x.ndim)
        found = cut_at_once(x, k, range(x.shape[k] + 1), True)
    return _unstacked(x, axis) if found is None else found


_MANY = 1024  # slices, of which no more than that are remembered


@lists_views
def _unstacked(x: Operand, axis: int) -> tuple[Tensor, ...]:
    shape = aval_of(CONCAT, x).shape
    if not shape:
        raise ShapeError("unstack of a 0-d array: there is no axis")
    k = normalize_axis("unstack", axis, len(shape))
    return tuple(squeeze(cut(x, k, i, i + 1), (k,)) for i in range(shape[k]))


def _apart(result: Tensor, x: Operand) -> Tensor:
    """``result`` in memory of its own, as in NumPy and torch, also where it is a view of ``x``."""
    may_share = current_interpreter.get().tracing or not isinstance(x, Tensor) or result._storage is x._storage
    return clone(result) if may_share else result


@takes_dim(shifts="shift")
@composed
def roll(x: Operand, shift: int | Sequence[int], axis: AxisArgument = None) -> Tensor:
    """``x`` shifted along ``axis``, cyclically (``axis=None``: flattened)."""
    aval = aval_of(CONCAT, x)
    shift = shift if not isinstance(shift, Tensor) else list(map(int, shift)) if shift.ndim else int(shift)
    out = reshape(x, (-1,) if axis is None else aval.shape)
    if axis is None:
        shift, axis = int(np.sum(shift)), 0
    axes = tuple(axis) if isinstance(axis, Iterable) else (axis,)
    shifts = tuple(shift) if isinstance(shift, Iterable) else (shift,) * len(axes)
    if len(axes) == 1 and len(shifts) != 1:
        axes *= len(shifts)
    if len(axes) != len(shifts):
        raise ArgumentError(f"roll: {len(shifts)} shifts for {len(axes)} axes")
    for by, a in zip(shifts, axes, strict=True):
        k = normalize_axis("roll", a, out.ndim)
        n = out.shape[k]
        if n and (by := operator.index(by) % n):
            out = concat([cut(out, k, n - by, n), cut(out, k, 0, n - by)], k)
    return _apart(reshape(out, aval.shape), x)


@takes_dim()
def repeat(
    x: Operand, repeats: int | Sequence[int] | Tensor, axis: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Each element of ``x`` repeated along ``axis`` (None: of the flattened array), as often as ``repeats`` says.

    ``output_size``, which torch uses to save time, is the length that the axis will have.

    The shape of the result depends on ``repeats``: a @jit function has a program for each sum of them.
    """
    if axis is None:
        return repeat(flatten(x), repeats, 0, output_size=output_size)
    shape = aval_of(CONCAT, x).shape
    k = normalize_axis("repeat", axis, len(shape))
    counts = repeats if isinstance(repeats, Tensor) else np.asarray(repeats)
    if counts.size == shape[k] == 0:
        return cut(x, k, 0, 0)
    if counts.size != 1 or counts.ndim > 1:
        return repeated_by_counts(x, counts, k, shape[k], output_size)
    times = int(counts) if isinstance(counts, Tensor) else int(contents_of(counts, "repeat").reshape(()))
    if counts.dtype.kind not in "iu" or times < 0:
        raise ArgumentError(f"repeat: repeats must be one count or {shape[k]} counts, got {shown(repeats)}")
    if output_size not in (None, shape[k] * times):
        raise ArgumentError(f"repeat: output_size={output_size}, but repeats={shown(repeats)} give {shape[k] * times}")
    wide = broadcast_to(expand_dims(x, k + 1), (*shape[: k + 1], times, *shape[k + 1 :]))
    return _apart(reshape(wide, (*shape[:k], shape[k] * times, *shape[k + 1 :])), x)


@takes_dim(dims="repetitions")
@composed
def tile(x: Operand, repetitions: int | Sequence[int], *more: int) -> Tensor:
    """``x`` as a whole repeated along each axis (NumPy's tile, and what torch calls repeat)."""
    times = tuple(repetitions) if isinstance(repetitions, Iterable) else (repetitions, *more)
    aval = aval_of(CONCAT, x)
    ndim = max(aval.ndim, len(times))
    shape = (1,) * (ndim - aval.ndim) + aval.shape
    times = (1,) * (ndim - len(times)) + tuple(map(operator.index, times))
    if any(t < 0 for t in times):
        raise ArgumentError(f"tile: repetitions must not be negative, got {shown(repetitions)}")
    spread = reshape(x, tuple(n for length in shape for n in (1, length)))
    wide = broadcast_to(spread, tuple(n for pair in zip(times, shape, strict=True) for n in pair))
    return _apart(reshape(wide, tuple(t * n for t, n in zip(times, shape, strict=True))), x)


# --- pad ---------------------------------------------------------------------------------------------------------


def _pairs(what: str, given: Any, ndim: int) -> list[tuple[Any, Any]]:
    """NumPy's shorthand: one value, one (before, after), or a pair for every axis."""
    try:
        pairs = np.broadcast_to(np.asarray(given), (ndim, 2)).tolist()
    except ValueError:
        raise ArgumentError(
            f"pad: {what} {given!r} is neither a number nor a (before, after) for {ndim} axes"
        ) from None
    return [(before, after) for before, after in pairs]


def pad(x: Operand, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0) -> Tensor:
    """``x`` with ``pad_width`` elements added before and after each axis, as in NumPy.

    ``mode`` is "constant" (``constant_values``), "edge", "reflect", "symmetric" or "wrap".

    Raises:
        ArgumentError: another mode, or widths that are negative or do not fit the axes.
    """
    aval = aval_of(CONCAT, x)
    widths = _pairs("pad_width", pad_width, aval.ndim)
    if any(type(n) is not int or n < 0 for pair in widths for n in pair):
        raise ArgumentError(f"pad: widths must be ints that are not negative, got {shown(pad_width)}")
    if mode in ("edge", "reflect", "symmetric", "wrap"):
        return _pad_from_itself(x, aval, widths, mode)
    if mode != "constant":
        raise ArgumentError(f"pad: mode must be constant, edge, reflect, symmetric or wrap, got {shown(mode)}")
    fill = _pairs("constant_values", constant_values, aval.ndim)
    if all(v == 0 for pair in fill for v in pair):
        shape = tuple(n + a + b for n, (a, b) in zip(aval.shape, widths, strict=True))
        return place(x, shape, tuple((a, 1, n) for n, (a, _) in zip(aval.shape, widths, strict=True)))
    out = reshape(x, aval.shape)
    for k, (before, after) in enumerate(widths):
        around = [
            full((*out.shape[:k], n, *out.shape[k + 1 :]), value, dtype=aval.dtype, device=out.device)
            for n, value in zip((before, after), fill[k], strict=True)
        ]
        out = concat([around[0], out, around[1]], k)
    return out


def cropped(what: str, x: Tensor, widths: Sequence[int]) -> tuple[Tensor, list[tuple[int, int]]]:
    """``x`` without what negative ``widths`` cut off, and the others as `pad` takes them.

    ``widths`` are torch's, (before, after) for the last axis, then for the one before it, and so on. Raises ArgumentError
    if they do not fit the axes; ``what`` names the call.
    """
    if len(widths) % 2 or len(widths) > 2 * x.ndim:
        raise ArgumentError(f"{what} does not fit a tensor {x.aval}")
    pairs = [(0, 0)] * (x.ndim - len(widths) // 2) + list(zip(widths[::2], widths[1::2]))[::-1]
    kept = tuple(np.s_[max(0, -a) : n - max(0, -b)] for n, (a, b) in zip(x.shape, pairs, strict=True))
    part = x[kept] if min(widths, default=0) < 0 else x
    return part, [(max(0, a), max(0, b)) for a, b in pairs]


def _pad_from_itself(x: Operand, aval: Aval, widths: list[tuple[int, int]], mode: str) -> Tensor:
    """Padding with elements of ``x``, which NumPy selects; runs of neighbours are one slice each, and ``x`` is one whole."""
    out = reshape(x, aval.shape)
    for k, (before, after) in enumerate(widths):
        n = aval.shape[k]
        if not before and not after:
            continue
        if not n:
            raise ShapeError(f"pad: axis {k} of {aval} is empty, there is nothing to pad it with")
        source = np.pad(np.arange(n), (before, after), mode=mode).tolist()  # type: ignore[call-overload]
        parts = [_run(out, k, *run) for run in _runs(source[:before])]
        out = concat([*parts, out, *(_run(out, k, *run) for run in _runs(source[before + n :]))], k)
    return out


def _runs(positions: list[int]) -> list[tuple[int, int, int]]:
    """``positions`` as (start, step, length) runs, steps being 1, -1 or 0."""
    runs: list[tuple[int, int, int]] = []
    for p in positions:
        if runs:
            start, step, length = runs[-1]
            gap = p - (start + (length - 1) * step)
            if gap in (-1, 0, 1) and (length == 1 or gap == step):
                runs[-1] = (start, gap, length + 1)
                continue
        runs.append((p, 1, 1))
    return runs


def _run(x: Tensor, axis: int, start: int, step: int, length: int) -> Tensor:
    if step == 0:
        one = cut(x, axis, start, start + 1)
        return broadcast_to(one, (*x.shape[:axis], length, *x.shape[axis + 1 :]))
    return slice(x, tuple((start, step, length) if k == axis else (0, 1, n) for k, n in enumerate(x.shape)))
