"""Windows of images as elements of their own, and their sum: the patches of convolutions and pools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import Any

from jitgrad.backends.codegen.source import Source
from jitgrad.backends.cuda_target.device_call import UNSIGNED, CallWriter, DeviceCall
from jitgrad.core.aval import Aval, dtype_name
from jitgrad.core.op import OpDef
from jitgrad.ops.convolution import FOLD, UNFOLD

_WORDS = ["h", "w", "oh", "ow", "kh", "kw", "sh", "sw", "dh", "dw"]


def find_windows(op: OpDef, avals: Sequence[Aval], attrs: Mapping[str, Any]) -> DeviceCall | None:
    """How a kernel computes ``op``, unfold or fold; None for other ops and dtypes."""
    if op not in (UNFOLD, FOLD) or not avals[0].size:
        return None
    (x,) = avals
    kernel, stride, dilation = attrs["kernel"], attrs["stride"], attrs["dilation"]
    if op is UNFOLD:
        result = op.abstract(avals, attrs)
        assert isinstance(result, Aval)
        if x.dtype.itemsize not in UNSIGNED:
            return None
        source, image, counts, iterations = _unfold(UNSIGNED[x.dtype.itemsize]), x.shape[-2:], result.shape[-2:], result.size
    else:
        if dtype_name(x.dtype) not in ("f32", "f64"):
            return None
        image, counts = attrs["shape"], x.shape[-2:]
        source, iterations = _fold(dtype_name(x.dtype)), prod(x.shape[:-4]) * prod(image)
    return DeviceCall(source, (0,), (*image, *counts, *kernel, *stride, *dilation), iterations)


@lru_cache
def _unfold(dtype: str) -> Source:
    writer = CallWriter({"y0": dtype, "x0": dtype}, _WORDS)
    with writer as out:
        for name, size in (("b", "ow"), ("a", "oh"), ("j", "kw"), ("i", "kh")):
            out.line(f"{name} = {'t' if name == 'b' else 'rest'} % {size}")
            out.line(f"rest = {'t' if name == 'b' else 'rest'} // {size}")
        out.line("y0[t] = x0[(rest * h + a * sh + i * dh) * w + b * sw + j * dw]")
    return writer.source()


@lru_cache
def _fold(dtype: str) -> Source:
    """A thread adds up all elements for one place of an image, in the order of the host."""
    writer = CallWriter({"y0": dtype, "x0": dtype}, _WORDS)
    with writer as out:
        out.line("column = t % w")
        out.line("row = (t // w) % h")
        out.line("image = t // (w * h)")
        out.line(f"total = to_{dtype}(0.0)")
        with out.block("for i in range(kh):"), out.block("for j in range(kw):"):
            out.line("r = row - i * dh")
            out.line("q = column - j * dw")
            with out.block("if r >= 0 and q >= 0:"):
                out.line("a = r // sh")
                out.line("b = q // sw")
                with out.block("if a * sh == r and b * sw == q and a < oh and b < ow:"):
                    out.line("total = total + x0[(((image * kh + i) * kw + j) * oh + a) * ow + b]")
        out.line("y0[t] = total")
    return writer.source()
