"""C code that changes containers, arrays and bytes outside a @jit function: each call does it, or none of it happens."""

from __future__ import annotations

import array
import bisect
import collections
import copy
import heapq
import operator
import random
import struct
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import EffectWarning, TraceError

LARGE = 20_000  # elements: more than a guard keeps as bytes


def small() -> Any:
    return np.array([3.0, 1.0])


def large() -> Any:
    return np.arange(LARGE, 0, -1.0)


def after(change: Any, result: Any) -> Any:
    return result


# what makes the state, and the function
CASES: dict[str, tuple[Callable[[], Any], Callable[[Any, Any], Any]]] = {
    "heappush of an element": (list, lambda x, s: after(heapq.heappush(s, x.sum().item()), x * 2)),
    "heappush": (list, lambda x, s: after(heapq.heappush(s, 1.0), x * 2)),
    "heappop": (lambda: [1, 2, 3], lambda x, s: x * heapq.heappop(s)),
    "heapify": (lambda: [3, 2, 1], lambda x, s: after(heapq.heapify(s), x * s[0])),
    "heapify of an unread list": (lambda: [3, 2, 1], lambda x, s: after(heapq.heapify(s), x)),
    "insort": (list, lambda x, s: after(bisect.insort(s, x.sum().item()), x * 2)),
    "iconcat": (list, lambda x, s: after(operator.iconcat(s, [1]), x * len(s))),
    "map of append": (list, lambda x, s: after(list(map(s.append, [x, x * 2])), x * 2)),
    "Counter.update": (collections.Counter, lambda x, s: after(s.update(["a"]), x * s["a"])),
    "shuffle": (lambda: [1, 2, 3], lambda x, s: after(random.Random(1).shuffle(s), x * s[0])),
    "out=": (small, lambda x, s: after(np.add(s, 1, out=s), x * s)),
    "out= of an unread array": (small, lambda x, s: after(np.add(s, 1, out=s), x)),
    "out= of a large array": (large, lambda x, s: after(np.add(s, 1, out=s), x * s[0])),
    "array.sort": (small, lambda x, s: after(s.sort(), x * s)),
    "array.sort of a large array": (large, lambda x, s: after(s.sort(), x * s[0])),
    "array.fill": (small, lambda x, s: after(s.fill(7.0), x)),
    "copyto": (small, lambda x, s: after(np.copyto(s, s * 2), x * s)),
    "put": (small, lambda x, s: after(np.put(s, [0], [s[0] + 1]), x * s)),
    "add.at": (small, lambda x, s: after(np.add.at(s, [0], 1), x * s)),
    "flat": (small, lambda x, s: after(operator.setitem(s.flat, 0, 9.0), x * s)),
    "a view": (small, lambda x, s: after(operator.setitem(s[:1], 0, s[0] + 1), x * s)),
    "a view of a large array": (large, lambda x, s: after(operator.setitem(s[:9], 0, 5.0), x)),
    "a transpose of a large array": (large, lambda x, s: after(operator.iadd(s.T, 5.0), x)),
    "bytearray": (lambda: bytearray(b"ab"), lambda x, s: after(s.append(1), x * len(s))),
    "memoryview": (lambda: bytearray(b"ab"), lambda x, s: after(operator.setitem(memoryview(s), 0, 9), x * s[0])),
    "pack_into": (lambda: bytearray(8), lambda x, s: after(struct.pack_into("d", s, 0, 1.0), x * s[7])),
    "array.array": (lambda: array.array("d", [1.0]), lambda x, s: after(s.append(1), x * len(s))),
    "append": (list, lambda x, s: after(s.append(3), x)),
    "append of a text and a tensor": (list, lambda x, s: after((s.append("a"), s.append(x)), x)),
    "append in a dict": (lambda: {"a": [1]}, lambda x, s: after(s["a"].append(2), x)),
}


def calls_of(function: Callable[[Any], Any], count: int = 3) -> int:
    """How many calls were not refused: all or none."""
    done = 0
    for k in range(count):
        try:
            function(jg.tensor([3.0 - k, 1.0]))
        except TraceError:
            continue
        done += 1
    return done


def plain(state: Any) -> Any:
    parts = state.values() if isinstance(state, dict) else state
    return [plain(x) if isinstance(x, list | dict) else x.tolist() if isinstance(x, jg.Tensor) else x for x in parts]


@pytest.mark.filterwarnings("ignore::jitgrad.core.errors.EffectWarning")
@pytest.mark.parametrize("check", ["first", "off"])
@pytest.mark.parametrize("name", CASES)
def test_every_call_changes_the_state_or_none_does(name: str, check: str) -> None:
    make, body = CASES[name]
    state, expected = make(), make()
    before = copy.deepcopy(state)

    done = calls_of(jg.jit(lambda x: body(x, state), check=check, backend="python"))
    assert done in (0, 3)
    assert done or not name.startswith("append")
    if done:
        calls_of(lambda x: body(x, expected))

    assert plain(state) == plain(expected if done else before)


@pytest.mark.parametrize("check", ["first", "off"])
def test_a_dict_with_weak_keys_gets_the_tensors_of_each_call(check: str) -> None:
    layer = jg.nn.Linear(2, 2)
    outputs: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()

    @jg.jit(check=check, backend="python")
    def f(x: Any) -> Any:
        outputs[layer] = x * 2
        return x

    for k in range(4):
        f(jg.ones(1) * k)
        assert outputs[layer].tolist() == [2.0 * k]


def test_what_code_that_is_not_followed_changes_is_told() -> None:
    event = threading.Event()

    @jg.jit(check="off", backend="python")
    def f(x: Any) -> Any:
        event.set()
        return x * 2

    with pytest.warns(EffectWarning, match="event._flag"):
        f(jg.ones(1))
