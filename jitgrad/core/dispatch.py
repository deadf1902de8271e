"""`apply_op`, the one door of every op: the interpreter runs it, and the tape records it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from jitgrad.core.aval import Aval, aval_of_scalar
from jitgrad.core.context import current_interpreter
from jitgrad.core.errors import OperandError, class_name
from jitgrad.core.observed_frames import go_on, is_own, pause
from jitgrad.core.op import REGISTRY, OpDef
from jitgrad.core.plan import MAX_PLANS, OpPlan
from jitgrad.core.tape_node import record, record_planned
from jitgrad.core.tensor import Tensor, check_supported

_other_interpreter = current_interpreter.other
_ndarray = np.ndarray
_new = object.__new__
# Makes the plan of an op on operands, or None; the eager interpreter registers it.
PlanMaker = Callable[[OpDef, tuple[Any, ...], Mapping[str, Any]], OpPlan | None]


# The operands of an op as it is to take them; the same tuple if they stay as they are.
Conversion = Callable[[OpDef, tuple[Any, ...], Mapping[str, Any]], tuple[Any, ...]]


class _Registered:
    plan_maker: PlanMaker
    conversion: Conversion | None = None


def convert_operands_by(conversion: Conversion | None) -> None:
    """Let ``conversion`` see the operands of each op before it runs; None: ops promote them by their own rules, NumPy's."""
    _Registered.conversion = None if conversion is None else staticmethod(conversion)
    for op in REGISTRY.values():
        op.plans.clear()


def conversion_in_force() -> Conversion | None:
    """What `convert_operands_by` was given last."""
    return _Registered.conversion


def make_plans_by(maker: PlanMaker) -> None:
    """Let ``maker`` make plans."""
    _Registered.plan_maker = staticmethod(maker)


def apply_op(op: OpDef, *operands: Any, **attrs: Any) -> Any:
    """Apply ``op`` to Tensors, arrays and numbers, and record it on the tape.

    Attributes are exactly the keywords given here. Nothing is read from the caller's frame or from
    a closure, so any difference between two calls is a difference between their TraceNodes.

    Returns:
        A Tensor, or a tuple of Tensors where ``op.multiple``.

    Raises:
        OperandError: an operand is no tensor, array or number.
        ShapeError, DtypeError: the operands do not fit together.
    """
    if _other_interpreter() is None:
        planned = _apply_planned(op, operands, attrs)
        if planned is not None:
            return planned
    if _Registered.conversion is not None:
        operands = _Registered.conversion(op, operands, attrs)
    paused = pause() if is_own(op) else None
    try:
        result = current_interpreter.get().apply(op, operands, attrs)
        record(op, operands, attrs, result)
    finally:
        go_on(paused)
    return result


def _apply_planned(op: OpDef, operands: tuple[Any, ...], attrs: Mapping[str, Any]) -> Tensor | None:
    """The result of ``op`` by its plan for these operands; None if there is none."""
    key: list[Any] = []
    arrays: list[Any] = []
    for x in operands:
        if type(x) is Tensor:
            data = x._data
            if type(data) is not _ndarray:
                return None
            key.append(id(x._aval or x.aval))
            arrays.append(data)
        else:
            key.append(type(x))
            arrays.append(x)
    if attrs:
        key += attrs.items()
        key += map(type, attrs.values())
    try:
        plan = op.plans[tuple(key)]
    except KeyError:
        plan = _new_plan(op, tuple(key), operands, attrs)
    except TypeError:  # an attribute is no key
        return None
    return None if plan is None else run_plan(plan, operands, arrays)


def plan_for(op: OpDef, operands: tuple[Any, ...], attrs: Mapping[str, Any]) -> OpPlan | None:
    """A new plan, which is remembered; None if there is none."""
    convert = _Registered.conversion
    if convert is not None and convert(op, operands, attrs) is not operands:
        plan = None
    else:
        plan = _Registered.plan_maker(op, operands, attrs)
    if len(op.plans) >= MAX_PLANS:
        op.plans.clear()
    if plan is not None:
        kinds = [type(x) if plan.number == k else id(plan.avals[k]) for k, x in enumerate(operands)]
        op.plans[*kinds, *attrs.items(), *map(type, attrs.values())] = plan
    return plan


def _new_plan(op: OpDef, key: tuple[Any, ...], operands: tuple[Any, ...], attrs: Mapping[str, Any]) -> OpPlan | None:
    """`plan_for`; that there is none is remembered, too, by the ``key``."""
    plan = plan_for(op, operands, attrs)
    if plan is None and len(op.plans) < MAX_PLANS:
        op.plans[key] = None
    return plan


def planned(op: OpDef, key: tuple[Any, ...], operands: tuple[Any, ...]) -> OpPlan | None:
    """The plan of ``op`` on ``operands``, without attributes, by its ``key``; None if there is none."""
    try:
        known: OpPlan | None = op.plans[key]
        return known
    except KeyError:
        return _new_plan(op, key, operands, _NO_ATTRS)


_NO_ATTRS: Mapping[str, Any] = {}


def run_plan(plan: OpPlan, operands: tuple[Any, ...], arrays: list[Any], depth: int = 4) -> Tensor | None:
    """The result of ``plan`` on ``operands``, whose data are ``arrays``; None if it is to be computed in another way.

    ``depth`` is that of `record_planned`; by default the caller's caller's caller may be the user.
    """
    number = plan.number
    if number >= 0:
        x = plan.numbers.get(arrays[number])
        if x is None and (x := plan.convert(arrays[number])) is None:
            return None
        arrays[number] = x
    try:
        data = plan.function(*arrays)
    except RuntimeError:  # another thread is within NumPy's context
        return None
    out = _new(Tensor)
    out._data = data
    out._aval = plan.out
    out._requires_grad = False
    out._grad = out.grad_fn = out._hooks = out._view = out._memory = None
    out._out_index = out._address = 0
    if plan.op.views:
        share_view(plan, operands[0], out)
    for x in operands:
        if type(x) is Tensor and x._requires_grad:
            record_planned(plan, operands, out, depth)
            break
    return out


def share_view(plan: OpPlan, x: Tensor, out: Tensor) -> None:
    """Note that ``out``, the result of a view op on ``x``, shares its memory, if it does."""
    data, base = x._data, out._data.base
    if base is None and out._data is not data:
        return
    if out._data is data or base is data or base is data.base or np.may_share_memory(out._data, data):
        storage = out._memory = x._memory or x._storage
        storage.share_through(x, out, plan.view_steps)


def aval_of(op: OpDef, x: Any) -> Aval:
    """The aval of operand ``x``. Raises OperandError if no op can take it."""
    if isinstance(x, Tensor):
        return x.aval
    if isinstance(x, (bool, int, float, complex)) and not isinstance(x, np.generic):
        return aval_of_scalar(x)
    if isinstance(x, (np.ndarray, np.generic)):
        return Aval(x.shape, check_supported(op.name, x.dtype))
    raise OperandError(
        f"{op.name}: operand of type {class_name(x)} is neither tensor, array nor number: {str(x)[:60]!r}. "
        "Convert it with jitgrad.tensor(...)"
    )
