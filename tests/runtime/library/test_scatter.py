"""Writes and additions at indices in compiled programs: eager's bits and errors, on any number of threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.compiler.lowering.layout import BufferRole
from jitgrad.core.aval import Aval
from jitgrad.jit.decorator import jit
from jitgrad.ops.indexing import INDEX_ADD, INDEX_PUT, INDEX_PUT_ADD, SCATTER_ADD
from jitgrad.ops.operand import apply
from jitgrad.runtime.library.registry import find_kernel
from jitgrad.runtime.library_call import LibraryCall

RNG = np.random.default_rng(0)


def calls(f: Callable[..., Any], *args: Any) -> list[LibraryCall]:
    return [s for s in jit(f, check="off").lookup(*args).program.steps if isinstance(s, LibraryCall)]


def native(call: LibraryCall) -> bool:
    return call.instruction is not None


def index_add(axis: int) -> Callable[..., Any]:
    return lambda x, i, v: jg.index_add(x, axis, i, v)


def scatter_add(axis: int) -> Callable[..., Any]:
    return lambda x, i, v: jg.scatter_add(x, axis, i, v)


def put(*axes: int) -> Callable[..., Any]:
    return lambda x, v, *i: apply(INDEX_PUT, x, v, *i, axes=axes)


def put_add(*axes: int) -> Callable[..., Any]:
    return lambda x, v, *i: apply(INDEX_PUT_ADD, x, v, *i, axes=axes)


def values(dtype: str, *shape: int) -> Any:
    found = (RNG.normal(size=shape) * 50).astype(dtype)
    if dtype in "fd":
        found.flat[:3] = -0.0, 1e30, -1e30
        found.flat[-1] = np.nan
    return found


def below(n: int, *shape: int, dtype: str = "l") -> Any:
    return RNG.integers(-n, n, shape).astype(dtype)


CHANGES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "rows": (index_add(0), (values("f", 9, 5), below(9, 300), values("f", 300, 5))),
    "long rows": (index_add(0), (values("f", 20, 300), below(20, 900), values("f", 900, 300))),
    "rows of 64": (index_add(0), (values("d", 9, 64), below(9, 300), values("d", 300, 64))),
    "rows of 16": (index_add(0), (values("d", 9, 16), below(9, 300), values("d", 300, 16))),
    "rows of 32": (index_add(0), (values("f", 9, 32), below(9, 300), values("f", 300, 32))),
    "elements": (index_add(0), (values("f", 50), below(50, 3000), values("f", 3000))),
    "last axis": (index_add(1), (values("f", 30, 50), below(50, 300), values("f", 30, 300))),
    "middle axis": (index_add(1), (values("f", 4, 5, 6), below(5, 300), values("f", 4, 300, 6))),
    "one row": (index_add(0), (values("f", 1, 1), below(1, 1), values("f", 1, 1))),
    "each": (scatter_add(1), (values("f", 40, 7), below(7, 40, 90), values("f", 40, 90))),
    "each of the first axis": (scatter_add(0), (values("f", 7, 90), below(7, 40, 90), values("f", 40, 90))),
    "each of a middle axis": (scatter_add(1), (values("d", 3, 4, 5), below(4, 2, 60, 5), values("d", 2, 60, 5))),
    "a line": (scatter_add(0), (values("f", 9), below(9, 500), values("f", 500))),
    "added to rows": (put_add(0), (values("f", 9, 5), values("f", 20, 30, 5), below(9, 20, 30))),
    "added to pairs": (put_add(0, 1), (values("f", 9, 8), values("f", 700), below(9, 700), below(8, 700, dtype="i"))),
    "added to a mesh": (put_add(1, 2), (values("f", 3, 4, 5), values("f", 3, 30, 40), below(4, 30, 1), below(5, 40))),
    "written rows": (put(0), (values("f", 9, 5), values("f", 300, 5), below(9, 300))),
    "written elements": (put(0), (values("e", 50), values("e", 3000), below(50, 3000))),
    "written bools": (put(1), (values("?", 5, 50), values("?", 5, 300), below(50, 300))),
    "written pairs": (put(0, 1), (values("d", 9, 8, 2), values("d", 700, 2), below(9, 700), below(8, 700))),
    "written long rows": (put(0), (values("f", 9, 700), values("f", 30, 700), below(9, 30))),
    **{
        f"added {dtype}": (index_add(0), (values(dtype, 9, 3), below(9, 300), values(dtype, 300, 3)))
        for dtype in "bhilBHIL"
    },
}


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("name", CHANGES)
def test_what_eager_gives(name: str) -> None:
    f, arrays = CHANGES[name]
    args = tuple(jg.tensor(a) for a in arrays)
    found = jit(f, check="off")(*args).numpy()

    assert found.tobytes() == f(*args).numpy().tobytes()
    assert args[0].numpy().tobytes() == arrays[0].tobytes()
    assert all(map(native, calls(f, *args)))


def test_operands_that_lie_elsewhere() -> None:
    x, rows = RNG.normal(size=(4, 6)).T, RNG.normal(size=(8, 9))[::-1, ::2][:, :4]
    index = RNG.integers(0, 6, 16)[::2].astype(np.int32)

    def added(x: Any, i: Any, v: Any) -> Any:
        return jg.index_add(x.T, 0, i[::-1], v.T)

    expected = added(jg.tensor(x.T), jg.tensor(index), jg.tensor(rows.T)).numpy()
    np.testing.assert_array_equal(jit(added, check="off")(x.T, index, rows.T).numpy(), expected)


LOOKUPS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "take": (lambda x, i: jg.take(x, i, axis=0), (below(9, 4, 6),)),
    "take along axis 1": (lambda x, i: jg.take(x, i, axis=1), (below(5, 40),)),
    "rows": (lambda x, i: x[i], (below(9, 30),)),
    "pairs": (lambda x, i, j: x[i, j], (below(9, 30), below(5, 30))),
    "take_along_axis": (lambda x, i: jg.take_along_axis(x, i, 1), (below(5, 9, 30),)),
}


@pytest.mark.parametrize("name", LOOKUPS)
@pytest.mark.parametrize("backend", ["cpu", "python"])
def test_gradients_of_lookups_are_added_where_zeros_were(
    name: str, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", backend)
    lookup, indices = LOOKUPS[name]
    x = jg.tensor(RNG.normal(size=(9, 5)))
    gradient = jg.grad(lambda x, *i: (lookup(x, *i) ** 2).sum())
    args = (x, *map(jg.tensor, indices))

    np.testing.assert_array_equal(jit(gradient, check="off")(*args).numpy(), gradient(*args).numpy())
    *_, last = calls(gradient, *args)
    assert last.step.reads[0].location is last.step.writes[0].location
    assert (native(last), last.in_place) == (backend == "cpu", True)  # NumPy changes it in place too


def test_two_changes_of_zeros_each_have_their_own() -> None:
    def both(i: Any, j: Any, v: Any) -> Any:
        return jg.index_add(jg.zeros(9), 0, i, v), jg.index_add(jg.zeros(9), 0, j, v)

    args = (jg.tensor(below(9, 30)), jg.tensor(below(9, 30)), jg.tensor(values("f", 30)))

    for found, expected in zip(jit(both, check="off")(*args), both(*args), strict=True):
        np.testing.assert_array_equal(found.numpy(), expected.numpy())
    assert [c.in_place for c in calls(both, *args)] == [True, True]


def test_changes_follow_each_other_in_one_place() -> None:
    def chain(x: Any, i: Any, v: Any) -> Any:
        return jg.index_add(jg.index_add(x * 2.0, 0, i, v), 0, i, v)

    args = (jg.tensor(values("f", 9)), jg.tensor(below(9, 30)), jg.tensor(values("f", 30)))

    np.testing.assert_array_equal(jit(chain, check="off")(*args).numpy(), chain(*args).numpy())
    assert [c.in_place for c in calls(chain, *args)] == [True, True]


@pytest.mark.parametrize(
    "f",
    [
        lambda x, i, v: jg.index_add(x, 0, i, v),
        lambda x, i, v: jg.index_add(y := x * 2.0, 0, i, v) * y,
        lambda x, i, v: jg.scatter_add(y := jg.tanh(x), 0, i, y),
        lambda x, i, v: jg.index_add(y := jg.tanh(x), 0, i, y[::-1]),
    ],
    ids=["argument", "read later", "added to itself", "added to itself through a view"],
)
def test_a_base_that_somebody_sees_is_copied(f: Callable[..., Any]) -> None:
    args = (jg.tensor(RNG.normal(size=30)), jg.tensor(below(30, 30)), jg.tensor(RNG.normal(size=30)))
    before = args[0].numpy().copy()

    np.testing.assert_allclose(jit(f, check="off")(*args).numpy(), f(*args).numpy(), rtol=1e-13)
    np.testing.assert_array_equal(args[0].numpy(), before)
    assert [(native(c), c.in_place) for c in calls(f, *args)] == [(True, True)]


STATE: dict[str, Callable[..., Any]] = {
    "index_add": lambda s, i, v: s.index_add_(0, i, v),
    "scatter_add": lambda s, i, v: s.scatter_add_(0, jg.broadcast_to(i[:, None], v.shape), v),
    "rows": lambda s, i, v: s.__setitem__(i, v),
    "added rows": lambda s, i, v: s.index_put_((i,), v, accumulate=True),
}


@pytest.mark.parametrize("name", STATE)
@pytest.mark.usefixtures("threads")
def test_a_failed_call_leaves_state_as_it_was(name: str) -> None:
    """Changed in place by machine code, which checks all indices before."""

    @jit(check="off")
    def step(s: Any, i: Any, v: Any) -> Any:
        STATE[name](s, i, v)
        return s.sum()

    state, v = jg.tensor(values("f", 9, 5000)), jg.tensor(values("f", 3, 5000))
    expected = jg.tensor(state.numpy().copy())
    STATE[name](expected, jg.tensor([1, 1, -1]), v)
    step(state, jg.tensor([1, 1, -1]), v)
    (call,) = [s for s in step.lookup(state, jg.tensor([1, 1, -1]), v).program.steps if isinstance(s, LibraryCall)]

    assert call.step.writes[0].location.buffer.role is BufferRole.INPUT and native(call)
    for _ in range(2):
        with pytest.raises(IndexError, match="out of bounds"):
            step(state, jg.tensor([1, 1, 9]), v)
        assert state.numpy().tobytes() == expected.numpy().tobytes()


DIRECT: dict[str, tuple[Any, dict[str, Any], tuple[Any, ...]]] = {
    "rows": (INDEX_ADD, {"axis": 1}, (values("f", 4, 9, 2), below(9, 30), values("f", 4, 30, 2))),
    "each": (SCATTER_ADD, {"axis": 0}, (values("d", 7, 9), below(7, 30, 9), values("d", 30, 9))),
    "written": (INDEX_PUT, {"axes": (0, 1)}, (values("f", 7, 9), values("f", 30), below(7, 30), below(9, 30))),
    "mesh": (INDEX_PUT_ADD, {"axes": (0, 1)}, (values("f", 7, 9), values("f", 30, 20), below(7, 30, 1), below(9, 20))),
}


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("name", DIRECT)
def test_library_functions_of_the_check(name: str) -> None:
    """The first-call check runs them outside programs."""
    op, attrs, arrays = DIRECT[name]
    function = find_kernel(op, [Aval(a.shape, a.dtype) for a in arrays], attrs)
    assert function is not None
    arrays[0].flags.writeable = False

    assert function(*arrays, **attrs).tobytes() == op.eager(*arrays, **attrs).tobytes()
    bad = [a if a.dtype.kind == "f" else a + 99 for a in arrays]
    with pytest.raises(IndexError):
        function(*bad, **attrs)


BAD: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "index_add": (index_add(0), (values("f", 5, 3), np.array([0, 5]), values("f", 2, 3))),
    "index_add from the end": (index_add(1), (values("f", 5, 3), np.array([-4, 0]), values("f", 5, 2))),
    "scatter_add": (scatter_add(1), (values("f", 2, 3), np.array([[0, 2], [3, 1]]), values("f", 2, 2))),
    "put": (put(0, 1), (values("f", 5, 3), values("f", 2), np.array([0, 4]), np.array([0, 3]))),
    "put_add": (put_add(1), (values("f", 5, 3), values("f", 5, 2), np.array([0, 4]))),
}


@pytest.mark.parametrize("name", BAD)
def test_an_index_out_of_bounds_is_eagers_error(name: str, fails_as_eager: Callable[..., None]) -> None:
    f, arrays = BAD[name]
    args = tuple(jg.tensor(a) for a in arrays)

    assert all(map(native, calls(f, *args)))
    fails_as_eager(f, *args)


@pytest.mark.parametrize(
    ("f", "arrays"),
    [
        (index_add(0), (values("f", 5, 3), below(5, 0), np.ones((0, 3), "f"))),
        (index_add(0), (np.ones((5, 3), "e"), below(5, 9), np.ones((9, 3), "e"))),
        (index_add(0), (np.zeros((5, 3), "?"), below(5, 9), np.ones((9, 3), "?"))),
        (scatter_add(0), (values("f", 5, 3), below(5, 9, 2), values("f", 9, 2))),
        (put(0, 2), (values("f", 5, 3, 4), values("f", 9, 3), below(5, 9), below(4, 9))),
        (put(0), (values("f", 5), values("d", 9), below(5, 9))),
    ],
    ids=["nothing", "halves", "bools", "shorter", "apart", "of another dtype"],
)
def test_other_forms_are_numpys(f: Callable[..., Any], arrays: tuple[Any, ...]) -> None:
    args = tuple(jg.tensor(a) for a in arrays)

    assert not any(map(native, calls(f, *args)))
    np.testing.assert_array_equal(jit(f, check="off")(*args).numpy(), f(*args).numpy())
