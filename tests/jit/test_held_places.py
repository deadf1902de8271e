"""Tensors outside a function that are replaced on every call, by it or by its caller."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

import jitgrad as jg

BACKENDS = ["cpu", "python"]
hidden: Any = None


class Pair(NamedTuple):
    h: Any
    c: Any


class Slots:
    __slots__ = ("h",)


class Recurrent(jg.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = jg.nn.Parameter(jg.tensor(np.linspace(0.5, 1.5, 3)))
        self.h = jg.zeros(3, dtype=jg.float64)

    def forward(self, x: Any) -> Any:
        self.h = jg.tanh(self.h * self.weight + x).detach()
        return self.h.sum()


def new_state() -> Any:
    zeros = [jg.zeros(3, dtype=jg.float64) for _ in range(8)]
    slots = Slots()
    slots.h = zeros[0]
    return SimpleNamespace(
        h=zeros[1], pair=(zeros[2], zeros[3]), named=Pair(zeros[4], zeros[5]), dict={"h": zeros[6]}, parts=[zeros[7]],
        slots=slots, started=None, model=Recurrent(),
    )  # fmt: skip


def attribute(s: Any, x: Any) -> Any:
    s.h = jg.tanh(s.h * 0.5 + x)
    return s.h.sum()


def attribute_used_twice(s: Any, x: Any) -> Any:
    s.h = s.h + x
    s.h = s.h * s.h
    return (s.h - 1.0).sum()


def pair(s: Any, x: Any) -> Any:
    h, c = s.pair
    c = 0.5 * c + x * h
    s.pair = (jg.tanh(c) + x, c)
    return c.sum()


def named_pair(s: Any, x: Any) -> Any:
    s.named = Pair(jg.tanh(s.named.c + x), s.named.h)
    return s.named.h.sum()


def item(s: Any, x: Any) -> Any:
    s.dict["h"] = s.dict["h"] * 0.9 + x
    return s.dict["h"].max()


def new_list(s: Any, x: Any) -> Any:
    s.parts = [part + x for part in s.parts]
    return s.parts[0].sum()


def slot(s: Any, x: Any) -> Any:
    s.slots.h = s.slots.h * 2.0 + x
    return s.slots.h.sum()


def start_and_go_on(s: Any, x: Any) -> Any:
    previous = x * 0.0 if s.started is None else s.started
    s.started = previous * 0.5 + x
    return s.started.sum()


def two_places(s: Any, x: Any) -> Any:
    s.h, s.dict["h"] = s.dict["h"] + x, s.h * 0.5
    return (s.h + s.dict["h"]).sum()


def module(s: Any, x: Any) -> Any:
    return s.model(x)


def read_and_changed_in_place(s: Any, x: Any) -> Any:
    s.h += x
    s.h = s.h * 0.5
    return s.h.sum()


PATTERNS = [
    attribute, attribute_used_twice, pair, named_pair, item, new_list, slot, start_and_go_on, two_places, module,
    read_and_changed_in_place,
]  # fmt: skip


def contents(x: Any) -> Any:
    if isinstance(x, jg.Tensor):
        return x.tolist()
    if isinstance(x, Recurrent | SimpleNamespace):
        return contents({k: v for k, v in vars(x).items() if not k.startswith("_")})
    if isinstance(x, Slots):
        return contents(x.h)
    if isinstance(x, dict):
        return {key: contents(part) for key, part in x.items()}
    return [contents(part) for part in x] if isinstance(x, list | tuple) else x


def close(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(close(a[k], b[k]) for k in a)
    return a is b or bool(np.allclose(np.array(a, float), np.array(b, float), rtol=1e-12))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("check", ["first", "off", "always"])
@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda f: f.__name__)
def test_state_that_each_call_replaces_is_what_eager_calls_make_of_it(pattern: Any, check: str, backend: str) -> None:
    expected, found = new_state(), new_state()
    compiled = jg.jit(lambda x: pattern(found, x), check=check, backend=backend)

    for k in range(7):
        x = jg.tensor([0.1 * k, 0.2, -0.3])
        np.testing.assert_allclose(float(compiled(x)), float(pattern(expected, x)), rtol=1e-12)
        assert close(contents(found), contents(expected)), f"after call {k}"

    assert compiled.cache_info().traces <= 4


def test_a_state_that_the_caller_resets_is_read_anew() -> None:
    state = new_state()
    compiled = jg.jit(lambda x: attribute(state, x), check="off")
    x = jg.tensor([1.0, 2.0, 3.0])

    first = [float(compiled(x)) for _ in range(4)]
    for value in (jg.zeros(3, dtype=jg.float64), jg.tensor(np.zeros(6))[::2]):
        state.h = value
        assert [float(compiled(x)) for _ in range(4)] == first
    state.h = jg.zeros((2, 3), dtype=jg.float64)
    assert float(compiled(x)) == pytest.approx(2 * first[0])

    assert compiled.cache_info().traces <= 4


def test_a_tensor_that_the_caller_replaces_for_each_call_needs_two_traces() -> None:
    settings = SimpleNamespace(scale=jg.tensor([1.0, 2.0]))
    compiled = jg.jit(lambda x: x * settings.scale)

    for k in range(30):
        settings.scale = jg.tensor([1.0 + k, 2.0])
        assert compiled(jg.ones(2)).tolist() == [1.0 + k, 2.0]

    assert compiled.cache_info().traces <= 3


temperature = 1.5


def _set_global(value: float) -> None:
    global temperature
    temperature = value


@pytest.mark.parametrize("check", ["off", "always"])
@pytest.mark.parametrize("place", ["attribute", "module", "item", "global", "branch"])
def test_a_number_that_the_caller_replaces_for_each_call_needs_three_traces(place: str, check: str) -> None:
    """Each value of a schedule outside of the function was a trace."""
    settings, module = SimpleNamespace(rate=1.5, items={"rate": [1.5]}), jg.nn.Linear(2, 2)
    functions: dict[str, tuple[Callable[[Any], Any], Callable[[float], Any]]] = {
        "attribute": (lambda x: x * settings.rate, lambda v: setattr(settings, "rate", v)),
        "module": (lambda x: module(x) * module.rate, lambda v: setattr(module, "rate", v)),
        "item": (lambda x: x * settings.items["rate"][0], lambda v: settings.items["rate"].__setitem__(0, v)),
        "global": (lambda x: x * temperature, _set_global),
        "branch": (lambda x: x * settings.rate if settings.rate < 99.0 else x, lambda v: setattr(settings, "rate", v)),
    }
    function, change = functions[place]
    compiled, x = jg.jit(function, check=check, backend="python"), jg.tensor([1.0, -2.0])
    for value in (1.5, 1.5, 2.5, 3.5, 0.25, 4.5, 1.5):
        change(value)
        np.testing.assert_allclose(compiled(x).detach().numpy(), function(x).detach().numpy(), rtol=1e-6)
    assert compiled.cache_info().traces == 3


def test_an_argument_that_is_also_the_held_tensor() -> None:
    expected, found = new_state(), new_state()
    compiled = jg.jit(lambda x: attribute(found, x), check="off")

    for k in range(6):
        own = k % 2
        a = compiled(found.h if own else jg.ones(3, dtype=jg.float64))
        b = attribute(expected, expected.h if own else jg.ones(3, dtype=jg.float64))
        assert float(a) == pytest.approx(float(b), rel=1e-12)


def test_gradients_flow_through_the_held_state_into_earlier_calls() -> None:
    def losses(wrap: Callable[[Any], Any]) -> Any:
        state = new_state()
        w = jg.tensor([0.5, 1.0, 1.5], requires_grad=True)

        def step(x: Any) -> Any:
            state.h = jg.tanh(state.h * w + x)
            return state.h.sum()

        f = wrap(step)
        total = sum(f(jg.tensor([0.1 * k, 0.2, 0.3])) for k in range(5))
        total.backward()
        return w.grad.numpy()

    np.testing.assert_allclose(losses(lambda f: jg.jit(f, check="off")), losses(lambda f: f), rtol=1e-12)


def test_truncated_backpropagation_through_a_module() -> None:
    def train(wrap: Callable[[Any], Any]) -> Any:
        model = Recurrent()
        optimizer = jg.optim.SGD(model.parameters(), lr=0.1)

        def step(x: Any) -> Any:
            optimizer.zero_grad()
            h = jg.tanh(model.h * model.weight + x)
            loss = (h * h).sum()
            loss.backward()
            optimizer.step()
            model.h = h.detach()
            return loss.detach()

        f = wrap(step)
        return [float(f(jg.tensor([0.1 * k, 0.2, 0.3]))) for k in range(6)] + model.weight.tolist()

    np.testing.assert_allclose(train(jg.jit), train(lambda f: f), rtol=1e-10)


def test_a_call_that_fails_leaves_the_state() -> None:
    state = new_state()

    def step(x: Any) -> Any:
        state.h = state.h + x
        return state.h @ jg.ones(x.size)

    compiled = jg.jit(step)
    compiled(jg.ones(3))
    before = state.h
    with pytest.raises(Exception, match=r"shape|broadcast"):
        compiled(jg.ones(4))

    assert state.h is before


def test_a_counter_beside_the_state() -> None:
    state = SimpleNamespace(h=jg.zeros(3), steps=0)

    def step(x: Any) -> Any:
        state.h = state.h + x
        state.steps += 1
        return state.h * state.steps

    compiled = jg.jit(step)
    results = [compiled(jg.ones(3)).tolist()[0] for _ in range(5)]

    assert results == [1.0, 4.0, 9.0, 16.0, 25.0]
    assert (state.steps, type(state.steps), state.h.tolist()) == (5, int, [5.0] * 3)


class _Symmetric(jg.nn.Module):
    def forward(self, x: jg.Tensor) -> jg.Tensor:
        return (x + x.T) / 2


def test_a_weight_that_becomes_a_property_is_no_place_that_holds_tensors() -> None:
    class Net(jg.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = jg.nn.Linear(3, 3)

    net, x = Net(), jg.randn(2, 3)
    compiled = jg.jit(lambda net, x: net.layer(x))
    for k in range(7):
        assert jg.allclose(compiled(net, x), net.layer(x))
        if k == 1:
            jg.nn.utils.parametrize.register_parametrization(net.layer, "weight", _Symmetric())
        if k == 3:
            net.layer.forward = lambda x, layer=net.layer: x @ layer.weight  # type: ignore[method-assign]
        if k == 5:
            del net.layer.forward
