"""Large arrays that NumPy makes within eager ops reuse the blocks of freed ones, and no other arrays do."""

from __future__ import annotations

import subprocess
import sys
import threading
from contextvars import Context

import numpy as np
import pytest
from numpy._core.multiarray import get_handler_name

import jitgrad as jg
from jitgrad.backends import array_memory
from jitgrad.eager import buffer_pool
from jitgrad.eager.array_memory import _Kept
from jitgrad.eager.large_arrays import allowing_kernels
from jitgrad.eager.numpy_errors import keeps_large_arrays

ELEMENTS = 1 << 20


@pytest.fixture(scope="module")
def context() -> Context:
    """A context with a handler of its own, of which nothing is kept yet."""
    made = Context()
    if made.run(array_memory.install_handler, True) is None:
        pytest.skip("this C library or NumPy has no such handler")
    return made


def _address(x: np.ndarray) -> int:
    return x.ctypes.data


@pytest.mark.usefixtures("context")
def test_results_of_large_ops_have_the_handler_and_arrays_of_the_user_do_not(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("JITGRAD_BACKEND", "cpu")
    assert keeps_large_arrays()
    x = jg.ones(ELEMENTS, 2)

    with allowing_kernels(False):  # else a kernel may make one of them, if others ran so many ops on large arrays before
        results = (x * 3.0, jg.sort(x, 1), x > 0.5, jg.pad(x, ((0, 1), (0, 0))))
    for made in results:
        data = made.numpy()
        assert get_handler_name(data if data.base is None else data.base) == "jitgrad"
    assert get_handler_name() == "default_allocator"
    assert get_handler_name(np.zeros(ELEMENTS)) == "default_allocator"


@pytest.mark.usefixtures("context")
def test_ops_do_not_wait_while_the_handler_is_compiled(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("JITGRAD_BACKEND", "cpu")
    monkeypatch.setattr(_Kept, "variable", None)
    monkeypatch.setattr(_Kept, "missed", False)
    x = jg.ones(ELEMENTS // 7, 3)
    with monkeypatch.context() as compiling:
        compiling.setattr(array_memory.CodeObject, "ready", False)
        assert not keeps_large_arrays()
        buffer_pool.trim()  # else the result may lie in a block that an earlier test left there, with a handler
        with allowing_kernels(False):
            early = (x * 3.0).numpy()
        assert get_handler_name(early if early.base is None else early.base) != "jitgrad"

    assert keeps_large_arrays()
    with allowing_kernels(False):
        late = (x * 3.0).numpy()  # the plan without kept memory is forgotten
    assert get_handler_name(late if late.base is None else late.base) == "jitgrad"


def test_a_freed_block_is_used_again_and_zeros_are_zero(context: Context):
    first = context.run(np.full, ELEMENTS, 7.0)
    place = _address(first)
    del first

    second = context.run(np.zeros, ELEMENTS)

    assert _address(second) == place
    assert not second.any()


def test_blocks_in_use_are_left_alone(context: Context):
    arrays = [context.run(np.full, ELEMENTS // 8, float(k)) for k in range(100)]
    del arrays[::2]
    more = [context.run(np.full, ELEMENTS // 8, -1.0) for _ in range(60)]

    assert all((x == float(k)).all() for k, x in zip(range(1, 100, 2), arrays, strict=True))
    assert len({_address(x) for x in (*arrays, *more)}) == len(arrays) + len(more)


def test_an_array_larger_than_what_is_kept_is_freed(context: Context):
    large = context.run(np.empty, (96 << 20,), np.uint8)  # untouched: it takes no memory
    del large

    assert context.run(np.ones, ELEMENTS).sum() == ELEMENTS


@pytest.mark.parametrize("size", [0, 1, 1000, (1 << 17) - 1, 1 << 17, (1 << 17) + 1, 3 << 20])
def test_arrays_of_all_sizes_can_be_resized(context: Context, size: int):
    def grown() -> np.ndarray:
        x = np.arange(size, dtype=np.uint8)
        x.resize(2 * size + 1, refcheck=False)
        return x

    x = context.run(grown)
    np.testing.assert_array_equal(x[:size], np.arange(size, dtype=np.uint8))
    assert not x[size:].any()


def test_threads_use_it_at_the_same_time(context: Context):
    wrong: list[int] = []

    def work(number: int) -> None:
        own = context.copy()
        for k in range(200):
            x = own.run(np.full, ELEMENTS // 8 + 4096 * (k % 5), float(number))
            if not (x == number).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert not wrong


def test_arrays_may_be_freed_last_of_all():
    program = (
        "import atexit, sys, jitgrad as jg\n"
        f"x = jg.ones({ELEMENTS}); y = x * 2.0; sys.kept_for_ever = (y.numpy(), y * 3.0)\n"
        "atexit.register(lambda: setattr(sys, 'late', (jg.ones(1 << 20) * 2.0).numpy()))\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=120).returncode == 0


def test_gradients_of_large_arrays_own_their_memory():
    x = jg.ones(1024, 1024).requires_grad_()
    seed = jg.ones(1024, 1024)

    x.T.backward(seed.T)
    x.grad[0, 0] = 5.0  # type: ignore[index]

    assert seed[0, 0].item() == 1.0
    jg.relu(x).backward(seed)
    assert x.grad[0, 0].item() == 6.0  # type: ignore[index]
