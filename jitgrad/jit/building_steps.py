"""The last steps of a call: tensors of the outputs, donated arguments, and the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import optree

from jitgrad.compiler.input_source import InputSource, SourceKind
from jitgrad.core.aval import Aval
from jitgrad.core.device_array import to_host
from jitgrad.core.tape_node import Node
from jitgrad.core.tensor import Donated, Tensor
from jitgrad.guards.object_state import MISSING
from jitgrad.jit.fast_call import FEW, FastCallWriter, NotSupportedError, listed, tuple_text
from jitgrad.jit.input_steps import CallState, array_of
from jitgrad.jit.output_views import ResultView
from jitgrad.jit.trace_result import Result, TraceResult
from jitgrad.ops.creation import clone
from jitgrad.runtime.ownership import invalidate


@dataclass(frozen=True, eq=False, slots=True)
class WrapResults:
    """Outputs that are results without a history become tensors."""

    traced: TraceResult

    def run(self, call: CallState) -> None:
        for output, weak in self._weak().items():
            if output not in call.tensors:
                array = call.outputs[output]
                call.tensors[output] = Tensor(array, Aval(array.shape, array.dtype, weak))
        for output in self._new_leaves():
            call.tensors[output]._requires_grad = True
        for output in self._read_only():
            protect(call.tensors[output])
        for output, node in self._freed().items():
            call.tensors[output].grad_fn, call.tensors[output]._requires_grad = node, True

    def _weak(self) -> dict[int, bool]:
        """The outputs that become tensors, and whether these are weak."""
        results = self.traced.made_by_calls
        bases = {r.base: False for r in results if r.base is not None}
        return bases | {r.output: r.weak for r in reversed(results) if r.output is not None and not r.number}

    def _new_leaves(self) -> list[int]:
        return [r.output for r in self.traced.results if r.output is not None and r.new_leaf]

    def _read_only(self) -> list[int]:
        return [r.output for r in self.traced.made_by_calls if r.output is not None and r.read_only]

    def _freed(self) -> dict[int, Node]:
        """The outputs from which backward is an error, with the node that raises it, as in eager execution."""
        return {r.output: r.freed for r in self.traced.made_by_calls if r.output is not None and r.freed is not None}

    def write(self, w: FastCallWriter) -> None:
        self._write_tensors(w)
        for output in self._new_leaves():
            w.line(f"{w.tensors[output]}._requires_grad = True")
        for output in self._read_only():
            w.names["protect"] = protect
            w.line(f"protect({w.tensors[output]})")
        for output, node in self._freed().items():
            w.line(f"{w.tensors[output]}.grad_fn, {w.tensors[output]}._requires_grad = {w.constant('H', node)}, True")

    def _write_tensors(self, w: FastCallWriter) -> None:
        weak = {output: is_weak for output, is_weak in self._weak().items() if output not in w.tensors}
        if len(weak) <= FEW:
            for output, is_weak in weak.items():
                w.tensors[output] = f"t{output}"
                w.line(f"t{output} = {w.new_tensor(output, is_weak)}")
            return
        avals = w.constant("R", tuple(w.aval_of(output, weak[output]) for output in weak))
        arrays, addresses = (listed(texts) for texts in zip(*[w.array_of(output) for output in weak], strict=True))
        w.line(f"t = [*map(of_result, ({arrays},), {avals}, ({addresses},))]")
        w.tensors.update((output, f"t[{k}]") for k, output in enumerate(weak))


def protect(broadcast: Tensor) -> None:
    """Make the memory of ``broadcast`` read-only, as that of a broadcast is in eager execution."""
    if isinstance(broadcast._data, np.ndarray):
        broadcast._data.flags.writeable = False


def drop_history(x: Tensor) -> None:
    """Take its history from ``x``, as `detach_` does."""
    x.grad_fn, x._requires_grad = None, False


@dataclass(frozen=True, eq=False, slots=True)
class InvalidateDonated:
    """The caller's donated tensors lose their data; a tensor that is also a result keeps it."""

    traced: TraceResult
    donated: tuple[int, ...]
    tombstone: Donated

    def run(self, call: CallState) -> None:
        results = {id(r.source.key) for r in self.traced.made_by_calls if r.source is not None}
        invalidate((call.leaves[k] for k in self.donated if id(call.leaves[k]) not in results), self.tombstone)

    def write(self, w: FastCallWriter) -> None:
        if self.donated:
            if any(r.source is not None and r.source.kind is not SourceKind.ARGUMENT for r in self.traced.made_by_calls):
                raise NotSupportedError  # a donated argument may be that object
            w.names["invalidate"] = invalidate
            texts = [w.leaves[k] for k in self.donated]
            w.line(f"invalidate(({listed(texts)},), {w.constant('G', self.tombstone)})")


