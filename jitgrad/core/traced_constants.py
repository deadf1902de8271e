"""Tensors of a trace that do not depend on its inputs, and so have contents.

A cache of C code such as ``functools.lru_cache`` keeps a mask that a function makes on its first
call. The trace cannot take it out again; the mask gets its contents when they are needed.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

import numpy as np

from jitgrad.core.context import current_interpreter
from jitgrad.core.ir import Atom, Literal, Value
from jitgrad.core.op import OpDef
from jitgrad.core.tensor import Tensor

_Maker = tuple[OpDef, tuple[Atom, ...], Mapping[str, Any], int]  # an op, its operands, and which result

_makers: weakref.WeakKeyDictionary[Value, np.ndarray[Any, Any] | _Maker] = weakref.WeakKeyDictionary()


def add_array(value: Value, array: np.ndarray[Any, Any]) -> None:
    """``value`` of a trace holds ``array``."""
    _makers[value] = array


def add_results(op: OpDef, atoms: tuple[Atom, ...], attrs: Mapping[str, Any], outs: tuple[Value, ...]) -> None:
    """``op`` makes ``outs`` of ``atoms``, if these are constants."""
    if all(type(atom) is not Value or atom in _makers for atom in atoms):
        for k, out in enumerate(outs):
            _makers[out] = (op, atoms, attrs, k)


def fill_constant(tensor: Any) -> bool:
    """Give a traced tensor its contents; False if they depend on what was traced."""
    value = tensor._data
    if type(value) is not Value or value not in _makers or tensor.grad_fn is not None:
        return False
    tensor._data = _computed(value)._data
    return True


def contents_of_constant(value: Value) -> tuple[np.ndarray[Any, Any], list[np.ndarray[Any, Any]]] | None:
    """The contents of ``value`` and the arrays that it is computed from; None if it depends on what is traced."""
    if value not in _makers:
        return None
    arrays = list[np.ndarray[Any, Any]]()
    return _computed(value, arrays)._data, arrays


def _computed(value: Value, arrays: list[np.ndarray[Any, Any]] | None = None) -> Tensor:
    """The Tensor that ``value`` stands for; the arrays that it is computed from are added to ``arrays``."""
    known: dict[Value, Tensor] = {}
    pending = [value]
    while pending:
        last = pending[-1]
        maker = _makers[last]
        if last in known:
            pass
        elif isinstance(maker, np.ndarray):
            known[last] = Tensor(maker.copy())
            if arrays is not None:
                arrays.append(maker)
        else:
            op, atoms, attrs, index = maker
            missing = [atom for atom in atoms if type(atom) is Value and atom not in known]
            if missing:
                pending.extend(missing)
                continue
            operands = tuple([x.operand if isinstance(x, Literal) else known[x] for x in atoms])
            result = current_interpreter.eager.apply(op, operands, attrs)
            known[last] = result[index] if op.multiple else result
        pending.pop()
    return known[value]
