"""How much work LLVM puts into a function: as much as pays for what runs it.

Compiling is most of a first call. Loops over arrays are worth all passes, and code that runs once a call is worth almost none.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Effort:
    """What LLVM does for one module.

    Attributes:
        name: identifies it among keys of the disk cache; "" for most kernels.
        interleaves: whether loops are interleaved and unrolled.
        few_passes: whether only those passes run that make registers of variables and simplify branches; no loop becomes
            vectors.
        level: of LLVM's code generator. At 0 it selects instructions one by one, and keeps no values in registers from one
            block to the next: a quarter of the time for object code. At 1 it takes 0.65 of the time.
    """

    name: str
    interleaves: bool = True
    few_passes: bool = False
    level: int = 3


LOOPS = Effort("")  # loops over arrays
SMALL_LOOPS = Effort("small", interleaves=False)  # loops over arrays that run little
TILES = Effort("tiles", interleaves=False, few_passes=True)  # loops whose vectors are written as such
BRANCHES = Effort("branches", interleaves=False, few_passes=True, level=1)  # tables of steps, and calls: no vectors, few loops
FEW_STEPS = Effort("steps", interleaves=False, few_passes=True, level=0)  # a few numbers: once a call, or once an array
