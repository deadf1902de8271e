"""Tiled products: correct for every size and layout, with bits that no cut changes, used where they are faster."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.backends.llvm import int_dialect, tiles
from jitgrad.compiler.pipeline import run_passes
from jitgrad.runtime import program_op
from jitgrad.runtime.executor import tiled_products
from jitgrad.runtime.executor.gemm import BatchAxis, Gemm, MatrixLayout
from jitgrad.runtime.executor.tiled_products import tiled_instruction, tiled_product, tiles_pay
from tests.machine_code import AVX512, assembly_of, needs_x86

pytestmark = pytest.mark.numba

R = np.random.default_rng(0)
SIZES = [
    (1, 1, 1), (2, 3, 5), (6, 128, 64), (7, 129, 65), (13, 1, 200), (5, 300, 31), (11, 127, 64),
    (12, 256, 320), (3, 131, 33), (40, 7, 513), (9, 260, 96),
]  # fmt: skip
FORMS = [(0, 0), (0, 1), (1, 0), (1, 1)]  # whether the left and the right matrix are transposed


def matrix(rows: int, columns: int, dtype: str, transposed: int, count: int = 1) -> np.ndarray:
    """Part of larger rows, so that the leading dimension differs from the size; a transposed view if ``transposed``."""
    shape = (columns, rows) if transposed else (rows, columns)
    whole = R.standard_normal((count, shape[0], shape[1] + 3)).astype(dtype)[:, :, :-3]
    return whole.swapaxes(1, 2) if transposed else whole


def layout(x: np.ndarray, transposed: int) -> MatrixLayout:
    return MatrixLayout(bool(transposed), x.strides[2 if transposed else 1] // x.itemsize)


def multiply(x: np.ndarray, y: np.ndarray, forms: tuple[int, int], block_size: int | None = None) -> np.ndarray:
    """The products by the machine code, ``block_size`` iterations at a time; memory beside the result stays unchanged."""
    count, m, k = x.shape
    n, item = y.shape[2], x.itemsize
    out = np.full((count, m + 1, n + 2), 7, x.dtype)
    batch = BatchAxis(count, tuple(a.strides[0] // item for a in (x, y, out)))
    right, result = layout(y, forms[1]), MatrixLayout(False, n + 2)
    gemm = Gemm(x.dtype, (m, k, n), layout(x, forms[0]), right, result, (None,) * 3, batch)
    product = tiled_instruction(gemm)
    args = np.array([a.ctypes.data for a in (x, y, out)] + product.args[3:], np.int64)
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(product.code.address)
    size = block_size or product.block_size
    for start in range(0, product.iterations, size):
        run(args.ctypes.data, start, min(product.iterations, start + size))
    assert (out[:, m:] == 7).all() and (out[:, :, n:] == 7).all()
    return out[:, :m, :n]


def check(x: np.ndarray, y: np.ndarray, found: np.ndarray) -> None:
    expected = x.astype(np.longdouble) @ y.astype(np.longdouble)
    bound = (np.abs(x).astype(np.float64) @ np.abs(y).astype(np.float64)).max()
    assert np.abs(found - expected).max() <= 4 * np.finfo(x.dtype).eps * bound


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("forms", FORMS)
@pytest.mark.parametrize("sizes", SIZES)
def test_sizes_and_layouts(sizes: tuple[int, int, int], forms: tuple[int, int], dtype: str) -> None:
    m, k, n = sizes
    x, y = matrix(m, k, dtype, forms[0]), matrix(k, n, dtype, forms[1])

    check(x, y, multiply(x, y, forms))


@pytest.mark.parametrize("forms", FORMS)
@pytest.mark.parametrize("sizes", [(37, 150, 300), (300, 150, 37)])  # threads share columns, and rows
def test_bits_depend_on_nothing_but_the_matrices(sizes: tuple[int, int, int], forms: tuple[int, int]) -> None:
    m, k, n = sizes
    x, y = matrix(m, k, "f4", forms[0]), matrix(k, n, "f4", forms[1])
    whole = multiply(x, y, forms).tobytes()

    assert all(multiply(x, y, forms, size).tobytes() == whole for size in (1, 7, 64, 100, 1000))
    assert multiply(x[:, 5:9], y[:, :, 3:200], forms).tobytes() == multiply(x, y, forms)[:, 5:9, 3:200].tobytes()


@pytest.mark.parametrize("forms", FORMS)
def test_batches(forms: tuple[int, int]) -> None:
    x, y = matrix(9, 140, "f8", forms[0], 5), matrix(140, 70, "f8", forms[1], 5)

    check(x, y, multiply(x, y, forms, 2))


@pytest.mark.parametrize("transposed", [0, 1])
def test_nan_and_infinity_go_where_they_belong(transposed: int) -> None:
    x, y = np.ones((1, 20, 140), np.float32), matrix(140, 100, "f4", transposed)
    x[0, 3, 130], y[0, 7, 99], y[0, 139, 5] = np.nan, np.inf, -np.inf

    np.testing.assert_allclose(multiply(x, y, (0, transposed)), x @ y, rtol=1e-4, atol=1e-4)


@needs_x86
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_a_tile_keeps_its_sums_in_registers(dtype: str) -> None:
    text = int_dialect.translate(tiled_products.product_source(dtype), "product", tiles.functions(dtype))
    _, assembly = assembly_of(AVX512, "product", lambda: (text, []))
    loops = [part for part in assembly.split("\n.L") if part.count("vfmadd") == 24]

    assert loops and all("(%rsp)" not in loop and "call" not in loop for loop in loops)


# --- in programs -------------------------------------------------------------------------------------------------------


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treats every CPU as one with AVX-512."""
    monkeypatch.setattr(tiled_products, "kernel_vector_bits", lambda: 512)


