"""torch's functions of layers that change their argument: ``F.relu_(x)``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jitgrad.core.errors import ArgumentError, shown
from jitgrad.core.tensor import Tensor
from jitgrad.nn import noise
from jitgrad.ops import activations, gates
from jitgrad.ops.in_place_forms import in_place

ChangesTensor = Callable[..., Tensor]


def _changing(function: Callable[..., Tensor]) -> ChangesTensor:
    method, name = in_place(function), function.__name__

    def changed(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if not isinstance(input, Tensor):
            raise ArgumentError(f"{name}_ changes a tensor in place, got {shown(input)}; {name} returns a new one")
        return method(input, *args, **kwargs)

    changed.__name__ = changed.__qualname__ = f"{name}_"
    changed.__doc__ = f"`{name}` of ``input``, which it changes and returns. Raises ArgumentError for no tensor."
    return changed


alpha_dropout_: ChangesTensor = _changing(noise.alpha_dropout)
celu_: ChangesTensor = _changing(activations.celu)
dropout_: ChangesTensor = _changing(noise.dropout)
elu_: ChangesTensor = _changing(activations.elu)
feature_alpha_dropout_: ChangesTensor = _changing(noise.feature_alpha_dropout)
hardtanh_: ChangesTensor = _changing(activations.hardtanh)
leaky_relu_: ChangesTensor = _changing(activations.leaky_relu)
relu_: ChangesTensor = _changing(activations.relu)
rrelu_: ChangesTensor = _changing(noise.rrelu)
selu_: ChangesTensor = _changing(activations.selu)
threshold_: ChangesTensor = _changing(gates.threshold)
