"""torch.autocast, which computes in the dtypes that tensors have."""

from __future__ import annotations

from contextlib import ContextDecorator
from typing import Any


class autocast(ContextDecorator):  # torch's name
    """Changes nothing: every op computes in the dtype of its operands, and no precision is lost.

    Programs with mixed precision run, with the results of full precision. ``model.half()`` converts for good.
    """

    def __init__(
        self, device_type: str = "cuda", dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        self.device_type = device_type
        self.dtype: Any = dtype
        self.enabled = enabled

    def __enter__(self) -> autocast:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """False: no op is computed in another dtype."""
    return False
