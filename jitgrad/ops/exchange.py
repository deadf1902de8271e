"""Tensors that share memory with those of other libraries."""

from __future__ import annotations

from typing import Any

import numpy as np

from jitgrad.core.errors import OperandError, class_name, shown
from jitgrad.core.tensor import Tensor
from jitgrad.device.cuda import cuda_device
from jitgrad.device.exchange import CUDA_DEVICE, array_from_dlpack
from jitgrad.ops.creation import asarray


def from_dlpack(x: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor that shares memory with ``x``, any object with ``__dlpack__`` on the CPU or the CUDA device."""
    if not hasattr(x, "__dlpack_device__"):
        raise OperandError(f"from_dlpack: {class_name(x)} has no __dlpack__, by which arrays are shared: {shown(x)}")
    if int(x.__dlpack_device__()[0]) == CUDA_DEVICE:
        return asarray(Tensor(array_from_dlpack(cuda_device(), x)), device=device, copy=copy)
    return asarray(np.from_dlpack(x), device=device, copy=copy)


def from_torch(x: Any) -> Tensor:
    """A ``torch.Tensor`` as a tensor that shares its memory, on the host or a CUDA device, without history.

    Raises:
        OperandError: it requires grad, which would get none, or its dtype is not known here.
    """
    if getattr(x, "requires_grad", False):
        raise OperandError("from_torch: no gradient flows from jitgrad to a torch.Tensor; give x.detach()")
    try:
        return from_dlpack(x)
    except (RuntimeError, BufferError, AttributeError) as error:
        dtype = getattr(x, "dtype", None)
        raise OperandError(f"from_torch: cannot share a {type(x).__name__} of dtype {dtype}: {error}") from None
