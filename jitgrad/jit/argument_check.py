"""The step of a call that compares its arguments with the signature of the trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import optree

from jitgrad.compiler.runtime_number import LARGEST_INT
from jitgrad.core import config
from jitgrad.core.context import current_interpreter, grad_enabled
from jitgrad.core.tensor import Tensor
from jitgrad.guards.writes import can_be_held
from jitgrad.jit.fast_call import FEW, FastCallWriter, NotSupportedError, interned
from jitgrad.jit.input_steps import CallState
from jitgrad.jit.records import NAMESPACE
from jitgrad.jit.signature import Static, static_key

MAX_LEAVES = 400  # arguments outside of long lists; compiling the text of more would take longer than it saves

_COMPARABLE = (int, str, bytes, bool, type(None))  # static values that == tells apart


@dataclass(frozen=True, eq=False, slots=True)
class CheckArguments:
    """The call has the signature of the trace: containers, types, values, avals, repetitions.

    The general path has nothing to do: the key of `Signature.take` leads to the executable.
    """

    def run(self, call: CallState) -> None:
        pass

    def write(self, w: FastCallWriter) -> None:
        w.names.update(interpreter=current_interpreter._variable, grad_enabled=grad_enabled, defaults=config._Defaults)
        w.names.update(flatten=partial(optree.tree_flatten, none_is_leaf=True, namespace=NAMESPACE))
        w.names.update(asarray=np.asarray, static_key=static_key)
        args, kwargs, held = optree.tree_unflatten(w.call.treedef, w.call.leaves)
        w.miss_if("interpreter.get() is not None")
        w.miss_if(f"grad_enabled.get() is not {w.call.key[4]}")
        w.miss_if(f"defaults.float_dtype is not {w.constant('D', w.call.key[5])}")
        w.miss_if(f"defaults.methods_of is not {w.constant('D', w.call.key[6])}")
        w.miss_if(f"defaults.immutable is not {w.call.key[7]}")
        text = _ArgumentText(w)
        text.tree("args", args)
        text.tree("kwargs", kwargs)
        for k, (place, value) in enumerate(zip(w.call.held, held, strict=True)):
            w.line(f"held_{k} = {w.constant('R', place.read)}()")
            if value is not None:
                text.tree(f"held_{k}", value)
            else:
                w.leaves.append("None")
                w.names["can_be_held"] = can_be_held
                w.miss_if(f"can_be_held(held_{k})")
        if len(w.leaves) - sum(w.lists.values()) > MAX_LEAVES:
            raise NotSupportedError
        text.distinct()


def _uniform(values: Sequence[Any]) -> bool:
    """Whether one loop can check ``values``: many tensors, all leaves or all with a history."""
    if len(values) <= FEW or any(type(t) is not Tensor for t in values):
        return False
    return len({(t._requires_grad, t.grad_fn is None, bool(t._hooks)) for t in values}) == 1 and not values[0]._hooks


class _ArgumentText:
    """Text that takes the arguments apart in the order of `Call.leaves`, and checks every part."""

    def __init__(self, w: FastCallWriter) -> None:
        self.w = w
        self.arrays: list[str] = []  # tensors and arrays outside of lists
        self.first: dict[int, str] = {}  # tensors and arrays by id: the expression of the first place

    def tree(self, name: str, value: Any) -> None:
        """Text for ``name``, which must be built like ``value``."""
        w, kind = self.w, type(value)
        if kind in (tuple, list, dict):
            w.miss_if(f"type({name}) is not {kind.__name__} or len({name}) != {len(value)}")
            self.items(name, value)
            return
        leaves, treedef = optree.tree_flatten(value, none_is_leaf=True, namespace=NAMESPACE)
        if treedef.is_leaf():
            self.leaf(name, value)
            return
        w.miss_if(f"type({name}) is not {w.constant('Y', kind)}")
        w.line(f"{name}, tree = flatten({name})")
        w.miss_if(f"tree != {w.constant('Y', treedef)}")
        self.items(name, leaves)

    def items(self, name: str, value: Any) -> None:
        """Text for the parts of the container ``name``, whose type and length are checked."""
        w, is_dict = self.w, type(value) is dict
        values = list(value.values()) if is_dict else value
        many = _uniform(values)
        parts = [f"{name}_{k}" for k in range(len(values))]
        if is_dict and values:
            keys = w.constant("K", tuple(value))
            if len(values) > 1 and (name != "kwargs" or w.call.keyword_order):
                w.miss_if(f"tuple({name}) != {keys}")
            each = ", ".join(f"{name}[{w.constant('K', key)}]" for key in value)
            w.line(f"try: {name} = [{name}[k] for k in {keys}]" if many else f"try: {', '.join(parts)}, = {each},")
            w.line("except KeyError: return MISS")
        elif many:
            w.line(f"{name} = [*{name}]")  # another thread may change the caller's list
        elif parts:
            w.line(f"{', '.join(parts)}, = {name}")
        if many:
            self.tensor_list(name, values)
            return
        for part, item in zip(parts, values, strict=True):
            self.tree(part, item)

    def tensor_list(self, name: str, tensors: Sequence[Tensor]) -> None:
        """Text that checks the list ``name`` of tensors like ``tensors`` in one loop."""
        if len({id(t) for t in tensors} - self.first.keys()) < len(tensors):
            raise NotSupportedError
        self.first.update((id(t), f"{name}[{k}]") for k, t in enumerate(tensors))
        avals = self.w.constant("V", tuple(interned(t.aval) for t in tensors))
        requires = tensors[0]._requires_grad
        history = f" or t._hooks or t.grad_fn is {'not ' if tensors[0].grad_fn is None else ''}None" if requires else ""
        self.w.line(f"for t, v in zip({name}, {avals}):")
        condition = f"(t._aval is not v and not same_aval(t, v)) or t._requires_grad is not {requires}{history}"
        self.w.line(f"if type(t) is not Tensor or {condition}: return MISS", 2)
        self.w.leaves += [f"{name}[{k}]" for k in range(len(tensors))]
        self.w.lists[name] = len(tensors)

    def leaf(self, name: str, value: Any) -> None:
        w = self.w
        w.leaves.append(name)
        if len(w.leaves) - 1 in w.call.runtime_ints:
            w.miss_if(f"type({name}) is not int or not {-LARGEST_INT} <= {name} <= {LARGEST_INT}")
            return
        if type(value) is Static and type(value.value) in _COMPARABLE:
            value = value.value
        kind = type(value)
        if kind in (Tensor, np.ndarray) and (first := self.first.setdefault(id(value), name)) is not name:
            w.miss_if(f"{name} is not {first}")
        elif kind is Tensor:
            self.tensor(name, value)
        elif kind is np.ndarray:
            self.arrays.append(name)
            shape, dtype = w.constant("S", value.shape), w.constant("D", value.dtype)
            w.miss_if(
                f"type({name}) is not ndarray or {name}.shape != {shape} or {name}.dtype != {dtype} "
                f"or not {name}.flags.c_contiguous or not {name}.flags.aligned"
            )
        elif kind is Static:
            w.miss_if(f"static_key({value.name!r}, {name}) != {w.constant('K', static_key(value.name, value.value))}")
        elif len(w.leaves) - 1 in w.call.static_numbers:
            w.miss_if(f"type({name}) is not {w.constant('Y', kind)} or repr({name}) != {repr(value)!r}")
        elif kind is float:
            w.miss_if(f"type({name}) is not float")
        elif isinstance(value, np.generic):
            w.miss_if(f"type({name}) is not {w.constant('Y', kind)}")
            w.line(f"{name} = asarray({name})")
        elif isinstance(value, (Tensor, np.ndarray)):
            raise NotSupportedError  # a subclass may override the access to its data
        elif kind is slice and all(type(x) in (int, type(None)) for x in (value.start, value.stop, value.step)):
            kinds = f"{{type({name}.start), type({name}.stop), type({name}.step)}} <= {w.constant('Y', {int, type(None)})}"
            w.miss_if(f"type({name}) is not slice or {name} != {w.constant('C', value)} or not {kinds}")
        elif value is None or kind not in _COMPARABLE:
            w.miss_if(f"{name} is not {w.constant('C', value)}")
        else:
            w.miss_if(f"type({name}) is not {kind.__name__} or {name} != {w.constant('C', value)}")

    def tensor(self, name: str, value: Tensor) -> None:
        """Text that checks the aval of ``name``, and whether gradients flow to it."""
        self.arrays.append(name)
        aval = self.w.constant("V", interned(value.aval))
        grad = "not " if value._requires_grad else ""
        self.w.miss_if(
            f"type({name}) is not Tensor or ({name}._aval is not {aval} and not same_aval({name}, {aval})) "
            f"or {grad}{name}._requires_grad"
        )
        if value._requires_grad:
            history = f"{name}.grad_fn is {'not ' if value.grad_fn is None else ''}None"
            hooks = f"{name}._hooks != {self.w.constant('H', [*value._hooks])}" if value._hooks else f"{name}._hooks"
            self.w.miss_if(f"{history} or {hooks}")

    def distinct(self) -> None:
        """Text that checks that no array comes twice: such calls have another signature."""
        names, lists = self.arrays, self.w.lists
        if lists:
            ids = [f"id({n})" for n in names] + [f"*map(id, {n})" for n in lists]
            self.w.miss_if(f"len({{{', '.join(ids)}}}) != {len(names) + sum(lists.values())}")
        elif 1 < len(names) <= 4:
            self.w.miss_if(" or ".join(f"{a} is {b}" for a, b in combinations(names, 2)))
        elif len(names) > 4:
            self.w.miss_if(f"len({{{', '.join(f'id({n})' for n in names)}}}) != {len(names)}")
