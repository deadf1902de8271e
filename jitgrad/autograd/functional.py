"""Functional transforms over pytrees, which nest: grad, vjp, jvp, hvp."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import optree

from jitgrad.autograd.backward import gradients
from jitgrad.autograd.level import Level, same_memory, scalar_of, tensors_of
from jitgrad.autograd.modes import enable_grad
from jitgrad.core.context import grad_enabled
from jitgrad.core.errors import ArgumentError, AutogradError, ShapeError, require_function, shown
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import astype
from jitgrad.ops.creation import asarray, ones_like, zeros_like

Argnums = int | Sequence[int]


def value_and_grad(f: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns ``(f(*args), gradient)``.

    The gradient has the structure of argument ``argnums`` (any pytree of float tensors, arrays or
    numbers); for a sequence of argnums it is a tuple. ``f`` returns one float element; with
    ``has_aux`` a pair ``(loss, aux)``, and the result is ``((loss, aux), gradient)``. No ``.grad``
    changes.

    Raises:
        AutogradError: ``f`` returns another result.
        DtypeError: a leaf of the argument is not floating.
    """

    return _value_and_grad("value_and_grad", f, argnums, has_aux)


def _value_and_grad(what: str, f: Callable[..., Any], argnums: Argnums, has_aux: bool) -> Callable[..., Any]:
    """:func:`value_and_grad`, whose errors name ``what``."""
    require_function(what, f)

    @wraps(f)
    def with_gradient(*args: Any, **kwargs: Any) -> Any:
        level = Level()
        full, chosen, treedef = _enter(level, what, args, argnums)
        result = level.call(f, full, kwargs)
        loss = scalar_of(what, _first_of_pair(result) if has_aux else result)
        level.look_outside(x for x in optree.tree_leaves(result) if isinstance(x, Tensor))
        seed = ones_like(same_memory(loss))
        leaves = level.pull([loss], [seed], retain=level.nested, create=level.nested)
        grads = optree.tree_unflatten(treedef, leaves)
        return level.leave(result), grads if chosen is None else tuple(grads)

    return with_gradient


