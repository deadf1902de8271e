"""Flushing of denormal numbers: in kernels on all threads and in NumPy, and not after it is switched off."""

from __future__ import annotations

import platform
from collections.abc import Iterator

import numpy as np
import pytest

import jitgrad as jg

pytestmark = pytest.mark.skipif(platform.machine().lower() not in ("x86_64", "amd64"), reason="needs an x86-64 CPU")


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before = jg.get_num_threads()
    yield
    jg.set_flush_denormal(False)
    jg.set_num_threads(before)


def tiny(n: int) -> jg.Tensor:
    return jg.tensor(np.full(n, 1e-30, np.float32))


@pytest.mark.parametrize("threads", [1, 3])
def test_kernels_give_zeros_on_every_thread(threads: int) -> None:
    jg.set_num_threads(threads)
    square = jg.jit(lambda x: x * 1e-10, check="off")
    x = tiny(1_000_000)

    kept = square(x).numpy()
    assert jg.set_flush_denormal(True)
    flushed = square(x).numpy()
    assert jg.set_flush_denormal(False)
    again = square(x).numpy()

    assert (kept > 0).all() and (again > 0).all()
    assert not flushed.any()


def test_eager_and_the_first_call_check_agree() -> None:
    jg.set_flush_denormal(True)

    def f(a: jg.Tensor, b: jg.Tensor) -> jg.Tensor:
        return (jg.exp(-a * a) @ jg.exp(-b * b) * 1e-3).sum()

    a = jg.tensor(np.linspace(-12, 12, 64 * 32, dtype=np.float32).reshape(64, 32))
    step = jg.jit(jg.value_and_grad(f))

    found, expected = step(a, a.T), jg.value_and_grad(f)(a, a.T)
    assert not (tiny(4) * 1e-10).numpy().any()
    assert np.allclose(found[0].numpy(), expected[0].numpy(), 1e-5)
    assert np.allclose(found[1].numpy(), expected[1].numpy(), 1e-4, 1e-30)


def test_other_values_are_refused() -> None:
    with pytest.raises(jg.errors.ArgumentError, match="expected True or False, got 1"):
        jg.set_flush_denormal(1)  # type: ignore[arg-type]
