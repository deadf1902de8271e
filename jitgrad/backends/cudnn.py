"""torch's switches of cuDNN, which programs set at their beginning; jitgrad has no cuDNN, and reads none of them."""

from __future__ import annotations

enabled: bool = False
benchmark: bool = False  # kernels are chosen without trying several
deterministic: bool = True  # results have the same bits in every run
allow_tf32: bool = False  # products of float32 are computed in float32


def is_available() -> bool:
    """False: convolutions are jitgrad's own."""
    return False


def version() -> None:
    """None: there is no cuDNN."""