def grad(f: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns the gradient of ``f`` alone (with ``has_aux``: ``(gradient, aux)``).

    See :func:`value_and_grad`; ``grad(grad(f))`` is the second derivative.
    """
    both = _value_and_grad("grad", f, argnums, has_aux)

    @wraps(f)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, grads = both(*args, **kwargs)
        return (grads, value[1]) if has_aux else grads

    return gradient


def _first_of_pair(result: Any) -> Any:
    return _pair(result)[0]


def _pair(result: Any) -> tuple[Any, Any]:
    if not isinstance(result, tuple) or len(result) != 2:
        raise AutogradError(
            f"has_aux=True: the function must return (result, aux); it returned a {type(result).__name__}"
        )
    return result


def positions_of(what: str, argnums: Argnums, count: int) -> list[int]:
    """Which of ``count`` arguments ``argnums`` names, without negative numbers.

    Raises:
        ArgumentError: it names none or one twice, or is neither an int nor several.
    """
    listed = list(argnums) if isinstance(argnums, Sequence) and not isinstance(argnums, str) else [argnums]
    for k in listed:
        if not isinstance(k, int) or isinstance(k, bool):
            raise ArgumentError(f"{what}: argnums={shown(argnums)}: expected the position of an argument, or a tuple of them")
        if not -count <= k < count:
            raise ArgumentError(f"{what}: argnums={argnums}, but the function was called with {count} arguments, counted from 0")
    positions = [k % count for k in listed]
    if len(set(positions)) != len(positions):
        raise ArgumentError(f"{what}: argnums={argnums} names an argument twice")
    return positions


def _enter(level: Level, what: str, args: tuple[Any, ...], argnums: Argnums) -> tuple[list[Any], Any, Any]:
    """(``args`` with fresh inputs at ``argnums``, None for a single argnum or their list, structure
    of the inputs)."""
    single = isinstance(argnums, int)
    positions = positions_of(what, argnums, len(args))
    fresh = level.enter([args[k] for k in positions], what)
    full = list(args)
    for k, x in zip(positions, fresh, strict=True):
        full[k] = x
    structure: Any = optree.tree_structure(fresh[0] if single else tuple(fresh))
    return full, None if single else positions, structure


def _match(what: str, tree: Any, like: Sequence[Tensor], treedef: Any) -> list[Tensor]:
    """The leaves of ``tree``, checked against the structure, shapes and dtypes of ``like``."""
    leaves, structure = optree.tree_flatten(tree)
    if structure != treedef:
        raise ArgumentError(f"{what}: expected the structure {treedef}, got {structure}")
    tensors = [asarray(x, dtype=y.dtype) if not isinstance(x, Tensor) else x for x, y in zip(leaves, like, strict=True)]
    for x, y in zip(tensors, like, strict=True):
        if x.shape != y.shape:
            raise ShapeError(f"{what}: expected {y.aval}, got {x.aval}")
    return [x if x.dtype == y.dtype else astype(x, y.dtype) for x, y in zip(tensors, like, strict=True)]


def vjp(f: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """``(f(*primals), vjp_fn)``; ``vjp_fn(cotangents)`` gives a tuple with one gradient per primal.

    ``cotangents`` has the structure, shapes and dtypes of ``f``'s result. ``vjp_fn`` may be called
    any number of times. With ``has_aux``, ``f`` returns ``(result, aux)``, and ``vjp`` returns
    ``(result, vjp_fn, aux)``.
    """
    return named_vjp("vjp", f, primals, has_aux)


def named_vjp(what: str, f: Callable[..., Any], primals: tuple[Any, ...], has_aux: bool) -> Any:
    """:func:`vjp`, whose errors name ``what``."""
    require_function(what, f)
    level = Level()
    returned = level.call(f, level.enter(primals, what), {})
    out, aux = _pair(returned) if has_aux else (returned, None)
    outs, out_tree = tensors_of(what, out)
    level.look_outside(outs)
    in_tree: Any = optree.tree_structure(primals)

    def vjp_fn(cotangents: Any) -> tuple[Any, ...]:
        seeds = _match(what, cotangents, outs, out_tree)
        create = grad_enabled.get() and (level.nested or any(seed._requires_grad for seed in seeds))
        pulled = level.pull(outs, seeds, retain=True, create=create)
        grads: tuple[Any, ...] = optree.tree_unflatten(in_tree, pulled)
        return grads

    return (level.leave(out), vjp_fn, level.leave(aux)) if has_aux else (level.leave(out), vjp_fn)


def _as_arguments(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def jvp(f: Callable[..., Any], primals: Any, tangents: Any, *, has_aux: bool = False) -> Any:
    """``(f(*primals), tangent_out)``: ``f`` and its derivative in direction ``tangents``.

    ``primals`` and ``tangents`` are tuples with one item per argument. With ``has_aux``, ``f``
    returns ``(result, aux)``, and ``jvp`` returns ``(result, tangent_out, aux)``. The vjp is linear in its
    cotangent u, and its transpose is the jvp, so two reverse passes give it (J. Townsend, "A new
    trick for calculating Jacobian vector products", 2017).
    """
    primals, tangents = _as_arguments(primals), _as_arguments(tangents)
    level = Level()
    returned = level.call(f, level.enter(primals, "jvp"), {})
    out, aux = _pair(returned) if has_aux else (returned, None)
    outs, out_tree = tensors_of("jvp", out)
    directions = _match("jvp", tangents, level.inputs, optree.tree_structure(primals))
    level.look_outside([*outs, *directions])
    cotangents = [zeros_like(same_memory(x)).requires_grad_() for x in outs]
    with enable_grad():
        pulled = level.pull_sparse(outs, cotangents, retain=True, create=True)
    rows = [(g, v) for g, v in zip(pulled, directions, strict=True) if g is not None]
    tangent_outs = gradients(
        [g for g, _ in rows],
        [v for _, v in rows],
        cotangents,
        retain_graph=level.nested,
        create_graph=level.nested,
        since=level.since,
    )
    result = [zeros_like(same_memory(x)) if t is None else t for x, t in zip(outs, tangent_outs, strict=True)]
    tangent_out = level.leave(optree.tree_unflatten(out_tree, result))
    return (level.leave(out), tangent_out, level.leave(aux)) if has_aux else (level.leave(out), tangent_out)


def hvp(f: Callable[..., Any], primals: Any, tangents: Any) -> Any:
    """The Hessian of the scalar function ``f`` times ``tangents``, without forming it.

    ``primals`` and ``tangents`` are tuples with one item per argument, and so is the result; a
    single argument may be given without a tuple, as is then the result. It is the gradient of <grad
    f, tangents> (B. Pearlmutter, "Fast exact multiplication by the Hessian", 1994).
    """
    bare = not isinstance(primals, (tuple, list))
    primals, tangents = _as_arguments(primals), _as_arguments(tangents)
    level = Level()
    loss = scalar_of("hvp", level.call(f, level.enter(primals, "hvp"), {}))
    treedef = optree.tree_structure(primals)
    directions = _match("hvp", tangents, level.inputs, treedef)
    level.look_outside([loss, *directions])
    with enable_grad():
        seed = ones_like(same_memory(loss))
        first = level.pull_sparse([loss], [seed], retain=True, create=True)
    rows = [(g, v) for g, v in zip(first, directions, strict=True) if g is not None]
    products = level.pull([g for g, _ in rows], [v for _, v in rows], retain=level.nested, create=level.nested)
    result = level.leave(optree.tree_unflatten(treedef, products))
    return result[0] if bare else result
