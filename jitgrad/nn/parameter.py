"""torch's module of `Parameter`."""

from __future__ import annotations

from jitgrad.nn.module import Parameter

__all__ = ["Parameter"]
