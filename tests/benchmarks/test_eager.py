"""Eager calls beside PyTorch: every text means the same in both libraries, and the section of the page is replaced."""

from __future__ import annotations

import math

import pytest

from benchmarks import eager
from benchmarks.eager import Timing


@pytest.fixture(scope="module")
def pair() -> tuple[eager.Library, eager.Library]:
    pytest.importorskip("torch")
    return eager.libraries(4)


@pytest.mark.parametrize("text", [text for _, text in eager.calls("")])
def test_both_libraries_agree(pair: tuple[eager.Library, eager.Library], text: str):
    for library in pair:
        library.names["z"] = library.names["y"].clone()
    eager.check(text, [library.call(text)() for library in pair])
    own, other = (library.recorded(text) for library in pair)
    assert (own is None) == (other is None)
    if own is not None:
        own()


def test_values_that_differ_are_an_error(pair: tuple[eager.Library, eager.Library]):
    with pytest.raises(ArithmeticError, match="jitgrad and torch differ"):
        eager.check("x + y", [pair[0].call("x + y")(), pair[1].call("x - y")()])


def test_the_section_has_a_row_for_each_call_and_the_means():
    timings = [Timing(side, (2.0, 1.0), (math.nan, math.nan)) for side in eager.SIDES]
    rows = {"x > y": timings, "x + y": [Timing(side, (0.5, 1.0), (3.0, 2.0)) for side in eager.SIDES]}

    section = eager.section(rows, "2026-01-01")

    assert "| `x > y` | 2.00 | - | 2.00 | - | 2.00 | - |" in section
    assert "| *geometric mean* | 1.00 | 1.50 | 1.00 | 1.50 | 1.00 | 1.50 |" in section