@dataclass(frozen=True, eq=False, slots=True)
class BuildResult:
    """The result of the function: containers around tensors, passed objects and static values.

    What the function stores outside is part of the same tree. It is stored last, and gradients are set before it: they may
    be results, too.
    """

    traced: TraceResult

    def run(self, call: CallState) -> None:
        objects = self._objects(call)
        gradients = iter(objects[len(self.traced.results) :])
        for change in self.traced.gradients:
            holder = objects[change.target] if isinstance(change.target, int) else change.target.resolve(call.leaves)
            holder._grad = None if change.grad is None else next(gradients)
        for source in self.traced.detached:
            drop_history(source.resolve(call.leaves))
        call.result = optree.tree_unflatten(self.traced.treedef, objects[: len(self.traced.results)])
        if self.traced.stores:
            call.result, values = call.result
            for k in range(call.stored, len(values)):  # from 0, unless Ctrl-C stopped this step
                self.traced.stores[k].make(values[k])
                call.stored = k + 1

    def _objects(self, call: CallState) -> list[Any]:
        """The leaves of the result, and the gradients that are set."""
        leaves: list[Any] = []
        views: dict[Result, Tensor] = {}  # one object for one that is returned twice
        reshaped: dict[ResultView, Tensor] = {}
        copies = self.traced.made.copies()
        for r in self.traced.made_by_calls:
            if r.source is not None:
                x = r.source.resolve(call.leaves)
            elif r.base is not None:
                x = call.tensors[r.base]
            elif r.output is None:
                x = r.value if r.copied is None else copies[r.copied]
            else:
                x = to_host(call.outputs[r.output]).item() if r.number else call.tensors[r.output]
            if r.view is not None:
                views[r] = x = views[r] if r in views else self._view(r, r.view, x, call, reshaped)
            leaves.append(x)
        return leaves

    def _view(self, r: Result, view: ResultView, x: Tensor, call: CallState, reshaped: dict[ResultView, Tensor]) -> Tensor:
        """The ``view`` of ``x``, or of one of the ``reshaped`` copies of it that eager execution makes in this layout."""
        for part in r.through:  # what eager copies, the views of it have in common
            reshaped[part] = x = reshaped[part] if part in reshaped else part.of(x)
        through = r.reshaped
        if through is None or _is_row_major(x, [array_of(s.resolve(call.leaves)) for s in through.layout_of]):
            return view.of(x)
        if through.made not in reshaped:
            reshaped[through.made] = clone(through.made.of(x))
        return through.rest.of(reshaped[through.made])

    def write(self, w: FastCallWriter) -> None:
        objects = self._object_texts(w)
        texts = objects[: len(self.traced.results)]
        self._write_gradients(w, texts, objects[len(texts) :])
        containers = _tree_text(w, optree.tree_unflatten(self.traced.treedef, texts))
        unflatten = w.constant("T", self.traced.treedef.unflatten)
        tree = containers or f"{unflatten}([{listed(texts)}])"
        if self.traced.stores:
            w.line(f"result, stored = {tree}")
            self._write_stores(w)
            tree = "result"
        w.line(f"return {tree}")

    def _object_texts(self, w: FastCallWriter) -> list[str]:
        """An expression for each of `_objects`, in variables where setting gradients would change what it is."""
        texts: list[str] = []
        views: dict[Result, str] = {}
        reshaped: dict[ResultView, str] = {}
        if self.traced.made:
            w.line(f"copies = {w.constant('J', self.traced.made.copies)}()")
        for r in self.traced.made_by_calls:
            if r.output is not None:
                text = self._number_text(w, r.output) if r.number else w.tensors[r.output]
            elif r.base is not None:
                text = w.tensors[r.base]
            elif r.copied is not None:
                text = f"copies[{r.copied}]"
            else:
                text = w.constant("C", r.value) if r.source is None else self._source_text(w, r.source)
            if r.view is not None and r not in views:
                for part in r.through:
                    if part not in reshaped:
                        reshaped[part] = f"r{len(reshaped)}"
                        w.line(f"{reshaped[part]} = {w.constant('W', part.of)}({text})")
                    text = reshaped[part]
                views[r] = f"v{len(views)}"
                w.line(f"{views[r]} = {w.constant('W', r.view.of)}({text})")
            texts.append(views.get(r, text))
        return texts

    def _source_text(self, w: FastCallWriter, source: InputSource) -> str:
        text = w.object_text(source)
        if source.kind is not SourceKind.GRADIENT or not self.traced.gradients:
            return text
        w.line(f"{(name := f'k{len(w.lines)}')} = {text}")
        return name

    def _write_gradients(self, w: FastCallWriter, results: Sequence[str], gradients: Sequence[str]) -> None:
        """Text that sets gradients, in one loop where many tensors lose theirs, and that detaches arguments."""
        texts, targets = iter(gradients), [change.target for change in self.traced.gradients if change.grad is None]
        cleared = [t.key for t in targets if isinstance(t, InputSource) and t.kind is SourceKind.TENSOR]
        if len(cleared) > FEW:
            w.line(f"for t in {w.constant('L', tuple(cleared))}: t._grad = None")
        for change in self.traced.gradients:
            target = change.target
            holder = results[target] if isinstance(target, int) else w.object_text(target)
            if change.grad is not None:
                w.line(f"{holder}._grad = {next(texts)}")
            elif len(cleared) <= FEW or isinstance(target, int) or target.kind is not SourceKind.TENSOR:
                w.line(f"{holder}._grad = None")
        for source in self.traced.detached:
            w.names["drop_history"] = drop_history
            w.line(f"drop_history({w.object_text(source)})")

    def _write_stores(self, w: FastCallWriter) -> None:
        """Text that fills the places outside; constants in dicts, such as modes of many modules, in one loop."""
        _, values = optree.tree_unflatten(self.traced.treedef, self.traced.results)
        constants = []
        for k, (store, r) in enumerate(zip(self.traced.stores, values, strict=True)):
            constant = type(r) is Result and r.output is None and r.base is None and r.source is None and r.value is not MISSING
            if store.kind == "item" and constant:
                constants.append((store.holder, store.key, r.value))
            else:
                w.line(f"{w.constant('M', store.make)}(stored[{k}])")
        if constants:
            w.line(f"for place, key, value in {w.constant('N', constants)}: place[key] = value")

    def _number_text(self, w: FastCallWriter, output: int) -> str:
        array = w.array_of(output)[0]
        if not w.on_device:
            return f"{array}.item()"
        w.names["to_host"] = to_host
        return f"to_host({array}).item()"


