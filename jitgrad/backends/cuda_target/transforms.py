"""Fourier transforms as cuFFT computes them: of complex numbers, over neighbouring axes, without a factor.

The pass `prepare_transforms` writes others in their terms. Real numbers become complex ones, of which cuFFT computes a
whole spectrum; the other way the half of a spectrum is completed first, so that it need not be one of real numbers, which
gradients are not. (cuFFT's own transforms to real numbers do not say what they give then, and may destroy their operand.)
Factors are applied to the parts of the result, by kernels that fuse with others::

    v = irdft(u, axis=0, n=4)     re, im = real(u), where(alone, 0, imag(u))    # 0 at both ends
                                  w = complex(concat(re, re[1:2]), concat(im, -im[1:2]))
                                  v = real(dft(w, inverse)) * 0.25
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import prod, sqrt
from typing import Any

import numpy as np

from jitgrad.compiler.passes.rewriter import Rewriter
from jitgrad.core.aval import Aval, Shape, complex_dtype_of, real_dtype_of
from jitgrad.core.errors import JitgradWarning
from jitgrad.core.ir import Atom, Graph, Literal, TraceNode
from jitgrad.core.op import OpDef
from jitgrad.device.cuda import cuda_device
from jitgrad.device.cufft import CUFFT_MISSING, TransformShape, contiguous_transform
from jitgrad.ops.arithmetic import ASTYPE, MULTIPLY, NEGATIVE
from jitgrad.ops.comparison import EQUAL, LOGICAL_OR, WHERE
from jitgrad.ops.complex_parts import COMPLEX, IMAG, REAL
from jitgrad.ops.creation import IOTA
from jitgrad.ops.fourier import DFT, IRDFT, RDFT, TRANSFORMS
from jitgrad.ops.joining import CONCAT
from jitgrad.ops.movement import PERMUTE_DIMS, SLICE

_MOST_AXES = 3  # of one call of cuFFT
_WITHOUT_FACTOR = {False: "backward", True: "forward"}  # by whether the transform is inverse


def find_transform(op: OpDef, avals: Sequence[Aval], attrs: Mapping[str, Any]) -> TransformShape | None:
    """How cuFFT computes ``op``, from and to a C-contiguous array; None if it does not."""
    if op is not DFT or attrs["norm"] != _WITHOUT_FACTOR[attrs["inverse"]] or not cuda_device().driver.has_transforms:
        return None
    (x,) = avals
    if x.dtype.kind != "c" or not x.size:
        return None
    return contiguous_transform(x.shape, attrs["axes"], x.dtype.itemsize)


def prepare_transforms(graph: Graph) -> Graph:
    """Write the transforms of ``graph`` as those that `find_transform` takes, if there is cuFFT."""
    if not any(node.op in TRANSFORMS for node in graph.nodes):
        return graph
    if not cuda_device().driver.has_transforms:
        warnings.warn(f"Fourier transforms of tensors on a device run on the host: {CUFFT_MISSING}", JitgradWarning, stacklevel=2)
        return graph
    new = _Preparation(graph)
    for node in new.visit():
        if node.op in TRANSFORMS and all(a.aval.size for a in (*node.ins, *node.outs)):
            new.replace(node.out, new.prepared(node))
        else:
            new.keep(node)
    return new.graph()


class _Preparation(Rewriter):
    def prepared(self, node: TraceNode) -> Atom:
        """The result of ``node``, a transform."""
        (x,), attrs = node.ins, dict(node.attrs)
        norm = attrs["norm"]
        if node.op is DFT:
            axes = tuple(sorted(attrs["axes"]))
            n, inverse = prod(x.aval.shape[k] for k in axes), attrs["inverse"]
            re, im = self.parts(self.transform(self.as_complex(x), axes, inverse), _factor(norm, inverse, n))
            return self.emit(COMPLEX, re, im)
        axis = attrs["axis"]
        if node.op is RDFT:
            whole = self.transform(self.as_complex(x), (axis,), False)
            half = self.cut(whole, axis, 0, 1, node.out.aval.shape[axis])
            return self.emit(COMPLEX, *self.parts(half, _factor(norm, False, x.aval.shape[axis])))
        assert node.op is IRDFT
        n = attrs["n"]
        whole = self.transform(self.completed(self.as_complex(x), axis, n), (axis,), True)
        return self.parts(whole, _factor(norm, True, n))[0]

    def as_complex(self, x: Atom) -> Atom:
        dtype = complex_dtype_of(x.aval.dtype)
        return x if x.aval.dtype == dtype and not x.aval.weak else self.emit(ASTYPE, x, dtype=dtype)

    def parts(self, x: Atom, factor: float) -> tuple[Atom, Atom]:
        """The parts of ``x``, times ``factor``: each by itself, because infinities would make NaNs of each other."""
        parts = self.emit(REAL, x), self.emit(IMAG, x)
        if factor == 1.0:
            return parts
        number = Literal(factor, real_dtype_of(x.aval.dtype))
        return self.emit(MULTIPLY, parts[0], number), self.emit(MULTIPLY, parts[1], number)

    def transform(self, x: Atom, axes: Sequence[int], inverse: bool) -> Atom:
        """The transform over ``axes``, which rise, without a factor."""
        for run in _runs(axes):
            x = self.transform_neighbours(x, run, inverse)
        return x

    def transform_neighbours(self, x: Atom, axes: tuple[int, ...], inverse: bool) -> Atom:
        """The transform over neighbouring ``axes``; those in the middle are brought to the end for it."""
        attrs = {"inverse": inverse, "norm": _WITHOUT_FACTOR[inverse]}
        aval = x.aval
        if contiguous_transform(aval.shape, axes, aval.dtype.itemsize) is not None:
            return self.emit(DFT, x, axes=axes, **attrs)
        order = (*[k for k in range(aval.ndim) if k not in axes], *axes)
        last = tuple(range(aval.ndim - len(axes), aval.ndim))
        turned = self.emit(DFT, self.emit(PERMUTE_DIMS, x, axes=order), axes=last, **attrs)
        return self.emit(PERMUTE_DIMS, turned, axes=tuple(map(order.index, range(aval.ndim))))

    def completed(self, half: Atom, axis: int, n: int) -> Atom:
        """The spectrum of ``n`` real numbers of which ``half`` is the first half.

        Imaginary parts that such a spectrum does not have, at 0 and in the middle of an even one, do not count.
        """
        shape, rest = half.aval.shape, n - half.aval.shape[axis]
        k = self.emit(IOTA, shape=_broadcastable(shape, axis), axis=axis, dtype=np.dtype(np.int64))
        alone = self.emit(EQUAL, k, Literal(0))
        if n % 2 == 0:
            alone = self.emit(LOGICAL_OR, alone, self.emit(EQUAL, k, Literal(n // 2)))
        re, im = self.emit(REAL, half), self.emit(IMAG, half)
        im = self.emit(WHERE, alone, Literal(0.0, im.aval.dtype), im)
        if rest:
            others = [self.cut(part, axis, rest, -1, rest) for part in (re, im)]
            re = self.emit(CONCAT, re, others[0], axis=axis)
            im = self.emit(CONCAT, im, self.emit(NEGATIVE, others[1]), axis=axis)
        return self.emit(COMPLEX, re, im)

    def cut(self, x: Atom, axis: int, start: int, step: int, length: int) -> Atom:
        index = [(0, 1, n) for n in x.aval.shape]
        index[axis] = start, step, length
        return self.emit(SLICE, x, index=tuple(index))


def _factor(norm: str, inverse: bool, n: int) -> float:
    """What a transform of ``n`` points multiplies its sums by."""
    if norm == "ortho":
        return 1.0 / sqrt(n)
    return 1.0 if norm == _WITHOUT_FACTOR[inverse] else 1.0 / n


def _runs(axes: Sequence[int]) -> list[tuple[int, ...]]:
    """``axes``, which rise, as runs of neighbours that one call can take."""
    runs = [[axes[0]]]
    for before, k in pairwise(axes):
        if k == before + 1 and len(runs[-1]) < _MOST_AXES:
            runs[-1].append(k)
        else:
            runs.append([k])
    return [tuple(run) for run in runs]


def _broadcastable(shape: Shape, axis: int) -> Shape:
    return tuple([n if k == axis else 1 for k, n in enumerate(shape)])
