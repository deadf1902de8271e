"""torch's global switches, which programs set at their beginning."""

from __future__ import annotations

from jitgrad.core.errors import ArgumentError, shown


def set_float32_matmul_precision(precision: str) -> None:
    """Nothing: products of float32 are computed in float32, which is more exact than what the others allow.

    Raises ArgumentError unless ``precision`` is "highest", "high" or "medium".
    """
    if precision not in ("highest", "high", "medium"):
        raise ArgumentError(f"set_float32_matmul_precision: highest, high or medium, got {shown(precision)}")


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Nothing: results have the same bits in every run, whatever ``mode`` and ``warn_only`` are."""
