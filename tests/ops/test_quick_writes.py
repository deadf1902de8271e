"""In-place changes by NumPy's functions at once do what those op by op do."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import IndexingError, InPlaceError, ShapeError
from jitgrad.ops import inplace
from jitgrad.ops.arithmetic import ADD, DIVIDE
from jitgrad.ops.quick_writes import copied, filled, updated, written_at

QUICK = ("updated", "copied", "filled", "written_at")
X = np.array([[1.5, -0.0, np.nan], [np.inf, 3.0, -2.0]], np.float32)
Y = np.array([[0.1, 7.0, 1.0], [-np.inf, 0.0, 1e38]], np.float32)


def _view(x: jg.Tensor) -> jg.Tensor:
    return x.detach()[:, ::-1]


CHANGES: list[Callable[[jg.Tensor, jg.Tensor], Any]] = [
    operator.iadd,
    operator.isub,
    operator.imul,
    operator.itruediv,
    lambda x, y: x.add_(y, alpha=-0.1),
    lambda x, y: x.mul_(0.9),
    lambda x, y: x.mul_(3),
    lambda x, y: x.add_(1e300),
    lambda x, y: x.add_(y[0]),
    lambda x, y: x.sub_(y[:, :1]),
    lambda x, y: x.add_(x),
    lambda x, y: x.add_(_view(x)),
    lambda x, y: _view(x).mul_(x),
    lambda x, y: x.add_(y.to(jg.float64)),
    lambda x, y: x.add_(y > 0),
    lambda x, y: x.copy_(y),
    lambda x, y: x.copy_(_view(x)),
    lambda x, y: x.copy_(x),
    lambda x, y: x.zero_(),
    lambda x, y: x.fill_(-0.0),
    lambda x, y: x.fill_(0.1),
    lambda x, y: x[0].fill_(True),
    lambda x, y: x.clamp_(-1.0, 1.0),
    lambda x, y: operator.setitem(x, 0, 2.5),
    lambda x, y: operator.setitem(x, (slice(None), -1), 3),
    lambda x, y: operator.setitem(x, slice(None), y),
    lambda x, y: operator.setitem(x, (None, 1), y[0]),
    lambda x, y: operator.setitem(x, 0, x[1]),
    lambda x, y: operator.setitem(x, slice(None), _view(x)),
    lambda x, y: operator.setitem(x, ..., 1e300),
    lambda x, y: operator.iadd(x[0], y[1]),
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("change", CHANGES)
def test_bits_and_versions_are_those_of_the_ops(
    change: Callable[..., Any], dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run() -> tuple[bytes, int]:
        x, y = jg.tensor(X.astype(dtype)), jg.tensor(Y.astype(dtype))
        for _ in range(2):  # the first call makes plans
            change(x, y)
        return x._data.tobytes(), x._storage.version

    with np.errstate(all="ignore"):
        quick = run()
        for name in QUICK:
            monkeypatch.setattr(inplace, name, lambda *_: False)
        assert quick == run()


def test_small_arrays_are_changed_at_once() -> None:
    x, y = jg.ones(4), jg.ones(4)
    x += y
    x += 1.0
    assert updated(ADD, x, y) and updated(ADD, x, 1.0)
    assert copied(x, y) and filled(x, 0) and filled(x, 0.5)
    assert written_at(x, 0, 1.0) and written_at(x, slice(2), y[:2])
    assert written_at(x, [0, -1], 2.0) and written_at(x, np.array([0, 1]), y[:2])
    assert x.tolist() == [1.0, 1.0, 0.5, 2.0]


def test_what_needs_more_care_is_left_to_the_ops() -> None:
    x, n, w = jg.ones(4), jg.arange(4), jg.ones(4, requires_grad=True)
    for other in (n, 1.0, 2):
        x / other, n / other  # plans exist
    assert not updated(DIVIDE, n, n) and not updated(DIVIDE, n, 2)  # of integers it is a float
    assert not updated(ADD, x, np.ones(4, np.float32)) and not updated(ADD, w, 1.0)
    assert not updated(ADD, jg.ones(1), x)
    assert not copied(x, n) and not copied(x, x[:2]) and not copied(w, x) and not copied(x, w)
    assert not filled(n, 2.5) and not filled(n, 2**40) and not filled(w, 0)
    assert not written_at(x, [True] * 4, 1.0) and not written_at(x, True, 1.0) and not written_at(x, 0, 1j)
    assert not written_at(x, slice(2), x[:2]) and not written_at(w, 0, 1.0)


def test_errors_are_those_of_the_ops() -> None:
    array = np.ones(3, np.float32)
    array.flags.writeable = False
    x, y = jg.asarray(array), jg.ones(3)
    y += y
    y += 1.0
    for change in (x.zero_, lambda: x.add_(1.0), lambda: x.add_(y), lambda: x.copy_(y), lambda: x.__setitem__(0, 1.0)):
        with pytest.raises(InPlaceError, match="read-only"):
            change()
    assert x._storage.version == 0
    with pytest.raises(IndexingError, match="out of bounds"):
        y[3] = 1.0
    with pytest.raises(ShapeError):
        y[:2] = jg.ones(3)
    with pytest.raises(OverflowError):
        jg.zeros(2, dtype=jg.uint8)[0] = -1


@pytest.mark.parametrize("change", [lambda x: x.zero_(), lambda x: x.add_(1.0), lambda x: operator.setitem(x, 0, 1.0)])
def test_the_line_of_the_last_change_is_found(change: Callable[[jg.Tensor], Any]) -> None:
    w = jg.ones(3, requires_grad=True)
    x = w * 1.0
    x.detach().add_(1.0)
    y = x * x
    change(x.detach())
    with pytest.raises(InPlaceError, match=r"changed in place at .*test_quick_writes.py:\d+"):
        y.sum().backward()


def test_new_axes_have_the_strides_of_the_ops() -> None:
    x = jg.tensor(X)
    w = jg.tensor(X, requires_grad=True)
    for index in (None, (None, 0), (slice(None), None, 1), (0, ..., None)):
        view, recorded = x[index], w[index]
        assert view._data.strides == recorded._data.strides
        assert view._view is not None and recorded._view is not None
        assert view._view.steps == recorded._view.steps
        view.fill_(7.0)
        assert np.all(np.asarray(x)[index] == 7.0)
