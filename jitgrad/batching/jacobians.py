"""Jacobians and Hessians: derivatives in the directions of all unit vectors at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import optree

from jitgrad.autograd.functional import Argnums, grad, jvp, named_vjp, positions_of
from jitgrad.autograd.level import tensors_of
from jitgrad.batching.vmap import vmap
from jitgrad.core.errors import AutogradError, require_function
from jitgrad.core.tensor import Tensor
from jitgrad.ops.creation import asarray, eye, zeros_like
from jitgrad.ops.movement import moveaxis, reshape
from jitgrad.ops.placement import beside


def _of_arguments(
    what: str, func: Callable[..., Any], argnums: Argnums, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """``func`` as a function of the arguments ``argnums`` alone, and those arguments."""
    positions = positions_of(what, argnums, len(args))

    def of_chosen(*chosen: Any) -> Any:
        full = list(args)
        for k, x in zip(positions, chosen, strict=True):
            full[k] = x
        return func(*full, **kwargs)

    return of_chosen, tuple(args[k] for k in positions)


def _unit_vectors(x: Tensor) -> Tensor:
    """[x.size, *x.shape]: for each element an array like ``x`` with 1 there and 0 elsewhere."""
    with beside(x):
        return reshape(eye(x.size, dtype=x.dtype), (x.size, *x.shape))


def jacobian(f: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns the Jacobian: for each result leaf, for each input leaf, shape
    ``out.shape + in.shape``.

    The structure is that of ``f``'s result, with the structure of the argument(s) in place of every leaf. One backward
    pass computes it, on a gradient for each element of the result (`jitgrad.vmap`). So it suits results that are not much
    larger than the arguments; for others there is ``jitgrad.func.jacfwd``. With ``has_aux``, ``f`` returns
    ``(result, aux)``, and the function ``(jacobian, aux)``.

    Raises:
        DtypeError: a leaf of the argument, or of the result, is not floating.
    """

    require_function("jacobian", f)

    @wraps(f)
    def jacobian_of_f(*args: Any, **kwargs: Any) -> Any:
        of_chosen, chosen = _of_arguments("jacobian", f, argnums, args, kwargs)
        out, pull, *aux = named_vjp("jacobian", of_chosen, chosen, has_aux)
        outs, out_tree = tensors_of("jacobian", out)
        blocks = []
        for k, y in enumerate(outs):
            if y.dtype.kind == "c":
                raise AutogradError(f"jacobian: a result is complex, {y.aval}; take that of its .real and of its .imag")

            def row(seed: Tensor, k: int = k) -> Any:
                seeds = [seed if j == k else zeros_like(other) for j, other in enumerate(outs)]
                return pull(optree.tree_unflatten(out_tree, seeds))

            rows = vmap(row)(_unit_vectors(y))
            block: Any = optree.tree_map(lambda g, y=y: reshape(g, (*y.shape, *g.shape[1:])), rows)
            blocks.append(block[0] if isinstance(argnums, int) else block)
        result = optree.tree_unflatten(out_tree, blocks)
        return (result, *aux) if has_aux else result

    return jacobian_of_f


def jacfwd(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Callable[..., Any]:
    """A function that returns the Jacobian of ``func`` by forward derivatives in the directions of all elements of the
    argument at once, so it suits arguments that are not much larger than the results.

    ``randomness`` is that of `jitgrad.vmap`; "same" is what a derivative means. With ``has_aux`` it returns
    ``(jacobian, aux)``.
    """

    @wraps(func)
    def jacobian_of_func(*args: Any, **kwargs: Any) -> Any:
        f, chosen = _of_arguments("jacfwd", func, argnums, args, kwargs)
        leaves, treedef = optree.tree_flatten(chosen)
        primals = [asarray(x) for x in leaves]
        columns, out_tree, aux = [], None, None
        for k in range(len(primals)):
            tangents, aux = _derivatives(f, primals, treedef, k, has_aux, randomness)
            column, out_tree = optree.tree_flatten(tangents)
            columns.append(column)
        blocks = [optree.tree_unflatten(treedef, list(row)) for row in zip(*columns, strict=True)]
        if isinstance(argnums, int):
            blocks = [block[0] for block in blocks]
        result = optree.tree_unflatten(out_tree, blocks)
        return (result, aux) if has_aux else result

    return jacobian_of_func


def _derivatives(
    f: Callable[..., Any], primals: Sequence[Tensor], treedef: Any, k: int, has_aux: bool, randomness: str
) -> tuple[Any, Any]:
    """The results' derivatives by each element of ``primals[k]``, whose axes come last, and what else ``f`` returns."""

    def along(direction: Tensor) -> Any:
        tangents = [direction if j == k else zeros_like(x) for j, x in enumerate(primals)]
        trees = optree.tree_unflatten(treedef, list(primals)), optree.tree_unflatten(treedef, tangents)
        _, tangent, *aux = jvp(f, *trees, has_aux=has_aux)
        return tangent, aux

    x = primals[k]
    tangents, aux = vmap(along, out_axes=(0, None), randomness=randomness)(_unit_vectors(x))
    by_element = optree.tree_map(lambda t: reshape(moveaxis(t, 0, -1), (*t.shape[1:], *x.shape)), tangents)
    return by_element, aux[0] if has_aux else None


def hessian(f: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """A function that returns the Hessian of the scalar function ``f``."""
    return jacobian(grad(f, argnums), argnums)
