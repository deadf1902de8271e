"""Fourier transforms on a device: by cuFFT, in CUDA graphs, and by the host where it is not installed."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import CudaError, JitgradWarning
from jitgrad.device.cufft import TransformPlan, TransformShape, contiguous_transform
from jitgrad.device.driver import Driver
from jitgrad.testing.fake_driver import FakeDriver

RNG = np.random.default_rng(11)
X = RNG.normal(size=(2, 5, 3, 6)).astype(np.float32)
Z = (X + 1j * RNG.normal(size=X.shape)).astype(np.complex64)

# on a machine with a GPU and without cuFFT
pytestmark = pytest.mark.filterwarnings(
    "ignore:Fourier transforms of tensors on a device:jitgrad.core.errors.JitgradWarning"
)


def assert_same(found: Any, expected: Any) -> None:
    found = found.cpu().numpy()
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(found, expected, 1e-4, 1e-5 * float(np.abs(expected).max(initial=0.0)))


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("wrap", [lambda f: f, jg.jit], ids=["eager", "compiled"])
@pytest.mark.parametrize(
    ("name", "given", "keywords"),
    [
        ("fft", Z, {}), ("fft", Z, {"axis": 0}), ("fft", Z, {"axis": 1}), ("fft", X, {"n": 4}), ("ifft", Z, {"n": 9, "axis": 2}),
        ("fft2", Z, {}), ("ifft2", Z, {"axes": (0, 1)}), ("ifft2", X, {"axes": (1, 2)}), ("fft2", Z, {"axes": (3, 0)}),
        ("fftn", Z, {}), ("ifftn", Z, {"axes": (0, 1, 3)}), ("rfft", X, {}), ("rfft", X, {"axis": 1}), ("rfft", X, {"n": 1}),
        ("irfft", Z, {}), ("irfft", Z, {"n": 9}), ("irfft", Z, {"axis": 1, "n": 7}), ("irfft", Z, {"n": 1}),
        ("irfft", Z, {"n": 2, "axis": 0}), ("rfft2", X, {}), ("irfft2", Z, {}), ("rfftn", X, {"axes": (1, 2)}),
        ("irfftn", Z, {"axes": (0, 2)}), ("hfft", Z, {}), ("ihfft", X, {}),
    ],
)  # fmt: skip
def test_transforms_are_numpys(
    driver: FakeDriver, name: str, given: Any, keywords: dict[str, Any], norm: str, wrap: Callable[[Any], Any]
) -> None:
    transform = wrap(lambda x: getattr(jg.fft, name)(x, norm=norm, **keywords))
    x = jg.tensor(given, device="cuda")
    transform(x)
    before, copied = driver.counts.transforms, driver.counts.copies_to_host

    found = transform(x)

    assert driver.counts.transforms > before
    assert driver.counts.copies_to_host == copied
    assert_same(found, getattr(np.fft, name)(given, norm=norm, **keywords))


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int8, np.int32, np.bool_])
def test_real_numbers_of_other_dtypes(cuda: Driver, dtype: Any) -> None:
    x = np.arange(6).astype(dtype)

    assert_same(jg.fft.fft(jg.tensor(x, device="cuda")), jg.fft.fft(jg.tensor(x)).numpy())
    assert_same(jg.fft.rfft(jg.tensor(x, device="cuda")), jg.fft.rfft(jg.tensor(x)).numpy())


def test_views_infinities_and_empty_arrays(cuda: Driver) -> None:
    infinite = np.array([np.inf, 1.0, 2.0, 3.0], np.float32)

    assert_same(jg.fft.fft(jg.tensor(Z, device="cuda").T[::-1]), np.fft.fft(Z.T[::-1]))
    assert_same(jg.fft.fft(jg.tensor(Z, device="cuda").imag[..., 1::2]), np.fft.fft(Z.imag[..., 1::2]))
    assert_same(jg.fft.fft(jg.tensor(Z[:0], device="cuda")), np.fft.fft(Z[:0]))
    found = jg.fft.fft(jg.tensor(infinite, device="cuda"), norm="ortho").cpu().numpy()
    assert np.isinf(found[0].real)
    assert found[0].imag == 0 or np.isnan(found[0].imag)


@pytest.mark.parametrize("wrap", [lambda f: f, jg.jit], ids=["eager", "compiled"])
@pytest.mark.parametrize(
    "loss",
    [
        lambda x: (jg.abs(jg.fft.fft(x)) ** 2).sum(),
        lambda x: (jg.fft.irfft(jg.fft.rfft(x, axis=1) * 2j, axis=1) ** 3).sum(),
        lambda x: jg.abs(jg.fft.rfft2(x)[..., 1]).sum(),
        lambda x: (jg.fft.irfft(x * (1 + 2j), n=7) ** 3).sum(),
    ],
)
def test_gradients(driver: FakeDriver, loss: Callable[[Any], Any], wrap: Callable[[Any], Any]) -> None:
    expected = jg.grad(loss)(jg.tensor(X)).numpy()

    assert_same(wrap(jg.grad(loss))(jg.tensor(X, device="cuda")), expected)


def test_a_spectral_step_is_one_graph(driver: FakeDriver) -> None:
    u = RNG.normal(size=(4, 32)).astype(np.float32)

    def losses(device: str) -> list[float]:
        k = jg.tensor(2j * np.pi * np.fft.fftfreq(32).astype(np.float32), device=device, dtype=jg.complex64)
        w = jg.ones(32, device=device).requires_grad_()
        optimizer = jg.optim.SGD([w], lr=0.01)
        x = jg.tensor(u, device=device)

        @jg.jit
        def step(x: Any) -> Any:
            optimizer.zero_grad()
            slope = jg.fft.ifft(k * jg.fft.fft(x * w)).real
            loss = ((slope - x) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss

        found = [step(x).item() for _ in range(6)]
        if device == "cuda":
            text = str(step.explain(x))
            assert "by cuFFT" in text
            assert "as one CUDA graph" in text
            assert "by the host" not in text
        return found

    np.testing.assert_allclose(losses("cuda"), losses("cpu"), 1e-4)
    assert driver.counts.graph_launches >= 4


def test_transforms_between_kernels_have_the_same_addresses_in_every_run(driver: FakeDriver) -> None:
    """The pool gave the four arrays in another order in each run, so that addresses came again every fourth time."""
    x = jg.tensor(RNG.normal(size=(4, 32)).astype(np.float32), device="cuda")

    @jg.jit
    def f(x: Any) -> Any:
        for _ in range(4):
            x = jg.fft.ifft(jg.fft.fft(x) * 2j).real
        return x.sum()

    values = [f(x).item() for _ in range(8)]

    assert len(set(values)) == 1
    assert driver.counts.captures == 1
    assert driver.counts.graph_launches >= 5


def test_a_returned_transform_is_the_callers_while_graphs_run(driver: FakeDriver) -> None:
    x = jg.tensor(Z, device="cuda")

    @jg.jit
    def f(x: Any, scale: float) -> Any:
        y = jg.fft.fft(jg.fft.ifft(jg.fft.fft(x) * scale) * 2)
        return y, jg.abs(y).sum()

    found = [f(x, float(k))[0] for k in range(6)]

    for k, y in enumerate(found):
        assert_same(y, np.fft.fft(Z).astype(np.complex64) * (2 * k))


def test_without_cufft_the_host_transforms_and_says_so(driver: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "has_transforms", False)
    x = jg.tensor(Z, device="cuda")
    f = jg.jit(lambda x: jg.fft.fft(x) * 2)

    with pytest.warns(JitgradWarning, match=r"run on the host: install cuFFT with pip install 'jitgrad\[cuda12\]'"):
        found = f(x)

    assert_same(found, np.fft.fft(Z) * 2)
    assert "dft by the host" in str(f.explain(x))
    assert_same(jg.fft.irfft(x), np.fft.irfft(Z))


# --- plans of the library ---------------------------------------------------------------------------


class Library:
    """Functions with the names of cuFFT's, which note their arguments."""

    def __init__(self, **failing: int) -> None:
        self.failing = failing
        self.calls: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any) -> int:
            self.calls.append((name, *[list(a) if hasattr(a, "_length_") else a for a in args]))
            if name == "cufftCreate":
                args[0]._obj.value = 5
            if name == "cufftMakePlanMany64":
                args[-1]._obj.value = 4096
            return self.failing.get(name, 0)

        return call


