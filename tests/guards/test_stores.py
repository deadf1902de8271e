"""Tensors that a compiled function stores outside itself: each call stores its own."""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import UnguardableError

BACKENDS = ["cpu", "python"]
last: Any = None


class Slots:
    __slots__ = ("best",)


class Recorder(jg.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = jg.nn.Parameter(jg.ones(3))
        self.activations: dict[str, Any] = {}

    def forward(self, x: Any) -> Any:
        y = jg.tanh(x * self.weight)
        self.activations["tanh"] = y.detach()
        return y.sum()


def append(place: Any, x: Any, loss: Any) -> None:
    place.list.append(loss)


def extend(place: Any, x: Any, loss: Any) -> None:
    place.list.extend([loss, x])


def add_in_place(place: Any, x: Any, loss: Any) -> None:
    place.list += [loss]


def append_a_record(place: Any, x: Any, loss: Any) -> None:
    place.list.append({"loss": loss, "name": "train", "parts": (x * 2.0, [loss])})


def append_to_a_full_deque(place: Any, x: Any, loss: Any) -> None:
    place.queue.append(loss)
    place.queue.append(x)


def set_an_item(place: Any, x: Any, loss: Any) -> None:
    place.dict["loss"] = loss


def set_an_item_of_a_list(place: Any, x: Any, loss: Any) -> None:
    place.pair[-1] = loss


def update(place: Any, x: Any, loss: Any) -> None:
    place.dict.update(loss=loss, twice=x * 2.0)


def append_to_a_default(place: Any, x: Any, loss: Any) -> None:
    place.history["loss"].append(loss)


def set_default_and_append(place: Any, x: Any, loss: Any) -> None:
    place.dict.setdefault("losses", []).append(loss)


def set_an_attribute(place: Any, x: Any, loss: Any) -> None:
    place.loss = loss


def set_a_slot(place: Any, x: Any, loss: Any) -> None:
    place.slots.best = loss


def set_a_global(place: Any, x: Any, loss: Any) -> None:
    global last
    last = loss
    place.loss = loss


def append_the_argument(place: Any, x: Any, loss: Any) -> None:
    place.list.append(x)


def append_a_parameter_and_a_view(place: Any, x: Any, loss: Any) -> None:
    place.list += [place.weight, x[1:]]


def fill_a_mask(place: Any, x: Any, loss: Any) -> None:
    if place.mask is None:
        place.mask = jg.ones_like(x) * 3.0
    place.list.append(loss * place.mask.sum())


STORING = [
    append, extend, add_in_place, append_a_record, append_to_a_full_deque, set_an_item, set_an_item_of_a_list, update,
    append_to_a_default, set_default_and_append, set_an_attribute, set_a_slot, set_a_global, append_the_argument,
    append_a_parameter_and_a_view, fill_a_mask,
]  # fmt: skip


def new_place() -> SimpleNamespace:
    lists: Any = defaultdict(list)
    return SimpleNamespace(
        list=[], queue=deque([1, 1, 1], maxlen=3), dict={}, history=lists, slots=Slots(), weight=jg.tensor([3.0]), mask=None,
        pair=[1, 2],
    )  # fmt: skip


def contents(place: Any) -> Any:
    """Everything in ``place`` with lists for tensors."""
    if isinstance(place, jg.Tensor):
        return place.tolist()
    if isinstance(place, SimpleNamespace):
        place = vars(place)
    if isinstance(place, Slots):
        return contents(getattr(place, "best", None))
    if isinstance(place, dict):
        return {key: contents(part) for key, part in place.items()}
    return [contents(part) for part in place] if isinstance(place, list | tuple | deque) else place


def step_for(store: Callable[..., None], place: Any) -> Callable[[Any], Any]:
    def step(x: Any) -> Any:
        loss = (x * x).sum()
        store(place, x, loss)
        return loss

    return step


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("check", ["first", "off", "always"])
@pytest.mark.parametrize("store", STORING, ids=lambda f: f.__name__)
def test_each_call_stores_what_an_eager_call_stores(store: Any, check: str, backend: str) -> None:
    expected, found = new_place(), new_place()
    eager = step_for(store, expected)
    compiled = jg.jit(step_for(store, found), check=check, backend=backend)

    for k in range(5):
        x = jg.tensor([1.0 + k, 2.0, 3.0])
        assert float(compiled(x)) == float(eager(x))
        assert contents(found) == contents(expected), f"after call {k}"

    assert compiled.cache_info().traces <= 2  # the second where the first call filled an empty place


def test_stored_tensors_are_new_ones_and_the_result_is_the_same_object() -> None:
    losses: list[Any] = []

    @jg.jit
    def step(x: Any) -> Any:
        loss = (x * x).sum()
        losses.append(loss)
        return loss

    results = [step(jg.tensor([float(k), 1.0])) for k in range(5)]

    assert all(a is b for a, b in zip(losses, results, strict=True))
    assert [float(x) for x in losses] == [1.0, 2.0, 5.0, 10.0, 17.0]


def test_gradients_flow_from_a_stored_loss() -> None:
    losses: list[Any] = []

    @jg.jit
    def step(x: Any) -> Any:
        losses.append((x * x * x).sum())
        return x.sum()

    for k in range(4):
        x = jg.tensor([1.0 + k, 2.0], requires_grad=True)
        step(x)
        losses[-1].backward()
        np.testing.assert_allclose(x.grad.numpy(), 3 * x.detach().numpy() ** 2)


def test_a_training_step_may_keep_its_losses() -> None:
    model = jg.nn.Linear(3, 1)
    optimizer = jg.optim.Adam(model.parameters(), lr=0.1)
    losses: list[Any] = []

    @jg.jit
    def step(x: Any, y: Any) -> None:
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())

    x = jg.tensor(np.random.default_rng(0).standard_normal((8, 3)).astype("f"))
    for _ in range(20):
        step(x, x.sum(axis=1, keepdims=True))

    assert len(losses) == 20
    assert float(losses[-1]) < float(losses[0])
    assert step.cache_info().traces <= 2


