"""The signature of a call of a @jit function: the key of its executables, and flat arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import optree

from jitgrad.compiler.runtime_number import LARGEST_INT
from jitgrad.core import config
from jitgrad.core.context import grad_enabled
from jitgrad.core.device_array import DeviceArray
from jitgrad.core.errors import ArgumentError, UnguardableError
from jitgrad.core.fork import cached_property
from jitgrad.core.origin import Origin
from jitgrad.core.tensor import Tensor, check_supported
from jitgrad.guards.guard import IMMUTABLE
from jitgrad.guards.writes import HeldPlace
from jitgrad.jit.held_places import HeldPlaces
from jitgrad.jit.records import NAMESPACE, classes_in, register

Listed = int | str | Collection[int | str] | None  # parameters, by position or name


@dataclass(frozen=True, eq=False, slots=True)
class Call:
    """One call: its ``leaves`` in order, and ``dynamic``, the positions of program inputs.

    ``runtime_ints`` are those of them that are ints, ``ints`` those that could be; ``numbers`` are
    all floats and NumPy scalars, ``static_numbers`` those that are no inputs. The last leaves are what the places ``held``
    hold (None where that is not tensors alone), with their names.
    """

    key: Any
    treedef: Any
    leaves: list[Any]
    dynamic: tuple[int, ...]
    static: Mapping[str, Any]  # static objects by name, for the guards
    keyword_order: bool = False  # whether the function can tell in which order keywords were passed
    ints: tuple[int, ...] = ()
    numbers: tuple[int, ...] = ()
    runtime_ints: frozenset[int] = frozenset()
    static_numbers: frozenset[int] = frozenset()
    held: tuple[HeldPlace, ...] = ()
    held_names: tuple[str, ...] = ()
    decided: tuple[bool | int, ...] = ()  # what its first decisions are, once a program has found out

    def name(self, position: int) -> str:
        """The leaf at ``position`` for messages."""
        k = position - (len(self.leaves) - len(self.held_names))
        return f"argument {position}" if k < 0 else self.held_names[k]

    @property
    def key_without_numbers(self) -> Any:
        """The key of all calls that differ only in the values of numbers."""
        return self._key_with({k: type(self.leaves[k]) for k in (*self.ints, *self.numbers)})

    def _key_with(self, parts: Mapping[int, Any]) -> Any:
        """The key with ``parts`` for the leaves at their positions."""
        leaves = tuple([parts.get(k, x) for k, x in enumerate(self.key[1])])
        return (self.key[0], leaves, *self.key[2:])

    def with_runtime_ints(self, positions: frozenset[int]) -> Call:
        """The call whose program takes the ints at ``positions`` as inputs."""
        dynamic = tuple(sorted({*self.dynamic, *positions}))
        return replace(self, key=self._key_with(dict.fromkeys(positions, int)), dynamic=dynamic, runtime_ints=positions)

    def with_static_numbers(self, positions: frozenset[int]) -> Call:
        """The call whose program is for the values of the ``numbers`` at ``positions``."""
        if not positions:
            return self
        dynamic = tuple([k for k in self.dynamic if k not in positions])
        key = self._key_with({k: static_number(self.leaves[k]) for k in positions})
        return replace(self, key=key, dynamic=dynamic, static_numbers=positions)


def static_number(x: float | np.generic) -> Any:
    """The part of a key for the value of a number; equal for two NaNs, other for 0.0 and -0.0."""
    return (type(x), x if type(x) is int else repr(x))


class SameObject:
    """Stands for one object in a key, which keeps it alive: another must not get its id."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value: Any = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SameObject) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)

    def __repr__(self) -> str:
        return f"at {id(self.value):#x}"


def leaf_key(x: Any) -> Any:
    """The part of the key for one leaf: aval and gradient of a tensor, value of a static leaf.

    Raises:
        TypeError: if the leaf is not hashable.
    """
    kind = type(x)
    if kind is Tensor or isinstance(x, Tensor):
        aval = x.aval
        grad = x._requires_grad and (x._hooks and tuple(x._hooks) or "leaf" if x.grad_fn is None else "computed")
        if type(x._data) is DeviceArray:
            return (aval.shape, aval.dtype, aval.weak, grad, x.device)
        return (aval.shape, aval.dtype, aval.weak, grad)
    if kind is float:
        return float
    if isinstance(x, (np.ndarray, np.generic)):
        return (np.ndarray if isinstance(x, np.ndarray) else np.generic, x.shape, check_supported("@jit argument", x.dtype))
    if kind in (int, bool, str, bytes, type(None)):
        return (kind, x)
    if kind is complex:
        return (kind, repr(x))
    if kind is Static:
        return kind  # another part of the key holds its value
    if kind is set:
        return (kind, SameObject(x))  # guards watch its items, and a result may be the set itself
    if kind is slice:
        return (kind, *[_static_part(part) for part in (x.start, x.stop, x.step)])
    hash(x)
    if (values := _values_of_record(x)) is not None:
        return (kind, *[_static_part(value) for value in values])
    if kind is frozenset:
        return _static_part(x)
    return (kind, SameObject(x))  # guards watch the attributes of other objects


