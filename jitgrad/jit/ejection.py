"""Ejects a @jit function: a module of plain numba code for one signature, with recorded results and a test."""

from __future__ import annotations

import inspect
import json
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import optree

from jitgrad.compiler.input_source import InputSource, SourceKind
from jitgrad.core.device_array import to_host
from jitgrad.core.errors import ArgumentError, EjectError
from jitgrad.core.ir import Value
from jitgrad.core.origin import Origin
from jitgrad.core.paths import require_folder
from jitgrad.core.tensor import Tensor
from jitgrad.eject.containers import container_text
from jitgrad.eject.cuda_driver import CudaDriverWriter
from jitgrad.eject.driver import DriverWriter
from jitgrad.eject.function_source import literal_text
from jitgrad.eject.module_spec import InputSpec, ModuleSpec, ResultSpec
from jitgrad.eject.module_text import names_at_top, write_module, write_test
from jitgrad.eject.planning import plan_of
from jitgrad.jit.records import NAMESPACE
from jitgrad.jit.rounding_judge import measure
from jitgrad.jit.signature import Call, Static
from jitgrad.jit.suspects import last_rounding
from jitgrad.jit.trace_result import GradientChange, TraceResult
from jitgrad.ops.identity import ALIAS, STOP_GRADIENT
from jitgrad.ops.random import default_generator

_DISTURBED_RUNS = 8
_MARGIN = 2.0  # a few disturbed runs show the size of rounding errors, not their bound


@dataclass(frozen=True, slots=True)
class Ejected:
    """The files of an ejected function.

    Attributes:
        path, test, data: the module, the test beside it, and the recorded arrays.
        state: the tensors and arrays that the function reads from outside, by the names of the module's keyword
            arguments.
    """

    path: str
    test: str
    data: str
    state: Mapping[str, Any]


def eject(
    path: str | os.PathLike[str], function: Callable[..., Any], name: str, traced: TraceResult, call: Call, device: str
) -> Ejected:
    """Write the program of ``traced`` for ``device`` to ``path``, and the results of ``call`` beside it."""
    path = os.fspath(path)
    folder, file = os.path.split(path)
    stem, extension = os.path.splitext(file)
    if extension != ".py" or not stem.isidentifier():
        raise ArgumentError(f"eject({path!r}): the path names a Python module, such as 'kernels.py'")
    require_folder("eject", path)
    _check_one_program(name, traced, call)
    interface = _Interface(function, name, traced, call)
    spec = interface.spec()
    plan = plan_of(traced.graph, interface.updates_in_place())
    driver = (DriverWriter if device == "cpu" else CudaDriverWriter)(spec, plan, names_at_top(spec))
    text = write_module(spec, driver, f"{stem}.npz")
    arrays = _recorded(interface, spec, driver.writers)
    ejected = Ejected(
        path, os.path.join(folder, f"test_{stem}.py"), os.path.join(folder, f"{stem}.npz"), dict(interface.state)
    )
    np.savez_compressed(ejected.data, allow_pickle=False, **arrays)
    for where, content in ((ejected.path, text), (ejected.test, write_test(stem))):
        with open(where, "w", encoding="utf-8") as out:
            out.write(content)
    return ejected


def _check_one_program(name: str, traced: TraceResult, call: Call) -> None:
    """A module has no place for what the function keeps outside itself from call to call, nor for another program."""
    places = [*map(str, call.held_names), *(str(store.path) for store in traced.stores)]
    if places:
        raise EjectError(
            f"eject: {name!r} keeps state in {', '.join(dict.fromkeys(places))}, which a module does not have; "
            "pass tensors and numbers as arguments and return them, and set flags before the call"
        )
    if traced.decided:
        raise EjectError(
            f"eject: {name!r} decides by values, and a module has one program ({traced.decided[0]} here): choose with "
            "jitgrad.where, or eject the function of each branch"
        )


