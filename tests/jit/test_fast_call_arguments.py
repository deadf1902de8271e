"""The generated fast path with arguments and results of every kind, accepted and refused."""

from __future__ import annotations

import dataclasses
import enum
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import optree
import pytest

import jitgrad as jg
from jitgrad.core.errors import UnguardableError
from jitgrad.jit.decorator import jit
from jitgrad.jit.fast_call import MISS


@pytest.fixture(autouse=True)
def native(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", "cpu")


ONE = jg.tensor(np.random.default_rng(1).standard_normal(5).astype(np.float32))


class Pair(NamedTuple):
    first: Any
    rest: Any


RESULTS: dict[str, Callable[[Any], Any]] = {
    "named tuple": lambda x: Pair(x + 1.0, [x * 2.0]),
    "a named tuple in a dict": lambda x: {"a": Pair(x + 1.0, None), "b": (x,)},
    "dict with an order": lambda x: OrderedDict(b=x + 1.0, a=3),
    "topk": lambda x: jg.topk(x, 2),
    "empty": lambda x: ((), [], {}),
    "nothing": lambda x: None,
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_in_any_container_go_the_fast_way(name: str) -> None:
    function = RESULTS[name]
    f = jit(function)
    for _ in range(2):
        f(ONE)
    for k in range(2):
        x = ONE + float(k)
        found = f._fast_calls.in_order[0]((x,), {})
        expected, tree = optree.tree_flatten(function(x))
        leaves, own = optree.tree_flatten(found)
        assert own == tree
        for a, b in zip(leaves, expected, strict=True):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@dataclasses.dataclass
class State:
    weight: Any
    step: float


EVERYWHERE = vars(optree.registry)["__GLOBAL_NAMESPACE"]
optree.register_pytree_node(
    State, lambda s: ((s.weight, s.step), None, None), lambda _, parts: State(*parts), namespace=EVERYWHERE
)


class Mode(enum.Enum):
    ADD = 1
    MULTIPLY = 2


def scaled(x: Any, y: Any = 1.0, n: Any = 2) -> Any:
    return x * y + n


# what is compiled, (args, kwargs) that go the fast way, and others that must not take this program for theirs
WAYS: dict[str, tuple[Callable[..., Any], list[Any], list[Any]]] = {
    "keywords": (
        jit(scaled),
        [((ONE,), {"y": ONE + 1.0, "n": 3}), ((ONE + 2.0,), {"n": 3, "y": ONE})],
        [((ONE,), {"y": ONE + 1.0, "n": 4}), ((ONE, ONE + 1.0), {"n": 3}), ((ONE,), {"y": ONE}), ((), {"x": ONE})],
    ),
    "keyword floats": (jit(scaled), [((ONE,), {"y": 2.0}), ((ONE,), {"y": 3.0})], [((ONE,), {"n": 2.0}), ((ONE,), {"y": 2})]),
    "static number": (
        jit(scaled, static_argnames="n"),
        [((ONE, 1.5), {"n": 0.0}), ((ONE, 2.5), {"n": 0.0})],
        [((ONE, 1.5), {"n": -0.0}), ((ONE, 1.5), {"n": 0}), ((ONE, 1.5), {"n": False}), ((ONE, 1.5, 0.0), {})],
    ),
    "static tuple": (
        jit(lambda x, n: x * n[0], static_argnums=1),
        [((jg.ones(3, dtype=jg.int64), (1,)), {}), ((jg.zeros(3, dtype=jg.int64), (1,)), {})],
        [((jg.ones(3, dtype=jg.int64), (1.0,)), {}), ((jg.ones(3, dtype=jg.int64), (True,)), {})],
    ),
    "static enum": (
        jit(lambda x, how: x + x if how is Mode.ADD else x * x, static_argnames="how"),
        [((ONE,), {"how": Mode.ADD}), ((ONE + 1.0,), {"how": Mode.ADD})],
        [((ONE,), {"how": Mode.MULTIPLY}), ((ONE, Mode.ADD), {})],
    ),
    "enum": (
        jit(lambda x, how: x + x if how is Mode.ADD else x * x),
        [((ONE, Mode.ADD), {}), ((ONE + 1.0, Mode.ADD), {})],
        [((ONE, Mode.MULTIPLY), {}), ((ONE, None), {})],
    ),
    "named tuple": (
        jit(lambda p: p.first * p.rest[0]),
        [((Pair(ONE, [2.0]),), {}), ((Pair(ONE + 1.0, [3.0]),), {})],
        [((Pair(ONE, (2.0,)),), {}), ((Pair(ONE, [2.0, 3.0]),), {}), ((Pair(ONE, [ONE + 1.0]),), {})],
    ),
    "dict with an order": (
        jit(lambda d: next(iter(d.values())) * 2.0 + d["b"]),
        [((OrderedDict(b=ONE, a=ONE + 1.0),), {}), ((OrderedDict(b=ONE + 2.0, a=ONE),), {})],
        [((OrderedDict(a=ONE + 1.0, b=ONE),), {}), (({"b": ONE, "a": ONE + 1.0},), {})],
    ),
    "registered class": (
        jit(lambda s: s.weight * s.step),
        [((State(ONE, 2.0),), {}), ((State(ONE + 1.0, 3.0),), {})],
        [((State(ONE, ONE + 1.0),), {}), ((State(2.0, ONE),), {})],
    ),
    "NumPy scalar": (
        jit(lambda x, k: x * k),
        [((ONE, np.float32(2)), {}), ((ONE, np.float32(3)), {})],
        [((ONE, np.float64(2)), {}), ((ONE, np.int32(2)), {}), ((ONE, 2.0), {})],
    ),
    "one tensor twice": (
        jit(lambda x, y, z: x * y - z),
        [((ONE, ONE, ONE + 1.0), {}), ((z := ONE + 2.0, z, ONE), {})],
        [((ONE, ONE + 1.0, ONE), {}), ((ONE, ONE, ONE), {}), ((ONE, ONE + 1.0, ONE + 2.0), {})],
    ),
}


@pytest.mark.parametrize("name", WAYS)
def test_calls_of_any_kind_go_the_fast_way(name: str) -> None:
    f, fast, others = WAYS[name]
    args, kwargs = fast[0]
    for _ in range(2):
        f(*args, **kwargs)
    (launch,) = f._fast_calls.in_order  # type: ignore[attr-defined]
    for args, kwargs in fast:
        expected = f.eager(*args, **kwargs)  # type: ignore[attr-defined]
        found = launch(args, kwargs)
        assert found is not MISS
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found.numpy(), expected.numpy())
    for args, kwargs in others:
        assert launch(args, kwargs) is MISS
        expected = f.eager(*args, **kwargs)  # type: ignore[attr-defined]
        for _ in range(3):
            found = f(*args, **kwargs)
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found.numpy(), expected.numpy())
            assert np.array_equal(np.signbit(found.numpy()), np.signbit(expected.numpy()))


def test_a_static_argument_that_cannot_be_one_is_refused_on_the_fast_path() -> None:
    f = jit(scaled, static_argnames="n")
    for _ in range(2):
        f(ONE, n=2.5)
    with pytest.raises(UnguardableError, match="'n' is an array"):
        f(ONE, n=ONE)
    with pytest.raises(UnguardableError, match="'n' of type list is not hashable"):
        f(ONE, n=[1])
