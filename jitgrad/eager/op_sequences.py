"""Functions that apply a few ops to tensors, in eager execution: by the plans of these ops at once.

``topk`` and ``hstack`` work out what to apply from their arguments and from shapes, which takes several times as long as
the ops on small arrays. It depends on avals and arguments alone, so the ops are listed once for them. Each has its plan and
its own node on the tape, as if the function had run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from math import copysign
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np

from jitgrad.core.aval import Aval, aval_of_array
from jitgrad.core.config import get_default_dtype
from jitgrad.core.context import creation_device, current_interpreter, grad_enabled
from jitgrad.core.dispatch import apply_op, aval_of, conversion_in_force, plan_for, run_plan
from jitgrad.core.ir import Value
from jitgrad.core.op import OpDef
from jitgrad.core.plan import OpPlan
from jitgrad.core.tensor import Tensor

_P = ParamSpec("_P")
_R = TypeVar("_R")

_MOST = 1024  # sequences of a function; a program with more shapes than that starts again
_MOST_NODES = 4
_DEPTH = 4  # frames between the tape's record and the caller of the function
_PLAIN = frozenset({int, str, bool, type(None)})
_NUMBERS = frozenset({int, float, bool})
_ndarray = np.ndarray
_other_interpreter = current_interpreter.other


class _Step(NamedTuple):
    """An op on values of a sequence, which are numbered; without a ``plan`` it goes through the interpreter."""

    op: OpDef
    plan: OpPlan | None
    operands: tuple[int, ...]
    attrs: Mapping[str, Any]


class _Listing:
    """The interpreter that lists the ops which a function applies, on tensors without data."""

    tracing = True
    device = "cpu"
    generator_states: tuple[Any, ...] = ()

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self.values: list[Any] = [*tensors]  # arguments, numbers and results, in the order of their first use
        self.numbers: dict[int, Any] = {}  # by their places among the values
        self.places: dict[int, int] = {id(x): k for k, x in enumerate(tensors)}
        self.steps: list[tuple[OpDef, tuple[int, ...], Mapping[str, Any]]] = []

    def apply(self, op: OpDef, operands: tuple[Any, ...], attrs: Mapping[str, Any]) -> Any:
        expected = op.abstract([aval_of(op, x) for x in operands], attrs)
        read = tuple([self._place(x) for x in operands])
        results = [Tensor(Value(a)) for a in ((expected,) if isinstance(expected, Aval) else expected)]
        self.steps.append((op, read, attrs))
        for out in results:
            self.places[id(out)] = len(self.values)
            self.values.append(out)
        return tuple(results) if op.multiple else results[0]

    def _place(self, x: Any) -> int:
        if type(x) in _NUMBERS:
            self.numbers[len(self.values)] = x
            self.values.append(x)
            return len(self.values) - 1
        return self.places[id(x)]  # a tensor of another origin has data, which may change


class OpSequence:
    """The ops of a function on tensors of certain avals, which this keeps alive, for their ids are its key."""

    __slots__ = ("avals", "constants", "kind", "line", "numbers", "outs", "results", "steps")

    def __init__(
        self,
        avals: tuple[Aval, ...],
        numbers: Mapping[int, Any],
        steps: tuple[_Step, ...],
        kind: Callable[[list[Tensor]], Any] | None,
        results: tuple[int, ...],
    ) -> None:
        self.avals: tuple[Aval, ...] = avals
        self.numbers: Mapping[int, Any] = numbers
        self.steps: tuple[_Step, ...] = steps
        self.kind: Callable[[list[Tensor]], Any] | None = kind  # makes the result of its parts; None of a single one
        self.results: tuple[int, ...] = results
        # The functions of the plans with the places of their operands, the numbers as arrays, which follow the tensors, and
        # the places and avals of results, which are no views: all that is needed where no gradient is recorded.
        self.line: tuple[tuple[Callable[..., Any], tuple[int, ...]], ...] = ()
        self.constants: tuple[Any, ...] = ()
        self.outs: tuple[tuple[int, Aval], ...] = ()
        self._write_line()

    def _write_line(self) -> None:
        makers: dict[int, OpPlan] = {}
        constants: dict[int, Any] = {}
        at = len(self.avals)
        for _, plan, places, _ in self.steps:
            if plan is None:
                return
            while at in self.numbers:
                at += 1
            if plan.number >= 0:
                x = plan.convert(self.numbers[places[plan.number]])
                if x is None or constants.setdefault(places[plan.number], x) is not x:
                    return
            makers[at] = plan
            at += 1
        if all([k in makers and not makers[k].op.views for k in self.results]):
            place = {k: j for j, k in enumerate((*range(len(self.avals)), *constants, *makers))}
            self.line = tuple([(plan.function, tuple([place[k] for k in ks])) for _, plan, ks, _ in self.steps if plan])
            self.constants = tuple(constants.values())
            self.outs = tuple([(place[k], makers[k].out) for k in self.results])

    def run(self, tensors: list[Tensor]) -> Any:
        """What the function returns for ``tensors``; None if it is to run itself."""
        if not any([x._requires_grad for x in tensors]) or not grad_enabled.get():
            if self.line:
                return self._run_line([x._data for x in tensors])
        elif len(self.steps) > _MOST_NODES:  # what ``function`` calls may be composed, and have one node for many ops
            return None
        values: list[Any] = tensors
        numbers = self.numbers
        for op, plan, places, attrs in self.steps:
            while len(values) in numbers:
                values.append(numbers[len(values)])
            operands = tuple([values[k] for k in places])
            if plan is None:
                out = apply_op(op, *operands, **attrs)
                if op.multiple:
                    values += out
                    continue
            else:
                out = run_plan(plan, operands, [x._data if type(x) is Tensor else x for x in operands], _DEPTH)
                if out is None:
                    return None
            values.append(out)
        results = self.results
        return values[results[0]] if self.kind is None else self.kind([values[k] for k in results])

    def _run_line(self, values: list[Any]) -> Any:
        """`run` on arrays."""
        values += self.constants
        try:
            for function, places in self.line:
                values.append(function(*[values[k] for k in places]))
        except RuntimeError:  # another thread is within NumPy's context
            return None
        results = [Tensor.of_result(values[k], out) for k, out in self.outs]
        return results[0] if self.kind is None else self.kind(results)


def op_sequence(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """``function``, which only applies ops to tensors among its arguments and in lists of them, and looks at no data and at
    no state; it returns one of these results, or a tuple of them."""
    known: dict[Any, OpSequence | bool] = {}  # True after one call, False where there is no sequence

    @wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        if _other_interpreter() is None and creation_device.get() is None:
            tensors: list[Tensor] = []
            key: list[Any] = [conversion_in_force(), get_default_dtype()]
            if _add_key(key, tensors, args) and (not kwargs or _add_key(key, tensors, kwargs.values(), kwargs)):
                found = known.get(tuple(key))
                if found is None or found is True:
                    found = _counted(known, key, found is None, function, args, kwargs)
                if found and (result := found.run(tensors)) is not None:  # type: ignore[union-attr]
                    return result  # type: ignore[no-any-return]
        return function(*args, **kwargs)

    return call


def _add_key(key: list[Any], tensors: list[Tensor], values: Any, names: Any = ()) -> bool:
    """Add what distinguishes calls with these arguments to ``key``, and tensors to ``tensors``; False without a key."""
    key += names
    for x in values:
        kind = type(x)
        if kind is Tensor:
            if type(x._data) is not _ndarray:
                return False
            key.append(id(x._aval or x.aval))
            tensors.append(x)
        elif kind in _PLAIN:
            key += (kind, x)
        elif kind is tuple or kind is list:
            key += (kind, len(x))
            if not _add_key(key, tensors, x):
                return False
        elif kind is float:
            if x - x != 0:  # NaN is unlike itself, and infinities are rare
                return False
            key += (kind, x if x else copysign(1.0, x), not x)
        elif isinstance(x, np.dtype):
            key.append(x)
        else:
            return False
    return True


def _counted(
    known: dict[Any, OpSequence | bool], key: list[Any], first: bool, function: Any, args: Any, kwargs: Any
) -> OpSequence | bool:
    """The sequence, which is made when a call comes back: listing the ops takes as long as a call."""
    if len(known) >= _MOST:
        known.clear()
    if first:
        known[tuple(key)] = True
        return False
    tensors: list[Tensor] = []
    made = _prepared(function, args, kwargs, tensors)
    key = key[:2]
    _add_key(key, tensors, args)
    if kwargs:
        _add_key(key, tensors, kwargs.values(), kwargs)
    known[tuple(key)] = made  # with the avals that the sequence keeps alive
    return made


def _prepared(function: Callable[..., Any], args: Any, kwargs: Any, tensors: list[Tensor]) -> OpSequence | bool:
    """The sequence of ``function`` on these arguments; False if a list of ops is not all of it. Adds tensors to ``tensors``."""
    stand_ins: list[Tensor] = []
    placed = [_standing_in(x, tensors, stand_ins) for x in args]
    named = {name: _standing_in(x, tensors, stand_ins) for name, x in kwargs.items()}
    listing: Any = _Listing(stand_ins)
    token = current_interpreter.set(listing)
    try:
        result = function(*placed, **named)
        parts = [result] if isinstance(result, Tensor) else list(result)
        places = tuple([listing.places[id(x)] for x in parts])
    except Exception:  # what is wrong, and what needs more than a list of ops, shows without it
        return False
    finally:
        current_interpreter.reset(token)
    if not listing.steps or type(result) is list:
        return False
    kind = None if isinstance(result, Tensor) else getattr(type(result), "_make", type(result))
    for x in tensors:
        x._aval = x.aval if x.aval.weak else aval_of_array(x._data)
    return OpSequence(tuple([x.aval for x in tensors]), listing.numbers, _planned(listing, tensors), kind, places)


def _standing_in(x: Any, tensors: list[Tensor], stand_ins: list[Tensor]) -> Any:
    """``x`` with tensors without data in place of tensors, which are added to ``tensors``."""
    if type(x) is Tensor:
        tensors.append(x)
        stand_ins.append(Tensor(Value(x.aval)))
        return stand_ins[-1]
    if type(x) in (list, tuple):
        return type(x)([_standing_in(part, tensors, stand_ins) for part in x])
    return x


def _planned(listing: _Listing, tensors: Sequence[Tensor]) -> tuple[_Step, ...]:
    """The listed steps with their plans, which are made for operands with data: those of zeros, in memory of one element."""
    values = [*listing.values]
    values[: len(tensors)] = tensors
    steps = []
    for op, places, attrs in listing.steps:
        for k in places:
            if isinstance(values[k], Tensor) and type(values[k]._data) is Value:
                aval = values[k].aval
                values[k] = Tensor(np.broadcast_to(np.zeros((), aval.dtype), aval.shape), aval if aval.weak else None)
        steps.append(_Step(op, plan_for(op, tuple([values[k] for k in places]), attrs), places, attrs))
    return tuple(steps)
