"""Reads and changes at indices as instructions of the native loop, so that no Python runs between them and kernels."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from jitgrad.compiler.compiler_ops import CHECK_INDEX
from jitgrad.compiler.lowering.layout import ArgSlot, BufferRole, Location
from jitgrad.compiler.plan import OpStep, Place
from jitgrad.core.aval import Shape, dtype_name
from jitgrad.core.op import OpDef
from jitgrad.ops.indexing import GATHER, INDEX_ADD, INDEX_GET, INDEX_PUT, INDEX_PUT_ADD, SCATTER_ADD, TAKE
from jitgrad.runtime.executor.instruction_loop import KERNEL, Instruction
from jitgrad.runtime.library.indexed_access import (
    ADDED,
    COPIED,
    AccessForm,
    AccessMode,
    IndexSpace,
    ReadStrides,
    SpaceOf,
    access_code,
    access_sizes,
    along,
    at_axes,
    change_band,
    fixed_width,
    for_each,
    handles,
    iterations_of,
)

_INDICES = frozenset({"i8", "i16", "i32", "i64", "u8", "u16", "u32"})
ACCESSES: dict[OpDef, tuple[AccessMode, SpaceOf, int]] = {  # and the operand with the values, of changes
    TAKE: (AccessMode.READ, along, 0),
    CHECK_INDEX: (AccessMode.READ, along, 0),
    GATHER: (AccessMode.READ, for_each, 0),
    INDEX_GET: (AccessMode.READ, at_axes, 0),
    INDEX_ADD: (AccessMode.ADD, along, 2),
    SCATTER_ADD: (AccessMode.ADD, for_each, 2),
    INDEX_PUT: (AccessMode.WRITE, at_axes, 1),
    INDEX_PUT_ADD: (AccessMode.ADD, at_axes, 1),
}


def indexed_step(step: OpStep) -> Instruction | None:
    """The instruction for a read or a change at integer indices that are in row-major order; None for other steps.

    The array that is read may have strides. An array is changed in place. Where an index is out of bounds, the step is left to
    NumPy, which raises the error.
    """
    if step.op not in ACCESSES:
        return None
    access, space_of, values = ACCESSES[step.op]
    indices = [p for k, p in enumerate(step.reads) if k not in (0, values)]
    avals = [p.aval for p in indices]
    space = space_of(step.reads[0].aval.shape, step.attrs, avals)
    read, written = step.reads[values], step.writes[0]
    ordered = [*indices, written] if access is AccessMode.READ else [*indices, written, read]
    fits = handles(step.reads[0].aval, avals) and all(dtype_name(a.dtype) in _INDICES for a in avals)
    if space is None or not fits or not all(map(_is_ordered, ordered)) or any(a.shape != avals[0].shape for a in avals):
        return None
    if access is AccessMode.READ:
        return _reading(step, space, indices)
    at = written.location
    in_place = at is not None and step.reads[0].location is at
    dtype = dtype_name(read.aval.dtype)
    if not in_place or read.aval.dtype != written.aval.dtype or (access is AccessMode.ADD and dtype not in ADDED):
        return None
    return _changing(access, step, space, indices, read)


def _is_ordered(place: Place) -> bool:
    """Whether ``place`` is an array in row-major order."""
    return place.location is not None and place.location.is_contiguous(place.aval.shape)


def _instruction(
    form: AccessForm, space: IndexSpace, places: Sequence[Place], band: int, checked: int = 0, strides: ReadStrides | None = None
) -> Instruction:
    """``places``: the array that is written, that which is read, and the indices."""
    args: list[ArgSlot] = [(p.location.buffer, p.location.offset) for p in places if p.location is not None]
    args += access_sizes(space, space.width, band, checked, strides)
    iterations, block = iterations_of(form.access, space, space.width, band)
    if checked and space.per_outer:
        block = iterations  # every index is checked before the first change, and each block would check all
    return Instruction(KERNEL, access_code(form), args, iterations, block, declines=True)


def _reading(step: OpStep, space: IndexSpace, indices: Sequence[Place]) -> Instruction | None:
    x = step.reads[0]
    if x.location is None:
        return None
    strides = None if _is_ordered(x) else _strides(x.location, x.aval.shape, step, space)
    if strides is None and not _is_ordered(x):
        return None
    dtypes = tuple([dtype_name(p.aval.dtype) for p in indices])
    dtype, fixed = COPIED[x.aval.dtype.itemsize], fixed_width(space, space.width)
    form = AccessForm(AccessMode.READ, space.per_element, fixed, dtype, dtypes, strided=strides is not None)
    return _instruction(form, space, [step.writes[0], x, *indices], space.width, strides=strides)


def _changing(
    access: AccessMode, step: OpStep, space: IndexSpace, indices: Sequence[Place], values: Place
) -> Instruction:
    written = step.writes[0]
    assert written.location is not None
    dtypes = tuple([dtype_name(p.aval.dtype) for p in indices])
    dtype = dtype_name(written.aval.dtype) if access is AccessMode.ADD else COPIED[written.aval.dtype.itemsize]
    form = AccessForm(access, space.per_element, fixed_width(space, space.width), dtype, dtypes)
    is_state = written.location.buffer.role is BufferRole.INPUT  # which a failed call leaves as it was
    checked = indices[0].aval.size if is_state else 0
    return _instruction(form, space, [written, values, *indices], change_band(space, space.width), checked)


def _strides(at: Location, shape: Shape, step: OpStep, space: IndexSpace) -> ReadStrides | None:
    """The strides of an array that is read; None if its outer or its inner axes are not as one."""
    axes = step.attrs["axes"] if step.op is INDEX_GET else (step.attrs["axis"],)
    first, stop = axes[0], axes[-1] + 1
    if space.per_outer and step.reads[1].aval.shape[:first] != shape[:first]:
        return None  # a part of the outer axes
    outer, column = _as_one(shape[:first], at.strides[:first]), _as_one(shape[stop:], at.strides[stop:])
    if outer is None or column is None:
        return None
    return ReadStrides(at.strides[first:stop], outer, column)


def _as_one(shape: Shape, strides: Sequence[int]) -> int | None:
    """The stride of axes that are as one; None if they are not. Axes of nothing count as one element."""
    axes = [(n, step) for n, step in zip(shape, strides, strict=True) if n != 1]
    for (_, outer), (n, inner) in zip(axes, axes[1:], strict=False):
        if outer != n * inner:
            return None
    return axes[-1][1] if axes else prod(shape)
