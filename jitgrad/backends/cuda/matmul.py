"""torch's switches of matrix products on a GPU, which programs set at their beginning; nothing reads them."""

from __future__ import annotations

allow_tf32: bool = False  # products of float32 are computed in float32
allow_fp16_reduced_precision_reduction: bool = False
