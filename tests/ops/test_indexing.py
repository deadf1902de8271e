"""Reading by index, gathering, scattering and sorting, against NumPy, with gradients."""

from __future__ import annotations

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import ArgumentError, AxisError, DtypeError, IndexingError, ShapeError
from jitgrad.testing.gradients import check_grads

X = np.random.default_rng(0).normal(size=(3, 4, 5))
MASK = X > 0.2
INDICES = [
    1,
    -1,
    np.int8(2),
    np.s_[:],
    np.s_[1:3],
    np.s_[::-1],
    np.s_[5:0:-2, 1],
    np.s_[2:0],
    np.s_[...],
    np.s_[..., 0],
    np.s_[0, ..., 1:4:2],
    None,
    np.s_[:, None, 1, None],
    np.s_[..., None],
    (),
    np.s_[1, 2, 3],
    [0, 2, 0],
    [],
    np.array([[0, -1], [2, 1]]),
    np.s_[:, [3, 0]],
    np.s_[1, :, [3, 0]],
    np.s_[1, [3, 0]],
    np.s_[[0, 1], [1, 2]],
    np.s_[[0, 1], :, [1, 2]],
    np.s_[[0, 1], None, [1, 2]],
    np.s_[[[0], [1]], 1:3, np.array([1, 2])],
    np.s_[::2, [[0], [1]], [4, -5]],
    np.s_[..., [0, 0], 2],
    np.s_[None, [1, 2], ..., None],
    MASK,
    MASK[:, :, 0],
    MASK[:, 0, 0],
    np.s_[:, MASK[0, :, 0]],
    np.s_[MASK[:, 0, 0], ..., [0]],
    np.s_[:, MASK[0]],
    [True, False, True],
    True,
    False,
    np.s_[1, True],
]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_reading_equals_numpy(index):
    expected = X[index]

    result = jg.asarray(X)[index]

    assert result.shape == np.shape(expected)
    np.testing.assert_array_equal(result.numpy(), expected)


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_gradient_of_reading(index):
    if X[index].size:
        check_grads(lambda x: x[index] * x[index], (X,), order=1)


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_writing_equals_numpy(index):
    for value in (7.0, np.arange(float(X[index].size)).reshape(np.shape(X[index]))):
        expected, tensor = X.copy(), jg.tensor(X)
        expected[index] = value
        tensor[index] = jg.asarray(value)

        np.testing.assert_array_equal(tensor.numpy(), expected)


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_writing_with_history_equals_numpy_and_has_gradients(index):
    value = np.random.default_rng(1).normal(size=np.shape(X[index]))

    def write(x, v):
        y = x * 2.0
        y[index] = v * 3.0
        return y * y

    expected = X * 2
    expected[index] = value * 3
    np.testing.assert_allclose(write(jg.tensor(X, requires_grad=True), jg.asarray(value)).detach().numpy(), expected**2)
    check_grads(write, (X, value), order=1)


def test_tensors_as_indices():
    x = jg.asarray(X)
    rows, mask, one = jg.tensor([2, 0]), jg.asarray(MASK), jg.tensor(1)

    np.testing.assert_array_equal(x[rows].numpy(), X[[2, 0]])
    np.testing.assert_array_equal(x[:, rows, 1].numpy(), X[:, [2, 0], 1])
    np.testing.assert_array_equal(x[mask].numpy(), X[MASK])
    np.testing.assert_array_equal(x[one].numpy(), X[1])
    np.testing.assert_array_equal(x[:one].numpy(), X[:1])


def test_of_several_values_for_one_place_the_last_stays_and_gets_the_gradient():
    v = jg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    x = jg.zeros(2)
    x[[0, 0, 1]] = v
    (x * jg.tensor([10.0, 100.0])).sum().backward()

    assert x.tolist() == [2.0, 3.0]
    assert v.grad.tolist() == [0.0, 10.0, 100.0]


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_last_value_and_the_order_of_a_sum_do_not_depend_on_how_indices_lie(order):
    index = np.ones((3, 4), int, order=order)
    index[0, 3] = index[2, 0] = index[1, 1] = 0
    v = np.zeros((3, 4), np.float32, order=order)
    v[0, 3], v[1, 1], v[2, 0] = 1.0, 1e9, -1e9
    x = jg.zeros(2)
    x[jg.asarray(index)] = jg.asarray(v)
    wide = jg.zeros((2, 2), requires_grad=True)
    (wide[jg.asarray(index), jg.asarray(index)] * jg.asarray(v)).sum().backward()

    assert x.tolist()[0] == -1e9
    assert wide.grad.tolist()[0][0] == 0.0  # (1 + 1e9) - 1e9; another order gives 1
    assert jg.scatter_add(jg.zeros(2), 0, index.ravel(), v.ravel()).tolist()[0] == 0.0


