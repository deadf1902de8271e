"""Makes one op of the windows of images and their products with weights, and of each gradient.

The windows of images are many times as large as the images::

    %2: f32[32,64,3,3,32,32] = unfold(%1)             %2: f32[32,1,64,1024] = convolve(%0, %1)
    %3: f32[32,1,576,1024] = reshape(%2)
    %4: f32[32,1,64,1024] = matmul(%0, %3)

The op has some of them in memory at a time (`jitgrad.runtime.library.convolutions`). The gradient of the image adds up windows
that are a product; that of the weights, the sum over images of a gradient times windows, makes them again.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from jitgrad.compiler.convolution_ops import CONVOLVE, CONVOLVE_TRANSPOSED, WEIGHT_GRADIENT
from jitgrad.compiler.passes.cleanup import eliminate_dead
from jitgrad.compiler.passes.rewriter import Rewriter
from jitgrad.compiler.tuning import Tuning
from jitgrad.core.ir import Atom, Graph, TraceNode
from jitgrad.core.op import OpDef
from jitgrad.ops.convolution import FOLD, UNFOLD
from jitgrad.ops.linalg import MATMUL
from jitgrad.ops.movement import PERMUTE_DIMS, RESHAPE, SUM

_TRANSPOSE = (0, 1, 3, 2)
_DTYPES = {np.dtype(np.float32), np.dtype(np.float64)}  # of all operands
# Threads share the images for the gradient of the weights, where partial results of so many elements are small beside the
# images, and have some windows each. Else they share the channels.
_MAX_PARTS, _IMAGE_OF_PART, _WINDOWS_OF_PART = 8, 2, 512
# Products compute columns by this many.
_COLUMNS = 64


def block_convolutions(graph: Graph, tuning: Tuning) -> Graph:
    """Let convolutions of float32 and float64, and their gradients, have a part of their windows in memory at a time."""
    if not tuning.blocks_of_windows or all(node.op is not UNFOLD and node.op is not FOLD for node in graph.nodes):
        return graph
    new = _Convolutions(graph)
    for node in new.visit():
        dtypes = {atom.aval.dtype for atom in (*node.ins, *node.outs)}
        result = new.in_blocks(node) if len(dtypes) == 1 and dtypes <= _DTYPES else None
        if result is None:
            new.keep(node)
        else:
            new.replace(node.out, result)
    rewritten = new.graph()
    return rewritten if rewritten is graph else eliminate_dead(rewritten)


class _Convolutions(Rewriter):
    def in_blocks(self, node: TraceNode) -> Atom | None:
        """The result of ``node`` without all windows in memory; None to keep it."""
        if node.op is MATMUL:
            return self.convolution(*node.ins) or self.one_image_gradient(node)
        if node.op is SUM and node.attr("axis") == (0,):
            product = self.produced_by(node.ins[0], MATMUL)
            return None if product is None else self.weight_gradient(product)
        return self.image_gradient(node) if node.op is FOLD else None

    def produced_by(self, atom: Atom, op: OpDef) -> TraceNode | None:
        producer = self.producer(atom)
        return producer if producer is not None and producer.op is op else None

    def unfold_of(self, matrices: Atom) -> TraceNode | None:
        """The node whose windows are ``matrices`` [images, groups, inner, windows]."""
        reshape = self.produced_by(matrices, RESHAPE)
        unfold = self.produced_by(reshape.ins[0], UNFOLD) if reshape is not None else None
        return unfold if unfold is not None and _are_windows(unfold.out.aval.shape, matrices.aval.shape) else None

    def convolution(self, left: Atom, right: Atom) -> Atom | None:
        unfold = self.unfold_of(right)
        if unfold is None or left.aval.ndim != 3 or left.aval.shape[0] != right.aval.shape[1]:
            return None
        return self.emit(CONVOLVE, left, unfold.ins[0], **dict(unfold.attrs))

    def one_image_gradient(self, product: TraceNode) -> Atom | None:
        """What `weight_gradient` gives, for the product of one image, which no sum follows."""
        if product.out.aval.ndim != 4 or product.out.aval.shape[0] != 1:
            return None
        out = self.weight_gradient(product)
        return None if out is None else self.emit(RESHAPE, out, shape=product.out.aval.shape)

    def weight_gradient(self, product: TraceNode) -> Atom | None:
        """The sum over images of a gradient times windows, or of windows times a gradient."""
        left, right = product.ins
        transposed = self.produced_by(right, PERMUTE_DIMS)
        if transposed is None or transposed.attr("axes") != _TRANSPOSE or left.aval.ndim != 4:
            return None
        right = transposed.ins[0]
        if right.aval.shape[:2] != left.aval.shape[:2] or right.aval.dtype != left.aval.dtype:
            return None
        if (unfold := self.unfold_of(right)) is not None:
            return self.summed_windows(left, unfold, wanted=False)
        if (unfold := self.unfold_of(left)) is not None:
            return self.summed_windows(right, unfold, wanted=True)
        return None

    def summed_windows(self, y: Atom, unfold: TraceNode, *, wanted: bool) -> Atom:
        """[groups, m, inner], if ``wanted`` with the last two axes swapped: ``y`` times the windows, summed over the images."""
        image = unfold.ins[0]
        images, _, m, windows = y.aval.shape
        weights = m * prod(unfold.out.aval.shape[1:4])  # of all groups
        parts = min(_MAX_PARTS, images * windows // _WINDOWS_OF_PART, image.aval.size // (_IMAGE_OF_PART * weights))
        # its columns are few, and packed once for all channels
        transposed = -(-m // _COLUMNS) * _COLUMNS - m <= m // 8
        attrs = {"parts": max(1, parts), "transposed": transposed, **dict(unfold.attrs)}
        out: Atom = self.emit(WEIGHT_GRADIENT, y, image, **attrs)
        out = self.emit(SUM, out, axis=(0,)) if parts > 1 else self.emit(RESHAPE, out, shape=out.aval.shape[1:])
        return out if transposed == wanted else self.emit(PERMUTE_DIMS, out, axes=(0, 2, 1))

    def image_gradient(self, node: TraceNode) -> Atom | None:
        parts = self.produced_by(node.ins[0], RESHAPE)
        product = self.produced_by(parts.ins[0], MATMUL) if parts is not None else None
        if product is None or product.ins[0].aval.ndim != 3 or product.ins[1].aval.ndim != 4:
            return None
        left, right = product.ins
        if left.aval.dtype != right.aval.dtype:
            return None
        if left.aval.shape[0] != right.aval.shape[1] or not _are_windows(node.ins[0].aval.shape, product.out.aval.shape):
            return None
        return self.emit(CONVOLVE_TRANSPOSED, left, right, **dict(node.attrs))


def _are_windows(parts: Sequence[int], matrices: Sequence[int]) -> bool:
    """Whether ``matrices`` are the shape of windows of shape ``parts`` as one matrix for each image and group, none empty."""
    if len(parts) != 6 or len(matrices) != 4:
        return False
    images, groups, inner, windows = matrices
    same = parts[0] == images and prod(parts[1:4]) == groups * inner and prod(parts[4:]) == windows
    return same and prod(parts) > 0 and parts[1] % groups == 0
