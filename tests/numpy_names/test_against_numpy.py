"""jitgrad.numpy: NumPy's values and dtypes, eager and compiled, and gradients by finite differences."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import jitgrad as jg
import jitgrad.numpy as np
from jitgrad.ops.interop import NUMPY_FUNCTIONS
from jitgrad.testing import check_grads
from tests.numpy_names.later_names import LATER, LATER_SMOOTH
from tests.numpy_names.table import CASES as FIRST
from tests.numpy_names.table import CREATION, Case
from tests.numpy_names.table import SMOOTH as FIRST_SMOOTH

pytestmark = [
    pytest.mark.usefixtures("in_python"),
    pytest.mark.filterwarnings("ignore:numpy.fix is deprecated:DeprecationWarning"),  # since NumPy 2.5
]
CASES, SMOOTH = FIRST + LATER, FIRST_SMOOTH + LATER_SMOOTH
NEED_VALUES = (
    "bincount unique nonzero argwhere flatnonzero extract compress union1d intersect1d setdiff1d setxor1d trim_zeros".split()
)


@pytest.fixture
def in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", "python")


def text_of(x: Any) -> str:
    """``x`` in the name of a test, which must be the same in all processes."""
    if isinstance(x, (list, tuple)):
        return f"[{', '.join(map(text_of, x))}]"
    return "function" if callable(x) and not isinstance(x, type) else str(getattr(x, "shape", x))


def called(case: Case) -> str:
    name, args, keywords = case
    texts = [text_of(a) for a in args] + [f"{k}={text_of(v)}" for k, v in keywords.items()]
    return f"{name}({', '.join(texts)})".replace("\n", " ")[:80]


def is_array(x: Any) -> bool:
    return isinstance(x, numpy.ndarray) or (isinstance(x, (tuple, list)) and any(map(is_array, x)))


def with_tensors(x: Any) -> Any:
    if isinstance(x, numpy.ndarray):
        return jg.asarray(x)
    return type(x)(map(with_tensors, x)) if isinstance(x, (tuple, list)) else x


def assert_same(found: Any, expected: Any) -> None:
    if isinstance(expected, (tuple, list)):
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            assert_same(a, b)
        return
    expected = numpy.asarray(expected)
    assert found.dtype == expected.dtype if isinstance(found, jg.Tensor) else not isinstance(found, numpy.ndarray)
    found = found.detach().numpy() if isinstance(found, jg.Tensor) else numpy.asarray(found)
    assert found.shape == expected.shape
    rtol = 1e-5 if expected.dtype == numpy.float32 else 1e-12
    numpy.testing.assert_allclose(found, expected, rtol, 1e-13 if rtol < 1e-6 else 1e-6)


def expected_of(case: Case) -> Any:
    name, args, keywords = case
    with numpy.errstate(all="ignore"):
        return getattr(numpy, name)(*args, **keywords)


@pytest.mark.parametrize("case", CASES + CREATION, ids=called)
def test_eager(case: Case) -> None:
    name, args, keywords = case

    assert_same(getattr(np, name)(*args, **keywords), expected_of(case))


@pytest.mark.parametrize("case", CASES, ids=called)
def test_tensors(case: Case) -> None:
    """The same with tensors in place of arrays, and under @jit."""
    name, args, keywords = case
    arrays = [k for k, a in enumerate(args) if isinstance(a, numpy.ndarray)]

    def f(*given: Any) -> Any:
        full = list(args)
        for k, x in zip(arrays, given, strict=True):
            full[k] = x
        return getattr(np, name)(*full, **keywords)

    tensors = [jg.asarray(args[k]) for k in arrays]
    assert_same(f(*tensors), expected_of(case))
    if name not in NEED_VALUES and not (name == "where" and len(args) == 1):
        assert_same(jg.jit(f)(*tensors), expected_of(case))


@pytest.mark.parametrize(("f", "x"), [pytest.param(f, x, id=name) for name, f, x in SMOOTH])
def test_gradients(f: Any, x: Any) -> None:
    assert_same(f(np, x), f(numpy, x))

    check_grads(lambda x: f(np, x), [x], order=2)


# these give arrays unless gradients flow through them: see test_scipy_optimisers.py
CONVERSIONS = ("atleast_1d", "atleast_2d", "atleast_3d")
DISPATCHED = [
    case
    for case in CASES
    if getattr(numpy, case[0]) in NUMPY_FUNCTIONS and case[0] not in CONVERSIONS and any(map(is_array, case[1]))
]


@pytest.mark.parametrize("case", DISPATCHED, ids=called)
def test_numpys_own_function_on_tensors(case: Case) -> None:
    name, args, keywords = case

    found = getattr(numpy, name)(*(with_tensors(a) for a in args), **keywords)

    assert_same(found, expected_of(case))
