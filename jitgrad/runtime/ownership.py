"""Whether a tensor is the only owner of its memory, so that a result may be written over it."""

from __future__ import annotations

from collections.abc import Iterable
from sys import getrefcount

import numpy as np

from jitgrad.core.tensor import Donated, Tensor
from jitgrad.eager.buffer_pool import POOL


def _references_of_one_owner() -> tuple[int, int]:
    """Reference counts in `is_unique_owner` of an array that only a tensor holds, and of its base.

    They are measured: whether arguments and local names count depends on the Python version.
    """
    tensor = Tensor(np.empty(2, np.uint8)[:1])
    data = tensor._data
    base = data.base
    return getrefcount(data), getrefcount(base)


_OF_DATA, _OF_BASE = _references_of_one_owner()


def is_unique_owner(tensor: Tensor) -> bool:
    """Whether ``tensor``'s memory is writable, and no other tensor, array or buffer refers to it.

    A view of a pool block or of an array refers directly to that, however many views there were
    between. Memory that does not belong to an array has other owners.
    """
    data = tensor._data
    if type(data) is not np.ndarray:
        return False  # views of device memory are not counted
    if getrefcount(data) != _OF_DATA or not data.flags.writeable:
        return False
    base = data.base
    if base is None:
        return True
    if type(base) is not np.ndarray or base.base is not None:
        return False
    return getrefcount(base) == _OF_BASE + POOL.holds(base)


def invalidate(tensors: Iterable[Tensor], donated: Donated) -> None:
    """Replace the data of ``tensors`` by ``donated``: from now on every use of it is an error."""
    for tensor in tensors:
        tensor._data = donated
        tensor._address = 0
