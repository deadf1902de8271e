"""``range`` as kernels are lowered: a place on the stack that counts up, which LLVM turns into a plain loop.

numba's own divides for the number of turns and can raise, so that most of a kernel's code before optimisation was its
loops. Import this module only when a kernel is compiled: it imports numba.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.core.errors import LoweringError
from numba.core.imputils import Registry

_I64 = ir.IntType(64)
_PLACE = ir.LiteralStructType([_I64, _I64, _I64])  # the next number, where to stop, the step
_NEXT, _STOP, _STEP = range(3)

registry = Registry("jitgrad ranges")


def _lowers(*key: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``registry.lower``, with a type that mypy can see."""
    return registry.lower(*key)  # type: ignore[no-any-return]


class PlaceModel(models.PrimitiveModel):  # type: ignore[misc]
    """A range and its iterator are both a pointer to the place."""

    def __init__(self, models_of_target: Any, kind: Any) -> None:
        super().__init__(models_of_target, kind, _PLACE.as_pointer())


def register_models(models_of_target: Any) -> None:
    """Make ``models_of_target`` represent ranges in this way."""
    models_of_target.register(types.RangeType, PlaceModel)
    models_of_target.register(types.RangeIteratorType, PlaceModel)


def _place(builder: Any, place: Any, field: int) -> Any:
    return cgutils.gep_inbounds(builder, place, 0, field)


@_lowers(range, types.int64)
def _to(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return _between(context, builder, signature, (_I64(0), *args))


@_lowers(range, types.int64, types.int64)
def _between(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return _by_steps(context, builder, signature, (*args, _I64(1)))


@_lowers(range, types.int64, types.int64, types.int64)
def _by_steps(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Raises LoweringError for a step that is no positive literal: such a range can raise, or count down."""
    step = args[_STEP]
    if not isinstance(step, ir.Constant) or step.constant < 1:
        raise LoweringError("range() can raise: its step has to be a positive literal")
    place = cgutils.alloca_once(builder, _PLACE)
    for field, value in enumerate(args):
        builder.store(value, _place(builder, place, field))
    return place


@_lowers("getiter", types.range_state64_type)
def _iterator(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return args[0]


@_lowers("iternext", types.range_iter64_type)
def _following(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """The pair of the next number and whether it is one of the range's."""
    number, stop, step = (builder.load(_place(builder, args[0], field)) for field in (_NEXT, _STOP, _STEP))
    builder.store(builder.add(number, step, flags=("nsw",)), _place(builder, args[0], _NEXT))
    pair = ir.Constant(context.get_value_type(signature.return_type), ir.Undefined)
    pair = builder.insert_value(pair, number, 0)
    return builder.insert_value(pair, builder.icmp_signed("<", number, stop), 1)

