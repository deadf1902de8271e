"""`f.replay(index, *args)`: one element of a compiled step, op by op in Python, with values and adjoints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import optree

from jitgrad.autograd.backward import gradients
from jitgrad.core.aval import Shape, is_differentiable
from jitgrad.core.context import Interpreter, adjoint_observer, current_interpreter
from jitgrad.core.errors import ArgumentError
from jitgrad.core.op import Kind, OpDef
from jitgrad.core.origin import Origin
from jitgrad.core.tensor import Tensor
from jitgrad.inspect.element_map import ElementMap
from jitgrad.jit.decorator import JitFunction
from jitgrad.jit.snapshot import Snapshot
from jitgrad.jit.switch import disable_jit
from jitgrad.ops.creation import ones_like
from jitgrad.runtime.provenance import ElementIndex


@dataclass(frozen=True, slots=True)
class ReplayedOp:
    """One op of the step, or one of its inputs (``op`` is then a name), at one element.

    Attributes:
        line: ``file:line`` of the op.
        operands: their values at this element; text such as ``f32[64]`` for those that many elements go into.
        value: its result at this element.
        adjoint: the derivative of what backward started from with respect to ``value``; None without one.
        index: the element of the result that ``value`` is.
    """

    line: str
    op: str
    operands: tuple[float | complex | str, ...]
    value: float | complex | str
    adjoint: float | complex | None
    index: ElementIndex


@dataclass(frozen=True, slots=True)
class Replay:
    """What happened to one element of a step; printing it shows a line for each op, in order."""

    name: str
    index: ElementIndex
    shape: Shape
    ops: tuple[ReplayedOp, ...]

    def __str__(self) -> str:
        rows = [(o.line, _call(o), _number(o.value), "" if o.adjoint is None else _number(o.adjoint)) for o in self.ops]
        rows.insert(0, ("line", "op", "value", "adjoint"))
        widths = [max(len(row[k]) for row in rows) for k in range(4)]
        head = f"{self.name} at element {list(self.index)} of {list(self.shape)}"
        lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([head, *lines])


def _call(o: ReplayedOp) -> str:
    return f"{o.op}({', '.join(map(_number, o.operands))})" if o.operands else o.op


def _number(x: float | complex | str) -> str:
    return x if isinstance(x, str) else f"{x:.7g}"


@dataclass(slots=True)
class _Step:
    """An executed op with its operands and results as they were then."""

    op: OpDef
    attrs: Mapping[str, Any]
    operands: tuple[Any, ...]
    outs: tuple[Tensor, ...]
    origin: Origin
    arrays: list[Any] = field(default_factory=list)  # of the operands and then of the results


class _Recorder:
    """The eager interpreter, which also lists what it runs, and the adjoints that backward computes."""

    def __init__(self) -> None:
        self.inner = current_interpreter.eager
        self.steps: list[_Step] = []
        self.adjoints: dict[tuple[int, int], Tensor] = {}
        self.alive: list[Any] = []
        self.listing = True

    def apply(self, op: OpDef, operands: tuple[Any, ...], attrs: Mapping[str, Any]) -> Any:
        result = self.inner.apply(op, operands, attrs)
        outs = tuple(result) if op.multiple else (result,)
        origin = Origin.capture()
        if self.listing and not origin.gradient:
            arrays = [x._data if isinstance(x, Tensor) else x for x in (*operands, *outs)]
            self.steps.append(_Step(op, attrs, operands, outs, origin, arrays))
        return result

    def write(self, target: Tensor, value: Any) -> None:
        """Change ``target``; earlier steps keep the values that they saw."""
        for step in self.steps:
            for k, x in enumerate(step.arrays):
                if isinstance(x, np.ndarray) and np.may_share_memory(x, target._data):
                    step.arrays[k] = x.copy()
        self.inner.write(target, value)

    def observe(self, source: Any, position: int, g: Tensor) -> None:
        """Backward has the whole adjoint of result ``position`` of the node ``source``, or of the leaf ``source``."""
        self.alive.append(source)
        self.adjoints[id(source), position] = Tensor(g._data)

    def adjoint(self, x: Any) -> Any:
        """The adjoint of the tensor ``x``, an array; None if backward did not reach it."""
        if not isinstance(x, Tensor):
            return None
        key = (id(x), -1) if x.grad_fn is None else (id(x.grad_fn), x._out_index)
        found = self.adjoints.get(key)
        return None if found is None or found.shape != x.shape else found._data

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


@contextmanager
def _recording(recorder: _Recorder) -> Iterator[None]:
    token = current_interpreter.set(cast(Interpreter, recorder))
    watch = adjoint_observer.set(recorder.observe)
    try:
        with disable_jit():
            yield
    finally:
        adjoint_observer.reset(watch)
        current_interpreter.reset(token)


def replay(self: JitFunction, index: int | Sequence[int], *args: Any, **kwargs: Any) -> Replay:
    """One element of a call, forward and backward, op by op without kernels; print the result.

    ``index`` is an element of the largest array that the function computes element by element. Of other values, the
    element that belongs to it is shown. Adjoints are those of a backward pass in the function; without one, those of
    the sum of its results with respect to its arguments. Nothing outside of the function changes.

    Raises:
        ArgumentError: there is no such element; the message has the shape.
    """
    executable = self.lookup(*args, **kwargs)
    leaves = self._signature.take(args, kwargs).leaves
    state = Snapshot(executable.traced, leaves)
    try:
        names = {id(s.resolve(leaves)): executable.traced.describe(s) for s in executable.traced.sources}
        recorder = _run(self.eager, args, kwargs, names)
        for step in recorder.steps:
            names.update({id(x._grad): f"gradient of {names[id(x)]}" for x in step.operands if _has_named_gradient(x, names)})
        return _at(self.name, index, recorder, names)
    finally:
        state.restore()


def _has_named_gradient(x: Any, names: Mapping[int, str]) -> bool:
    return isinstance(x, Tensor) and id(x) in names and x._grad is not None


def _run(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], names: dict[int, str]
) -> _Recorder:
    """Run ``function`` and a backward pass, its own or one of its results; ``names`` gets those of new arguments."""
    recorder = _Recorder()
    with _recording(recorder):
        result = function(*args, **kwargs)
    if recorder.adjoints:
        return recorder
    outs = _float_tensors(result)
    if not any(x._requires_grad for x in outs):

        def as_leaf(x: Any) -> Any:
            leaf = _as_leaf(x)
            if id(x) in names:
                names[id(leaf)] = names[id(x)]
            return leaf

        fresh_args, fresh_kwargs = optree.tree_map(as_leaf, (args, kwargs), none_is_leaf=True)
        recorder = _Recorder()
        with _recording(recorder):
            outs = _float_tensors(function(*fresh_args, **fresh_kwargs))
    roots = [x for x in outs if x._requires_grad]
    inputs = [x for step in recorder.steps for x in step.operands if isinstance(x, Tensor) and x.is_leaf and x._requires_grad]
    if roots and inputs:
        recorder.listing = False
        with _recording(recorder):
            gradients(roots, [ones_like(x) for x in roots], list({id(x): x for x in inputs}.values()))
    return recorder


def _float_tensors(result: Any) -> list[Tensor]:
    return [x for x in optree.tree_leaves(result) if isinstance(x, Tensor) and is_differentiable(x.dtype)]


def _as_leaf(x: Any) -> Any:
    """A float tensor or array as a new tensor that gets a gradient."""
    data = x._data if isinstance(x, Tensor) else x
    if not isinstance(data, np.ndarray) or not is_differentiable(data.dtype):
        return x
    leaf = Tensor(data.copy())
    leaf._requires_grad = True
    return leaf


def _at(name: str, index: int | Sequence[int], recorder: _Recorder, names: Mapping[int, str]) -> Replay:
    shape = _largest_shape(recorder.steps)
    wanted = (index,) if isinstance(index, int) else tuple(index)
    if len(wanted) != len(shape) or not all(-n <= k < n for k, n in zip(wanted, shape, strict=True)):
        raise ArgumentError(
            f"replay: {name} computes arrays of shape {list(shape)} element by element; there is no element {list(wanted)}"
        )
    place = tuple(k % n for k, n in zip(wanted, shape, strict=True))
    elements = ElementMap([(s.op, s.attrs, s.operands, s.outs) for s in recorder.steps], shape, place)
    shown: list[ReplayedOp] = []
    seen: set[int] = {id(out) for step in recorder.steps for out in step.outs}
    for step in recorder.steps:
        for x, data in zip(step.operands, step.arrays, strict=False):
            if isinstance(x, Tensor) and id(x) not in seen:
                seen.add(id(x))
                shown.append(_row(recorder, elements, "", names.get(id(x), "an input"), (), x, data))
        parts = [_text(elements, x, data) for x, data in zip(step.operands, step.arrays, strict=False)]
        for out, data in zip(step.outs, step.arrays[len(step.operands) :], strict=True):
            shown.append(_row(recorder, elements, str(step.origin), str(step.op), tuple(parts), out, data))
    return Replay(name, place, shape, tuple(shown))


def _largest_shape(steps: Sequence[_Step]) -> Shape:
    shapes = [s.outs[0].shape for s in steps if s.op.kind is Kind.ELEMENTWISE]
    return max(shapes, key=lambda shape: int(np.prod(shape)), default=())


def _row(
    recorder: _Recorder, elements: ElementMap, line: str, op: str, parts: tuple[float | complex | str, ...], x: Tensor, data: Any
) -> ReplayedOp:
    place = elements.of(x)
    adjoint = recorder.adjoint(x)
    at = None if adjoint is None or place is None else _scalar(adjoint[place])
    return ReplayedOp(line, op, parts, _text(elements, x, data), at, place or ())


def _scalar(x: Any) -> float | complex:
    return complex(x) if np.iscomplexobj(x) else float(x)


def _text(elements: ElementMap, x: Any, data: Any) -> float | complex | str:
    """The value at the element; the shape of an operand of which no single element is meant."""
    if not isinstance(data, np.ndarray):
        return str(data) if not isinstance(data, (int, float, complex, np.generic)) else _scalar(data)
    place = elements.of(x)
    return str(x.aval if isinstance(x, Tensor) else data.shape) if place is None else _scalar(data[place])
