"""Which library ops have machine code of our own in compiled programs, in place of NumPy's function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jitgrad.core.aval import Aval
from jitgrad.core.op import OpDef
from jitgrad.runtime.library import argreduce, cumsum, gather, scatter, searchsorted, topk

# Each looks at operands (their Avals) and attributes, and gives what computes the op for such operands, or None. What it
# gives takes the same arrays and attributes as the op's eager function and must return the same bits. What stands in for an
# op of `jitgrad.compiler.memory.donation.UPDATES` also takes ``into``, the first operand, if it may be changed and returned.
Find = Callable[[Sequence[Aval], Mapping[str, Any]], Callable[..., Any] | None]

_FINDERS: dict[str, Find] = {
    "argmax": argreduce.find_argmax,
    "argmin": argreduce.find_argmin,
    "argtopk": topk.find_argtopk,
    "cumulative_sum": cumsum.find_cumulative_sum,
    "gather": gather.find_gather,
    "index_add": scatter.find_index_add,
    "index_get": gather.find_index_get,
    "index_put": scatter.find_index_put,
    "index_put_add": scatter.find_index_put_add,
    "searchsorted": searchsorted.find_searchsorted,
    "scatter_add": scatter.find_scatter_add,
    "take": gather.find_take,
}


def substitute(op: OpDef, operands: Sequence[Aval], attrs: Mapping[str, Any]) -> Callable[..., Any] | None:
    """What computes ``op`` for operands that look like ``operands`` instead of NumPy; None if nothing does."""
    find = _FINDERS.get(op.name)
    return None if find is None else find(operands, attrs)
