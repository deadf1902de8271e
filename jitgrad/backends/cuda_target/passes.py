"""The passes over graphs for the device: those for every target, and some that bring ops to forms of cuBLAS and cuFFT."""

from __future__ import annotations

from collections.abc import Sequence

from jitgrad.backends.cuda_target.integer_powers import expand_integer_powers
from jitgrad.backends.cuda_target.product_dtypes import convert_factors
from jitgrad.backends.cuda_target.transforms import prepare_transforms
from jitgrad.compiler.passes.decompose_complex import decompose_complex
from jitgrad.compiler.pipeline import PASSES, Pass

_OWN = (
    Pass(expand_integer_powers, "before all passes that look at arithmetic"),
    Pass(convert_factors, "before decompose_complex, which knows complex numbers as pairs"),
    Pass(prepare_transforms, "before decompose_complex, which computes the parts of their operands and results"),
)


def device_passes(passes: Sequence[Pass] = PASSES) -> tuple[Pass, ...]:
    """``passes`` with those of this module."""
    at = next(k for k, step in enumerate(passes) if step.run is decompose_complex)
    return (*passes[:at], *_OWN, *passes[at:])
