"""Functions composed of ops, in eager execution: after a few calls, one line of NumPy calls and one node on the tape.

A softmax is five ops. Each has a plan, and still most of the time on small arrays goes to what lies between NumPy's
functions: arguments, results, nodes. What such a function does depends on the avals of its tensors and on its other
arguments alone, so it is recorded once for them (`jitgrad.autograd.compositions`), with the line of its gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from math import copysign
from typing import Any, ParamSpec, TypeVar

import numpy as np

from jitgrad.core.aval import Aval
from jitgrad.core.config import get_default_dtype
from jitgrad.core.context import anomaly_detection, creation_device, current_interpreter, grad_enabled, open_tapes
from jitgrad.core.op import OpDef
from jitgrad.core.origin import at_origin, place_of_call
from jitgrad.core.plan import Recipe
from jitgrad.core.tape_node import Node, next_sequence
from jitgrad.core.tensor import Tensor
from jitgrad.eager import numpy_errors

_P = ParamSpec("_P")
_R = TypeVar("_R")

_USES = 3  # recording takes as long as some ten calls, so it waits until a call has come back
_MOST = 1024  # compositions of a function; a program with more shapes than that starts again
_ndarray = np.ndarray
_new = object.__new__
_other_interpreter = current_interpreter.other
_PLAIN = frozenset({int, str, bool, type(None)})


class Composition:
    """A function of tensors with avals ``avals`` and with certain other arguments.

    ``forward`` takes arrays and returns that of ``out`` and those to keep for backward. ``edges`` are the positions
    of the tensors to which a gradient flows, none where nothing is recorded. ``place`` puts tensors into the arguments.
    """

    __slots__ = ("avals", "edges", "forward", "function", "kept", "make_rule", "op", "out", "outs", "place",
                 "reads_out", "recipe")  # fmt: skip

    def __init__(
        self,
        function: Callable[..., Any],
        place: Callable[[Sequence[Any]], tuple[list[Any], dict[str, Any]]],
        op: OpDef,
        avals: tuple[Aval, ...],
        out: Aval,
    ) -> None:
        self.function: Callable[..., Any] = function
        self.place: Callable[[Sequence[Any]], tuple[list[Any], dict[str, Any]]] = place
        self.op: OpDef = op
        self.avals: tuple[Aval, ...] = avals
        self.out: Aval = out
        self.outs: tuple[Aval, ...] = (out,)
        self.edges: tuple[int, ...] = ()
        self.kept: tuple[int, ...] = ()  # the recorded steps whose results are kept
        self.forward: Callable[..., Any]
        self.recipe: Recipe = Recipe(None, (), False)
        self.make_rule: Callable[[Any], Any]  # for gradients under masks of a kind
        self.reads_out: bool = False

    def apply(self, tensors: Sequence[Any]) -> Tensor:
        """The result of ``tensors`` op by op."""
        args, keywords = self.place(tensors)
        return self.function(*args, **keywords)  # type: ignore[no-any-return]


class CompositionNode(Node):
    """The node of a composition: saves all its tensors, for a backward that goes op by op, and what its rule reads."""

    __slots__ = ("composition", "kept")

    composition: Composition
    kept: tuple[np.ndarray[Any, Any], ...]

    def release(self) -> None:
        super().release()
        self.kept = ()

    def opened(self) -> Tensor:
        """The result, computed again op by op, with the history that the ops give it."""
        operands, _ = self.unpack()
        token = grad_enabled.set(True)
        try:
            with at_origin(self.origin):
                return self.composition.apply(operands)
        finally:
            grad_enabled.reset(token)


# Makes the composition of a function of these arguments, or None.
Maker = Callable[[Callable[..., Any], Sequence[Any], Mapping[str, Any]], Composition | None]


class _Registered:
    """The module that makes compositions is above this one."""

    maker: Maker


def make_compositions_by(maker: Maker) -> None:
    """Let ``maker`` make compositions."""
    _Registered.maker = staticmethod(maker)


def composed(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """``function``, which only applies ops to tensors among its arguments, and looks at no data and at no state."""
    known: dict[Any, Any] = {}  # a Composition, None if there is none, or the number of calls before it is made

    @wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        if _other_interpreter() is None and creation_device.get() is None:
            tensors: list[Tensor] = []
            key = call_key(tensors, args, kwargs)
            if key is not None:
                found = known.get(key, 0)
                if type(found) is int:
                    found = _counted(known, key, found, function, args, kwargs)
                if found is not None:
                    out = run_composition(found, tensors)
                    if out is not None:
                        return out  # type: ignore[return-value]
        return function(*args, **kwargs)

    return call


def call_key(tensors: list[Tensor], args: Any, kwargs: Any) -> tuple[Any, ...] | None:
    """What distinguishes calls with these arguments, of which ``tensors`` gets the tensors; None if there is no such key."""
    key: list[Any] = [grad_enabled.get(), get_default_dtype()]
    if not _add_key(key, tensors, args) or (kwargs and not _add_key(key, tensors, kwargs.values(), kwargs)):
        return None
    return tuple(key)


def _add_key(key: list[Any], tensors: list[Tensor], values: Any, names: Any = ()) -> bool:
    """Add what distinguishes calls with these arguments to ``key``, and tensors to ``tensors``; False without a key."""
    key += names
    for x in values:
        kind = type(x)
        if kind is Tensor:
            if type(x._data) is not _ndarray:
                return False
            key += (id(x._aval or x.aval), x._requires_grad)
            tensors.append(x)
        elif kind in _PLAIN:
            key += (kind, x)
        elif kind is float:
            if x - x != 0:  # NaN is unlike itself, and infinities are rare
                return False
            key += (kind, x if x else copysign(1.0, x), not x)
        elif kind is tuple and _PLAIN.issuperset(map(type, x)):
            key += (*map(type, x), x)
        elif isinstance(x, np.dtype):
            key.append(x)
        else:
            return False
    return True


def _counted(
    known: dict[Any, Any], key: Any, count: int, function: Callable[..., Any], args: Any, kwargs: Any
) -> Composition | None:
    """The composition that is made when a call comes back often enough, or None."""
    if len(known) >= _MOST:
        known.clear()
    made: Composition | None = None
    if count < _USES:
        known[key] = count + 1
    else:
        made = _Registered.maker(function, args, kwargs)
        # the composition keeps the avals alive that its tensors have now, whose ids are theirs as long as it exists
        known[key if made is None else call_key([], args, kwargs)] = made
    return made


def run_composition(composition: Composition, tensors: list[Tensor]) -> Tensor | None:
    """The result of ``composition``, recorded if gradients flow through it; None if it is to be computed op by op."""
    if composition.edges and (open_tapes.get() or anomaly_detection.get()):  # which see ops
        return None
    silence = numpy_errors.silence()
    try:
        data, kept = composition.forward(*[x._data for x in tensors])
    finally:
        numpy_errors.restore(silence)  # type: ignore[arg-type]
    out = _new(Tensor)
    out._data = data
    out._aval = composition.out
    out._requires_grad = False
    out._grad = out.grad_fn = out._hooks = out._view = out._memory = None
    out._out_index = out._address = 0
    if composition.edges:
        _record(composition, tensors, out, kept)
    return out


def _record(composition: Composition, tensors: list[Tensor], out: Tensor, kept: tuple[Any, ...]) -> None:
    edges: list[Any] = [None] * len(tensors)
    for k in composition.edges:
        x = tensors[k]
        edges[k] = x if x.grad_fn is None else (x.grad_fn, x._out_index)
    node = _new(CompositionNode)
    node.op = composition.op
    node.attrs = _NO_ATTRS
    node.edges = tuple(edges)
    node.avals = composition.avals
    node.out_avals = node.saved_outs = composition.outs
    saved = []
    for x in tensors:
        memory = x._memory or x._storage
        saved.append((x._data, memory, memory.version))
    node.saved = saved
    node.sequence = next_sequence()
    node._place = place_of_call(4)
    node.stack = ""
    node.hooks = node.retained = None
    node.recipe = composition.recipe
    node.composition = composition
    node.kept = kept
    if composition.reads_out:
        memory = out._storage
        node.saved_outs = ((out._data, memory, memory.version),)
    out.grad_fn = node
    out._requires_grad = True


_NO_ATTRS: Mapping[str, Any] = {}
