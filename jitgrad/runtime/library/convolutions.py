"""The products of convolutions in blocks: windows of a part of the images exist at a time, for one thread.

As a whole, the windows of 3 x 3 elements take nine times the memory of the images, and are written, read for the product,
and read again for the gradient of the weights. Here a thread copies the windows of some channels in some rows (or of some
images, where an image has few windows) to memory of its own, which stays in the second-level cache, multiplies them, and
goes on to the next channels. The gradient of an image is added up while its windows are in the cache.

Sizes alone decide the blocks, and every sum has one order, so the bits depend neither on threads nor on chance.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from jitgrad.backends.llvm.code_object import CodeObject, compile_entry, kernel_vector_bits
from jitgrad.compiler.convolution_ops import CONVOLUTIONS, CONVOLVE, CONVOLVE_TRANSPOSED, WEIGHT_GRADIENT, is_depthwise
from jitgrad.compiler.lowering.layout import ArgSlot
from jitgrad.compiler.plan import OpStep, Place
from jitgrad.core.aval import Dtype, Shape, dtype_name
from jitgrad.core.op import OpDef
from jitgrad.eager.blas import find_blas
from jitgrad.runtime.executor.gemm import REAL_DTYPES, matrix_layout
from jitgrad.runtime.executor.instruction_loop import BLAS_KERNEL, KERNEL, Instruction
from jitgrad.runtime.executor.tiled_products import VECTOR_BITS, tiled_product
from jitgrad.runtime.library.convolution_source import CONVOLUTION_ARGS, ConvolutionForm, convolution_source
from jitgrad.runtime.library.depthwise import DEPTHWISE_ARGS, DepthwiseForm, depthwise_source
from jitgrad.runtime.library.windows import MAX_FIXED, MAX_FIXED_STEP

_BLOCK_BYTES = 1 << 18  # of windows: a part of the second-level cache, in which the operands have to be, too
_MIN_COLUMNS, _MAX_COLUMNS = 128, 512  # windows of a block, if there are so many
_PANEL = 64  # a product of other than a multiple of so many columns computes some for nothing
_DEPTHWISE_WORK = 1 << 16  # multiplications of a block of images of one channel, some 4 us
_MIN_BLOCKS = 8  # if they do not become too small: enough for some threads


class _Sizes(NamedTuple):
    """The sizes of a convolution: ``channels`` and ``m`` are those of a group on the two sides of its weights.

    Attributes:
        counts: the windows of an image, down and across.
        parts: of the sum over images.
    """

    images: int
    groups: int
    channels: int
    m: int
    image: Shape
    counts: Shape
    kernel: Shape
    stride: Shape
    dilation: Shape
    parts: int


class _Blocks(NamedTuple):
    """How many images, rows and columns of windows, and channels of a group make a block."""

    images: int
    rows: int
    columns: int
    channels: int

    @property
    def windows(self) -> int:
        return self.images * self.rows * self.columns


def convolution(step: OpStep) -> Instruction | None:
    """The instruction for one of `CONVOLUTIONS` of real numbers that lie in order; None for other steps."""
    if step.op not in CONVOLUTIONS:
        return None
    places = {"out": step.writes[0], **dict(zip(step.op.operands, step.reads, strict=True))}
    dtype = step.writes[0].aval.dtype
    known = dtype in REAL_DTYPES and all(p.aval.dtype == dtype and p.aval.size for p in places.values())
    if not known or not all(name == "left" or _is_ordered(place) for name, place in places.items()):
        return None
    sizes = _sizes(step.op, {name: place.aval.shape for name, place in places.items()}, step.attrs)
    if is_depthwise(sizes.channels, sizes.m, sizes.kernel):
        return _depthwise(step.op, places, sizes)
    transposed = step.attrs.get("transposed", False)
    left, product = _left_words(step.op, places, transposed), _product(dtype)
    if left is None or product is None:
        return None
    blocks = _blocks(step.op, sizes, dtype.itemsize)
    first, image, other = (places[name] for name in _ROLES[step.op])
    args: list[ArgSlot | CodeObject] = [_address(place) for place in (first, image, other)]
    args += [product, *sizes[:4], *sizes.image, *sizes.counts, *sizes.kernel, *sizes.stride, *sizes.dilation, *left, *blocks]
    args += [blocks.channels * prod(sizes.kernel) * (blocks.windows + 48), sizes.m * blocks.windows, sizes.parts]
    tiled = isinstance(product, CodeObject)
    code = _code(step.op.name, _form(sizes, blocks, dtype_name(dtype), tiled, transposed))
    return Instruction(KERNEL if tiled else BLAS_KERNEL, code, args, _iterations(step.op, sizes, blocks))


def _depthwise(op: OpDef, places: Mapping[str, Place], sizes: _Sizes) -> Instruction | None:
    first, image, other = (places[name] for name in _ROLES[op])
    if first.location is None or first.location.runs:
        return None
    size = prod(sizes.kernel)
    group, row, part = sizes.m * size, size, 1
    if op is CONVOLVE:
        group, row, part = first.location.strides
    elif op is CONVOLVE_TRANSPOSED:
        group, part, row = first.location.strides
    step, name = sizes.stride[1], dtype_name(first.aval.dtype)
    columns = str(sizes.counts[1]) if sizes.counts[1] <= MAX_FIXED else "columns"
    along = str(step) if step <= MAX_FIXED_STEP else "x_step"
    kernel = sizes.kernel[0], sizes.kernel[1]
    args: list[ArgSlot] = [_address(place) for place in (first, image, other)]
    args += [sizes.images, sizes.groups, sizes.m, *sizes.image, *sizes.counts, *sizes.stride, *sizes.dilation]
    args += [group, row, part, sizes.parts]
    code = _depthwise_code(op.name, DepthwiseForm(name, kernel, columns, along))
    planes = sizes.groups * (sizes.parts if op is WEIGHT_GRADIENT else sizes.images)
    work = other.aval.size * size // planes
    return Instruction(KERNEL, code, args, planes, max(1, _DEPTHWISE_WORK // work))


@cache
def _depthwise_code(name: str, form: DepthwiseForm) -> CodeObject:
    params = (*[f"{form.dtype}*"] * 3, *["i64"] * len(DEPTHWISE_ARGS))
    return compile_entry(depthwise_source(name, form), name, {}, params=params, key="", wait=False)


# which operand or result is the weights, the image, and the other side
_ROLES = {
    CONVOLVE: ("left", "image", "out"),
    CONVOLVE_TRANSPOSED: ("left", "out", "right"),
    WEIGHT_GRADIENT: ("out", "image", "y"),
}


def _product(dtype: Dtype) -> int | CodeObject | None:
    """What multiplies a block: tiles, where they are faster, or the address of BLAS's function."""
    if kernel_vector_bits() == VECTOR_BITS:
        return tiled_product(dtype_name(dtype))
    blas = find_blas()
    return None if blas is None else blas.sgemm if dtype == np.float32 else blas.dgemm


