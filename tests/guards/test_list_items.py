"""Items of lists outside a compiled function that it reads and replaces, such as the states of stacked cells."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import UnguardableError

Step = Callable[[Any, Any], Any]


def cells(place: Any, x: Any) -> Any:
    for k in range(3):
        x = place.states[k] = jg.tanh(x + place.states[k] * 0.5)
    return x.sum()


def from_the_end(place: Any, x: Any) -> Any:
    place.states[-1] = place.states[-1] * 0.5 + x
    place.states[-2] = place.states[-1] + 1.0
    return place.states[1].sum() + place.states[2].sum()


def exchange(place: Any, x: Any) -> Any:
    place.states[0], place.states[1] = place.states[1], place.states[0] + x
    return place.states[0].sum()


def shift(place: Any, x: Any) -> Any:
    for k in range(2, 0, -1):
        place.states[k] = place.states[k - 1]
    place.states[0] = x * 1.0
    return jg.stack(place.states).sum()


def each(place: Any, x: Any) -> Any:
    for k, state in enumerate(place.states):
        place.states[k] = state * 0.5 + x
    return sum(state.sum() for state in place.states)


def count(place: Any, x: Any) -> Any:
    place.counts[0] += 1
    place.counts[1] = place.counts[0] * 2
    return x.sum() * place.counts[1]


def only_store(place: Any, x: Any) -> Any:
    place.states[-1] = x * 2.0
    return x.sum()


def store_a_slice(place: Any, x: Any) -> Any:
    place.states[-1:] = [x * 2.0]
    return x.sum()


def store_where_no_name_is(place: Any, x: Any) -> Any:
    next(iter([place.states]))[-1] = x * 2.0
    return x.sum()


def nothing(place: Any) -> None:
    """Changes nothing."""


def set_items(place: Any) -> None:
    place.states[:] = [jg.zeros(2) for _ in place.states]
    place.counts[0] = 5


def share(place: Any) -> None:
    place.states[0] = place.states[1]


def grow(place: Any) -> None:
    place.states.append(jg.ones(2))


STEPS: list[Step] = [
    cells, from_the_end, exchange, shift, each, count, only_store, store_a_slice, store_where_no_name_is
]  # fmt: skip


def new_place() -> SimpleNamespace:
    return SimpleNamespace(states=[jg.zeros(2) + k for k in range(3)], counts=[0, 0])


@pytest.mark.parametrize("check", ["first", "off"])
@pytest.mark.parametrize("change", [nothing, set_items, share, grow], ids=lambda f: f.__name__)
@pytest.mark.parametrize("step", STEPS, ids=lambda f: f.__name__)
def test_each_call_replaces_items_as_an_eager_call_does(step: Step, change: Callable[[Any], None], check: str) -> None:
    eager, compiled = new_place(), new_place()
    f = jg.jit(lambda x: step(compiled, x), backend="python", check=check)
    for k in range(8):
        if k in (3, 6):
            change(eager), change(compiled)
        x = jg.tensor([1.0 + k, -0.5])
        assert f(x).item() == pytest.approx(step(eager, x).item(), rel=1e-5, abs=1e-6), f"call {k}"
        assert compiled.counts == eager.counts
        np.testing.assert_allclose(jg.stack(compiled.states).numpy(), jg.stack(eager.states).numpy(), rtol=1e-5, atol=1e-6)
    assert f.cache_info().traces <= (6 if change in (share, grow) else 3)


def test_gradients_flow_through_the_items_of_one_call() -> None:
    def trained(wrap: Callable[[Any], Any]) -> list[Any]:
        w, states = jg.tensor([0.5, -1.0], requires_grad=True), [jg.zeros(2), jg.zeros(2)]

        def step(x: Any) -> Any:
            w.grad = None
            for k in range(2):
                states[k] = jg.tanh(states[k].detach() * w + x)
            loss = (states[0] * states[1]).sum()
            loss.backward()
            with jg.no_grad():
                w.sub_(w.grad, alpha=0.1)
            return loss.detach()

        step = wrap(step)
        return [step(jg.tensor([0.3 * k, 0.1])).item() for k in range(5)] + w.tolist()

    np.testing.assert_allclose(trained(jg.jit), trained(lambda f: f), rtol=1e-5)


def test_a_list_that_callers_make_anew_is_traced_anew() -> None:
    eager, compiled = new_place(), new_place()
    f = jg.jit(lambda x: cells(compiled, x), backend="python")
    for k in range(6):
        x = jg.tensor([1.0 + k, -0.5])
        assert f(x).item() == pytest.approx(cells(eager, x).item(), rel=1e-5)
        for one, other in zip(compiled.states, eager.states, strict=True):
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-5)
        if k % 2:
            for place in (eager, compiled):
                place.states = [jg.zeros(2) for _ in range(3)]


def test_a_history_that_callers_begin_anew_grows() -> None:
    """The list was an argument, because its tensors were other ones for the second time; it cannot be one if it grows."""
    place = SimpleNamespace(history=[], rate=1.0)

    @jg.jit(backend="python")
    def step(x: Any) -> Any:
        place.history.append(x * place.rate)
        return x.sum()

    for epoch in range(4):
        place.history = []
        for k in range(3):
            place.rate = 1.0 + k + epoch  # each has a trace
            assert step(jg.ones(2)).item() == 2.0
        assert [x.tolist() for x in place.history] == [[1.0 + k + epoch] * 2 for k in range(3)]


def test_an_item_that_is_replaced_beside_an_append_is_refused() -> None:
    place = new_place()

    def step(x: Any) -> Any:
        place.states[0] = place.states[0] + x
        place.states.append(x)
        return x.sum()

    with pytest.raises(UnguardableError, match=r"place\.states"):
        jg.jit(step, backend="python")(jg.ones(2))
    assert [x.tolist() for x in place.states] == [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]
