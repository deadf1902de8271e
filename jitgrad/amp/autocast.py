"""torch.autocast, which computes in the dtypes that tensors have."""

from __future__ import annotations

from contextlib import ContextDecorator
from typing import Any

from jitgrad.core.errors import ArgumentError


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


def custom_fwd(forward: Any = None, *, device_type: str = "cuda", cast_inputs: Any = None) -> Any:
    """A decorator of ``Function.forward`` that changes nothing, as autocast does: ``@custom_fwd(device_type="cuda")``.

    Raises ArgumentError for ``cast_inputs``, which would compute in another dtype.
    """
    if cast_inputs is not None:
        raise ArgumentError(
            f"custom_fwd: cast_inputs={cast_inputs}: autocast changes no dtype; convert the arguments with .to(dtype)"
        )
    return forward if forward is not None else lambda function: function


def custom_bwd(backward: Any = None, *, device_type: str = "cuda") -> Any:
    """A decorator of ``Function.backward`` that changes nothing, as autocast does."""
    return backward if backward is not None else lambda function: function
