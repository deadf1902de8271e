"""The regularised incomplete beta function and its complement."""

from __future__ import annotations

from typing import Any

from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import add, multiply, negative, subtract
from jitgrad.ops.entropy import xlog1py, xlogy
from jitgrad.ops.incomplete_beta import define_betainc
from jitgrad.ops.operand import Operand, apply
from jitgrad.ops.transcendental import exp
from jitgrad.scipy.special.beta import betaln


def _density(a: Any, b: Any, x: Any) -> Tensor:
    powers = add(xlogy(subtract(a, 1.0), x), xlog1py(subtract(b, 1.0), negative(x)))
    return exp(subtract(powers, betaln(a, b)))


BETAINC = define_betainc("betainc", 0, lambda g, _out, a, b, x: multiply(g, _density(a, b, x)))
BETAINCC = define_betainc("betaincc", 1, lambda g, _out, a, b, x: multiply(g, negative(_density(a, b, x))))


def betainc(a: Operand, b: Operand, x: Operand) -> Tensor:
    """The regularised incomplete beta function: the beta distribution function of shapes ``a, b``.

    A call between kernels. Raises AutogradError in backward, if ``a`` or ``b`` require grad.
    """
    return apply(BETAINC, a, b, x)


def betaincc(a: Operand, b: Operand, x: Operand) -> Tensor:
    """``1 - betainc(a, b, x)``, accurate where that is small; likewise."""
    return apply(BETAINCC, a, b, x)
