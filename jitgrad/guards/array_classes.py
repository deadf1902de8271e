"""Questions for the class of an array or a number for which a trace has a tensor: eager execution answers otherwise.

The trace notes that the class of an array was asked for. The first call of its program is then checked, whatever the option
``check`` says: code that only converts what it takes gives the same results, other code runs eagerly. Where the class of a
number is asked for, the function is traced with the number.
"""

from __future__ import annotations

from typing import Any

from jitgrad.core.context import current_interpreter
from jitgrad.core.tensor import Tensor


def number_behind(value: Any) -> Any:
    """A number like the one for which the tensor ``value`` stands; None if it stands for none."""
    like_number = getattr(current_interpreter.get(), "like_number", None)
    return like_number(value) if like_number is not None and type(value) is Tensor else None


def _behind(value: Any) -> Any:
    """A number or an array like that which eager execution may have for ``value``; None if it has a tensor, or ``value``."""
    if (number := number_behind(value)) is not None or type(value) is not Tensor:
        return number
    orders = current_interpreter.get().orders
    return orders.array_of(value) if orders is not None else None


def class_was_asked(value: Any) -> None:
    """Note a question that the array or number behind ``value`` answers otherwise than a tensor."""
    if number_behind(value) is not None:
        current_interpreter.get().need_class(value)  # type: ignore[attr-defined]
    elif _behind(value) is not None:
        current_interpreter.get().orders.ask_class()


def class_of_result_was_asked() -> None:
    """Note a question for something that is not known: what was computed, say."""
    if (need := getattr(current_interpreter.get(), "need_class", None)) is not None:
        need(None)


def instance_was_asked(value: Any, cls: type) -> None:
    """Note ``isinstance(value, cls)``."""
    if (behind := _behind(value)) is not None and isinstance(behind, cls) != isinstance(value, cls):
        class_was_asked(value)


def attribute_was_asked(value: Any, name: Any) -> None:
    """Note ``hasattr(value, name)``, or a read of the attribute that may do without it."""
    if isinstance(name, str) and (behind := _behind(value)) is not None and hasattr(behind, name) != hasattr(Tensor, name):
        class_was_asked(value)
