"""What tests of compiled functions share: the backend they run on, and the comparison of fused with eager results."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import optree
import pytest

from jitgrad.backends.targets import TARGETS
from jitgrad.core.tensor import Tensor
from jitgrad.jit.decorator import JitFunction, jit
from jitgrad.runtime.executor.launch import Launch
from jitgrad.runtime.program import Program

Compare = Callable[..., JitFunction]


@pytest.fixture(autouse=True)
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Kernels are stepped in Python, unless the test is marked ``numba``; nothing of the user's setting matters."""
    name = "cpu" if request.node.get_closest_marker("numba") else "python"
    monkeypatch.setenv("JITGRAD_BACKEND", name)
    monkeypatch.delenv("JITGRAD_CHECK", raising=False)
    monkeypatch.delenv("JITGRAD_DISABLE", raising=False)
    yield name


def leaves(result: Any) -> list[np.ndarray[Any, Any]]:
    """Arrays of everything in ``result``; tensors and numbers alike."""
    found = optree.tree_leaves(result)
    return [np.asarray(x.concrete("a test") if isinstance(x, Tensor) else x) for x in found]


def steps(program: Program) -> list[str]:
    """One word per step: "kernel", or the name of the op that runs on its own."""
    return ["kernel" if isinstance(s, Launch) else s.op.name for s in program.steps]


def assert_same(found: Any, expected: Any, ulp: float = 0.0, rtol: float = 0.0, atol: float = 0.0) -> None:
    """Same structure, shapes, dtypes and NaN; elements within ``ulp`` ULP or within the tolerances."""
    assert optree.tree_structure(found) == optree.tree_structure(expected)
    for k, (a, b) in enumerate(zip(leaves(found), leaves(expected), strict=True)):
        assert (a.shape, a.dtype) == (b.shape, b.dtype), f"result {k}"
        if b.dtype.kind != "f":
            np.testing.assert_array_equal(a, b, err_msg=f"result {k}")
            continue
        with np.errstate(all="ignore"):
            limit = np.maximum(ulp * np.abs(np.spacing(b)), atol + rtol * np.abs(b))
            good = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= np.nan_to_num(limit, posinf=0.0))
        assert good.all(), f"result {k}: {a[~good]} is not {b[~good]}"
        if ulp == rtol == atol == 0.0:
            np.testing.assert_array_equal(np.signbit(a) | np.isnan(a), np.signbit(b) | np.isnan(b))


@pytest.fixture
def same() -> Compare:
    """``same(f, *args, ulp=0)``: jit(f) gives what ``f`` gives, at its first call and at its second."""

    def compare(function: Callable[..., Any], *args: Any, **tolerance: Any) -> JitFunction:
        expected = function(*args)
        compiled: JitFunction = jit(function, check="off")
        assert_same(compiled(*args), expected, **tolerance)
        assert_same(compiled(*args), expected, **tolerance)
        assert compiled.cache_info().traces == 1, compiled.why_retraced()
        return compiled

    return compare


@pytest.fixture
def steps_of() -> Callable[[JitFunction, Any], list[str]]:
    """``steps_of(jitted, *args)``: what its program for these arguments runs, one word per step."""
    return lambda function, *args: steps(function.lookup(*args).program)


@pytest.fixture
def tune(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """``tune(min_block=8)``: every target schedules with these thresholds until the test ends."""

    def change(**fields: Any) -> None:
        for target in (target for target in TARGETS.values() if target.name != "cuda"):  # whose tuning needs a device
            monkeypatch.setattr(target, "tuning", replace(target.tuning, **fields))

    return change


def assert_same_results(found: Any, expected: Any, rel: float = 0.0) -> None:
    """Equal structures, classes and avals; tensors within rounding, floats within ``rel``, everything else equal."""
    leaves, structure = optree.tree_flatten(found)
    assert structure == optree.tree_structure(expected)
    for a, b in zip(leaves, optree.tree_leaves(expected), strict=True):
        assert type(a) is type(b)
        if isinstance(a, Tensor):
            assert a.aval == b.aval
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=2e-6)
        else:
            assert a == pytest.approx(b, rel=rel, abs=0.0) if rel and isinstance(a, float) else a == b
