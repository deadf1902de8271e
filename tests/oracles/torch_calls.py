"""How each op of torch's database is called here: its function, and the spelling where positions mean something else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jitgrad as jg
from jitgrad.core.tensor import Tensor

Function = Callable[..., Any]

# Positional arguments after the tensors that are NumPy's here; a call with torch's keywords is torch's.
BY_KEYWORD: Mapping[str, str] = {
    "all": "dim keepdim",
    "any": "dim keepdim",
    "argsort": "dim descending",
    "diagonal": "offset dim1 dim2",
    "linalg.matrix_norm": "ord dim keepdim",
    "linalg.norm": "ord dim keepdim",
    "linalg.vector_norm": "ord dim keepdim",
    "logspace": "end steps base",
    "logspace/tensor_overload": "end steps base",
    "max/reduction_with_dim": "dim keepdim",
    "min/reduction_with_dim": "dim keepdim",
    "norm": "p dim keepdim",
    "norm/fro": "p dim keepdim",
    "norm/inf": "p dim keepdim",
    "norm/nuc": "p dim keepdim",
    "sort": "dim descending",
    "squeeze": "dim",
    "squeeze/multiple": "dim",
    "topk": "k dim largest sorted",
}


def _index_first(function: Function) -> Function:
    return lambda weight, index, **keywords: function(index, weight, **keywords)


def _filling(name: str) -> Function:
    """The method that fills in place, of a copy."""
    return lambda x, *args: getattr(x.clone(), f"{name}_")(*args)


# The database calls these through functions of its own, which order the arguments differently.
REORDERED: Mapping[str, Callable[[], Function]] = {
    "einsum": lambda: lambda operands, equation: jg.einsum(equation, *operands),
    **{name: partial(_filling, name) for name in ("cauchy", "exponential", "geometric", "log_normal")},
    "linalg.pinv/singular": lambda: lambda x, y: jg.linalg.pinv(x @ y.mT),
    "pca_lowrank": lambda: lambda x, y, **keywords: jg.pca_lowrank(x @ y.mT, **keywords),
    "svd_lowrank": lambda: lambda x, y, **keywords: jg.svd_lowrank(x @ y.mT, **keywords),
    "meshgrid/variadic_tensors": lambda: lambda first, *more, **keywords: jg.meshgrid(first, *more, **keywords),
    "nn.functional.embedding": lambda: _index_first(jg.nn.functional.embedding),
    "nn.functional.embedding_bag": lambda: _index_first(jg.nn.functional.embedding_bag),
    "polygamma": lambda: lambda x, n: jg.polygamma(n, x),
    "split": lambda: lambda x, size, dim=0: x.split(size, dim=dim),
    "split/list_args": lambda: lambda x, sizes, dim=0: x.split(sizes, dim=dim),
    "special.polygamma": lambda: lambda x, n: jg.polygamma(n, x),
    "where": lambda: lambda x, condition, other: jg.where(condition, x, other),
}


def _eigh_parts(out: Any) -> Any:
    return out[0], out[1].abs()


def _svd_parts(out: Any) -> Any:
    u, s, vh = out
    return u[..., : s.shape[-1]].abs(), s, vh[..., : s.shape[-1], :].abs()


def _singular_parts(out: Any) -> Any:
    u, s, v = out
    return u[..., : s.shape[-1]].abs(), s, v[..., : s.shape[-1]].abs()


# What a decomposition determines: vectors have no sign, and those of the null space no direction.
UNIQUE_PARTS: Mapping[str, Callable[[Any], Any]] = {
    "linalg.eigh": _eigh_parts,
    "linalg.svd": _svd_parts,
    **dict.fromkeys(("pca_lowrank", "svd", "svd_lowrank"), _singular_parts),
}


def our_function(name: str, variant: str) -> Function | None:
    """What jitgrad has under torch's ``name``: a function, a method or an attribute; None if it has nothing."""
    full = f"{name}/{variant}" if variant else name
    reordered = REORDERED.get(full) or REORDERED.get(name)
    if reordered is not None:
        return reordered()
    function = _named(name)
    order = BY_KEYWORD.get(full)
    return function if function is None or order is None else _by_keyword(function, order.split())


def _named(name: str) -> Function | None:
    holder: Any = jg
    *rooms, last = name.split(".")
    for room in rooms:
        holder = jg.scipy if room == "special" else holder
        holder = getattr(holder, room, None)
    function = getattr(holder, last, None)
    if callable(function):
        return function
    method = getattr(Tensor, last, None) if not rooms else None
    if isinstance(method, property):
        return lambda x: getattr(x, last)
    return method


def _by_keyword(function: Function, order: list[str]) -> Function:
    def call(x: Any, *args: Any, **keywords: Any) -> Any:
        return function(x, **dict(zip(order, args)), **keywords)

    return call
