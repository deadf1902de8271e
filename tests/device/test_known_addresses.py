"""What a fast call remembers of tensors on a device is never out of date: replaced, moved, converted or freed ones."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.device.cuda import cuda_device
from jitgrad.jit.device_addresses import DeviceAddresses
from jitgrad.jit.executable import Executable
from jitgrad.ops.placement import replace_data
from jitgrad.testing.fake_driver import FakeDriver

RNG = np.random.default_rng(5)
X = RNG.normal(size=(4, 3)).astype(np.float32)


class Scaled:
    """``x * w + b`` for outside tensors, compiled, with a fast call after three calls."""

    def __init__(self, steps: int = 1) -> None:
        self.w, self.b = jg.tensor(X, device="cuda"), jg.ones(3, device="cuda")
        self.steps = steps
        self.f = jg.jit(self._call)
        self.x = jg.tensor(2 * X, device="cuda")
        for _ in range(3):
            self.check()

    def _call(self, x: Any) -> Any:
        for _ in range(self.steps):
            x = jg.softmax(x * self.w + self.b, axis=0)
        return x

    def check(self) -> None:
        found = self.f(self.x)
        np.testing.assert_allclose(found.cpu().numpy(), self._call(self.x).cpu().numpy(), 1e-5)


def new_data(s: Scaled) -> None:
    """The same tensor with another array, as `Module.to` leaves it."""
    replace_data(s.w, None, "cpu")
    replace_data(s.w, None, "cuda")
    s.w[...] = jg.tensor(X + 1, device="cuda")


def new_data_in_place(s: Scaled) -> None:
    s.w[...] = jg.tensor(X + 2, device="cuda")


def other_tensor(s: Scaled) -> None:
    s.w = jg.tensor(X + 3, device="cuda")


def other_shape(s: Scaled) -> None:
    s.w = jg.tensor(X[:1], device="cuda")


def other_dtype(s: Scaled) -> None:
    s.w = s.w.astype(jg.float64)


def strided(s: Scaled) -> None:
    s.w = jg.tensor(np.ascontiguousarray(X.T), device="cuda").T


def freed_and_replaced(s: Scaled) -> None:
    """The memory of the old tensor belongs to a new one of the same size."""
    s.w = s.b = None
    gc.collect()
    cuda_device().pool.trim()
    s.b = jg.full((3,), 7.0, device="cuda")
    s.w = jg.tensor(X - 5, device="cuda")


@pytest.mark.parametrize("steps", [1, 7])
@pytest.mark.parametrize(
    "change", [new_data, new_data_in_place, other_tensor, other_shape, other_dtype, strided, freed_and_replaced]
)
def test_a_change_of_an_outside_tensor_counts(driver: FakeDriver, change: Callable[[Scaled], None], steps: int) -> None:
    scaled = Scaled(steps)
    for _ in range(2):
        change(scaled)
        scaled.check()
        scaled.check()


def test_a_tensor_that_keeps_its_identity_may_get_other_data(driver: FakeDriver) -> None:
    """As optimisers and `Module.to` change parameters: the guards see the same tensor."""
    model = jg.nn.Linear(3, 2).to("cuda")
    f = jg.jit(lambda x: model(x))
    x = jg.tensor(X, device="cuda")
    for _ in range(3):
        f(x)
    model.to("cpu")
    host = model(x.cpu()).detach().numpy()
    with pytest.raises(jg.errors.DeviceError):
        f(x)
    model.to("cuda")
    np.testing.assert_allclose(f(x).detach().cpu().numpy(), host, 1e-5)
    model.to(jg.float64)
    np.testing.assert_allclose(f(x.astype(jg.float64)).detach().cpu().numpy(), host, 1e-5)


def test_unchanged_tensors_are_looked_at_by_identity(driver: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    scaled = Scaled()
    monkeypatch.setattr(DeviceAddresses, "look", None)
    monkeypatch.setattr(Executable, "run", None)

    scaled.check()


def test_memory_that_is_only_remembered_is_given_back(driver: FakeDriver) -> None:
    w = jg.ones((500, 300), device="cuda")
    state = {"w": w}
    f = jg.jit(lambda x: x + state["w"])
    for _ in range(3):
        f(1.0)
    held = weakref.ref(w._data)
    del w
    replace_data(state["w"], None, "cpu")
    replace_data(state["w"], None, "cuda")
    cuda_device().pool.trim()
    gc.collect()

    assert held() is None
    np.testing.assert_array_equal(f(1.0).cpu().numpy(), np.full((500, 300), 2.0))


def test_an_argument_over_a_changed_tensor_is_noticed_at_an_address_that_was_fine(driver: FakeDriver) -> None:
    state = jg.zeros(8, device="cuda")

    @jg.jit
    def add(x: Any) -> Any:
        state.add_(x)
        return state.sum()

    other = jg.ones(8, device="cuda")
    for _ in range(4):
        add(other)
    with pytest.raises(jg.errors.JitgradError, match="same memory"):
        add(jg.asarray(state)[:])
    assert add(other).item() == 40.0


def test_new_state_is_written_by_the_program(driver: FakeDriver) -> None:
    """Data that cannot be computed where the old is comes there at the end of the program, not by calls of the host's."""
    first, second = jg.tensor(X, device="cuda"), jg.tensor(X + 1, device="cuda")

    @jg.jit
    def swap(x: Any) -> Any:
        old = first.clone()
        first[...] = second
        second[...] = old * x
        return first.sum()

    one = jg.ones((), device="cuda")
    for _ in range(3):
        swap(one)
    copied = driver.counts.copies_on_device
    swap(one)

    assert driver.counts.copies_on_device <= copied + 2
    np.testing.assert_allclose(first.cpu().numpy(), X, 1e-6)
    np.testing.assert_allclose(second.cpu().numpy(), X + 1, 1e-6)


def test_threads_that_replace_what_is_remembered(driver: FakeDriver) -> None:
    scaled, wrong = Scaled(), []
    expected = [(scaled.x * k + scaled.b).cpu().numpy() for k in range(2)]
    f = jg.jit(lambda x: x + scaled.b)
    inputs = [scaled.x * k for k in range(2)]

    def work(k: int) -> None:
        for _ in range(10):
            cuda_device().pool.trim()
            if not np.allclose(f(inputs[k]).cpu().numpy(), expected[k]):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
