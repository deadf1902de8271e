"""Casts and arithmetic of float16 as compiled loops: NumPy converts each number by bit operations, in thirty times the time.

Processors convert eight numbers at once. Float16 operands are computed in float32 and rounded once, which is NumPy's
correctly rounded result for casts, ``+ - * /``, square roots and what only selects or compares (see
`jitgrad.eager.float16`); NaN's payload aside, nobody can tell which of the two computed a result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

from jitgrad.core.aval import Aval, Dtype
from jitgrad.core.dispatch import apply_op
from jitgrad.core.op import REGISTRY, Kind, OpDef
from jitgrad.eager.float16 import HALF, SINGLE, computes_as_numpy, in_kernels
from jitgrad.eager.loops import Loop, by_loop
from jitgrad.eager.run import loop_for


@cache
def _loop(op: OpDef, dtypes: tuple[Dtype, ...], numbers: tuple[bool, ...], out: Dtype) -> Loop | None:
    """The loop of ``op`` on operands of ``dtypes``, of which ``numbers`` are 0-d; None if NumPy's function is to stay."""
    if HALF not in (*dtypes, out) or not in_kernels() or REGISTRY.get(op.name) is not op:
        return None
    if any(d.kind != "b" and d not in (HALF, SINGLE) for d in (*dtypes, out)):
        return None
    if op.name == "astype":
        return Loop(op.name, partial(apply_op, op, dtype=out), dtypes, numbers) if {*dtypes, out} == {HALF, SINGLE} else None
    return Loop(op.name, partial(apply_op, op), dtypes, numbers) if computes_as_numpy(op, dtypes) else None


def by_own_loop(
    op: OpDef,
    avals: Sequence[Aval],
    attrs: Mapping[str, Any],
    out: Aval,
    function: Callable[..., Any],
    run: Callable[..., Any],
) -> Callable[..., Any]:
    """``function``, which computes ``op`` on arrays of ``avals`` by one call of NumPy, or ``run(ufunc, *arrays, out=...)`` once
    there is a loop: of float16, or of an op that is marked `one_loop` though NumPy has a function for it."""
    if op.kind is not Kind.ELEMENTWISE or not out.shape or (attrs and op.name != "astype"):
        return function
    dtypes = tuple([a.dtype for a in avals])
    loop = loop_for(op, avals, attrs)
    if loop is None:
        loop = _loop(op, dtypes, tuple([not a.shape for a in avals]), out.dtype)
    return function if loop is None else by_loop(loop, function, out, run)
