"""torch.amp: scaled gradients of losses, and autocast; imports core, ops, autograd, optim, device."""

from __future__ import annotations

from jitgrad.amp.autocast import autocast, custom_bwd, custom_fwd, is_autocast_enabled
from jitgrad.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_enabled"]
