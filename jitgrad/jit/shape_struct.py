"""Arguments that have a shape and a dtype and no data, to compile for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import optree

from jitgrad.core.aval import Shape, normalize_shape
from jitgrad.core.errors import ShapeError
from jitgrad.core.tensor import Tensor, check_supported
from jitgrad.jit.records import NAMESPACE

_descriptions: WeakValueDictionary[int, Tensor] = WeakValueDictionary()  # by id


@dataclass(frozen=True)
class ShapeDtypeStruct:
    """Stands for a tensor where a @jit function is compiled, explained or drawn without a call.

    Args:
        shape: its lengths.
        dtype: as :func:`jitgrad.tensor` takes it.
        requires_grad: whether gradients flow to it.

    Raises:
        ShapeError: a length is negative.
        DtypeError: tensors do not have this dtype.
    """

    shape: Shape
    dtype: Any = np.float32
    requires_grad: bool = False

    def __post_init__(self) -> None:
        shape = normalize_shape("ShapeDtypeStruct", self.shape)
        if any(n < 0 for n in shape):
            raise ShapeError(f"ShapeDtypeStruct: lengths are not negative, got {shape}")
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "dtype", check_supported("ShapeDtypeStruct", self.dtype))

    def tensor(self) -> Tensor:
        """A tensor of zeros; its pages take no memory until somebody writes to them."""
        made = Tensor(np.zeros(self.shape, self.dtype))
        made._requires_grad = self.requires_grad
        _descriptions[id(made)] = made
        return made


def has_no_data(x: Any) -> bool:
    """Whether ``x`` is a tensor that only describes others."""
    return _descriptions.get(id(x)) is x


def with_tensors(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments with tensors in place of every ShapeDtypeStruct."""
    leaves, treedef = optree.tree_flatten((args, kwargs), none_is_leaf=True, namespace=NAMESPACE)
    if not any(type(x) is ShapeDtypeStruct for x in leaves):
        return args, kwargs
    made = [x.tensor() if type(x) is ShapeDtypeStruct else x for x in leaves]
    given: tuple[tuple[Any, ...], dict[str, Any]] = optree.tree_unflatten(treedef, made)
    return given
