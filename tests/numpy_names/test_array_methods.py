"""Methods that NumPy's arrays have and torch's tensors have not, or with another meaning: ``x.sort()`` sorts in place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
import jitgrad.numpy as jnp
from jitgrad.core.config import set_immutable
from jitgrad.core.errors import InPlaceError, ShapeError

pytestmark = pytest.mark.usefixtures("methods_of_numpy")
X = np.array([[3.0, 1.0, np.nan], [9.0, 7.0, 8.0]])
BOTH = pytest.mark.parametrize("wrap", [lambda f: f, lambda f: jg.jit(f, backend="python")], ids=["eager", "compiled"])
CHANGES = {
    "sort": lambda x: x.sort(),
    "sort along": lambda x: x.sort(0),
    "sort by keyword": lambda x: x.sort(axis=-1, kind="stable"),
    "sort of a row": lambda x: x[1].sort(),
    "sort of every other": lambda x: x[:, ::-2].sort(),
    "partition": lambda x: x.partition(1),
    "partition along": lambda x: x.partition(1, axis=0),
    "put": lambda x: x.put([0, 4], [-1.0, -2.0]),
    "put clipped": lambda x: x.put([0, 40], -1.0, "clip"),
}
RESULTS = {
    "argpartition": lambda x: x.argpartition(2),
    "choose": lambda x: (x > 2.0).astype(np.int64).choose([x, -x]),
    "compress": lambda x: x.compress([True, False, True], axis=1),
}


@BOTH
@pytest.mark.parametrize("name", CHANGES)
def test_changes_the_tensor_as_numpy_does(name: str, wrap: Any) -> None:
    expected, x = X.copy(), jnp.array(X)

    assert CHANGES[name](expected) is None
    if "partition" in name:
        expected = np.sort(expected, axis=0 if "along" in name else -1)  # which partitions at every position
    assert wrap(CHANGES[name])(x) is None
    np.testing.assert_array_equal(x.numpy(), expected)


@BOTH
@pytest.mark.parametrize("name", RESULTS)
def test_returns_what_numpy_does(name: str, wrap: Any) -> None:
    x = np.array([[3.0, 1.0, 2.0], [9.0, 7.0, 8.0]])

    np.testing.assert_array_equal(wrap(RESULTS[name])(jnp.array(x)).numpy(), RESULTS[name](x))


@BOTH
def test_gradients_follow_what_was_sorted(wrap: Any) -> None:
    def weighted(x: Any) -> Any:
        y = x * 1.0
        y.sort()
        return (y * np.array([1.0, 2.0, 3.0])).sum()

    assert wrap(jg.grad(weighted))(jnp.array([3.0, 1.0, 2.0])).tolist() == [3.0, 1.0, 2.0]


@pytest.mark.parametrize("call", [lambda x: x.sort(dim=-1), lambda x: x.sort(descending=False), lambda x: x.sort(-1, False)])
def test_sort_with_a_keyword_of_torch_is_torchs(call: Any) -> None:
    x = jnp.array([3.0, 1.0, 2.0])

    values, indices = call(x)
    assert (values.tolist(), indices.tolist(), x.tolist()) == ([1.0, 2.0, 3.0], [1, 2, 0], [3.0, 1.0, 2.0])


def test_put_with_a_keyword_of_torch_is_torchs() -> None:
    x = jnp.array([3.0, 1.0])

    assert x.put(jg.tensor([0, 0]), jnp.array([1.0, 2.0]), accumulate=True).tolist() == [6.0, 1.0]
    assert x.put(index=jg.tensor([0]), source=jnp.array([5.0])).tolist() == [5.0, 1.0]
    assert x.tolist() == [3.0, 1.0]


def test_sort_is_jaxs_where_tensors_are_immutable() -> None:
    x = jnp.array([3.0, 1.0, 2.0])
    set_immutable(True)
    try:
        assert x.sort().tolist() == [1.0, 2.0, 3.0] and x.sort(descending=True).tolist() == [3.0, 2.0, 1.0]
    finally:
        set_immutable(False)
    assert x.tolist() == [3.0, 1.0, 2.0]


def test_sort_refuses_what_it_must_not_change() -> None:
    with pytest.raises(InPlaceError, match="leaf"):
        jg.tensor([2.0, 1.0], requires_grad=True).sort()
    with pytest.raises(ShapeError, match="0-d"):
        jnp.array(1.0).sort()
