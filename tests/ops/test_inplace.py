"""In-place changes: the contents of memory, the history, and refused changes."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import DtypeError, IndexingError, InPlaceError, ShapeError
from jitgrad.ops.inplace import assign
from jitgrad.testing.gradients import check_grads

OPERATORS = [
    operator.iadd,
    operator.isub,
    operator.imul,
    operator.itruediv,
    operator.ifloordiv,
    operator.imod,
    operator.ipow,
]


def leaf(values):
    return jg.tensor(values, requires_grad=True)


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("other", [2, 1.5, np.array([3.0, 2.0], np.float32)], ids=str)
def test_operators_equal_numpy_and_keep_the_memory(op, other):
    array = np.array([[4.0, -5.0], [6.0, 7.0]], np.float32)
    with np.errstate(invalid="ignore"):  # the power 1.5 of -5
        expected = op(array.copy(), other)
    tensor = same = jg.asarray(array)
    view = tensor[0]

    tensor = op(tensor, other)

    assert tensor is same
    np.testing.assert_array_equal(array, expected)
    np.testing.assert_array_equal(view.numpy(), expected[0])


def test_bitwise_operators():
    x = jg.tensor([12, 10])
    x &= 8
    x |= 1
    x ^= 3
    x <<= 2
    x >>= 1

    assert x.tolist() == [20, 20]


def test_methods():
    x = jg.tensor([1.0, -2.0, 3.0])

    assert x.add_(1).mul_(2).sub_(1).div_(2).tolist() == [1.5, -1.5, 3.5]
    assert x.clip_(-1, 2).tolist() == [1.5, -1.0, 2.0]
    assert x.copy_([5, 6, 7]).tolist() == [5.0, 6.0, 7.0]
    assert x.fill_(4).tolist() == [4.0] * 3
    assert x.zero_().tolist() == [0.0] * 3


def test_casting_is_of_the_same_kind():
    x = jg.tensor([1, 2])
    with pytest.raises(DtypeError, match="cannot cast"):
        x += 0.5
    half = jg.zeros(2, dtype="float16")
    half += jg.ones(2, dtype="float64")

    assert x.tolist() == [1, 2]
    assert half.dtype == "float16"
    assert half.tolist() == [1.0, 1.0]


def test_assign_broadcasts_but_does_not_grow():
    x = jg.zeros((2, 3))
    assign(x, jg.tensor([1.0, 2.0, 3.0]))

    assert x.tolist() == [[1.0, 2.0, 3.0]] * 2
    with pytest.raises(ShapeError, match="has another shape"):
        x += jg.ones((4, 2, 3))


def test_item_assignment_casts_as_numpy():
    x = jg.tensor([1, 2, 3])
    x[0] = 2.7
    x[1:] = np.array([4.9, 5.9])

    assert x.tolist() == [2, 4, 5]


# --- history -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", [*OPERATORS[:4], OPERATORS[6]])
def test_gradients_flow_through_operators(op):
    xs = np.array([1.5, 2.0]), np.array([0.5, 3.0])

    check_grads(lambda x, y: op(x * 1.0, y) * x, xs, order=2)


def test_history_moves_to_the_base_of_a_view():
    def f(w):
        x = jg.zeros((2, 3), dtype="float64")
        x[0] += w
        x[1, ::-1] += w * w
        x[:, 1:] *= w[1:]
        x.T[0] -= w[:2]
        x.reshape(3, 2)[1] = w[:2] ** 3
        return x

    with jg.no_grad():
        w = jg.tensor(np.array([1.0, 2.0, 3.0]))
        expected = np.array([[0.0, 4.0, 1.0], [8.0, 8.0, 3.0]])
        np.testing.assert_array_equal(f(w).numpy(), expected)
    np.testing.assert_array_equal(f(leaf(np.array([1.0, 2.0, 3.0]))).detach().numpy(), expected)
    check_grads(f, (np.array([1.0, 2.0, 3.0]),), order=2)


def test_overwriting_cuts_the_history():
    x = leaf([1.0, 2.0])
    y = x * 3
    y[...] = 5.0

    (y * x).sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]
    y.fill_(jg.tensor(1.0))
    assert not y.requires_grad
    assert y.is_leaf


def test_assigning_a_leaf_does_not_make_the_target_one():
    w, x = leaf([1.0, 2.0]), jg.zeros(2)
    assign(x, w)
    (x * x).sum().backward()

    assert w.grad.tolist() == [2.0, 4.0]
    assert not x.is_leaf


def test_a_leaf_that_requires_grad_changes_only_without_grad_mode():
    w = leaf([1.0, 2.0])
    for change in (lambda: w.add_(1), lambda: w[0].fill_(0), lambda: operator.setitem(w, 0, 3.0)):
        with pytest.raises(InPlaceError, match="no_grad"):
            change()
    with jg.no_grad():
        w -= 0.5
        w[0] = 9.0
    assert w.tolist() == [9.0, 1.5]
    assert w.requires_grad
    assert w.is_leaf


def test_other_views_that_are_alive_get_the_new_history():
    def f(w):
        x = w * 2.0
        first, rest = x[:1], x[1:]
        x *= w
        rest += first
        return first, rest, x

    check_grads(f, (np.array([1.0, 2.0, 3.0]),), order=2)
    assert [t.tolist() for t in f(leaf(np.array([1.0, 2.0, 3.0])))] == [[2.0], [10.0, 20.0], [2.0, 10.0, 20.0]]


def test_views_of_a_temporary_change_together():
    x = leaf([1.0, 2.0, 3.0])
    y = (x * 2).reshape(3, 1)
    y *= x.reshape(3, 1)
    y.sum().backward()
    assert x.grad.tolist() == [4.0, 8.0, 12.0]

    x.grad = None
    first, second = jg.split(x[:2] * 2, 2)
    first *= x[2]
    (first * first + second).sum().backward()
    assert (first.tolist(), second.tolist()) == ([6.0], [4.0])
    assert x.grad.tolist() == [72.0, 2.0, 24.0]


@pytest.mark.parametrize(
    "view",
    [
        lambda zeros: zeros[:],
        lambda zeros: zeros.reshape(5, 4),
        lambda zeros: zeros.reshape(4, 5).T,
        lambda zeros: zeros.reshape(20)[:][:].reshape(5, 4),
    ],
    ids=["slice", "reshape", "transpose", "several"],
)
@pytest.mark.parametrize("wrap", [lambda f: f, jg.jit], ids=["eager", "jit"])
def test_a_part_of_a_view_of_a_temporary_keeps_its_gradient(view, wrap):
    def f(x):
        s = view(jg.zeros((5, 4), dtype=x.dtype))
        s[1:] += x[1:] * x[1:]
        return (s * s).sum()

    x = np.arange(20.0).reshape(5, 4)
    gradient = wrap(jg.grad(f))(jg.tensor(x))

    assert gradient.numpy().tolist() == np.vstack([np.zeros(4), 4.0 * x[1:] ** 3]).tolist()


def test_a_view_made_without_grad_mode_stays_without_history():
    x = leaf([1.0, 2.0]) * 2
    with jg.no_grad():
        view = x[:1]
    x += 1.0

    assert view.tolist() == [3.0]
    assert not view.requires_grad


def test_a_detached_alias_is_refused_where_it_would_break_a_gradient():
    w, x = leaf([1.0, 2.0]), leaf([0.0, 0.0]) * 1.0
    alias = x.detach()
    with pytest.raises(InPlaceError, match="detach"):
        alias += w


def test_backward_names_both_lines_when_a_saved_tensor_was_changed():
    x = leaf([1.0, 2.0])
    y = jg.exp(x)
    with jg.no_grad():
        y += 1.0
    with pytest.raises(InPlaceError, match=r"exp at .*test_inplace.py:\d+.*changed in place at .*test_inplace.py:\d+"):
        y.sum().backward()


def test_change_of_a_view_is_noticed_by_the_base():
    x = leaf([1.0, 2.0])
    y = x * 2
    z = y * y
    y.detach()[0] = 7.0
    with pytest.raises(InPlaceError, match="changed in place"):
        z.sum().backward()


def test_tensors_that_share_memory_are_forgotten_when_they_die():
    x = jg.zeros(4)
    for _ in range(100):
        x[0] += 1.0

    assert len(x._storage._sharers) < 16
    assert x._storage.others(x) == []


@pytest.mark.parametrize(
    ("index", "value", "error"),
    [
        (9, 1.0, IndexingError),
        (slice(None), [1.0, 2.0], ShapeError),
        ([True, False], 1.0, IndexingError),
        ("a", 1.0, IndexingError),
    ],
)
@pytest.mark.parametrize("requires_grad", [False, True])
def test_errors_of_item_assignment(index, value, error, requires_grad):
    x = jg.ones(3)
    y = leaf([1.0, 2.0, 3.0]) * 2 if requires_grad else x

    with pytest.raises(error):
        y[index] = value


def from_array():
    return jg.tensor(np.zeros((4, 6)))


def from_op():
    return jg.zeros((4, 6), dtype=jg.float64)


def from_detach():
    return jg.ones((4, 6), dtype=jg.float64, requires_grad=True).detach()


def add_to_a_row(b, t):
    b[1] += t


def add_to_a_view(b, t):
    v = b[1:3].T
    v += t.reshape(6, 1)


def set_a_view(b, t):
    b.reshape(-1)[:6][...] = t


@pytest.mark.parametrize("change", [add_to_a_row, add_to_a_view, set_a_view], ids=lambda f: f.__name__)
@pytest.mark.parametrize("make", [from_array, from_op, from_detach], ids=lambda f: f.__name__)
def test_a_part_of_a_tensor_without_history_gets_one_and_so_does_the_whole(make, change):
    """A tensor made of an array is detached from a temporary one, which hid it from its own views."""
    w = jg.tensor(np.arange(6.0), requires_grad=True)
    b = make()

    change(b, w * 2.0)

    assert b.requires_grad
    (b * 3.0).sum().backward()
    np.testing.assert_array_equal(w.grad.numpy(), np.full(6, 12.0 if change is add_to_a_view else 6.0))


def test_a_part_of_a_tensor_that_is_detached_from_a_live_one_is_not_changed_with_a_history():
    x = jg.tensor(np.zeros((4, 6)))
    y = x.detach()

    with pytest.raises(InPlaceError, match="detach"):
        y[1] += jg.ones(6, dtype=jg.float64, requires_grad=True) * 2.0


NOT_REAL = [
    1j,
    np.complex128(1 + 2j),
    np.array([1j, 2.0]),
    [1j, 2.0],
    None,
    [None, 1.0],
    np.array([1.0, 2.0], object),
    np.array(["1", "2"]),
]


@pytest.mark.parametrize("index", [slice(None), (..., slice(0, 2)), [0, 1]], ids=str)
@pytest.mark.parametrize("value", NOT_REAL, ids=repr)
def test_values_that_no_tensor_can_hold_are_not_assigned(index, value):
    """NumPy drops the imaginary part, makes NaN of None and reads numbers from strings."""

    def changed(t):
        t = t + 0.0
        t[index] = value
        return t

    x = jg.tensor([1.0, 2.0])
    for function in (changed, jg.jit(changed)):
        with pytest.raises(DtypeError, match=r"is not supported|imaginary|assign x.real"):
            function(x)


def test_assigned_lists_keep_their_doubles():
    def changed(t):
        t = t + 0.0
        t[:2] = [0.1, 0.2]
        return t

    x = jg.tensor(np.zeros(3))
    for function in (changed, jg.jit(changed)):
        np.testing.assert_array_equal(function(x).numpy(), [0.1, 0.2, 0.0])


@pytest.mark.parametrize("op", [operator.iadd, operator.imul, operator.lt, operator.floordiv, operator.mod])
def test_operators_that_complex_numbers_do_not_have(op):
    x = jg.tensor([1.0, 2.0])
    for function in (lambda x: op(x, 1j), jg.jit(lambda x: op(x, 1j))):
        with pytest.raises(DtypeError, match=r"complex|c64|c128"):
            function(x)
