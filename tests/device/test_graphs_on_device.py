"""Launches by the native loop and by CUDA graphs: what is captured, replayed, copied, and what the host waits for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.backends.cuda_target import graphs, result_sets
from jitgrad.core.errors import CudaError, JitgradWarning
from jitgrad.device.cuda import cuda_device
from jitgrad.jit.executable import Executable
from jitgrad.runtime import program
from jitgrad.testing.fake_driver import FakeDriver

RNG = np.random.default_rng(3)
X, T = RNG.normal(size=(8, 5)).astype(np.float32), RNG.normal(size=(8, 3)).astype(np.float32)


class Training:
    """A network that a compiled step trains; ``step`` returns the loss."""

    def __init__(self, device: str) -> None:
        jg.manual_seed(1)
        self.model = jg.nn.Sequential(jg.nn.Linear(5, 7), jg.nn.Tanh(), jg.nn.Dropout(0.2), jg.nn.Linear(7, 3)).to(device)
        self.optimizer = jg.optim.Adam(self.model.parameters(), lr=0.05)
        self.x, self.t = jg.tensor(X, device=device), jg.tensor(T, device=device)
        self.step = jg.jit(self._step)

    def _step(self, x: Any, t: Any) -> Any:
        self.optimizer.zero_grad()
        loss = jg.mse_loss(self.model(x), t)
        loss.backward()
        self.optimizer.step()
        return loss

    def run(self, steps: int) -> list[Any]:
        return [self.step(self.x, self.t) for _ in range(steps)]


def test_a_step_becomes_one_graph_launch_and_keeps_its_numbers(driver: FakeDriver) -> None:
    expected = Training("cpu").run(9)
    training = Training("cuda")
    losses = training.run(5)
    before = replace(driver.counts)
    losses += training.run(4)

    assert driver.counts.captures == before.captures <= result_sets.MAX_SETS
    assert driver.counts.graph_launches == before.graph_launches + 4
    assert driver.counts.copies_to_host == before.copies_to_host
    np.testing.assert_allclose([x.item() for x in losses], [x.item() for x in expected], rtol=1e-4)


def test_a_step_that_the_device_keeps_waiting_stays_a_graph(driver: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the host a long step works on copies of its state, so that Ctrl-C can stop it; no signal stops a device."""
    monkeypatch.setattr(program, "LONG_SECONDS", 0.0)
    training = Training("cuda")
    training.run(4)
    before = replace(driver.counts)
    training.run(2)

    assert driver.counts.graph_launches == before.graph_launches + 2
    assert driver.counts.copies_on_device <= before.copies_on_device + 2 * 2  # of losses


def test_results_and_gradients_that_a_caller_keeps_do_not_change(driver: FakeDriver) -> None:
    def gradients(device: str) -> list[Any]:
        training, kept = Training(device), []
        for _ in range(8):
            training.run(1)
            kept += [p.grad for p in training.model.parameters()]
        return kept

    wanted_gradients, found_gradients = gradients("cpu"), gradients("cuda")
    assert driver.counts.captures <= result_sets.MAX_SETS
    for found, wanted in zip(found_gradients, wanted_gradients, strict=True):
        np.testing.assert_allclose(found.cpu().numpy(), wanted.numpy(), rtol=1e-3, atol=1e-5)


def test_views_of_results_keep_their_memory(driver: FakeDriver) -> None:
    f = jg.jit(steps_of(9), check="off")
    big = jg.tensor(RNG.normal(size=(300, 80)).astype(np.float32), device="cuda")
    views, expected = [], []
    for k in range(6):
        result = f(big * k)
        views.append(result[:, 3])
        expected.append(result.cpu().numpy()[:, 3])

    for view, wanted in zip(views, expected, strict=True):
        np.testing.assert_array_equal(view.cpu().numpy(), wanted)


def steps_of(count: int) -> Callable[[Any], Any]:
    """A function of ``count`` kernels at least."""

    def f(x: Any) -> Any:
        for _ in range(count):
            x = jg.softmax(x, axis=0) - jg.softmax(x, axis=1)
        return x

    return f


def test_inputs_elsewhere_are_not_captured_before_they_come_again(driver: FakeDriver) -> None:
    f = jg.jit(steps_of(9), check="off")
    inputs = [jg.tensor(X + k, device="cuda") for k in range(graphs.MAX_GRAPHS + 4)]
    for x in inputs:
        f(x)
    assert driver.counts.captures == 0
    for x in inputs:
        f(x)

    assert driver.counts.captures == len(inputs)
    assert len(driver._graphs) == graphs.MAX_GRAPHS  # the oldest are given back
    for x in inputs:
        np.testing.assert_allclose(f(x).cpu().numpy(), steps_of(9)(x.cpu()).numpy(), rtol=1e-4, atol=1e-6)


def test_graphs_go_with_their_program(driver: FakeDriver) -> None:
    f, x = jg.jit(steps_of(9), check="off"), jg.tensor(X, device="cuda")
    for _ in range(3):
        f(x)
    assert len(driver._graphs) == 1
    f.clear()
    del f
    import gc

    gc.collect()
    assert not driver._graphs


def test_short_programs_are_launched_kernel_by_kernel(driver: FakeDriver) -> None:
    f, x = jg.jit(lambda x: jg.tanh(x) * 2), jg.tensor(X, device="cuda")
    for _ in range(4):
        f(x)

    assert driver.counts.captures == 0


