"""Function: a function with a gradient of its own, as torch.autograd.Function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jitgrad.autograd.backward_pass import outward
from jitgrad.autograd.replaced_gradient import (
    Forward,
    GradientRule,
    checked_gradient,
    result_places,
    with_gradient,
    without_history,
)
from jitgrad.core.aval import is_differentiable
from jitgrad.core.context import grad_enabled
from jitgrad.core.errors import ArgumentError, AutogradError, InPlaceError, shown
from jitgrad.core.origin import Origin
from jitgrad.core.tensor import Tensor
from jitgrad.ops.creation import zeros


class FunctionContext:
    """What ``forward`` tells ``backward``; attributes may be set on it at will.

    Attributes:
        needs_input_grad: a bool for each argument of ``apply``.
    """

    needs_input_grad: tuple[bool, ...]

    def __init__(self, what: str, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad
        self._what = what
        self._to_save: tuple[Any, ...] = ()
        self._saved: tuple[Any, ...] | None = None
        self._without_gradient: tuple[Any, ...] = ()
        self._fill = True

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep ``tensors`` for ``saved_tensors``; backward raises InPlaceError if one was changed in place.

        Raises:
            ArgumentError: one is no tensor.
        """
        for x in tensors:
            if x is not None and not isinstance(x, Tensor):
                raise ArgumentError(f"{self._what}: save_for_backward takes tensors and None, got {shown(x)}: set an attribute")
        self._to_save = tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What was saved; in ``backward``. Derivatives of it flow as they do from the tensors that were saved."""
        if self._saved is None:
            raise AutogradError(f"{self._what}: saved_tensors are there in backward only")
        return self._saved

    def mark_non_differentiable(self, *results: Tensor) -> None:
        """These results of ``forward`` get no gradient."""
        self._without_gradient = results

    def set_materialize_grads(self, value: bool) -> None:
        """Whether ``backward`` gets zeros (True) or None for results without a gradient; zeros in a trace."""
        self._fill = bool(value)

    def mark_dirty(self, *_tensors: Tensor) -> None:
        """Raises InPlaceError: ``forward`` may not change its arguments in place."""
        raise InPlaceError(f"{self._what}: forward cannot change an argument in place: compute a new tensor and return it")


class Function:
    """A function with a gradient of its own, for subclasses::

        class StraightThrough(Function):
            @staticmethod
            def forward(ctx, x):
                return jg.round(x)

            @staticmethod
            def backward(ctx, g):
                return g

        y = StraightThrough.apply(x)

    ``forward(ctx, *args)`` returns a tensor or a tuple, and ``backward(ctx, *grads)`` a gradient or None for each
    argument. Or ``forward(*args)`` and ``setup_context(ctx, inputs, output)`` do the first in two steps. All are
    recorded as ordinary ops, also in a compiled function. Second derivatives differentiate ``backward``, and also
    what ``forward`` saves of its intermediate results. Results never share memory with arguments.
    """

    def __init__(self, *args: Any) -> None:
        name = type(self).__name__
        raise AutogradError(f"autograd.Function {name!r} has no instances: call {name}.apply(...)")

    @staticmethod
    def forward(*args: Any) -> Any:
        """The results, from ``(ctx, *args)`` or ``args``."""
        raise AutogradError("a subclass of autograd.Function needs a static method forward(ctx, *args)")

    @staticmethod
    def setup_context(context: FunctionContext, inputs: tuple[Any, ...], output: Any) -> None:
        """Prepare ``backward``, if ``forward`` takes no ``ctx``."""

    @staticmethod
    def backward(context: FunctionContext, *grads: Any) -> Any:
        """The gradients of the arguments."""
        raise AutogradError("a subclass of autograd.Function needs a static method backward(ctx, *grads)")

    @classmethod
    def called_functions(cls) -> tuple[Any, ...]:
        """The functions that ``apply`` runs; guards look for them."""
        return (cls.forward, cls.setup_context, cls.backward)

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """``forward`` of ``args``, with the gradient that ``backward`` computes.

        Raises:
            AutogradError, ShapeError (in backward): gradients do not fit the arguments.
            InPlaceError: ``forward`` changes an argument in place.
        """
        what = f"autograd.Function {cls.__name__!r} at {Origin.of_code_of(cls.forward).full()}"
        tensors = [x for x in args if isinstance(x, Tensor)]
        run = Forward(what, tensors, tensors)
        recorded = grad_enabled.get()
        wanted = {id(x) for x in run.inputs} if recorded else set()
        context = FunctionContext(what, tuple([id(x) in wanted for x in args]))
        if cls.setup_context is Function.setup_context:
            returned = cls.forward(context, *args)
        else:
            returned = cls.forward(*args)
            cls.setup_context(context, args, returned)
        leaves = list(returned) if isinstance(returned, (tuple, list)) else [returned]
        run.check(leaves if recorded else ())
        results = _results(cls, context, args, leaves, run)
        return tuple(results) if isinstance(returned, (tuple, list)) else results[0]


def _results(cls: type[Function], context: FunctionContext, args: tuple[Any, ...], leaves: list[Any], run: Forward) -> list[Any]:
    """What ``apply`` returns for the results ``leaves`` of ``forward``."""
    places = result_places(leaves, context._without_gradient) if any(context.needs_input_grad) else []
    outs = run.unshared(leaves)
    if places:
        pull = _Pull(cls, context, args, leaves, places)
        chosen = [outs[k] for k in places]
        reads_outs = any(k is not None for k in pull.from_outs)
        rule = GradientRule(tuple([x.aval for x in chosen]), len(run.inputs), pull, reads_outs, context._fill, context._what)
        residuals = pull.residuals(context._to_save)
        inputs = [x for x, needed in zip(args, context.needs_input_grad, strict=True) if needed]
        for k, x in zip(places, with_gradient(cls.__name__, chosen, inputs, residuals, rule), strict=True):
            outs[k] = x
    context._to_save = ()  # the history has them now, with their versions
    return [x if k in places else without_history(x) for k, x in enumerate(outs)]


class _Pull:
    """``backward`` of one call, from the gradients of the results at ``places`` to those of the inputs.

    ``from_outs`` says which of those results a saved tensor is; None if it is none of them.
    """

    def __init__(
        self, cls: type[Function], context: FunctionContext, args: tuple[Any, ...], leaves: Sequence[Any], places: list[int]
    ) -> None:
        self.cls = cls
        self.context = context
        self.places = places
        self.avals = [x.aval if isinstance(x, Tensor) else None for x in leaves]
        self.arguments = [x.aval if isinstance(x, Tensor) and is_differentiable(x.dtype) else None for x in args]
        results = {id(leaves[k]): j for j, k in enumerate(places) if not any(leaves[k] is x for x in args)}
        self.from_outs = [None if x is None else results.get(id(x)) for x in context._to_save]
        self.present = [x is not None for x in context._to_save]

    def residuals(self, saved: Sequence[Any]) -> list[Tensor]:
        """The tensors of ``saved`` that are no results."""
        return [x for x, out in zip(saved, self.from_outs, strict=True) if x is not None and out is None]

    def __call__(self, g: Sequence[Any], outs: Sequence[Any], residuals: Sequence[Any]) -> list[Tensor | None]:
        rest = iter(residuals)
        saved = [
            outs[out] if out is not None else next(rest) if there else None
            for out, there in zip(self.from_outs, self.present, strict=True)
        ]
        before, self.context._saved = self.context._saved, tuple(saved)
        try:
            grads = self.cls.backward(self.context, *self._arrived(g))
        finally:
            self.context._saved = before
        return self._checked(grads)

    def _arrived(self, g: Sequence[Any]) -> list[Any]:
        """The gradients of all results, as users see them."""
        arrived = {k: None if gx is None else outward(gx) for k, gx in zip(self.places, g, strict=True)}
        fill = self.context._fill
        return [
            arrived[k] if k in arrived else zeros(a.shape, dtype=a.dtype) if fill and a is not None else None
            for k, a in enumerate(self.avals)
        ]

    def _checked(self, returned: Any) -> list[Tensor | None]:
        grads = tuple(returned) if isinstance(returned, (tuple, list)) else (returned,)
        what = f"backward of {self.context._what}"
        count = len(self.arguments)
        if len(grads) < count or any(gx is not None for gx in grads[count:]):
            raise AutogradError(f"{what} returned {len(grads)} gradients: expected {count}, one for each argument of forward")
        found: list[Tensor | None] = []
        for k, (gx, aval, needed) in enumerate(zip(grads, self.arguments, self.context.needs_input_grad, strict=False)):
            if aval is None and gx is not None:
                raise AutogradError(
                    f"{what} returned a gradient for argument {k}, which is no float tensor: return None in its place"
                )
            if aval is not None and needed:
                checked = checked_gradient(what, f"argument {k}", gx, aval)
                found.append(None if checked is None else outward(checked))
        return found


def once_differentiable(backward: Any) -> Any:
    """``backward`` as it is. In torch its gradients have no gradients; here they are those of its formula."""
    return backward
