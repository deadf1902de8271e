"""A list that is an index, or is assigned at one, is watched: jitgrad's C code reads its numbers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import jitgrad as jg

ROWS, COLUMNS, NEW = [0, 1], [0, 2], [7.0, 8.0, 9.0]
PAIR = (ROWS, COLUMNS)
held, table = SimpleNamespace(rows=ROWS), {"rows": ROWS}


def assigned(x: Any) -> Any:
    y = x * 1.0
    y[ROWS] = 5.0
    return y


def updated(x: Any) -> Any:
    y = x * 1.0
    y[:, ROWS] += 5.0
    return y


def values(x: Any) -> Any:
    y = x * 1.0
    y[0] = NEW
    return y


READS = {
    "list": lambda x: x[ROWS] * 2.0,
    "two lists": lambda x: x[ROWS, COLUMNS] * 2.0,
    "tuple": lambda x: x[PAIR] * 2.0,
    "beside a slice": lambda x: x[:, ROWS] * 2.0,
    "attribute": lambda x: x[held.rows] * 2.0,
    "item": lambda x: x[table["rows"]] * 2.0,
    "assigned": assigned,
    "updated": updated,
    "values": values,
}


@pytest.mark.parametrize("name", READS)
def test_a_list_that_changes_is_noticed(name: str) -> None:
    x = jg.tensor(np.arange(9.0).reshape(3, 3))
    compiled = jg.jit(READS[name])
    compiled(x), compiled(x)
    assert compiled.cache_info().traces == 1
    ROWS[0], NEW[0] = 2, 3.0
    try:
        np.testing.assert_array_equal(compiled(x).numpy(), READS[name](x).numpy())
        assert "changed from" in compiled.why_retraced()[0]
    finally:
        ROWS[0], NEW[0] = 0, 7.0
