"""The native loop over an instruction table: every kind of instruction, serial and shared."""

import numpy as np
import pytest

from jitgrad.backends.llvm.code_object import compile_entry
from jitgrad.eager import blas
from jitgrad.runtime.executor import instruction_loop
from jitgrad.runtime.executor.thread_pool import ThreadPool

# records its calls: calls[k] for block k is (start, stop, count)
NOTE = """
def kernel(calls, block_size, start, stop):
    k = start // block_size
    calls[3 * k] = start
    calls[3 * k + 1] = stop
    calls[3 * k + 2] = calls[3 * k + 2] + 1
"""


@pytest.fixture(scope="module", params=[1, 2, 3])
def pool(request):
    pool = ThreadPool(request.param)
    yield pool
    pool.stop()


@pytest.fixture(scope="module")
def note():
    return compile_entry(NOTE, "kernel", {}, params=("i64*", "i64"), key="")


def instruction(kind, function, args, n, block_size):
    return [kind, function, args.ctypes.data, n, block_size, 0, 0, 0]


def execute(pool, *instructions):
    table = np.array(instructions, np.int64).reshape(-1, instruction_loop.INSTRUCTION_WORDS)
    pool.run(table.ctypes.data, len(table))


@pytest.mark.parametrize(("n", "block_size"), [(0, 4), (1, 4), (4, 4), (5, 4), (1000, 7), (3, 1), (2**40, 2**38)])
def test_blocks_are_exact(pool, note, n, block_size):
    blocks = -(-n // block_size)
    calls = np.zeros((max(blocks, 1), 3), np.int64)

    execute(pool, instruction(instruction_loop.KERNEL, note.address, np.array([calls.ctypes.data, block_size]), n, block_size))

    assert calls[:blocks].tolist() == [[k * block_size, min(n, (k + 1) * block_size), 1] for k in range(blocks)]


def test_block_size_of_zero_is_one_block(pool, note):
    calls = np.zeros((1, 3), np.int64)

    execute(pool, instruction(instruction_loop.KERNEL, note.address, np.array([calls.ctypes.data, 50]), 40, 0))

    assert calls.tolist() == [[0, 40, 1]]


def test_call_is_one_call(pool, note):
    calls = np.zeros((1, 3), np.int64)

    execute(pool, instruction(instruction_loop.CALL, note.address, np.array([calls.ctypes.data, 1000]), 900, 1))

    assert calls.tolist() == [[0, 900, 1]]


@pytest.mark.parametrize("word", [0, 1, -3])
def test_a_word_that_is_not_zero_ends_the_run(pool, note, word):
    calls, stop = np.zeros((3, 3), np.int64), np.array([word])
    args = [np.array([calls[k].ctypes.data, 50]) for k in range(3)]
    first, second, third = (instruction(instruction_loop.KERNEL, note.address, a, 40, 50) for a in args)
    where = np.array([stop.ctypes.data])

    execute(pool, first, second, instruction(instruction_loop.STOP_IF, 0, where, 1, 1), third)

    assert calls[:, 1].tolist() == [40, 40, 0 if word else 40]


def test_instructions_run_in_order(pool):
    source = "def kernel(x, add, start, stop):\n    for i in range(start, stop):\n        x[i] = x[i] * 3 + add\n"
    kernel = compile_entry(source, "kernel", {}, params=("i64*", "i64"), key="")
    x = np.zeros(64, np.int64)
    args = [np.array([x.ctypes.data, add]) for add in range(20)]

    execute(pool, *(instruction(instruction_loop.KERNEL, kernel.address, a, 64, 1 + k) for k, a in enumerate(args)))

    expected = 0
    for add in range(20):
        expected = expected * 3 + add
    assert set(x) == {expected}


def gemm_table(a, b, c, alpha, beta, ta, tb):
    """Arguments of ``c = alpha * op(a) @ op(b) + beta * c`` for stacks of matrices."""
    bits = {4: np.uint32, 8: np.uint64}[a.itemsize]
    scalars = np.array([alpha, beta], a.dtype).view(bits)
    (m, n), k = c.shape[1:], a.shape[1] if ta else a.shape[2]
    table = [m, n, k, ta, tb, int(scalars[0]), a.ctypes.data, a.shape[2], b.ctypes.data, b.shape[2]]
    table += [int(scalars[1]), c.ctypes.data, n, len(c), a.strides[0], b.strides[0], c.strides[0]]
    assert len(table) == instruction_loop.GEMM_ARGS
    return np.array(table, np.uint64).view(np.int64)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize("tb", [False, True])
@pytest.mark.parametrize(("batch", "beta"), [(1, 0.0), (4, 0.5)])
def test_gemm(pool, dtype, ta, tb, batch, beta):
    found = blas.find_blas()
    if found is None:
        pytest.skip("this NumPy brings no OpenBLAS")
    rng = np.random.default_rng(0)
    a, b, c = (rng.standard_normal((batch, *s)).astype(dtype) for s in [(5, 7), (7, 3), (5, 3)])
    expected = dtype(-1.5) * (a @ b) + dtype(beta) * c
    a, b = (np.ascontiguousarray(x.swapaxes(1, 2)) if t else x for x, t in ((a, ta), (b, tb)))
    kind, function = (instruction_loop.SGEMM, found.sgemm) if dtype is np.float32 else (instruction_loop.DGEMM, found.dgemm)

    execute(pool, instruction(kind, function, gemm_table(a, b, c, -1.5, beta, ta, tb), 0, 0))

    np.testing.assert_allclose(c, expected, rtol=1e-5, atol=1e-5)


SHAPES = [(300, 200, 150), (150, 200, 300), (1000, 10, 700), (3, 900, 800), (128, 128, 128), (70, 4000, 64), (1, 1, 1)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize("tb", [False, True])
def test_shared_gemm_has_the_same_bits_on_any_pool(shape, ta, tb):
    found = blas.find_blas()
    if found is None:
        pytest.skip("this NumPy brings no OpenBLAS")
    (m, k, n), rng = shape, np.random.default_rng(0)
    a, b = rng.standard_normal((1, m, k)).astype(np.float32), rng.standard_normal((1, k, n)).astype(np.float32)
    expected = a.astype(np.float64) @ b
    a, b = (np.ascontiguousarray(x.swapaxes(1, 2)) if t else x for x, t in ((a, ta), (b, tb)))
    results = []
    for threads in (1, 2, 3):
        pool, c = ThreadPool(threads), np.full((1, m, n), np.nan, np.float32)
        execute(pool, instruction(instruction_loop.SGEMM, found.sgemm, gemm_table(a, b, c, 1, 0, ta, tb), 0, 0))
        pool.stop()
        results.append(c)

    np.testing.assert_allclose(results[0], expected, rtol=1e-4, atol=1e-3)
    assert results[0].tobytes() == results[1].tobytes() == results[2].tobytes()


@pytest.mark.parametrize(
    ("rows", "cpus", "blocks"),
    [(1024, 2, 2), (1024, 4, 4), (1024, 64, 8), (2048, 1, 4), (784, 2, 2), (256, 16, 2), (200, 2, 2), (200, 64, 2)],
)
def test_a_product_is_cut_no_smaller_than_the_machine_needs(rows, cpus, blocks):
    found = blas.find_blas()
    if found is None:
        pytest.skip("this NumPy brings no OpenBLAS")
    a, b, c = (np.ones((1, *shape), np.float32) for shape in ((rows, 300), (300, 190), (rows, 190)))
    pool = ThreadPool(2)
    pool._words[instruction_loop.CPUS] = cpus
    execute(pool, instruction(instruction_loop.SGEMM, found.sgemm, gemm_table(a, b, c, 1, 0, False, False), 0, 0))
    pool.stop()

    assert pool._words[instruction_loop.BLOCKS] == blocks
    assert (c == 300).all()


def test_gemm_leaves_the_number_of_blas_threads(pool):
    found = blas.find_blas()
    if found is None:
        pytest.skip("this NumPy brings no OpenBLAS")
    a, before = np.ones((1, 200, 200), np.float32), blas.get_blas_threads()
    c = np.empty_like(a)

    blas.set_blas_threads(2)
    try:
        execute(pool, instruction(instruction_loop.SGEMM, found.sgemm, gemm_table(a, a, c, 1, 0, False, False), 0, 0))
        assert blas.get_blas_threads() == 2
    finally:
        blas.set_blas_threads(before)
    assert (c == 200).all()


def test_no_instructions(pool):
    pool.run(0, 0)
