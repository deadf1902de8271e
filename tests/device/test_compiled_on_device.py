"""Compiled functions on the CUDA device: steps, in-place state, gradients, moves, host tensors, reports."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import DeviceError, MismatchWarning
from jitgrad.core.op import REGISTRY
from jitgrad.testing.fake_driver import FakeDriver
from jitgrad.testing.on_device import compare_on_device, ops_to_check

pytestmark = pytest.mark.usefixtures("cuda")

X = np.random.default_rng(0).normal(size=(8, 5)).astype(np.float32)


def counts_of(driver: Any) -> Any:
    if not isinstance(driver, FakeDriver):
        pytest.skip("counts work of the emulated device")
    return driver.counts


def test_a_function_runs_where_its_tensors_are() -> None:
    f = jg.jit(lambda x, a: jg.softmax(x * a).sum(axis=0))
    expected = f(jg.tensor(X), 2.0)

    for a in (2.0, 2.0):
        found = f(jg.tensor(X, device="cuda"), a)
        assert found.device == "cuda"
        np.testing.assert_allclose(found.cpu().numpy(), expected.numpy(), rtol=1e-5)
    assert f(jg.tensor(X), 2.0).device == "cpu"
    assert f.cache_info().traces == 2


def test_gradients_flow_out_of_a_compiled_function() -> None:
    def gradient(device: str) -> np.ndarray[Any, Any]:
        x = jg.tensor(X, device=device, requires_grad=True)
        f = jg.jit(lambda x: jg.tanh(x) @ x.T)
        for _ in range(2):
            x.grad = None
            f(x).square().mean().backward()
        assert x.grad is not None
        return x.grad.cpu().numpy()

    np.testing.assert_allclose(gradient("cuda"), gradient("cpu"), rtol=1e-4, atol=1e-6)


def train(device: str, steps: int = 4) -> tuple[list[float], list[np.ndarray[Any, Any]], Any]:
    """Losses and parameters of a network that a compiled step trains with Adam and dropout."""
    jg.manual_seed(1)
    model = jg.nn.Sequential(jg.nn.Linear(5, 16), jg.nn.GELU(), jg.nn.Dropout(0.2), jg.nn.LayerNorm(16), jg.nn.Linear(16, 3))
    optimizer = jg.optim.Adam(model.parameters(), lr=0.05)
    model.to(device)

    @jg.jit
    def step(x: Any, t: Any) -> Any:
        optimizer.zero_grad()
        loss = jg.cross_entropy(model(x), t)
        loss.backward()
        optimizer.step()
        return loss

    x, t = jg.tensor(X, device=device), jg.tensor(np.arange(8) % 3, device=device)
    losses = [step(x, t).item() for _ in range(steps)]
    assert step.cache_info().traces == 1, step.why_retraced()
    return losses, [p.detach().cpu().numpy() for p in model.parameters()], lambda: step(x, t)


def test_a_training_step_learns_what_it_learns_on_the_host() -> None:
    losses, parameters, _ = train("cuda")
    expected_losses, expected, _ = train("cpu")

    np.testing.assert_allclose(losses, expected_losses, rtol=1e-4)
    assert losses[-1] < losses[0]
    for found, wanted in zip(parameters, expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)


def test_a_step_copies_nothing_and_waits_for_nothing(cuda: Any) -> None:
    """The state of random numbers travels as arguments of a kernel, and its new value is computed on the host."""
    _, _, step = train("cuda")
    counts = counts_of(cuda)
    for _ in range(30):  # the pool allocates a quarter of what is live before it looks for idle memory
        step()
    before = replace(counts)
    step()

    for count in ("copies_to_device", "copies_to_host", "allocations", "loads", "synchronizations"):
        assert getattr(counts, count) == getattr(before, count), count


def test_state_is_updated_in_place_on_the_device() -> None:
    total = jg.zeros(5, device="cuda")
    address = total.__cuda_array_interface__["data"][0]

    @jg.jit
    def add(x: Any) -> None:
        nonlocal_total = total
        nonlocal_total += x.sum(axis=0)

    for _ in range(3):
        add(jg.tensor(X, device="cuda"))

    assert total.__cuda_array_interface__["data"][0] == address
    np.testing.assert_allclose(total.cpu().numpy(), 3 * X.sum(axis=0), rtol=1e-4, atol=1e-5)


def test_a_moved_module_is_traced_again() -> None:
    layer = jg.nn.Linear(5, 2)
    f = jg.jit(lambda x: layer(x))
    expected = f(jg.tensor(X)).detach().numpy()

    layer.to("cuda")
    found = f(jg.tensor(X, device="cuda"))

    assert found.device == "cuda"
    np.testing.assert_allclose(found.detach().cpu().numpy(), expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(DeviceError, match=r"argument 0 f32\[8,5\] is on cpu, and .* is on cuda"):
        f(jg.tensor(X))


def test_outside_tensors_that_move_are_noticed() -> None:
    layer = jg.nn.Linear(5, 2)
    f = jg.jit(lambda: layer.weight * 2.0)
    assert f().device == "cpu"
    f()
    f()

    layer.to("cuda")
    assert f().device == "cuda"
    layer.to("cpu")
    assert f().device == "cpu"


def test_a_function_of_host_tensors_can_run_on_the_device() -> None:
    f = jg.jit(lambda x: jg.exp(x).sum(), backend="cuda")

    found = f(jg.tensor(X))

    assert found.device == "cpu"
    np.testing.assert_allclose(found.numpy(), np.exp(X).sum(), rtol=1e-5)
    state = jg.zeros(3)
    update = jg.jit(lambda x: state.add_(x), backend="cuda")
    for _ in range(3):
        update(jg.ones(3))
    assert state.tolist() == [3.0, 3.0, 3.0]


def test_a_host_backend_refuses_tensors_on_the_device() -> None:
    with pytest.raises(DeviceError, match=r"backend='python' runs on the host, and the tensors are on cuda"):
        jg.jit(lambda x: x + 1.0, backend="python")(jg.tensor(X, device="cuda"))


def test_tensors_made_inside_are_on_the_device() -> None:
    f = jg.jit(lambda x: (jg.eye(8, device=x.device) @ x, jg.rand(3), x.to("cuda")))

    for result in (*f(jg.tensor(X, device="cuda")), *f(jg.tensor(X, device="cuda"))):
        assert result.device == "cuda"
    with pytest.raises(DeviceError, match=r"runs on one device|is on cpu"):
        jg.jit(lambda x: x.to("cuda"))(jg.tensor(X))


def test_results_that_are_views_of_arguments_share_their_memory() -> None:
    x = jg.tensor(X, device="cuda")
    f = jg.jit(lambda x: (x.T, x[2:4], x * 2.0))

    for _ in range(2):
        transposed, rows, _ = f(x)
        x += 1.0
        np.testing.assert_array_equal(transposed.cpu().numpy(), x.cpu().numpy().T)
        np.testing.assert_array_equal(rows.cpu().numpy(), x.cpu().numpy()[2:4])


def test_explain_says_what_runs_where() -> None:
    f = jg.jit(lambda x: jg.linalg.cholesky(x @ x.T + 9.0 * jg.eye(len(x))))
    x = jg.tensor(X, device="cuda")

    report = f.explain(x)

    assert report.unfused_ops == ["matmul", "cholesky"]
    assert [step.by for step in report.steps if step.kind == "unfused"] == ["cuBLAS", "a kernel"]
    np.testing.assert_allclose(f(x).cpu().numpy(), np.linalg.cholesky(X @ X.T + 9.0 * np.eye(len(X))), rtol=1e-5)


def test_a_wrong_kernel_is_noticed_at_the_first_call(monkeypatch: pytest.MonkeyPatch, cuda: Any) -> None:
    counts_of(cuda)
    run = cuda._emulate

    def wrong(code: Any, blocks: int, threads: int, args: Any, memory: Any) -> None:
        run(code, blocks, threads, args, memory)
        if "tanh" in code.source.text:
            address = args[1]
            memory.span(address, 4)[:] = 77

    monkeypatch.setattr(cuda, "_emulate", wrong)
    f = jg.jit(lambda x: jg.tanh(x * 3.0) + 1.0)
    with pytest.warns(MismatchWarning, match="result 0"):
        f(jg.tensor(X, device="cuda"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = f(jg.tensor(X, device="cuda"))
    np.testing.assert_allclose(found.cpu().numpy(), np.tanh(X * 3) + 1, rtol=1e-5)


@pytest.mark.parametrize("op", ops_to_check()[::4], ids=str)
def test_ops_give_on_the_device_what_they_give_on_the_host(op: Any) -> None:
    compare_on_device(op, lambda f: jg.jit(f, check="off"))


def test_every_fourth_op_is_a_fair_sample() -> None:
    kinds = {op.kind for op in ops_to_check()[::4]}

    assert kinds >= {REGISTRY[name].kind for name in ("add", "sum", "reshape", "matmul")}
