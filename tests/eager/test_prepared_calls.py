"""NumPy calls with little preparation give what NumPy's functions give, for odd arrays too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.tensor import Tensor

SPECIAL = np.array([np.nan, -np.nan, 0.5, np.inf, -np.inf, 1.0, -1.0, 2.0, 1e-45, -3.0], np.float32)
ARRAYS: dict[str, np.ndarray[Any, Any]] = {
    "matrix": np.sin(np.arange(24.0)).reshape(4, 6),
    "special": SPECIAL.reshape(2, 5),
    "backwards": SPECIAL[::-1].reshape(5, 2)[:, ::-1],
    "columns": np.arange(12, dtype=np.int32).reshape(3, 4).T,
    "bytes": np.arange(12, dtype=np.uint8).reshape(3, 4) * 20,
    "bools": np.array([[True, False], [True, True]]),
    "half": SPECIAL.reshape(2, 5).astype(np.float16),
    "one element": np.float32(-2.5).reshape(1, 1),
    "no rows": np.zeros((0, 3)),
    "no columns": np.zeros((3, 0), np.float32),
}
ROWS = np.array([[0, -1], [0, 0]])


def summed(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.cumsum(x, axis=1)


CALLS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[np.ndarray[Any, Any]], Any]]] = {
    "cumsum": (lambda x: x.cumsum(1), summed),
    "cumsum of a dtype": (lambda x: x.cumsum(0, dtype=jg.float64), lambda x: np.cumsum(x.astype(np.float64), 0)),
    "expand": (lambda x: x.expand(2, -1, -1), lambda x: np.broadcast_to(x, (2, *x.shape))),
    "expand by a tuple": (lambda x: x.expand((3, *x.shape)), lambda x: np.broadcast_to(x, (3, *x.shape))),
    "zeros_like": (jg.zeros_like, np.zeros_like),
    "ones_like": (jg.ones_like, np.ones_like),
    "full_like": (lambda x: jg.full_like(x, 1), lambda x: np.full_like(x, 1)),
    "clip": (lambda x: x.clip(0, 1), lambda x: np.minimum(np.maximum(x, x.dtype.type(0)), x.dtype.type(1))),
    "take": (lambda x: jg.take(x, jg.tensor(ROWS), axis=0), lambda x: np.take(x, ROWS, axis=0)),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", ARRAYS)
def test_results_are_those_of_numpy(name: str, call: str) -> None:
    array = ARRAYS[name]
    if (call == "take" and not len(array)) or (call == "clip" and array.dtype == bool):
        pytest.skip("no row to take, or bools that become ints")
    ours, numpys = CALLS[call]
    with np.errstate(all="ignore"):
        expected = np.asarray(numpys(array))
    for _ in range(3):
        found = ours(jg.asarray(array)).numpy()
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("bounds", [(np.nan, 1.0), (0.0, np.nan), (2.0, -2.0), (-np.inf, np.inf)])
def test_clip_with_bounds_that_are_no_range(bounds: tuple[float, float]) -> None:
    low, high = map(np.float32, bounds)
    with np.errstate(all="ignore"):
        expected = np.minimum(np.maximum(SPECIAL, low), high)
    for _ in range(3):
        np.testing.assert_array_equal(jg.clip(jg.tensor(SPECIAL), *bounds).numpy(), expected)
        assert jg.tensor(5.0).clip(0.0, 1.0).shape == ()


def test_single_elements_are_arrays() -> None:
    x = jg.tensor([1.0, 2.0], requires_grad=True)
    for _ in range(3):
        one = jg.take(x, jg.tensor(1), axis=0)
        assert one.shape == () and type(one.detach().numpy()) is np.ndarray and one.item() == 2.0


def test_indices_out_of_range_are_errors_each_time() -> None:
    x, wrong = jg.ones((2, 3)), jg.tensor([0, 2])
    for _ in range(3):
        with pytest.raises(IndexError):
            jg.take(x, wrong, axis=0)
        with pytest.raises(IndexError, match=r"index 2 is not in \[0, 2\)"):
            jg.embedding(wrong, x)
        with pytest.raises(IndexError, match=r"index -1 is not in \[0, 2\)"):
            jg.embedding(-jg.tensor([1, 0], dtype=jg.int32), x)


def test_what_is_like_a_number_or_has_a_gradient() -> None:
    number = jg.tensor(2.0) * 3
    assert jg.zeros_like(number).dtype == jg.float32 and jg.ones_like(jg.tensor(1)).dtype == jg.int64
    w = jg.ones(3, requires_grad=True)
    assert not jg.zeros_like(w).requires_grad and jg.zeros_like(w, requires_grad=True).requires_grad
    first, second = jg.zeros_like(w), jg.zeros_like(w)
    first += 1
    assert second.tolist() == [0.0] * 3


@pytest.mark.parametrize(
    ("low", "high", "dtype"),
    [(0, 5, None), (0, 1000, "int16"), (-3, 4, "int8"), (-(2**63), 2**63, "int64"), (0, 2**64, "uint64"), (5, 6, "float32")],
)
def test_whole_numbers_are_the_same_in_every_call(low: int, high: int, dtype: str | None) -> None:
    found = []
    for _ in range(6):
        jg.manual_seed(3)
        found.append(jg.randint(low, high, (7,), dtype=dtype).numpy())
    jg.manual_seed(3)
    (bits,) = (np.frombuffer(x.numpy().tobytes(), np.uint64) for x in jg.ops.random.default_generator.bits((7,)))
    expected = [low + int(n) % (high - low) for n in bits]

    assert all(x.tobytes() == found[0].tobytes() and x.dtype == (dtype or "int64") for x in found)
    assert [int(n) for n in found[0]] == expected
