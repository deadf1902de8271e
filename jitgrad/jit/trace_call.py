"""One trace of a @jit function: what it read, what it changes, its graph, and how its results are put together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import optree

from jitgrad.compiler.gc_paused import gc_paused
from jitgrad.compiler.tracer import InputSource, Trace
from jitgrad.core.aval import Aval
from jitgrad.core.context import current_interpreter
from jitgrad.core.errors import UnguardableError
from jitgrad.core.ir import Atom, Graph, Value
from jitgrad.core.origin import Origin
from jitgrad.core.tensor import Tensor
from jitgrad.guards.environment import Environment
from jitgrad.guards.guard import Guard
from jitgrad.jit.output_views import ResultView, find_view
from jitgrad.jit.signature import FLOAT_AVAL, NAMESPACE, Call, Static
from jitgrad.ops.random import default_generator


@dataclass(frozen=True, eq=False, slots=True)
class Effect:
    """A change of outside state: ``target``'s data ("data") or its ``.grad`` ("grad") becomes output ``output``.

    ``output`` None sets the gradient to None.
    """

    kind: str
    target: InputSource
    output: int | None


@dataclass(frozen=True, eq=False, slots=True)
class Result:
    """One leaf of the function's result: a new tensor from output ``output``, something passed through, or a view of it."""

    kind: str  # "new", "source", "view", "static"
    output: int = -1
    source: InputSource | None = None
    value: Any = None  # of what is static
    weak: bool = False
    view: ResultView | None = None  # of ``source``


@dataclass(frozen=True, eq=False, slots=True)
class TraceResult:
    """Everything the trace of one specialisation found out."""

    graph: Graph
    sources: tuple[InputSource, ...]
    results: tuple[Result, ...]
    treedef: Any
    effects: tuple[Effect, ...]
    differentiable: tuple[int, ...]  # outputs through which gradients flow to the inputs
    wants_grad: tuple[int, ...]  # inputs that require grad
    guard: Guard
    grads_present: tuple[tuple[InputSource, bool], ...]
    alive: tuple[Any, ...]
    names: dict[int, str]


@gc_paused()
def trace_call(function: Callable[..., Any], name: str, call: Call, donated: Sequence[int] = ()) -> TraceResult:
    """Run ``function`` once on tensors without data and collect what it did; of arguments ``donated`` no views remain.

    Raises:
        TracedValueError, UnguardableError, LeakedTracerError: the function cannot be traced; the message says why.
    """
    surroundings = Environment.capture(function, call.static)
    trace = Trace(name)
    token = current_interpreter.set(trace)
    try:
        leaves, tensors = _traced_leaves(trace, call)
        args, kwargs = optree.tree_unflatten(call.treedef, leaves)
        result = function(*(_unbox(a) for a in args), **{k: _unbox(v) for k, v in kwargs.items()})
        _check_containers(function, name, call, leaves, (args, kwargs))
        return _finish(trace, surroundings, call, tensors, result, name, donated)
    except BaseException:
        surroundings.restore()
        raise
    finally:
        current_interpreter.reset(token)


def _check_containers(
    function: Callable[..., Any], name: str, call: Call, leaves: Sequence[Any], arguments: tuple[Any, ...]
) -> None:
    """The dicts and lists among the arguments must be as they were: a compiled call would not change them again."""
    after, treedef = optree.tree_flatten(arguments, none_is_leaf=True, namespace=NAMESPACE)
    if treedef != call.treedef or any(a is not b for a, b in zip(after, leaves, strict=True)):
        raise UnguardableError(
            f"@jit function {name!r} at {Origin.of_code_of(function).full()} changes a dict or list that is an argument; "
            "the compiled program would not do that again. Change a copy, dict(argument) or [*argument], and return it."
        )


def _unbox(x: Any) -> Any:
    return x.value if isinstance(x, Static) else x


def _traced_leaves(trace: Trace, call: Call) -> tuple[list[Any], dict[int, Tensor]]:
    """The leaves with tensors in place of arrays and floats; one tensor for an argument that was passed twice."""
    tensors: dict[int, Tensor] = {}
    seen: dict[int, Tensor] = {}
    leaves = list(call.leaves)
    for k in call.dynamic:
        x = call.leaves[k]
        if type(x) is not float and id(x) in seen:
            leaves[k] = seen[id(x)]
            continue
        if isinstance(x, Tensor):
            tensor = trace.argument(k, x.aval, x._requires_grad, x._grad)
        elif type(x) is float:
            tensor = trace.argument(k, FLOAT_AVAL, False)
        else:
            tensor = trace.argument(k, Aval(x.shape, x.dtype), False)
        seen[id(x)] = tensors[k] = leaves[k] = tensor
    return leaves, tensors


