"""Movement and joining ops against NumPy, their gradients against finite differences, and their errors."""

from __future__ import annotations

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import ArgumentError, AxisError, InPlaceError, OperandError, ShapeError
from jitgrad.ops.movement import place, sum_to
from jitgrad.ops.movement import slice as slice_
from jitgrad.testing.gradients import check_grads

DTYPES = ["bool", "int8", "int64", "uint16", "float16", "float32", "float64"]

# name, what to do with jg, the same with np
CASES = [
    ("reshape", lambda m, x: m.reshape(x, (4, 6))),
    ("reshape_unknown", lambda m, x: m.reshape(x, (2, -1))),
    ("transpose", lambda m, x: m.transpose(x)),
    ("transpose_axes", lambda m, x: m.transpose(x, (1, 2, 0))),
    ("permute_dims", lambda m, x: m.permute_dims(x, (2, 0, -2))),
    ("swapaxes", lambda m, x: m.swapaxes(x, 0, -1)),
    ("matrix_transpose", lambda m, x: m.matrix_transpose(x)),
    ("moveaxis", lambda m, x: m.moveaxis(x, (0, 2), (-1, 0))),
    ("expand_dims", lambda m, x: m.expand_dims(x, (0, -1))),
    ("squeeze", lambda m, x: m.squeeze(m.expand_dims(x, (0, 2)))),
    ("squeeze_axis", lambda m, x: m.squeeze(m.expand_dims(x, (0, 2)), axis=-3)),
    ("broadcast_to", lambda m, x: m.broadcast_to(x[:, :1], (5, 2, 3, 4))),
    ("flip", lambda m, x: m.flip(x)),
    ("flip_axis", lambda m, x: m.flip(x, axis=(0, -1))),
    ("concat", lambda m, x: m.concat([x, x[:, :0], x[:, 1:]], axis=1)),
    ("concat_flat", lambda m, x: m.concat([x, x[0]], axis=None)),
    ("stack", lambda m, x: m.stack([x, x], axis=-1)),
    ("split", lambda m, x: m.concat(m.split(x, 3, axis=1)[::-1], axis=1)),
    ("split_at", lambda m, x: m.concat(m.split(x, [1, 3, 3, 9], axis=2)[1:], axis=2)),
    ("unstack", lambda m, x: m.stack(m.unstack(x, axis=1)[::-1])),
    ("roll", lambda m, x: m.roll(x, 5)),
    ("roll_axes", lambda m, x: m.roll(x, (1, -2), axis=(0, 2))),
    ("repeat", lambda m, x: m.repeat(x, 2)),
    ("repeat_axis", lambda m, x: m.repeat(x, [2, 0, 1], axis=1)),
    ("tile", lambda m, x: m.tile(x, (2, 1, 1, 3))),
    ("pad", lambda m, x: m.pad(x, 1)),
    ("pad_values", lambda m, x: m.pad(x, ((1, 0), (0, 2), (1, 1)), constant_values=((1, 0), (0, 1), (1, 1)))),
    ("diagonal", lambda m, x: m.diagonal(x)),
    ("diagonal_offset", lambda m, x: m.diagonal(x, -1, 2, 1)),
    ("diagonal_outside", lambda m, x: m.diagonal(x, 9)),
]
IDS = [name for name, _ in CASES]
FUNCTIONS = [f for _, f in CASES]


def sample(dtype: str = "float64") -> np.ndarray:
    x = np.random.default_rng(0).normal(size=(2, 3, 4)) * 3
    return x.astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("f", FUNCTIONS, ids=IDS)
def test_equals_numpy(f, dtype):
    x = sample(dtype)

    result = f(jg, jg.asarray(x))

    expected = f(np, x)
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result.numpy(), expected)


@pytest.mark.parametrize("f", FUNCTIONS, ids=IDS)
def test_equals_numpy_on_negative_strides(f):
    x = sample()[::-1, :, ::-1]

    np.testing.assert_array_equal(f(jg, jg.asarray(x)).numpy(), f(np, x))


@pytest.mark.parametrize("f", FUNCTIONS, ids=IDS)
def test_gradients_of_first_and_second_order(f):
    check_grads(lambda x: f(jg, x), (sample(),), order=2)


@pytest.mark.parametrize("mode", ["edge", "reflect", "symmetric", "wrap"])
@pytest.mark.parametrize("width", [1, ((0, 2), (7, 3))])
def test_pad_with_its_own_elements(mode, width):
    x = sample()[0]

    np.testing.assert_array_equal(jg.pad(x, width, mode=mode).numpy(), np.pad(x, width, mode=mode))
    check_grads(lambda t: jg.pad(t, width, mode=mode), (x,), order=1)


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3)])
@pytest.mark.parametrize(
    "f",
    [
        lambda m, x: m.expand_dims(x, 0),
        lambda m, x: m.reshape(x, (-1,) if x.size else (0,)),
        lambda m, x: m.flip(x),
        lambda m, x: m.transpose(x),
        lambda m, x: m.squeeze(x),
        lambda m, x: m.broadcast_to(x, (4, *x.shape)),
        lambda m, x: m.stack([x, x]),
        lambda m, x: m.tile(x, 2),
        lambda m, x: m.repeat(x, 3),
        lambda m, x: m.roll(x, 1),
    ],
)
def test_0d_and_empty(f, shape):
    x = np.ones(shape)

    np.testing.assert_array_equal(f(jg, jg.asarray(x)).numpy(), f(np, x))


