"""Dicts, lists, records and slices as arguments: their order counts, and changes of them are refused."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
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
    message = r"at .*test_argument_containers.py:\d+ changes a dict, list, set or record.*Change a copy"
    with pytest.raises(UnguardableError, match=message):
        jg.jit(f)(items)

    assert items == {"a": A, "b": B, "list": [A]}
    assert jg.jit(lambda items: f({**items, "list": [*items["list"]]}))(items).tolist() == f({**items, "list": [A]}).tolist()


# --- slices and records ---------------------------------------------------------------------------------------------


@dataclass
class Batch:
    x: Any
    scale: float = 2.0
    k: int = 1

    def scaled(self) -> Any:
        return self.x * self.scale + OFFSET


OFFSET = 1.0
BACKENDS = pytest.mark.parametrize("backend", ["python", pytest.param("cpu", marks=pytest.mark.numba)])


@BACKENDS
def test_a_slice_is_a_static_argument(backend: str) -> None:
    f, x = jg.jit(lambda x, part: x[part], backend=backend), jg.arange(6.0)

    for part in (slice(1, 3), slice(1, 3), slice(1, 3), slice(None, None, 2), slice(1, 3), slice(True, 3)):
        assert f(x, part).tolist() == x[part].tolist()
    assert f.cache_info().traces == 3


def test_a_slice_of_tensors_is_refused() -> None:
    with pytest.raises(ValueError, match=r"test_argument_containers.py:\d+: argument 1 is a slice"):
        jg.jit(lambda x, part: x[part])(A, slice(jg.tensor(1), None))


@BACKENDS
@pytest.mark.parametrize("make", [Batch, SimpleNamespace])
def test_new_records_need_no_new_trace(make: Any, backend: str) -> None:
    f = jg.jit(lambda batch, x: (batch.x * batch.scale + x).sum(), backend=backend)

    for k in range(5):
        w = jg.tensor([1.0, 2.0 + k], requires_grad=True)
        loss = f(make(x=w, scale=3.0 + k), jg.ones(2))
        loss.backward()
        assert loss.item() == (3.0 + k) * (3.0 + k) + 2
        assert w.grad.tolist() == [3.0 + k] * 2
    assert f.cache_info().traces == 1


def test_methods_of_a_record_are_guarded(monkeypatch: pytest.MonkeyPatch) -> None:
    f = jg.jit(lambda batch: batch.scaled())

    assert [f(Batch(jg.ones(2))).tolist() for _ in range(3)] == [[3.0, 3.0]] * 3
    monkeypatch.setitem(globals(), "OFFSET", 2.0)
    assert f(Batch(jg.ones(2))).tolist() == [4.0, 4.0]


def test_static_fields_and_further_attributes_of_a_record_are_part_of_the_key() -> None:
    def f(batch: Any) -> Any:
        return batch.x * (2 if batch.k > 1 else 3) + getattr(batch, "extra", 0)

    compiled = jg.jit(f)
    longer = Batch(jg.ones(2), k=5)
    longer.extra = 7.0

    for batch in (Batch(jg.ones(2)), Batch(jg.ones(2), k=2), longer, Batch(jg.ones(2))):
        assert compiled(batch).tolist() == f(batch).tolist()


@pytest.mark.parametrize("change", [lambda b: setattr(b, "x", b.x * 2), lambda b: setattr(b, "new", 1), lambda b: b])
def test_changed_and_returned_records_are_refused(change: Any) -> None:
    batch = Batch(jg.ones(2))

    with pytest.raises(UnguardableError, match=r"changes a dict, list, set or record|return its parts"):
        jg.jit(lambda batch: change(batch))(batch)
    assert vars(batch).keys() == vars(Batch(batch.x)).keys() and batch.x.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("make", [frozenset, tuple, lambda items: Slots(items)], ids=["frozenset", "tuple", "slots"])
def test_a_static_argument_at_the_address_of_an_earlier_one(make):
    """A key that held an id alone found the program of an object that was gone."""
    compiled = jg.jit(lambda x, items: x * sum(items), static_argnums=(1,), backend="python")
    plain = jg.jit(lambda x, items: x * sum(items), backend="python")
    for last in range(2, 8):
        for f in (compiled, plain):
            assert f(jg.ones(1), make([1, last])).item() == 1 + last


class Slots:
    __slots__ = ("items",)

    def __init__(self, items):
        self.items = items

    def __iter__(self):
        return iter(self.items)


@pytest.mark.parametrize("check", ["off", "always"])
def test_a_set_is_watched_for_its_items(check: str) -> None:
    words, other, tensors = {"a", "b"}, {"c"}, {jg.ones(2), jg.tensor([3.0, 4.0])}
    compiled = jg.jit(lambda x, s: (x * len(s) if "a" in s else -x, s), check=check, backend="python")
    x = jg.tensor([1.0, 2.0])
    for s in (words, words, other, words, words):
        result, given = compiled(x, s)
        assert given is s
        assert result.tolist() == ((x * len(s)) if "a" in s else -x).tolist()
        other.add("a")
        words.symmetric_difference_update({"a", "z"})

    total = jg.jit(lambda x, s: sum(s, x), check=check, backend="python")
    for _ in range(3):
        assert total(x, tensors).tolist() == sum(tensors, x).tolist()
        next(iter(tensors)).add_(1.0)


def test_a_set_that_the_function_changes_is_refused() -> None:
    with pytest.raises(jg.errors.UnguardableError, match="changes a dict, list, set or record that is an argument"):
        jg.jit(lambda x, s: s.add(1) or x, backend="python")(jg.ones(2), set())
