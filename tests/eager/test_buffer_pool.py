"""The buffer pool reuses memory as soon as, and only when, no reference to it is left."""

import gc
import sys
import threading
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.gc_paused import gc_paused
from jitgrad.eager import buffer_pool as module
from jitgrad.eager.buffer_pool import ALIGNMENT, Pool, address_of, size_class

F32 = np.dtype(np.float32)


@pytest.fixture
def pool():
    return Pool()


@pytest.mark.parametrize("shape", [(), (0,), (3,), (0, 5), (64, 64), (1000, 1001)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.bool_, np.int8])
def test_shape_dtype_and_address(pool, shape, dtype):
    array, address = pool.take(shape, np.dtype(dtype))

    assert (array.shape, array.dtype) == (shape, np.dtype(dtype))
    assert array.flags.c_contiguous
    assert array.flags.writeable
    assert address == array.ctypes.data == address_of(array)
    if array.nbytes >= 4096:
        assert address % ALIGNMENT == 0


def test_dropped_array_is_reused(pool):
    first = pool.empty((100, 100), F32)
    address = address_of(first)
    del first

    assert address_of(pool.empty((100, 100), F32)) == address
    assert address_of(pool.empty((5000,), np.dtype(np.float64))) == address
    assert (pool.stats().allocations, pool.stats().reuses) == (1, 2)


@pytest.mark.parametrize(
    "keep",
    [
        lambda a: a,
        lambda a: a[3:],
        lambda a: a.T[::-1],
        memoryview,
        lambda a: a.view(np.int32)[1:].view(np.uint8),
        lambda a: np.broadcast_to(a[0], (9, 100)),
        lambda a: np.frombuffer(a, np.uint8),
        np.from_dlpack,
        lambda a: a.flat,
        lambda a: np.lib.stride_tricks.sliding_window_view(a, 3, 0),
    ],
)
def test_seen_memory_is_never_reused(pool, keep):
    array = pool.empty((100, 100), F32)
    address = array.ctypes.data
    kept = keep(array)
    del array

    others = [pool.empty((100, 100), F32) for _ in range(5)]

    assert address not in [o.ctypes.data for o in others]
    del kept
    assert address in [pool.empty((100, 100), F32).ctypes.data for _ in range(1)]


def test_live_arrays_do_not_overlap(pool):
    rng = np.random.default_rng(0)
    live = []
    for step in range(3000):
        array = pool.empty((int(rng.integers(1, 5000)),), F32)
        array.fill(step)
        live.append((step, array))
        if len(live) > 40:
            live.pop(int(rng.integers(len(live))))
    for step, array in live:
        assert (array == step).all()


def test_steady_state_allocates_nothing(pool):
    def step():
        held = [pool.empty((k * 1000,), F32) for k in range(1, 40)]
        return held[::3]

    state = step()
    for _ in range(3):
        state = step()
    before = pool.stats().allocations
    for _ in range(20):
        state = step()

    assert pool.stats().allocations == before
    assert state


def test_growing_group_is_searched_seldom(pool, monkeypatch):
    searched = []

    def count(block):
        searched.append(block.size)
        return sys.getrefcount(block) - 1

    monkeypatch.setattr(module, "getrefcount", count)
    kept = [pool.empty((2000,), F32) for _ in range(1000)]

    assert len(kept) == 1000
    assert len(searched) < 10_000


def test_many_live_arrays_are_all_found_again(pool):
    kept = [pool.empty((2000,), F32) for _ in range(300)]
    allocated = pool.stats().allocations
    kept.clear()
    for _ in range(200):
        pool.empty((2000,), F32)
    kept = [pool.empty((2000,), F32) for _ in range(200)]

    assert pool.stats().allocations <= allocated + allocated // 4


def test_trim_frees_only_what_is_free(pool):
    kept = pool.empty((10_000,), F32)
    pool.empty((20_000,), F32)
    kept.fill(7)
    assert pool.stats().bytes_held == size_class(40_000) + size_class(80_000)
    assert pool.stats().bytes_in_use == size_class(40_000)

    assert pool.trim() == size_class(80_000)
    assert pool.stats().bytes_held == size_class(40_000)
    assert (kept == 7).all()
    del kept
    assert pool.trim() == size_class(40_000)
    assert pool.stats().bytes_held == 0
    assert pool.stats().peak_bytes_held == size_class(40_000) + size_class(80_000)


