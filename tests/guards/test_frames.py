"""What a trace does with the frames that it follows, and with what Python keeps for itself."""

from __future__ import annotations

import copy
import gc
import warnings
import weakref
from typing import Any

import pytest

import jitgrad as jg
from jitgrad.core.errors import EffectWarning


def test_copying_an_object_for_the_first_time_changes_nothing() -> None:
    class Settings:
        rate = 2.0

    settings = Settings()
    compiled = jg.jit(lambda x: x * copy.copy(settings).rate, check="off", backend="python")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compiled(jg.ones(1)).tolist() == [2.0]
    settings.rate = 3.0
    assert compiled(jg.ones(1)).tolist() == [3.0]


def test_a_trace_keeps_no_variables_of_the_frames_that_it_followed() -> None:
    class Held:
        """What can be referred to weakly."""

    found: list[Any] = []

    def inner(x: Any) -> Any:
        held = Held()
        found.append(weakref.ref(held))

        def rates() -> Any:
            of_generator = Held()
            found.append(weakref.ref(of_generator))
            yield 1.0
            yield 2.0

        for rate in rates():
            x = x * rate
        return x

    gc.disable()
    try:
        with pytest.warns(EffectWarning):
            jg.jit(inner, check="off", backend="python")(jg.ones(2))
        assert [ref() for ref in found] == [None, None]
    finally:
        gc.enable()
