"""The generated fast path with long lists of tensors: accepted and refused calls."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import optree
import pytest

import jitgrad as jg
from jitgrad.jit.decorator import JitFunction, jit
from jitgrad.jit.fast_call import FEW, listed

MANY = 3 * FEW


@pytest.fixture(autouse=True)
def native(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", "cpu")


def tensors(count: int = MANY, size: int = 5, **more: Any) -> list[jg.Tensor]:
    rng = np.random.default_rng(count)
    return [jg.tensor(rng.standard_normal(size).astype(np.float32), **more) for _ in range(count)]


def warm(f: Callable[..., Any], *args: Any) -> JitFunction:
    """``f`` compiled, checked, and with its fast path ready."""
    function = jit(f)
    function(*args)
    function(*args)
    assert len(function._fast_calls) == 1
    return function  # type: ignore[no-any-return]


def arrays(tree: Any) -> list[np.ndarray[Any, Any]]:
    return [t.detach().numpy() for t in tree]


def assert_equal(found: Any, expected: Any) -> None:
    assert type(found) is type(expected)
    for a, b in zip(arrays(found), arrays(expected), strict=True):
        np.testing.assert_array_equal(a, b)


def doubled(xs: Any) -> Any:
    return [jg.multiply(x, 2.0) for x in xs]


@pytest.mark.parametrize("count", [FEW - 1, FEW, FEW + 1, 500])
@pytest.mark.parametrize("size", [5, 2000])
def test_lists_of_any_length_go_the_fast_way(count: int, size: int) -> None:
    f, xs = warm(doubled, tensors(count, size)), tensors(count, size)
    xs = [x + 1.0 for x in xs]
    calls = f.cache_info().calls

    assert_equal(f(xs), doubled(xs))

    assert (f.cache_info().calls, f.cache_info().traces) == (calls + 1, 1)


@pytest.mark.parametrize("kind", [list, tuple])
def test_containers_are_what_they_were(kind: type) -> None:
    xs = kind(tensors())
    f = warm(lambda xs: kind([x * 2.0 for x in xs]), xs)

    assert_equal(f(xs), kind([x * 2.0 for x in xs]))


def test_a_dict_of_many_tensors() -> None:
    xs = {f"w{k}": x for k, x in enumerate(tensors())}
    f = warm(lambda xs: [xs[k] * 2.0 for k in xs], xs)
    backwards = dict(reversed(xs.items()))

    for given in (xs, backwards):
        expected = {k: v.numpy() * 2.0 for k, v in given.items()}
        found = f(given)
        assert sorted(float(t.sum().item()) for t in found) == sorted(float(v.sum()) for v in expected.values())
    fewer = dict(list(xs.items())[:-1])
    assert len(f({**fewer, "other": jg.ones(5)})) == MANY


def test_one_tensor_twice_in_a_long_list_goes_the_slow_way() -> None:
    xs = [*tensors(), tensors()[0]]
    xs[-1] = xs[0]
    f = jit(doubled)
    for _ in range(3):
        assert_equal(f(xs), doubled(xs))
    assert not f._fast_calls


def test_two_lists_between_other_arguments() -> None:
    def f(a: Any, xs: Any, b: Any, ys: Any) -> Any:
        return [x * a + y * b for x, y in zip(xs, ys, strict=True)], a + b

    a, b, xs, ys = jg.tensor(2.0), jg.tensor(3.0), tensors(), tensors(size=5)
    compiled = warm(f, a, xs, b, ys)
    swapped = compiled(b, ys, a, xs)

    assert_equal(swapped[0], f(b, ys, a, xs)[0])
    assert swapped[1].item() == 5.0


def replaced(xs: list[Any], k: int, x: Any) -> list[Any]:
    return [*xs[:k], x, *xs[k + 1 :]]


@pytest.mark.parametrize("k", [0, MANY // 2, MANY - 1])
@pytest.mark.parametrize(
    "other",
    [
        jg.ones(6),
        jg.ones(5, dtype=np.float64),
        jg.tensor(np.ones((5, 1), np.float32)),
        jg.tensor(np.ones(10, np.float32)[::2]),
        jg.tensor(np.ones(5, np.float32), requires_grad=True),
        np.ones(5, np.float32),
        3.0,
    ],
    ids=["longer", "float64", "2-d", "strided", "requires grad", "array", "float"],
)
def test_one_odd_element_is_noticed(k: int, other: Any) -> None:
    f, xs = warm(doubled, tensors()), tensors()
    odd = replaced(xs, k, other)

    found = f(odd)

    for a, x in zip(found, odd, strict=True):
        np.testing.assert_array_equal(a.detach().numpy(), np.asarray(x.detach() if isinstance(x, jg.Tensor) else x) * 2)


def test_a_list_of_another_length_is_noticed() -> None:
    f = warm(doubled, tensors())

    for count in (MANY - 1, MANY + 1):
        assert_equal(f(tensors(count)), doubled(tensors(count)))


def test_a_tensor_that_comes_twice_is_noticed() -> None:
    def f(xs: Any) -> Any:
        xs[0].__iadd__(1.0)
        return [jg.multiply(x, 2.0) for x in xs]

    compiled, xs = warm(f, tensors()), tensors()
    before = xs[0].numpy().copy()

    found = compiled(replaced(xs, MANY - 1, xs[0]))

    np.testing.assert_array_equal(found[-1].numpy(), (before + 1) * 2)


def test_lists_that_are_changed_in_place() -> None:
    def step(xs: Any, gs: Any) -> None:
        for x, g in zip(xs, gs, strict=True):
            x -= 0.5 * g

    xs, gs = tensors(), tensors()
    compiled = warm(step, xs, gs)
    expected = [x.numpy() - np.float32(0.5) * g.numpy() for x, g in zip(xs, gs, strict=True)]
    data = [x.numpy() for x in xs]

    compiled(xs, gs)

    for x, e, d in zip(xs, expected, data, strict=True):
        np.testing.assert_array_equal(x.numpy(), e)
        assert x.numpy() is d or np.shares_memory(x.numpy(), d)


def test_memory_that_is_changed_and_seen_through_another_argument_is_refused() -> None:
    def step(xs: Any, gs: Any) -> None:
        for x, g in zip(xs, gs, strict=True):
            x -= 0.5 * g

    xs, gs = tensors(), tensors()
    compiled = warm(step, xs, gs)
    shared = jg.tensor(np.ones(5, np.float32))
    view = shared[:]

    with pytest.raises(jg.errors.UnguardableError):
        compiled(replaced(xs, 3, shared), replaced(gs, 40, view))


def test_gradients_through_a_long_list_of_leaves() -> None:
    def loss(ws: Any, xs: Any) -> Any:
        return sum(((w * x).sum() for w, x in zip(ws, xs, strict=True)), jg.tensor(0.0))

    ws, xs = tensors(requires_grad=True), tensors()
    f = warm(loss, ws, xs)

    for w in ws:
        w.grad = None
    f(ws, xs).backward()

    for w, x in zip(ws, xs, strict=True):
        np.testing.assert_allclose(w.grad.numpy(), x.numpy(), rtol=1e-6)


def test_results_that_are_views_arguments_and_numbers_among_many() -> None:
    def f(xs: Any) -> Any:
        return (*[x * 2.0 for x in xs], xs[3], 7, (xs[0] + 1.0).reshape((5, 1)))

    xs = tensors()
    found = warm(f, xs)(xs)

    assert found[MANY] is xs[3]
    assert found[MANY + 1] == 7
    assert found[-1].shape == (5, 1)
    np.testing.assert_array_equal(found[-1].numpy()[:, 0], xs[0].numpy() + 1.0)
    assert_equal(found[:MANY], tuple(x * 2.0 for x in xs))


def test_expressions_in_a_row_are_written_as_a_slice() -> None:
    texts = ["p", *(f"a[{k}]" for k in range(2, 2 + MANY)), "a[0]", "b[1]"]

    assert listed(texts) == f"p, *a[2:{2 + MANY}], a[0], b[1]"
    assert listed(["a[1]", "a[0]"]) == "a[1], a[0]"
    assert listed([]) == ""


def test_threads_that_call_with_numbers_of_their_own() -> None:
    """The numbers of all calls were written to one place, where the kernels of another thread's call read them."""
    x = jg.ones(300_000)
    f = warm(lambda x, s: x * s, x, 1.0)
    wrong: list[float] = []

    def work(s: float) -> None:
        for _ in range(100):
            if not (f(x, s).numpy() == np.float32(s)).all():
                wrong.append(s)

    threads = [threading.Thread(target=work, args=(float(k),)) for k in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert not wrong


CALLS: dict[str, tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]] = {
    "sorted": (lambda x: jg.sort(x) * 2.0, lambda: (numbers(50),)),
    "two calls and a number": (lambda x, s: (jg.cumsum(jg.sort(x)) * s, x + s), lambda: (numbers(50), 0.5)),
    "rows of a table": (lambda table, k: jg.tanh(table[k]), lambda: (numbers(9, 4), jg.tensor([1, 8, 1]))),
    "an array": (lambda x, k: x[k].sum(), lambda: (numbers(9), np.array([3, 1]))),
    "a view of a result": (lambda x: jg.sort(x).reshape(5, 2).T, lambda: (numbers(10),)),
    "twice": (lambda x: (s := jg.sort(x), s), lambda: (numbers(10),)),
    "of one element": (lambda x: jg.argmax(x), lambda: (numbers(10),)),
    "of nothing": (lambda x: jg.sort(x) + 1.0, lambda: (numbers(0),)),
    "assembled": (lambda x: jg.concat([jg.sort(x), x]), lambda: (numbers(10),)),
    "changed": (lambda x: changed(jg.sort(x)), lambda: (numbers(10),)),
}


