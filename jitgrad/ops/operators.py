"""The arithmetic operators of Tensor: an op by its plan, at once, or the function that takes any operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jitgrad.core.context import current_interpreter
from jitgrad.core.errors import OperandError, class_name
from jitgrad.core.op import OpDef
from jitgrad.core.tape_node import record_planned
from jitgrad.core.tensor import Tensor

Binary = Callable[[Any, Any], Any]

_ARRAYS_OF = ("torch", "jax", "jaxlib", "tensorflow", "cupy")
_other_interpreter = current_interpreter.other
_ndarray = np.ndarray
_new = object.__new__


def is_operand(x: Any) -> bool:
    """Whether an operator takes ``x``; others are asked by Python whether they take a tensor.

    Raises:
        OperandError: ``x`` is an array of another library. Python's own error would name two classes "Tensor".
    """
    if isinstance(x, (Tensor, np.ndarray, np.generic, bool, int, float, complex)):
        return True
    if type(x).__module__.partition(".")[0] in _ARRAYS_OF:
        raise OperandError(f"an operator with a jitgrad tensor and a {class_name(x)}: convert it with jitgrad.tensor(...)")
    return False


def as_operand(x: Any) -> Any:
    """``x`` as an operand: a list or tuple of numbers is an array, as in NumPy; None if an operator does not take it."""
    if is_operand(x):
        return x
    if type(x) not in (list, tuple) or any(isinstance(part, Tensor) for part in x):
        return None
    try:
        array = np.asarray(x)
    except ValueError:
        return None
    return array if array.dtype.kind in "biufc" else None


def forward(function: Binary, op: OpDef | None = None) -> Binary:
    """``function(self, other)`` as an operator; ``op`` is what it applies, if it does nothing else."""
    if op is None:
        return lambda self, other: NotImplemented if (y := as_operand(other)) is None else function(self, y)
    plans = op.plans

    def operator(self: Tensor, other: Any) -> Any:
        # what apply_op does with a plan, without the calls in between
        if _other_interpreter() is None:
            a = self._data
            if type(other) is Tensor:
                plan = plans.get((id(self._aval or self.aval), id(other._aval or other.aval)))
                b = other._data
                if plan is not None and type(b) is _ndarray and type(a) is _ndarray:
                    try:
                        data = plan.function(a, b)
                    except RuntimeError:
                        return function(self, other)
                    out = _new(Tensor)
                    out._data = data
                    out._aval = plan.out
                    out._requires_grad = False
                    out._grad = out.grad_fn = out._hooks = out._view = out._memory = None
                    out._out_index = out._address = 0
                    if self._requires_grad or other._requires_grad:
                        record_planned(plan, (self, other), out, 2)
                    return out
            else:
                plan = plans.get((id(self._aval or self.aval), type(other)))
                if plan is not None and type(a) is _ndarray:
                    result = _with_number(plan, a, other)
                    if result is not None:
                        if self._requires_grad:
                            record_planned(plan, (self, other), result, 2)
                        return result
        return NotImplemented if (y := as_operand(other)) is None else function(self, y)

    return operator


def reflected(function: Binary, op: OpDef | None = None) -> Binary:
    """``function(other, self)`` as an operator."""
    if op is None:
        return lambda self, other: NotImplemented if (y := as_operand(other)) is None else function(y, self)
    plans = op.plans

    def operator(self: Tensor, other: Any) -> Any:
        if _other_interpreter() is None:
            plan = plans.get((type(other), id(self._aval or self.aval)))
            a = self._data
            if plan is not None and type(a) is _ndarray:
                out = _with_number(plan, a, other)
                if out is not None:
                    if self._requires_grad:
                        record_planned(plan, (other, self), out, 2)
                    return out
        return NotImplemented if (y := as_operand(other)) is None else function(y, self)

    return operator


def _with_number(plan: Any, array: np.ndarray[Any, Any], number: Any) -> Tensor | None:
    """The result of ``plan`` on an array and a Python number, whose place it knows; None if that does not fit."""
    b = plan.numbers.get(number)
    if b is None and (b := plan.convert(number)) is None:
        return None
    try:
        data = plan.function(array, b) if plan.number else plan.function(b, array)
    except RuntimeError:
        return None
    out = _new(Tensor)
    out._data = data
    out._aval = plan.out
    out._requires_grad = False
    out._grad = out.grad_fn = out._hooks = out._view = out._memory = None
    out._out_index = out._address = 0
    return out
