"""torch's common dtype of mixed operands: tensors with axes decide, and ints become the default float dtype.

Where NumPy's promotion gives another dtype, the operands are converted before the op runs, by nodes of their own. So no
rule of an op, no pass and no kernel knows of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from jitgrad.core.aval import Aval, Dtype, complex_dtype_of
from jitgrad.core.config import get_default_dtype
from jitgrad.core.dispatch import apply_op, aval_of, convert_operands_by
from jitgrad.core.errors import OperandError
from jitgrad.core.op import Kind, OpDef
from jitgrad.core.tensor import Tensor
from jitgrad.ops import movement, reduce
from jitgrad.ops.arithmetic import ASTYPE
from jitgrad.ops.comparison import WHERE
from jitgrad.ops.joining import CONCAT

_CATEGORY = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}
_SUMS = frozenset({movement.SUM, reduce.PROD, reduce.CUMULATIVE_SUM})
_INT64 = np.dtype(np.int64)


def common_dtype(avals: Sequence[Aval]) -> Dtype:
    """torch's result type: of tensors with axes, then without, then numbers; a later group counts if its category is higher.

    Source: "Tensor Attributes", section torch.dtype, of torch's documentation.
    """
    groups: tuple[list[Dtype], ...] = ([], [], [])
    for a in avals:
        groups[2 if a.weak else 1 if a.ndim == 0 else 0].append(_of_number(a.dtype) if a.weak else a.dtype)
    dtypes = [_joined(group) for group in groups if group]
    found = dtypes[0]
    for dtype in dtypes[1:]:
        if _CATEGORY[dtype.kind] > _CATEGORY[found.kind]:
            found = complex_dtype_of(found) if (found.kind, dtype.kind) == ("f", "c") else dtype
    return found


def _of_number(dtype: Dtype) -> Dtype:
    default = get_default_dtype()
    return complex_dtype_of(default) if dtype.kind == "c" else default if dtype.kind == "f" else dtype


def _joined(dtypes: Sequence[Dtype]) -> Dtype:
    """The dtype of the highest category; within one category, that which holds the values of all."""
    highest = max(_CATEGORY[d.kind] for d in dtypes)
    return np.result_type(*(d for d in dtypes if _CATEGORY[d.kind] == highest))


@lru_cache(maxsize=4096)
def _wanted(op: OpDef, keys: tuple[tuple[Dtype, bool, bool], ...], attrs: tuple[Any, ...], default: Dtype) -> Dtype | None:
    """The dtype to which operands are converted; None where NumPy's rule gives torch's dtype, or is no promotion.

    ``keys``: dtype, whether it is weak, and whether it has no axes, of each operand; ``default``: what `_of_number` reads.
    """
    avals = [Aval(() if scalar else (1,), dtype, weak) for dtype, weak, scalar in keys]
    if op in _SUMS:
        return _INT64 if avals[0].dtype.kind == "u" else None
    if op is CONCAT:
        dtype = common_dtype(avals)
        return None if all(a.dtype == dtype for a in avals) else dtype
    computed = op.dtypes(avals, **dict(attrs))[0]
    if op is WHERE:
        avals, computed = avals[1:], computed[1:]
    if len(set(computed)) != 1 or (op is not WHERE and all(a.weak for a in avals)):
        return None
    dtype = common_dtype(avals)
    if computed[0].kind in "fc" and dtype.kind in "biu":
        dtype = default
    return None if dtype == computed[0] else dtype


def converted(op: OpDef, operands: tuple[Any, ...], attrs: Mapping[str, Any]) -> tuple[Any, ...]:
    """The ``operands`` as ``op`` takes them for torch's result; the same tuple where that is NumPy's."""
    if op.kind is not Kind.ELEMENTWISE and op is not CONCAT and op not in _SUMS:
        return operands
    if any(isinstance(x, np.generic) for x in operands):  # as torch's, Python's numbers
        operands = tuple([x.item() if isinstance(x, (np.floating, np.signedinteger)) else x for x in operands])
    try:
        avals = [aval_of(op, x) for x in operands]
        keys = tuple([(a.dtype, a.weak, not a.shape) for a in avals])
        dtype = _wanted(op, keys, tuple(attrs.items()) if op.kind is Kind.ELEMENTWISE else (), get_default_dtype())
    except (TypeError, ValueError, OperandError):  # the op reports what is wrong
        return operands
    if dtype is None:
        return operands
    first = 1 if op is WHERE else 0
    weak = not all(a.weak for a in avals[first:])  # numbers follow the others; alone they are in NumPy's dtypes
    return (*operands[:first], *(_as(x, a, dtype, weak) for x, a in zip(operands[first:], avals[first:], strict=True)))


def _as(x: Any, aval: Aval, dtype: Dtype, weak: bool) -> Any:
    if (aval.dtype == dtype and not aval.weak) or (aval.weak and weak):
        return x
    return apply_op(ASTYPE, x, dtype=dtype) if isinstance(x, Tensor) or not aval.weak else np.asarray(x, dtype)


def result_type(tensor1: Any, tensor2: Any) -> Dtype:
    """The dtype of ``tensor1 + tensor2``, of tensors or numbers."""
    return common_dtype([aval_of(WHERE, x) for x in (tensor1, tensor2)])


def promote_types(type1: Any, type2: Any) -> Dtype:
    """The dtype of the sum of a tensor of dtype ``type1`` and one of ``type2``."""
    return common_dtype([Aval((1,), np.dtype(dtype)) for dtype in (type1, type2)])


def install_promotion() -> None:
    """Let mixed operands have torch's common dtype, in the whole process."""
    convert_operands_by(converted)
