"""What NumPy computes from the elements of a tensor at once, without ops: as NumPy's functions and as the ops do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
import jitgrad.numpy as jnp
from jitgrad.core.tensor import Tensor
from jitgrad.eager.stable_order import distinct_values, equal_arrays

RNG = np.random.default_rng(8)
ARRAYS: dict[str, np.ndarray[Any, Any]] = {
    "ints": RNG.integers(-3, 4, (4, 6)),
    "unsigned": RNG.integers(0, 4, 30).astype(np.uint8),
    "bools": RNG.integers(0, 2, (3, 5)).astype(bool),
    "floats": np.round(RNG.normal(size=(5, 7)), 1).astype(np.float32),
    "doubles": np.round(RNG.normal(size=40), 1),
    "halves": np.round(RNG.normal(size=40), 1).astype(np.float16),
    "zeros and NaN": np.array([np.nan, -0.0, 2.0, 0.0, -np.inf, np.nan, -0.0, np.inf, 2.0], np.float32),
    "zeros": np.array([-0.0, 0.0, -0.0]),
    "NaN": np.array([np.nan, np.nan]),
    "one": np.array([3]),
    "none": np.zeros((0, 2), np.float32),
    "strided": np.round(RNG.normal(size=(6, 8)), 1)[::2, 1::3],
}


def bits(x: Any) -> tuple[Any, ...]:
    array = x.detach().numpy() if isinstance(x, Tensor) else np.asarray(x)
    return array.dtype, array.shape, array.tobytes()


@pytest.mark.parametrize("name", ARRAYS)
def test_distinct_values_are_the_first_of_equals(name: str) -> None:
    x = ARRAYS[name]
    first = np.unique(x, return_index=True)[1]

    assert bits(distinct_values(x)) == bits(x.reshape(-1)[first])


ASKED = [(), ("return_inverse",), ("return_counts",), ("return_index", "return_inverse", "return_counts")]


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("name", ARRAYS)
def test_unique_is_numpys(name: str, asked: tuple[str, ...]) -> None:
    x, wanted = ARRAYS[name], dict.fromkeys(asked, True)

    found = jg.unique(jg.tensor(x), **wanted)

    expected = np.unique(x, **wanted)
    found, expected = (found, expected) if asked else ((found,), (expected,))
    assert [bits(part)[:2] for part in found] == [bits(part)[:2] for part in expected]
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a.numpy(), b)


def test_the_gradient_of_unique_goes_to_the_first_of_equals() -> None:
    x = jg.tensor([2.0, 1.0, 2.0, 1.0], requires_grad=True)
    values, counts = jg.unique(x, return_counts=True)
    (values * jg.tensor([10.0, 20.0])).sum().backward()

    assert (values.tolist(), counts.tolist(), x.grad.tolist()) == ([1.0, 2.0], [2, 2], [20.0, 10.0, 0.0, 0.0])


@pytest.mark.parametrize("name", [name for name in ARRAYS if name != "none"])
def test_nonzero_is_numpys(name: str) -> None:
    x = ARRAYS[name]

    assert [*map(bits, jg.nonzero(jg.tensor(x)))] == [*map(bits, np.nonzero(x))]
    np.testing.assert_array_equal(jg.nonzero(jg.tensor(x), as_tuple=False).numpy(), np.argwhere(x))


def runs_by_hand(x: np.ndarray[Any, Any]) -> tuple[list[Any], list[int], list[int]]:
    values, places, counts = [], [], []
    for element in x.reshape(-1).tolist():
        if not values or element != values[-1]:
            values.append(element)
            counts.append(0)
        counts[-1] += 1
        places.append(len(values) - 1)
    return values, places, counts


@pytest.mark.parametrize("name", [name for name in ARRAYS if name != "NaN"])
def test_unique_consecutive(name: str) -> None:
    x = ARRAYS[name]
    output, inverse, counts = jg.unique_consecutive(jg.tensor(x), return_inverse=True, return_counts=True)
    values, places, lengths = runs_by_hand(x)

    np.testing.assert_array_equal(output.numpy(), np.asarray(values, x.dtype))
    assert (inverse.shape, inverse.reshape(-1).tolist(), counts.tolist()) == (x.shape, places, lengths)
    assert bits(jg.unique_consecutive(jg.tensor(x))) == bits(output)


def test_unique_consecutive_of_slices_and_its_gradient() -> None:
    x = jg.tensor([[1.0, 2.0], [1.0, 2.0], [3.0, 2.0]], requires_grad=True)

    output, inverse, counts = jg.unique_consecutive(x, return_inverse=True, return_counts=True, dim=0)
    output.sum().backward()

    assert (output.tolist(), inverse.tolist(), counts.tolist()) == ([[1.0, 2.0], [3.0, 2.0]], [0, 0, 1], [2, 1])
    assert x.grad.tolist() == [[1.0, 1.0], [0.0, 0.0], [1.0, 1.0]]
    assert jg.unique_consecutive(x.detach(), dim=1).tolist() == x.tolist()


@pytest.mark.parametrize("minlength", [0, 2, 9])
def test_bincount_is_numpys(minlength: int) -> None:
    x = np.array([1, 4, 1, 0])

    assert bits(jnp.bincount(jg.tensor(x), minlength=minlength)) == bits(np.bincount(x, minlength=minlength))
    with pytest.raises(ValueError, match="negative"):
        jnp.bincount(jg.tensor(-x), minlength=minlength)


@pytest.mark.parametrize("size", [0, 1, 5000, 300_000])
@pytest.mark.parametrize("order", ["C", "F"])
def test_equal_arrays_sees_every_element(size: int, order: Any) -> None:
    x = np.arange(size, dtype=np.float32).reshape(-1, 1 if size % 2 else 2).copy(order)
    assert equal_arrays(x, x.copy())
    for place in {0, size // 2, 4095, 4096, 20480, size - 1} & {*range(size)}:
        y = x.copy()
        y.flat[place] += 1e6
        assert not equal_arrays(x, y)
        y.flat[place] = np.nan
        assert not equal_arrays(y, y)


def test_they_know_no_values_in_a_trace() -> None:
    found = jg.jit(lambda x: jg.nonzero(x > 1.0)[0])(jg.tensor([0.0, 2.0, 3.0]))

    assert found.tolist() == [1, 2]
