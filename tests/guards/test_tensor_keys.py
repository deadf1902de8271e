"""Dicts whose keys are tensors: no order among these, and no state of a failed trace left in them."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest

import jitgrad as jg
from jitgrad.core.errors import UnguardableError


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
