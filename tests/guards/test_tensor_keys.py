"""Dicts whose keys are tensors: no order among these, and no state of a failed trace left in them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

import jitgrad as jg
from jitgrad.core.errors import UnguardableError
from jitgrad.guards.object_state import key_name


def test_a_refused_trace_leaves_a_defaultdict_alone() -> None:
    weights = [jg.ones(2), jg.ones((2, 2))]
    state: defaultdict[Any, dict[str, Any]] = defaultdict(dict)

    def step(x: Any) -> Any:
        for w in weights:
            own = state[w]
            if not own:
                own["sum"] = jg.zeros_like(w)
            own["sum"].add_(x)
        return state[weights[0]]["sum"] * 1.0

    with pytest.raises(UnguardableError, match="`state`"):
        jg.jit(step)(jg.tensor(2.0))
    assert not state
    assert step(jg.tensor(2.0)).tolist() == [2.0, 2.0]
    compiled = jg.jit(step)  # nothing is missing now
    assert [compiled(jg.tensor(2.0)).tolist() for _ in range(3)] == [[4.0, 4.0], [6.0, 6.0], [8.0, 8.0]]


def test_a_store_in_a_dict_that_a_tensor_leads_to_is_undone_and_repeated() -> None:
    w = jg.ones(2, requires_grad=True)
    state: dict[Any, dict[str, Any]] = {w: {}}

    @jg.jit(backend="python")
    def step(x: Any) -> Any:
        state[w]["old"] = w * x
        return state[w]["old"].sum()

    for k in range(3):
        assert step(jg.ones(2) * k).item() == 2.0 * k
        assert state[w]["old"].tolist() == [float(k)] * 2
    assert step.cache_info().traces <= 2


class Slot:
    """An object whose text is that of every other one."""

    def __repr__(self) -> str:
        return "slot"


KEYS: dict[str, Callable[[], Any]] = {
    "layers": lambda: jg.nn.Linear(2, 2),
    "objects": Slot,
    "tensors": lambda: jg.ones(2),
    "tuples of tensors": lambda: ("sum", jg.ones(2)),
    "functions": lambda: lambda x: x,
}


@pytest.mark.parametrize("name", KEYS)
def test_items_under_keys_of_the_same_text_are_two(name: str) -> None:
    keys = [KEYS[name](), KEYS[name]()]

    def step(state: dict[Any, jg.Tensor], x: Any) -> Any:
        for k, key in enumerate(keys):
            state[key] = state[key] * 0.5 + x * (k + 1.0)
        return x

    expected, found = ({key: jg.zeros(2) for key in keys} for _ in range(2))
    compiled = jg.jit(lambda x: step(found, x), backend="python")
    for n in range(4):
        step(expected, jg.ones(2) * n)
        compiled(jg.ones(2) * n)
        assert [found[key].tolist() for key in keys] == [expected[key].tolist() for key in keys]


def test_numbers_that_are_one_key_have_one_name() -> None:
    assert key_name(1) == key_name(1.0) == key_name(True)
    assert key_name((-1, "a")) != key_name((-2, "a"))  # whose hashes are equal
    assert key_name(Slot()) != key_name(Slot())
    assert key_name(slice(1, 2)) == key_name(slice(1, 2))
