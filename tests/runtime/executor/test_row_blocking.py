"""Steps that go by rows together: which ones may, the native loop's calls, and correct results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jitgrad as jg
from jitgrad.compiler.lowering.footprint import Footprint
from jitgrad.compiler.lowering.layout import Buffer, BufferRole
from jitgrad.compiler.memory.row_accesses import _Access, _rows_meet
from jitgrad.jit.decorator import jit
from jitgrad.runtime.executor import instruction_loop, row_blocking, tiled_products
from jitgrad.runtime.executor.row_blocking import Candidate, row_block_size

RNG = np.random.default_rng(0)
ROWS = 64
spans = st.tuples(st.integers(0, 60), st.integers(0, 12), st.integers(1, 14), st.booleans())


@given(spans, spans, st.integers(1, 6))
def test_rows_that_share_a_byte_are_found(a: Any, b: Any, rows: int) -> None:
    """Against a list of all bytes; where steps differ or are 0, the answer may be too cautious."""

    def touched(span: Any, r: int) -> set[int]:
        return set(range(span[0] + r * span[1], span[0] + r * span[1] + span[2]))

    meet = any(touched(a, r) & touched(b, q) for r in range(rows) for q in range(rows) if r != q)

    if a[1] == b[1] > 0:
        assert _rows_meet(_Access(*a), _Access(*b), rows) == meet
    else:
        assert _rows_meet(_Access(*a), _Access(*b), rows)


def product(a: Buffer, b: Buffer, c: Buffer, rows: int = ROWS) -> Candidate:
    """``c = a @ b`` with rows of 64 bytes."""
    read, whole = Footprint((a, 0), 0, 64, 64, False), Footprint((b, 0), 0, 0, 4096, False)
    return Candidate(rows, (read, whole, Footprint((c, 0), 0, 64, 64, True)), True)


def kernel(source: Buffer, target: Buffer, shift: int = 0, units: int = ROWS * 16) -> Candidate:
    """Elements of ``target`` from those of ``source``, ``shift`` bytes further on."""
    return Candidate(units, (Footprint((source, shift), 0, 4, 4, False), Footprint((target, 0), 0, 4, 4, True)))


@pytest.fixture
def buffers() -> tuple[list[Buffer], dict[Buffer, int]]:
    found = [Buffer(BufferRole.TEMPORARY, 8192, str(k)) for k in range(6)]
    return found, {b: k * 8192 for k, b in enumerate(found)}


def test_products_and_kernels_of_the_same_rows_are_a_run(buffers: Any) -> None:
    (a, b, c, d, e, f), bases = buffers
    chain = [kernel(a, c), product(c, b, d), kernel(d, e), product(e, b, f)]

    assert row_blocking.row_blocked_runs(chain, bases) == [(0, 4, ROWS)]


@pytest.mark.parametrize("shift", [4, 64, -64])
def test_rows_that_need_others_end_a_run(buffers: Any, shift: int) -> None:
    (a, b, c, d, e, f), bases = buffers
    chain = [product(a, b, c), kernel(c, d), kernel(d, e, shift), product(e, b, f)]

    assert row_blocking.row_blocked_runs(chain, bases) == [(0, 2, ROWS), (2, 4, ROWS)]


def test_weights_that_a_run_writes_end_it(buffers: Any) -> None:
    (a, b, c, d, e, f), bases = buffers
    chain = [product(a, b, c), kernel(c, d), product(a, d, e), kernel(e, f)]

    assert row_blocking.row_blocked_runs(chain, bases) == [(0, 2, ROWS), (2, 4, ROWS)]


def test_memory_used_again_by_rows_of_another_length_ends_a_run(buffers: Any) -> None:
    """Temporaries share an arena: memory that is free after one step may hold other rows of a later one."""
    (a, b, c, _, e, _), bases = buffers
    wide = Candidate(ROWS, (Footprint((c, 0), 0, 64, 64, False), Footprint((e, 0), 0, 128, 128, True)))
    bases[e] = bases[a]

    assert row_blocking.row_blocked_runs([product(a, b, c), wide], bases) == []
    bases[e] = 10 * 8192
    assert row_blocking.row_blocked_runs([product(a, b, c), wide], bases) == [(0, 2, ROWS)]


def test_one_instruction_or_few_rows_are_no_run(buffers: Any) -> None:
    (a, b, c, d, *_), bases = buffers
    dependent = Candidate(1, None)

    assert row_blocking.row_blocked_runs([dependent, product(a, b, c), dependent], bases) == []
    assert row_blocking.row_blocked_runs([product(a, b, c, 8), kernel(c, d, 0, 8 * 16)], bases) == []
    assert row_blocking.row_blocked_runs([kernel(a, c), kernel(c, d)], bases) == []


@pytest.mark.parametrize("rows", [32, 33, 40, 100, 255, 256, 257, 1000])
def test_chunks_cover_the_rows(rows: int) -> None:
    grain = row_block_size(rows)

    assert 16 <= grain <= 128 and grain % 8 == 0 and -(-rows // grain) >= 2


# --- the whole way ---------------------------------------------------------------------------------------------------


def recurrent(w: Any, x: Any, between: Any) -> Any:
    h = x[0]
    for t in range(4):
        h = jg.tanh(jg.matmul(between(h), w) + x[t])
    return h


def in_row_blocks(function: Any, *args: Any) -> int:
    """The number of instructions of the compiled ``function`` in row blocks."""
    frame = function.lookup(*args).program.runner.frame()
    rows = [row for part in frame.parts for row in getattr(part, "table", ())]
    return sum(int(row[1]) for row in rows if row[0] == instruction_loop.ROW_BLOCKS)


BETWEEN = {
    "nothing": lambda h: h,
    "elementwise": lambda h: h * 2.0 - 1.0,
    "other rows": lambda h: jg.flip(h, 0),
    "shifted rows": lambda h: jg.concatenate([h[1:], h[:1]]),
    "columns": lambda h: jg.flip(h, 1),
    "shifted columns": lambda h: jg.concatenate([h[:, 1:], h[:, :1]], axis=1),
    "transposed": lambda h: h.T + 0.0,
    "mean of all": lambda h: h - jg.mean(h),
    "mean of rows": lambda h: h - jg.mean(h, axis=1, keepdims=True),
    "mean of columns": lambda h: h - jg.mean(h, axis=0),
}


@pytest.mark.numba
@pytest.mark.parametrize("name", BETWEEN)
@pytest.mark.parametrize("rows", [48, 33])
def test_recurrences_equal_eager(name: str, rows: int) -> None:
    if name == "transposed" and rows != 48:
        pytest.skip("the state is square")
    between = BETWEEN[name]
    w = jg.tensor(RNG.normal(size=(48, 48)).astype(np.float32) / 7)
    x = jg.tensor(RNG.normal(size=(4, rows, 48)).astype(np.float32))

    def step(w: Any, x: Any) -> Any:
        return jg.value_and_grad(lambda w, x: jg.mean(recurrent(w, x, between) ** 2), argnums=(0, 1))(w, x)

    compiled = jit(step, check="off")
    results = []
    for threads in (1, 2, 3):
        jg.set_num_threads(threads)
        loss, (dw, dx) = compiled(w, x)
        results.append([loss.numpy(), dw.numpy(), dx.numpy()])
    expected = step(w, x)

    for a, b, c, d in zip(*results, (expected[0], *expected[1]), strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)
        np.testing.assert_allclose(a, d.numpy(), rtol=2e-4, atol=2e-6)
    if name in ("nothing", "elementwise"):
        assert in_row_blocks(compiled, w, x) >= 8


@pytest.mark.numba
@pytest.mark.parametrize("layers", [1, 3])
def test_products_that_tiles_do_alone_go_by_rows_only_with_a_common_matrix(
    monkeypatch: pytest.MonkeyPatch, layers: int
) -> None:
    """A block of rows reads every right matrix whole, which pays if products share it."""
    monkeypatch.setattr(tiled_products, "kernel_vector_bits", lambda: 512)
    weights = [jg.tensor(RNG.normal(size=(128, 128)).astype(np.float32) / 11) for _ in range(layers)]

    def chain(weights: Any, x: Any) -> Any:
        for k in range(3):
            x = jg.tanh(jg.matmul(x, weights[k % layers]))
        return x

    compiled, x = jit(chain, check="off"), jg.tensor(RNG.normal(size=(64, 128)).astype(np.float32))

    np.testing.assert_allclose(compiled(weights, x).numpy(), chain(weights, x).numpy(), rtol=1e-4, atol=1e-5)
    assert in_row_blocks(compiled, weights, x) == (6 if layers == 1 else 0)
    assert len(compiled.lookup(weights, x).program.runner.tiled_products) == (0 if layers == 1 else 3)


@pytest.fixture(autouse=True)
def restore_threads() -> Any:
    before = jg.get_num_threads()
    yield
    jg.set_num_threads(before)