def test_a_program_that_cannot_be_captured_says_so_and_runs(driver: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> int:
        raise CudaError("cuStreamBeginCapture_v2 failed: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900)")

    monkeypatch.setattr(driver, "capture", refuse)
    f, x = jg.jit(steps_of(9), check="off"), jg.tensor(X, device="cuda")
    f(x)
    with pytest.warns(JitgradWarning, match=r"kernel by kernel, not as a CUDA graph: cuStreamBeginCapture_v2 failed"):
        f(x)
    found = f(x)  # it is not tried again

    np.testing.assert_allclose(found.cpu().numpy(), steps_of(9)(jg.tensor(X)).numpy(), rtol=1e-4, atol=1e-6)


def test_later_calls_take_the_generated_path(driver: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    training = Training("cuda")
    training.run(3)
    monkeypatch.setattr(Executable, "run", None)

    training.run(2)
    training.model.to("cpu")  # whose tensors have other addresses: the general path finds that out
    with pytest.raises(jg.errors.DeviceError):
        training.run(1)


def test_numbers_travel_with_a_launch(driver: FakeDriver) -> None:
    f = jg.jit(lambda x, a, k, s: (x * a + k) * s, check="off")
    x, host_scale = jg.tensor(X, device="cuda"), jg.tensor(1.5)
    for a, k in ((0.5, 3), (-2.25, -1), (1e-30, 1 << 40), (float("inf"), 0)):
        f(x, a, k, host_scale)
        before = driver.counts.copies_to_device
        found = f(x, a, k, host_scale)
        assert driver.counts.copies_to_device == before
        np.testing.assert_array_equal(found.cpu().numpy(), f(jg.tensor(X), a, k, host_scale).numpy())


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint64", "bool"])
@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (40, 50), (0, 4)])
def test_inputs_on_the_host(driver: FakeDriver, dtype: str, shape: tuple[int, ...]) -> None:
    f = jg.jit(lambda x: x.flip(0) if x.ndim else x + x, backend="cuda")
    for _ in range(3):
        x = (RNG.normal(size=shape) * 9).astype(dtype)
        found = f(jg.tensor(x))
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(found.numpy(), x[::-1] if shape else x + x)


def test_random_numbers_do_not_wait_for_the_device(driver: FakeDriver) -> None:
    def numbers(device: str) -> list[Any]:
        generator = jg.Generator(5)
        f = jg.jit(lambda x: x + jg.rand(3, generator=generator), check="off")
        x = jg.zeros(3, device=device)
        results = []
        for k in range(5):
            before = driver.counts.copies_to_host
            results.append(f(x))
            assert device == "cpu" or k == 0 or driver.counts.copies_to_host == before
        results.append(generator.state)
        return [r.cpu().numpy() for r in results]

    for found, wanted in zip(numbers("cuda"), numbers("cpu"), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_two_generators_advance_by_what_each_was_asked_for(driver: FakeDriver) -> None:
    def states(device: str) -> list[Any]:
        one, two = jg.Generator(1), jg.Generator(2)

        @jg.jit
        def f(x: Any) -> Any:
            return jg.rand(5, generator=one).sum() + jg.dropout(x, 0.5).sum() + jg.randn(3, generator=two).sum()

        jg.manual_seed(0)
        x = jg.ones(4, device=device)
        values = [f(x).item() for _ in range(4)]
        return [values, one.state.numpy(), two.state.numpy()]

    (values, *found), (expected, *wanted) = states("cuda"), states("cpu")
    np.testing.assert_allclose(values, expected, rtol=1e-5)
    np.testing.assert_array_equal(found, wanted)


def test_threads_have_frames_of_their_own(driver: FakeDriver) -> None:
    f = jg.jit(steps_of(4), check="off")
    inputs = [jg.tensor(X * k, device="cuda") for k in range(3)]
    expected = [f(x).cpu().numpy() for x in inputs]
    wrong: list[int] = []

    def work(k: int) -> None:
        for _ in range(6):
            if not np.array_equal(f(inputs[k]).cpu().numpy(), expected[k]):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_results_are_not_overwritten_if_another_thread_asks_what_is_live(driver: FakeDriver) -> None:
    """`memory_stats` refers to live blocks while it counts; a set of results must not take that for the idle state."""
    pool = cuda_device().pool
    started, asked = threading.Event(), threading.Event()

    def ask() -> None:
        with pool.lock:
            live = pool._live()
            started.set()
            asked.wait(0.2)
            live.clear()

    sets = result_sets.ResultSets(cuda_device(), [((200, 300), np.dtype(np.float32))], {})
    make = sets._new_set

    def make_while_asked() -> result_sets.ResultSet:
        new = make()
        thread.start()
        started.wait(5)
        return new

    thread = threading.Thread(target=ask)
    sets._new_set = make_while_asked  # type: ignore[method-assign]
    view = sets.take().arrays[0].view((3,), (4,))
    thread.join()
    sets._new_set = make  # type: ignore[method-assign]

    assert sets.take().addresses != [view.address]


def test_memory_that_graphs_keep_is_given_back_before_it_runs_out(driver: FakeDriver) -> None:
    f, x = jg.jit(steps_of(6), check="off"), jg.tensor(np.zeros((200, 300), np.float32), device="cuda")
    for _ in range(4):
        f(x)
    held = jg.cuda.memory_stats().bytes_in_use
    cuda_device().pool.trim()

    assert jg.cuda.memory_stats().bytes_in_use <= held - x.nbytes
    np.testing.assert_allclose(f(x).cpu().numpy(), f(x.cpu()).numpy(), rtol=1e-5)
