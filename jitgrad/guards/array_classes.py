"""Questions for the class of an array among the arguments, for which a trace has a tensor: eager execution answers otherwise.

The trace notes that one was asked. The first call of its program is then checked, whatever the option ``check`` says: code
that only converts what it takes gives the same results, other code runs eagerly.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jitgrad.core.context import current_interpreter
from jitgrad.core.tensor import Tensor


def array_behind(value: Any) -> np.ndarray[Any, Any] | None:
    """The argument that is an array, if the tensor ``value`` stands for it."""
    orders = current_interpreter.get().orders
    return orders.array_of(value) if orders is not None and type(value) is Tensor else None


def class_was_asked(value: Any) -> None:
    """Note a question that the array behind ``value`` answers otherwise than a tensor."""
    if array_behind(value) is not None:
        current_interpreter.get().orders.asked_class = True


def instance_was_asked(value: Any, cls: type) -> None:
    """Note ``isinstance(value, cls)``."""
    if (array := array_behind(value)) is not None and isinstance(array, cls) != isinstance(value, cls):
        class_was_asked(value)


def attribute_was_asked(value: Any, name: Any) -> None:
    """Note ``hasattr(value, name)``, or a read of the attribute that may do without it."""
    if isinstance(name, str) and (array := array_behind(value)) is not None and hasattr(array, name) != hasattr(Tensor, name):
        class_was_asked(value)
