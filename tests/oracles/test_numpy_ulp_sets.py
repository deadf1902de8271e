"""NumPy's own sets of operands that are hard to round, against its tables of correct results.

NumPy's packages contain them: a row is the dtype, the bits of an operand and of the rounded result, and the error that
NumPy allows itself there, in units in the last place.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import jitgrad as jg

SETS = Path(np.__file__).parent / "_core" / "tests" / "data"
PREFIX = "umath-validation-set-"
NAMES = {"arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan", "arctanh": "atanh"}
INTEGERS = {"float32": np.int32, "float64": np.int64}

pytestmark = pytest.mark.skipif(not SETS.exists(), reason="this NumPy comes without its test data")


def cases() -> Iterator[tuple[str, str]]:
    for path in sorted(SETS.glob(f"{PREFIX}*.csv")):
        name = path.stem.removeprefix(PREFIX)
        for dtype in INTEGERS:
            if hasattr(jg, NAMES.get(name, name)) and len(rows(name, dtype)):
                yield name, dtype


def rows(name: str, dtype: str) -> np.ndarray:
    """Bits of operands, bits of results and tolerances, as three columns of integers."""
    found = []
    for line in (SETS / f"{PREFIX}{name}.csv").read_text().splitlines():
        if line.startswith(f"np.{dtype},"):
            _, operand, result, tolerance = line.split(",")
            found.append((int(operand, 16), int(result, 16), int(tolerance)))
    return np.array(found, np.uint64).reshape(-1, 3)


def steps_apart(found: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """How many representable numbers lie between them; 0 for two NaNs."""
    kind = INTEGERS[str(found.dtype)]

    def place(x: np.ndarray) -> np.ndarray:
        bits = x.view(kind).astype(object)  # Python's integers do not overflow
        return np.where(bits < 0, -(bits & np.iinfo(kind).max), bits)

    both_nan = np.isnan(found) & np.isnan(wanted)
    return np.where(both_nan, 0, abs(place(found) - place(wanted))).astype(np.float64)


@pytest.mark.parametrize("how", ["eager", "python", pytest.param("cpu", marks=pytest.mark.numba)])
@pytest.mark.parametrize(("name", "dtype"), list(cases()) if SETS.exists() else [])
def test_results_are_within_the_tolerance_of_the_set(name: str, dtype: str, how: str) -> None:
    bits = rows(name, dtype)
    unsigned = np.uint32 if dtype == "float32" else np.uint64
    x, wanted = (bits[:, k].astype(unsigned).view(dtype) for k in (0, 1))
    function = getattr(jg, NAMES.get(name, name))
    compiled = function if how == "eager" else jg.jit(function, backend=how, check="off")

    with np.errstate(all="ignore"):
        found = compiled(jg.tensor(x)).numpy()

    apart, allowed = steps_apart(found, wanted), np.maximum(bits[:, 2].astype(np.float64), 2)
    worst = np.argmax(apart - allowed)
    assert apart[worst] <= allowed[worst], f"{name}({x[worst]!r}) is {found[worst]!r}, not {wanted[worst]!r}"
