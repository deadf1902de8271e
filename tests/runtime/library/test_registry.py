"""Machine code for library functions: bit-identical to eager, for any layout and number of threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.aval import Aval
from jitgrad.core.op import REGISTRY
from jitgrad.jit.decorator import jit
from jitgrad.runtime.library.registry import find_kernel
from jitgrad.runtime.library_call import LibraryCall

RNG = np.random.default_rng(0)
AXES = [((300, 70), 0), ((300, 70), 1), ((2000, 20), 1), ((12, 40, 70), 1), ((20_011,), 0), ((40_001, 9), 0), ((3, 12_000), 0)]
SIDES = ["left", "right"]


def calls(f: Any, *args: Any) -> list[LibraryCall]:
    return [s for s in jit(f, check="off").lookup(*args).program.steps if isinstance(s, LibraryCall)]


def values(shape: tuple[int, ...], dtype: str, kind: str) -> Any:
    """``kind``: "plain", "equal" (few different values, zeros of both signs) or "odd" (NaN, infinities, largest, smallest)."""
    if kind == "plain":
        return (RNG.normal(size=shape) * 100).astype(dtype)
    if kind == "equal" or dtype == "?":
        return RNG.integers(0, 3, shape).astype(dtype) * np.array(-1 if dtype in "fd" else 1, dtype)
    if dtype in "fd":
        choice = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, np.finfo(dtype).max, -np.finfo(dtype).tiny]
    else:
        choice = [np.iinfo(dtype).min, np.iinfo(dtype).max, 0, 1]
    return RNG.choice(np.array(choice, dtype), shape)


def assert_eager(name: str, *operands: Any, **attrs: Any) -> None:
    """The machine code for ``name`` gives the bits of its eager function."""
    op = REGISTRY[name]
    function = find_kernel(op, [Aval(x.shape, x.dtype) for x in operands], attrs)
    assert function is not None, f"no machine code for {name} of {[x.shape for x in operands]}"
    before = [x.copy() for x in operands]

    with np.errstate(all="ignore"):
        found, expected = function(*operands, **attrs), np.asarray(op.eager(*operands, **attrs))

    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found) & (found == found), np.signbit(expected) & (expected == expected))
    for x, y in zip(operands, before, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("kind", ["plain", "equal", "odd"])
@pytest.mark.parametrize("dtype", ["f", "d", "i", "l", "?", "B", "h", "L"])
@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums(dtype: str, kind: str, reverse: bool) -> None:
    for shape, axis in AXES:
        assert_eager("cumulative_sum", values(shape, dtype, kind), axis=axis, reverse=reverse)


@pytest.mark.parametrize("kind", ["plain", "equal", "odd"])
@pytest.mark.parametrize("dtype", ["f", "d", "i", "l"])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_positions_of_extremes(name: str, dtype: str, kind: str) -> None:
    for shape, axis in AXES:
        if axis != len(shape) - 1 or shape[axis] * np.dtype(dtype).itemsize <= 128:
            assert_eager(name, values(shape, dtype, kind), axis=axis)
    assert_eager(name, values((8192, 3), dtype, kind), axis=1)
    assert_eager(name, values((8195, 2), dtype, kind), axis=1)


@pytest.mark.parametrize("kind", ["plain", "equal", "odd"])
@pytest.mark.parametrize("dtype", ["f", "i"])
def test_the_largest(dtype: str, kind: str) -> None:
    for shape, axis in AXES:
        for count in {1, 2, shape[axis]} if shape[axis] <= 32 else {1, 5, min(shape[axis] // 5, 1000)}:
            assert_eager("argtopk", values(shape, dtype, kind), axis=axis, count=min(count, shape[axis]))
    for length in (1, 8, 31, 32):
        for shape, axis in (((3000, length), 1), ((length, 3000), 0), ((100, length, 30), 1)):
            assert_eager("argtopk", values(shape, dtype, kind), axis=axis, count=(length + 1) // 2)


@pytest.mark.parametrize("ending", [1, 64, 4096])
def test_the_largest_of_lengths_around_blocks_and_pieces(ending: int) -> None:
    for length in (4096 + ending - 1, 4096 + ending, 4096 + ending + 1):
        x = values((2, length), "f", "plain")
        x[0] = np.sort(x[0])  # all the largest are at the end, in the last piece, which may be short
        x[1] = -np.inf
        assert_eager("argtopk", x, axis=1, count=900)
        assert_eager("argtopk", np.full((2, length), np.iinfo("i").min, "i"), axis=1, count=900)


@pytest.mark.parametrize("kind", ["plain", "equal", "odd"])
@pytest.mark.parametrize("dtype", ["f", "d", "i", "l"])
@pytest.mark.parametrize("side", SIDES)
def test_searches(dtype: str, kind: str, side: str) -> None:
    for length in (1, 2, 3, 64, 1000, 30_001):
        ordered = np.sort(np.nan_to_num(values((length,), dtype, kind)))
        assert_eager("searchsorted", ordered, values((50, 41), dtype, kind), side=side)


@pytest.mark.parametrize("side", SIDES)
def test_searches_in_what_is_not_sorted_are_numpys(side: str) -> None:
    x = values((3000,), "d", "plain")

    assert_eager("searchsorted", x, x, side=side)
    assert_eager("searchsorted", np.array([1.0, np.nan, np.nan]), values((3000,), "d", "odd"), side=side)
    assert_eager("searchsorted", np.array([np.nan]), values((3000,), "d", "odd"), side=side)


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "transposed": lambda x: x.T,
    "backwards": lambda x: x[::-1, ::-1],
    "every other": lambda x: x[::2, 1::3],
    "repeated": lambda x: np.broadcast_to(x[:1, :], x.shape),
    "a part": lambda x: x[3:, 5:-7],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("axis", [0, 1])
def test_operands_that_lie_elsewhere(layout: str, axis: int) -> None:
    x = LAYOUTS[layout](values((400, 360), "f", "equal"))

    assert_eager("cumulative_sum", x, axis=axis, reverse=False)
    assert_eager("cumulative_sum", x, axis=axis, reverse=True)
    assert_eager("argtopk", x, axis=axis, count=3)
    if axis == 0:
        assert_eager("argmax", x, axis=axis)
    assert_eager("searchsorted", np.sort(x[0])[::-1][::-1], x, side="left")


def test_any_number_of_threads(threads: int) -> None:
    x = values((400, 360), "f", "plain")

    for axis in (0, 1):
        assert_eager("cumulative_sum", x, axis=axis, reverse=False)
        assert_eager("argtopk", x, axis=axis, count=3)
    assert_eager("cumulative_sum", x.reshape(-1), axis=0, reverse=True)
    assert_eager("argmin", x, axis=0)
    assert_eager("argmax", x.reshape(-1, 9), axis=0)
    assert_eager("argmax", x.reshape(-1, 9), axis=1)
    assert_eager("searchsorted", np.sort(x[0]), x, side="right")


@pytest.mark.parametrize(
    ("name", "shape", "dtype", "attrs"),
    [
        ("cumulative_sum", (64, 64), "f", {"axis": 0, "reverse": False}),  # small
        ("cumulative_sum", (300, 70), "e", {"axis": 0, "reverse": False}),
        ("cumulative_sum", (0, 70), "f", {"axis": 0, "reverse": False}),
        ("argmax", (300, 300), "f", {"axis": None}),
        ("argmax", (300, 300), "f", {"axis": 1}),  # NumPy is as fast for long rows
        ("argmax", (300, 300), "?", {"axis": 0}),
        ("argmin", (100, 100), "f", {"axis": 0}),  # small
        ("argmin", (30_000, 3), "f", {"axis": 0}),  # narrow
        ("argtopk", (300, 300), "f", {"axis": 0, "count": 100}),  # many
        ("argtopk", (300, 300), "f", {"axis": 0, "count": 0}),
        ("argtopk", (300, 300), "d", {"axis": 0, "count": 3}),
        ("argtopk", (100, 16), "f", {"axis": 1, "count": 2}),  # small
    ],
)
def test_where_numpys_function_stays(name: str, shape: tuple[int, ...], dtype: str, attrs: dict[str, Any]) -> None:
    assert find_kernel(REGISTRY[name], [Aval(shape, np.dtype(dtype))], attrs) is None


def test_where_numpys_search_stays() -> None:
    def stays(length: int, count: int, dtype: str = "f") -> bool:
        avals = [Aval((length,), np.dtype("f")), Aval((count,), np.dtype(dtype))]
        return find_kernel(REGISTRY["searchsorted"], avals, {"side": "left"}) is None

    assert not stays(100, 5000)
    assert stays(0, 5000) and stays(100, 500) and stays(100_000, 5000) and stays(100, 5000, "d")


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "sum down": lambda x: jg.cumulative_sum(jg.tanh(x), 0),
    "sum along": lambda x: jg.cumulative_sum(x, 1) * 2.0,
    "sum of transposed": lambda x: jg.cumulative_sum(x.T, 1),
    "sum of flipped": lambda x: jg.cumulative_sum(jg.flip(x, 0), 0),
    "largest position": lambda x: jg.argmax(x, 0),
    "least of transposed": lambda x: jg.argmin(x.T, 1, keepdims=True),
    "top": lambda x: tuple(jg.topk(x, 4)),
    "top of transposed": lambda x: tuple(jg.topk(x.T, 4, axis=0)),
    "search": lambda x: jg.searchsorted(jg.linspace(-1, 1, 30), x),
    "gradient of sum": jg.grad(lambda x: (jg.cumulative_sum(x, 0) ** 2).sum()),
    "gradient of sum of transposed": jg.grad(lambda x: (jg.cumulative_sum(x.T, 0) ** 2).sum()),
    "gradient of top": jg.grad(lambda x: (jg.topk(x, 4, axis=0).values ** 2).sum()),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_in_compiled_programs(name: str) -> None:
    x = jg.tensor(RNG.normal(size=(300, 260)).astype("f"))

    found, expected = jit(PROGRAMS[name], check="off")(x), PROGRAMS[name](x)

    for a, b in zip(*[r if isinstance(r, tuple) else (r,) for r in (found, expected)], strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-3)
    assert any(c.function is not c.op.eager for c in calls(PROGRAMS[name], x))


def test_a_gradient_of_a_running_sum_moves_nothing() -> None:
    x = jg.tensor(RNG.normal(size=(300, 260)).astype("f"))
    gradient = jg.grad(lambda x: (jg.cumulative_sum(x, 0) * x).sum())

    assert [c.op.name for c in calls(gradient, x)] == ["cumulative_sum", "cumulative_sum"]
    assert [c.attrs["reverse"] for c in calls(gradient, x)] == [False, True]


@pytest.mark.parametrize("name", ["cumulative_sum", "argsort", "argtopk", "argmax"])
def test_what_goes_along_an_axis_sees_arrays_as_they_lie(name: str) -> None:
    along = {"cumulative_sum": jg.cumulative_sum, "argsort": jg.argsort, "argmax": jg.argmax}
    f = along.get(name, lambda x, axis: jg.topk(x, 2, axis).indices)
    x = jg.tensor(RNG.normal(size=(40, 30, 20)).astype("f"))

    (call,) = calls(lambda x: f(jg.permute_dims(x, (2, 0, 1)), 1), x)

    assert call.avals[0].shape == (40, 30, 20)
    assert call.attrs["axis"] == 0
