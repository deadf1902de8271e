"""NumPy's ``r_`` and ``c_``, which join what stands in brackets: numbers, arrays, and slices as ranges."""

from __future__ import annotations

from typing import Any

from jitgrad.core.errors import ArgumentError
from jitgrad.core.tensor import Tensor
from jitgrad.numpy.arguments import tensor_of
from jitgrad.numpy.creation import arange, linspace
from jitgrad.numpy.joining import concatenate
from jitgrad.ops.movement import expand_dims
from jitgrad.ops.placement import beside_operands


def _part(name: str, entry: Any) -> Tensor:
    """One entry as a tensor of at least one axis; ``a:b:5j`` has 5 numbers from a to b."""
    if isinstance(entry, str):
        raise ArgumentError(f"jitgrad.numpy.{name}[{entry!r}]: directives are not understood: use concatenate or stack")
    if isinstance(entry, slice):
        start = 0 if entry.start is None else entry.start
        if isinstance(entry.step, complex):
            return linspace(start, entry.stop, int(abs(entry.step)))  # type: ignore[no-any-return]
        return arange(start, entry.stop, 1 if entry.step is None else entry.step)
    given = tensor_of(entry)
    return given if given.ndim else expand_dims(given, 0)


class Rows:
    """``r_[a, 1.0, 2:5]``: joined along the first axis."""

    @beside_operands
    def __getitem__(self, key: Any) -> Tensor:
        return concatenate([_part("r_", entry) for entry in (key if isinstance(key, tuple) else (key,))], 0)


class Columns:
    """``c_[a, b]``: joined along the last axis, vectors as columns."""

    @beside_operands
    def __getitem__(self, key: Any) -> Tensor:
        parts = [_part("c_", entry) for entry in (key if isinstance(key, tuple) else (key,))]
        return concatenate([expand_dims(part, 1) if part.ndim == 1 else part for part in parts], -1)


r_: Rows = Rows()
c_: Columns = Columns()
