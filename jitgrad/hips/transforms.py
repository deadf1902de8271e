"""HIPS autograd's transforms: the function and the number of its argument make a function of the arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

import optree

from jitgrad.autograd.functional import grad as grad_of
from jitgrad.autograd.functional import hvp as hvp_of
from jitgrad.autograd.functional import jvp as jvp_of
from jitgrad.autograd.functional import positions_of
from jitgrad.autograd.functional import vjp as vjp_of
from jitgrad.batching import jacobians
from jitgrad.core.errors import ArgumentError, require_function, shown
from jitgrad.ops.creation import asarray, ones_like
from jitgrad.ops.operand import is_number

Transform = Callable[..., Any]


def _of_argument(what: str, fun: Callable[..., Any], argnum: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``fun`` as a function of argument ``argnum`` alone, and that argument."""
    require_function(what, fun)
    (k,) = positions_of(what, argnum, len(args))

    def of_one(x: Any) -> Any:
        return fun(*args[:k], x, *args[k + 1 :], **kwargs)

    return of_one, args[k]


def make_vjp(fun: Callable[..., Any], argnum: int = 0) -> Transform:
    """A function of the arguments that gives ``(vjp, fun(*args))``: ``vjp(g)`` is the gradient of argument ``argnum``."""

    @wraps(fun)
    def vjp_maker(*args: Any, **kwargs: Any) -> tuple[Callable[[Any], Any], Any]:
        out, pull = vjp_of(*_of_argument("make_vjp", fun, argnum, args, kwargs))
        return lambda g: pull(g)[0], out

    return vjp_maker


def make_jvp(fun: Callable[..., Any], argnum: int = 0) -> Transform:
    """A function of the arguments that gives ``jvp``: ``jvp(v)`` is ``(fun(*args), derivative in direction v)``."""

    @wraps(fun)
    def jvp_maker(*args: Any, **kwargs: Any) -> Callable[[Any], Any]:
        of_one, x = _of_argument("make_jvp", fun, argnum, args, kwargs)
        return lambda v: jvp_of(of_one, (x,), (v,))

    return jvp_maker


def elementwise_grad(fun: Callable[..., Any], argnum: int = 0) -> Transform:
    """The gradient of the sum of the results: that of each element, where each result depends on one element."""

    @wraps(fun)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        out, pull = vjp_of(*_of_argument("elementwise_grad", fun, argnum, args, kwargs))
        return pull(optree.tree_map(ones_like, out))[0]

    return gradient


def deriv(fun: Callable[..., Any], argnum: int = 0) -> Transform:
    """The derivative by an argument of one element, of results of any shape."""

    @wraps(fun)
    def derivative(*args: Any, **kwargs: Any) -> Any:
        of_one, x = _of_argument("deriv", fun, argnum, args, kwargs)
        ones = optree.tree_map(lambda leaf: 1.0 if is_number(leaf) else ones_like(asarray(leaf)), x)
        return jvp_of(of_one, (x,), (ones,))[1]

    return derivative


def jacobian(fun: Callable[..., Any], argnum: int = 0) -> Transform:
    """The Jacobian [*result, *argument]; see `jitgrad.jacobian`."""
    return jacobians.jacobian(fun, argnum)


def hessian(fun: Callable[..., Any], argnum: int = 0) -> Transform:
    """The Hessian of ``fun``: the Jacobian of the Jacobian, [*result, *argument, *argument]."""
    return jacobians.jacobian(jacobians.jacobian(fun, argnum), argnum)


def make_hvp(fun: Callable[..., Any], argnum: int = 0) -> Transform:
    """A function of the arguments that gives ``(hvp, gradient)``: ``hvp(v)`` is the Hessian times ``v``."""
    return make_vjp(grad_of(fun, argnum), argnum)


def hessian_tensor_product(fun: Callable[..., Any], argnum: int = 0) -> Transform:
    """A function of the arguments and a last one like argument ``argnum``: the Hessian times that."""

    @wraps(fun)
    def product(*args_and_vector: Any, **kwargs: Any) -> Any:
        *args, v = args_and_vector
        of_one, x = _of_argument("hessian_tensor_product", fun, argnum, tuple(args), kwargs)
        return hvp_of(of_one, (x,), (v,))[0]

    return product


def tensor_jacobian_product(fun: Callable[..., Any], argnum: int = 0) -> Transform:
    """A function of the arguments and a last one like the result: that times the Jacobian."""

    @wraps(fun)
    def product(*args_and_vector: Any, **kwargs: Any) -> Any:
        *args, v = args_and_vector
        return make_vjp(fun, argnum)(*args, **kwargs)[0](v)

    return product


def _half_square(x: Any) -> Any:
    return 0.5 * (x * x).sum()


def make_ggnvp(f: Callable[..., Any], g: Callable[..., Any] = _half_square, f_argnum: int = 0) -> Transform:
    """A function of the arguments of ``f`` that gives ``v -> J^T H J v``, of the Jacobian of ``f`` and the Hessian of ``g``."""

    @wraps(f)
    def ggnvp_maker(*args: Any, **kwargs: Any) -> Callable[[Any], Any]:
        pull, out = make_vjp(f, f_argnum)(*args, **kwargs)
        push = make_jvp(f, f_argnum)(*args, **kwargs)
        return lambda v: pull(hvp_of(g, (out,), (push(v)[1],))[0])

    return ggnvp_maker


def grad_and_aux(fun: Callable[..., Any], argnum: int = 0) -> Transform:
    """``(gradient, aux)`` of a function that returns ``(loss, aux)``."""
    return grad_of(fun, argnum, has_aux=True)


def grad_named(fun: Callable[..., Any], argname: str) -> Transform:
    """The gradient by the argument of this name. Raises ArgumentError if there is none."""
    names = list(inspect.signature(fun).parameters)
    if argname not in names:
        raise ArgumentError(f"grad_named: {getattr(fun, '__name__', fun)} has no argument {shown(argname)}; it has {names}")
    return grad_of(fun, names.index(argname))


hessian_vector_product: Callable[..., Transform] = hessian_tensor_product
vector_jacobian_product: Callable[..., Transform] = tensor_jacobian_product
