"""What elementwise ops give where all that they read is zero: the elements around a value that was put into zeros."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from typing import NamedTuple

import numpy as np

from jitgrad.compiler.cost import expensive
from jitgrad.core.aval import Aval
from jitgrad.core.ir import Atom, Literal, TraceNode, Value
from jitgrad.eager.run import run_eagerly
from jitgrad.ops.arithmetic import MULTIPLY
from jitgrad.ops.comparison import WHERE


class _Known(NamedTuple):
    """A number; ``exact``: on every machine, which functions such as exp are not."""

    number: bool | int | float
    exact: bool


def zero_at_border(nodes: Iterable[TraceNode], zeros: Iterable[Value]) -> set[Value]:
    """Which results of the elementwise ``nodes``, in program order, certainly are 0 where ``zeros`` are.

    What else the nodes read may be anything there, NaN and infinities too.
    """
    known: dict[Atom, _Known] = {value: _Known(_zero(value), True) for value in zeros}
    for node in nodes:
        if node.out not in known:
            found = _result(node, [_read(atom, known) for atom in node.ins])
            if found is not None:
                known[node.out] = found
    return {atom for atom, k in known.items() if isinstance(atom, Value) and k.exact and k.number == 0}


def _zero(value: Value) -> bool | int | float:
    zero: bool | int | float = value.aval.dtype.type(0).item()
    return zero


def _read(atom: Atom, known: dict[Atom, _Known]) -> _Known | None:
    if isinstance(atom, Literal):
        return None if isinstance(atom.value, complex) else _Known(atom.value, True)
    return known.get(atom)


def _result(node: TraceNode, operands: list[_Known | None]) -> _Known | None:
    if node.op is WHERE and operands[0] is not None and operands[0].exact:
        chosen = 1 if operands[0].number else 2
        return _rounded(node, operands[chosen])
    if node.op is WHERE and operands[1] is not None and operands[1] == operands[2]:
        return _rounded(node, operands[1])
    numbers = [x for x in operands if x is not None]
    if len(numbers) < len(operands):
        return None
    if node.out.aval.dtype.kind == "b" and not all(x.exact for x in numbers):
        return None  # a comparison of a rounded number may go either way
    arrays = [np.asarray(x.number, atom.aval.dtype) for x, atom in zip(numbers, node.ins, strict=True)]
    avals = [Aval((), atom.aval.dtype, atom.aval.weak) for atom in node.ins]
    with np.errstate(all="ignore"):
        number = run_eagerly(node.op, list(arrays), avals, dict(node.attrs)).item()
    if isinstance(number, complex) or not isfinite(number):
        return None
    exact = all(x.exact for x in numbers) and (not expensive(node.op) or number == 0)
    if node.op is MULTIPLY and any(x.exact and x.number == 0 for x in numbers):
        exact = True  # times a number that is finite, if not known to the last bit
    return _Known(number, exact)


def _rounded(node: TraceNode, operand: _Known | None) -> _Known | None:
    """``operand`` in the dtype of the result; one that overflows in it is not known."""
    if operand is None:
        return None
    with np.errstate(all="ignore"):
        number = np.asarray(operand.number).astype(node.out.aval.dtype).item()
    return _Known(number, operand.exact) if isfinite(number) else None
