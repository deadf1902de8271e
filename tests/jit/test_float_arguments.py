"""Float arguments are inputs where ops compute with them, and traced by value where Python needs that; results are eager's."""

from __future__ import annotations

import cmath
import copy
import decimal
import json
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
import jitgrad.nn.functional as F
import jitgrad.numpy as jnp
from tests.compiled import assert_same_results

pytestmark = pytest.mark.filterwarnings("error::jitgrad.core.errors.MismatchWarning")

VALUES = (1.3, 2.5, 0.7, 3.1, 1.3, -0.0, 0.0)

# one program for all values
COMPUTED: dict[str, Callable[[Any, float], Any]] = {
    "class": lambda x, k: x * k if isinstance(k, float) and not isinstance(k, int | jg.Tensor | bool) else x,
    "numbers": lambda x, k: (k, k * 2, [k + 1, 2**k], {"a": -k, "b": abs(k)}, k / 4, 3 - k, k % 0.4, 5 // (k + 1)),
    "copies": lambda x, k: (x * copy.copy(k), copy.deepcopy({"k": k})["k"]),
    "bool": lambda x, k: x * (k * True + False),
    "constants of NumPy": lambda x, k: (x[0] * (np.float32([1, 2, 3]) * k), x[0] * (k * np.float32([1, 2, 3]))),
    "numbers of NumPy": lambda x, k: (x * (k * np.float64(2)), x * (np.float32(2) * k)),
    "complex": lambda x, k: x * (1j * k),
    "assignment": lambda x, k: _assigned(x, 0, k),
    "assignment by mask": lambda x, k: _assigned(x, x > 0, k),
    "fill": lambda x, k: (x.clone().fill_(k), x.masked_fill(x > 0, k), x.clone().masked_fill_(x > 0, k), jg.full((2,), k)),
    "in place": lambda x, k: x.clone().add_(k).mul_(k).add_(x, alpha=k).lerp_(x, k),
    "functions": lambda x, k: (jg.where(x > k, k, 0.0), jg.clip(x, -k - 1, k + 1), F.leaky_relu(x, k), jg.lerp(x, x + 1, k)),
    "tensors": lambda x, k: (jg.tensor(k), jg.tensor([k, 1.0]), jg.stack([jg.tensor(k), jg.tensor(1.0)]), jg.asarray(k)),
    "arrays": lambda x, k: (jnp.array([k, 2 * k, 1]), jnp.hstack([k, 1.0]), jnp.select([x > 0], [x * k], k), jnp.heaviside(x, k)),
    "quantile": lambda x, k: jg.quantile(x, k / 10),
    "functions of NumPy": lambda x, k: (x * np.clip(k, 0.0, 2.0), x * np.ndim(k), np.outer(x[0], k), np.mean(k) * x),
    "ufuncs": lambda x, k: x * np.exp(-k) + np.floor(k),
    "gradient": lambda x, k: jg.grad(lambda z: (z * k).sum())(x),
    "scan": lambda x, k: jg.lax.scan(lambda c, row: (c * k + row.sum(), c), 1.0, x),
    "map": lambda x, k: jg.vmap(lambda row: row * k)(x),
}

# a program for each value, or for each answer
DECIDED: dict[str, Callable[[Any, float], Any]] = {
    "type": lambda x, k: x * k if type(k) is float else x,
    "text": lambda x, k: {f"{k:.1f}": x},
    "key": lambda x, k: x * {1.3: 2.0, 2.5: 3.0, 0.7: 5.0, 3.1: 7.0, 0.0: 1.0}[k],
    "conversion": lambda x, k: x * float(k) + int(k) + round(k) + round(k, 1),
    "math": lambda x, k: x * math.sqrt(k) + math.floor(k),
    "sign of zero": lambda x, k: x * math.copysign(1.0, k),
    "method": lambda x, k: x * k.is_integer() + k.real,
    "array": lambda x, k: x * np.array([k, 1.0, 2.0]) + np.full(3, k),
    "branch": lambda x, k: x if k > 1 else -x,
    "truth": lambda x, k: x if k else -x,
    "chain": lambda x, k: x * max(k, 1.2) * min(k, 2) if 1 < k < 3 else x,
    "membership": lambda x, k: x if k in (1.3, 2.5) else -x,
    "bounds": lambda x, k: jg.linspace(0.0, k, 3) + jg.arange(0.0, 1.5 + 0 * k, 0.5),
    "padding": lambda x, k: F.pad(x, (1, 1), value=k),
    "order": lambda x, k: jg.norm(x, p=k + 1),
    "caught": lambda x, k: _caught(x, k),
    "classes in C": lambda x, k: {json.dumps([k]): x * float(decimal.Decimal(k))},
    "complex": lambda x, k: x * complex(k, 1.0) * cmath.sqrt(k),
    "size": lambda x, k: F.interpolate(x[None], scale_factor=k + 1.5),
}


def _assigned(x: Any, index: Any, k: float) -> Any:
    y = x.clone()
    y[index] = k
    return y


def _caught(x: Any, k: float) -> Any:
    try:
        return x * math.sqrt(k)
    except TypeError:
        return x
    except jg.errors.TracedValueError:
        return -x


@pytest.fixture
def x() -> Any:
    return jg.tensor([[0.1, -0.7, 1.3], [2.0, 0.4, -0.2]])


def same(found: Any, expected: Any) -> None:
    assert_same_results(found, expected, rel=1e-14)


@pytest.mark.parametrize("check", ["off", "always"])
@pytest.mark.parametrize("name", COMPUTED)
def test_a_new_value_compiles_nothing(name: str, check: str, x: Any) -> None:
    f = jg.jit(COMPUTED[name], backend="python", check=check)
    for k in VALUES:
        same(f(x, k), COMPUTED[name](x, k))
    assert f.cache_info().traces == 1


@pytest.mark.parametrize("check", ["off", "always"])
@pytest.mark.parametrize("name", DECIDED)
def test_python_gets_the_value_that_it_needs(name: str, check: str, x: Any) -> None:
    f = jg.jit(DECIDED[name], backend="python", check=check)
    for k in (*VALUES, *VALUES):
        same(f(x, k), DECIDED[name](x, k))
    assert 1 < f.cache_info().traces <= len(VALUES) + 1  # the first trace finds out that it needs one


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("name", ["class", "type", "text", "conversion", "math", "computed", "branch"])
def test_python_gets_the_value_of_a_numpy_scalar(name: str, kind: Any, x: Any) -> None:
    functions: dict[str, Callable[[Any, Any], Any]] = {
        "class": lambda x, k: x * k if isinstance(k, float) else x,
        "computed": lambda x, k: x * math.sqrt(k * 2 + 1) + float(jg.exp(k)),
        "conversion": lambda x, k: x * float(k) + int(k),
        "type": lambda x, k: x * k if type(k) is np.float64 else x,
    }
    function = functions.get(name) or DECIDED[name]
    compiled = jg.jit(function, backend="python", check="off")
    for _ in range(2):
        for k in (1.25, 2.5, 0.75):
            same(compiled(x, kind(k)), function(x, kind(k)))
    assert compiled.cache_info().traces <= 4


def test_nan_and_the_sign_of_zero_are_values_of_their_own(x: Any) -> None:
    f = jg.jit(lambda x, k: x * math.atan2(0.0, k), backend="python", check="off")
    for _ in range(3):
        for k in (0.0, -0.0, math.nan, 1.0):
            np.testing.assert_array_equal(f(x, k).numpy(), f.eager(x, k).numpy())
    assert f.cache_info().traces == 5


def test_a_float_of_too_many_values_runs_eagerly_in_the_end(x: Any) -> None:
    f = jg.jit(lambda x, k: x * math.sqrt(k), backend="python", check="off")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for k in range(40):
            np.testing.assert_allclose(f(x, float(k)).numpy(), f.eager(x, float(k)).numpy())
    assert [w.category for w in caught] == [jg.errors.RetraceWarning]
    assert "argument 1" in str(caught[0].message)
    assert f.cache_info().traces < 20
    f(x, 3.0)
    assert f.cache_info().traces < 20


def test_only_the_number_that_is_needed_is_traced_by_value(x: Any) -> None:
    f = jg.jit(lambda x, k, rate: x * math.sqrt(k) * rate, backend="python", check="off")
    for rate in VALUES:
        same(f(x, 2.0, rate), f.eager(x, 2.0, rate))
    assert f.cache_info().traces == 2


def test_a_rate_for_an_optimizer_stays_an_input(x: Any) -> None:
    weights = x.clone().requires_grad_()
    optimizer = jg.optim.SGD([weights], lr=0.1)

    @jg.jit(backend="python")
    def step(rate: float) -> Any:
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.zero_grad()
        (weights * weights).sum().backward()
        optimizer.step()

    expected = x.numpy()
    for rate in (0.1, 0.2, 0.3, 0.4):
        step(rate)
        expected = expected - np.float32(rate) * 2 * expected
        np.testing.assert_allclose(weights.detach().numpy(), expected, rtol=1e-5)
    assert step.cache_info().traces == 1


def test_the_class_of_a_run_time_int_is_int(x: Any) -> None:
    """It was another class, in the trace that serves the second value."""
    f = jg.jit(lambda x, k: x * k if type(k) is int else x, backend="python", check="off")
    for k in (1, 2, 3):
        same(f(x, k), x * k)


def test_arrays_of_run_time_numbers_are_not_of_objects(x: Any) -> None:
    f = jg.jit(lambda x, k: x[0] * np.array([k, 1, 2]), backend="python", check="off")
    for k in (1, 2, 3):
        same(f(x, k), f.eager(x, k))


@pytest.mark.parametrize("of", ["result", "text"])
def test_the_check_compares_what_no_program_computes(of: str, x: Any) -> None:
    """A result that is an argument itself was not compared, nor was a constant."""

    def f(x: Any, a: Any) -> Any:
        is_array = isinstance(a, np.ndarray)
        return (x * 2 if is_array else x) if of == "result" else (x * 2, "array" if is_array else "tensor")

    compiled = jg.jit(f, backend="python")
    with pytest.warns(jg.errors.MismatchWarning, match="returns other objects than eager"):
        same(compiled(x, np.ones(2)), f(x, np.ones(2)))
    same(compiled(x, np.ones(2)), f(x, np.ones(2)))


def test_an_array_in_another_byte_order_is_refused_with_the_remedy(x: Any) -> None:
    with pytest.raises(jg.errors.ArgumentError, match=r"argument 1 is a ndarray of dtype >f4, whose bytes .*newbyteorder"):
        jg.jit(lambda x, a: x * a)(x, np.ones(3, ">f4"))
