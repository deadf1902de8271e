"""Values that are replaced by others that only look alike."""

from __future__ import annotations

import functools
import math
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.guards.changes import new_table

CASES, case = new_table()


def _with_number(base: type, *args: Any) -> Callable[[float], Any]:
    """Makes objects of a subclass of ``base`` that differ in an attribute only."""
    cls = type(f"Our{base.__name__.title()}", (base,), {})

    def make(k: float) -> Any:
        value = cls(*args)
        value.k = k
        return value

    return make


def _function(k: float) -> Any:
    def function() -> float:
        return 0.0

    function.k = k  # type: ignore[attr-defined]
    return function


def _partial(k: float) -> Any:
    made = functools.partial(pow, 2)
    made.k = k  # type: ignore[attr-defined]
    return made


def _named(k: float) -> Any:
    def function() -> float:
        return 0.0

    function.__name__ = "f" * int(k)
    return function


def _attribute(value: Any) -> Any:
    return value.k


MAKERS: dict[str, tuple[Callable[[float], Any], Callable[[Any], Any]]] = {
    "list": (_with_number(list, [1]), _attribute),
    "dict": (_with_number(dict, {"a": 1}), _attribute),
    "deque": (_with_number(deque, [1]), _attribute),
    "set": (_with_number(set, [1]), _attribute),
    "frozenset": (_with_number(frozenset, [1]), _attribute),
    "tuple": (_with_number(tuple, [1]), _attribute),
    "float": (_with_number(float, 1.0), _attribute),
    "int": (_with_number(int, 1), _attribute),
    "str": (_with_number(str, "a"), _attribute),
    "function": (_function, _attribute),
    "partial": (_partial, _attribute),
    "name_of_a_function": (_named, lambda value: len(value.__name__)),
    "longest_deque": (lambda k: deque([1], maxlen=int(k)), lambda value: value.maxlen),
    "factory": (lambda k: defaultdict(functools.partial(float, k), a=1), lambda value: value.default_factory()),
    "order_of_a_set": (lambda k: {8, 0} if k == 2.0 else {0, 8}, lambda value: next(iter(value)) + 1.0),
    "tuple_in_a_set": (lambda k: {(k / 2,)} if k == 3.0 else {(1,)}, lambda value: next(iter(value))[0]),
    "end_of_a_range": (lambda k: range(0, int(k) + 1, 2), lambda value: value.stop),
    "metadata": (lambda k: np.dtype("f4", metadata={"k": k}), lambda value: value.metadata["k"]),
    "sign_of_zero": (lambda k: 0.0 if k == 2.0 else -0.0, lambda value: math.copysign(2.0, value)),
}


def _replaced(make: Callable[[float], Any], read: Callable[[Any], Any]) -> Callable[[], Any]:
    def case() -> Any:
        held = [make(2.0)]
        return lambda x: x * read(held[0]), lambda: held.__setitem__(0, make(3.0))

    return case


CASES.update({f"replaced_{name}": _replaced(*entry) for name, entry in MAKERS.items()})