def numbers(*shape: int) -> jg.Tensor:
    return jg.tensor(np.random.default_rng(1).standard_normal(shape).astype(np.float32))


def changed(x: Any) -> Any:
    x[2:4] = 7.0
    return x


@pytest.mark.parametrize("name", CALLS)
def test_library_calls_on_the_fast_path(name: str) -> None:
    """Their results are the arrays that they return: nobody copies them, and no two calls share them."""
    function, make = CALLS[name]
    args = make()
    f = warm(function, *args)
    expected = function(*args)

    first, second = f(*args), f(*args)

    for found in (first, second):
        for x, y in zip(leaves(found), leaves(expected), strict=True):
            np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-6)
    for x, y in zip(leaves(first), leaves(second), strict=True):
        assert not np.may_share_memory(x.numpy(), y.numpy())
    for x in leaves(first):
        assert not any(np.may_share_memory(x.numpy(), a) for a in args if isinstance(a, np.ndarray))


def leaves(tree: Any) -> list[Any]:
    return list(optree.tree_leaves(tree))


def test_a_library_call_that_fails_leaves_the_state_alone() -> None:
    state, table = jg.zeros(3), numbers(4, 3)

    def step(k: Any) -> Any:
        state.__iadd__(1.0)
        return table[k]

    f = warm(step, jg.tensor([1, 2]))
    with pytest.raises(IndexError):
        f(jg.tensor([1, 9]))

    assert state.tolist() == [2.0] * 3
    f(jg.tensor([0, 3]))
    assert state.tolist() == [3.0] * 3
