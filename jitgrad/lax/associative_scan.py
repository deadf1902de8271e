"""jax.lax.associative_scan: running results of an associative function, in a number of steps that grows with log n."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import optree

from jitgrad.core.aval import normalize_axis
from jitgrad.core.errors import ArgumentError, ShapeError, require_function
from jitgrad.core.tensor import Tensor
from jitgrad.ops.creation import asarray
from jitgrad.ops.joining import concat, stack
from jitgrad.ops.movement import cut, flip, reshape

Leaves = list[Tensor]


def associative_scan(fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """The results of ``fn`` of all elements so far along ``axis``, or with ``reverse`` of those from there on.

    ``fn(a, b)`` is associative and takes pytrees like ``elems`` with any length of ``axis``. Neighbours are combined, the
    results scanned, and the elements between them filled in (G. E. Blelloch, "Prefix sums and their applications", 1990).

    Raises:
        ShapeError: the leaves have no such axis, or of different lengths.
        ArgumentError: there are no leaves, or ``fn`` returns another structure.
    """
    require_function("lax.associative_scan", fn)
    leaves, treedef = optree.tree_flatten(elems)
    arrays = [asarray(x) for x in leaves]
    if not arrays:
        raise ArgumentError("lax.associative_scan: elems has no arrays")
    axes = [normalize_axis("lax.associative_scan", axis, x.ndim) for x in arrays]
    if len({x.shape[k] for x, k in zip(arrays, axes, strict=True)}) > 1:
        raise ShapeError(f"lax.associative_scan: axis {axis} of {[x.aval for x in arrays]} must have one length")

    def combine(a: Leaves, b: Leaves) -> Leaves:
        out, structure = optree.tree_flatten(fn(optree.tree_unflatten(treedef, a), optree.tree_unflatten(treedef, b)))
        if structure != treedef:
            raise ArgumentError(f"lax.associative_scan: fn returned the structure {structure}, of elems it is {treedef}")
        return [asarray(x) for x in out]

    scanned = _scanned(combine, [flip(x, k) for x, k in zip(arrays, axes, strict=True)] if reverse else arrays, axes)
    return optree.tree_unflatten(treedef, [flip(x, k) for x, k in zip(scanned, axes, strict=True)] if reverse else scanned)


def _scanned(combine: Callable[[Leaves, Leaves], Leaves], elems: Leaves, axes: list[int]) -> Leaves:
    n = elems[0].shape[axes[0]]
    if n < 2:
        return elems
    odd = _scanned(combine, combine(_every_second(elems, axes, 0, n - n % 2), _every_second(elems, axes, 1, n)), axes)
    later = _every_second(elems, axes, 2, n)
    firsts = [cut(x, k, 0, 1) for x, k in zip(elems, axes, strict=True)]
    if n == 2:
        even = firsts
    else:
        before = [cut(x, k, 0, later[0].shape[axes[0]]) for x, k in zip(odd, axes, strict=True)]
        even = [concat([a, b], k) for a, b, k in zip(firsts, combine(before, later), axes, strict=True)]
    return [_interleaved(a, b, k) for a, b, k in zip(even, odd, axes, strict=True)]


def _every_second(elems: Leaves, axes: list[int], start: int, stop: int) -> Leaves:
    return [x[(*[slice(None)] * k, slice(start, stop, 2))] for x, k in zip(elems, axes, strict=True)]


def _interleaved(even: Tensor, odd: Tensor, axis: int) -> Tensor:
    """The elements of ``even`` and ``odd`` along ``axis`` in turn; ``even`` may have one more."""
    n = odd.shape[axis]
    pairs = stack([cut(even, axis, 0, n), odd], axis + 1)
    joined = reshape(pairs, (*odd.shape[:axis], 2 * n, *odd.shape[axis + 1 :]))
    return concat([joined, cut(even, axis, n, n + 1)], axis) if even.shape[axis] > n else joined
