"""custom_vjp: a function whose gradient is another function, as in JAX."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import update_wrapper
from typing import Any, ClassVar

import optree

from jitgrad.autograd.backward_pass import outward
from jitgrad.autograd.replaced_gradient import (
    Forward,
    GradientRule,
    Pull,
    checked_gradient,
    result_places,
    with_gradient,
    without_history,
)
from jitgrad.core.aval import Aval, is_differentiable
from jitgrad.core.context import current_interpreter, grad_enabled
from jitgrad.core.errors import ArgumentError, AutogradError, require_function, shown
from jitgrad.core.origin import Origin
from jitgrad.core.tensor import Tensor
from jitgrad.ops.creation import zeros


class custom_vjp:
    """``f`` with a gradient of its own, which ``defvjp`` gives it::

        @jg.custom_vjp
        def log1pexp(x):
            return jg.log(1 + jg.exp(x))

        def forward(x):
            return log1pexp(x), x  # the result, and what backward needs

        def backward(x, g):
            return (g * (1 - 1 / (1 + jg.exp(x))),)  # a gradient for each argument

        log1pexp.defvjp(forward, backward)

    Arguments and results are pytrees. All three functions are recorded as ordinary ops, also in a compiled function.
    Second derivatives differentiate ``backward``, and the residuals as ``forward`` computes them. Results never share
    memory with arguments. Complex gradients are those of `jitgrad.vjp`, dL/dx + i dL/dy: the conjugates of JAX's.

    Args:
        f: the function; called without keyword-only arguments.
        nondiff_argnums: positions of arguments without a gradient, such as functions and options. ``backward`` gets
            them before its other arguments.
    """

    _given_by: ClassVar[str] = "defvjp(fwd, bwd)"

    def __init__(self, f: Callable[..., Any], nondiff_argnums: int | Sequence[int] = ()) -> None:
        require_function("custom_vjp", f)
        listed = (nondiff_argnums,) if isinstance(nondiff_argnums, int) else tuple(nondiff_argnums)
        if any(k < 0 for k in listed):
            raise ArgumentError(f"custom_vjp: nondiff_argnums are positions from 0 on; got {shown(nondiff_argnums)}")
        update_wrapper(self, f)
        self._f = f
        self._nondiff = frozenset(listed)
        self._forward: Callable[..., Any] | None = None
        self._backward: Callable[..., Any] | None = None
        self._name: str = getattr(f, "__name__", type(f).__name__)
        self._what = f"custom_vjp function {self._name!r} at {Origin.of_code_of(f).full()}"

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        """Give the gradient.

        Args:
            fwd: takes the arguments of the function, and returns ``(result, residuals)``.
            bwd: ``bwd(residuals, g)`` returns a tuple with a gradient, like the argument, for each argument; None, for
                an argument or a leaf of it, is zero. ``g`` is like the result.

        Raises:
            ArgumentError: it has a gradient already.
        """
        if self._forward is not None:
            raise ArgumentError(f"{self._what} has a gradient already: decorate the function anew to give it another one")
        self._forward, self._backward = fwd, bwd

    def called_functions(self) -> tuple[Any, ...]:
        """The functions that a call runs besides the wrapped one; guards look for them."""
        return (self._forward, self._backward)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._forward is None:
            raise AutogradError(f"{self._what} has no gradient yet: call {self._name}.{self._given_by}")
        if kwargs:
            args = self._positional(args, kwargs)
        given = [[x for x in optree.tree_leaves(arg) if isinstance(x, Tensor)] for arg in args]
        differentiable = [x for k, leaves in enumerate(given) if k not in self._nondiff for x in leaves]
        run = Forward(self._what, [x for leaves in given for x in leaves], differentiable)
        if not grad_enabled.get() or not run.inputs:
            leaves, treedef = optree.tree_flatten(self._f(*args))
            run.check(leaves if grad_enabled.get() else ())
            return optree.tree_unflatten(treedef, run.unshared(leaves))
        running = next((r for r in reversed(_running.get()) if r.owner is self), None)
        return self._differentiable(run, args) if running is None else self._within_forward(run, args, running)

    def _positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        try:
            bound = inspect.signature(self._f).bind(*args, **kwargs)
        except TypeError as error:
            raise ArgumentError(f"{self._what}: {error}") from None
        bound.apply_defaults()
        if bound.kwargs:
            raise ArgumentError(f"{self._what}: {', '.join(bound.kwargs)} must be positional: a gradient belongs to a position")
        return bound.args

    def _run_forward(self, args: tuple[Any, ...]) -> tuple[Any, Any, _Running]:
        """(result, residuals) of the forward function, and what it was told of calls of the function itself."""
        assert self._forward is not None
        running = _Running(self)
        token = _running.set((*_running.get(), running))
        try:
            pair = self._forward(*args)
        finally:
            _running.reset(token)
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise AutogradError(f"{self._what}: its forward function must return (result, residuals); it returned {shown(pair)}")
        return pair[0], pair[1], running

    def _differentiable(self, run: Forward, args: tuple[Any, ...]) -> Any:
        """The result of the forward function, with the gradient."""
        result, residuals, running = self._run_forward(args)
        leaves, treedef = optree.tree_flatten(result)
        run.check(leaves)
        places = result_places(leaves)
        own = running.positions([leaves[k] for k in places])
        kept, residual_tree = optree.tree_flatten(residuals)
        from_outs = [own.get(id(x)) for x in kept]
        chosen = [k for k, x in enumerate(kept) if isinstance(x, Tensor) and from_outs[k] is None]
        rest = [None if isinstance(x, Tensor) else x for x in kept]
        pull = _Pull(self, args, leaves, treedef, places)
        depth = _pulling.get().count(self)
        if depth >= MOST_RECORDED and current_interpreter.get().tracing:
            leaves = self._replaced(run.unshared(leaves), places, pull, [], self._of_too_high_order, False, lazy=True)
            return optree.tree_unflatten(treedef, leaves)

        def pulled(g: Sequence[Any], outs: Sequence[Any], read: Sequence[Any]) -> list[Tensor | None]:
            full = [x if k is None else outs[k] for x, k in zip(rest, from_outs, strict=True)]
            for k, x in zip(chosen, read, strict=True):
                full[k] = x
            token = _pulling.set((*_pulling.get(), self))
            try:
                return pull(g, optree.tree_unflatten(residual_tree, full))
            finally:
                _pulling.reset(token)

        reads_outs = any(k is not None for k in from_outs)
        leaves = self._replaced(run.unshared(leaves), places, pull, [kept[k] for k in chosen], pulled, reads_outs, lazy=False)
        return optree.tree_unflatten(treedef, leaves)

    def _of_too_high_order(self, *_given: Any) -> list[Tensor | None]:
        raise AutogradError(
            f"{self._what}: a derivative of order {MOST_RECORDED + 1} in a trace. Its backward function calls the function "
            f"itself, of which a trace has the first {MOST_RECORDED} derivatives"
        )

    def _within_forward(self, run: Forward, args: tuple[Any, ...], running: _Running) -> Any:
        """The function called by its own forward function: the result, whose gradient is prepared when it is needed.

        That is for second derivatives only.
        """
        leaves, treedef = optree.tree_flatten(self._f(*args))
        run.check(leaves)
        places = result_places(leaves)
        given, args_tree = optree.tree_flatten(args)
        chosen = [k for k, x in enumerate(given) if isinstance(x, Tensor)]
        rest = [None if isinstance(x, Tensor) else x for x in given]
        pull = _Pull(self, args, leaves, treedef, places)
        made_in = current_interpreter.get()

        def pulled(g: Sequence[Any], _outs: Any, read: Sequence[Any]) -> list[Tensor | None]:
            if current_interpreter.get() is not made_in:
                raise AutogradError(
                    f"{self._what}: a second derivative, outside of the trace, of residuals that the forward function computes "
                    "from a result of the function itself. Return that result, or compute them without the function"
                )
            full = list(rest)
            for k, x in zip(chosen, read, strict=True):
                full[k] = x
            return pull(g, self._run_forward(optree.tree_unflatten(args_tree, full))[1])

        leaves = self._replaced(run.unshared(leaves), places, pull, [given[k] for k in chosen], pulled, False, lazy=True)
        running.results += [leaves[k] for k in places]
        return optree.tree_unflatten(treedef, leaves)

    def _replaced(
        self, leaves: list[Any], places: list[int], pull: _Pull, residuals: list[Any], pulled: Pull, reads_outs: bool, lazy: bool
    ) -> list[Any]:
        """The results ``leaves``, of which those at ``places`` have the gradient."""
        outs = [leaves[k] for k in places]
        rule = GradientRule(tuple([x.aval for x in outs]), len(pull.inputs), pulled, reads_outs, what=self._what, lazy=lazy)
        results = dict(zip(places, with_gradient(self._name, outs, pull.inputs, residuals, rule) if outs else (), strict=True))
        return [results[k] if k in results else without_history(x) for k, x in enumerate(leaves)]


class _Running:
    """A forward function that runs; ``results`` are those of the function itself, which it has called."""

    def __init__(self, owner: custom_vjp) -> None:
        self.owner = owner
        self.results: list[Tensor] = []

    def positions(self, outs: Sequence[Tensor]) -> dict[int, int]:
        """Which of ``outs`` a result is, by its id."""
        known = {id(x) for x in self.results}
        return {id(x): k for k, x in enumerate(outs) if id(x) in known}


# A trace records backward functions at once. One that calls the function itself would be recorded within itself, for
# derivatives of any order: so many are there.
MOST_RECORDED = 4
_pulling: ContextVar[tuple[custom_vjp, ...]] = ContextVar("recorded_backward_functions", default=())
_running: ContextVar[tuple[_Running, ...]] = ContextVar("running_forward_functions", default=())


class _Pull:
    """The backward function of one call, from the flat gradients of the results to those of ``inputs``."""

    def __init__(
        self, owner: custom_vjp, args: tuple[Any, ...], leaves: Sequence[Any], treedef: Any, places: Sequence[int]
    ) -> None:
        self.owner = owner
        self.avals = [x.aval if isinstance(x, Tensor) else None for x in leaves]
        self.treedef = treedef
        self.places = places
        self.nondiff = [args[k] for k in sorted(owner._nondiff) if k < len(args)]
        self.trees: list[Any] = []
        self.wanted: list[list[Aval | None]] = []  # of the leaves of each argument with gradients
        self.numbers: list[int] = []  # positions of these arguments
        self.inputs: list[Tensor] = []
        for k, arg in enumerate(args):
            if k in owner._nondiff:
                continue
            leaves, tree = optree.tree_flatten(arg, none_is_leaf=True)
            chosen = [x if _has_gradient(x) else None for x in leaves]
            self.inputs += [x for x in chosen if x is not None]
            self.numbers.append(k)
            self.trees.append(tree)
            self.wanted.append([None if x is None else x.aval for x in chosen])

    def __call__(self, g: Sequence[Any], residuals: Any) -> list[Tensor | None]:
        arrived = dict(zip(self.places, map(outward, g), strict=True))
        full = [
            arrived[k] if k in arrived else None if a is None else zeros(a.shape, dtype=a.dtype)
            for k, a in enumerate(self.avals)
        ]
        backward = self.owner._backward
        assert backward is not None
        grads = backward(*self.nondiff, residuals, optree.tree_unflatten(self.treedef, full))
        what = f"the backward function of {self.owner._what}"
        if not isinstance(grads, (tuple, list)) or len(grads) != len(self.trees):
            returned = f"{len(grads)} gradients" if isinstance(grads, (tuple, list)) else shown(grads)
            raise AutogradError(
                f"{what} returned {returned}: expected a tuple of {len(self.trees)}, one for each argument that is not in "
                "nondiff_argnums"
            )
        found: list[Tensor | None] = []
        for number, tree, wanted, grad in zip(self.numbers, self.trees, self.wanted, grads, strict=True):
            leaves = [None] * len(wanted) if grad is None else _matched(what, number, tree, grad)
            found += [
                checked_gradient(what, f"argument {number}", gx, aval)
                for gx, aval in zip(leaves, wanted, strict=True)
                if aval is not None
            ]
        return [None if gx is None else outward(gx) for gx in found]


def _has_gradient(x: Any) -> bool:
    return isinstance(x, Tensor) and x._requires_grad and is_differentiable(x.dtype)


def _matched(what: str, number: int, tree: Any, grad: Any) -> list[Any]:
    """The parts of ``grad`` for the leaves of argument ``number``. Raises AutogradError if it has another structure."""
    try:
        return list(tree.flatten_up_to(grad))
    except (TypeError, ValueError) as error:
        raise AutogradError(
            f"{what} returned a gradient of another structure than argument {number}, which is {tree}: {error}"
        ) from None
