"""Reads at indices in compiled programs: eager's bits and errors, on any number of threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.aval import Aval
from jitgrad.jit.decorator import jit
from jitgrad.ops.indexing import GATHER, INDEX_GET, TAKE
from jitgrad.runtime.library import indexed_access
from jitgrad.runtime.library.registry import find_kernel
from jitgrad.runtime.library_call import LibraryCall

RNG = np.random.default_rng(0)


def native(f: Callable[..., Any], *args: Any) -> bool:
    """Whether the only library call of the program is machine code."""
    (call,) = [s for s in jit(f, check="off").lookup(*args).program.steps if isinstance(s, LibraryCall)]
    return call.instruction is not None


def values(dtype: str, *shape: int) -> Any:
    found = (RNG.normal(size=shape) * 50).astype(dtype)
    if dtype in "efd":
        found.flat[:3] = np.nan, -0.0, np.inf
    return found


def below(n: int, *shape: int, dtype: str = "l") -> Any:
    return RNG.integers(0 if dtype in "BHI" else -n, n, shape).astype(dtype)


READS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "take": (lambda x, i: jg.take(x, i, axis=0), (values("f", 9, 5), below(9, 40))),
    "take of pairs": (lambda x, i: jg.take(x, i, axis=0), (values("f", 9, 2), below(9, 6, 7))),
    "take of one": (lambda x, i: jg.take(x, i, axis=1), (values("d", 4, 3, 2), np.array(-2))),
    "take of elements": (lambda x, i: jg.take(x, i, axis=0), (values("f", 50), below(50, 3000))),
    "take of the last axis": (lambda x, i: jg.take(x, i, axis=-1), (values("f", 70, 60), below(60, 90))),
    "take of a middle axis": (lambda x, i: jg.take(x, i, axis=1), (values("f", 7, 8, 9), below(8, 3, 2))),
    "take of long rows": (lambda x, i: jg.take(x, i, axis=0), (values("d", 30, 700), below(30, 50))),
    "take of bools": (lambda x, i: jg.take(x, i, axis=1), (values("?", 6, 11), below(11, 20))),
    "take of halves": (lambda x, i: jg.take(x, i, axis=0), (values("e", 60), below(60, 200))),
    "take of odd bytes": (lambda x, i: jg.take(x, i, axis=0), (values("b", 60, 7), below(60, 200, dtype="i"))),
    "take by bytes": (lambda x, i: jg.take(x, i, axis=0), (values("l", 200), below(200, 300, dtype="B"))),
    "take backwards": (lambda x, i: jg.take(x, i[::-1], axis=0), (values("f", 9, 5), below(9, 40))),
    "gather": (lambda x, i: jg.gather(x, 1, i), (values("f", 50, 8), below(8, 50, 20))),
    "gather of one each": (lambda x, i: jg.gather(x, 1, i), (values("f", 500, 8), below(8, 500, 1))),
    "gather of the first axis": (lambda x, i: jg.gather(x, 0, i), (values("d", 6, 90), below(6, 20, 90))),
    "gather of a middle axis": (lambda x, i: jg.gather(x, 1, i), (values("f", 4, 6, 5), below(6, 3, 9, 5))),
    "gather of a line": (lambda x, i: jg.gather(x, 0, i), (values("i", 40), below(40, 60, dtype="h"))),
    "take_along_axis": (lambda x, i: jg.take_along_axis(x, i, 0), (values("f", 6, 8), below(6, 6, 8))),
    "pairs": (lambda x, i, j: x[i, j], (values("f", 7, 8), below(7, 3000), below(8, 3000))),
    "pairs of rows": (lambda x, i, j: x[i, j], (values("f", 7, 8, 3), below(7, 90), below(8, 90, dtype="i"))),
    "mesh": (lambda x, i, j: x[:, i, j], (values("f", 3, 7, 8), below(7, 5, 1), below(8, 1, 6))),
    "triples": (lambda x, i, j, k: x[i, j, k], (values("d", 3, 4, 5), below(3, 90), below(4, 90), below(5, 90))),
    "rows": (lambda x, i: x[i], (values("f", 7, 8), below(7, 4, 4))),
    "strided index": (lambda x, i: x[i.T], (values("f", 7, 8), below(7, 4, 3))),
}


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("name", READS)
def test_what_eager_gives(name: str) -> None:
    f, arrays = READS[name]
    args = tuple(jg.tensor(a) for a in arrays)
    found = jit(f, check="off")(*args).numpy()

    expected = f(*args).numpy()
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    assert found.tobytes() == np.ascontiguousarray(expected).tobytes()
    assert native(f, *args)


BAD: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "take": (lambda x, i: jg.take(x, i, axis=0), (values("f", 5, 3), np.array([0, 5]))),
    "take from the end": (lambda x, i: jg.take(x, i, axis=1), (values("f", 2, 3), np.array([-4, 0]))),
    "gather": (lambda x, i: jg.gather(x, 1, i), (values("f", 2, 3), np.array([[0, 2], [3, 1]]))),
    "gather by columns": (lambda x, i: jg.gather(x, 0, i), (values("f", 2, 3), np.array([[0, -3, 0]]))),
    "pairs": (lambda x, i, j: x[i, j], (values("f", 5, 3), np.array([0, 4]), np.array([0, 3]))),
    "far": (lambda x, i: x[i], (values("f", 5), np.array([1 << 62, -(1 << 62), 0]))),
}


@pytest.mark.parametrize("name", BAD)
def test_an_index_out_of_bounds_is_eagers_error(name: str, fails_as_eager: Callable[..., None]) -> None:
    f, arrays = BAD[name]
    args = tuple(jg.tensor(a) for a in arrays)

    assert native(f, *args)
    fails_as_eager(f, *args)


@pytest.mark.parametrize(
    ("f", "is_native"),
    [
        (lambda x, i: jg.take(x[1].T, i, axis=0), True),
        (lambda x, i: jg.take(x[:, ::-1, 2], i, axis=1), True),
        (lambda x, i: jg.take(x[0, :, 1], i, axis=0), True),
        (lambda x, i: jg.take(x[..., ::2], i, axis=1), True),
        (lambda x, i: jg.gather(x[0].T, 0, (i % 8)[:, None]), False),  # not all columns
        (lambda x, i: jg.gather(x[0, :, ::2], 0, jg.broadcast_to(i[:, None] % 8, (20, 4))), True),
        (lambda x, i: x.transpose(0, 2)[i % 8, i], True),
        (lambda x, i: jg.take(x.permute(2, 1, 0), i, axis=1), True),
        (lambda x, i: jg.take(x.permute(0, 2, 1)[:, ::3], i % 3, axis=1), True),
        (lambda x, i: jg.take(x.permute(2, 0, 1), i % 8, axis=2), False),  # outer axes that are not as one
    ],
)
def test_arrays_with_any_strides(f: Callable[..., Any], is_native: bool) -> None:
    x, i = jg.tensor(values("f", 8, 9, 8)), jg.tensor(below(8, 40)[::2].copy())

    assert native(f, x, i) == is_native
    assert jit(f, check="off")(x, i).numpy().tobytes() == np.ascontiguousarray(f(x, i).numpy()).tobytes()


@pytest.mark.parametrize(
    ("f", "arrays"),
    [
        (lambda x, i: x[i, :, i], (values("f", 4, 5, 4), below(4, 6))),
        (lambda x, i: jg.take(x, i, axis=0), (values("f", 4, 0), below(4, 6))),
        (lambda x, i: jg.take(x, i, axis=0), (values("f", 4, 5), below(4, 0))),
        (lambda x, i: jg.gather(x, 0, i), (values("f", 4, 5), below(4, 6, 3))),
        (lambda x, i: x[i], (values("f", 4), np.array([1, 2], np.uint64))),
    ],
    ids=["apart", "of nothing", "nothing", "shorter", "uint64"],
)
def test_other_forms_are_numpys(f: Callable[..., Any], arrays: tuple[Any, ...]) -> None:
    args = tuple(jg.tensor(a) for a in arrays)

    assert not native(f, *args)
    np.testing.assert_array_equal(jit(f, check="off")(*args).numpy(), f(*args).numpy())


def test_arrays_that_need_no_python() -> None:
    """A read between kernels, at any size: the whole call is one table."""

    def read(x: Any, i: Any) -> Any:
        return jg.exp(x[i])

    args = jg.tensor(values("f", 50, 3)), jg.tensor(below(50, 1))
    runner: Any = jit(read, check="off").lookup(*args).program.runner
    assert len(runner.parts) == 1


DIRECT: dict[str, tuple[Any, dict[str, Any], tuple[Any, ...]]] = {
    "take": (TAKE, {"axis": 1}, (values("f", 4, 9, 2), below(9, 30))),
    "gather": (GATHER, {"axis": 0}, (values("d", 7, 9), below(7, 30, 9))),
    "mesh": (INDEX_GET, {"axes": (0, 1)}, (values("f", 7, 9), below(7, 30, 1), below(9, 20))),
}


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("name", DIRECT)
def test_library_functions_of_the_check(name: str) -> None:
    """The first-call check runs them outside programs."""
    op, attrs, arrays = DIRECT[name]
    function = find_kernel(op, [Aval(a.shape, a.dtype) for a in arrays], attrs)
    assert function is not None

    assert function(*arrays, **attrs).tobytes() == op.eager(*arrays, **attrs).tobytes()
    with pytest.raises(IndexError):
        function(arrays[0], *[i + 99 for i in arrays[1:]], **attrs)


def test_words_that_no_wide_move_fits() -> None:
    """Rows of eight bytes that do not start at a multiple of eight."""
    memory = np.arange(41, dtype=np.int16)
    x = memory[1:].reshape(10, 4)
    index = below(10, 30)
    y = np.empty((30, 4), np.int16)

    space = indexed_access.along(x.shape, {"axis": 0}, [jg.tensor(index).aval])
    assert indexed_access.move_elements(indexed_access.AccessMode.READ, space, y, x, [index])
    np.testing.assert_array_equal(y, x[index])
