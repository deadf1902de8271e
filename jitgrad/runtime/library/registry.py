"""The library ops that compiled programs compute with machine code, or on several threads, in place of NumPy's function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from jitgrad.core.aval import Aval
from jitgrad.core.op import OpDef
from jitgrad.runtime.library import argreduce, batches, cumsum, gather, running_position, scatter, searchsorted, topk

# Takes the Avals of the operands and the attributes, and returns the function for such operands, or None. That function
# takes the same arrays and attributes as the op's eager function and must return the same bits. For an op
# that `updates_first_operand` it also takes ``into``, the first operand, if it may change and return it.
Find = Callable[[Sequence[Aval], Mapping[str, Any]], Callable[..., Any] | None]


@dataclass(frozen=True, slots=True)
class _Kernel:
    """What computes an op. With fewer than ``min_size`` elements of operand ``sized_by``, NumPy is faster: it is done
    before arguments and threads are ready."""

    find: Find
    min_size: int = 0
    sized_by: int = 0


_KERNELS = {
    "argmax": _Kernel(argreduce.find_argmax, min_size=1 << 14),
    "argmin": _Kernel(argreduce.find_argmin, min_size=1 << 14),
    "argtopk": _Kernel(topk.find_argtopk, min_size=1 << 11),
    "cumulative_sum": _Kernel(cumsum.find_cumulative_sum, min_size=(1 << 12) + 1),
    "running_position": _Kernel(running_position.find_running_position, min_size=1 << 11),
    "searchsorted": _Kernel(searchsorted.find_searchsorted, min_size=1 << 11, sized_by=1),
    # these depend on more than a size: `jitgrad.runtime.library.indexed_access.pays`
    "gather": _Kernel(gather.find_gather),
    "index_add": _Kernel(scatter.find_index_add),
    "index_get": _Kernel(gather.find_index_get),
    "index_put": _Kernel(scatter.find_index_put),
    "index_put_add": _Kernel(scatter.find_index_put_add),
    "scatter_add": _Kernel(scatter.find_scatter_add),
    "take": _Kernel(gather.find_take),
    # NumPy's functions, on several threads
    **{op.name: _Kernel(partial(find, op)) for op, find in batches.FOUND_BY.items()},
}


def find_kernel(op: OpDef, operands: Sequence[Aval], attrs: Mapping[str, Any]) -> Callable[..., Any] | None:
    """The function that computes ``op`` for such operands faster than NumPy's; None: use that."""
    kernel = _KERNELS.get(op.name)
    if kernel is None or operands[kernel.sized_by].size < kernel.min_size:
        return None
    return kernel.find(operands, attrs)
