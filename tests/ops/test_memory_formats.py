"""torch's ``memory_format=`` is taken wherever programs write it, and changes nothing."""

from __future__ import annotations

import numpy as np
import pytest

import jitgrad as jg
from jitgrad import nn
from jitgrad.core.errors import ArgumentError


def every_call(x: jg.Tensor) -> list[jg.Tensor]:
    formats = [jg.contiguous_format, jg.preserve_format, jg.channels_last, jg.channels_last_3d]
    calls = [x.to, x.double, x.clone, x.contiguous, lambda **k: jg.zeros_like(x, **k), lambda **k: jg.full_like(x, 3, **k)]
    return [call(memory_format=one) for one in formats for call in calls]


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_values_do_not_depend_on_the_format(compiled: bool) -> None:
    x = jg.tensor(np.arange(24.0).reshape(1, 2, 3, 4))

    results = (jg.jit(every_call) if compiled else every_call)(x)

    expected = [x.numpy()] * 4 + [np.zeros(x.shape), np.full(x.shape, 3.0)]
    for result, values in zip(results, expected * 4, strict=True):
        np.testing.assert_array_equal(result.numpy(), values)


def test_module() -> None:
    model = nn.Conv2d(2, 3, 3).to(memory_format=jg.channels_last)

    assert model.weight.shape == (3, 2, 3, 3)


def test_flags_by_position_are_those_of_torch() -> None:
    x = jg.tensor([1.0])

    assert x.to("cpu", True) is x and x.to("cpu", x.dtype, True, False) is x
    copied = x.to("cpu", False, True)
    assert copied is not x and copied.numpy() == x.numpy()


def test_other_values_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"memory_format='nhwc' is no memory format: expected one of jg\.contiguous_format"):
        jg.zeros(2).to(memory_format="nhwc")
    with pytest.raises(ArgumentError, match=r"Module\.to: memory_format=3"):
        nn.Linear(1, 1).to(memory_format=3)
