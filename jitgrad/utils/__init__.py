"""torch.utils: batches of data, and checkpoints of gradients; imports core, ops and autograd."""

from __future__ import annotations

from jitgrad.utils import checkpoint, data

__all__ = ["checkpoint", "data"]
