"""The base after a write to its view, one function per view op, written in ops; and elements, which are no views in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from jitgrad.core.config import get_methods_of
from jitgrad.core.context import current_interpreter
from jitgrad.core.ir import Value
from jitgrad.core.storage import DETACHED, Lineage
from jitgrad.core.tensor import Tensor
from jitgrad.ops.complex_parts import complex, imag, real
from jitgrad.ops.indexing import put_slice
from jitgrad.ops.movement import SQUEEZE, permute_dims, reshape

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


# of an element that has memory of its own: it stays a number when it is changed itself
KEPT: Lineage = Lineage(lambda: None, DETACHED, None)  # type: ignore[arg-type]


def stands_for_number(tensor: Tensor) -> bool:
    """Whether a trace records with ``tensor`` what a Python number is."""
    return (now := current_interpreter.get()).tracing and now.stands_for_number(tensor)


def is_element(tensor: Tensor) -> bool:
    """Whether ``tensor`` is ``x[i, j]``: a number in NumPy, which no change of ``x`` reaches. In torch it is a view."""
    if (orders := current_interpreter.get().orders) is not None and not tensor.shape:
        return bool(orders.is_element(tensor))
    return is_element_view(tensor._view) and not tensor.shape


def is_view(view: Lineage | None) -> bool:
    """Whether a tensor with the lineage ``view`` shows memory of another one."""
    return view is not None and view is not KEPT


def is_element_view(view: Lineage | None) -> bool:
    """Whether a tensor without axes that has the lineage ``view`` is an element of another one."""
    return view is not None and (view is KEPT or view.steps[-1][0] is SQUEEZE) and get_methods_of() != "torch"


def keep_elements(target: Tensor) -> None:
    """Before a change of ``target``: elements that were read of its memory get memory of their own.

    In a trace those that were read in it: an element from outside is an input, whose memory is its caller's.
    """
    storage = target._memory
    if storage is None or storage._sharers is None:
        return
    traced = type(target._data) is Value
    for tensor in [t for ref in storage._sharers if (t := ref()) is not None and t is not target and t._memory is storage]:
        if is_element(tensor) and (type(tensor._data) is Value) is traced:
            if not traced:
                tensor._data = tensor._data.copy()
            tensor._view, tensor._memory = KEPT, None
            tensor._address = 0
