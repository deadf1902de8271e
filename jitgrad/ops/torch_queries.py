"""torch's functions that ask something of a tensor, and a few that programs call as functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from jitgrad.core.aval import normalize_axis
from jitgrad.core.config import get_default_dtype
from jitgrad.core.errors import ArgumentError
from jitgrad.core.tensor import Tensor
from jitgrad.ops.creation import arange, asarray, detached, full_like
from jitgrad.ops.linalg import matmul
from jitgrad.ops.random import default_generator


def adjoint(input: Any) -> Tensor:
    """The conjugate transposes of matrices."""
    out: Tensor = asarray(input).adjoint()
    return out


def chain_matmul(*matrices: Any) -> Tensor:
    """The product of matrices, one after the other."""
    product: Tensor = reduce(matmul, matrices)
    return product


def detach(input: Any) -> Tensor:
    """``input`` without its history, over the same memory."""
    return detached(asarray(input))


def stride_of(self: Tensor, dim: int | None = None) -> Any:
    """The steps, in elements, from one element to the next along each axis, or along ``dim``, as in `as_strided`.

    They are those of the elements in a row, in the order of the axes, wherever they lie in memory.
    """
    steps = tuple([math.prod(self.shape[k:]) for k, _ in enumerate(self.shape, 1)])
    return steps if dim is None else steps[normalize_axis("stride", dim, self.ndim)]


def strides_in_bytes(self: Tensor) -> tuple[int, ...]:
    """NumPy's ``strides``: those of `stride_of` in bytes."""
    return tuple([step * self.dtype.itemsize for step in stride_of(self)])


def fill(input: Any, value: Any) -> Tensor:
    """A tensor like ``input`` that is ``value`` everywhere."""
    return full_like(asarray(input), value)


def get_default_device() -> str:
    """Where new tensors are: "cpu"."""
    return "cpu"


def initial_seed() -> int:
    """The seed of the default generator: that of `jitgrad.manual_seed`, or the one with which this process began."""
    return int(default_generator.state.concrete("initial_seed")[0])


def seed() -> int:
    """Give the default generator a new seed, and return it."""
    new = int.from_bytes(np.random.default_rng().bytes(8), "little")
    default_generator.manual_seed(new)
    return new


def is_nonzero(input: Any) -> bool:
    """Whether the only element is not zero. Raises ArgumentError for more elements."""
    return bool(asarray(input))


def is_same_size(input: Any, other: Any) -> bool:
    """Whether both have one shape."""
    return asarray(input).shape == asarray(other).shape


def is_signed(input: Any) -> bool:
    """Whether the dtype has negative numbers."""
    return asarray(input).dtype.kind in "ifc"


def is_inference(input: Any) -> bool:
    """False: tensors of inference mode are ordinary ones."""
    return False


def is_conj(input: Any) -> bool:
    """False: conjugates are computed at once."""
    return False


def is_neg(input: Any) -> bool:
    """False: negatives are computed at once."""
    return False


def resolve_conj(input: Any) -> Any:
    """``input``: conjugates are computed at once."""
    return input


def resolve_neg(input: Any) -> Any:
    """``input``: negatives are computed at once."""
    return input


def range(start: float = 0, end: float | None = None, step: float = 1, *, dtype: Any = None) -> Tensor:
    """From ``start`` up to and with ``end``, in steps; floats unless ``dtype`` says otherwise (torch's old `range`)."""
    low, high = (0, start) if end is None else (start, end)
    if step == 0 or (high - low) / step < 0:
        raise ArgumentError(f"range: from {low} to {high} in steps of {step}")
    return arange(low, low + (int((high - low) / step) + 0.5) * step, step, dtype=dtype or get_default_dtype())


def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> Sequence[Tensor]:
    """`jitgrad.chunk`."""
    pieces: Sequence[Tensor] = input.chunk(chunks, dim)
    return pieces


def set_printoptions(
    precision: int | None = None, threshold: int | None = None, edgeitems: int | None = None, linewidth: int | None = None,
    profile: str | None = None, sci_mode: bool | None = None,
) -> None:  # fmt: skip
    """How tensors are printed: NumPy's options, which are those of its arrays as well.

    ``profile`` is "default", "short" or "full"; ``sci_mode=False`` never prints powers of ten, where that is possible.
    """
    profiles: dict[str | None, dict[str, Any]] = {
        None: {}, "default": {"precision": 8, "threshold": 1000, "edgeitems": 3, "linewidth": 75},
        "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 75},
        "full": {"precision": 8, "threshold": 2**62, "edgeitems": 3, "linewidth": 75},
    }  # fmt: skip
    if profile not in profiles:
        raise ArgumentError(f"set_printoptions: profile must be default, short or full, got {profile!r}")
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    options = {**profiles[profile], **{k: v for k, v in given.items() if v is not None}}
    if sci_mode is not None:
        options["suppress"] = not sci_mode
    np.set_printoptions(**options)
