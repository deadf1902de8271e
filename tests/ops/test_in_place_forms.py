"""In-place forms of functions of one tensor, which write into its memory at once: as the functions, with all their errors."""

from __future__ import annotations

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import InPlaceError, ReadOnlyError

NAMES = "abs_ neg_ sqrt_ exp_ sigmoid_ relu_ floor_ reciprocal_ gelu_ square_ tanh_ sign_".split()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("name", [name for name in NAMES if hasattr(jg.Tensor, name)])
def test_they_are_the_functions(name: str, dtype: str) -> None:
    values = np.linspace(0.1, 2.0, 12).astype(dtype).reshape(3, 4)
    for _ in range(3):
        x = jg.tensor(values)
        view = x[1]
        assert getattr(x, name)() is x

        np.testing.assert_array_equal(x.numpy(), getattr(jg.tensor(values), name[:-1])().numpy())
        np.testing.assert_array_equal(view.numpy(), x.numpy()[1])


def test_another_dtype_is_refused() -> None:
    x = jg.tensor([1, 4])
    for _ in range(3):
        with pytest.raises(TypeError, match="cannot cast"):
            x.sqrt_()
    assert x.tolist() == [1, 4]


def test_a_view_and_a_part_change_what_they_show() -> None:
    x = jg.tensor([[1.0, 4.0], [9.0, 16.0]])
    for _ in range(2):
        x.T[1].sqrt_()

    assert x.tolist() == [[1.0, np.float32(4**0.25)], [9.0, 2.0]]


def test_backward_notices_the_change() -> None:
    w = jg.tensor([1.0, 2.0], requires_grad=True)
    for _ in range(3):
        x = jg.tensor([4.0, 9.0])
        loss = (w * x).sum()
        x.neg_()
        with pytest.raises(InPlaceError):
            loss.backward()


def test_history_is_recorded_and_leaves_are_refused() -> None:
    for _ in range(3):
        x = jg.tensor([4.0, 9.0], requires_grad=True)
        (x * 1.0).sqrt_().sum().backward()

        np.testing.assert_allclose(x.grad.numpy(), [0.25, 1 / 6], rtol=1e-6)
        with pytest.raises(InPlaceError):
            x.sqrt_()
    with jg.no_grad():
        assert x.sqrt_().tolist() == [2.0, 3.0]


def test_read_only_memory_is_refused() -> None:
    x = jg.tensor([1.0, 4.0])
    for _ in range(3):
        x.sqrt_()
    fixed = np.array([1.0, 4.0], np.float32)
    fixed.flags.writeable = False
    for name in ("sqrt_", "sigmoid_"):
        with pytest.raises(ReadOnlyError):
            getattr(jg.from_numpy(fixed), name)()
    assert fixed.tolist() == [1.0, 4.0]


def test_a_compiled_function_writes_it_back() -> None:
    x = jg.tensor([4.0, 9.0])

    @jg.jit
    def root() -> None:
        x.sqrt_()

    root()
    assert x.tolist() == [2.0, 3.0]
