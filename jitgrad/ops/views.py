"""The base after a write to its view: one function per view op, written in ops."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from jitgrad.core.tensor import Tensor
from jitgrad.ops.complex_parts import complex, imag, real
from jitgrad.ops.indexing import put_slice
from jitgrad.ops.movement import permute_dims, reshape

# (base, new value of the view, attrs of the view op) -> new value of the base
ViewWriter = Callable[[Tensor, Tensor, Mapping[str, Any]], Tensor]


def _through_slice(base: Tensor, new: Tensor, attrs: Mapping[str, Any]) -> Tensor:
    return put_slice(base, new, attrs["index"])


def _through_permute(_base: Tensor, new: Tensor, attrs: Mapping[str, Any]) -> Tensor:
    return permute_dims(new, tuple(int(k) for k in np.argsort(attrs["axes"])))


def _through_reshape(base: Tensor, new: Tensor, _attrs: Mapping[str, Any]) -> Tensor:
    return reshape(new, base.shape)


def _through_real(base: Tensor, new: Tensor, _attrs: Mapping[str, Any]) -> Tensor:
    return complex(new, imag(base))


def _through_imag(base: Tensor, new: Tensor, _attrs: Mapping[str, Any]) -> Tensor:
    return complex(real(base), new)


WRITERS: Mapping[str, ViewWriter] = {
    "slice": _through_slice,
    "permute_dims": _through_permute,
    "reshape": _through_reshape,
    "expand_dims": _through_reshape,
    "squeeze": _through_reshape,
    "real": _through_real,
    "imag": _through_imag,
}