def _is_row_major(x: Tensor, operands: Sequence[Any]) -> bool:
    """Whether eager execution would compute ``x`` from arrays in the layouts of ``operands`` in row-major order.

    Of operands that have all elements of ``x``, one in row-major order is enough, as in NumPy.
    """
    whole = [_gives_row_major(array) for array in operands if array.shape == x.shape]
    return any(whole) if whole else all(map(_gives_row_major, operands))


def _gives_row_major(array: Any) -> bool:
    """Whether NumPy makes a C-contiguous array where it computes with ``array`` element by element."""
    return array.flags.c_contiguous or (isinstance(array, np.ndarray) and np.empty_like(array).flags.c_contiguous)


def _tree_text(w: FastCallWriter, tree: Any) -> str:
    """An expression for tuples, lists and dicts of expressions; "" for other containers."""
    kind = type(tree)
    if kind is str:
        return str(tree)
    if kind not in (tuple, list, dict):
        return ""
    parts = [_tree_text(w, x) for x in (tree.values() if kind is dict else tree)]
    if "" in parts:
        return ""
    if kind is dict:
        return "{" + ", ".join(f"{w.constant('K', k)}: {text}" for k, text in zip(tree, parts, strict=True)) + "}"
    return tuple_text(parts) if kind is tuple else f"[{listed(parts)}]"