def test_unused_sizes_are_given_back(pool, monkeypatch):
    monkeypatch.setattr(module, "_SLACK", 1 << 20)
    pool._next_review = 2 << 20
    for k in range(200):
        pool.empty(((1 << 18) + k * (1 << 15),), F32)

    assert pool.stats().bytes_held < 40 << 20


@pytest.mark.parametrize("size", [1, 64, 4095, 4096, 4097, 100_000, 1 << 20, (1 << 20) + 1, 123_456_789])
def test_size_classes_waste_an_eighth(size):
    rounded = size_class(size)

    assert rounded >= size
    assert rounded % ALIGNMENT == 0
    assert rounded - size < max(size / 8, ALIGNMENT)
    assert size_class(rounded) == rounded


def test_out_of_memory_trims_and_tries_again(pool, monkeypatch):
    pool.empty((1 << 20,), F32)
    real, failures = np.empty, []

    def refuse_once(*args):
        if not failures:
            failures.append(args)
            raise MemoryError
        return real(*args)

    monkeypatch.setattr(module.np, "empty", refuse_once)
    array = pool.empty((1 << 19,), F32)

    assert failures
    assert array.size == 1 << 19
    assert pool.stats().bytes_held == size_class(1 << 21)


def test_threads_never_share_a_block():
    pool, wrong = Pool(), []

    def work(mark):
        for _ in range(2000):
            a, b = pool.empty((1500,), F32), pool.empty((1500,), F32)
            a.fill(mark)
            b.fill(-mark)
            if not ((a == mark).all() and (b == -mark).all()):
                wrong.append(mark)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(interval)

    assert not wrong
    assert pool.stats().bytes_in_use == 0


def large(*shape: int) -> Any:
    return np.random.default_rng(0).standard_normal(shape).astype("f")


def test_large_eager_results_take_memory_that_was_used_before():
    gc.collect()  # what earlier tests left would give memory back in the middle of this one
    x = jg.tensor(large(600, 1000))
    module.trim()  # so that the first sum's block is the only free one of its size
    with gc_paused():
        first = (x + x).numpy()
        place, values = module.address_of(first), first.copy()
        del first

        second = x + x

    assert module.address_of(second.numpy()) == place
    np.testing.assert_array_equal(second.numpy(), values)


@pytest.mark.parametrize("name", ["add", "multiply", "divide", "less", "exp", "tanh", "maximum", "equal", "negative"])
@pytest.mark.parametrize("form", ["rows", "columns", "reversed", "row", "column", "number", "both"])
def test_eager_results_from_the_pool_are_numpys_in_values_dtype_and_layout(name: str, form: str):
    a = large(1100, 1000)
    forms: dict[str, Any] = {
        "rows": (a, a + 1), "columns": (a.T, a.T + 1), "reversed": (a[::-1], a), "row": (a, a[0]), "column": (a[:, :1], a),
        "number": (a, 2.0), "both": (a[:, :1], a[0]),
    }  # fmt: skip
    operands = forms[form][: 1 if name in ("exp", "tanh", "negative") else 2]

    found = getattr(jg, name)(*[jg.from_numpy(x) if isinstance(x, np.ndarray) else x for x in operands]).numpy()

    expected = getattr(np, name)(*operands)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    assert found.strides == expected.strides


def test_integers_that_become_floats_on_the_way_are_numpys():
    a = np.arange(300_000, dtype=np.int32)

    found = jg.divide(jg.tensor(a), jg.tensor(a + 1)).numpy()

    np.testing.assert_array_equal(found, np.divide(a, a + 1).astype(found.dtype))


@pytest.mark.parametrize("error", [-1, 1])
def test_a_wrong_reference_count_is_found_and_nothing_is_used_again(monkeypatch, error):
    assert module.counts_tell_use()
    monkeypatch.setattr(module, "getrefcount", lambda block: sys.getrefcount(block) - 1 + error)

    assert not module.counts_tell_use()
    pool = Pool(reuse=False)
    x = pool.empty((2000,), F32)
    y = pool.empty((2000,), F32)
    assert x.base is None and y.base is None
    assert pool.stats().allocations == 0