def test_views_share_memory_and_broadcasts_are_read_only():
    x = jg.tensor(sample())
    x[0].reshape(4, 3).T[1:, ::-1][0, 0] = 100.0

    assert x.max().item() == 100.0
    with pytest.raises(InPlaceError, match="read-only"):
        jg.broadcast_to(x[:1], (2, 3, 4))[0] = 1.0


def test_slice_and_place_are_transposes():
    index = ((2, -1, 2), (1, 2, 2))
    x = np.arange(12.0).reshape(3, 4)

    part = slice_(x, index)

    np.testing.assert_array_equal(part.numpy(), x[2:0:-1, 1::2])
    expected = np.zeros_like(x)
    expected[2:0:-1, 1::2] = part.numpy()
    np.testing.assert_array_equal(place(part, (3, 4), index).numpy(), expected)


@pytest.mark.parametrize("shape", [(), (4,), (1, 4), (3, 1), (2, 3, 4), (1, 1, 1), (2, 1, 4)])
def test_sum_to_is_the_transpose_of_broadcast_to(shape):
    x, y = sample(), np.random.default_rng(1).normal(size=shape)

    result = sum_to(jg.asarray(x), shape)

    assert result.shape == shape
    np.testing.assert_allclose(np.sum(result.numpy() * y), np.sum(x * np.broadcast_to(y, x.shape)))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: jg.reshape(x, (5, 5)), ShapeError, "24 elements"),
        (lambda x: jg.reshape(x, (-1, -1)), ShapeError, "-1"),
        (lambda x: jg.reshape(x, (-1, 5)), ShapeError, "-1"),
        (lambda x: jg.reshape(x, (-2, 12)), ShapeError, "negative"),
        (lambda x: jg.permute_dims(x, (0, 1)), AxisError, "permut|each of"),
        (lambda x: jg.squeeze(x, 1), ShapeError, "length 3"),
        (lambda x: jg.expand_dims(x, 7), AxisError, "out of bounds"),
        (lambda x: jg.expand_dims(x, (0, 0)), AxisError, "twice"),
        (lambda x: jg.moveaxis(x, (0, 0), (1, 2)), AxisError, "twice"),
        (lambda x: jg.moveaxis(x, (0, 1), (1,)), ArgumentError, "different numbers"),
        (lambda x: jg.broadcast_to(x, (3, 4)), ShapeError, "cannot be broadcast"),
        (lambda x: jg.concat([x, x[0]]), ShapeError, "equal lengths"),
        (lambda x: jg.concat([]), ArgumentError, "empty sequence"),
        (lambda x: jg.concat([1.0, 2.0]), AxisError, "stack"),
        (lambda x: jg.stack([x, x[0]]), ShapeError, "same shape"),
        (lambda x: jg.stack(3), OperandError, "sequence"),
        (lambda x: jg.split(x, 2, axis=1), ArgumentError, "2 equal parts"),
        (lambda x: jg.roll(x, (1, 2), axis=(0, 1, 2)), ArgumentError, "2 shifts"),
        (lambda x: jg.repeat(x, [1, 2], axis=1), ArgumentError, "3 counts"),
        (lambda x: jg.pad(x, -1), ArgumentError, "not negative"),
        (lambda x: jg.pad(x, 1, mode="mean"), ArgumentError, "mode"),
        (lambda x: jg.diagonal(x[0, 0]), ShapeError, "two axes"),
        (lambda x: jg.diagonal(x, 0, 1, 1), AxisError, "twice"),
        (lambda x: jg.unstack(x[0, 0, 0]), ShapeError, "0-d"),
        (lambda x: jg.reshape("abc", (3,)), OperandError, "str"),
    ],
)
def test_errors_say_what_was_found(call, error, words):
    with pytest.raises(error, match=words):
        call(jg.asarray(sample()))


NUMPY_NUMBERS = {
    "transpose": lambda x, one: x.transpose(one, one - 1),
    "permute": lambda x, one: x.permute(one, one - 1),
    "expand_dims": lambda x, one: jg.expand_dims(x, one),
    "unsqueeze": lambda x, one: x.unsqueeze(one),
    "squeeze": lambda x, one: x[:, :1].squeeze(one),
    "sum": lambda x, one: x.sum(axis=one),
    "swapaxes": lambda x, one: jg.swapaxes(x, 0, one),
    "index": lambda x, one: x[one],
    "reshape": lambda x, one: x.reshape(one * 6, -1),
}


@pytest.mark.parametrize("name", NUMPY_NUMBERS)
@pytest.mark.parametrize("one", [np.int64(1), np.array(1)], ids=["scalar", "no_axes"])
def test_positions_may_be_numpy_numbers(name, one):
    x = jg.tensor(np.arange(12.0).reshape(3, 4))
    f = NUMPY_NUMBERS[name]
    np.testing.assert_array_equal(f(x, one).numpy(), f(x, 1).numpy())
    np.testing.assert_array_equal(jg.jit(lambda x: f(x, one))(x).numpy(), f(x, 1).numpy())