def tiled(f: Any, *args: Any) -> list[bool]:
    """Of every product of a program, whether tiles compute it."""
    program = f.lookup(*args).program
    gemms = [gemm for step in program.steps for gemm in getattr(step, "products", None) or ()]
    return [gemm in program.runner.tiled_products for gemm in gemms]


def tensor(*shape: int, dtype: Any = np.float32) -> jg.Tensor:
    return jg.tensor(R.standard_normal(shape).astype(dtype))


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "in order": (lambda x, y: x @ y, ((40, 200), (200, 256))),
    "left transposed": (lambda x, y: x.mT @ y, ((200, 40), (200, 256))),
    "right transposed": (lambda x, y: x @ y.mT, ((40, 200), (256, 200))),
    "columns": (lambda x, y: x @ y, ((130, 300), (300, 120))),
    "a batch": (lambda x, y: x @ y.mT, ((6, 64, 80), (6, 64, 80))),
    "a batch times one": (lambda x, y: x @ y, ((4, 60, 100), (100, 128))),
    "heads of attention": (
        lambda x, y: jg.permute_dims(x, (0, 2, 1, 3)) @ jg.permute_dims(y, (0, 2, 3, 1)),
        ((2, 128, 3, 32), (2, 128, 3, 32)),
    ),
    "a part": (lambda x, y: x[3:140, 10:] @ y[:, 64:192], ((140, 210), (200, 256))),
}


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_give_what_eager_gives(name: str, dtype: Any) -> None:
    function, shapes = PROGRAMS[name]
    args = [tensor(*shape, dtype=dtype) for shape in shapes]
    f = jg.jit(function, check="off")

    tolerance = 400 * np.finfo(dtype).eps
    np.testing.assert_allclose(f(*args).numpy(), f.eager(*args).numpy(), rtol=tolerance, atol=tolerance)
    assert all(tiled(f, *args)) and tiled(f, *args)


@pytest.mark.usefixtures("wide")
def test_gradients_and_any_number_of_threads() -> None:
    x, y = tensor(120, 192), tensor(192, 256)
    g = jg.grad(lambda x, y: jg.sum(jg.tanh(x @ y)), (0, 1))
    f, before, found = jg.jit(g, check="off"), jg.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            jg.set_num_threads(threads)
            found.append([d.numpy().tobytes() for d in f(x, y)])
    finally:
        jg.set_num_threads(before)

    assert tiled(f, x, y) == [True] * 3 and found[0] == found[1] == found[2]
    for compiled, eager in zip(f(x, y), g(x, y), strict=True):
        np.testing.assert_allclose(compiled.numpy(), eager.numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("wide")
def test_a_program_keeps_the_code_that_it_runs() -> None:
    f, x, y = jg.jit(lambda x, y: x @ y, check="off"), tensor(40, 200), tensor(200, 256)
    expected = f(x, y).numpy()

    tiled_product.cache_clear()
    gc.collect()

    np.testing.assert_array_equal(f(x, y).numpy(), expected)


SMALL_STACKS = """
import threading
import numpy as np, jitgrad as jg
from jitgrad.runtime.executor import tiled_products
tiled_products.kernel_vector_bits = lambda: 512
threading.stack_size(65536)
x, y = jg.ones((300, 200)), jg.ones((200, 256))
f = jg.jit(lambda x, y: x @ y, check="off")
f(x, y)
thread = threading.Thread(target=lambda: print(f(x, y).numpy().sum()))
thread.start()
thread.join()
"""


def test_threads_with_small_stacks() -> None:
    done = subprocess.run([sys.executable, "-c", SMALL_STACKS], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout.strip()) == (0, str(np.float32(300 * 200 * 256))), done.stderr


@pytest.mark.usefixtures("wide")
def test_llvm_begins_with_the_code_before_the_passes_do(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(tiled_products, "tiled_product", lambda dtype: asked.append(dtype) or tiled_product(dtype))
    monkeypatch.setattr(program_op, "run_passes", lambda *args: asked.append("passes") or run_passes(*args))
    for rows in (200, 4):
        x, y = tensor(rows, 300, dtype=np.float64), tensor(300, 256, dtype=np.float64)
        jg.jit(lambda x, y: jg.tanh(x @ y), check="off")(x, y)

    assert asked == ["f64", "passes", "f64", "passes"]  # the third when the program is built


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize(
    ("sizes", "transposed"),
    [
        ((32, 64, 192), 0),  # little work: BLAS does not pack
        ((16, 100, 64), 1),
        ((2000, 600, 640), 0),  # large in all three sizes
        ((600, 520, 576), 1),
        ((256, 256, 10), 0),  # fewer columns than a panel
        ((4, 1000, 1024), 0),  # few rows for each packed panel
    ],
)
def test_other_products_go_to_blas(sizes: tuple[int, int, int], transposed: int) -> None:
    _, k, n = sizes
    right = MatrixLayout(bool(transposed), k if transposed else n)
    batch = BatchAxis(1, (0, 0, 0))
    gemm = Gemm(np.dtype("f4"), sizes, MatrixLayout(False, k), right, MatrixLayout(False, n), (None,) * 3, batch)

    assert not tiles_pay(gemm)


def test_cpus_with_smaller_registers_have_blas_do_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiled_products, "kernel_vector_bits", lambda: 0)
    f = jg.jit(lambda x, y: x @ y, check="off")
    x, y = tensor(40, 200), tensor(200, 256)

    np.testing.assert_allclose(f(x, y).numpy(), f.eager(x, y).numpy(), rtol=1e-4, atol=1e-4)
    assert tiled(f, x, y) == [False]
