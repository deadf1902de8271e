"""The passes over graphs for the device: those for every target, some that bring ops to forms of cuBLAS and cuFFT, and one
that gives few long rows to many blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jitgrad.backends.cuda_target.integer_powers import expand_integer_powers
from jitgrad.backends.cuda_target.product_dtypes import convert_factors
from jitgrad.backends.cuda_target.split_rows import split_long_rows
from jitgrad.backends.cuda_target.transforms import prepare_transforms
from jitgrad.compiler.passes.canonicalize_reductions import canonicalize_reductions
from jitgrad.compiler.passes.decompose_complex import decompose_complex
from jitgrad.compiler.pipeline import PASSES, Pass
from jitgrad.core.ir import Graph

_OWN = (
    Pass(expand_integer_powers, "before all passes that look at arithmetic"),
    Pass(convert_factors, "before decompose_complex, which knows complex numbers as pairs"),
    Pass(prepare_transforms, "before decompose_complex, which computes the parts of their operands and results"),
)
_SPLIT = Pass(split_long_rows, "after canonicalize_reductions, which makes rows of what is reduced")


def device_passes(passes: Sequence[Pass] = PASSES) -> tuple[Pass, ...]:
    """``passes`` with those of this module."""
    at, rows = (_position(passes, run) for run in (decompose_complex, canonicalize_reductions))
    return (*passes[:at], *_OWN, *passes[at : rows + 1], _SPLIT, *passes[rows + 1 :])


def _position(passes: Sequence[Pass], run: Callable[..., Graph]) -> int:
    return next(k for k, step in enumerate(passes) if step.run is run)
