"""Identities: stop_gradient for detach and no_grad, alias for inputs of levels, updated for leaves that were changed, and
number_of for elements that become numbers of Python's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jitgrad.core.aval import PYTHON_SCALAR_DTYPES, Aval, Dtype, same_dtype
from jitgrad.core.op import Kind, define, define_elementwise

STOP_GRADIENT = define_elementwise(
    "stop_gradient(x)", scalar="x", eager=lambda x: x, dtypes=same_dtype, views=True, domain=("real",), takes_complex=True
)

# A tensor over the same memory with a history of its own: a fresh input of a level of differentiation.
ALIAS = define_elementwise(
    "alias(x)",
    scalar="x",
    eager=lambda x: x,
    dtypes=same_dtype,
    views=True,
    vjp=(lambda g, _out, _x: g,),
    takes_complex=True,
    register=False,
)

# Whether a condition holds for any of the examples that `vmap` computes together, the same for all of them: its rule.
ANY_EXAMPLE = define_elementwise(
    "any_example(x)", scalar="x", eager=lambda x: x, dtypes=same_dtype, views=True, register=False
)

# A leaf after an update without history: the new numbers, with the leaf's gradient.
UPDATED = define_elementwise(
    "updated(leaf, new)",
    scalar="new",
    eager=lambda leaf, new: np.copy(new),
    dtypes=same_dtype,
    vjp=(lambda g, _out, _leaf, _new: g, None),
    takes_complex=True,
)


def _dtype_of_number(x: Aval) -> Dtype:
    return PYTHON_SCALAR_DTYPES[int if x.dtype.kind in "biu" else float]


def _number_dtypes(avals: Sequence[Aval]) -> tuple[tuple[Dtype, ...], Dtype]:
    return (avals[0].dtype,), _dtype_of_number(avals[0])


def _number_aval(avals: Sequence[Aval], _attrs: Mapping[str, Any]) -> Aval:
    return Aval(avals[0].shape, _dtype_of_number(avals[0]), weak=True)


# What item() gives: other operands do not take its dtype. An op of its own, so that a program that is traced or
# differentiated again keeps that.
NUMBER_OF = define(
    "number_of(x)",
    kind=Kind.ELEMENTWISE,
    scalar="x",
    eager=lambda x: x.astype(PYTHON_SCALAR_DTYPES[int if x.dtype.kind in "biu" else float]),
    dtypes=_number_dtypes,
    abstract=_number_aval,
    weak_results=True,
    domain=("real",),
)