def _values_of_record(x: Any) -> list[Any] | None:
    """The fields of a frozen dataclass of plain values, which an equal one may replace."""
    parameters = getattr(type(x), "__dataclass_params__", None)
    if parameters is None or not (parameters.frozen and parameters.eq):
        return None
    values = [getattr(x, field.name) for field in fields(x)]
    return values if all(isinstance(v, (int, float, str, bytes, type(None), tuple)) for v in values) else None


def is_dynamic(x: Any) -> bool:
    return isinstance(x, (Tensor, np.ndarray, np.generic)) or type(x) is float


def _as_tuple(x: Listed) -> tuple[int | str, ...]:
    if x is None:
        return ()
    return tuple(x) if isinstance(x, Collection) and not isinstance(x, str) else (x,)


class Signature:
    """Computes the keys of calls of one function, which has static arguments."""

    def __init__(self, function: Callable[..., Any], static_argnums: Listed, static_argnames: Listed) -> None:
        self.function = function
        self.held: HeldPlaces = HeldPlaces()
        self.static_names: frozenset[str] = frozenset()
        if _as_tuple(static_argnames) or _as_tuple(static_argnums):
            self.static_names = self.names_of(static_argnames, "static_argnames") | self.names_of(
                static_argnums, "static_argnums"
            )
        named = enumerate(self.parameters) if self.static_names else ()
        self.static_numbers: frozenset[int] = frozenset(k for k, name in named if name in self.static_names)

    @cached_property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """The function's parameters by name; none for a callable without a signature."""
        try:
            return inspect.signature(self.function).parameters
        except (TypeError, ValueError):
            return {}

    @cached_property
    def sees_keyword_order(self) -> bool:
        """Whether the function can tell in which order keywords were passed."""
        return not self.parameters or any(p.kind is p.VAR_KEYWORD for p in self.parameters.values())

    def names_of(self, chosen: Listed, option: str) -> frozenset[str]:
        """The parameters that ``option`` lists, or the only one. Raises ArgumentError for an unknown one."""
        names = list(self.parameters)
        variadic = any(p.kind is p.VAR_KEYWORD for p in self.parameters.values())
        listed = set()
        for x in _as_tuple(chosen):
            if isinstance(x, int) and -len(names) <= x < len(names):
                listed.add(names[x])
            elif isinstance(x, str) and (variadic or x in names):
                listed.add(x)
            else:
                raise ArgumentError(
                    f"@jit({option}=...): {x!r} is no parameter of {self.function!r}; it has {len(names)} parameters: "
                    f"{', '.join(names) or 'none'}"
                )
        return frozenset(listed)

    def positions(self, call: Call, names: Collection[str]) -> tuple[int, ...]:
        """Positions among the leaves of ``call`` of the tensors in the arguments ``names``.

        A tensor that was passed twice has its first position, where the program reads it.
        """
        if not names:
            return ()
        args, kwargs, _ = optree.tree_unflatten(call.treedef, range(len(call.leaves)))
        bound = inspect.Signature(list(self.parameters.values())).bind(*args, **kwargs).arguments
        for name, parameter in self.parameters.items():
            if parameter.kind is parameter.VAR_KEYWORD:
                bound.update({k: x for k, x in bound.get(name, {}).items() if k not in bound})
        wanted = optree.tree_leaves([bound[name] for name in names if name in bound])
        first: dict[int, int] = {}
        for k, x in enumerate(call.leaves):
            first.setdefault(id(x), k)
        return tuple(sorted({first[id(call.leaves[k])] for k in wanted if isinstance(call.leaves[k], Tensor)}))

    def take(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """Flatten a call and compute its key."""
        static: dict[str, Any] = {}
        key_static: tuple[Any, ...] = ()
        if self.static_names:
            args, kwargs, static = self._split(args, kwargs)
            key_static = tuple((name, static_key(name, value)) for name, value in sorted(static.items()))
        if len(kwargs) > 1 and not self.sees_keyword_order:
            kwargs = dict(sorted(kwargs.items()))
        places, held = self.held.places, self.held.read()
        leaves, treedef = optree.tree_flatten((args, kwargs, held), none_is_leaf=True, namespace=NAMESPACE)
        try:
            keys = tuple(map(leaf_key, leaves))
        except TypeError:
            if not register(leaves):
                raise self._refusal(args, kwargs) from None
            return self.take(args, kwargs)
        dynamic = tuple(k for k, x in enumerate(leaves) if is_dynamic(x))
        settings = (grad_enabled.get(), config.get_default_dtype(), config.get_methods_of(), config.get_immutable())
        key = (treedef, keys, key_static, _repeats(leaves), *settings)
        static.update(
            {f"argument {k}": x for k, x in enumerate(leaves) if not is_dynamic(x) and type(x) not in IMMUTABLE}
        )
        for k in dynamic:
            if isinstance(leaves[k], Tensor) and leaves[k]._hooks:
                static.update({f"hook {j} of argument {k}": hook for j, hook in enumerate(leaves[k]._hooks)})
        static.update({f"class {cls.__qualname__}": cls for cls in classes_in((args, kwargs))})
        ints = tuple([k for k, x in enumerate(leaves) if type(x) is int and -LARGEST_INT <= x <= LARGEST_INT])
        counts = [len(optree.tree_leaves(x, none_is_leaf=True, namespace=NAMESPACE)) for x in held]
        names = tuple([str(place.path) for place, count in zip(places, counts, strict=True) for _ in range(count)])
        numbers = tuple([k for k, x in enumerate(leaves) if type(x) is float or isinstance(x, np.generic)])
        order = self.sees_keyword_order
        return Call(key, treedef, leaves, dynamic, static, order, ints, numbers, held=places, held_names=names)

    def _refusal(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ArgumentError:
        """The error for an argument that can be neither an input nor a static value."""
        named = {**{f"argument {k}": x for k, x in enumerate(args)}, **{f"argument {k!r}": x for k, x in kwargs.items()}}
        where = Origin.of_code_of(self.function).full()
        for name, value in named.items():
            for x in optree.tree_leaves(value, none_is_leaf=True, namespace=NAMESPACE):
                try:
                    leaf_key(x)
                except TypeError:
                    verb = "is" if x is value else "contains"
                    kind = f"{type(x).__name__} of dtype {x.dtype}" if isinstance(x, np.ndarray) else type(x).__name__
                    return ArgumentError(f"@jit function at {where}: {name} {verb} a {kind}, {_why_refused(x)}")
        return ArgumentError(f"@jit function at {where}: an argument is not hashable")

    def _split(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any], dict[str, Any]]:
        """(args and kwargs with static arguments as `Static`, the static values by name)."""
        static: dict[str, Any] = {}
        new_args = list(args)
        for k in self.static_numbers:
            if k < len(args):
                static[str(k)] = args[k]
                new_args[k] = Static(str(k), args[k])
        new_kwargs = dict(kwargs)
        for name in self.static_names:
            if name in kwargs:
                static[name] = kwargs[name]
                new_kwargs[name] = Static(name, kwargs[name])
        return tuple(new_args), new_kwargs, static


def _why_refused(x: Any) -> str:
    if isinstance(x, np.ndarray) and not x.dtype.isnative:
        return "whose bytes are in the order of other machines. Pass x.astype(x.dtype.newbyteorder('='))."
    return (
        "which is no tensor, array, number or container of them, and not hashable, so that it cannot be a "
        "static value either. Pass a tuple, a dict or a dataclass of its parts."
    )


def key_difference(new: Any, old: Any) -> str:
    """What differs between the keys of two calls, in words."""
    names = ("structure", "arguments", "static arguments", "repeated arguments", "grad mode", "default dtype",
             "meaning of methods", "meaning of x += y")  # fmt: skip
    changed = [name for name, a, b in zip(names, new, old, strict=True) if a != b]
    if changed == ["arguments"]:
        pairs = [f"argument {k}: {b} -> {a}" for k, (a, b) in enumerate(zip(new[1], old[1], strict=False)) if a != b]
        return "; ".join(pairs)
    return ", ".join(changed) or "none"


@dataclass(frozen=True, slots=True)
class Static:
    """A static argument in a container; equal to any other: the key holds its value elsewhere."""

    name: str
    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static)

    def __hash__(self) -> int:
        return 0