def _is_ordered(place: Place) -> bool:
    return place.location is not None and place.location.is_contiguous(place.aval.shape)


def _address(place: Place) -> ArgSlot:
    assert place.location is not None
    return place.location.buffer, place.location.offset


def _sizes(op: OpDef, shapes: Mapping[str, Shape], attrs: Mapping[str, Any]) -> _Sizes:
    image, other = (shapes[name] for name in _ROLES[op][1:])
    kernel, stride, dilation = attrs["kernel"], attrs["stride"], attrs["dilation"]
    counts = tuple([(n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(image[2:], kernel, stride, dilation, strict=True)])
    images, groups, m = other[:3]
    return _Sizes(images, groups, image[1] // groups, m, image[2:], counts, kernel, stride, dilation, attrs.get("parts", 1))


def _left_words(op: OpDef, places: Mapping[str, Place], transposed: bool) -> tuple[int, int, int, int] | None:
    """Of the weights: elements from group to group, and from one element of a window to the next; then leading dimension and
    whether they are transposed. None if BLAS cannot read them."""
    if op is WEIGHT_GRADIENT:
        columns = places["out"].aval.shape[3]
        return 0, columns if transposed else 1, columns, 0
    left = places["left"]
    if left.location is None or left.location.runs:
        return None
    group, *strides = left.location.strides
    layout = matrix_layout(tuple(strides), *left.aval.shape[1:])
    if layout is None:
        return None
    along_window = strides[1] if op is CONVOLVE else strides[0]
    return group, along_window, layout.leading, layout.transposed


def _blocks(op: OpDef, sizes: _Sizes, itemsize: int) -> _Blocks:
    """Blocks of a few hundred windows, in a part of the second-level cache, and at least `_MIN_BLOCKS` of them."""
    images, groups, channels = sizes[:3]
    rows, columns = sizes.counts
    wanted = min(max(images * rows * columns // _MIN_BLOCKS, _MIN_COLUMNS), _MAX_COLUMNS)
    across = columns if columns <= wanted else _part(columns, wanted, 1)
    down = _part(rows, wanted // across, across)
    count = _part(images, wanted // (rows * columns), rows * columns) if down == rows and across == columns else 1
    size = prod(sizes.kernel)
    fitting = _BLOCK_BYTES // (itemsize * size * across * down * count)
    if op is not CONVOLVE:  # threads share the channels as well
        shared = groups * (sizes.parts if op is WEIGHT_GRADIENT else -(-images // count))
        fitting = min(fitting, -(-channels * shared // _MIN_BLOCKS))
    return _Blocks(count, down, across, _part(channels, fitting, size if op is WEIGHT_GRADIENT else _PANEL))


def _part(length: int, most: int, columns: int) -> int:
    """Of how many elements parts of ``length`` consist, at most ``most``, each of which is so many columns of a product: of the
    lengths with the fewest panels, that with the most equal parts."""

    def cost(part: int) -> tuple[int, int]:
        whole, rest = divmod(length, part)
        panels = whole * -(-part * columns // _PANEL) + -(-rest * columns // _PANEL)
        return panels, -(-length // part) * part

    most = max(1, min(length, most))
    return min(range(most, max(1, most // 4) - 1, -1), key=cost)


def _iterations(op: OpDef, sizes: _Sizes, blocks: _Blocks) -> int:
    across = -(-sizes.channels // blocks.channels)
    if op is WEIGHT_GRADIENT:
        return sizes.groups * across * sizes.parts
    images = -(-sizes.images // blocks.images)
    if op is CONVOLVE_TRANSPOSED:
        return images * sizes.groups * across
    rows, columns = sizes.counts
    return images * sizes.groups * -(-rows // blocks.rows) * -(-columns // blocks.columns)


def _form(sizes: _Sizes, blocks: _Blocks, dtype: str, tiled: bool, transposed: bool) -> ConvolutionForm:
    step, fixed = sizes.stride[1], blocks.columns == sizes.counts[1] <= MAX_FIXED
    merged = blocks.images > 1
    is_copy = tuple(sizes.kernel) == tuple(sizes.stride) == (1, 1)
    columns = str(blocks.columns) if fixed else "width"
    along = str(step) if step <= MAX_FIXED_STEP else "x_step"
    return ConvolutionForm(dtype, columns, along, tiled, merged, is_copy and not merged, transposed)


@cache
def _code(name: str, form: ConvolutionForm) -> CodeObject:
    params = (*[f"{form.dtype}*"] * 3, *["i64"] * len(CONVOLUTION_ARGS))
    return compile_entry(convolution_source(name, form), name, {}, params=params, key="", wait=False)
