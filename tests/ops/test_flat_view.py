"""``x.flat`` reads and writes what NumPy's does, eager and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg

KEYS = [0, -2, slice(None), slice(1, 7, 3), slice(None, None, -2), [5, 0], np.array([[1, 2], [0, 4]]), np.arange(6) > 3]
WRAPS = [lambda f: f, lambda f: jg.jit(f, backend="python")]


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("transposed", [False, True])
def test_elements_are_numpys(wrap: Any, key: Any, transposed: bool) -> None:
    array = np.arange(6.0).reshape(2, 3)
    array = array.T if transposed else array
    x = jg.tensor(array)
    expected = array.flat[key]
    np.testing.assert_array_equal(wrap(lambda x: x.flat[key])(x).numpy(), expected)
    values = (7.0, np.array([1.0, 2.0]), -np.arange(6.0))
    for value in values[:1] if isinstance(key, int) else values:
        changed = array.copy(order="K")
        changed.flat[key] = value

        def write(x: Any, value: Any = value) -> Any:
            y = x.clone() if not transposed else x.T.clone().T
            y.flat[key] = jg.tensor(value)
            return y

        np.testing.assert_array_equal(wrap(write)(x).numpy(), changed)


def test_all_elements_and_their_gradient() -> None:
    x = jg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    assert len(x.flat) == 4 and [v.item() for v in x.flat] == [1.0, 2.0, 3.0, 4.0]
    assert np.asarray(x.detach().flat).tolist() == x.flat.copy().tolist() == [1.0, 2.0, 3.0, 4.0]
    (x.flat[1:3] * jg.tensor([10.0, 20.0])).sum().backward()
    assert x.grad.tolist() == [[0.0, 10.0], [20.0, 0.0]]
    y = x * 1.0
    y.flat = [5.0, 6.0]
    assert y.tolist() == [[5.0, 6.0], [5.0, 6.0]]


def test_no_axes_and_no_elements() -> None:
    number, empty = jg.tensor(2.0), jg.zeros(0, 3)
    number.flat[0] = 5.0
    empty.flat = 3.0
    assert number.item() == 5.0 and [*empty.flat] == [] and len(number.flat) == 1
    with pytest.raises(jg.errors.ShapeError, match=r"x.flat\[...\] = value of f32\[2\]: the value has 0 elements for 2 places"):
        jg.ones(2).flat = []
    with pytest.raises(jg.errors.ShapeError, match="2 elements for 1 places"):
        jg.ones(2).flat[0] = [1.0, 2.0]
    with pytest.raises(IndexError):
        _ = number.flat[1]
