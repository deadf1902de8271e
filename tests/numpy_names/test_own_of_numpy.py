"""What jitgrad.numpy takes from NumPy as it is, packed bits, strides, and lists of numbers as operands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy
import pytest

import jitgrad as jg
import jitgrad.numpy as np
from jitgrad.core.errors import ArgumentError, AutogradError, DtypeError
from jitgrad.numpy.lib import stride_tricks

BITS = numpy.random.default_rng(0).integers(0, 2, (3, 11)).astype(bool)


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("order", ["big", "little"])
def test_packed_bits_are_numpys(axis: int | None, order: Any) -> None:
    packed = numpy.packbits(BITS, axis, order)
    numpy.testing.assert_array_equal(np.packbits(np.array(BITS), axis, order).numpy(), packed)

    for count in (None, 5, 0, -3, 20):
        expected = numpy.unpackbits(packed, axis, count, order)
        found = np.unpackbits(np.array(packed), axis, count, order)
        assert found.shape == expected.shape and found.dtype == expected.dtype and (found.numpy() == expected).all()


def test_packed_bits_compiled_empty_and_refused() -> None:
    both = jg.jit(lambda x: np.unpackbits(np.packbits(x)), backend="python")

    assert both(np.array(BITS)).tolist() == np.unpackbits(np.packbits(np.array(BITS))).tolist()
    assert np.packbits(np.zeros(0, dtype=bool)).shape == (0,)
    with pytest.raises(DtypeError, match=r"packbits: expected bools or integers, got f64.*x > 0"):
        np.packbits(np.ones(3))
    with pytest.raises(DtypeError, match="unpackbits: expected uint8, got i64"):
        np.unpackbits(np.arange(3))
    with pytest.raises(ArgumentError, match="bitorder is 'big' or 'little', got 'up'"):
        np.packbits(np.array(BITS), bitorder="up")  # type: ignore[arg-type]


def test_strided_windows_with_gradients() -> None:
    x = np.arange(12.0).reshape(3, 4)
    windows = stride_tricks.as_strided(x, (2, 3, 2, 2), x.strides * 2)

    assert x.strides == (32, 8) and x.stride() == (4, 1) and x.stride(-1) == 1 and np.array(1.0).strides == ()
    expected = numpy.lib.stride_tricks.sliding_window_view(x.numpy(), (2, 2))
    numpy.testing.assert_array_equal(windows.numpy(), expected)
    counts = jg.grad(lambda x: stride_tricks.as_strided(x, (2, 3, 2, 2), x.strides * 2).sum())(x)
    assert counts.tolist() == [[1, 2, 2, 1], [2, 4, 4, 2], [1, 2, 2, 1]]
    with pytest.raises(ArgumentError, match=r"strides=\(4,\) are bytes, and no multiples of the 8 bytes"):
        stride_tricks.as_strided(x, (2,), (4,))


def test_lists_of_numbers_are_operands() -> None:
    x, numbers = np.ones((2, 3)), [1, 2, 3]

    assert (x + numbers).tolist() == (numbers + x).tolist() == [[2, 3, 4]] * 2
    assert (x * (2, 2, 2)).sum().item() == 12 and (x == [1, 0, 1]).tolist() == [[True, False, True]] * 2
    assert jg.grad(lambda x: ([1.0, 2.0, 3.0] * x).sum())(x).tolist() == [[1, 2, 3]] * 2
    alias = x
    x += numbers
    assert alias.tolist() == [[2, 3, 4]] * 2
    for wrong in (["a"], [[1], [1, 2]], {1}):
        with pytest.raises(TypeError, match="unsupported operand"):
            x + wrong


def test_names_that_need_no_tensors_are_numpys() -> None:
    assert list(np.ndindex(2, 1)) == [(0, 0), (1, 0)]
    np.testing.assert_allclose(np.ones(2), [1.0, 1.0])
    assert np.polynomial.polynomial.polyval(0.5, [1, 2]) == 2.0
    assert np.array_repr(np.ones(2)) == "array([1., 1.])"


def test_files_hold_tensors(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(3))
    np.savetxt(tmp_path / "x.txt", np.ones((2, 2)))

    assert isinstance(np.load(tmp_path / "x.npy"), jg.Tensor) and np.loadtxt(tmp_path / "x.txt").shape == (2, 2)
    with pytest.raises(AutogradError, match=r"numpy.save is NumPy's own, and has no gradient: pass x.detach\(\)"):
        np.save(tmp_path / "x.npy", jg.tensor(1.0, requires_grad=True))


@pytest.mark.parametrize("change", ["add.at", "fill", "out"])
def test_elements_that_were_read_keep_their_values(change: str) -> None:
    x = np.array([1.0, 2.0, 3.0])
    first, all_of_them = x[0], list(x)
    if change == "add.at":
        np.add.at(x, np.array([0, 0]), 1.0)
    elif change == "fill":
        x.fill(7.0)
    else:
        np.add(x, 1.0, out=x)

    assert first.item() == 1.0 and [e.item() for e in all_of_them] == [1.0, 2.0, 3.0] and x[0].item() > 1.0
