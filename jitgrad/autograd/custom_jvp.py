"""custom_jvp: a function whose derivative in a direction is another function, as in JAX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any, ClassVar

import optree

from jitgrad.autograd.custom_vjp import custom_vjp
from jitgrad.autograd.functional import vjp
from jitgrad.core.aval import Aval, is_differentiable
from jitgrad.core.errors import ArgumentError, AutogradError, ShapeError, require_function, shown
from jitgrad.core.origin import Origin
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import astype
from jitgrad.ops.creation import asarray, zeros_like


class custom_jvp(custom_vjp):
    """``f`` with a derivative of its own, which ``defjvp`` gives it::

        @jg.custom_jvp
        def log1pexp(x):
            return jg.log(1 + jg.exp(x))

        @log1pexp.defjvp
        def derivative(primals, tangents):
            (x,), (t,) = primals, tangents
            return log1pexp(x), t / (1 + jg.exp(-x))  # the result, and its derivative in the direction t

    Arguments and results are pytrees. The gradient is the transpose of the derivative, which must be linear in the
    tangents: it is that of ``derivative`` by the tangents, and second derivatives differentiate ``derivative`` by the
    primals. `jitgrad.grad`, `jvp`, `vmap` and compiled functions take it like any other.

    Args:
        f: the function; called without keyword-only arguments.
        nondiff_argnums: positions of arguments without a derivative, such as functions and options. The derivative
            function gets them before the primals.
    """

    _given_by: ClassVar[str] = "defjvp(jvp)"

    def __init__(self, f: Callable[..., Any], nondiff_argnums: int | Sequence[int] = ()) -> None:
        require_function("custom_jvp", f)
        super().__init__(f, nondiff_argnums)
        update_wrapper(self, f)
        self._what = f"custom_jvp function {self._name!r} at {Origin.of_code_of(f).full()}"
        self._rule: Callable[..., Any] | None = None

    def defjvp(self, jvp: Callable[..., Any], symbolic_zeros: bool = False) -> Callable[..., Any]:
        """Give the derivative ``jvp(primals, tangents) -> (result, tangent of the result)``, which is returned.

        Tangents have the structure of the arguments. Those of arguments without a derivative, such as integers, are
        zeros. ``symbolic_zeros`` is JAX's, and must be false.

        Raises:
            ArgumentError: there is a derivative already, or symbolic_zeros=True.
        """
        if symbolic_zeros:
            raise ArgumentError(f"{self._what}: symbolic_zeros=True has no meaning here: zeros are tensors of zeros")
        if self._rule is not None:
            raise ArgumentError(f"{self._what} has a derivative already: decorate the function anew to give it another one")
        require_function("defjvp", jvp)
        self._rule = jvp
        self.defvjp(lambda *args: (self._f(*args), args), self._pulled_back)
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Give for each argument ``jvp(tangent, result, *args)``: its part of the tangent of the result; None for zero.

        Raises:
            ArgumentError: there is a derivative already, or nondiff_argnums.
        """
        if self._nondiff:
            raise ArgumentError(f"{self._what}: defjvps has a function for each argument; use defjvp with nondiff_argnums")

        def derivative(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
            if len(jvps) != len(primals):
                raise ArgumentError(f"{self._what}: defjvps got {len(jvps)} functions for {len(primals)} arguments")
            result = self(*primals)
            parts = [f(t, result, *primals) for f, t in zip(jvps, tangents, strict=True) if f is not None]
            if not parts:
                return result, optree.tree_map(lambda x: zeros_like(asarray(x)), result)
            return result, optree.tree_map(lambda *leaves: sum(leaves[1:], start=leaves[0]), *parts)

        self.defjvp(derivative)

    def called_functions(self) -> tuple[Any, ...]:
        """The functions that a call runs besides the wrapped one; guards look for them."""
        return (self._rule,)

    def _pulled_back(self, *given: Any) -> tuple[Any, ...]:
        """The backward function: the derivative is linear in the tangents, and its transpose the gradient."""
        *options, args, g = given
        primals = tuple([x for k, x in enumerate(args) if k not in self._nondiff])
        leaves, tree = optree.tree_flatten(primals)
        active = [k for k, x in enumerate(leaves) if isinstance(x, Tensor) and is_differentiable(x.dtype)]
        still = [x if k in active else zeros_like(asarray(x)) for k, x in enumerate(leaves)]
        arrived = [x for x in optree.tree_leaves(g) if isinstance(x, Tensor) and is_differentiable(x.dtype)]

        def pushed(*tangents: Any) -> list[Any]:
            directions = list(still)
            for k, t in zip(active, tangents, strict=True):
                directions[k] = t
            return self._tangents_of_results(options, primals, optree.tree_unflatten(tree, directions), arrived)

        _, pull = vjp(pushed, *[zeros_like(leaves[k]) for k in active])
        grads: list[Any] = [None] * len(leaves)
        for k, gx in zip(active, pull(arrived), strict=True):
            grads[k] = gx
        return tuple(self._by_argument(primals, grads))

    @staticmethod
    def _by_argument(primals: tuple[Any, ...], grads: list[Any]) -> list[Any]:
        """The flat gradients as pytrees like the arguments."""
        found, k = [], 0
        for x in primals:
            tree = optree.tree_structure(x)
            found.append(optree.tree_unflatten(tree, grads[k : k + tree.num_leaves]))
            k += tree.num_leaves
        return found

    def _tangents_of_results(
        self, options: list[Any], primals: tuple[Any, ...], tangents: Any, like: Sequence[Tensor]
    ) -> list[Tensor]:
        """The tangents of the results that have a gradient, which are ``like``."""
        assert self._rule is not None
        pair = self._rule(*options, primals, tangents)
        what = f"the derivative of {self._what}"
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise AutogradError(f"{what} must return (result, tangent of the result); it returned {shown(pair)}")
        out, tree = optree.tree_flatten(pair[0])
        try:
            outgoing = tree.flatten_up_to(pair[1])
        except ValueError as error:
            raise AutogradError(f"{what} returned a tangent of another structure than its result, {tree}: {error}") from None
        chosen = [t for x, t in zip(out, outgoing, strict=True) if is_differentiable(asarray(x).dtype)]
        if len(chosen) != len(like):
            raise AutogradError(f"{what} returned {len(chosen)} results with a gradient, and the function {len(like)}")
        return [_fitting(what, t, x.aval) for t, x in zip(chosen, like, strict=True)]


def _fitting(what: str, tangent: Any, aval: Aval) -> Tensor:
    if isinstance(tangent, (list, tuple, dict)):
        raise AutogradError(f"{what} returned {shown(tangent)} as the tangent of a result {aval}: expected a tensor")
    t = asarray(tangent)
    if t.shape != aval.shape:
        raise ShapeError(f"{what} returned a tangent {t.aval} for a result {aval}: their shapes must be equal")
    return t if t.dtype == aval.dtype else astype(t, aval.dtype)