def _finish(
    trace: Trace,
    surroundings: Environment,
    call: Call,
    tensors: dict[int, Tensor],
    result: Any,
    name: str,
    donated: Sequence[int],
) -> TraceResult:
    changes = surroundings.changes()
    if changes:
        listed = "\n  ".join(changes)
        raise UnguardableError(
            f"@jit function {name!r} changes Python state while it runs; the compiled program would not do that again:"
            f"\n  {listed}"
        )
    leaves, treedef = optree.tree_flatten(result, none_is_leaf=True)
    outputs: list[Atom] = []
    differentiable: list[int] = []
    arrays = {k for k, x in enumerate(call.leaves) if not isinstance(x, Tensor)}
    results = _results(trace, leaves, outputs, differentiable, arrays.union(donated))
    effects = _effects(trace, tensors, outputs)
    _check_leaves(effects, call, name)
    lifted = [s.key for s in trace.sources if s.kind == "array"]
    _check_reachable(trace, surroundings, name)
    return TraceResult(
        graph=trace.graph(tuple(outputs)),
        sources=tuple(trace.sources),
        results=results,
        treedef=treedef,
        effects=effects,
        differentiable=tuple(differentiable),
        wants_grad=tuple(k for k, v in enumerate(trace.inputs) if id(v) in trace.tainted),
        guard=surroundings.guard(lifted),
        grads_present=tuple((trace.lifted[key][1], present) for key, (_, present) in trace.grads_read.items()),
        alive=tuple(trace.alive),
        names={id(t): path for path, t in surroundings.tensors().items()},
    )


def _results(
    trace: Trace, leaves: Sequence[Any], outputs: list[Atom], differentiable: list[int], copied: Collection[int]
) -> tuple[Result, ...]:
    """One for each of ``leaves``; what is new is appended to ``outputs``. Views of arguments ``copied`` are new, too."""
    known: dict[tuple[int, bool], int] = {}  # by (id of an atom, whether gradients flow to it): its output
    results = []
    for x in leaves:
        if isinstance(x, np.ndarray):
            x = trace.constant(x)
        if not isinstance(x, Tensor):
            results.append(Result("static", value=x))
        elif id(x) in trace.lifted or type(x._data) is not Value:
            results.append(Result("source", source=trace.source_of(x)))
        elif (found := find_view(trace, x, copied)) is not None:
            results.append(Result("view", source=found[0], view=found[1]))
        else:
            results.append(_new(trace, x, outputs, differentiable, known))
    return tuple(results)


def _new(
    trace: Trace, x: Tensor, outputs: list[Atom], differentiable: list[int], known: dict[tuple[int, bool], int]
) -> Result:
    atom = trace.current(x)
    flows = x._requires_grad and _alive(x)
    position = known.setdefault((id(atom), flows), len(outputs))
    if position == len(outputs):
        outputs.append(atom)
        if flows:
            differentiable.append(position)
    return Result("new", output=position, weak=x.aval.weak)


def _alive(x: Tensor) -> bool:
    """Whether a backward from outside could still run through ``x``: its graph was not freed inside the function."""
    return x.grad_fn is not None and x.grad_fn.edges is not None


def _effects(trace: Trace, tensors: dict[int, Tensor], outputs: list[Atom]) -> tuple[Effect, ...]:
    """In-place changes and gradients, as outputs to be committed after the program succeeded."""

    def output(value: Value) -> int:
        outputs.append(value)  # listed again even if a result is the same value: the memory must not be shared
        return len(outputs) - 1

    found = []
    for tensor, value in trace.written.values():
        found.append(Effect("data", trace.source_of(tensor), output(value)))
    for tensor in tensors.values():
        _, source, value = trace.lifted[id(tensor)]
        if tensor._data is not value:
            found.append(Effect("data", source, output(tensor._data)))
    before = {id(s.key): v for s, v in zip(trace.sources, trace.inputs, strict=True) if s.kind == "grad"}
    for tensor, grad in trace.grads.values():
        source = trace.lifted[id(tensor)][1]
        if grad is None:
            if trace.grads_read.get(id(tensor), (None, True))[1]:
                found.append(Effect("grad", source, None))
            continue
        value = trace.current(grad)
        if before.get(id(source)) is not value:
            found.append(Effect("grad", source, output(value)))
    return tuple(found)


def _check_leaves(effects: tuple[Effect, ...], call: Call, name: str) -> None:
    """Gradients end at leaves: that of an argument which was computed outside would have to flow on from there."""
    for effect in effects:
        x = call.leaves[effect.target.key] if effect.target.kind == "argument" else None
        if effect.kind == "grad" and isinstance(x, Tensor) and x.grad_fn is not None:
            raise UnguardableError(
                f"@jit function {name!r} calls backward(), which reaches argument {effect.target.key} {x.aval}, and that was "
                "computed from other tensors: return the loss and call backward() outside, or pass x.detach()."
            )


def _check_reachable(trace: Trace, surroundings: Environment, name: str) -> None:
    """Every lifted tensor must be one whose replacement a guard would notice."""
    known = {id(t) for t in surroundings.tensors().values()}
    for source in trace.sources:
        if source.kind == "tensor" and id(source.key) not in known and not _permanent(source.key):
            raise UnguardableError(
                f"@jit function {name!r} at {Origin.capture().full()} uses a tensor {source.key.aval} that no global, "
                "closure cell, default or attribute leads to, so a later replacement could not be noticed. Pass it as an "
                "argument."
            )


def _permanent(tensor: Tensor) -> bool:
    """The default generator's state: one object for the life of the process."""
    return tensor is default_generator.state
