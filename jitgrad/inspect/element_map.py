"""Which element of each value of a step belongs to one element of its largest array."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jitgrad.core.aval import Shape
from jitgrad.core.op import Kind, OpDef
from jitgrad.core.tensor import Tensor
from jitgrad.eager.run import run_on_arrays
from jitgrad.runtime.provenance import ElementIndex

_Op = tuple[OpDef, Mapping[str, Any], tuple[Any, ...], tuple[Tensor, ...]]


class ElementMap:
    """Follows one element through the ops of a step, forwards and backwards.

    It starts from the first elementwise result of ``shape``. Through reductions it is followed forwards only.
    """

    def __init__(self, ops: Sequence[_Op], shape: Shape, start: ElementIndex) -> None:
        self.known: dict[int, ElementIndex] = {}
        first = next((outs[0] for op, _, _, outs in ops if op.kind is Kind.ELEMENTWISE and outs[0].shape == shape), None)
        if first is not None:
            self.known[id(first)] = start
        count = -1
        while count != len(self.known):
            count = len(self.known)
            for part in ops:
                self._forwards(*part)
            for part in reversed(ops):
                self._backwards(*part)

    def of(self, x: Any) -> ElementIndex | None:
        """The element of ``x``; None if many belong to the one that is followed."""
        shape = getattr(x, "shape", ())
        return self.known.get(id(x), (0,) * len(shape) if all(n == 1 for n in shape) else None)

    def _forwards(self, op: OpDef, attrs: Mapping[str, Any], operands: tuple[Any, ...], outs: tuple[Tensor, ...]) -> None:
        out = outs[0]
        if id(out) in self.known:
            return
        for x in operands:
            place = self.known.get(id(x))
            if place is None:
                continue
            if op.kind is Kind.ELEMENTWISE and x.shape == out.shape:
                self.known[id(out)] = place
            elif op.kind is Kind.REDUCE:
                self.known[id(out)] = tuple(k for axis, k in enumerate(place) if axis not in attrs["axis"])
            elif op.kind is Kind.MOVEMENT:
                moved = run_on_arrays(op, (_numbers(x.shape),), attrs)
                found = np.argwhere(moved == np.ravel_multi_index(place, x.shape) if place else moved == 0)
                if len(found) == 1:  # a broadcast has many copies, a slice may have none
                    self.known[id(out)] = tuple(int(k) for k in found[0])

    def _backwards(self, op: OpDef, attrs: Mapping[str, Any], operands: tuple[Any, ...], outs: tuple[Tensor, ...]) -> None:
        place = self.known.get(id(outs[0]))
        if place is None:
            return
        for x in operands:
            shape = getattr(x, "shape", ())
            if not shape or id(x) in self.known:
                continue
            if op.kind is Kind.ELEMENTWISE:
                own = place[len(place) - len(shape) :]
                self.known[id(x)] = tuple(0 if n == 1 else k for k, n in zip(own, shape, strict=True))
            elif op.kind is Kind.MOVEMENT:
                number = int(run_on_arrays(op, (_numbers(shape),), attrs)[place])
                self.known[id(x)] = tuple(int(k) for k in np.unravel_index(number, shape))


def _numbers(shape: Shape) -> np.ndarray[Any, Any]:
    """The elements of an array of ``shape``, counted in row-major order."""
    return np.arange(int(np.prod(shape))).reshape(shape)
