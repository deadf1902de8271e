"""Every op of the registry in an ejected module gives what eager execution gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.dispatch import apply_op
from jitgrad.core.errors import JitgradError
from jitgrad.core.op import REGISTRY, OpDef
from jitgrad.testing.samples import DOMAINS, is_complex_op, sample_operands
from tests.compiled import assert_same
from tests.eject.ejecting import Eject

pytestmark = pytest.mark.usefixtures("in_python")
OPS = [op for op in REGISTRY.values() if op.domain and set(op.domain) <= set(DOMAINS) and not is_complex_op(op)]


@pytest.mark.parametrize("op", OPS, ids=str)
@pytest.mark.parametrize("dtype", ["f4", "f2", "i4"])
def test_op(op: OpDef, dtype: str, eject: Eject) -> None:
    xs = [jg.tensor(x) for x in sample_operands(op, np.random.default_rng(0), (3, 4), dtype)]

    def f(*xs: Any) -> Any:
        return apply_op(op, *xs, **op.sample_attrs)

    try:
        expected = f(*xs)
    except JitgradError:
        pytest.skip(f"{op} takes no {dtype}")
    _, ejected = eject(f, *xs)  # compares with the budget of every element
    assert_same(ejected(*xs), expected, ulp=4, atol=1e-6)
