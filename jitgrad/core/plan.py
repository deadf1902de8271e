"""How an op runs eagerly on operands of known avals: prepared once, and found by their identity later.

On small tensors an op takes longer to prepare than to compute: the rules for shapes and dtypes, the choice of
a NumPy function, and what backward will need. All of it depends on the avals and attributes alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from jitgrad.core.aval import Aval, Dtype, is_differentiable
from jitgrad.core.op import OpDef

# define() examines this many operands of a variadic op. A vjp that reads the last of them reads all
# further ones.
LAST_COUNTED = 63
MAX_PLANS = 1024  # of one op; a program with more shapes than that starts again
_MAX_NUMBERS = 64
_FITS = 1 << 15  # a number nearer to 0 overflows in no floating dtype


class Recipe:
    """What backward of an op needs if certain operands have gradients, and how it runs on arrays.

    ``needed`` are the positions of the operands that it reads. ``rule`` is the compiled gradient, see
    `jitgrad.autograd.rules`; None before that is made, False if there is none. ``others`` are those for masked gradients
    and for single numbers, and before they are made the number of uses.
    """

    __slots__ = ("needed", "needs_out", "others", "plan", "rule", "uses")

    def __init__(self, plan: OpPlan | None, needed: tuple[int, ...], needs_out: bool) -> None:
        self.plan: OpPlan | None = plan
        self.needed: tuple[int, ...] = needed
        self.needs_out: bool = needs_out
        self.rule: Any = None
        self.uses: int = 0
        self.others: dict[Any, Any] = {}


class OpPlan:
    """An op on operands of certain avals, with certain attributes.

    ``function`` takes the arrays, a number in the dtype ``dtype``, and returns the array of ``out``. ``number`` is
    the position of the only Python number, or -1. The plan refers to the avals, so their ids stay theirs
    as long as it exists. ``in_place`` takes the arrays and one to write the result to, if that may be the first of them.
    """

    __slots__ = ("attrs", "avals", "dtype", "function", "in_place", "number", "numbers", "op", "out", "outs", "recipes",
                 "view_steps")  # fmt: skip

    def __init__(
        self,
        op: OpDef,
        avals: tuple[Aval, ...],
        attrs: Mapping[str, Any],
        out: Aval,
        function: Callable[..., np.ndarray[Any, Any]],
        number: int = -1,
        dtype: Dtype | None = None,
        in_place: Callable[..., Any] | None = None,
    ) -> None:
        self.op: OpDef = op
        self.avals: tuple[Aval, ...] = avals
        self.attrs: Mapping[str, Any] = attrs
        self.out: Aval = out
        self.outs: tuple[Aval, ...] = (out,)
        self.function: Callable[..., np.ndarray[Any, Any]] = function
        self.in_place: Callable[..., Any] | None = in_place
        self.view_steps: tuple[tuple[OpDef, Mapping[str, Any]], ...] = ((op, attrs),)  # of a result that is a view
        self.number: int = number
        self.dtype: Dtype | None = dtype
        self.numbers: dict[Any, np.ndarray[Any, Any]] = {}
        self.recipes: dict[int, Recipe | None] = {}  # by the operands with gradients, in bits below the first

    def convert(self, x: Any) -> np.ndarray[Any, Any] | None:
        """The number ``x`` as an array of ``dtype``; None if an int might not fit in it."""
        dtype = self.dtype
        if isinstance(x, int) and not 0 <= x < 128 and dtype.kind != "f":  # type: ignore[union-attr]
            return None
        if -_FITS < x < _FITS:
            found = np.asarray(x, dtype)
        else:
            try:
                with np.errstate(all="ignore"):
                    found = np.asarray(x, dtype)
            except OverflowError:
                return None
        # equal numbers other than zeros are the same number, for each plan takes one type of them
        if x and len(self.numbers) < _MAX_NUMBERS:
            self.numbers[x] = found
        return found


@lru_cache(maxsize=4096)
def recipe(op: OpDef, wanted: tuple[bool, ...], plan: OpPlan | None = None) -> Recipe | None:
    """What backward needs if the operands in ``wanted`` have gradients; None: no vjp would run."""
    vjp = op.vjp
    if vjp is None or (plan is not None and not is_differentiable(plan.out.dtype)):
        return None
    count = len(wanted)
    if not isinstance(vjp, tuple):
        saves = op.saves[0]
        if op.variadic and LAST_COUNTED in saves:
            saves = saves.union(range(LAST_COUNTED, count))
        return Recipe(plan, tuple([k for k in range(count) if k in saves]), op.saves_out[0])
    used = [k for k in range(count) if wanted[k] and vjp[k] is not None]
    if not used:
        return None
    needed = frozenset[int]().union(*[op.saves[k] for k in used])
    return Recipe(plan, tuple([k for k in range(count) if k in needed]), any([op.saves_out[k] for k in used]))