def test_a_module_keeps_its_activations() -> None:
    model = Recorder()
    step = jg.jit(lambda x: model(x))

    for k in range(4):
        x = jg.tensor([0.1 * k, 0.2, 0.3])
        step(x)
        np.testing.assert_allclose(model.activations["tanh"].numpy(), np.tanh(x.numpy()), rtol=1e-6)


def clear_and_append(place: Any, x: Any, loss: Any) -> None:
    place.list.clear()
    place.list.append(loss)


def insert(place: Any, x: Any, loss: Any) -> None:
    place.list.insert(0, loss)


def append_and_read(place: Any, x: Any, loss: Any) -> None:
    place.list.append(loss)
    place.list[-1] += 1.0


def store_one_list_twice(place: Any, x: Any, loss: Any) -> None:
    place.dict["a"] = place.dict["b"] = [loss]


def store_an_outside_list(place: Any, x: Any, loss: Any) -> None:
    place.list.append(loss)
    place.dict["losses"] = place.list


def append_with_the_time(place: Any, x: Any, loss: Any) -> None:
    place.list.append((time.perf_counter(), loss))


def append_if_short(place: Any, x: Any, loss: Any) -> None:
    if len(place.list) < 3:
        place.list.append(loss)


@pytest.mark.parametrize(
    "store",
    [
        clear_and_append, insert, append_and_read, store_one_list_twice, store_an_outside_list, append_with_the_time,
        append_if_short,
    ],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_what_cannot_be_stored_again_is_refused(store: Any) -> None:
    place = new_place()
    before = contents(place)

    with pytest.raises(UnguardableError, match=r"test_stores\.py:\d+"):
        jg.jit(step_for(store, place))(jg.tensor([1.0, 2.0, 3.0]))

    assert contents(place) == before


def test_an_error_in_the_checking_run_leaves_the_places_as_they_were() -> None:
    place = new_place()

    class Stop(Exception):
        pass

    @jg.jit
    def step(x: Any) -> Any:
        place.list.append(x * 2.0)
        if type(x._data) is np.ndarray:  # the eager run
            raise Stop
        return x

    with pytest.raises(Stop):
        step(jg.tensor([1.0]))

    assert contents(place) == contents(new_place())


def test_comparing_leaves_the_list_as_it_was() -> None:
    losses: list[Any] = []

    @jg.jit
    def step(x: Any) -> Any:
        losses.append((x * x).sum())
        return x * 2.0

    x = jg.tensor([1.0, 2.0])
    step(x)
    jg.compare(step, x, seconds=0.01)

    assert len(losses) == 1


def test_an_attribute_of_a_module_with_many_of_them_may_become_a_tensor() -> None:
    """`zero_grad` reads all attributes of a module, at once if there are many; the step then changes one of them."""

    class Layer(jg.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = jg.nn.Parameter(jg.ones(2))
            self.a, self.b, self.c, self.d, self.e, self.f = range(6)
            self.penalty: Any = 0

        def forward(self, x: Any) -> Any:
            self.penalty = (self.weight**2).sum()
            return x * self.weight

    def losses(wrap: Any) -> tuple[list[float], float]:
        layer = Layer()

        def step(x: Any) -> Any:
            layer.zero_grad()
            loss = layer(x).sum() + layer.penalty
            loss.backward()
            layer.weight.data.add_(layer.weight.grad, alpha=-0.1)
            return loss.detach()

        run = wrap(step)
        return [run(jg.ones(2)).item() for _ in range(4)], layer.penalty.item()

    np.testing.assert_allclose(*[np.hstack(losses(w)) for w in (lambda f: f, lambda f: jg.jit(f, backend="python"))], rtol=1e-6)


def drop_an_item(place: Any, x: Any, loss: Any) -> None:
    place.dict.pop("old", None)


def delete_an_item(place: Any, x: Any, loss: Any) -> None:
    if "old" in place.dict:
        del place.dict["old"]


def delete_an_attribute(place: Any, x: Any, loss: Any) -> None:
    if hasattr(place, "old"):
        del place.old


def delete_a_slot(place: Any, x: Any, loss: Any) -> None:
    if hasattr(place.slots, "best"):
        del place.slots.best


REMOVING = [drop_an_item, delete_an_item, delete_an_attribute, delete_a_slot]


@pytest.mark.parametrize("check", ["first", "off"])
@pytest.mark.parametrize("remove", REMOVING, ids=lambda f: f.__name__)
def test_each_call_removes_what_an_eager_call_removes(remove: Any, check: str) -> None:
    expected, found = new_place(), new_place()
    eager = step_for(remove, expected)
    compiled = jg.jit(step_for(remove, found), check=check, backend="python")

    for k in range(6):
        for place in (expected, found) if k % 3 else ():
            place.dict["old"] = place.old = place.slots.best = 1.0
        x = jg.tensor([1.0 + k, 2.0, 3.0])
        assert float(compiled(x)) == float(eager(x))
        assert contents(found) == contents(expected), f"after call {k}"
        assert vars(found).keys() == vars(expected).keys()

    assert compiled.cache_info().traces == 2  # with something to remove and without


def test_each_call_deletes_a_variable() -> None:
    scale: float

    def f(x: Any) -> Any:
        nonlocal scale
        y = x * scale
        del scale
        return y

    compiled = jg.jit(f, check="off", backend="python")
    for _ in range(3):
        scale = 2.0
        assert compiled(jg.tensor([3.0])).tolist() == [6.0]
        with pytest.raises(NameError):
            print(scale)
