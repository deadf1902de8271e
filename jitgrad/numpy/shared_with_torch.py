"""Functions of NumPy that torch has, too: with torch's keywords, and most of them as methods of Tensor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from jitgrad.numpy import calculus, creation, elementwise, joining, order, products, selection, shapes, statistics
from jitgrad.ops.keywords import takes_dim
from jitgrad.ops.methods import install

_MODULES = (calculus, creation, elementwise, joining, order, products, selection, shapes, statistics)

# name: torch's keywords, each with NumPy's name for it
_KEYWORDS: Mapping[str, Mapping[str, str]] = {
    "allclose": {"input": "a", "other": "b"},
    "isclose": {"input": "a", "other": "b"},
    "column_stack": {"tensors": "tup"},
    "dstack": {"tensors": "tup"},
    "hstack": {"tensors": "tup"},
    "vstack": {"tensors": "tup"},
    "bincount": {},
    "count_nonzero": {},
    "cross": {},
    "cumprod": {},
    "diag": {"diagonal": "k"},
    "diagflat": {"offset": "k"},
    "diff": {},
    "fliplr": {},
    "flipud": {},
    "inner": {},
    "kron": {},
    "nan_to_num": {},
    "nanmean": {},
    "nansum": {},
    "quantile": {},
    "rot90": {},
    "trace": {},
}
_NO_METHODS = {"column_stack", "dstack", "hstack", "vstack"}


def _function(name: str) -> Callable[..., Any]:
    module = next(module for module in _MODULES if hasattr(module, name))
    return takes_dim(None, **_KEYWORDS[name])(getattr(module, name))


SHARED: Mapping[str, Callable[..., Any]] = {name: _function(name) for name in _KEYWORDS}

install({name: function for name, function in SHARED.items() if name not in _NO_METHODS})