def test_a_plan_takes_its_memory_from_the_caller_and_goes_with_its_owner() -> None:
    library = Library()
    plan = TransformPlan(library, TransformShape((3, 4), 2, 1, 2, 16), lambda: None)

    assert (plan.handle, plan.work_bytes) == (5, 4096)
    (_, created), auto, made = library.calls[:3]
    assert auto == ("cufftSetAutoAllocation", 5, 0)
    assert made[:-1] == ("cufftMakePlanMany64", 5, 2, [3, 4], [3, 4], 2, 1, [3, 4], 2, 1, 0x69, 2)
    del plan, created
    gc.collect()
    assert library.calls[-1] == ("cufftDestroy", 5)


def test_a_plan_that_fails_names_the_function() -> None:
    with pytest.raises(CudaError, match="cufftMakePlanMany64 failed with cufftResult 2"):
        TransformPlan(Library(cufftMakePlanMany64=2), TransformShape((3,), 1, 3, 1, 8), lambda: None)


@pytest.mark.parametrize(
    ("shape", "axes", "expected"),
    [
        ((2, 3, 4), (2,), TransformShape((4,), 1, 4, 6, 8)),
        ((2, 3, 4), (0,), TransformShape((2,), 12, 1, 12, 8)),
        ((2, 3, 4), (0, 1), TransformShape((2, 3), 4, 1, 4, 8)),
        ((2, 3, 4), (0, 1, 2), TransformShape((2, 3, 4), 1, 24, 1, 8)),
        ((1, 3, 4), (1,), TransformShape((3,), 4, 1, 4, 8)),
        ((2, 3, 1), (1,), TransformShape((3,), 1, 3, 2, 8)),
        ((2, 3, 4), (1,), None),
        ((2, 3, 4), (0, 2), None),
        ((2, 2, 2, 2), (0, 1, 2, 3), None),
    ],
)
def test_what_one_call_transforms(shape: Any, axes: Any, expected: Any) -> None:
    assert contiguous_transform(shape, axes, 8) == expected
