"""sample_operands, evaluate_scalar and check_grads: their samples, results and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import ArgumentError
from jitgrad.core.op import REGISTRY, define_elementwise
from jitgrad.testing import check_grads, evaluate_scalar, sample_operands


def test_domains_are_respected() -> None:
    rng = np.random.default_rng(0)
    (x,) = sample_operands(REGISTRY["log"], rng, (100,))
    (y,) = sample_operands(REGISTRY["atanh"], rng, (100,), np.float32)
    condition, *_ = sample_operands(REGISTRY["where"], rng, (100,))

    assert (x > 0).all() and x.shape == (100,) and x.dtype == np.float64
    assert (np.abs(y) < 1).all() and y.dtype == np.float32
    assert condition.dtype == np.bool_


def test_integer_dtypes_stay_in_the_domain() -> None:
    rng = np.random.default_rng(0)

    x, y = sample_operands(REGISTRY["divide"], rng, (50,), np.uint8)

    assert x.dtype == y.dtype == np.uint8 and (y != 0).all()


def test_an_op_without_a_known_domain_is_an_error() -> None:
    for domain in ((), ("sideways",)):
        op = define_elementwise("unknown(x)", scalar="x", eager=np.copy, domain=domain, register=False)
        with pytest.raises(ArgumentError, match="domain"):
            sample_operands(op, np.random.default_rng(0))


def test_scalar_constants_take_the_operands_dtype() -> None:
    op = define_elementwise("third(x)", scalar="x * 0.1 if x > 0 else -1", eager=np.copy, register=False)

    found = evaluate_scalar(op, np.array([1.0, -2.0], np.float32))

    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, np.array([np.float32(0.1), -1.0], np.float32))


def test_an_op_without_scalar_expression_cannot_be_evaluated() -> None:
    with pytest.raises(ArgumentError, match="no scalar expression"):
        evaluate_scalar(REGISTRY["integer_pow"], np.ones(2, np.int64), np.ones(2, np.int64))


def test_check_grads_wants_float64() -> None:
    with pytest.raises(ArgumentError, match="float64"):
        check_grads(jg.exp, [np.ones(2, np.float32)])
    with pytest.raises(ArgumentError, match="float64"):
        check_grads(jg.exp, [np.ones(2, np.int64)])


def test_check_grads_takes_several_outputs_and_other_operands() -> None:
    def f(x: Any, n: Any) -> tuple[Any, Any]:
        return jg.multiply(x, n), jg.sin(x)

    check_grads(f, [np.array([0.3, 1.2]), np.array([2, 3])])
