"""Which library ops have machine code of our own in compiled programs, in place of NumPy's function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jitgrad.aval import Aval
from jitgrad.op import OpDef
from jitgrad.runtime import extremes, largest, scan, scatter, searching

# Each looks at operands (their Avals) and attributes, and gives what computes the op for such operands, or None. What it
# gives takes the same arrays and attributes as the op's eager function and must return the same bits.
Find = Callable[[Sequence[Aval], Mapping[str, Any]], Callable[..., Any] | None]

_FINDERS: dict[str, Find] = {
    "argmax": extremes.find_argmax,
    "argmin": extremes.find_argmin,
    "argtopk": largest.find_argtopk,
    "cumulative_sum": scan.find_cumulative_sum,
    "index_add": scatter.find_index_add,
    "index_put_add": scatter.find_index_put_add,
    "searchsorted": searching.find_searchsorted,
}


def substitute(op: OpDef, operands: Sequence[Aval], attrs: Mapping[str, Any]) -> Callable[..., Any] | None:
    """What computes ``op`` for operands that look like ``operands`` instead of NumPy; None if nothing does."""
    find = _FINDERS.get(op.name)
    return None if find is None else find(operands, attrs)
