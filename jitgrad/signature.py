"""What distinguishes one call of a @jit function from another: the key under which its program is kept."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import optree

from jitgrad import config
from jitgrad.aval import Aval
from jitgrad.errors import ArgumentError, UnguardableError
from jitgrad.scope import grad_enabled
from jitgrad.tensor import Tensor, check_supported

FLOAT_AVAL = Aval((), np.dtype(np.float64), weak=True)


@dataclass(frozen=True, eq=False, slots=True)
class Call:
    """One call, taken apart: ``leaves`` in order, ``dynamic`` their positions that are inputs of the program."""

    key: Any
    treedef: Any
    leaves: list[Any]
    dynamic: tuple[int, ...]
    static: Mapping[str, Any]  # static objects by name, for the guards


def leaf_key(x: Any) -> Any:
    """What of a leaf the program depends on: everything for static values, the looks for tensors."""
    kind = type(x)
    if kind is Tensor or isinstance(x, Tensor):
        aval = x.aval
        grad = x._requires_grad and ("leaf" if x.grad_fn is None else "computed")
        return (aval.shape, aval.dtype, aval.weak, grad)
    if kind is float:
        return float
    if isinstance(x, (np.ndarray, np.generic)):
        return (np.ndarray, x.shape, check_supported("@jit argument", x.dtype))
    if kind in (int, bool, str, bytes, type(None)):
        return (kind, x)
    if kind is Static:
        return kind  # its value is in the key by name
    try:
        hash(x)
    except TypeError:
        raise ArgumentError(
            f"@jit cannot take an argument of type {kind.__name__}: it is no tensor, array, number or container of them, "
            "and it is not hashable, so it cannot be a static value either"
        ) from None
    return (kind, id(x))  # an object: by identity, its attributes are guarded


def is_dynamic(x: Any) -> bool:
    return isinstance(x, (Tensor, np.ndarray, np.generic)) or type(x) is float


class Signature:
    """Takes calls of one function apart, with its static arguments."""

    def __init__(
        self, function: Callable[..., Any], static_argnums: Sequence[int], static_argnames: Sequence[str]
    ) -> None:
        self.static_names = frozenset(static_argnames)
        self.static_numbers = frozenset(static_argnums)
        if not (self.static_names or self.static_numbers):
            return
        try:
            names = list(inspect.signature(function).parameters)
        except (TypeError, ValueError):
            names = []
        unknown = sorted(self.static_names - set(names))
        variadic = any(p.kind is p.VAR_KEYWORD for p in inspect.signature(function).parameters.values())
        if unknown and not variadic:
            raise ArgumentError(f"@jit static_argnames {unknown} are no parameters of {function!r}; it has {names}")
        positions = {names[k % len(names)] for k in self.static_numbers if -len(names) <= k < len(names)}
        if len(positions) < len(self.static_numbers):
            raise ArgumentError(
                f"@jit static_argnums {sorted(self.static_numbers)}: the function has {len(names)} parameters"
            )
        self.static_names |= positions
        self.static_numbers = frozenset(k for k, name in enumerate(names) if name in self.static_names)

    def take(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """Flatten a call and compute its key."""
        static: dict[str, Any] = {}
        key_static: tuple[Any, ...] = ()
        if self.static_names:
            args, kwargs, static = self._split(args, kwargs)
            key_static = tuple((name, static_key(name, value)) for name, value in sorted(static.items()))
        leaves, treedef = optree.tree_flatten((args, kwargs), none_is_leaf=True)
        keys = tuple(map(leaf_key, leaves))
        dynamic = tuple(k for k, x in enumerate(leaves) if is_dynamic(x))
        key = (treedef, keys, key_static, _repeats(leaves), grad_enabled.get(), config.get_default_dtype())
        static.update(
            {f"argument {k}": x for k, x in enumerate(leaves) if not is_dynamic(x) and hasattr(x, "__dict__")}
        )
        return Call(key, treedef, leaves, dynamic, static)

    def _split(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any], dict[str, Any]]:
        """(dynamic args with static ones boxed, dynamic kwargs likewise, the static values)."""
        static: dict[str, Any] = {}
        new_args = list(args)
        for k in self.static_numbers:
            if k < len(args):
                static[str(k)] = args[k]
                new_args[k] = Static(args[k])
        new_kwargs = dict(kwargs)
        for name in self.static_names:
            if name in kwargs:
                static[name] = kwargs[name]
                new_kwargs[name] = Static(kwargs[name])
        return tuple(new_args), new_kwargs, static


@dataclass(frozen=True, slots=True)
class Static:
    """A static argument in its place among the others; equal to every other one, because the key holds its value."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static)

    def __hash__(self) -> int:
        return 0


def static_key(name: str, value: Any) -> Any:
    """A hashable stand-in for a static argument: its value, or for arrays and unhashables an error."""
    if isinstance(value, (Tensor, np.ndarray)):
        raise UnguardableError(f"@jit static argument {name!r} is an array; pass it as an ordinary argument")
    try:
        hash(value)
    except TypeError:
        raise UnguardableError(
            f"@jit static argument {name!r} of type {type(value).__name__} is not hashable: use a tuple, or a frozen dataclass"
        ) from None
    return type(value), value if not hasattr(value, "__dict__") or callable(value) is False else id(value)


def _repeats(leaves: Sequence[Any]) -> tuple[tuple[int, int], ...]:
    """Pairs of positions at which one and the same tensor or array was passed twice."""
    first: dict[int, int] = {}
    found = []
    for k, x in enumerate(leaves):
        if isinstance(x, (Tensor, np.ndarray)):
            seen = first.setdefault(id(x), k)
            if seen != k:
                found.append((seen, k))
    return tuple(found)
