"""Systems of equations, inverses, determinants and Cholesky factors by kernels on the device."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
import jitgrad.numpy as jnp
from jitgrad.backends.cuda.capability import Capability
from jitgrad.backends.cuda.ptxas import assemble, find_ptxas
from jitgrad.backends.cuda_target.device_code import DeviceCode
from jitgrad.backends.cuda_target.shared_elimination import shared_layout
from jitgrad.backends.cuda_target.systems import in_registers, in_shared_memory
from jitgrad.device.faults import SINGULAR
from jitgrad.runtime.library.system import Strides, System
from jitgrad.testing.fake_driver import FakeDriver

pytestmark = pytest.mark.usefixtures("cuda")
ROWS = [1, 3, 4, 5, 33]
EIGHT_DIGITS = {"float32": 2e-3, "float64": 1e-9}


def matrices(*shape: int, dtype: str = "float64", seed: int = 0) -> np.ndarray[Any, Any]:
    x = np.random.default_rng(seed).normal(size=shape)
    return x.astype(dtype)


def positive(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    n = x.shape[-1]
    return (x @ np.swapaxes(x, -1, -2) + n * np.eye(n)).astype(x.dtype)


def same(f: Callable[..., Any], expected: Any, *arrays: np.ndarray[Any, Any]) -> None:
    given = [jg.tensor(x, device="cuda") for x in arrays]
    compiled = jg.jit(f, check="off")
    assert "by the host" not in str(compiled.explain(*given))
    for results in (compiled(*given), f(*given)):
        results, wanted = (results, expected) if isinstance(results, tuple) else ((results,), (expected,))
        for result, right in zip(results, wanted, strict=True):
            found = result.cpu().numpy()
            assert (found.dtype, found.shape) == (arrays[0].dtype, np.shape(right))
            np.testing.assert_allclose(found, right, rtol=EIGHT_DIGITS[found.dtype.name], atol=1e-5 * np.max(np.abs(right)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", ROWS)
def test_inverses_determinants_and_factors(n: int, dtype: str) -> None:
    x = matrices(3, n, n, dtype=dtype)
    wide = x.astype(np.float64)
    same(jnp.linalg.inv, np.linalg.inv(wide), x)
    same(jnp.linalg.det, np.linalg.det(wide), x)
    same(jnp.linalg.slogdet, tuple(np.linalg.slogdet(wide)), x)
    same(jnp.linalg.cholesky, np.linalg.cholesky(positive(wide)), positive(x))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", ROWS)
@pytest.mark.parametrize("columns", [1, 5])
def test_systems(n: int, columns: int, dtype: str) -> None:
    a, b = matrices(2, n, n, dtype=dtype), matrices(2, n, columns, dtype=dtype, seed=1)
    same(jnp.linalg.solve, np.linalg.solve(a.astype(np.float64), b.astype(np.float64)), a, b)
    for upper in (False, True):
        triangle = (np.triu if upper else np.tril)(a) + 3 * np.eye(n, dtype=dtype)
        hidden = triangle + (np.tril(a, -1) if upper else np.triu(a, 1))  # the other triangle does not count
        expected = np.linalg.solve(triangle.astype(np.float64), b.astype(np.float64))
        same(lambda a, b, upper=upper: jnp.linalg.solve_triangular(a, b, upper=upper), expected, hidden, b)


def test_the_largest_matrices_and_right_sides_in_several_blocks() -> None:
    a, b = matrices(1, 64, 64), matrices(64, 70, seed=1)
    same(jnp.linalg.solve, np.linalg.solve(a, b), a, b)
    same(jnp.linalg.inv, np.linalg.inv(a), a)
    same(jnp.linalg.cholesky, np.linalg.cholesky(positive(a)), positive(a))


def test_operands_are_read_where_they_are(driver: FakeDriver) -> None:
    """Transposed matrices, matrices beside each other, and batches that broadcast, without a copy."""
    a, b = matrices(4, 6, 6), matrices(3, 1, 6, 4, seed=1)
    x, y = jg.tensor(a, device="cuda"), jg.tensor(b, device="cuda")
    f = jg.jit(lambda x, y: jnp.linalg.solve(x[::-2].mT, y[..., ::2]), check="off")
    f(x, y)
    before = driver.counts.launches

    found = f(x, y)

    assert driver.counts.launches - before == 1
    expected = np.linalg.solve(np.swapaxes(a[::-2], -1, -2), b[..., ::2])
    np.testing.assert_allclose(found.cpu().numpy(), expected, rtol=1e-9)


@pytest.mark.parametrize("n", [3, 8])
def test_gradients_need_no_op_of_the_host(n: int) -> None:
    def loss(a: Any, b: Any) -> Any:
        factor = jnp.linalg.cholesky(a @ a.mT + jg.eye(n, dtype=a.dtype, device=a.device))
        return (jnp.linalg.solve(a, b) ** 2).sum() + jnp.linalg.slogdet(a)[1].sum() + factor.sum() + jnp.linalg.det(a).sum()

    a, b = matrices(2, n, n) + 3 * np.eye(n), matrices(2, n, 2, seed=1)
    on_host = jg.grad(loss, argnums=(0, 1))(jg.tensor(a), jg.tensor(b))
    gradients = jg.jit(jg.grad(loss, argnums=(0, 1)))
    given = jg.tensor(a, device="cuda"), jg.tensor(b, device="cuda")
    for found, expected in zip(gradients(*given), on_host, strict=True):
        np.testing.assert_allclose(found.cpu().numpy(), expected.numpy(), rtol=1e-8)
    assert "by the host" not in str(gradients.explain(*given))


@pytest.mark.parametrize("n", [2, 6])
@pytest.mark.parametrize("wrap", [lambda f: f, lambda f: jg.jit(f, check="off")], ids=["eager", "compiled"])
def test_a_singular_matrix_is_an_error_when_a_value_is_read(n: int, wrap: Callable[[Any], Any]) -> None:
    singular, right = np.ones((2, n, n)), np.ones((n, 1))
    singular[0] = np.eye(n)
    calls = {
        "inverse": (jnp.linalg.inv, "Singular matrix"),
        "solve": (lambda x: jnp.linalg.solve(x, jg.tensor(right, device="cuda")), "Singular matrix"),
        "triangular_solve": (
            lambda x: jnp.linalg.solve_triangular(x - 1, jg.tensor(right, device="cuda"), upper=True),
            "Singular matrix",
        ),
        "cholesky": (lambda x: jnp.linalg.cholesky(-x), "Matrix is not positive definite"),
    }
    x = jg.tensor(singular, device="cuda")
    for word, (f, text) in calls.items():
        result = wrap(f)(x)
        with pytest.raises(np.linalg.LinAlgError, match=rf"{word} of .*: {text}"):
            result.cpu()
        assert jg.tensor([1.0], device="cuda").tolist() == [1.0]  # reported once


def test_the_first_call_reports_it_at_once() -> None:
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        jg.jit(jnp.linalg.inv)(jg.ones((3, 3), device="cuda"))


@pytest.mark.parametrize("n", [3, 8])
def test_determinants_of_singular_matrices_and_beyond_the_range_of_floats(n: int) -> None:
    x = np.stack([np.ones((n, n)), np.eye(n) * 1e30, -np.eye(n) * 1e-30, np.full((n, n), np.nan)]).astype(np.float32)
    with np.errstate(all="ignore"):
        expected, (sign, log) = np.linalg.det(x), np.linalg.slogdet(x)
    given = jg.tensor(x, device="cuda")
    np.testing.assert_allclose(jnp.linalg.det(given).cpu().numpy(), expected, rtol=1e-3)
    found = jnp.linalg.slogdet(given)
    np.testing.assert_array_equal(found[0].cpu().numpy()[:3], sign[:3])
    np.testing.assert_allclose(found[1].cpu().numpy(), log, rtol=1e-5)


@pytest.mark.parametrize("n", [2, 5])
def test_subnormal_pivots_are_used(n: int) -> None:
    x = (np.eye(n) * 1e-40).astype(np.float32)
    right = np.full((n, 1), 1e-40, np.float32)
    found = jnp.linalg.solve(jg.tensor(x, device="cuda"), jg.tensor(right, device="cuda"))
    np.testing.assert_array_equal(found.cpu().numpy(), np.ones((n, 1), np.float32))


def test_nan_and_infinity_are_no_errors() -> None:
    for n in (3, 6):
        x = np.eye(n)
        x[1, 1] = np.nan
        assert np.isnan(jnp.linalg.inv(jg.tensor(x, device="cuda")).cpu().numpy()[1, 1])


def test_a_step_becomes_one_graph_and_only_its_values_wait(driver: FakeDriver) -> None:
    """No synchronisation: the host learns of a fault when it reads."""
    x = jg.tensor(positive(matrices(8, 8)), device="cuda")
    right = jg.ones((8, 1), dtype=jg.float64, device="cuda")

    @jg.jit
    def step(x: Any) -> Any:
        for _ in range(6):
            x = x + jg.exp(-jnp.linalg.solve(x, right).sum()) * x
        return jnp.linalg.slogdet(x)[1]

    for _ in range(4):
        result = step(x)
    assert "as one CUDA graph" in str(step.explain(x))
    before = driver.counts.copies_to_host, driver.counts.synchronizations
    result = step(x)
    assert (driver.counts.copies_to_host, driver.counts.synchronizations) == before
    assert np.isfinite(result.item())


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize("n", [4, 33])
def test_their_kernels_need_no_local_memory(n: int, architecture: str) -> None:
    codes = []
    for name in ("solve", "triangular_solve", "inverse", "slogdet", "cholesky"):
        system = System(name, "f64", n, n, Strides(n, 1), Strides(1, n), 2, exact=True)
        source = in_registers(system, SINGULAR) if n == 4 else in_shared_memory(system, shared_layout(system), SINGULAR)
        code = DeviceCode(source, "kernel", Capability(8, 0), {})
        assert ".local" not in code.ptx
        codes.append(code._found[0])
    if find_ptxas() is not None:
        for usage in assemble(codes, architecture):
            assert usage.local == 0 and usage.registers <= 128


def test_a_block_holds_no_more_than_its_shared_memory() -> None:
    for name, dtype, n, columns in itertools.product(("solve", "inverse"), ("f32", "f64"), range(5, 65), (1, 64, 1000)):
        system = System(name, dtype, n, n if name == "inverse" else columns, Strides(n, 1), Strides(n, 1), 0, exact=True)
        layout = shared_layout(system)
        assert n * (layout.stride + 2) * int(dtype[1:]) // 8 <= 48 << 10
        wanted = n if name == "inverse" else columns
        assert layout.stride >= n + layout.columns
        assert (layout.parts - 1) * layout.columns < wanted <= layout.parts * layout.columns
        assert n <= layout.threads <= 256


def test_large_and_complex_matrices_stay_on_the_host() -> None:
    f = jg.jit(jnp.linalg.inv, check="off")
    for x in (matrices(65, 65), matrices(4, 4) * 1j):
        given = jg.tensor(x, device="cuda")
        assert "inverse by the host" in " ".join(str(f.explain(given)).split())
        np.testing.assert_allclose(f(given).cpu().numpy(), np.linalg.inv(x), rtol=1e-6)
