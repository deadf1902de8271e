"""Traces a @jit function: its graph, what it reads and changes, and the parts of its result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from operator import is_
from typing import Any

import numpy as np
import optree

from jitgrad.autograd.broken_history import broken_histories
from jitgrad.compiler.constant_indices import slice_constant_indices
from jitgrad.compiler.input_source import InputSource, SourceKind
from jitgrad.compiler.loops import traced_loop as _traced_loop  # noqa: F401 - makes the loops of traces
from jitgrad.compiler.runtime_number import ValueNeededError
from jitgrad.compiler.tracer import Trace
from jitgrad.core.aval import Aval
from jitgrad.core.context import recording_in
from jitgrad.core.errors import UnguardableError
from jitgrad.core.gc_paused import gc_paused
from jitgrad.core.ir import Atom, Graph, Value
from jitgrad.core.origin import Origin
from jitgrad.core.tensor import Tensor
from jitgrad.guards.environment import Environment
from jitgrad.guards.writes import HeldPlace
from jitgrad.jit.devices import device_of_arguments, place_of
from jitgrad.jit.held_places import ChangedContainersError, ReplacedTensorsError
from jitgrad.jit.process_state import ProcessState
from jitgrad.jit.records import NAMESPACE
from jitgrad.jit.result_check import ResultParts
from jitgrad.jit.result_outputs import ResultOutputs
from jitgrad.jit.shape_struct import has_no_data
from jitgrad.jit.signature import Call, Static
from jitgrad.jit.trace_result import Decided, Effect, GradientChange, TraceResult, describe_source, leaves_among
from jitgrad.ops.random import default_generator


class _SharedArgumentsError(Exception):
    """The arguments at ``positions`` are outside tensors, with which the function compared them by identity before it failed."""

    def __init__(self, positions: frozenset[int]) -> None:
        super().__init__()
        self.positions = positions


@gc_paused()
def trace_call(function: Callable[..., Any], name: str, call: Call, donated: Sequence[int] = ()) -> TraceResult:
    """Run ``function`` on tensors without data; arguments ``donated`` get no views in the result.

    Raises:
        TracedValueError, UnguardableError, LeakedTracerError: it cannot be traced; says why.
    """
    shared: frozenset[int] = frozenset()
    while True:
        try:
            traced = _trace(function, name, call, donated, shared)
            more = traced.shared_arguments(call.leaves)
        except _SharedArgumentsError as error:
            more = error.positions
        if not more:
            return traced
        shared |= more


def _trace(
    function: Callable[..., Any], name: str, call: Call, donated: Sequence[int], shared: frozenset[int]
) -> TraceResult:
    """`trace_call`, where arguments at the positions ``shared`` are also outside tensors, and are traced as these."""
    environment = Environment(function, call.static)
    process = ProcessState()
    trace = Trace(name, device_of_arguments(call))
    originals: list[tuple[HeldPlace, Any]] = []
    try:
        with recording_in(trace):
            leaves, tensors = _traced_leaves(trace, call, shared)
            sets = {k: frozenset(x) for k, x in enumerate(leaves) if type(x) is set}
            args, kwargs, held = optree.tree_unflatten(call.treedef, leaves)
            for place, traced_tensors in zip(call.held, held, strict=True):
                if traced_tensors is not None:
                    originals.append((place, place.read()))
                    place.fill(traced_tensors)
                    environment.hold(place, traced_tensors)
            with _looking_for_needs(trace):
                result = environment.run(function, *(_unbox(a) for a in args), **{k: _unbox(v) for k, v in kwargs.items()})
            _check_containers(function, name, call, leaves, (args, kwargs, held), sets)
            process.check(name)
            traced = _finish(trace, environment, call, tensors, result, donated)
            return _with_arguments(traced, trace, environment, call, shared)
    except Exception as error:
        if more := leaves_among({id(t) for t in environment.compared()}, call.leaves) - shared:
            raise _SharedArgumentsError(more) from error
        raise
    finally:
        environment.restore()
        process.restore()
        trace.restore_histories()
        trace.flags.restore()
        for place, original in originals:
            place.fill(original)
        environment.fill_cached()
        environment.forget()


@contextmanager
def _looking_for_needs(trace: Trace) -> Iterator[None]:
    """Where the function has asked for the value of a number, another error of it, or none, tells nothing.

    C code asks with a TypeError: ``json.dumps(k)`` and ``Decimal(k)`` take floats alone.
    """
    try:
        yield
    except Exception as error:
        if type(error) is TypeError:
            trace.values_needed.update([position for position, _ in trace.scalars.values()])
        if not trace.values_needed:
            raise
    if trace.values_needed:
        raise ValueNeededError(frozenset(trace.values_needed), f"@jit function {trace.name!r}")


def _check_containers(
    function: Callable[..., Any],
    name: str,
    call: Call,
    leaves: Sequence[Any],
    arguments: tuple[Any, ...],
    sets: Mapping[int, frozenset[Any]],
) -> None:
    """The function must not change its dicts, lists and ``sets``: a compiled call would not do it again."""
    if any(leaves[k] != before for k, before in sets.items()):
        raise _changed_argument(function, name)
    after, treedef = optree.tree_flatten(arguments, none_is_leaf=True, namespace=NAMESPACE)
    if treedef != call.treedef or any(a is not b for a, b in zip(after, leaves, strict=True)):
        given = optree.tree_leaves(arguments[:2], none_is_leaf=True, namespace=NAMESPACE)
        same = treedef.children()[:2] == call.treedef.children()[:2] and all(map(is_, given, leaves))
        if same:  # what a place holds that callers fill anew
            raise ChangedContainersError(
                f"@jit function {name!r} at {Origin.of_code_of(function).full()} changes a dict or list that was made anew "
                f"between calls, of {', '.join(dict.fromkeys(call.held_names))}: keep one list, and change its items "
                "(`items[:] = [...]`) where it was replaced.",
                _changed_places(call, leaves, arguments[2]),
            )
        raise _changed_argument(function, name)


def _changed_argument(function: Callable[..., Any], name: str) -> UnguardableError:
    return UnguardableError(
        f"@jit function {name!r} at {Origin.of_code_of(function).full()} changes a dict, list, set or record that is an "
        "argument; the compiled program would not do that again. Change a copy, such as dict(argument) or "
        "[*argument], and return it."
    )


def _changed_places(call: Call, leaves: Sequence[Any], held: Sequence[Any]) -> list[HeldPlace]:
    """The places of ``call`` whose containers, now ``held``, have other items than ``leaves``, which they got for the trace."""
    changed = []
    start = len(leaves) - len(call.held_names)
    for place, value, structure in zip(call.held, held, call.treedef.children()[2].children(), strict=True):
        end = start + structure.num_leaves
        after, treedef = optree.tree_flatten(value, none_is_leaf=True, namespace=NAMESPACE)
        if treedef != structure or not all(map(is_, after, leaves[start:end])):
            changed.append(place)
        start = end
    return changed


def _unbox(x: Any) -> Any:
    return x.value if isinstance(x, Static) else x


def _traced_leaves(trace: Trace, call: Call, shared: frozenset[int]) -> tuple[list[Any], dict[int, Tensor]]:
    """The leaves with tensors for arrays, one for a repeated argument, and run-time numbers for ints and floats."""
    tensors: dict[int, Tensor] = {}
    by_id: dict[int, Tensor] = {}
    leaves = list(call.leaves)
    trace.orders.arguments = call.leaves
    trace.decisions.numbers.leaves = call.leaves
    trace.decisions.leaves = None if any(map(has_no_data, leaves)) else call.leaves
    for k in call.dynamic:
        x = call.leaves[k]
        if k in shared:
            continue
        if type(x) in (int, float):
            leaves[k] = trace.number_argument(k, x)
            continue
        if id(x) in by_id:
            leaves[k] = by_id[id(x)]
            continue
        if isinstance(x, Tensor):
            tensor = trace.stand_in(InputSource(SourceKind.ARGUMENT, k), x)
        else:
            tensor = trace.argument(k, Aval(x.shape, x.dtype))
            if not x.shape:
                trace.orders.add_array(tensor)
            if isinstance(x, np.generic):
                trace.scalars[tensor._data] = k, x
        by_id[id(x)] = tensors[k] = leaves[k] = tensor
    return leaves, tensors


def _check_changes(trace: Trace, environment: Environment, call: Call, tensors: dict[int, Tensor]) -> None:
    """The function must not change Python state that it reads, nor hooks of its arguments, nor which tensors require grad."""
    _check_flags(trace, environment, call)
    _check_hooks(trace, call, tensors)
    if changes := environment.changes():
        listed = "\n  ".join(changes)
        message = (
            f"@jit function {trace.name!r} changes Python state while it runs; the compiled program would not do that again:"
            f"\n  {listed}"
        )
        places = environment.replaced()
        raise ReplacedTensorsError(message, places) if places else UnguardableError(message)


def _check_flags(trace: Trace, environment: Environment, call: Call) -> None:
    """Arguments and outside tensors require grad after the function as before it."""
    for tensor, origin in trace.flags.changed():
        names = {id(t): path for path, t in environment.tensors().items()}
        _, source, _ = trace.lifted.get(id(tensor), (None, InputSource(SourceKind.TENSOR, tensor), None))
        raise UnguardableError(
            f"@jit function {trace.name!r} at {origin.full()} changes requires_grad of "
            f"{describe_source(names, call.name, source)} {tensor.aval} to {tensor._requires_grad}, and the compiled program "
            "would not do that again: call requires_grad_() outside of it, set the flag back before it returns, or use "
            "y = x.detach().requires_grad_()."
        )


def _check_hooks(trace: Trace, call: Call, tensors: dict[int, Tensor]) -> None:
    """No argument keeps a hook that the function registered: the tensor of the caller would not get it."""
    for k, tensor in tensors.items():
        outside = call.leaves[k]
        if isinstance(outside, Tensor) and len(tensor._hooks or ()) > len(outside._hooks or ()):
            raise UnguardableError(
                f"@jit function {trace.name!r} calls register_hook() of {call.name(k)} {outside.aval}, and a compiled call would "
                "not do that again: register the hook outside, or call backward() within the function and then remove() it."
            )


def _finish(
    trace: Trace, environment: Environment, call: Call, tensors: dict[int, Tensor], result: Any, donated: Sequence[int]
) -> TraceResult:
    trace.restore_histories()
    _check_changes(trace, environment, call, tensors)
    stores = environment.stores()
    parts = ResultParts(trace.name, environment.existed, [store.value for store in stores])
    copied = {*donated, *(k for k, x in enumerate(call.leaves) if not isinstance(x, Tensor))}
    outputs = ResultOutputs(trace, parts, copied)
    results, treedef = outputs.results_of(result, stores)
    effects = _effects(trace, tensors, outputs)
    gradients = _gradients(outputs, call, trace.name)
    decided = tuple([Decided(outputs.new_data(d.value, None), d.contents, str(d)) for d in trace.decisions])
    _check_reachable(trace, environment)
    return TraceResult(
        graph=_with_slices(trace, environment, tuple(outputs.outputs)),  # first: it leaves out inputs, and adds to the guard
        sources=tuple(trace.sources),
        results=results,
        treedef=treedef,
        effects=effects,
        differentiable=tuple(outputs.starts),
        broken=broken_histories(outputs.starts, trace.since),
        wants_grad=tuple(k for k, v in enumerate(trace.inputs) if v in trace.tainted),
        written=tuple(k for k, source in enumerate(trace.sources) if source in {e.target for e in effects}),
        contiguous=tuple(k for k, v in enumerate(trace.inputs) if v in trace.reshapes.contiguous),
        guard=environment.guard([s.key for s in trace.sources if s.kind is SourceKind.ARRAY]),
        orders=tuple([(*asked, answer) for asked, answer in trace.orders.answers.items()]),
        grads_read=tuple((trace.source_of(t), None if g is None else g._requires_grad) for t, g in trace.grads_read.values()),
        alive=tuple(trace.alive),
        names=(names := {id(t): path for path, t in environment.tensors().items()}),
        made=parts.made.complete(),
        stores=tuple(store.without_value() for store in stores),
        changes_python=environment.changes_more(),
        python_effects=tuple(environment.effects()),
        place=place_of(trace, call.leaves, partial(describe_source, names, call.name)),
        gradients=gradients,
        detached=tuple([trace.source_of(t) for t in trace.flags.detached if id(t) not in trace.moved]),
        decided=decided,
        asked_class=trace.orders.asked_class,
    )


def _with_arguments(
    traced: TraceResult, trace: Trace, environment: Environment, call: Call, shared: frozenset[int]
) -> TraceResult:
    """``traced`` with the names of arguments, and with what decides whether it is right for others."""
    return replace(
        traced,
        argument_names=tuple(map(call.name, range(len(call.leaves)))),
        shared=tuple([(k, call.leaves[k]) for k in sorted(shared)]),
        compared=environment.compared(),
        number_conditions=trace.decisions.numbers.listed(),
    )


def _with_slices(trace: Trace, environment: Environment, outputs: tuple[Atom, ...]) -> Graph:
    """The graph of ``trace`` with slices for evenly spaced constant indices, which are no inputs then."""
    for source, origin in trace.relied:
        environment.rely_on(source, origin)
    pairs = zip(trace.inputs, trace.sources, strict=True)
    kinds = (SourceKind.CONSTANT, SourceKind.ARRAY)
    arrays = {v: s.key for v, s in pairs if s.kind in kinds and s.key.dtype.kind in "iu"}
    constants = {v: array for v, array in arrays.items() if environment.can_rely_on(array)}
    graph, used = slice_constant_indices(trace.graph(outputs), constants)
    for value in used:
        environment.rely_on(constants[value])
    read = {atom for node in graph.nodes for atom in node.ins}.union(graph.outputs)
    kept = [k for k, value in enumerate(trace.inputs) if value not in used or value in read]
    trace.inputs[:] = [trace.inputs[k] for k in kept]
    trace.sources[:] = [trace.sources[k] for k in kept]
    return replace(graph, inputs=tuple(trace.inputs))


def _effects(trace: Trace, tensors: dict[int, Tensor], outputs: ResultOutputs) -> tuple[Effect, ...]:
    """In-place changes, which are further ``outputs``; a call makes these changes after its program succeeded."""

    def write(tensor: Tensor, source: InputSource, value: Value) -> Effect:
        edge = trace.moved.get(id(tensor))
        k = outputs.new_data(value if edge is None else trace.flowing(value, edge), edge)
        return Effect(source, k, id(tensor) in trace.moved, id(tensor) in trace.replaced)

    effects = [write(t, trace.source_of(t), value) for t, value in trace.written.values()]
    read = [grad for _, grad in trace.grads_read.values() if grad is not None]
    for tensor in (*tensors.values(), *read):
        _, source, value = trace.lifted[id(tensor)]
        if tensor._data is not value:
            effects.append(write(tensor, source, tensor._data))
    return tuple(effects)


def _gradients(outputs: ResultOutputs, call: Call, name: str) -> tuple[GradientChange, ...]:
    """The gradients that are set. None of an argument with a history may be: it would have to flow on."""
    changes = outputs.gradients()
    for change in changes:
        target = change.target
        x = call.leaves[target.key] if isinstance(target, InputSource) and target.kind is SourceKind.ARGUMENT else None
        if isinstance(target, InputSource) and isinstance(x, Tensor) and x.grad_fn is not None:
            raise UnguardableError(
                f"@jit function {name!r} calls backward(), which reaches {call.name(target.key)} {x.aval}, and that was "
                "computed from other tensors: return the loss and call backward() outside, or pass x.detach()."
            )
    return changes


def _check_reachable(trace: Trace, environment: Environment) -> None:
    """A guard must notice when an outside tensor that the function uses is replaced."""
    guarded = {id(t) for t in environment.tensors().values()}
    for source in trace.sources:
        # no one replaces the default generator's state
        permanent = source.key is default_generator.state
        if source.kind is SourceKind.TENSOR and id(source.key) not in guarded and not permanent:
            raise UnguardableError(
                f"@jit function {trace.name!r} at {Origin.capture().full()} uses a tensor {source.key.aval} that no global, "
                "closure cell, default or attribute leads to, so a later replacement could not be noticed. Pass it as an "
                "argument."
            )
