"""Whether a tensor is the only owner of its memory, so that a result may be written over it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from jitgrad.core.references import has_owners
from jitgrad.core.tensor import Donated, Tensor
from jitgrad.eager.buffer_pool import POOL


def is_unique_owner(tensor: Tensor) -> bool:
    """Whether ``tensor``'s memory is writable, and no other tensor, array or buffer refers to it.

    A view of a pool block or of an array refers directly to that, however many views there were
    between. Memory that does not belong to an array has other owners.
    """
    data = [tensor._data]
    if type(data[0]) is not np.ndarray:
        return False  # views of device memory are not counted
    if not has_owners(data, 1) or not data[0].flags.writeable:
        return False
    base = [data[0].base]
    if base[0] is None:
        return True
    if type(base[0]) is not np.ndarray or base[0].base is not None:
        return False
    return has_owners(base, 1 + POOL.holds(base[0]))


def invalidate(tensors: Iterable[Tensor], donated: Donated) -> None:
    """Replace the data of ``tensors`` by ``donated``: from now on every use of it is an error."""
    for tensor in tensors:
        tensor._data = donated
        tensor._address = 0
