"""Conditions on parameters and values of distributions, with torch's names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from jitgrad.core.context import current_interpreter
from jitgrad.core.tensor import Tensor
from jitgrad.ops.creation import asarray

_SUM_MARGIN = 1e-6  # how far from 1 the sum of probabilities may be, as in torch

Bounds = tuple[Any, Any]  # numbers, tensors or None


class Constraint:
    """A condition on elements, or on the last ``event_dim`` axes together.

    ``holds`` is written in operators that arrays and tensors have. ``bounds`` are the least and the largest value
    of a range of numbers, None for an open end.
    """

    def __init__(
        self,
        title: str,
        holds: Callable[[Any], Any],
        event_dim: int = 0,
        is_discrete: bool = False,
        bounds: Bounds | None = None,
    ) -> None:
        self._title = title
        self._holds = holds
        self.event_dim = event_dim
        self.is_discrete = is_discrete
        self.bounds: Bounds | None = bounds

    def check(self, value: Any) -> Tensor:
        """bool: where ``value`` satisfies the condition."""
        return asarray(self._holds(value))

    def holds_for(self, value: Tensor) -> bool:
        """Whether all of ``value`` satisfies the condition; True for a tensor that is only being traced."""
        if current_interpreter.get().tracing:
            return True
        data = value._data if type(value._data) is np.ndarray else value.detach()
        return bool(self._holds(data).all())

    def __repr__(self) -> str:
        return self._title


Conditions = Mapping[str, Constraint]  # of parameters, by name


def greater_than(lower_bound: Any) -> Constraint:
    return Constraint(
        f"greater than {_shown(lower_bound)}", lambda x: x > _beside(lower_bound, x), bounds=(lower_bound, None)
    )


def greater_than_eq(lower_bound: Any) -> Constraint:
    return Constraint(
        f"at least {_shown(lower_bound)}", lambda x: x >= _beside(lower_bound, x), bounds=(lower_bound, None)
    )


def less_than(upper_bound: Any) -> Constraint:
    return Constraint(
        f"less than {_shown(upper_bound)}", lambda x: x < _beside(upper_bound, x), bounds=(None, upper_bound)
    )


def interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    return Constraint(
        f"between {_shown(lower_bound)} and {_shown(upper_bound)}",
        lambda x: (x >= _beside(lower_bound, x)) & (x <= _beside(upper_bound, x)),
        bounds=(lower_bound, upper_bound),
    )


def integer_interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    return Constraint(
        f"a whole number between {_shown(lower_bound)} and {_shown(upper_bound)}",
        lambda x: (x % 1 == 0) & (x >= _beside(lower_bound, x)) & (x <= _beside(upper_bound, x)),
        is_discrete=True,
    )


def multinomial(upper_bound: int) -> Constraint:
    return Constraint(
        f"counts along the last axis, whose sum is at most {upper_bound}",
        lambda x: (x % 1 == 0).all(-1) & (x >= 0).all(-1) & (x.sum(-1) <= upper_bound),
        1,
        is_discrete=True,
    )


def independent(base_constraint: Constraint, reinterpreted_batch_ndims: int) -> Constraint:
    """``base_constraint`` for all elements of the last axes."""
    axes = tuple(range(-reinterpreted_batch_ndims, 0))
    return Constraint(
        f"{base_constraint} throughout its last {len(axes)} axes",
        lambda x: base_constraint._holds(x).all(axes),
        base_constraint.event_dim + reinterpreted_batch_ndims,
        base_constraint.is_discrete,
    )


def _beside(bound: Any, x: Any) -> Any:
    """``bound`` as ``x`` is, array or tensor."""
    return bound.detach().numpy() if isinstance(x, np.ndarray) and isinstance(bound, Tensor) else bound


def _shown(bound: Any) -> Any:
    if not isinstance(bound, Tensor):
        return bound
    return "the bound" if bound.ndim or current_interpreter.get().tracing else bound.item()


def _is_number(x: Any) -> Any:
    return (x <= 0) | (x >= 0)  # not NaN


def _is_simplex(x: Any) -> Any:
    total = x.astype("float64").sum(-1)  # rounding of many float32 numbers would exceed the margin
    return (x >= 0).all(-1) & (abs(total - 1.0) < _SUM_MARGIN)


def _is_lower_cholesky(x: Any) -> Any:
    array = np.asarray(x.detach().cpu()) if isinstance(x, Tensor) else x
    return (np.tril(array) == array).all((-2, -1)) & (np.diagonal(array, 0, -2, -1) > 0).all(-1)


def _is_positive_definite(x: Any) -> Any:
    array = np.asarray(x.detach().cpu()) if isinstance(x, Tensor) else x
    symmetric = np.isclose(array, np.swapaxes(array, -1, -2), atol=1e-6).all((-2, -1))
    return symmetric & (np.linalg.eigvalsh(array) > 0).all(-1)


real: Constraint = Constraint("a number", _is_number, bounds=(None, None))
real_vector: Constraint = independent(real, 1)
positive: Constraint = greater_than(0.0)
nonnegative: Constraint = greater_than_eq(0.0)
unit_interval: Constraint = interval(0.0, 1.0)
boolean: Constraint = Constraint("0 or 1", lambda x: (x == 0) | (x == 1), is_discrete=True)
nonnegative_integer: Constraint = Constraint("a whole number, at least 0", lambda x: (x % 1 == 0) & (x >= 0), is_discrete=True)
simplex: Constraint = Constraint("probabilities that sum to 1 along the last axis", _is_simplex, 1)
one_hot: Constraint = Constraint(
    "1 at one place of the last axis, and else 0",
    lambda x: ((x == 0) | (x == 1)).all(-1) & (x.sum(-1) == 1),
    1,
    is_discrete=True,
)
lower_cholesky: Constraint = Constraint("lower triangular matrices with a positive diagonal", _is_lower_cholesky, 2)
positive_definite: Constraint = Constraint("symmetric positive definite matrices", _is_positive_definite, 2)
