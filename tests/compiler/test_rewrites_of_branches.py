"""Without a call to follow, the error of a branch by value says how to write that very line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import jitgrad as jg
from jitgrad.core.errors import TracedValueError


def floor(x: Any) -> Any:
    return x / max(1e-6, x.norm())


def decay(n: Any) -> Any:
    return min(0.99, (1 + n) / (10 + n))


def trust_ratio(x: Any) -> Any:
    return x.norm() / x.sum() if x.sum() > 0 else 1.0


def both(x: Any) -> Any:
    if x.norm() == 0 or x.sum() == 0:
        return x
    return x / x.norm()


@pytest.mark.parametrize(
    ("function", "advice"),
    [
        (floor, r"write jitgrad\.maximum\(a, b\) in this line"),
        (decay, r"write jitgrad\.minimum\(a, b\) in this line"),
        (trust_ratio, r"\nChoose with r = jitgrad\.where\(condition, a, b\)"),
        (both, r"For `or` of tensors write jitgrad\.logical_or\. Choose with r = jitgrad\.where"),
    ],
)
def test_the_line_gets_its_own_advice(function: Callable[..., Any], advice: str) -> None:
    with pytest.raises(TracedValueError, match=advice):
        jg.jit(function, backend="python").compile(jg.ShapeDtypeStruct((1,)))
