"""Gradients that are zero by construction at some elements, and stay so through the ops before.

`where` selects one of its operands at each element, and the gradient of the other is zero there. The op
that computed the other may have an infinite slope there, such as ``sqrt`` at 0 in
``where(x > 0, sqrt(x), 0)``, and zero times that slope is NaN. So a mask follows the gradient. It is
applied after the ops that compute each element by itself, where the gradient is moved, summed or handed
out: ``where(m, g, 0) * slope`` becomes ``where(m, g * slope, 0)``. Beyond, the mask is moved and reduced
as the gradient is, if another op needs it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitgrad.core.aval import Shape
from jitgrad.core.op import Kind, OpDef
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import ADD, ASTYPE, DIVIDE, MULTIPLY, NEGATIVE, POSITIVE, SUBTRACT, add
from jitgrad.ops.comparison import Selected, logical_and, logical_not, logical_or, where
from jitgrad.ops.creation import COPY
from jitgrad.ops.indexing import PUT_SLICE
from jitgrad.ops.joining import CONCAT
from jitgrad.ops.movement import (
    BROADCAST_TO,
    PLACE,
    SUM,
    broadcast_to,
    expand_dims,
    reshape,
    shape_with_ones,
    slice,
)
from jitgrad.ops.operand import is_number
from jitgrad.ops.reduce import any as any_of


class Mask:
    """Where a gradient may be nonzero: where ``parent``, if any, says so, and ``condition()`` equals ``kept``.

    ``shape`` broadcasts to the gradient's: along axes where its length is 1, the mask does not vary. ``activation``
    says whether an activation has a part in it. Nothing is computed before it is needed, and nothing twice.
    """

    __slots__ = ("_condition", "_make", "_tensor", "activation", "kept", "parent", "shape")

    def __init__(
        self,
        make: Callable[[], Any],
        shape: Shape,
        kept: bool = True,
        parent: Mask | None = None,
        activation: bool = False,
    ) -> None:
        self._make = make
        whole = parent is None or shape == parent.shape
        self.shape: Shape = shape if whole else np.broadcast_shapes(shape, parent.shape)  # type: ignore[union-attr]
        self._condition: Any = None
        self._tensor: Any = None
        self.kept: bool = kept
        self.parent: Mask | None = parent
        self.activation: bool = activation or (parent is not None and parent.activation)

    def condition(self) -> Any:
        if self._condition is None:
            self._condition = self._make()
        return self._condition

    def tensor(self) -> Any:
        """The mask as a bool tensor that broadcasts to the gradient."""
        if self._tensor is None:
            condition = self.condition()
            if self.parent is None:
                self._tensor = condition if self.kept else logical_not(condition)
            elif self.kept:
                self._tensor = logical_and(self.parent.tensor(), condition)
            else:
                self._tensor = where(condition, False, self.parent.tensor())
        return self._tensor

    def select(self, g: Tensor) -> Tensor:
        """``g``, and zero outside of the mask."""
        if self.parent is None and not self.kept:
            return where(self.condition(), 0.0, g)
        return where(self.tensor(), g, 0.0)

    def complements(self, other: Mask) -> bool:
        """Whether this and ``other`` are the two choices of one condition."""
        return self.parent is other.parent and self.kept != other.kept and same(self.condition(), other.condition())

    def through(self, change: Callable[[Any], Any], shape: Shape) -> Mask:
        """The mask that ``change`` makes of this one."""
        return Mask(lambda: change(self.tensor()), shape, activation=self.activation)


def same(a: Any, b: Any) -> bool:
    """Whether two conditions are one value; a tensor is unpacked from the tape anew by each node."""
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return a._data is b._data
    return a is b


class MaskedGradient:
    """``raw`` where ``mask`` says so, and zero elsewhere; if ``applied``, ``raw`` itself is zero there."""

    __slots__ = ("_settled", "applied", "mask", "raw")

    def __init__(self, raw: Tensor, mask: Mask, applied: bool = False) -> None:
        self.raw: Tensor = raw
        self.mask: Mask = mask
        self.applied: bool = applied
        self._settled = raw if applied else None

    def settle(self) -> Tensor:
        """The gradient as a tensor, with the mask applied."""
        if self._settled is None:
            self._settled = self.mask.select(self.raw)
        return self._settled


# ops whose vjps make zeros of zeros, whatever the operands
_LINEAR = frozenset({ADD, SUBTRACT, NEGATIVE, POSITIVE, ASTYPE})

# an array, a tensor, or a tensor with a mask
Cotangent = np.ndarray[Any, Any] | Tensor | MaskedGradient


def settle(g: Cotangent) -> Tensor:
    """``g`` as a tensor, zero outside of its mask."""
    if type(g) is Tensor:
        return g
    return g.settle() if isinstance(g, MaskedGradient) else Tensor(g)


def total(a: Cotangent, b: Cotangent) -> Tensor | MaskedGradient:
    """The sum of two gradients of one value; zero by construction where both are."""
    if type(a) is not MaskedGradient or type(b) is not MaskedGradient:
        return add(settle(a), settle(b))
    if a.mask is b.mask and a.applied == b.applied:
        return MaskedGradient(add(a.raw, b.raw), a.mask, a.applied)
    if a.mask is not b.mask and a.mask.complements(b.mask):
        first, second = (a, b) if a.mask.kept else (b, a)
        raw = where(a.mask.condition(), first.raw, second.raw)
        return raw if a.mask.parent is None else MaskedGradient(raw, a.mask.parent)
    one, other = a.mask, b.mask
    return MaskedGradient(add(a.settle(), b.settle()), either(one, other), applied=True)


def either(one: Mask, other: Mask) -> Mask:
    """The union of two masks."""
    if one is other:
        return one
    shape = np.broadcast_shapes(one.shape, other.shape)
    activation = one.activation or other.activation
    return Mask(lambda: logical_or(one.tensor(), other.tensor()), shape, activation=activation)


def unmasked(op: OpDef, g: MaskedGradient) -> Tensor:
    """What the vjp of ``op`` gets: ``g`` before its mask is applied, if masking the results does the same."""
    return g.raw if _is_pointwise(op) else g.settle()


def masked(gx: Any, mask: Mask | None, applied: bool = False) -> Any:
    """The gradient ``gx`` that a vjp returned, under ``mask`` (see `carried`), which may be ``applied`` already."""
    if type(gx) is Selected:
        condition = gx.condition
        make = condition if callable(condition) else lambda: condition
        shape = gx.gradient.shape if callable(condition) else getattr(condition, "shape", ())
        own = Mask(make, shape, gx.kept, mask, gx.activation)
        return MaskedGradient(gx.gradient, own, gx.applied and (mask is None or applied))
    return MaskedGradient(gx, mask, applied) if mask is not None and isinstance(gx, Tensor) else gx


def stays_applied(op: OpDef, g: MaskedGradient, given: Tensor, gx: Any, operands: Sequence[Any]) -> bool:
    """Whether what the vjp of ``op`` made of ``given``, which `unmasked` chose for ``g``, is zero outside of the mask."""
    if not _is_pointwise(op):
        return op is SUM or op is BROADCAST_TO or _moves(op)
    if not g.applied or (gx.gradient if type(gx) is Selected else gx) is given:
        return g.applied
    return op in _LINEAR or (op in (MULTIPLY, DIVIDE) and is_number(x := operands[-1]) and x != 0 and x - x == 0)


def _is_pointwise(op: OpDef) -> bool:
    """Whether each element that a vjp of ``op`` returns depends on the gradient at its own place alone.

    A single vjp function for all operands of an elementwise op is a user's, and may do anything.
    """
    return op.kind is Kind.ELEMENTWISE and isinstance(op.vjp, tuple)


def _moves(op: OpDef) -> bool:
    """Whether the vjp of ``op`` only moves elements, so that it moves those of a mask as well."""
    return (op.kind is Kind.MOVEMENT and op is not BROADCAST_TO) or op in (PLACE, CONCAT, COPY, PUT_SLICE)


def carried(op: OpDef, mask: Mask, operands: Sequence[Any], out: Shape, attrs: Any) -> Sequence[Mask | None]:
    """The masks of the gradients of ``operands``, in the shape of what the vjp returns; None where a mask ends.

    It ends at ops that mix elements: matrix products, lookups, scans, compiled functions.
    """
    count = len(operands)
    if op.kind is Kind.ELEMENTWISE:
        return (mask,) * count
    if op.kind is Kind.REDUCE:
        axis = attrs["axis"]
        return (mask.through(lambda m: expand_dims(_full(m, out), axis), shape_with_ones(out, axis)),)
    if op is BROADCAST_TO:
        return (reduced_mask(mask, out, operands[0].shape),)
    if _moves(op):
        return [_moved(op, mask, operands, out, attrs, k) for k in range(count)]
    return (None,) * count


def carried_by_program(
    op: OpDef, arrived: Sequence[Cotangent], operands: Sequence[Any], attrs: Any
) -> Sequence[Mask | None]:
    """`carried` by an op with several results: a compiled function that is elementwise as a whole passes masks on."""
    masks = [g.mask for g in arrived if isinstance(g, MaskedGradient)]
    if op.kind is not Kind.PROGRAM or len(masks) < len(arrived):
        return (None,) * len(operands)
    graph = attrs["graph"]
    if not all(node.op.kind is Kind.ELEMENTWISE for node in graph.nodes):
        return (None,) * len(operands)
    shapes = {g.raw.shape for g in arrived if isinstance(g, MaskedGradient)}
    union = functools.reduce(either, masks)
    return [union if shapes == {getattr(x, "shape", ())} else None for x in operands]


def _moved(op: OpDef, mask: Mask, operands: Sequence[Any], out: Shape, attrs: Any, k: int) -> Mask:
    def change(m: Any) -> Any:
        vjp: Any = op.vjp
        if isinstance(vjp, tuple):
            return vjp[k](_full(m, out), None, *operands, **attrs)
        return vjp(_full(m, out), None, *operands, **attrs)[k]

    return mask.through(change, operands[k].shape)


def _full(m: Any, shape: Shape) -> Tensor:
    """The mask ``m`` with all the elements of a gradient of ``shape``."""
    return m if isinstance(m, Tensor) and m.shape == shape else broadcast_to(m, shape)


def reduced_mask(mask: Mask, shape: Shape, to: Shape) -> Mask | None:
    """The mask of a gradient of ``shape`` after its sum to the shape ``to`` of what was broadcast.

    What was broadcast was selected if it was anywhere. The masks of activations end, unless this is free or one number:
    rows where no element is active hardly occur, and are not worth another reduction in each step of a network.
    """
    missing = len(shape) - len(to)
    summed = (*range(missing), *(k for k, n in enumerate(to, missing) if n == 1 and shape[k] != 1))
    if 0 in shape:
        return None
    own = (1,) * (len(shape) - len(mask.shape)) + mask.shape
    if all(own[k] == 1 for k in summed):
        start = tuple((0, 1, 1 if k in summed else n) for k, n in enumerate(shape))
        return mask.through(lambda m: reshape(slice(_full(m, shape), start), to), to)
    if mask.activation and math.prod(to) != 1:
        return None
    return mask.through(lambda m: reshape(any_of(_full(m, shape), summed), to), to)
