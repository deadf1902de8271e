"""Tensors of a trace that the function tells apart by identity from those outside: with ``is``, as keys, by ``id``.

A traced argument is another object than the caller's tensor. So where the function compares it with an outside tensor, and the
caller passes that one, it is traced as the outside tensor (`jitgrad.jit.trace_call`). What ``id`` gives has no such meaning.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from jitgrad.core.origin import Origin
from jitgrad.core.tensor import Tensor
from jitgrad.guards.attributes import UNKNOWN
from jitgrad.guards.plain_items import plain_items
from jitgrad.guards.reads import PLAIN, Reads, is_container
from jitgrad.guards.writes import tensors_in


def compare_by_identity(reads: Reads, one: Sequence[Any], other: Sequence[Any]) -> None:
    """``a is b``, where each is one of these values."""
    for values, others in ((one, other), (other, one)):
        if any(x is UNKNOWN or (isinstance(x, Tensor) and not _is_outside(reads, x)) for x in others):
            _compare(reads, values)


def find_by_identity(reads: Reads, holder: Any, key: Any, origin: Origin) -> None:
    """``holder[key]``, ``key in holder`` or the like: C code compares ``key`` with the keys or items of an outside container."""
    path = reads.path_of(holder)
    if not is_container(holder) or (isinstance(key, Tensor) and _is_outside(reads, key)):
        return
    if path is not None and type(key) is int and key in reads.ids:
        reads.error(
            origin,
            f"{path} is asked for what id() gave of a tensor, and @jit traces other objects than it was called with, whose ids "
            "mean nothing: use the tensor itself as the key, or pass what lies there as an argument",
        )
    if not isinstance(key, PLAIN):
        for item in plain_items(holder):
            _compare(reads, tensors_in(item) if isinstance(item, tuple) else (item,))


def find_somewhere(reads: Reads, key: Any) -> None:
    """``key in holder`` of a container that nobody knows: it may hold any outside tensor that the function has read."""
    if isinstance(key, Tensor) and not _is_outside(reads, key):
        reads.compared.update((id(tensor), tensor) for _, tensor in reads.tensors.values())


def identity_of(reads: Reads, value: Any) -> Any:
    """``id(value)``, which is compared with those of others."""
    if not isinstance(value, Tensor):
        return UNKNOWN
    if _is_outside(reads, value):
        _compare(reads, (value,))
    else:
        reads.ids.add(id(value))
    return id(value)


def _compare(reads: Reads, values: Iterable[Any]) -> None:
    reads.compared.update((id(x), x) for x in values if isinstance(x, Tensor))


def _is_outside(reads: Reads, tensor: Tensor) -> bool:
    return id(tensor) in reads.tensors
