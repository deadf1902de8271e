"""torch.nn.utils: limits on gradients, parameters as one vector, normalised weights, sequences of
different lengths; imports core, ops, autograd, nn."""

from __future__ import annotations

from collections.abc import Iterable

from jitgrad.autograd.modes import no_grad
from jitgrad.core.errors import ShapeError
from jitgrad.core.tensor import Tensor
from jitgrad.nn.clipping import clip_grad_norm_, clip_grad_value_
from jitgrad.nn.utils import parametrizations, parametrize, rnn
from jitgrad.nn.utils.hooked_weights import remove_spectral_norm, remove_weight_norm, spectral_norm, weight_norm
from jitgrad.ops.inplace import assign
from jitgrad.ops.joining import concat
from jitgrad.ops.movement import cut, flatten, reshape

__all__ = [
    "clip_grad_norm_", "clip_grad_value_", "parameters_to_vector", "parametrizations", "parametrize",
    "remove_spectral_norm", "remove_weight_norm", "rnn", "spectral_norm", "vector_to_parameters", "weight_norm",
]  # fmt: skip


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements of ``parameters`` on one axis; gradients flow to them."""
    return concat([flatten(p) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Change ``parameters`` in place to the elements of ``vec``, in the order of :func:`parameters_to_vector`.

    Raises:
        ShapeError: the vector has another number of elements.
    """
    listed = list(parameters)
    total = sum(p.size for p in listed)
    if vec.shape != (total,):
        raise ShapeError(f"vector_to_parameters: the parameters have {total} elements, got {vec.aval}")
    start = 0
    with no_grad():
        for p in listed:
            assign(p, reshape(cut(vec, 0, start, start + p.size), p.shape))
            start += p.size
