"""Dicts and lists as arguments: their order counts, and changes of them are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import UnguardableError

A, B = jg.tensor(np.array([1.0])), jg.tensor(np.array([2.0]))


def running(items: dict[str, Any]) -> Any:
    total: Any = 0.0
    for value in items.values():
        total = total * 0.5 + value
    return total


@pytest.mark.parametrize("wrap", [lambda d: (d,), lambda d: ([d],), lambda d: ((d, 1),)], ids=["dict", "list", "tuple"])
def test_the_order_of_a_dict_is_the_one_that_eager_sees(wrap: Any) -> None:
    def f(x: Any) -> Any:
        x = x[0] if isinstance(x, (list, tuple)) else x
        return running(x), {k: v * 2.0 for k, v in x.items()}

    compiled = jg.jit(f)
    for items in ({"a": A, "b": B}, {"b": B, "a": A}) * 3:
        (total, doubled), (expected, listed) = compiled(*wrap(items)), f(*wrap(items))
        assert (total.tolist(), list(doubled)) == (expected.tolist(), list(listed))
    assert compiled.cache_info().traces == 2


def test_keywords_retrace_only_where_their_order_is_seen() -> None:
    named = jg.jit(lambda a, b: a - b)
    collected = jg.jit(lambda **items: running(items))
    for _ in range(3):
        assert named(a=A, b=B).tolist() == named(b=B, a=A).tolist() == [-1.0]
        assert (collected(a=A, b=B).tolist(), collected(b=B, a=A).tolist()) == ([2.5], [2.0])

    assert (named.cache_info().traces, collected.cache_info().traces) == (1, 2)


def assign(items: Any) -> Any:
    items["c"] = items["a"] * 2.0
    return items["c"]


def replace(items: Any) -> Any:
    items["a"] = items["a"] * 2.0
    return items["a"]


def pop(items: Any) -> Any:
    return items.pop("a") + items["b"]


def append(items: Any) -> Any:
    items["list"].append(items["a"])
    return items["a"] + 1.0


@pytest.mark.parametrize("f", [assign, replace, pop, append])
def test_changes_of_a_container_are_refused_before_anything_changes(f: Any) -> None:
    items = {"a": A, "b": B, "list": [A]}
    with pytest.raises(UnguardableError, match=r"at .*test_argument_containers.py:\d+ changes a dict or list.*Change a copy"):
        jg.jit(f)(items)

    assert items == {"a": A, "b": B, "list": [A]}
    assert jg.jit(lambda items: f({**items, "list": [*items["list"]]}))(items).tolist() == f({**items, "list": [A]}).tolist()
