"""Random numbers written into the memory of a tensor, in eager execution: those that functions of `jitgrad.ops.random` give."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitgrad.core.context import current_interpreter, grad_enabled
from jitgrad.core.tensor import Tensor
from jitgrad.eager.numpy_errors import quietly
from jitgrad.ops.random import Generator, default_generator
from jitgrad.ops.random_numbers import NumberKind

_other_interpreter = current_interpreter.other
_PLAIN = frozenset({int, float})


def drawn(target: Tensor, kinds: dict[int, NumberKind], factor: Any, offset: Any, generator: Generator | None) -> bool:
    """Whether ``target`` holds ``factor`` times numbers of a kind plus ``offset`` now: only for numbers, on the host, without
    a history. ``kinds`` has a kind by the size of the dtype."""
    data = target._data
    if type(data) is not np.ndarray or _other_interpreter() is not None or data.dtype.kind != "f":
        return False
    if (target._requires_grad and grad_enabled.get()) or type(factor) not in _PLAIN or type(offset) not in _PLAIN:
        return False
    if not data.flags.writeable:
        return False
    known = (generator or default_generator)._known(data.shape, kinds[data.dtype.itemsize])
    if known is None:
        return False
    numbers = known._data
    if (factor, offset) != (1, 0):
        quietly(_scaled, numbers, data.dtype.type(factor), data.dtype.type(offset))
    np.copyto(data, numbers)
    (target._memory or target._storage).bump()
    return True


def _scaled(numbers: np.ndarray[Any, Any], factor: Any, offset: Any) -> None:
    np.multiply(numbers, factor, out=numbers)
    np.add(numbers, offset, out=numbers)
