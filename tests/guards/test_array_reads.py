"""NumPy arrays outside a traced function: inputs of the program, or compared where Python code reads them."""

from __future__ import annotations

import numpy as np
import pytest

from jitgrad.core.errors import UnguardableError
from tests.guards.observe import guard_of, observe


def test_small_arrays_are_compared_unless_lifted():
    values = np.arange(4.0)
    environment = observe(lambda: values)
    compared, lifted = environment.guard(), environment.guard([values])
    values[0] = 9

    assert "changed its contents" in compared.check()
    assert lifted.check() is None
    values.resize((2, 2), refcheck=False)
    assert "closure cell `values`" in lifted.check()


def test_large_arrays_must_be_lifted():
    values = np.zeros(10_000_000)
    environment = observe(lambda: values)

    assert environment.guard([values]).check() is None
    with pytest.raises(UnguardableError, match=r"test_array_reads.py:\d+: closure cell `values` is an array.*pass it as an"):
        environment.guard()


@pytest.mark.parametrize(
    ("read", "reads_it"),
    [
        (lambda a: a[3], lambda a: a.__setitem__(3, 9)),
        (lambda a: a[:8].sum(), lambda a: a.__setitem__(3, 9)),
        (lambda a: a.mean(), lambda a: a.__setitem__(-1, 9)),
        (lambda a: np.exp(a).sum(), lambda a: a.__setitem__(-1, 9)),
        (lambda a: a * 2, lambda a: a.__setitem__(-1, 9)),
        (lambda a: sum(float(x) for x in a), lambda a: a.__setitem__(-1, 9)),
    ],
    ids=["element", "slice", "mean", "ufunc", "operator", "loop"],
)
def test_elements_of_an_array_that_python_code_reads(read, reads_it):
    values = np.zeros(100_000)
    guard = guard_of(lambda: read(values))

    values[20] = 1
    values[20] = 0
    assert guard.check() is None
    reads_it(values)
    assert "`values" in guard.check()
