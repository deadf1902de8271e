"""Gradients of chosen outputs with respect to chosen inputs, without a change of any ``.grad``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jitgrad.autograd.backward import gradients, seed_gradient
from jitgrad.autograd.functional import Argnums, grad
from jitgrad.core.errors import ArgumentError, AutogradError
from jitgrad.core.tensor import Tensor

Tensors = Tensor | Sequence[Tensor]


def chosen_gradients(
    outputs: Tensors | Callable[..., Any],
    inputs: Tensors | Argnums = 0,
    grad_outputs: Any = None,
    *,
    argnum: Argnums | None = None,
    retain_graph: bool | None = False,
    create_graph: bool = False,
    allow_unused: bool = False,
    only_inputs: bool = True,
) -> Any:
    """d(outputs)/d(inputs), a tuple of one tensor per input in its shape and dtype, without ``.grad``.

    Where the first argument is a function, this is HIPS autograd's ``grad(fun, argnum=0)``: a function of the arguments of
    ``fun`` that gives the gradient by argument ``argnum``, or a tuple for several; `jitgrad.grad`.

    Args:
        outputs: a tensor or several; their gradients are summed.
        inputs: tensors that the outputs were computed from, leaves or not.
        grad_outputs: the incoming gradient of each output; None means 1 for one element.
        retain_graph: keep the saved tensors, so that backward can run again.
        create_graph: record the gradient computation, too; implies ``retain_graph``.
        allow_unused: give None for an input that no output depends on, in place of an error.
        only_inputs: must be true, as in torch.

    Raises:
        ArgumentError: an argument is no tensor, outputs and ``grad_outputs`` differ in number, or ``only_inputs`` is false.
        AutogradError: an input does not require grad, or an output does not depend on it; an output
            of several elements comes without its incoming gradient.
    """
    if callable(outputs):
        _refuse_options(grad_outputs is not None or retain_graph or create_graph or allow_unused or not only_inputs)
        return grad(outputs, inputs if argnum is None else argnum)  # type: ignore[arg-type]
    outs, ins = _listed("outputs", outputs), _listed("inputs", inputs if argnum is None else argnum)
    given = [grad_outputs] if isinstance(outputs, Tensor) else list(grad_outputs or [None] * len(outs))
    _check(outs, ins, given, only_inputs)
    seeds = [seed_gradient(out, seed) for out, seed in zip(outs, given, strict=True)]
    grads = gradients(outs, seeds, ins, retain_graph=bool(retain_graph), create_graph=create_graph)
    _check_used(ins, grads, allow_unused)
    return tuple(grads)


def _check_used(ins: list[Tensor], grads: Sequence[Tensor | None], allow_unused: bool) -> None:
    unused = next((k for k, g in enumerate(grads) if g is None), None)
    if unused is not None and not allow_unused:
        raise AutogradError(
            f"autograd.grad: no output depends on input {unused}, {ins[unused].aval}. Leave it out, or pass "
            "allow_unused=True to get None for it"
        )


def _refuse_options(given: Any) -> None:
    if given:
        raise ArgumentError("autograd.grad of a function takes the number of an argument, and no other options")


def _check(outs: list[Tensor], ins: list[Tensor], given: list[Any], only_inputs: bool) -> None:
    if not only_inputs:
        raise ArgumentError("autograd.grad: only_inputs=False would add to every .grad: call backward() for that")
    if len(given) != len(outs):
        raise ArgumentError(f"autograd.grad: {len(outs)} outputs, but {len(given)} grad_outputs")
    for k, x in enumerate(ins):
        if not x._requires_grad:
            raise AutogradError(f"autograd.grad: input {k}, {x.aval}, does not require grad: call requires_grad_() first")


def _listed(what: str, tensors: Any) -> list[Tensor]:
    if isinstance(tensors, int):
        raise ArgumentError("autograd.grad of tensors takes the tensors that they were computed from: grad(outputs, inputs)")
    listed = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    for x in listed:
        if not isinstance(x, Tensor):
            raise ArgumentError(f"autograd.grad: {what} must be tensors, got {type(x).__name__}")
    return listed