class _Interface:
    """Names for everything that a traced call takes and gives."""

    def __init__(self, function: Callable[..., Any], name: str, traced: TraceResult, call: Call) -> None:
        self.function = function
        self.name = name
        self.traced = traced
        self.call = call
        self.state: dict[str, Any] = {}
        self.classes: dict[str, str] = {}
        self._names: dict[InputSource, str] = {}
        self._by_object: dict[Any, str] = {}
        self._used: set[str] = set()
        self.parameters: list[str] = []
        self.leaves = self._leaf_expressions()
        self._used |= set(self.parameters)
        self.sources = list(traced.sources)
        targets = [e.target for e in traced.effects]
        self.sources += [t for t in dict.fromkeys(targets) if t not in traced.sources]
        self.inputs = [self._input(k, source) for k, source in enumerate(self.sources)]

    # --- arguments --------------------------------------------------------------------------------

    def _leaf_expressions(self) -> list[str]:
        """What each flat argument is of the parameters of ``run``."""
        try:
            named = list(inspect.signature(self.function).parameters.values())
        except (TypeError, ValueError):
            named = []
        args, kwargs, _ = optree.tree_unflatten(self.call.treedef, list(range(len(self.call.leaves))))
        positional = [p.name for p in named if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        rest = next((p.name for p in named if p.kind is p.VAR_POSITIONAL), "argument")
        extra = [f"{rest}_{k}" for k in range(len(args))]
        names = [*positional[: len(args)], *extra[: len(args) - len(positional[: len(args)])]]
        self.parameters = [*names, *kwargs]
        expressions = []
        for accessor in self.call.treedef.accessors():
            in_kwargs, which = accessor[0].entry, accessor[1].entry
            expressions.append(accessor[2:].codify(which if in_kwargs else names[which]))
        return expressions

    def call_arguments(self) -> list[str]:
        """The arguments of the recorded call as text, with the names of inputs for arrays."""
        by_leaf = {s.key: i.name for s, i in zip(self.sources, self.inputs, strict=True) if s.kind is SourceKind.ARGUMENT}
        first: dict[int, int] = {}
        texts = []
        for k, x in enumerate(self.call.leaves):
            same = first.setdefault(id(x), k) if isinstance(x, (Tensor, np.ndarray)) else k
            value = x.value if isinstance(x, Static) else x
            text = by_leaf.get(k) or by_leaf.get(same) or literal_text(value)
            texts.append(text if text is not None else "None")
        args, kwargs, _ = optree.tree_unflatten(self.call.treedef, [_Text(t) for t in texts])
        parts = [container_text(*_flat(x), self.classes) for x in (*args, *kwargs.values())]
        return [*parts[: len(args)], *(f"{k}={p}" for k, p in zip(kwargs, parts[len(args) :], strict=True))]

    def static(self) -> list[tuple[str, str]]:
        """Arguments that are part of the program, as far as their values can be written down."""
        pairs = []
        for k, x in enumerate(self.call.leaves):
            value = x.value if isinstance(x, Static) else x
            if k not in self.call.dynamic and value is not None and (text := literal_text(value)) is not None:
                pairs.append((self.leaves[k], text))
        return pairs

    # --- inputs -----------------------------------------------------------------------------------

    def _unique(self, base: str) -> str:
        name, k = base, 2
        while name in self._used:
            name, k = f"{base}_{k}", k + 1
        self._used.add(name)
        return name

    def expression(self, source: InputSource) -> str:
        """What ``source`` is of the parameters of ``run``; state gets a parameter when it is first asked for."""
        if source.kind is SourceKind.ARGUMENT:
            leaf: str = self.leaves[source.key]
            return leaf
        key = source.key if source.kind is SourceKind.GRADIENT else id(source.key)
        if key not in self._by_object:
            constant = source.kind is SourceKind.CONSTANT
            name = self._by_object[key] = self._unique("CONSTANT_1" if constant else self._state_name(source))
            if not constant:
                self.state[name] = source.resolve(self.call.leaves)
        return self._by_object[key]

    def _state_name(self, source: InputSource) -> str:
        if source.kind is SourceKind.GRADIENT:
            return f"{_identifier(self.expression(source.key))}_grad"
        if source.key is default_generator.state:
            return "random_state"
        path = self.traced.names.get(id(source.key), "")
        return _identifier(path) if path else "captured_array"

    def _input(self, k: int, source: InputSource) -> InputSpec:
        expression = self.expression(source)
        x = source.resolve(self.call.leaves)
        aval = self.traced.graph.inputs[k].aval if k < len(self.traced.sources) else x.aval
        is_argument = source.kind is SourceKind.ARGUMENT
        name = expression if expression.isidentifier() else self._unique(_identifier(expression))
        constant = np.asarray(to_host(_data(x))) if source.kind is SourceKind.CONSTANT else None
        changed = k in self.traced.written or k >= len(self.traced.sources)
        is_number = is_argument and isinstance(x, (float, int))
        return InputSpec(name, expression, aval.shape, aval.dtype, changed, is_number, constant)

    def updates_in_place(self) -> dict[int, Value]:
        """Outputs that are only new data of an input, whose memory they take."""
        graph = self.traced.graph
        inputs = dict(zip(self.traced.sources, graph.inputs, strict=True))
        uses = Counter(graph.outputs)
        effects = self.traced.effects
        return {
            e.output: inputs[e.target]
            for e in effects
            if e.target in inputs and uses[graph.outputs[e.output]] == 1
        }

    # --- results ----------------------------------------------------------------------------------

    def _result(self, r: Any) -> ResultSpec:
        if r.output is not None:
            return ResultSpec(r.output)
        steps = [step for view in (*r.through, r.view) if view is not None for step in view.steps]
        views = tuple([(op, attrs) for op, attrs, *_ in steps if op not in (STOP_GRADIENT, ALIAS)])
        if r.base is not None:
            return ResultSpec(r.base, views=views, detached=not views)
        if r.source is None:
            text = literal_text(r.value)
            if text is None:
                raise EjectError(f"eject: {self.name!r} returns a {type(r.value).__name__}, which cannot be written down")
            return ResultSpec(expression=text)
        return ResultSpec(expression=self.expression(r.source), views=views, detached=bool(steps) and not views)

    def _holder(self, change: GradientChange) -> str:
        """What the tensor is of the parameters of ``run`` whose gradient changes."""
        if isinstance(change.target, int):
            raise EjectError(f"eject: {self.name!r} returns a tensor with a .grad, and an array has none: return that")
        return self.expression(change.target)

    def spec(self) -> ModuleSpec:
        """The interface of the module."""
        traced = self.traced
        results = [self._result(r) for r in traced.results]
        updates = [(self.sources.index(e.target), e.output) for e in traced.effects]
        gradients = [(self._holder(c), None if c.grad is None else self._result(c.grad)) for c in traced.gradients]
        return ModuleSpec(
            name=self.name,
            origin=str(Origin.of_code_of(self.function)) or "a function",
            parameters=self.parameters,
            state=[*self.state],
            inputs=self.inputs,
            static=self.static(),
            results=results,
            treedef=traced.treedef,
            updates=updates,
            gradients=gradients,
            call_arguments=self.call_arguments(),
            compared=[(name, text) for name, text, _ in self.compared()],
            classes=self.classes,
        )

    def compared(self) -> list[tuple[str, str, int]]:
        """(name, text, number of the output) of everything that the program computes, as the test finds it."""
        traced, results = self.traced, list[tuple[str, str, int]]()
        for accessor, r in zip(traced.treedef.accessors(), traced.results, strict=True):
            if r.output is not None:
                text = accessor.codify("result")
                results.append((text, text, r.output))
        for e in traced.effects:
            text = self.inputs[self.sources.index(e.target)].name
            results.append((f"new value of {self.expression(e.target)}", text, e.output))
        for change in traced.gradients:
            if change.grad is not None and change.grad.output is not None:
                name = self._holder(change)
                results.append((f"gradient of {name}", f"gradients[{name!r}]", change.grad.output))
        return results

    def meta(self, writers: Sequence[str]) -> dict[str, Any]:
        """What `load_ejected` must know besides the module's text."""
        traced = self.traced
        changed = [s for s, i in zip(self.sources, self.inputs, strict=True) if i.changed]
        replaced = [e.target for e in traced.effects if e.replaced]
        gradients = {}
        for change in traced.gradients:
            name, target = self._holder(change), cast(InputSource, change.target)
            is_argument = target.kind is SourceKind.ARGUMENT
            gradients[name] = target.key if is_argument else name
        return {
            "name": self.name,
            "writers": {name: writers[k] for name, _, k in self.compared()},
            "changed_arguments": [s.key for s in changed if s.kind is SourceKind.ARGUMENT],
            "changed_state": [self.expression(s) for s in changed if s.kind is not SourceKind.ARGUMENT],
            "replaced_arguments": [s.key for s in replaced if s.kind is SourceKind.ARGUMENT],
            "replaced_state": [self.expression(s) for s in replaced if s.kind is not SourceKind.ARGUMENT],
            "gradients": gradients,
            "differentiable": bool(traced.differentiable),
        }


def _data(x: Any) -> Any:
    return x._data if isinstance(x, Tensor) else x


class _Text(str):
    """The text of one argument."""

    __slots__ = ()


def _flat(tree: Any) -> tuple[Any, list[str]]:
    leaves, treedef = optree.tree_flatten(tree, none_is_leaf=True, namespace=NAMESPACE)
    return treedef, leaves


def _identifier(text: str) -> str:
    """``params_w`` for ``params['w']``."""
    cleaned = "_".join("".join(c if c.isalnum() else " " for c in text).split())
    return cleaned if cleaned.isidentifier() else f"state_{cleaned}"


def _recorded(interface: _Interface, spec: ModuleSpec, writers: Sequence[str]) -> dict[str, np.ndarray[Any, Any]]:
    """Inputs, eager results with how far rounding takes each element, and what loading needs to know.

    A function that changes state is recorded for two calls, one after the other: fresh state, such as zeros, says
    little about what the function does with it.
    """
    operands = [source.resolve(interface.call.leaves) for source in interface.sources]
    data = [np.array(to_host(_data(x)), i.dtype) for x, i in zip(operands, spec.inputs, strict=True)]
    arrays = {i.expression: x for i, x in zip(spec.inputs, data, strict=True) if i.constant is not None}
    calls = 2 if spec.updates else 1
    for call in range(calls):
        recorded, outputs = _recorded_call(interface, spec, data)
        arrays.update({f"call {call}: {name}": x for name, x in recorded.items()})
        for k, output in spec.updates:
            data[k] = outputs[output]
    arrays["calls"] = np.array(calls)
    arrays["about"] = np.array(json.dumps(interface.meta(writers)))
    return arrays


def _recorded_call(
    interface: _Interface, spec: ModuleSpec, data: Sequence[np.ndarray[Any, Any]]
) -> tuple[dict[str, np.ndarray[Any, Any]], dict[int, np.ndarray[Any, Any]]]:
    """(what is recorded of the call with inputs ``data``, its outputs by number)."""
    arrays = {f"input {i.expression}": x for i, x in zip(spec.inputs, data, strict=True) if i.constant is None}
    graph, compared = interface.traced.graph, interface.compared()
    positions = {k: np.arange(graph.outputs[k].aval.size) for _, _, k in compared}
    measured = measure(graph, data[: len(interface.traced.sources)], positions, _DISTURBED_RUNS)
    by_output = dict(zip(positions, measured, strict=True))
    outputs = {k: np.array(values).reshape(graph.outputs[k].aval.shape) for k, (values, _) in by_output.items()}
    for name, _, k in compared:
        values, moves = by_output[k]
        limits = np.asarray(_MARGIN * moves + last_rounding(values)).reshape(outputs[k].shape)
        arrays[f"expected {name}"] = outputs[k]
        arrays[f"limit {name}"] = limits if limits.any() else np.zeros(())
    return arrays, outputs


def recorded_calls(arrays: Mapping[str, np.ndarray[Any, Any]]) -> list[dict[str, np.ndarray[Any, Any]]]:
    """The recorded arrays of each call, by name."""
    prefixes = [f"call {k}: " for k in range(int(arrays["calls"]))]
    return [{name.removeprefix(p): x for name, x in arrays.items() if name.startswith(p)} for p in prefixes]
