"""Complex numbers on a device: memory, views, exchange, ops with gradients, products, and compiled steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.op import OpDef
from jitgrad.device.driver import Driver
from jitgrad.testing.fake_driver import FakeDriver
from jitgrad.testing.on_device import compare_on_device, ops_to_check

RNG = np.random.default_rng(7)
DTYPES = [np.complex64, np.complex128]


def complex_array(*shape: int, dtype: Any = np.complex64) -> np.ndarray[Any, Any]:
    return (RNG.normal(size=shape) + 1j * RNG.normal(size=shape)).astype(dtype)


Z = complex_array(3, 4)

# on a machine with a GPU and without cuFFT
pytestmark = pytest.mark.filterwarnings(
    "ignore:Fourier transforms of tensors on a device:jitgrad.core.errors.JitgradWarning"
)


@pytest.mark.parametrize("op", ops_to_check(np.complex64), ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_ops_are_those_of_the_host(cuda: Driver, op: OpDef, dtype: Any) -> None:
    compare_on_device(op, lambda f: jg.jit(f, check="off"), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3, 4)], ids=str)
def test_there_and_back(cuda: Driver, dtype: Any, shape: tuple[int, ...]) -> None:
    z = complex_array(*shape, dtype=dtype)

    x = jg.tensor(z).to("cuda")

    assert (x.device, x.dtype, x.shape) == ("cuda", dtype, shape)
    np.testing.assert_array_equal(x.cpu().numpy(), z)
    np.testing.assert_array_equal(jg.tensor(z, device="cuda").tolist(), z.tolist())


def test_new_tensors(cuda: Driver) -> None:
    made = [
        jg.full((2, 3), 1 + 2j, device="cuda"), jg.full((2,), 0j, device="cuda"), jg.tensor([1j, 2.0], device="cuda"),
        jg.zeros((2,), dtype=jg.complex128, device="cuda"), jg.complex(jg.ones(2, device="cuda"), 3.0),
        jg.ones(2, device="cuda").to(jg.complex64), jg.ones(2, device="cuda") + np.array([1j, 2.0]),
    ]  # fmt: skip

    assert all(x.device == "cuda" and x.dtype.kind == "c" for x in made)
    assert made[0].cpu().tolist() == [[1 + 2j] * 3] * 2
    assert [x.cpu().tolist() for x in made[1:]] == [[0, 0], [1j, 2], [0, 0], [1 + 3j] * 2, [1, 1], [1 + 1j, 3]]
    assert made[2][0].item() == 1j


@pytest.mark.parametrize(
    "view",
    [lambda x: x.T, lambda x: x[::-1, ::2], lambda x: x[1:2, 3], lambda x: x.real, lambda x: x.imag.T, lambda x: x.T[::-1].imag],
)
def test_views_and_their_copies(cuda: Driver, view: Callable[[Any], Any]) -> None:
    x = jg.tensor(Z, device="cuda")

    found = view(x)

    assert found._data.owner is x._data.owner
    np.testing.assert_array_equal(found.cpu().numpy(), view(Z))
    np.testing.assert_array_equal(found.clone().cpu().numpy(), view(Z))
    np.testing.assert_allclose((found * 2 + 1).cpu().numpy(), view(Z) * 2 + 1, 1e-6)


def test_parts_and_slices_can_be_assigned(cuda: Driver) -> None:
    x, expected = jg.tensor(Z, device="cuda"), Z.copy()
    x.imag = 5.0
    x.real[1] = jg.ones(4, device="cuda")
    x[::2, 3] = 1j
    x *= 2j
    expected.imag = 5.0
    expected.real[1] = 1.0
    expected[::2, 3] = 1j
    expected *= 2j

    np.testing.assert_allclose(x.cpu().numpy(), expected, 1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_exchange_without_a_copy(cuda: Driver, dtype: Any) -> None:
    x = jg.tensor(complex_array(2, 3, dtype=dtype), device="cuda")
    view = x.T[1:]

    by_dlpack = jg.from_dlpack(view)
    described = view.__cuda_array_interface__
    by_interface = jg.asarray(type("Other", (), {"__cuda_array_interface__": described, "kept": x})())

    assert described["typestr"] == np.dtype(dtype).str
    for other in (by_dlpack, by_interface):
        assert (other.device, other.dtype) == ("cuda", dtype)
        assert other._data.address == view._data.address
        np.testing.assert_array_equal(other.cpu().numpy(), view.cpu().numpy())


def test_gradients_of_both_orders(cuda: Driver) -> None:
    def curvature(device: str, wrap: Callable[[Any], Any]) -> Any:
        def loss(z: Any) -> Any:
            return (jg.abs(jg.exp(z) * z.conj()) ** 2).sum()

        def size_of_gradient(z: Any) -> Any:
            return (jg.abs(jg.grad(loss)(z)) ** 2).sum()

        return wrap(jg.grad(size_of_gradient))(jg.tensor(Z, device=device)).cpu().numpy()

    expected = curvature("cpu", lambda f: f)
    for wrap in (lambda f: f, jg.jit):
        np.testing.assert_allclose(curvature("cuda", wrap), expected, 1e-4)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("wrap", [lambda f: f, jg.jit], ids=["eager", "compiled"])
def test_products_of_matrices_by_cublas(driver: FakeDriver, dtype: Any, wrap: Callable[[Any], Any]) -> None:
    a, b = complex_array(2, 3, 4, dtype=dtype), complex_array(5, 4, dtype=dtype)
    f = wrap(lambda x, y: (x @ y.T) @ y)
    expected = f(jg.tensor(a), jg.tensor(b)).numpy()
    x, y = jg.tensor(a, device="cuda"), jg.tensor(b, device="cuda")
    f(x, y)
    before, copied = driver.counts.products, driver.counts.copies_to_host

    result = f(x, y)

    assert (driver.counts.products, driver.counts.copies_to_host) == (before + 2, copied)
    np.testing.assert_allclose(result.cpu().numpy(), expected, 1e-5)


def test_elementwise_work_of_a_step_stays_on_the_device(driver: FakeDriver) -> None:
    x = jg.tensor(Z, device="cuda")
    f = jg.jit(lambda x: (jg.concat([x, x.conj()])[1:] * 1j, jg.pad(x.T, ((1, 0), (0, 0))), jg.stack([x, x * 2]).sum(0)))
    results = f(x)

    assert "by the host" not in str(f.explain(x))
    for found, wanted in zip(results, f(jg.tensor(Z)), strict=True):
        np.testing.assert_allclose(found.cpu().numpy(), wanted.numpy(), 1e-6)


def test_an_optimiser_trains_the_parts_of_complex_parameters(driver: FakeDriver) -> None:
    a, target = complex_array(6, 3), complex_array(6)

    def losses(device: str) -> list[float]:
        parts = [jg.zeros(3, device=device).requires_grad_() for _ in range(2)]
        optimizer = jg.optim.Adam(parts, lr=0.1)
        x, t = jg.tensor(a, device=device), jg.tensor(target, device=device)

        @jg.jit
        def step(x: Any, t: Any) -> Any:
            optimizer.zero_grad()
            loss = (jg.abs((x * jg.complex(*parts)).sum(1) - t) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss

        return [step(x, t).item() for _ in range(8)]

    found = losses("cuda")
    np.testing.assert_allclose(found, losses("cpu"), 1e-4)
    assert found[-1] < found[0]


def test_what_complex_numbers_have_not_is_refused_as_on_the_host(cuda: Driver) -> None:
    x = jg.tensor(Z, device="cuda")

    with pytest.raises(jg.errors.DtypeError, match=r"maximum is not defined for complex operands.*where\(abs"):
        jg.maximum(x, 1.0)
    with pytest.raises(jg.errors.DtypeError, match=r"argsort.*complex numbers have no order"):
        jg.jit(jg.argsort)(x)
    with pytest.raises(jg.errors.DeviceError, match=r"on cuda.*on the host"):
        x + jg.tensor(Z)
