"""torch.cuda.amp: the first names of autocast and GradScaler, for CUDA devices."""

from __future__ import annotations

from typing import Any

from jitgrad.amp import autocast as _any_autocast
from jitgrad.amp import custom_bwd, custom_fwd
from jitgrad.amp.grad_scaler import GradScaler as _AnyGradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


class autocast(_any_autocast):  # torch's name
    """``jg.autocast("cuda", ...)``."""

    def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> None:
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(_AnyGradScaler):
    """``jg.amp.GradScaler("cuda", ...)``."""

    def __init__(
        self,
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
