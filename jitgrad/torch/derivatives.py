"""torch.autograd.functional: Jacobians and Hessians at given inputs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import jitgrad
from jitgrad.autograd.functional import jvp as jvp_of
from jitgrad.core.errors import ArgumentError
from jitgrad.core.tensor import Tensor
from jitgrad.ops.creation import detached, ones_like


def jacobian(func: Callable[..., Any], inputs: Any, create_graph: bool = False, **_options: Any) -> Any:
    """The Jacobian of ``func`` at ``inputs``: a tensor, or for a tuple of inputs or results a tuple of them, as in torch.

    It is computed for all rows at once, whatever ``vectorize`` and ``strategy`` say; an input that does not matter has zeros
    even with ``strict``.
    """
    return _derivatives(jitgrad.func.jacrev, func, inputs, create_graph)


def hessian(func: Callable[..., Any], inputs: Any, create_graph: bool = False, **_options: Any) -> Any:
    """The Hessian of ``func``, whose result is one number, at ``inputs``: for a tuple of them a tuple of tuples."""
    return _derivatives(jitgrad.func.hessian, func, inputs, create_graph)


def _derivatives(transform: Callable[..., Any], func: Callable[..., Any], inputs: Any, create_graph: bool) -> Any:
    several = isinstance(inputs, tuple | list)
    given = tuple(inputs) if several else (inputs,)
    result = transform(func, argnums=tuple(range(len(given))) if several else 0)(*given)
    return result if create_graph else _detached(result)


def _detached(result: Any) -> Any:
    return detached(result) if isinstance(result, Tensor) else tuple(map(_detached, result))


def _seeds(v: Any, like: Any, what: str) -> Any:
    """``v``, or ones where it is left out and ``like`` is one number."""
    if v is not None:
        return tuple(v) if isinstance(v, tuple | list) else v
    if not isinstance(like, Tensor) or like.size != 1:
        raise ArgumentError(f"autograd.functional.{what}: v may be left out for one number alone")
    return ones_like(like)


def _taken(inputs: Any) -> tuple[Any, ...]:
    return tuple(inputs) if isinstance(inputs, tuple | list) else (inputs,)


def _given_back(results: Any, inputs: Any, create_graph: bool) -> Any:
    """A tuple with one tensor for each of ``inputs``, or a tensor where they are one."""
    kept = tuple(results) if create_graph else tuple(_detached(r) for r in results)
    return kept if isinstance(inputs, tuple | list) else kept[0]


def vjp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """``func(*inputs)``, and ``v`` times its Jacobian: for a tuple of inputs a tuple; zeros where an input does not matter.

    Raises ArgumentError without ``v`` if the result is more than one number.
    """
    out, pull = jitgrad.func.vjp(func, *_taken(inputs))
    pulled = pull(_seeds(v, out, "vjp"))
    return (out if create_graph else _detached(out)), _given_back(pulled, inputs, create_graph)


def jvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """``func(*inputs)``, and its Jacobian times ``v``, which has the shapes of ``inputs``.

    Raises ArgumentError without ``v`` if the input is more than one number.
    """
    given = _taken(inputs)
    out, pushed = jvp_of(func, given, _taken(_seeds(v, inputs, "jvp")))
    return (out, pushed) if create_graph else (_detached(out), _detached(pushed))


def hvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """``func(*inputs)``, one number, and its Hessian times ``v``.

    Raises ArgumentError without ``v`` if the input is more than one number.
    """
    given = _taken(inputs)
    slope = jitgrad.func.grad_and_value(func, argnums=tuple(range(len(given))))

    def gradients(*xs: Any) -> Any:
        grads, value = slope(*xs)
        return grads, value

    _, pushed, value = jvp_of(gradients, given, _taken(_seeds(v, inputs, "hvp")), has_aux=True)
    return (value if create_graph else _detached(value)), _given_back(pushed, inputs, create_graph)


vhp = hvp  # the Hessian is symmetric


def install_derivatives() -> None:
    """Make this module ``jitgrad.autograd.functional`` where it is asked for as an attribute, as torch's programs do.

    jitgrad's own functions of these names, which take other arguments, import theirs from the module of that name.
    """
    jitgrad.autograd.functional = sys.modules[__name__]
