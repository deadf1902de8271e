"""Makes one matrix product of the products of a convolution's images, where windows are long and few.

The windows of each image are a matrix (``inner`` elements by ``windows``), and a product for each image is slow where it
has few columns. The gradient of the weights is then the sum of a matrix for every image, which may be many times as large as
all other operands. With the windows of all images side by side there is one product::

    %2: f32[32,512,2,2,4,4] = unfold(%1)             %2: f32[512,2,2,32,4,4] = unfold_by_channel(%1)
    %3: f32[32,1,2048,16] = reshape(%2)              %3: f32[1,2048,512] = reshape(%2)
    %4: f32[32,1,256,16] = matmul(%0, %3)            %4: f32[1,256,512] = matmul(%0, %3)

Its result has the images on the inside; the kernel that reads it next brings them into order.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from jitgrad.compiler.compiler_ops import FOLD_BY_CHANNEL, UNFOLD_BY_CHANNEL
from jitgrad.compiler.passes.cleanup import eliminate_dead
from jitgrad.compiler.passes.rewriter import Rewriter
from jitgrad.compiler.tuning import Tuning
from jitgrad.core.ir import Atom, Graph, TraceNode
from jitgrad.core.op import OpDef
from jitgrad.ops.convolution import FOLD, UNFOLD
from jitgrad.ops.linalg import MATMUL
from jitgrad.ops.movement import PERMUTE_DIMS, RESHAPE, SUM

_TRANSPOSE = (0, 1, 3, 2)


class _Sizes(NamedTuple):
    """A batch of matrices ``[images, groups, inner, windows]``."""

    images: int
    groups: int
    inner: int
    windows: int


def merge_images(graph: Graph, tuning: Tuning) -> Graph:
    """Multiply the windows of all images at once where they have more elements than an image has windows."""
    if not tuning.merge_images or all(node.op is not UNFOLD and node.op is not FOLD for node in graph.nodes):
        return graph
    new = _Merger(graph)
    for node in new.visit():
        merged = new.merged(node)
        if merged is None:
            new.keep(node)
        else:
            new.replace(node.out, merged)
    rewritten = new.graph()
    return rewritten if rewritten is graph else eliminate_dead(rewritten)


class _Merger(Rewriter):
    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.side_by_side: dict[Atom, Atom] = {}  # by the matrices of windows, the windows of all images as one for each group

    def merged(self, node: TraceNode) -> Atom | None:
        """The result of ``node`` by one product for all images; None to keep it."""
        if node.op is MATMUL:
            return self.convolution(*node.ins)
        if node.op is SUM and node.attr("axis") == (0,):
            return self.weight_gradient(node)
        if node.op is FOLD:
            return self.image_gradient(node)
        if node.op is RESHAPE and (unfold := self.produced_by(node.ins[0], UNFOLD)) is not None:
            self.add_windows(node, unfold)
        return None

    def produced_by(self, atom: Atom, op: OpDef) -> TraceNode | None:
        producer = self.producer(atom)
        return producer if producer is not None and producer.op is op else None

    def add_windows(self, node: TraceNode, unfold: TraceNode) -> None:
        """``node`` gives the windows of ``unfold`` the shape of matrices: if merging pays, put them side by side."""
        sizes = _sizes(unfold.out.aval.shape, node.out.aval.shape)
        if sizes is not None:
            parts = self.emit(UNFOLD_BY_CHANNEL, unfold.ins[0], **dict(unfold.attrs))
            shape = sizes.groups, sizes.inner, sizes.images * sizes.windows
            self.side_by_side[node.out] = self.emit(RESHAPE, parts, shape=shape)

    def convolution(self, left: Atom, right: Atom) -> Atom | None:
        windows = self.side_by_side.get(right)
        if windows is None or left.aval.ndim != 3:
            return None
        images, groups, _, count = right.aval.shape
        product = self.emit(MATMUL, left, windows)
        apart = self.emit(RESHAPE, product, shape=(groups, left.aval.shape[1], images, count))
        return self.emit(PERMUTE_DIMS, apart, axes=(2, 0, 1, 3))

    def weight_gradient(self, node: TraceNode) -> Atom | None:
        """The sum over images of a gradient times windows, or of windows times a gradient."""
        product = self.produced_by(node.ins[0], MATMUL)
        if product is None or product.out.aval.ndim != 4:
            return None
        left, right = product.ins
        transposed = self.produced_by(right, PERMUTE_DIMS)
        if transposed is None or transposed.attr("axes") != _TRANSPOSE or left.aval.ndim != 4:
            return None
        right = transposed.ins[0]
        if left not in self.side_by_side and right not in self.side_by_side:
            return None
        a, b = (self.side_by_side.get(x) or self.with_images_inside(x) for x in (left, right))
        return self.emit(MATMUL, a, self.emit(PERMUTE_DIMS, b, axes=(0, 2, 1)))

    def image_gradient(self, node: TraceNode) -> Atom | None:
        parts = self.produced_by(node.ins[0], RESHAPE)
        product = self.produced_by(parts.ins[0], MATMUL) if parts is not None else None
        if product is None or product.ins[0].aval.ndim != 3 or product.ins[1].aval.ndim != 4:
            return None
        shape = node.ins[0].aval.shape
        if _sizes(shape, product.out.aval.shape) is None:
            return None
        columns = self.emit(MATMUL, product.ins[0], self.with_images_inside(product.ins[1]))
        by_channel = self.emit(RESHAPE, columns, shape=(*shape[1:4], shape[0], *shape[4:]))
        return self.emit(FOLD_BY_CHANNEL, by_channel, **dict(node.attrs))

    def with_images_inside(self, atom: Atom) -> Atom:
        """``atom`` ``[images, groups, rows, windows]`` as ``[groups, rows, images * windows]``."""
        images, groups, rows, windows = atom.aval.shape
        inside = self.emit(PERMUTE_DIMS, atom, axes=(1, 2, 0, 3))
        return self.emit(RESHAPE, inside, shape=(groups, rows, images * windows))


def _sizes(parts: Sequence[int], matrices: Sequence[int]) -> _Sizes | None:
    """The sizes of windows ``parts`` as ``matrices``; None if one is not the other, or merging does not pay."""
    if len(parts) != 6 or len(matrices) != 4:
        return None
    sizes = _Sizes(*matrices)
    same = parts[0] == sizes.images and prod(parts[1:4]) == sizes.groups * sizes.inner
    if not same or parts[1] % sizes.groups or prod(parts[4:]) != sizes.windows:
        return None
    return sizes if sizes.images > 1 and sizes.inner > sizes.windows > 0 else None