def static_key(name: str, value: Any) -> Any:
    """The part of the key for a static argument, which must be hashable and no array."""
    if isinstance(value, (Tensor, np.ndarray)):
        raise UnguardableError(f"@jit static argument {name!r} is an array; pass it as an ordinary argument")
    try:
        hash(value)
    except TypeError:
        raise UnguardableError(
            f"@jit static argument {name!r} of type {type(value).__name__} is not hashable: use a tuple, or a frozen dataclass"
        ) from None
    return _exactly(value)


def _static_part(value: Any) -> Any:
    if isinstance(value, (Tensor, np.ndarray)):
        raise TypeError("an array is no static value")
    hash(value)
    return _exactly(value)


def _exactly(value: Any) -> Any:
    """Tells apart values that are equal but not interchangeable: 0.0 and -0.0, (1,) and (True,)."""
    kind = type(value)
    if kind in (float, complex) or isinstance(value, np.generic):
        return kind, repr(value)
    if isinstance(value, tuple):
        return kind, tuple([_exactly(x) for x in value])
    if kind is frozenset:
        return kind, frozenset([_exactly(x) for x in value])
    return kind, value if not hasattr(value, "__dict__") or callable(value) is False else SameObject(value)


def _repeats(leaves: Sequence[Any]) -> tuple[tuple[int, int], ...]:
    """Pairs of positions at which the same tensor or array was passed."""
    first: dict[int, int] = {}
    arrays = [(k, x) for k, x in enumerate(leaves) if isinstance(x, (Tensor, np.ndarray))]
    pairs = [(first.setdefault(id(x), k), k) for k, x in arrays]
    return tuple((earlier, k) for earlier, k in pairs if earlier != k)
