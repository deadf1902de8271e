"""Arrays, numbers and indices that are on the host, beside tensors on the CUDA device; torch's ways to name the device."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
import jitgrad.numpy
from jitgrad import nn, optim
from jitgrad.core.errors import ArgumentError, DeviceError

pytestmark = pytest.mark.usefixtures("cuda")

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
MASK = X > 0.5
ROWS = np.array([True, False, True])


@pytest.mark.parametrize("name", ["stack", "concatenate", "vstack", "hstack", "dstack", "column_stack"])
@pytest.mark.parametrize("module", [np, jitgrad.numpy], ids=["numpy", "jitgrad.numpy"])
def test_functions_of_numpy_join_tensors_and_arrays(name: str, module: Any) -> None:
    x, join = jg.tensor(X, device="cuda"), getattr(module, name)

    for given in ([x, X], [X, x]):
        joined = join(given)
        assert joined.device == "cuda"
        np.testing.assert_array_equal(joined.cpu().numpy(), getattr(np, name)([X, X]))


@pytest.mark.parametrize("join", [np.stack, jg.stack, jitgrad.numpy.dstack])
def test_errors_name_the_tensors_in_a_list(join: Callable[[Any], Any]) -> None:
    places = (r"f32\[3,4\] \(\w+\[1\]\) is on cuda", r"another f32\[3,4\] \(\w+\[0\]\) is on the host")
    pattern = rf"^d?stack \(concat\): a tensor {', and '.join(places)}"
    with pytest.raises(DeviceError, match=pattern):
        join([jg.tensor(X), jg.tensor(X, device="cuda")])


def test_errors_of_numpys_functions_have_its_names() -> None:
    for call in (np.add, lambda a, b: np.where(a > 0, a, b)):
        with pytest.raises(DeviceError, match=r"^(add|where): a tensor"):
            call(jg.tensor(X, device="cuda"), jg.tensor(X))


def test_functions_of_numpy_take_a_tensor_and_an_array() -> None:
    x = jg.tensor(X, device="cuda")
    for call in (
        lambda a, b: np.where(a > 0, a, b),
        lambda a, b: np.dot(a, b.T),
        lambda a, b: np.append(a, b),
        lambda a, b: np.outer(a, b),
        lambda a, b: np.isclose(a, b),
    ):
        np.testing.assert_allclose(call(x, X).cpu().numpy(), call(X, X), rtol=1e-6)
        np.testing.assert_allclose(call(X, x).cpu().numpy(), call(X, X), rtol=1e-6)


@pytest.mark.parametrize("dtype", [None, jg.float64])
def test_tensor_of_numbers_on_the_device(dtype: Any) -> None:
    def run(x: jg.Tensor) -> list[jg.Tensor]:
        return [
            jg.tensor([x[0, 0], x[1, 2]], dtype=dtype),
            jg.tensor([[x[0, 1], 2.0], (x[0, 3], 3)], dtype=dtype),
            jg.tensor([x[0], x[1]], dtype=dtype),
            jg.as_tensor([x[0, 0], 1.0], dtype=dtype),
        ]

    for found, traced, expected in zip(
        run(jg.tensor(X, device="cuda")), jg.jit(run)(jg.tensor(X, device="cuda")), run(jg.tensor(X)), strict=True
    ):
        assert (found.device, found.dtype) == ("cuda", expected.dtype) == (traced.device, traced.dtype)
        np.testing.assert_array_equal(found.cpu().numpy(), expected.numpy())


def test_masks_and_indices_may_be_on_the_host() -> None:
    """As in torch: a data set on the device is read at positions that the host draws."""
    for place in ("cuda", "cpu"):
        for mask, rows, positions in (
            (MASK, ROWS, np.array([2, 0])),
            *[[jg.tensor(m, device=place) for m in (MASK, ROWS, np.array([2, 0]))]],
        ):
            x = jg.tensor(X, device="cuda")
            given: list[Any] = [mask, rows, (slice(None), positions), (rows, slice(1, 3)), positions, (positions, 1)]
            for index, known in zip(
                given, [MASK, ROWS, np.s_[:, [2, 0]], np.s_[ROWS, 1:3], [2, 0], ([2, 0], 1)], strict=True
            ):
                np.testing.assert_array_equal(x[index].cpu().numpy(), X[known])
                changed, expected = x.clone(), X.copy()
                changed[index] = 7.0
                changed[index] *= 2.0
                expected[known] = 14.0
                np.testing.assert_array_equal(changed.cpu().numpy(), expected)


def test_gradients_flow_through_masks() -> None:
    x = jg.tensor(X, device="cuda", requires_grad=True)

    (x[x > 0.5] ** 2).sum().backward()

    assert x.grad is not None
    np.testing.assert_allclose(x.grad.cpu().numpy(), np.where(MASK, 2 * X, 0), rtol=1e-6)


def test_data_on_the_host_is_not_read_at_indices_on_the_device() -> None:
    with pytest.raises(DeviceError, match=r"i64\[2\] is on cuda, and another f32\[3,4\] is on the host"):
        jg.tensor(X)[jg.tensor([0, 1], device="cuda")]


def test_devices_have_numbers() -> None:
    x = jg.tensor(X)

    assert [x.to(0).device, x.cuda(0).device, jg.zeros(2, device=0).device] == ["cuda"] * 3
    assert (x.get_device(), x.to(0).get_device()) == (-1, 0)
    for first in (jg.device("cuda:0"), jg.device(0), jg.device("cuda", 0), pickle.loads(pickle.dumps(jg.device(0)))):
        assert (first.type, first.index, str(first), f"{first}") == ("cuda", 0, "cuda:0", "cuda:0")
        assert x.to(first).device == first == jg.device("cuda")
        assert jg.zeros(2, device=first).device == first
    assert nn.Linear(2, 2).cuda(0).weight.device == nn.Linear(2, 2).to(0).weight.device == "cuda"
    for wrong in (1, "cuda:1"):
        with pytest.raises(ArgumentError, match="one CUDA device is used, 'cuda:0'; CUDA_VISIBLE_DEVICES"):
            x.to(wrong)


def test_what_torch_asks_of_the_device() -> None:
    before = jg.cuda.memory_allocated()
    x = jg.zeros(1 << 20, device="cuda")

    assert jg.cuda.memory_allocated(0) - before >= 4 << 20
    assert jg.cuda.max_memory_allocated() >= jg.cuda.memory_reserved("cuda") >= jg.cuda.memory_allocated()
    del x
    jg.cuda.empty_cache()
    jg.cuda.reset_peak_memory_stats()
    assert jg.cuda.max_memory_reserved() == jg.cuda.memory_reserved()
    properties = jg.cuda.get_device_properties(0)
    assert (properties.name, (properties.major, properties.minor)) == (
        jg.cuda.get_device_name(),
        jg.cuda.get_device_capability(),
    )
    assert jg.cuda.mem_get_info()[1] == properties.total_memory
    with pytest.raises(ArgumentError, match="no CUDA device"):
        jg.cuda.get_device_name("cpu")


def test_events_take_the_time_of_the_device() -> None:
    start, end = jg.cuda.Event(enable_timing=True), jg.cuda.Event(enable_timing=True)
    with pytest.raises(ArgumentError, match="record"):
        start.elapsed_time(end)

    start.record()
    jg.tensor(X, device="cuda") @ jg.tensor(X.T, device="cuda")
    end.record()

    end.synchronize()
    assert start.elapsed_time(end) >= 0.0


@pytest.mark.parametrize("kind", ["Adam", "SGD", "RMSprop"])
def test_optimisers_follow_their_parameters_at_any_step(kind: str) -> None:
    """The recorded step of an optimizer on the host ran op by op with state on the other side."""
    options: dict[str, Any] = {"momentum": 0.9} if kind == "SGD" else {}

    def run(places: str) -> list[Any]:
        jg.manual_seed(0)
        model = nn.Linear(4, 2)
        optimizer = getattr(optim, kind)(model.parameters(), lr=0.1, **options)
        for place in places.split():
            model.to(place)
            optimizer.zero_grad()
            (model(jg.tensor(X, device=place)) ** 2).mean().backward()
            optimizer.step()
        return [p.detach().cpu().numpy() for p in model.parameters()]

    for found, expected in zip(run("cpu cpu cpu cpu cuda cpu cpu cpu cpu cuda cuda"), run("cpu " * 11), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