@pytest.mark.parametrize("rows", [3, 60])
def test_few_additions_and_many_are_in_the_order_of_rows(rows):
    """NumPy's pairwise sums of rows for one place would be closer, and another result than a compiled program's."""
    src = np.full((rows, 5), 1e-8, np.float32)
    src[0] = 1.0

    found = jg.index_add(jg.zeros((10, 5)), 0, np.full(rows, 7), src).numpy()

    np.testing.assert_array_equal(found, np.eye(10, dtype=np.float32)[7][:, None] * np.ones(5, np.float32))


def written(index, v):
    y = jg.tensor(X)
    y[index] = v
    return y


@pytest.mark.parametrize(
    "index", [np.s_[:, 0], MASK, MASK[:, :, 0], np.s_[..., MASK[0, 0]], np.s_[[0, 0]], np.s_[MASK[:, :, 0], ...]]
)
def test_values_are_broadcast_when_written(index):
    expected = X.copy()
    expected[index] = 2.0

    np.testing.assert_array_equal(written(index, jg.tensor(2.0)).numpy(), expected)
    np.testing.assert_array_equal(written(index, jg.full((1,), 2.0)).numpy(), expected)
    check_grads(lambda v: written(index, v), (np.array(2.0),), order=1)
    check_grads(lambda v: written(index, v), (np.array([2.0]),), order=1)


# --- gather and scatter ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("indices", [[1, 0, 1], [[2, -1], [0, 0]], 1, []], ids=str)
def test_take(indices, axis):
    array = np.asarray(indices, np.int64)

    np.testing.assert_array_equal(jg.take(X, jg.asarray(array), axis).numpy(), np.take(X, array, axis))
    check_grads(lambda x: jg.take(x, array, axis) ** 2, (X,), order=2)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_take_along_axis_gather_and_scatter_add(axis):
    index = np.argsort(X, axis=axis)
    out = X.copy()
    np.add.at(out, tuple(index if k == axis else g for k, g in enumerate(np.ogrid[:3, :4, :5])), X)

    np.testing.assert_array_equal(jg.take_along_axis(X, index, axis).numpy(), np.take_along_axis(X, index, axis))
    np.testing.assert_array_equal(jg.gather(X, axis, index).numpy(), np.take_along_axis(X, index, axis))
    np.testing.assert_allclose(jg.scatter_add(X, axis, index, X).numpy(), out)
    check_grads(lambda x: jg.gather(x, axis, index) ** 2, (X,), order=2)
    check_grads(lambda x, y: jg.scatter_add(x, axis, index, y) ** 2, (X, X * 2), order=2)


def test_take_along_axis_broadcasts():
    index = np.array([[[1], [0]]])

    np.testing.assert_array_equal(
        jg.take_along_axis(X, index, 1).numpy(), np.take_along_axis(X, np.broadcast_to(index, (3, 2, 5)), 1)
    )


def test_gather_with_a_shorter_index():
    index = np.array([[3, 0, 0]])

    np.testing.assert_array_equal(jg.gather(X[:, :, 0], 1, index).numpy(), X[:1, [3, 0, 0], 0])
    check_grads(lambda x: jg.gather(x, 1, index) ** 2, (X[:, :, 0],), order=2)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_index_add(axis):
    index = np.array([2, 0, -1, 2])
    src = np.random.default_rng(3).normal(size=[4 if k == axis % 3 else n for k, n in enumerate(X.shape)])
    expected = X.copy()
    np.add.at(expected, tuple(index if k == axis % 3 else np.s_[:] for k in range(3)), src)

    np.testing.assert_allclose(jg.index_add(X, axis, index, src).numpy(), expected)
    check_grads(lambda x, y: jg.index_add(x, axis, index, y) ** 2, (X, src), order=2)


