"""jax.grad and jax.value_and_grad: jitgrad's, with JAX's further arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np
import optree

import jitgrad as _jitgrad
from jitgrad.core.errors import AutogradError, DtypeError
from jitgrad.core.tensor import Tensor
from jitgrad.ops.complex_parts import conj
from jitgrad.ops.creation import asarray, ones_like


def value_and_grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """`jitgrad.value_and_grad`; with ``holomorphic`` the derivative of a holomorphic function of complex numbers.

    Raises:
        AutogradError: ``allow_int`` is asked for, or a holomorphic function returns more than a number.
        DtypeError: ``holomorphic``, and arguments or result are not complex.
    """
    if allow_int:
        raise AutogradError("allow_int=True: integers have no gradient here; name floating arguments by argnums=")
    if not holomorphic:
        return _jitgrad.value_and_grad(fun, argnums, has_aux)

    @wraps(fun)
    def with_derivative(*args: Any, **kwargs: Any) -> Any:
        places = [argnums] if isinstance(argnums, int) else list(argnums)

        def of_places(*chosen: Any) -> Any:
            full = list(args)
            for k, x in zip(places, chosen, strict=True):
                full[k] = optree.tree_map(_checked, x)
            return fun(*full, **kwargs)

        out, pull, *aux = _jitgrad.vjp(of_places, *[args[k] for k in places], has_aux=has_aux)
        if _checked(out).ndim:
            raise AutogradError(f"grad(holomorphic=True): the function must return a number, got {out.aval}")
        derivatives = optree.tree_map(conj, pull(ones_like(out)))
        return (out, *aux) if has_aux else out, derivatives[0] if isinstance(argnums, int) else derivatives

    return with_derivative


def _checked(x: Any) -> Tensor:
    tensor = asarray(x)
    if not np.issubdtype(tensor.dtype, np.complexfloating):
        raise DtypeError(f"grad(holomorphic=True): arguments and result must be complex, got {tensor.aval}: use astype(complex)")
    return tensor


def grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """The gradient of `value_and_grad` alone; with ``has_aux`` a pair of it and what else the function returns."""
    if not holomorphic and not allow_int:
        return _jitgrad.grad(fun, argnums, has_aux)
    both = value_and_grad(fun, argnums, has_aux, holomorphic, allow_int)

    @wraps(fun)
    def derivative(*args: Any, **kwargs: Any) -> Any:
        value, derivatives = both(*args, **kwargs)
        return (derivatives, value[1]) if has_aux else derivatives

    return derivative
