"""Gradients that a @jit function leaves behind: the same objects over the same memory as in eager execution and in PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import EjectError, UnguardableError

Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]
CASES: dict[str, Callable[[Any, Wrap], Any]] = {}


def case(f: Callable[[Any, Wrap], Any]) -> Callable[[Any, Wrap], Any]:
    CASES[f.__name__] = f
    return f


def leaf(lib: Any, values: Any) -> Any:
    return lib.tensor(np.array(values, np.float32), requires_grad=True)


def batches(lib: Any, calls: int = 4) -> Iterator[Any]:
    for k in range(calls):
        yield lib.tensor(np.array([k, 1, 2], np.float32))


def plain(x: Any) -> Any:
    """``x`` with lists for tensors."""
    if isinstance(x, (tuple, list)):
        return [plain(part) for part in x]
    return x.detach().numpy().tolist() if hasattr(x, "detach") else x


@case
def argument_assigned(lib: Any, wrap: Wrap) -> Any:
    w, found = leaf(lib, [1, 2, 3]), []

    @wrap
    def f(w: Any, x: Any) -> None:
        w.grad = x

    for x in batches(lib):
        f(w, x)
        x.add_(1)
        found.append((plain(w.grad), w.grad is x))
    return found


@case
def view_assigned(lib: Any, wrap: Wrap) -> Any:
    w, found = leaf(lib, [1, 2, 3]), []

    @wrap
    def f(flat: Any) -> None:
        w.grad = flat[1:4]

    for _ in range(3):
        flat = lib.zeros(5)
        f(flat)
        flat.add_(1)
        found.append(plain(w.grad))
    return found


@case
def result_assigned(lib: Any, wrap: Wrap) -> Any:
    w, found = leaf(lib, [1, 2, 3]), []

    @wrap
    def f(x: Any) -> Any:
        w.grad = x * 2
        return w.grad

    for x in batches(lib):
        y = f(x)
        y.add_(1)
        found.append((plain(w.grad), w.grad is y))
    return found


@case
def returned_and_zeroed(lib: Any, wrap: Wrap) -> Any:
    w = leaf(lib, [1, 2, 3])

    @wrap
    def f(x: Any) -> Any:
        if w.grad is not None:
            w.grad.zero_()
        (w * x).sum().backward()
        return w.grad

    results = [f(x) for x in batches(lib)]
    return plain(results), [r is w.grad for r in results]


@case
def returned_and_accumulated(lib: Any, wrap: Wrap) -> Any:
    w = leaf(lib, [1, 2, 3])

    @wrap
    def f(w: Any, x: Any) -> Any:
        (w * x).sum().backward()
        return w.grad, w.grad.sum()

    results = [f(w, x) for x in batches(lib)]
    return plain(results), [r is w.grad for r, _ in results]


@case
def accumulated_into_a_flat_buffer(lib: Any, wrap: Wrap) -> Any:
    flat, found = lib.zeros(6), []
    w, v = leaf(lib, [1, 2, 3]), leaf(lib, [4, 5, 6])
    w.grad, v.grad = flat[:3], flat[3:]

    @wrap
    def f(x: Any) -> None:
        (w * v * x).sum().backward()

    for x in batches(lib):
        f(x)
        found.append(plain(flat))
    return found


@case
def zeroed_by_the_optimizer(lib: Any, wrap: Wrap) -> Any:
    w, kept = leaf(lib, [1, 2, 3]), []
    optimizer = lib.optim.SGD([w], lr=0.5)

    @wrap
    def f(x: Any) -> None:
        optimizer.zero_grad(set_to_none=False)
        (w * w * x).sum().backward()
        optimizer.step()

    for x in batches(lib):
        f(x)
        kept.append(w.grad)
    return plain(kept), plain(w), [g is w.grad for g in kept]


@case
def earlier_gradient_kept(lib: Any, wrap: Wrap) -> Any:
    w, found = leaf(lib, [1, 2, 3]), []

    @wrap
    def f(w: Any, x: Any) -> Any:
        w.grad = None
        (w * x).sum().backward()
        first = w.grad
        (w * x * x).sum().backward()
        return first, w.grad.clone()

    for x in batches(lib):
        first, copy = f(w, x)
        found.append((plain(first), plain(copy), first is w.grad))
    return found


@case
def swapped(lib: Any, wrap: Wrap) -> Any:
    w, v, found = leaf(lib, [1, 2, 3]), leaf(lib, [1, 1, 1]), []

    @wrap
    def f() -> None:
        w.grad, v.grad = v.grad, w.grad

    one, two = lib.ones(3), lib.zeros(3)
    w.grad, v.grad = one, two
    for _ in range(3):
        f()
        found.append((w.grad is one, v.grad is one, plain(w.grad)))
    return found


@case
def shared(lib: Any, wrap: Wrap) -> Any:
    w, v, found = leaf(lib, [1, 2, 3]), leaf(lib, [1, 1, 1]), []

    @wrap
    def f(x: Any) -> None:
        w.grad = None
        (w * x).sum().backward()
        v.grad = w.grad

    for x in batches(lib):
        f(x)
        w.grad.add_(1)
        found.append((plain(w.grad), plain(v.grad), v.grad is w.grad))
    return found


@case
def scaled_in_place(lib: Any, wrap: Wrap) -> Any:
    w, found = leaf(lib, [1, 2, 3]), []
    w.grad = first = lib.ones(3)

    @wrap
    def f() -> Any:
        w.grad.mul_(2)
        return w.grad

    for _ in range(3):
        f()
        found.append((plain(first), w.grad is first))
    return found


@case
def read_and_returned(lib: Any, wrap: Wrap) -> Any:
    w, found = leaf(lib, [1, 2, 3]), []

    @wrap
    def f(w: Any) -> Any:
        return w.grad * 2, w.grad, w.grad[1:]

    for x in batches(lib):
        w.grad = x
        double, same, part = f(w)
        part.add_(1)
        found.append((plain(double), same is x, plain(x)))
    return found


@case
def of_a_new_leaf(lib: Any, wrap: Wrap) -> Any:
    found = []

    @wrap
    def f(x: Any) -> Any:
        y = (x * 2).requires_grad_()
        (y * y).sum().backward()
        return y, y.grad

    for x in batches(lib):
        y, g = f(x)
        found.append((plain(y), plain(g), y.grad is g, y.is_leaf, y.requires_grad))
    return found


@case
def retained(lib: Any, wrap: Wrap) -> Any:
    w, found = leaf(lib, [1, 2, 3]), []

    @wrap
    def f(x: Any) -> Any:
        w.grad = None
        h = w * x
        h.retain_grad()
        (h * h).sum().backward()
        return h

    for x in batches(lib):
        found.append((plain(f(x).grad), plain(w.grad)))
    return found


@case
def argument_detached(lib: Any, wrap: Wrap) -> Any:
    w, found = leaf(lib, [1, 2, 3]), []

    @wrap
    def f(h: Any, x: Any) -> Any:
        y = h * x
        h.detach_()
        return y, h * 2

    for x in batches(lib):
        h = w * 1
        y, z = f(h, x)
        found.append((h.requires_grad, h.is_leaf, y.requires_grad, z.requires_grad, plain(h)))
        y.sum().backward()
    return found, plain(w.grad)


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_of_eager_execution(name: str) -> None:
    assert CASES[name](jg, jg.jit) == CASES[name](jg, lambda f: f)


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_of_torch(name: str) -> None:
    import torch

    assert CASES[name](jg, lambda f: f) == CASES[name](torch, lambda f: f)


def test_many_gradients_keep_their_memory() -> None:
    """More than a fast call handles one by one."""
    leaves = [leaf(jg, [k, 1, 2]) for k in range(40)]

    @jg.jit
    def f(x: Any) -> None:
        for w in leaves:
            (w * w * x).sum().backward()

    for x in batches(jg, 2):
        f(x)
    before = [w.grad for w in leaves]
    for x in batches(jg, 3):
        f(x)
    assert all(w.grad is g for w, g in zip(leaves, before, strict=True))
    expected = [2 * w.numpy() * np.array([4, 5, 10], np.float32) for w in map(jg.Tensor.detach, leaves)]
    assert all((w.grad.numpy() == g).all() for w, g in zip(leaves, expected, strict=True))
    assert f.cache_info().traces == 2


def test_gradients_that_share_memory_are_refused() -> None:
    w, v = leaf(jg, [1, 2, 3]), leaf(jg, [1, 1, 1])

    @jg.jit
    def f(x: Any) -> None:
        (w * v * x).sum().backward()

    for x in batches(jg, 3):
        f(x)
    v.grad = w.grad
    with pytest.raises(UnguardableError, match="shows the same memory"):
        f(next(batches(jg)))


def test_a_tensor_from_outside_is_not_detached() -> None:
    h = leaf(jg, [1, 2, 3]) * 1

    @jg.jit
    def f() -> Any:
        return h.detach_() * 2

    with pytest.raises(UnguardableError, match=r"detach_\(\) at .* is no argument of the @jit function"):
        f()
    assert h.requires_grad and h.grad_fn is not None


def test_the_gradient_of_a_result_is_not_ejected(tmp_path: Any) -> None:
    @jg.jit
    def f(x: Any) -> Any:
        y = (x * 2).requires_grad_()
        (y * y).sum().backward()
        return y

    with pytest.raises(EjectError, match=r"returns a tensor with a \.grad"):
        f.eject(tmp_path / "kernels.py", next(batches(jg)))


def test_an_ejected_step_accumulates_in_place(tmp_path: Any) -> None:
    w = leaf(jg, [1, 2, 3])
    w.grad = jg.ones(3)

    @jg.jit
    def f(w: Any, x: Any) -> None:
        (w * x).sum().backward()

    ejected = f.eject(tmp_path / "kernels.py", w, x := next(batches(jg)))
    run = jg.load_ejected(ejected.path)
    run(w, x, **ejected.state)
    assert w.grad is next(iter(ejected.state.values()))
    assert w.grad.numpy().tolist() == [1, 2, 3]


@pytest.mark.parametrize("held", [False, True])
def test_a_gradient_in_another_order_is_put_in_order_unless_somebody_holds_it(held: bool) -> None:
    w, x = leaf(jg, [[1, 2, 3], [4, 5, 6]]), jg.ones((4, 3))

    def f(x: Any) -> None:
        jg.nn.functional.linear(x, w).sum().backward()

    f(x)
    assert not w.grad._data.flags.c_contiguous
    array = w.grad.numpy() if held else None
    compiled = jg.jit(f)
    for _ in range(3):
        compiled(x)
    assert w.grad.numpy().tolist() == [[16, 16, 16], [16, 16, 16]]
    assert w.grad._data.flags.c_contiguous != held
    assert array is None or np.shares_memory(array, w.grad._data)
