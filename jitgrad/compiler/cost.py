"""What an op costs beside reading its operands again: the weights that fusion and lowering decide
by."""

from __future__ import annotations

import ast
from functools import lru_cache

from jitgrad.core.op import OpDef, parsed_scalar

LEAST_GATHERED = 4  # bytes: smaller elements that are apart in memory are faster one by one than as vectors


def expensive(op: OpDef) -> bool:
    """Whether one evaluation costs more than reading the operand again: a call that is no single
    instruction."""
    return op.function is not None or bool(_calls(op.scalar or "0") - _CHEAP)


@lru_cache(maxsize=2048)
def _calls(scalar: str) -> frozenset[str]:
    """Names of the functions that an expression calls."""
    called = (n.func for n in ast.walk(parsed_scalar(scalar)) if isinstance(n, ast.Call))
    return frozenset(function.id for function in called if isinstance(function, ast.Name))


_CHEAP = frozenset(
    "abs sign minimum maximum floor ceil trunc rint copysign isnan isinf isfinite signbit reciprocal sqrt "
    "left_shift right_shift logical_xor".split()
)
