"""Ops that users define: scalar functions that fuse, and opaque functions on arrays; imports core, ops."""

from __future__ import annotations

from jitgrad.ops.user.opaque import custom_op, no_gradient
from jitgrad.ops.user.scalar_op import elementwise

__all__ = ["custom_op", "elementwise", "no_gradient"]
