"""Tensors on the CUDA device outside of compiled functions: places, ops, gradients, modules, errors."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import ArgumentError, CudaError, DeviceError
from jitgrad.testing.fake_driver import FakeDriver

pytestmark = pytest.mark.usefixtures("cuda")

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)


def test_tensors_go_to_the_device_and_back() -> None:
    x = jg.tensor(X, device="cuda")

    assert (x.device, x.shape, x.dtype) == ("cuda", (3, 4), jg.float32)
    assert x.to("cuda") is x
    assert x.cpu().device == "cpu"
    np.testing.assert_array_equal(x.cpu().numpy(), X)
    np.testing.assert_array_equal(jg.tensor(X).to("cuda:0").to(jg.float64).cpu().numpy(), X.astype(float))


def test_numbers_of_a_tensor_are_copied_to_the_host() -> None:
    x = jg.tensor([1.5, -2.0], device="cuda")

    assert x.tolist() == [1.5, -2.0]
    assert float(x[0]) == 1.5
    assert bool(x[1] < 0)
    assert repr(x) == "tensor([ 1.5, -2. ], dtype=float32, device='cuda')"


def test_numpy_does_not_read_a_tensor_on_the_device() -> None:
    x = jg.tensor(X, device="cuda")

    with pytest.raises(DeviceError, match=r"numpy\(\) of a tensor f32\[3,4\] on cuda: .*\.cpu\(\)"):
        x.numpy()
    with pytest.raises(DeviceError, match=r"\.cpu\(\)"):
        np.asarray(x)


@pytest.mark.parametrize(
    "make",
    [
        lambda d: jg.zeros((2, 3), device=d),
        lambda d: jg.full((2, 3), 2.5, device=d),
        lambda d: jg.arange(5, device=d),
        lambda d: jg.linspace(0, 1, 5, device=d),
        lambda d: jg.eye(3, k=1, device=d),
        lambda d: jg.ones_like(jg.tensor(X, device=d)),
        lambda d: jg.tril(jg.tensor(X, device=d), 1),
        lambda d: jg.asarray(X, device=d),
    ],
)
def test_new_tensors_are_where_they_are_asked_for(make: Any) -> None:
    made, expected = make("cuda"), make("cpu")

    assert made.device == "cuda"
    np.testing.assert_array_equal(made.cpu().numpy(), expected.numpy())


def test_views_share_memory_and_in_place_changes_show_in_them() -> None:
    x = jg.tensor(X, device="cuda")
    row, column = x[1], x.T[2]

    x += 1.0
    column[0] = 7.0
    row.mul_(2.0)

    expected = X + 1
    expected[0, 2] = 7
    expected[1] *= 2
    np.testing.assert_array_equal(x.cpu().numpy(), expected)
    np.testing.assert_array_equal(column.cpu().numpy(), expected.T[2])


def test_ops_on_views_read_them_where_they_are() -> None:
    x = jg.tensor(X, device="cuda")

    found = jg.exp(x.T[1:3]) + x[::-1, ::2].sum(axis=1)

    np.testing.assert_allclose(found.cpu().numpy(), np.exp(X.T[1:3]) + X[::-1, ::2].sum(axis=1), rtol=1e-6)


def test_gradients_of_a_network_are_those_on_the_host() -> None:
    def gradients(device: str) -> list[np.ndarray[Any, Any]]:
        x, t = jg.tensor(X, device=device), jg.tensor([0, 3, 2], device=device)
        w = jg.tensor(X[:, :3].copy().reshape(3, 3), device=device)
        leaves = [x.requires_grad_(), w.requires_grad_()]
        loss = jg.cross_entropy(jg.gelu(jg.layer_norm(w @ x, (4,))), t) + jg.softmax(x[:, 1:]).std(correction=0)
        loss.backward()
        return [loss.detach().cpu().numpy(), *(leaf.grad.cpu().numpy() for leaf in leaves if leaf.grad is not None)]

    for found, expected in zip(gradients("cuda"), gradients("cpu"), strict=True):
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-6)


def test_gradients_flow_through_moves() -> None:
    x = jg.tensor(X, requires_grad=True)

    (x.to("cuda") * 2.0).cpu().sum().backward()

    assert x.grad is not None
    assert x.grad.device == "cpu"
    np.testing.assert_array_equal(x.grad.numpy(), np.full_like(X, 2))


def test_tensors_in_different_places_are_an_error_that_names_both() -> None:
    with pytest.raises(DeviceError, match=r"add: a tensor f32\[3,4\] is on cuda, and another f32\[4\] is on the host.*\.to"):
        jg.tensor(X, device="cuda") + jg.ones(4)


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "mse_loss (subtract)": lambda x, y: jg.mse_loss(x, y),
    "Linear (matmul)": lambda x, y: jg.nn.Linear(4, 2)(x),
    "stack (concat)": lambda x, y: jg.stack([x, y]),
    "conv1d (matmul)": lambda x, y: jg.nn.functional.conv1d(x[None], y[None]),
    "subtract": lambda x, y: jg.tanh(x) - y,
    "clip": lambda x, y: x.clip(y, 9.0),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_error_names_what_the_user_called(name: str) -> None:
    with pytest.raises(DeviceError, match=rf"^{re.escape(name)}: a tensor .* is on cuda, and another .* is on the host"):
        CALLS[name](jg.tensor(X, device="cuda"), jg.tensor(X))


def test_the_error_names_the_arguments_that_the_user_gave() -> None:
    x, labels = jg.tensor(X, device="cuda"), jg.tensor([0, 1, 2])

    with pytest.raises(DeviceError, match=r"cross_entropy .*f32\[3,4\] \(logits\) is on cuda, .*i64\[3\] \(target\) is on the"):
        jg.cross_entropy(x, labels)


def test_a_mask_on_the_host_selects_on_the_device() -> None:
    x = jg.tensor(X, device="cuda")
    x[jg.tensor(X > 0)] = 0.0
    np.testing.assert_array_equal(x.cpu().numpy(), np.minimum(X, 0.0))


def test_files_are_loaded_to_a_device_and_modules_take_them_from_anywhere(tmp_path: Path) -> None:
    trained = jg.nn.Linear(4, 2).to("cuda")
    jg.save({"model": trained.state_dict(), "epoch": 3}, tmp_path / "file")

    both = {"device": "cuda", "map_location": "cuda"}
    for places in ({}, {"device": "cpu"}, {"device": "cuda"}, {"map_location": "cuda"}, both):
        loaded = jg.load(tmp_path / "file", **places)
        assert loaded["epoch"] == 3
        assert {x.device for x in loaded["model"].values()} == {places.get("device") or places.get("map_location", "cpu")}
        for device in ("cpu", "cuda"):
            module = jg.nn.Linear(4, 2).to(device)
            module.load_state_dict(loaded["model"])
            assert module.weight.device == device
            np.testing.assert_array_equal(module.weight.detach().cpu().numpy(), trained.weight.detach().cpu().numpy())
    with pytest.raises(ArgumentError, match="name two places"):
        jg.load(tmp_path / "file", "cpu", device="cuda")
    with pytest.raises(ArgumentError, match="expected 'cpu' or 'cuda'"):
        jg.load(tmp_path / "file", device="cuda:7")


def test_numbers_and_arrays_go_where_the_tensors_are() -> None:
    x = jg.tensor(X, device="cuda")

    for found in (x * jg.tensor(2.0), x * 2.0, x * np.full(4, 2.0, np.float32)):
        assert found.device == "cuda"
        assert found.dtype == jg.float32
        np.testing.assert_array_equal(found.cpu().numpy(), X * 2)


def test_an_unknown_device_is_an_error() -> None:
    with pytest.raises(ArgumentError, match="expected 'cpu' or 'cuda'"):
        jg.zeros(3, device="cuda:7")


def test_random_numbers_are_the_same_everywhere() -> None:
    def draw(device: str) -> np.ndarray[Any, Any]:
        jg.manual_seed(3)
        with_gap = jg.dropout(jg.ones((64,), device=device), 0.5)
        return with_gap.cpu().numpy()

    np.testing.assert_array_equal(draw("cuda"), draw("cpu"))


def test_draws_by_rejection_are_those_on_the_host() -> None:
    def draw(device: str) -> list[Any]:
        jg.manual_seed(3)
        d, p = jg.distributions, jg.tensor([0.5, 0.25], device=device)
        chosen = [d.Gamma(p, p), d.Beta(2.0, p), d.Dirichlet(p), d.StudentT(4.0 * p), d.Poisson(8.0 * p), d.Binomial(10, p)]
        drawn = [x.sample() for x in chosen]
        found = [*drawn, *[x.log_prob(y) for x, y in zip(chosen, drawn, strict=True)]]
        found += [chosen[3].entropy(), chosen[3].mean, chosen[5].entropy(), chosen[5].variance, d.Normal(0.0, p).mean]
        assert {x.device for x in found} == {device}
        return [x.cpu().numpy() for x in found]

    for found, expected in zip(draw("cuda"), draw("cpu"), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_modules_and_their_gradients_move() -> None:
    layer = jg.nn.Linear(4, 2)
    weight = layer.weight
    layer(jg.tensor(X)).sum().backward()

    assert layer.to("cuda") is layer
    assert layer.weight is weight
    assert weight.device == "cuda"
    assert weight.grad is not None
    assert weight.grad.device == "cuda"
    assert layer(jg.tensor(X, device="cuda")).device == "cuda"
    assert layer.cpu().weight.device == "cpu"
    assert jg.nn.Linear(4, 2, device="cuda").bias.device == "cuda"  # type: ignore[union-attr]


def test_the_state_of_an_optimiser_follows_its_parameters() -> None:
    def trained(device: str) -> np.ndarray[Any, Any]:
        jg.manual_seed(0)
        layer = jg.nn.Linear(4, 2)
        optimizer = jg.optim.Adam(layer.parameters(), lr=0.1)
        layer.to(device)
        for _ in range(3):
            optimizer.zero_grad()
            layer(jg.tensor(X, device=device)).square().mean().backward()
            optimizer.step()
        assert {t.device for _, t in optimizer._named_state()} == {device}
        return layer.weight.detach().cpu().numpy()

    np.testing.assert_allclose(trained("cuda"), trained("cpu"), rtol=1e-5)


def test_a_sort_runs_on_the_host() -> None:
    x = jg.tensor([3.0, 1.0, 2.0], device="cuda")

    assert jg.sort(x).device == "cuda"
    assert jg.sort(x).tolist() == [1.0, 2.0, 3.0]


def test_dlpack_and_the_array_interface_lead_to_the_same_memory() -> None:
    x = jg.tensor(X, device="cuda")

    shared = jg.from_dlpack(x)
    interface = x.__cuda_array_interface__

    assert shared.device == "cuda"
    assert shared.__cuda_array_interface__["data"] == interface["data"]
    assert interface["shape"] == (3, 4)
    x += 1.0
    np.testing.assert_array_equal(shared.cpu().numpy(), X + 1)
    assert not hasattr(jg.tensor(X), "__cuda_array_interface__")

    class Foreign:
        __cuda_array_interface__ = interface

    np.testing.assert_array_equal(jg.asarray(Foreign()).cpu().numpy(), X + 1)


def test_memory_statistics_and_synchronisation() -> None:
    gc.collect()
    before = jg.cuda.memory_stats().bytes_in_use
    x = jg.zeros((1 << 16,), device="cuda")
    jg.cuda.synchronize()

    assert jg.cuda.is_available()
    assert jg.cuda.device_count() == 1
    assert jg.cuda.memory_stats().bytes_in_use - before >= x.size * 4


def test_a_machine_without_a_driver_says_what_is_missing(no_driver: None) -> None:
    assert not jg.cuda.is_available()
    assert jg.cuda.device_count() == 0
    for use in (lambda: jg.zeros(3, device="cuda"), lambda: jg.jit(lambda x: x + 1, backend="cuda")(jg.zeros(3))):
        with pytest.raises(CudaError, match=r"no CUDA driver was found.*jitgrad\[cuda12\]"):
            use()


def test_known_ops_need_no_new_kernels(cuda: Any) -> None:
    if not isinstance(cuda, FakeDriver):
        pytest.skip("counts work of the emulated device")
    x = jg.tensor(X, device="cuda")
    jg.tanh(x * 2.0)
    before = cuda.counts.loads

    for factor in (3.0, 4.0):
        jg.tanh(x * factor)

    assert cuda.counts.loads == before


def test_checkpoints_are_saved_from_the_device_and_loaded_there(tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    jg.manual_seed(0)
    model = jg.nn.Sequential(jg.nn.Linear(3, 2), jg.nn.BatchNorm1d(2)).to("cuda")
    model(jg.ones((4, 3), device="cuda"))
    path = tmp_path / "model.safetensors"

    jg.save({**model.state_dict(), "view": jg.arange(6, device="cuda").reshape(2, 3).T[::-1]}, path)

    loaded = jg.load(path)
    assert {x.device for x in loaded.values()} == {"cpu"}
    assert loaded.pop("view").tolist() == [[2, 5], [1, 4], [0, 3]]
    other = jg.nn.Sequential(jg.nn.Linear(3, 2), jg.nn.BatchNorm1d(2)).to("cuda")
    other.load_state_dict(loaded)
    assert {x.device for x in other.state_dict().values()} == {"cuda"}
    x = jg.ones((4, 3), device="cuda")
    assert model.eval()(x).tolist() == other.eval()(x).tolist()
