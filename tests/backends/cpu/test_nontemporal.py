"""Large results bypass the caches where that is safe, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.eager import buffer_pool
from tests.machine_code import AVX2, AVX512, needs_f16c, needs_x86, program_assembly

pytestmark = pytest.mark.numba  # on AVX-512 a wrong address ends the process
HALF = pytest.param(np.float16, marks=needs_f16c)


@pytest.fixture(autouse=True)
def _small_is_large(tune):
    """Everything that is aligned with lines counts as large, so that the tests need no large arrays."""
    tune(min_nontemporal_bytes=0, min_nontemporal_result=buffer_pool.SMALL)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def streams(f, *args):
    """How many streaming stores there are in the source of the kernels of ``f``."""
    return sum(kernel.source.count("stream(") for kernel in f.kernels(*args))


def gelu(x):
    return 0.5 * x * (1.0 + jg.tanh(0.8 * (x + 0.04 * x * x * x)))


def rows(x, residual):
    y = x + residual
    centred = y - jg.mean(y, axis=-1, keepdims=True)
    return centred * jg.rsqrt(jg.mean(centred * centred, axis=-1, keepdims=True) + 1e-5)


def normal(rng, *shape, dtype=np.float32):
    return jg.tensor(rng.standard_normal(shape).astype(dtype))


def test_results_and_gradients_are_streamed(rng):
    x = normal(rng, 64, 256)
    assert streams(jg.jit(gelu), x) == 1
    assert streams(jg.jit(jg.value_and_grad(lambda x, y: jg.sum(gelu(x) * y), argnums=(0, 1))), x, x) == 2
    assert streams(jg.jit(rows), x, x) == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.uint8, np.bool_, HALF])
@pytest.mark.parametrize("n", [4096, 16384 + 7, 70_001])
def test_flat_results_equal_those_of_eager(rng, dtype, n):
    x = jg.tensor((rng.standard_normal(n) * 50).astype(dtype))
    f = (lambda x: x & ~x) if dtype is np.bool_ else (lambda x: x * x + x)
    assert streams(jg.jit(f), x) == (x.numpy().nbytes >= buffer_pool.SMALL)
    assert np.array_equal(jg.jit(f)(x).numpy(), f(x).numpy())


@pytest.mark.parametrize("shape", [(40, 1024), (40, 1000), (3, 5, 64), (4096, 16), (1, 8192), (33, 48)])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_rows_do_not_depend_on_it(rng, tune, shape, threads):
    x, y = normal(rng, *shape), normal(rng, *shape)

    def loss(x, y):
        return jg.sum(rows(x, y) * gelu(y))

    before = jg.get_num_threads()
    jg.set_num_threads(threads)
    try:
        found = jg.jit(jg.value_and_grad(loss, argnums=(0, 1)))(x, y)
        tune(min_nontemporal_bytes=1 << 60)
        expected = jg.jit(jg.value_and_grad(loss, argnums=(0, 1)))(x, y)
    finally:
        jg.set_num_threads(before)
    for a, b in zip((found[0], *found[1]), (expected[0], *expected[1]), strict=True):
        assert np.array_equal(a.numpy(), b.numpy())


def test_flat_loops_that_stream_fetch_what_they_read(rng, tune):
    x = normal(rng, 64, 256)
    f = jg.jit(jg.value_and_grad(lambda x, y: jg.sum(gelu(x) * y), argnums=(0, 1)))
    (kernel,) = f.kernels(x, x * 2.0)
    assert kernel.source.count("prefetch_beside(") == 2
    tune(min_nontemporal_bytes=1 << 60)
    f.clear()
    assert "prefetch" not in f.kernels(x, x * 2.0)[0].source


def test_small_kernels_stream_nothing(rng, tune):
    tune(min_nontemporal_bytes=1 << 20)
    assert streams(jg.jit(gelu), normal(rng, 1000, 100)) == 0
    assert streams(jg.jit(gelu), normal(rng, 1000, 200)) == 1


def test_results_that_need_not_lie_at_a_line_are_not_streamed(rng):
    """Smaller ones come from NumPy, not from the pool: a streaming store to such an address ends the process."""
    assert streams(jg.jit(gelu), normal(rng, 1023)) == 0
    assert streams(jg.jit(gelu), normal(rng, 1024)) == 1


def test_rows_that_share_lines_are_not_streamed(rng):
    assert streams(jg.jit(rows), normal(rng, 64, 1000), normal(rng, 64, 1000)) == 0


def test_what_another_step_reads_is_not_streamed(rng):
    x, w = normal(rng, 64, 64), normal(rng, 64, 64)

    def f(x, w):
        y = gelu(x)
        return y, y @ w

    assert streams(jg.jit(f), x, w) == 0


def test_memory_of_arguments_is_not_streamed_to(rng):
    """It lies where the caller has laid it."""
    x = normal(rng, 64, 256)
    assert streams(jg.jit(lambda x: x * 2.0 + 1.0, donate=0), x) == 0
    whole = np.zeros(64 * 256 + 1, np.float32)
    f = jg.jit(lambda x: x * 2.0 + 1.0, donate=0)
    assert np.array_equal(f(jg.tensor(whole[1:])).numpy(), np.ones(64 * 256, np.float32))


def test_memory_that_sweeps_share_is_not_streamed(rng):
    """A softmax keeps exponentials where its result will be; streamed ones are kept in scratch instead."""
    x = normal(rng, 64, 1024)
    f = jg.jit(lambda x: jg.softmax(x, axis=-1))
    source = f.kernels(x)[0].source
    assert streams(f, x) == 1
    assert "s0r[j] =" in source
    f(x)
    assert np.allclose(f(x).numpy(), f.eager(x).numpy(), rtol=1e-5, atol=0.0)
    long = normal(rng, 2, 1 << 15)
    assert streams(f, long) == 0


def test_kernels_alike_in_all_but_who_reads_their_results(rng):
    """The second result is read again by a product, so one kernel cannot serve both."""
    x, y = normal(rng, 64, 64), normal(rng, 64, 64)

    def f(x, y):
        return gelu(x), gelu(y @ y) @ x

    fused = jg.jit(f)
    sources = [kernel.source for kernel in fused.kernels(x, y)]
    assert sorted("stream(" in source for source in sources) == [False, True]
    for a, b in zip(fused(x, y), f(x, y), strict=True):
        assert np.allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-5)


@needs_x86
def test_machine_code_streams_where_a_vector_is_a_line(rng):
    x = normal(rng, 64, 256)
    both = jg.jit(jg.value_and_grad(lambda x, y: jg.sum(gelu(x) * y), argnums=(0, 1)))
    wide, narrow = program_assembly(AVX512, both, x, x), program_assembly(AVX2, both, x, x)
    assert all(name in wide for name in ("vmovntps\t%zmm", "sfence", "prefetcht1"))
    assert not any(name in narrow for name in ("vmovnt", "sfence", "prefetcht1"))
