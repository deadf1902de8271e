"""``x.flat``: the elements of a tensor in C order, to read, to write and to iterate over, as in NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from jitgrad.core.errors import ShapeError
from jitgrad.core.tensor import Tensor
from jitgrad.ops import joining, movement
from jitgrad.ops.creation import asarray, clone


class FlatView:
    """What ``x.flat`` is. ``x.flat[key]`` is a part of ``x.reshape(-1)``, and ``x.flat[key] = v`` changes ``x``."""

    def __init__(self, base: Tensor) -> None:
        self.base = base

    def __len__(self) -> int:
        return int(self.base.size)

    def __iter__(self) -> Iterator[Tensor]:
        return iter(movement.reshape(self.base, -1)) if len(self) else iter(())

    def __getitem__(self, key: Any) -> Tensor:
        return movement.reshape(self.base, -1)[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        """Write ``value``, whose elements are repeated if they are fewer.

        Raises ShapeError if there are none, or several for one place that an int gives.
        """
        shape = self.base.shape
        places = np.arange(len(self))[key]
        values = movement.reshape(asarray(value), -1)
        count, given = places.size, values.shape[0]
        if not count:
            return
        if not given or (not places.ndim and given > 1):
            raise ShapeError(f"x.flat[...] = value of {self.base.aval}: the value has {given} elements for {count} places")
        if given not in (1, count):
            values = joining.tile(values, -(-count // given))[:count]
        where = np.unravel_index(places.reshape(-1), shape) if shape else ()
        self.base[where if shape else ...] = values if shape and given > 1 else values[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.asarray(movement.reshape(self.base, -1), dtype)

    def copy(self) -> Tensor:
        """The elements as a new tensor with one axis."""
        return clone(movement.reshape(self.base, -1))


def fill_flat(x: Tensor, values: Any) -> None:
    """``x.flat = values``."""
    FlatView(x)[:] = values
