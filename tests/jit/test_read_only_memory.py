"""In-place changes of read-only memory are the error of eager execution, in first and in later calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import ReadOnlyError
from jitgrad.runtime.executor.fastcall import _all_writeable, all_writeable


def add_one(x: Any) -> Any:
    x += 1
    return x.sum()


def set_items(x: Any) -> None:
    x[1:3] = 0.0


def through_a_view(x: Any) -> Any:
    part = x[2:]
    part *= 2
    return part


def through_a_reshape(x: Any) -> None:
    x.reshape(2, 3)[0] = 2.0


def masked(x: Any) -> None:
    x[x > 2] = 0.0


CHANGES = [add_one, set_items, through_a_view, through_a_reshape, masked]


def frozen(count: int = 6) -> np.ndarray[Any, Any]:
    array = np.arange(1, count + 1, dtype="f4")
    array.flags.writeable = False
    return array


KINDS: dict[str, Callable[[], Any]] = {
    "array": frozen,
    "tensor": lambda: jg.asarray(frozen()),
    "part": lambda: jg.asarray(frozen(12))[6:],
    "strided": lambda: jg.asarray(frozen(12))[::2],
    "broadcast": lambda: jg.broadcast_to(jg.tensor([2.0]), (6,)),
    "expanded": lambda: jg.ones(6)[:1].expand(6),
}


@pytest.mark.parametrize("change", CHANGES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("earlier_calls", [0, 1, 3])
def test_arguments_over_read_only_memory_stay_as_they_are(kind: str, change: Any, earlier_calls: int) -> None:
    compiled, x = jg.jit(change), KINDS[kind]()
    before = np.array(x)
    for _ in range(earlier_calls):
        fresh = np.arange(1, 7, dtype="f4")
        compiled(fresh if kind == "array" else jg.asarray(fresh))
    with pytest.raises(ValueError, match="read-only"):  # what NumPy raises for its arrays
        change(x)

    for _ in range(2):
        with pytest.raises(ReadOnlyError, match="changes argument 0 in place, an array of shape"):
            compiled(x)
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("count", [1, 60])
def test_memory_of_outside_tensors_that_becomes_read_only(count: int) -> None:
    state = [jg.zeros(4) for _ in range(count)]

    @jg.jit
    def step() -> None:
        for s in state:
            s.add_(1)

    for _ in range(3):
        step()
    state[-1].numpy().flags.writeable = False
    for _ in range(2):
        with pytest.raises(ReadOnlyError, match=r"changes state\["):
            step()
    state[-1].numpy().flags.writeable = True
    step()

    assert all(s.tolist() == [4.0] * 4 for s in state)


def test_broadcasts_in_a_compiled_function_are_read_only() -> None:
    def expanded(x: Any) -> None:
        x.expand(3, 4).add_(1)

    def row(x: Any) -> None:
        jg.broadcast_to(x * 2, (3, 4))[1].zero_()

    def transposed(x: Any) -> None:
        jg.broadcast_to(x * 2, (3, 4)).T.fill_(2.0)

    for change in (expanded, row, transposed):
        for f in (change, jg.jit(change)):
            with pytest.raises(ReadOnlyError, match="over read-only memory"):
                f(jg.ones(4))


@pytest.mark.parametrize("requires_grad", [False, True])
def test_broadcasts_that_a_compiled_function_returns_are_read_only(requires_grad: bool) -> None:
    def f(x: Any) -> Any:
        y = x * 2
        return y.expand(3, 4), y.expand(3, 4).T[1:], y.expand(3, 4) + 1, y.expand(3, 4).reshape(-1)

    x = jg.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=requires_grad)
    compiled = jg.jit(f)
    for results in (f(x), compiled(x), compiled(x), compiled(x)):
        assert [t.detach().numpy().flags.writeable for t in results] == [False, False, True, True]


@pytest.mark.parametrize("check", ["first", "off"])
def test_an_empty_part_of_a_broadcast_is_read_only(check: str) -> None:
    def f(x: Any) -> Any:
        return jg.broadcast_to(x, (3, 4))[:, 2:2], jg.broadcast_to(x[:0], (3, 0)), x[2:2]

    compiled = jg.jit(f, check=check)
    for _ in range(3):
        results = compiled(jg.ones(4))
        assert [t.numpy().flags.writeable for t in results] == [t.numpy().flags.writeable for t in f(jg.ones(4))]


def test_the_builtin_that_asks_arrays_whether_they_may_be_changed() -> None:
    writeable, subclass = np.ones(2), np.ones(2).view(np.matrix)
    fine = [(), (writeable,), (writeable,) * 70]
    others = [(writeable, frozen()), (frozen(), writeable), (None,), (1.0, writeable), (subclass,)]

    for f in (all_writeable(), _all_writeable):
        assert [f(*case) for case in [*fine, *others]] == [True] * 3 + [False] * 5