def test_index_add_of_nothing_and_in_one_dimension():
    assert jg.index_add(jg.ones(3), 0, [], jg.ones(0)).tolist() == [1.0, 1.0, 1.0]
    assert jg.index_add(jg.ones((2, 3)), 0, [], jg.ones((0, 3))).tolist() == [[1.0] * 3] * 2
    assert jg.index_add(jg.ones(3), 0, [1, 1], jg.ones(2)).tolist() == [1.0, 3.0, 1.0]


# --- order -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, -1, None])
@pytest.mark.parametrize("dtype", ["int8", "float32", "bool"])
def test_sort_and_argsort(axis, dtype):
    x = (X * 2).astype(dtype)

    np.testing.assert_array_equal(jg.sort(x, axis).numpy(), np.sort(x, axis))
    np.testing.assert_array_equal(jg.argsort(x, axis).numpy(), np.argsort(x, axis, kind="stable"))


def test_descending_is_stable_and_sorting_has_gradients():
    x = np.array([1.0, 3.0, 1.0, 3.0])

    assert jg.argsort(x, descending=True).tolist() == [1, 3, 0, 2]
    assert jg.sort(x, descending=True).tolist() == [3.0, 3.0, 1.0, 1.0]
    check_grads(lambda t: jg.sort(t, 1, descending=True) ** 3, (X,), order=2)


@pytest.mark.parametrize("axis", [-1, 0, None])
def test_argsort_of_a_0d_array_is_that_of_one_element(axis):
    assert jg.argsort(jg.tensor(3.0), axis).tolist() == np.argsort(np.array(3.0), axis=axis).tolist() == [0]
    assert jg.jit(lambda x: jg.argsort(x, axis), backend="python")(jg.tensor(3.0)).shape == (1,)
    with pytest.raises(AxisError):
        jg.argsort(jg.tensor(3.0), 1)
    with pytest.raises(ShapeError, match="sort of a 0-d array"):
        jg.sort(jg.tensor(3.0))


def test_topk():
    values, indices = jg.topk(jg.asarray(X), 2, axis=1)

    np.testing.assert_array_equal(values.numpy(), -np.sort(-X, 1)[:, :2])
    np.testing.assert_array_equal(indices.numpy(), np.argsort(-X, 1, kind="stable")[:, :2])
    check_grads(lambda t: jg.topk(t, 2).values ** 2, (X,), order=2)


@pytest.mark.parametrize("kind", ["different", "equal", "nan"])
@pytest.mark.parametrize("dtype", ["f", "d", "e", "i", "q", "B", "?"])
@pytest.mark.parametrize(("shape", "axis"), [((30, 200), 1), ((200, 30), 0), ((5, 300, 4), 1), ((5000,), 0)])
def test_topk_of_many_is_the_head_of_a_stable_sort(shape, axis, dtype, kind):
    rng = np.random.default_rng(0)
    x = (rng.normal(size=shape) * 50 if kind != "equal" else rng.integers(0, 3, shape)).astype(dtype)
    if kind == "nan" and np.dtype(dtype).kind == "f":
        x[rng.random(shape) < 0.1] = np.nan  # in some rows more than are asked for, in others fewer
        x[rng.random(shape) < 0.1] = -0.0

    values, indices = jg.topk(jg.asarray(x), 12, axis)

    expected = jg.argsort(jg.asarray(x), axis, descending=True).numpy()
    expected = np.take(expected, np.arange(12), axis)
    np.testing.assert_array_equal(indices.numpy(), expected)
    np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x, expected, axis))


@pytest.mark.parametrize("shape", [(0, 5000), (5000, 0), (70, 70)])
def test_topk_of_none(shape):
    values, indices = jg.topk(jg.zeros(shape), 0, 1)

    assert values.shape == indices.shape == (shape[0], 0)


@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted(side):
    ordered, values = np.array([1.0, 2.0, 2.0, 5.0]), np.array([[2.0, 0.0], [9.0, 5.0]])
    order = np.array([3, 0, 1, 2])

    expected = np.searchsorted(ordered, values, side)
    np.testing.assert_array_equal(jg.searchsorted(ordered, values, side).numpy(), expected)
    shuffled = np.array([2.0, 2.0, 5.0, 1.0])
    np.testing.assert_array_equal(jg.searchsorted(shuffled, values, side, sorter=order).numpy(), expected)


