"""Optimizer: the base class, with a learning rate and state that are tensors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from jitgrad.autograd.modes import no_grad
from jitgrad.core.aval import Aval
from jitgrad.core.context import current_interpreter
from jitgrad.core.errors import ArgumentError, CheckpointError, TraceError
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import add
from jitgrad.ops.creation import asarray, zeros_like
from jitgrad.ops.inplace import assign
from jitgrad.ops.placement import replace_data

FLOAT64 = np.dtype(np.float64)


def weak_scalar(value: float) -> Tensor:
    """A 0-d tensor that promotes like a Python float."""
    return Tensor(np.array(value, FLOAT64), Aval((), FLOAT64, weak=True))


def check_at_least(what: str, least: float = 0.0, **values: float) -> None:
    """Raise ArgumentError for a value that is below ``least`` or NaN."""
    for name, value in values.items():
        if not value >= least:
            raise ArgumentError(f"{what}: {name} must be at least {least}, got {value}")


class Optimizer:
    """Base class: subclasses define the update of one parameter.

    ``step`` changes only Tensors of the constructor, in place. All steps therefore run the same
    program, a new ``lr`` is new data and needs no new trace, and a compiled step writes all state
    back.
    """

    def __init__(self, params: Iterable[Tensor], lr: float) -> None:
        if current_interpreter.get().tracing:
            raise TraceError(
                f"{type(self).__name__} is made inside a @jit function, so its state would be lost after each call. "
                "Make the optimizer outside and call its step() inside"
            )
        self.params = _checked(type(self).__name__, params)
        check_at_least(type(self).__name__, lr=lr)
        self._lr = weak_scalar(lr)
        self._state: dict[str, Tensor | list[Tensor]] = {}

    @property
    def lr(self) -> float:
        """The learning rate. Inside a compiled function it can be set, not read."""
        return float(self._lr.item())

    @lr.setter
    def lr(self, value: float | Tensor) -> None:
        if not isinstance(value, Tensor):
            check_at_least(type(self).__name__, lr=value)
        with no_grad():
            assign(self._lr, value if isinstance(value, Tensor) else float(value))

    def per_parameter(self, name: str, value: float = 0.0) -> list[Tensor]:
        """A state tensor full of ``value`` per parameter, in ``state_dict`` as ``name.<index>``."""
        tensors = [zeros_like(p) for p in self.params]
        if value:
            tensors = [add(t, value) for t in tensors]
        self._state[name] = tensors
        return tensors

    def step_count(self) -> Tensor:
        """The number of steps: one state tensor for all parameters, with the name ``step``."""
        self._state["step"] = count = weak_scalar(0.0)
        return count

    def step(self) -> None:
        """Change every parameter whose ``.grad`` is not None."""
        self._follow_parameters()
        with no_grad():
            common = self.prepare()
            for k, p in enumerate(self.params):
                g = p.grad
                if g is not None:
                    self.update(k, p, g, *common)

    def _follow_parameters(self) -> None:
        """Move state to where the parameters are: they may have been moved since it was made.

        That is no part of a step, so a trace does not record it.
        """
        first = self.params[0].device
        pairs = [(self._lr, first)]
        for value in self._state.values():
            if isinstance(value, Tensor):
                pairs.append((value, first))
            else:
                pairs += [(tensor, p.device) for tensor, p in zip(value, self.params, strict=True)]
        token = current_interpreter.set(current_interpreter.eager)
        try:
            for tensor, device in pairs:
                if tensor.device != device:
                    replace_data(tensor, None, device)
        finally:
            current_interpreter.reset(token)

    def prepare(self) -> tuple[Tensor, ...]:
        """Common work of a step, before its parameters; each ``update`` gets the results."""
        return (self._lr,)

    def update(self, k: int, p: Tensor, g: Tensor, *common: Tensor) -> None:
        """Change parameter ``p``, number ``k``, by its gradient ``g``."""
        raise NotImplementedError(f"{type(self).__name__} defines no update")

    def zero_grad(self) -> None:
        """Set ``.grad`` of all parameters to None."""
        for p in self.params:
            p.grad = None

    # --- state ------------------------------------------------------------------------------------

    def _named_state(self) -> Iterator[tuple[str, Tensor]]:
        yield "lr", self._lr
        for name, value in self._state.items():
            if isinstance(value, Tensor):
                yield name, value
            else:
                yield from ((f"{name}.{k}", tensor) for k, tensor in enumerate(value))

    def state_dict(self) -> dict[str, Tensor]:
        """Copies of the learning rate and all state, by name; ``jg.save`` takes it."""
        return {name: Tensor(np.array(t.concrete("state_dict"))) for name, t in self._named_state()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Copy ``state`` in, in place; all of it or, on an error, nothing.

        Raises:
            CheckpointError: names or shapes differ from this optimizer's.
        """
        own = dict(self._named_state())
        if set(own) != set(state):
            differing = ", ".join(sorted(set(own) ^ set(state)))
            raise CheckpointError(
                f"load_state_dict of {type(self).__name__}: these names are on one side only: {differing}"
            )
        given = {name: asarray(value) for name, value in state.items()}
        for name, tensor in own.items():
            if given[name].shape != tensor.shape:
                raise CheckpointError(f"load_state_dict: {name} is {tensor.aval} here, {given[name].aval} in the state")
        with no_grad():
            for name, tensor in own.items():
                assign(tensor, given[name])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.params)} parameters, lr={self._lr!r})"


def _checked(what: str, params: Iterable[Tensor]) -> tuple[Tensor, ...]:
    if isinstance(params, Tensor):
        raise ArgumentError(f"{what}: expected an iterable of parameters such as model.parameters(), got one tensor")
    listed = tuple(params)
    if not listed:
        raise ArgumentError(f"{what}: no parameters were given; was the iterator already used up?")
    for p in listed:
        if not isinstance(p, Tensor) or not p.is_leaf or p.dtype.kind != "f":
            given = p.aval if isinstance(p, Tensor) else type(p).__name__
            raise ArgumentError(f"{what}: a parameter must be a floating leaf tensor, got {given}")
    if len({id(p) for p in listed}) != len(listed):
        raise ArgumentError(f"{what}: the same parameter was given twice")
    return listed
