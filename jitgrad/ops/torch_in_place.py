"""torch's functions that change their first argument in place: the methods of these names, as functions."""

# ruff: noqa: PLC0414 - names imported as themselves are public here, too
from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from jitgrad.core.errors import ArgumentError, shown
from jitgrad.core.tensor import Tensor
from jitgrad.ops.inplace import fill_ as fill_
from jitgrad.ops.inplace import zero_ as zero_

InPlace: TypeAlias = Callable[..., Tensor]


def _function(name: str) -> InPlace:
    def in_place(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if not isinstance(x, Tensor):
            raise ArgumentError(f"{name} changes a tensor in place, got {shown(x)}; {name[:-1]} returns a new one")
        changed: Tensor = getattr(x, name)(*args, **kwargs)
        return changed

    in_place.__name__ = in_place.__qualname__ = name
    in_place.__doc__ = f"The method ``{name}`` of ``x``, which it changes and returns. Raises ArgumentError for no tensor."
    return in_place


abs_: InPlace = _function("abs_")
acos_: InPlace = _function("acos_")
acosh_: InPlace = _function("acosh_")
addmv_: InPlace = _function("addmv_")
arccos_: InPlace = _function("arccos_")
arccosh_: InPlace = _function("arccosh_")
arcsin_: InPlace = _function("arcsin_")
arcsinh_: InPlace = _function("arcsinh_")
arctan_: InPlace = _function("arctan_")
arctanh_: InPlace = _function("arctanh_")
asin_: InPlace = _function("asin_")
asinh_: InPlace = _function("asinh_")
atan_: InPlace = _function("atan_")
atanh_: InPlace = _function("atanh_")
ceil_: InPlace = _function("ceil_")
celu_: InPlace = _function("celu_")
clamp_: InPlace = _function("clamp_")
clamp_max_: InPlace = _function("clamp_max_")
clamp_min_: InPlace = _function("clamp_min_")
clip_: InPlace = _function("clip_")
cos_: InPlace = _function("cos_")
cosh_: InPlace = _function("cosh_")
deg2rad_: InPlace = _function("deg2rad_")
detach_: InPlace = _function("detach_")
erf_: InPlace = _function("erf_")
erfc_: InPlace = _function("erfc_")
exp2_: InPlace = _function("exp2_")
exp_: InPlace = _function("exp_")
expm1_: InPlace = _function("expm1_")
fix_: InPlace = _function("fix_")
floor_: InPlace = _function("floor_")
frac_: InPlace = _function("frac_")
gcd_: InPlace = _function("gcd_")
i0_: InPlace = _function("i0_")
index_put_: InPlace = _function("index_put_")
lcm_: InPlace = _function("lcm_")
ldexp_: InPlace = _function("ldexp_")
log10_: InPlace = _function("log10_")
log1p_: InPlace = _function("log1p_")
log2_: InPlace = _function("log2_")
log_: InPlace = _function("log_")
logit_: InPlace = _function("logit_")
nan_to_num_: InPlace = _function("nan_to_num_")
neg_: InPlace = _function("neg_")
negative_: InPlace = _function("negative_")
rad2deg_: InPlace = _function("rad2deg_")
reciprocal_: InPlace = _function("reciprocal_")
relu_: InPlace = _function("relu_")
resize_as_: InPlace = _function("resize_as_")
round_: InPlace = _function("round_")
rsqrt_: InPlace = _function("rsqrt_")
selu_: InPlace = _function("selu_")
sigmoid_: InPlace = _function("sigmoid_")
sin_: InPlace = _function("sin_")
sinc_: InPlace = _function("sinc_")
sinh_: InPlace = _function("sinh_")
sqrt_: InPlace = _function("sqrt_")
square_: InPlace = _function("square_")
tan_: InPlace = _function("tan_")
tanh_: InPlace = _function("tanh_")
trunc_: InPlace = _function("trunc_")
xlogy_: InPlace = _function("xlogy_")