@pytest.mark.parametrize("axis", [None, 0])
def test_nonzero_and_unique(axis):
    x = np.array([[1.0, 0.0], [0.0, 3.0], [1.0, 0.0]])

    for result, expected in zip(jg.nonzero(x), np.nonzero(x), strict=True):
        np.testing.assert_array_equal(result.numpy(), expected)
    everything = (x, True, True, True, axis)
    for result, expected in zip(jg.unique(*everything), np.unique(*everything), strict=True):
        np.testing.assert_array_equal(result.numpy(), expected)
    assert jg.unique(jg.tensor([2, 1, 2])).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: x[3], IndexingError, "out of bounds"),
        (lambda x: x[0, 0, 0, 0], IndexingError, "too many"),
        (lambda x: x[..., ...], IndexingError, "ellipsis"),
        (lambda x: x[1.0], IndexingError, "float"),
        (lambda x: x["a"], IndexingError, "str"),
        (lambda x: x[jg.tensor([0.5])], IndexingError, "float32"),
        (lambda x: x[[1, 7]], IndexError, "out of bounds"),
        (lambda x: x[MASK[:2]], IndexingError, "mask"),
        (lambda x: x[[0, 1], [0, 1, 2]], ShapeError, "broadcast"),
        (lambda x: jg.take(x, [9], 0), IndexError, "out of bounds"),
        (lambda x: jg.take(x, jg.ones(2), 0), DtypeError, "integers"),
        (lambda x: jg.gather(x, 0, [1]), ShapeError, "as many axes"),
        (lambda x: jg.take_along_axis(x, np.array([1]), 0), ShapeError, "as many axes"),
        (lambda x: jg.scatter_add(x, 0, np.zeros((1, 1, 1), int), np.ones((2, 2))), ShapeError, "same shape"),
        (lambda x: jg.index_add(x, 0, [0], x), ShapeError, "1-D"),
        (lambda x: jg.index_add(x, 0, [5], x[:1]), IndexingError, "out of bounds"),
        (lambda x: jg.index_add(jg.tensor([1, 2]), 0, [0], jg.ones(1)), DtypeError, "cannot add"),
        (lambda x: jg.topk(x, 9), ArgumentError, "between 0 and 5"),
        (lambda x: jg.sort(x[0, 0, 0]), ShapeError, "0-d"),
        (lambda x: jg.searchsorted(x, 1.0), ShapeError, "1-D"),
        (lambda x: jg.searchsorted(x[0, 0], 1.0, side="middle"), ArgumentError, "middle"),
        (lambda x: jg.nonzero(x[0, 0, 0]), ShapeError, "0-d"),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call(jg.asarray(X))


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("rows", [1, 3, 40])
def test_gathers_and_their_gradients_by_plans_have_the_bits_of_the_ops(axis: int, rows: int) -> None:
    random = np.random.default_rng(0)
    x = jg.tensor(random.normal(size=(40, 40)), requires_grad=True)
    shape = (rows, 40) if axis == 0 else (40, rows)
    index = jg.tensor(random.integers(-40, 40, shape))
    scale = jg.tensor(random.normal(size=shape))

    for seen in (index, jg.flip(index, axis=1)):
        picked = jg.take_along_axis(x, seen, axis)
        np.testing.assert_array_equal(picked.detach().numpy(), np.take_along_axis(x.detach().numpy(), seen.numpy(), axis))
        for _ in range(6):  # by a rule from the fourth on
            x.grad = None
            (jg.take_along_axis(x, seen, axis) * scale).sum().backward()
            expected = jg.scatter_add(jg.zeros(40, 40, dtype=jg.float64), axis, seen.numpy(), scale.numpy())
            np.testing.assert_array_equal(x.grad.numpy(), expected.numpy())
    with pytest.raises(IndexError):
        jg.take_along_axis(x, jg.full(shape, 40), axis)


@pytest.mark.parametrize("wrap", [lambda f: f, lambda f: jg.jit(f, backend="python")])
def test_a_range_is_an_array_of_positions(wrap):
    x = jg.tensor(np.arange(12.0).reshape(3, 4), requires_grad=True)
    array = x.detach().numpy()
    for index in [(slice(None), range(0, 4, 2)), range(2, -1, -1), (range(2), [0, 3]), (range(0), 1)]:
        np.testing.assert_array_equal(wrap(lambda x, index=index: x[index])(x).detach().numpy(), array[index])
    y = x.detach().clone()
    y[range(2), range(2)] = 0.0
    assert y[:2, :2].tolist() == [[0.0, 1.0], [4.0, 0.0]]
