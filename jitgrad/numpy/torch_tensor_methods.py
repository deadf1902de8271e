"""torch's methods of tensors whose functions are NumPy's, or are defined above `jitgrad.ops`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from jitgrad.core.tensor import Tensor
from jitgrad.numpy import elementwise, factors, joining, linalg, systems
from jitgrad.ops import comparison, gamma, gates, random
from jitgrad.ops.arithmetic import astype
from jitgrad.ops.creation import full_like
from jitgrad.ops.in_place_forms import in_place
from jitgrad.ops.methods import install
from jitgrad.ops.movement import broadcast_to

_Method = Callable[..., Any]


def _named(function: _Method, name: str) -> _Method:
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        return function(self, *args, **kwargs)

    method.__name__ = name
    method.__doc__ = f"``jitgrad.{name}`` of this tensor."
    return method


def _bernoulli(self: Tensor, p: Any = None, *, generator: Any = None) -> Tensor:
    """Ones with the probabilities in this tensor, or ``p``, in its shape; else zeros."""
    return random.bernoulli(self if p is None else full_like(self, p), dtype=self.dtype, generator=generator)


_FUNCTIONS: Mapping[Any, str] = {
    linalg: "det matrix_power slogdet",
    systems: "cholesky cholesky_inverse cholesky_solve logdet",
    elementwise: "isreal",
    random: "multinomial",
    gates: "hardshrink",
}
_COMPARISONS: Mapping[str, _Method] = {
    "eq": comparison.equal, "ne": comparison.not_equal, "not_equal": comparison.not_equal, "lt": comparison.less,
    "less": comparison.less, "le": comparison.less_equal, "less_equal": comparison.less_equal, "gt": comparison.greater,
    "greater": comparison.greater, "ge": comparison.greater_equal, "greater_equal": comparison.greater_equal,
}  # fmt: skip


def _compared(function: _Method) -> _Method:
    """The truth values in the dtype of the tensor, which ``in_place`` assigns."""

    def compared(x: Tensor, other: Any) -> Tensor:
        return astype(function(x, other), x.dtype)

    compared.__name__ = function.__name__
    return compared


def _polygamma(self: Tensor, n: int) -> Tensor:
    """``jitgrad.polygamma(n, x)`` of this tensor."""
    return gamma.polygamma(n, self)


def _broadcast_to(self: Tensor, *shape: Any, **options: Any) -> Tensor:
    """``jitgrad.broadcast_to`` of this tensor; the lengths may be one argument or several."""
    return broadcast_to(self, *([shape] if len(shape) > 1 else shape), **options)


install(
    {
        "broadcast_to": _broadcast_to,
        **{name: _named(getattr(module, name), name) for module, names in _FUNCTIONS.items() for name in names.split()},
        **{f"{name}_": in_place(_compared(function)) for name, function in _COMPARISONS.items()},
        "bernoulli": _bernoulli,
        "orgqr": _named(factors.householder_product, "orgqr"),
        "tensor_split": _named(joining.array_split, "tensor_split"),
        "inverse": _named(linalg.inv, "inverse"),
        "pinverse": _named(linalg.pinv, "pinverse"),
        "polygamma": _polygamma,
        "heaviside_": in_place(elementwise.heaviside),
        "polygamma_": in_place(_polygamma),
    }
)
