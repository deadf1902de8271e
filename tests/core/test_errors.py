"""Values in error messages."""

from __future__ import annotations

import pytest

import jitgrad as jg
from jitgrad.core.errors import ShapeError, shown


@pytest.mark.parametrize("value", [3, "mean", (1, 2), None, 1.5, [0, 1, 2]])
def test_short_values_are_shown_as_they_are(value: object) -> None:
    assert shown(value) == repr(value)


def test_of_long_values_the_start_is_shown() -> None:
    with pytest.raises(ShapeError, match=r"got tensor\(\[1\., 1") as caught:
        jg.layer_norm(jg.ones((4, 1000)), jg.ones(1000))
    assert len(str(caught.value)) < 200
    assert len(shown(list(range(10_000)))) < 60
    assert len(shown("x" * 10_000)) < 80
