"""Parameters that share a learning rate and other options, as torch's entries of ``param_groups``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from typing import Any

import numpy as np

from jitgrad.autograd.modes import no_grad
from jitgrad.core.aval import Aval, is_number_of_trace
from jitgrad.core.context import current_interpreter
from jitgrad.core.errors import ArgumentError, shown
from jitgrad.core.tensor import Tensor
from jitgrad.ops.arithmetic import multiply
from jitgrad.ops.inplace import assign

FLOAT64 = np.dtype(np.float64)


def weak_scalar(value: float) -> Tensor:
    """A 0-d tensor that promotes like a Python float."""
    return Tensor(np.array(value, FLOAT64), Aval((), FLOAT64, weak=True))


def check_at_least(what: str, least: float = 0.0, **values: float) -> None:
    """Raise ArgumentError for a value that is below ``least`` or NaN."""
    for name, value in values.items():
        if value is None or isinstance(value, (str, list, tuple, dict)):
            raise ArgumentError(f"{what}: {name} must be a number, got {shown(value)}")
        if not value >= least:
            raise ArgumentError(f"{what}: {name} must be at least {least}, got {value}")


def write_scalar(what: str, name: str, target: Tensor, value: Any) -> None:
    """Put a number, or a tensor of one element, into a scalar of an optimizer."""
    if not isinstance(value, Tensor):
        check_at_least(what, **{name: value})
    with no_grad():
        assign(target, value if isinstance(value, Tensor) or is_number_of_trace(value) else float(value))


class ParamGroup(MutableMapping[str, Any]):
    """Parameters and their options: ``group["params"]``, ``group["lr"]``, ``group["weight_decay"]`` and others.

    The learning rate is a tensor, ``group.lr``: a new one is new data, and in a compiled step ``group["lr"]`` is a tensor too.
    Another option is a constant of compiled steps, which are traced anew after a change, unless :meth:`as_tensor` has made
    it a tensor, too. ``group["initial_lr"]`` is there once a schedule has been made.
    """

    def __init__(self, what: str, params: tuple[Tensor, ...], first: int, rate: float, options: dict[str, Any]) -> None:
        self.what: str = what
        self.params: tuple[Tensor, ...] = params
        self.first: int = first
        self.lr: Tensor = weak_scalar(rate)
        self.initial_lr: float | None = None  # before the first schedule
        self.shown_rate: float | None = None  # the rate that a schedule's `get_lr` goes on from, while it runs
        self.options = options

    def as_tensor(self, name: str, value: float) -> Tensor:
        """Make option ``name`` a tensor, so that a schedule can change it without a new trace."""
        self.options[name] = tensor = weak_scalar(value)
        return tensor

    def __getitem__(self, name: str) -> Any:
        if name == "params":
            return list(self.params)
        if name == "initial_lr" and self.initial_lr is not None:
            return self.initial_lr
        if name == "lr" and self.shown_rate is not None:
            return self.shown_rate
        value = self.lr if name == "lr" else self.options[name]
        if not isinstance(value, Tensor):
            return value
        # in a compiled step it has no value yet; and a later change must not show in what was read
        return multiply(value, 1.0) if current_interpreter.get().tracing else float(value.item())

    def __setitem__(self, name: str, value: Any) -> None:
        if name == "params":
            raise ArgumentError(f"{self.what}: the parameters of a group are fixed; call add_param_group for more")
        held = self.lr if name == "lr" else self.options.get(name)
        if isinstance(held, Tensor):
            write_scalar(self.what, name, held, value)
        else:
            self.options[name] = value

    def __delitem__(self, name: str) -> None:
        raise ArgumentError(f"{self.what}: option {name!r} of a group of parameters cannot be deleted")

    def __iter__(self) -> Iterator[str]:
        return iter(("params", "lr", *self.options))

    def __len__(self) -> int:
        return 2 + len(self.options)

    def __repr__(self) -> str:
        return f"ParamGroup({len(self.params)} parameters, lr={self.lr!r}, {self.options})"


def listed_groups(what: str, params: Iterable[Any]) -> list[dict[str, Any]]:
    """What an optimizer was given, as a dict with ``params`` per group.

    Raises:
        ArgumentError: it is one tensor, empty, or a group has no parameters.
    """
    if isinstance(params, (Tensor, Mapping)) or not isinstance(params, Iterable):
        given = "one tensor" if isinstance(params, Tensor) else f"a value of class {type(params).__name__}"
        raise ArgumentError(f"{what}: expected an iterable of parameters such as model.parameters(), got {given}")
    if not isinstance(params, Iterable):
        raise ArgumentError(f"{what}: expected an iterable of parameters such as model.parameters(), got {shown(params)}")
    listed = list(params)
    if not listed:
        raise ArgumentError(f"{what}: no parameters were given; was the iterator already used up?")
    if not isinstance(listed[0], Mapping):
        # (name, parameter) pairs, as named_parameters() gives them, are accepted too
        return [{"params": [x[1] if isinstance(x, tuple) and len(x) == 2 else x for x in listed]}]
    for group in listed:
        if not isinstance(group, Mapping) or "params" not in group:
            raise ArgumentError(f"{what}: each group of parameters is a dict with 'params', got {type(group).__name__}")
    return [dict(group) for group in listed]


def checked_parameters(what: str, params: Any, earlier: Iterable[Tensor] = ()) -> tuple[Tensor, ...]:
    """``params`` as a tuple. Raises ArgumentError for what cannot be trained, or is trained already."""
    listed = (params,) if isinstance(params, Tensor) else tuple(params)
    for p in listed:
        if not isinstance(p, Tensor) or not p.is_leaf or p.dtype.kind != "f":
            given = p.aval if isinstance(p, Tensor) else type(p).__name__
            is_complex = isinstance(p, Tensor) and p.dtype.kind == "c"
            hint = ": make complex numbers of two of them, jg.complex(re, im)" if is_complex else ""
            raise ArgumentError(f"{what}: a parameter must be a floating leaf tensor, got {given}{hint}")
    everything = [*earlier, *listed]
    if len({id(p) for p in everything}) != len(everything):
        raise ArgumentError(f"{what}: the same parameter was given twice")
    return listed
