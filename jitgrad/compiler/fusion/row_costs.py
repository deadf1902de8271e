"""Whether a loop over rows would compute too much once per row, where no vectors do it."""

from __future__ import annotations

from math import prod

from jitgrad.compiler.cost import expensive
from jitgrad.compiler.fusion.axis_maps import NONE, identity
from jitgrad.compiler.fusion.group import Group
from jitgrad.compiler.tuning import Tuning
from jitgrad.core.op import Kind


def costs_much_per_row(group: Group, tuning: Tuning) -> bool:
    """Whether a function of each row's sum, say, should rather be a kernel over all rows.

    An exponential of one number takes as long as one of a whole vector. Rows that are short enough
    to be lanes of vectors have none of this cost. A group that calls functions for every element may
    keep these values in cache from one sweep of a row to the next, and stays together.
    """
    split = group.schedule.split
    if not split or split == len(group.sizes):
        return False
    rows, length = prod(group.sizes[:split]), prod(group.sizes[split:])
    once = identity(split)
    itemsize, costly = 0, 0
    for node in group.nodes:
        if node.op.kind is not Kind.ELEMENTWISE or id(node) in group.schedule.epilogue or not expensive(node.op):
            continue
        if tuple(axis for axis in group.axis_maps[id(node)] if axis != NONE) != once:
            return False
        costly += 1
        itemsize = max(itemsize, node.outs[0].aval.dtype.itemsize)
    row_bytes = length * itemsize
    lanes = row_bytes <= 2 * tuning.vector_bytes
    return not lanes and row_bytes < costly * tuning.row_bytes_per_function and rows * costly >= tuning.min_functions_of_rows
