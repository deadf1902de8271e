"""Functions that apply one op to a tensor, in eager execution: by its plan at once.

``x.reshape(2, -1)`` and ``x.sum(1)`` work out the attributes of an op from their arguments and the shape, which takes
longer than the op on a small array. They depend on the aval and the arguments alone, so the plan is kept for these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

from jitgrad.core.aval import Aval
from jitgrad.core.context import current_interpreter
from jitgrad.core.dispatch import plan_for, run_plan
from jitgrad.core.ir import Value
from jitgrad.core.op import OpDef
from jitgrad.core.plan import OpPlan
from jitgrad.core.tensor import Tensor

_P = ParamSpec("_P")
_R = TypeVar("_R")

_MOST = 2048  # plans of a function; a program with more shapes than that starts again
_DEPTH = 3  # frames between the tape's record and the caller of the function
_PLAIN = frozenset({int, bool, type(None)})
_ndarray = np.ndarray
_other_interpreter = current_interpreter.other


class OpListing:
    """The interpreter that lists the ops a function applies, on tensors without data."""

    tracing = True
    device = "cpu"
    generator_states: tuple[Any, ...] = ()

    def __init__(self) -> None:
        self.applied: list[tuple[OpDef, tuple[Any, ...], Mapping[str, Any]]] = []
        self.made: dict[int, tuple[OpDef, tuple[Any, ...], Mapping[str, Any]]] = {}  # by the ids of results
        self._results: list[Tensor] = []  # whose ids are theirs as long as this exists

    def apply(self, op: OpDef, operands: tuple[Any, ...], attrs: Mapping[str, Any]) -> Tensor:
        expected = op.abstract([x.aval for x in operands], attrs)
        assert isinstance(expected, Aval)
        out = Tensor(Value(expected))
        self.applied.append((op, operands, attrs))
        self.made[id(out)] = self.applied[-1]
        self._results.append(out)
        return out

    def steps(self, start: Tensor, end: Tensor) -> list[tuple[OpDef, Mapping[str, Any]]]:
        """The ops that lead from ``start`` to ``end``, each of one operand."""
        found: list[tuple[OpDef, Mapping[str, Any]]] = []
        while end is not start:
            op, (before,), attrs = self.made[id(end)]
            found.append((op, attrs))
            end = before
        return found[::-1]


def single_op(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """``function``, which applies ops to its first argument, and looks at no data and at no state.

    Where that is one op, which has a plan, later calls run the plan.
    """
    known: dict[Any, OpPlan | None] = {}

    @wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        x = args[0] if args else None
        if type(x) is Tensor and type(x._data) is _ndarray and _other_interpreter() is None:
            others = args[1:]
            try:
                plan = known[single_op_key(x, others, kwargs)]
            except KeyError:
                plan = _prepared(known, function, x, others, kwargs)
            except TypeError:  # a list among the arguments
                plan = None
            if plan is not None:
                out = run_plan(plan, (x,), [x._data], _DEPTH)
                if out is not None:
                    return out  # type: ignore[return-value]
        return function(*args, **kwargs)

    return call


def listed_ops(
    function: Callable[..., Any], x: Tensor, others: Any, kwargs: Mapping[str, Any]
) -> tuple[OpListing, Tensor, Any] | None:
    """The ops that ``function`` applies to a tensor like ``x``, that tensor, and the result; None if a list of ops is not
    all of it, or arguments are no keys."""
    if not all(map(_is_key, (*others, *kwargs.values()))):
        return None
    listing: Any = OpListing()
    token = current_interpreter.set(listing)
    try:
        stand_in = Tensor(Value(x.aval))
        return listing, stand_in, function(stand_in, *others, **kwargs)
    except Exception:  # what is wrong, and what needs more than a list of ops, shows without it
        return None
    finally:
        current_interpreter.reset(token)


def single_plan(listed: tuple[OpListing, Tensor, Any], x: Tensor) -> OpPlan | None:
    """The plan of the only one of the `listed_ops`, for ``x``; None if there are others, or none has a plan."""
    listing, stand_in, result = listed
    if len(listing.applied) != 1 or not isinstance(result, Tensor) or result is stand_in:
        return None
    op, operands, attrs = listing.applied[0]
    return plan_for(op, (x,), attrs) if len(operands) == 1 and operands[0] is stand_in else None


def _prepared(
    known: dict[Any, OpPlan | None], function: Callable[..., Any], x: Tensor, others: Any, kwargs: Mapping[str, Any]
) -> OpPlan | None:
    """The plan of the only op that ``function`` applies, remembered; None if there is none."""
    if (listed := listed_ops(function, x, others, kwargs)) is None:
        return None
    plan = single_plan(listed, x)
    if len(known) >= _MOST:
        known.clear()
    known[single_op_key(x, others, kwargs)] = plan  # with the aval that the plan keeps alive
    return plan


def single_op_key(x: Tensor, others: Any, kwargs: Mapping[str, Any]) -> Any:
    """What distinguishes calls with these arguments: values and types, for ``1 == 1.0``."""
    key = (id(x._aval or x.aval), others, *map(type, others))
    if kwargs:
        key += (*kwargs.items(), *map(type, kwargs.values()))
        others = (*others, *kwargs.values())
    for other in others:
        if type(other) is tuple:
            key += (*map(type, other),)
    return key


def _is_key(x: Any) -> bool:
    """Whether equal arguments of the type of ``x`` mean the same."""
    return type(x) in _PLAIN or (type(x) is tuple and all(type(n) is int for n in x))
