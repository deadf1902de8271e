"""Hooks on the gradients of a module: one identity before its forward and one after it, whose gradients call them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jitgrad.autograd.backward_pass import outward
from jitgrad.autograd.replaced_gradient import GradientRule, Pull, checked_gradient, with_gradient
from jitgrad.core.aval import is_differentiable
from jitgrad.core.context import current_interpreter, grad_enabled
from jitgrad.core.errors import ArgumentError, AutogradError, shown
from jitgrad.core.tensor import Tensor

Gradients = tuple[Tensor | None, ...]


class BackwardHooks:
    """The hooks of one call of ``module``: ``before`` get the gradients of its results, ``after`` those of its arguments
    as well."""

    def __init__(self, module: Any, before: Sequence[Callable[..., Any]], after: Sequence[Callable[..., Any]]) -> None:
        self.module: Any = module
        self.before: tuple[Callable[..., Any], ...] = (*before,)
        self.after: tuple[Callable[..., Any], ...] = (*after,)
        self.place: Any = current_interpreter.get()
        self.of_results: Gradients | None = None  # from the pass through the results to that through the arguments
        self.number_of_arguments: int = 0
        self.at_arguments: bool = False  # whether a gradient goes on to an argument

    def arguments(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """``args``, of which tensors that require grad report the gradients that come from this module alone."""
        self.number_of_arguments = len(args)
        places = _with_gradient_at(args)
        self.at_arguments = bool(places) and bool(self.after)
        if not self.at_arguments:
            return args

        def pulled(g: Sequence[Any], _outs: Any, _residuals: Any) -> list[Tensor | None]:
            grads = _spread(g, places, len(args))
            if self.of_results is not None:  # else a derivative of a gradient, which comes here alone: no hooks in torch
                grads = self._call_after(grads)
            return self._chosen(grads, places, args)

        return self._identity(args, places, pulled)

    def results(self, result: Any) -> Any:
        """``result``, a tensor or a tuple or list with tensors, whose gradients pass the hooks.

        Raises ArgumentError for other results.
        """
        if not isinstance(result, (Tensor, tuple, list)):
            raise ArgumentError(
                f"a full backward hook of {type(self.module).__name__}: its forward returned {shown(result)}; it must be a "
                "tensor, or a tuple of them"
            )
        outs = (result,) if isinstance(result, Tensor) else (*result,)
        places = _with_gradient_at(outs)
        if not places:
            return result

        def pulled(g: Sequence[Any], _outs: Any, _residuals: Any) -> list[Tensor | None]:
            grads = self._call_before(_spread(g, places, len(outs)))
            self.of_results = grads
            if not self.at_arguments:
                self._call_after((None,) * self.number_of_arguments)
            return self._chosen(grads, places, outs)

        watched = self._identity(outs, places, pulled)
        if isinstance(result, Tensor):
            return watched[0]
        return type(result)(*watched) if hasattr(result, "_fields") else type(result)(watched)

    def _identity(self, xs: tuple[Any, ...], places: list[int], pull: Pull) -> tuple[Any, ...]:
        chosen = [xs[k] for k in places]
        name = type(self.module).__name__
        rule = GradientRule(tuple([x.aval for x in chosen]), len(chosen), pull, fill=False, what=name, lazy=True)
        new = [*xs]
        for k, x in zip(places, with_gradient(name, chosen, chosen, (), rule), strict=True):
            new[k] = x
        return (*new,)

    def _call_before(self, grads: Gradients) -> Gradients:
        self._check_place()
        for hook in self.before:
            if (new := hook(self.module, grads)) is not None:
                grads = self._replaced(new, grads)
        return grads

    def _call_after(self, grads: Gradients) -> Gradients:
        self._check_place()
        of_results, self.of_results = self.of_results, None
        for hook in self.after:
            if (new := hook(self.module, grads, of_results)) is not None:
                grads = self._replaced(new, grads)
        return grads

    def _check_place(self) -> None:
        if current_interpreter.get() is not self.place:
            raise AutogradError(
                f"a full backward hook of {type(self.module).__name__} runs with backward, which belongs into the @jit function "
                "that runs forward; or leave forward out of @jit as well"
            )

    def _replaced(self, new: Any, grads: Gradients) -> Gradients:
        listed = (*new,) if isinstance(new, (tuple, list)) else (new,)
        if len(listed) != len(grads):
            raise AutogradError(
                f"a full backward hook of {type(self.module).__name__} returned {len(listed)} gradients in place of {len(grads)}"
            )
        return listed

    def _chosen(self, grads: Gradients, places: list[int], xs: tuple[Any, ...]) -> list[Tensor | None]:
        what = f"a full backward hook of {type(self.module).__name__}"
        checked = [checked_gradient(what, f"tensor {k}", grads[k], xs[k].aval) for k in places]
        return [None if g is None else outward(g) for g in checked]


def _with_gradient_at(xs: Sequence[Any]) -> list[int]:
    """The positions of tensors of ``xs`` that gradients reach."""
    if not grad_enabled.get():
        return []
    return [k for k, x in enumerate(xs) if isinstance(x, Tensor) and x._requires_grad and is_differentiable(x.dtype)]


def _spread(g: Sequence[Any], places: list[int], length: int) -> Gradients:
    """``g`` at ``places``, as users see gradients, and None elsewhere."""
    grads: list[Tensor | None] = [None] * length
    for k, gx in zip(places, g, strict=True):
        grads[k] = None if gx is None else outward(gx)
    return (*grads,)
