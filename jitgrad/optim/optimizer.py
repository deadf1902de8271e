"""Optimizer: the base class, with a learning rate and state that are tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np

from jitgrad.autograd.modes import enable_grad, no_grad
from jitgrad.core.aval import Shape
from jitgrad.core.context import current_interpreter
from jitgrad.core.errors import ArgumentError, CheckpointError, TraceError
from jitgrad.core.missing_names import meant
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import add, negative
from jitgrad.ops.creation import asarray, full, zeros_like
from jitgrad.ops.inplace import assign
from jitgrad.ops.placement import replace_data
from jitgrad.optim.param_group import ParamGroup, check_at_least, checked_parameters, listed_groups, weak_scalar
from jitgrad.optim.recorded_step import RecordedStep

# There is one implementation here, which @jit compiles.
IMPLEMENTATIONS = {"foreach", "fused", "capturable", "differentiable"}

required: object = object()  # as a default of an option: each group must give it

_OWN = "state."  # begins the names of what a step keeps in ``Optimizer.state``



def shape_of(p: Tensor) -> Shape:
    """The shape of ``p``, which most state of it has."""
    return p.shape


def _full_state(p: Tensor, value: float, shape: Callable[[Tensor], Shape]) -> Tensor:
    zeros = zeros_like(p) if shape is shape_of else full(shape(p), 0.0, dtype=p.dtype, device=p.device)
    return add(zeros, value) if value else zeros


class Optimizer:
    """Base class: subclasses define the update of one parameter.

    ``step`` changes only Tensors of the constructor, in place. All steps therefore run the same
    program, a new ``lr`` is new data and needs no new trace, and a compiled step writes all state
    back.

    A subclass may also be written as in torch: ``super().__init__(params, defaults)`` with a dict of
    options, and a ``step`` of its own, which keeps tensors and numbers in ``self.state[p]``.

    Args:
        params: parameters, or dicts with ``params`` and options of their own for these.
        lr: the learning rate of groups that have none; or all options, as a dict.
        implementation: keywords with which torch chooses between implementations; they change nothing.
        options: the other options, with values for groups that have none.

    Raises:
        ArgumentError: the parameters or an option are no such thing. TraceError: made inside a @jit function.
    """

    # Whether updates only apply ops to tensors, without other traces, so that they can be recorded and replayed. A subclass
    # must say so itself, for it may do more than its base.
    recordable: ClassVar[bool] = False
    _unguarded: ClassVar[tuple[str, ...]] = ("_recorded",)  # compiled functions do not run it

    def __init_subclass__(cls, recordable: bool = False, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        cls.recordable = recordable

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Mapping[str, Any],
        implementation: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        name = type(self).__name__
        if unknown := sorted(set(implementation or ()) - IMPLEMENTATIONS):
            raise ArgumentError(f"{name}: {', '.join(unknown)} is no option of it; lr, {', '.join(options)} are")
        if current_interpreter.get().tracing:
            raise TraceError(
                f"{name} is made inside a @jit function, so its state would be lost after each call. "
                "Make the optimizer outside and call its step() inside"
            )
        self._recorded: RecordedStep | None = RecordedStep(self) if self.recordable else None
        self.defaults: dict[str, Any] = (
            {"lr": 1.0, **lr, **options} if isinstance(lr, Mapping) else {"lr": lr, **options}
        )
        self.param_groups: list[ParamGroup] = []
        self.params: tuple[Tensor, ...] = ()
        self._state: dict[str, Tensor | list[Tensor]] = {}
        self.state: dict[Tensor, dict[str, Any]] = {}  # by parameter, for a step that is written as in torch
        self._first_state: dict[str, Callable[[Tensor], Tensor]] = {}  # of one parameter, by name
        # of a GradScaler: the round in which it unscaled the gradients, and 1 if they were not finite then
        self.unscaled_at: Tensor = weak_scalar(-1.0)
        self.not_finite: Tensor = weak_scalar(0.0)
        for group in listed_groups(name, params):
            self._add(group)

    def _add(self, given: dict[str, Any]) -> ParamGroup:
        name = type(self).__name__
        options = self.defaults | {key: v for key, v in given.items() if key != "params"}
        if absent := [key for key, value in options.items() if value is required]:
            raise ArgumentError(f"{name}: a group of parameters gives no {absent[0]}, which has no default: pass {absent[0]}=...")
        for key in options.keys() - self.defaults.keys():  # a group may carry more, such as a name
            if close := meant(key, self.defaults):
                raise ArgumentError(
                    f"{name}: a group of parameters has {key!r}{close}; options are {', '.join(self.defaults)}"
                )
        params = checked_parameters(name, given["params"], self.params)
        check_at_least(name, lr=options["lr"])
        self.check_options(options)
        group = ParamGroup(name, params, len(self.params), options.pop("lr"), options)
        self.params += params
        self.param_groups.append(group)
        self.state.update((p, {}) for p in params)
        return group

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Train more parameters: a dict with ``params`` and, for these, options of their own."""
        group = self._add(listed_groups(type(self).__name__, [param_group])[0])
        for name, value in self._state.items():
            if isinstance(value, list):
                value += map(self._first_state[name], group.params)

    def check_options(self, options: Mapping[str, Any]) -> None:
        """Raise ArgumentError unless all ``options`` of a group have values that the update can take."""

    @property
    def _lr(self) -> Tensor:
        return self.param_groups[0].lr

    @property
    def lr(self) -> float:
        """The learning rate of the first group. Inside a compiled function it can be set, not read."""
        return float(self._lr.item())

    @lr.setter
    def lr(self, value: float | Tensor) -> None:
        for group in self.param_groups:
            group["lr"] = value

    def per_parameter(self, name: str, value: float = 0.0, shape: Callable[[Tensor], Shape] = shape_of) -> list[Tensor]:
        """A state tensor full of ``value`` per parameter, in ``state_dict`` as ``name.<index>``.

        ``shape``: a function of a module, which gives the shape of the state of a parameter.
        """
        self._first_state[name] = make = partial(_full_state, value=value, shape=shape)
        self._state[name] = tensors = [make(p) for p in self.params]
        return tensors

    @property
    def state_lists(self) -> list[list[Tensor]]:
        """The state that `per_parameter` made."""
        return [value for value in self._state.values() if isinstance(value, list)]

    @property
    def state_scalars(self) -> list[Tensor]:
        """The state that all parameters share, such as the number of steps."""
        return [value for value in self._state.values() if isinstance(value, Tensor)]

    def step_count(self) -> Tensor:
        """The number of steps: one state tensor for all parameters, with the name ``step``."""
        self._state["step"] = count = weak_scalar(0.0)
        return count

    def any_group(self, option: str) -> bool:
        """Whether ``option`` is other than 0, False and None in any group."""
        return any(group.options[option] for group in self.param_groups)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change every parameter whose ``.grad`` is not None.

        ``closure`` computes the gradients first, and its result is returned.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with no_grad():
            grads = [p.grad for p in self.params]
            if not current_interpreter.get().tracing and self._recorded is not None and self._recorded.run(grads):
                return loss
            self.follow_parameters()
            self.advance()
            for group in self.param_groups:
                common = self.prepare(group)
                for k in range(group.first, group.first + len(group.params)):
                    if (g := grads[k]) is not None:
                        self.update_one(group, k, g, common)
        return loss

    def update_one(self, group: ParamGroup, k: int, g: Tensor, common: Sequence[Tensor]) -> None:
        """Change parameter ``k``, which is in ``group``, by its gradient ``g``."""
        options = group.options
        self.update(k, self.params[k], negative(g) if options.get("maximize") else g, options, *common)

    def follow_parameters(self) -> None:
        """Move state to where the parameters are: they may have been moved since it was made.

        That is no part of a step, so a trace does not record it. What a schedule sets stays on the host, where its
        Python code runs: reading it on a device would wait for the device.
        """
        first = self.params[0].device
        pairs: list[tuple[Tensor, Any]] = []
        for group in self.param_groups:
            pairs.append((group.lr, first if group.initial_lr is None else "cpu"))
            pairs += [(x, "cpu") for x in group.options.values() if isinstance(x, Tensor)]
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

    def advance(self) -> None:
        """Common work of a step, before all groups: counting it, if `step_count` asked for that."""
        count = self._state.get("step")
        if isinstance(count, Tensor):
            assign(count, add(count, 1.0))

    def prepare(self, group: ParamGroup) -> tuple[Tensor, ...]:
        """Common work for a group, before its parameters; each ``update`` gets the results."""
        return (group.lr,)

    def update(self, k: int, p: Tensor, g: Tensor, options: Mapping[str, Any], *common: Tensor) -> None:
        """Change parameter ``p``, number ``k``, by its gradient ``g``."""
        raise NotImplementedError(f"{type(self).__name__} defines no update")

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set ``.grad`` of all parameters to None, or those that are not None to zeros."""
        for p in self.params:
            p.zero_grad(set_to_none)

    # --- state ------------------------------------------------------------------------------------

    def _named_state(self) -> Iterator[tuple[str, Tensor]]:
        for k, group in enumerate(self.param_groups):
            yield f"lr.{k}" if k else "lr", group.lr
        for name, value in self._state.items():
            if isinstance(value, Tensor):
                yield name, value
            else:
                yield from ((f"{name}.{k}", tensor) for k, tensor in enumerate(value))

    def state_dict(self) -> dict[str, Tensor]:
        """Copies of the learning rate and all state, by name; ``jg.save`` takes it."""
        saved = {name: Tensor(np.array(t.concrete("state_dict"))) for name, t in self._named_state()}
        for k, p in enumerate(self.params):
            for name, value in self.state[p].items():
                data = value.concrete("state_dict") if isinstance(value, Tensor) else value
                saved[f"{_OWN}{k}.{name}"] = Tensor(np.array(data))
        return saved

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Copy ``state`` in, in place; all of it or, on an error, nothing.

        Raises:
            CheckpointError: names or shapes differ from this optimizer's.
        """
        own = dict(self._named_state())
        added = {name: asarray(value) for name, value in state.items() if name.startswith(_OWN)}
        state = {name: value for name, value in state.items() if name not in added}
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
        self._load_added(added)

    def _load_added(self, added: Mapping[str, Tensor]) -> None:
        """Fill ``self.state``: an int for integers without axes, and what promotes like a number for floats without."""
        for k, p in enumerate(self.params):
            start = f"{_OWN}{k}."
            found = {name.removeprefix(start): value for name, value in added.items() if name.startswith(start)}
            held = self.state[p]
            for name in held.keys() - found.keys():
                del held[name]
            for name, value in found.items():
                if value.ndim:
                    held[name] = Tensor(np.array(value.concrete("load_state_dict")))
                else:
                    held[name] = value.item() if value.dtype.kind in "biu" else weak_scalar(value.item())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.params)} parameters, lr={self._lr!r})"
