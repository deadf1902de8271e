"""The compiled CPU kernels: all ops of a dtype in one function, and the corners of integer arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.aval import Aval
from jitgrad.core.dispatch import apply_op
from jitgrad.core.errors import DtypeError
from jitgrad.core.op import REGISTRY, Kind, OpDef

pytestmark = pytest.mark.numba

OPS = [op for op in REGISTRY.values() if op.kind is Kind.ELEMENTWISE and op.scalar and not op.name.startswith("philox")]
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-40, -1e-40, 1e30, -1e30, np.inf, -np.inf, np.nan, 0.25, 7.0)


def accepts(op: OpDef, dtype: Any) -> bool:
    avals = [Aval((), np.dtype(dtype))] * len(op.operands)
    try:
        op.abstract(avals, op.sample_attrs)
    except DtypeError:
        return False
    return bool(op.domain)


def everything(dtype: str, ops: list[OpDef] | None = None) -> Any:
    """One function that applies every op of ``dtype``, each rotated among three operands."""
    chosen = [op for op in OPS if accepts(op, dtype)] if ops is None else ops

    def run(*xs: Any) -> dict[str, Any]:
        found = {}
        for op in chosen:
            operands = [xs[k % len(xs)] for k in range(len(op.operands))]
            found[op.name] = apply_op(op, *operands, **op.sample_attrs)
        return found

    return run


@pytest.mark.parametrize("dtype", ["e", "f", "d"])
def test_floats_with_special_values(dtype: str, same: Any) -> None:
    """In a vector of 16 and a remainder of 1, so that both forms of each loop run."""
    with np.errstate(all="ignore"):
        values = np.array([*SPECIAL, 2.0], dtype)
        rolled = [values, np.roll(values, 5), np.roll(values, 11)]
        same(everything(dtype), *rolled, ulp=32.0)


@pytest.mark.parametrize("dtype", ["?", "b", "h", "i", "l", "B", "H", "I", "L"])
def test_integers(dtype: str, same: Any) -> None:
    rng = np.random.default_rng(0)
    high = 2 if dtype == "?" else 6

    with np.errstate(all="ignore"):
        same(everything(dtype), *[rng.integers(0, high, 19).astype(dtype) for _ in range(3)], ulp=4.0)


@pytest.mark.parametrize("dtype", ["b", "h", "i", "l", "B", "H", "I", "L"])
def test_corners_of_integer_arithmetic(dtype: str, same: Any) -> None:
    """The extremes, division by zero and by -1, negative operands; wrapping as NumPy wraps."""
    info = np.iinfo(dtype)
    corners = [info.min, info.max, info.max - 1, info.min + 1, 0, 1, 2, 7, *([-1, -2, -7] if info.min < 0 else [])]
    x, y = (g.ravel() for g in np.meshgrid(np.array(corners, dtype), np.array(corners, dtype)))
    names = "add subtract multiply floor_divide remainder fmod bitwise_and bitwise_or bitwise_xor maximum minimum".split()
    names += "less greater_equal equal abs negative sign square bitwise_invert".split()

    with np.errstate(all="ignore"):
        same(everything(dtype, [REGISTRY[n] for n in names if n in REGISTRY and accepts(REGISTRY[n], dtype)]), x, y)


@pytest.mark.parametrize("dtype", ["b", "i", "l", "B", "I", "L"])
def test_shifts_by_any_distance(dtype: str, same: Any) -> None:
    width = np.dtype(dtype).itemsize * 8
    distances = np.array([0, 1, width - 1, width, width + 1, min(np.iinfo(dtype).max, 127)], dtype)
    x = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max, 1, 0, 3, 85], dtype)
    x, y = (g.ravel() for g in np.meshgrid(x, distances))

    same(lambda x, y: (jg.bitwise_left_shift(x, y), jg.bitwise_right_shift(x, y)), x, y)


def test_uint64_beside_other_integers(same: Any) -> None:
    """NumPy makes float64 of uint64 and a signed integer; weak Python integers stay uint64."""
    big = np.array([2**64 - 1, 2**63, 0, 1], np.uint64)
    signed = np.array([-1, 2**62, -(2**63), 3], np.int64)

    same(lambda x, y: (jg.add(x, y), jg.multiply(x, y), jg.less(x, y), jg.maximum(x, y)), big, signed)
    same(lambda x: (x // 3, x % 10, x + 1, x * 2, x >> 3, x & 255, x > 5), jg.tensor(big))
    same(lambda x: (jg.astype(x, np.float32), jg.astype(x, np.int8), jg.astype(x, bool)), big)


@pytest.mark.parametrize("source", ["f", "d"])
def test_floats_become_integers_as_in_numpy(source: str, same: Any) -> None:
    x = np.array([0.0, -0.0, 1.9, -1.9, 100.5, -100.5, 127.0], source)

    same(lambda x: [jg.astype(x, d) for d in "bhil"] + [jg.astype(jg.abs(x), d) for d in "BHIL"], x)


def test_casts_between_integers_wrap(same: Any) -> None:
    x = np.array([-(2**63), -1, 0, 255, 256, 65535, 2**31, 2**63 - 1], np.int64)

    same(lambda x: [jg.astype(x, d) for d in "?bhilBHILfd"], x)


def test_broadcasts_and_layouts(same: Any) -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(33, 40)).astype(np.float32)
    f = lambda x, r, c, s: jg.tanh(x * r + c) * s  # noqa: E731

    for a in (x, np.asfortranarray(x), rng.normal(size=(66, 80)).astype(np.float32)[::-2, ::2]):
        same(f, a, x[0], x[:, :1], x[0, 0], ulp=4.0)
