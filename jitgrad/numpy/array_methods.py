"""Methods of NumPy's arrays: ``sort``, ``partition`` and ``put`` change their tensor; torch's and JAX's return a new one."""

from __future__ import annotations

from typing import Any

from jitgrad.core.config import get_immutable
from jitgrad.core.tensor import Tensor
from jitgrad.numpy import in_place, selection
from jitgrad.numpy import order as ordering
from jitgrad.ops import sorting
from jitgrad.ops.in_place_forms import in_place as in_place_of
from jitgrad.ops.inplace import assign
from jitgrad.ops.methods import install
from jitgrad.ops.scattering import put as put_of_torch

_TORCHS_PUT = frozenset(["accumulate", "index", "source"])  # its parameters


def _sort(self: Tensor, axis: int = -1, kind: Any = None, order: None = None, **options: Any) -> Any:
    """Sort in place along ``axis``, as NumPy does. After ``import jitgrad.jax`` it is JAX's, which returns a sorted copy.

    With ``dim=`` or ``descending=`` it is torch's: a named tuple of sorted values and their positions.
    """
    if isinstance(kind, bool):  # torch's second parameter
        kind, options["descending"] = None, kind
    if get_immutable() and "dim" not in options:
        return sorting.sort(self, axis, descending=options.get("descending", False))
    if "dim" in options or "descending" in options:
        return sorting.sort(self, **{"dim": axis} | options)
    assign(self, ordering.sort(self, axis, kind, order, **options))
    return None


def _partition(self: Tensor, kth: Any, axis: int = -1, kind: str = "introselect", order: None = None) -> None:
    """Sort in place along ``axis``, which partitions at every position."""
    assign(self, ordering.partition(self, kth, axis, kind, order))


def _put(self: Tensor, *args: Any, **kwargs: Any) -> Any:
    """``x.put(indices, values)`` changes the elements at ``indices`` of the flattened tensor in place, as NumPy does.

    With ``accumulate`` it is torch's, `jitgrad.put`, which returns a new tensor.
    """
    is_torchs = (len(args) > 2 and isinstance(args[2], bool)) or not _TORCHS_PUT.isdisjoint(kwargs)
    return (put_of_torch if is_torchs else in_place.put)(self, *args, **kwargs)


def _argpartition(self: Tensor, kth: Any, axis: int | None = -1, kind: str = "introselect", order: None = None) -> Tensor:
    """``jitgrad.numpy.argpartition`` of this tensor."""
    return ordering.argpartition(self, kth, axis, kind, order)


def _choose(self: Tensor, choices: Any) -> Tensor:
    """``jitgrad.numpy.choose`` by this tensor."""
    return selection.choose(self, choices)


def _compress(self: Tensor, condition: Any, axis: int | None = None, out: Any = None) -> Tensor:
    """``jitgrad.numpy.compress`` of this tensor."""
    return ordering.compress(condition, self, axis, out)


install({
    "sort": _sort, "partition": _partition, "put": _put, "argpartition": _argpartition, "choose": _choose,
    "compress": _compress, "put_": in_place_of(put_of_torch),
})  # fmt: skip
