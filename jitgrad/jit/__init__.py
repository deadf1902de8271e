"""A decorated function: signature, traces, programs, fast call; imports everything below it."""

from __future__ import annotations

from typing import Final

__all__ = ["Final"]  # torch.jit's name: an attribute that is constant, which @jit guards like any other
