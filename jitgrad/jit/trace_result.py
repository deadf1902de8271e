"""What the trace of a @jit function gives: its graph, its results, and what it changes outside."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import optree

from jitgrad.compiler.input_source import InputSource, SourceKind
from jitgrad.compiler.memory_orders import Question
from jitgrad.compiler.number_conditions import NumberCondition
from jitgrad.core.errors import AutogradError
from jitgrad.core.ir import Graph
from jitgrad.core.tape_node import Node
from jitgrad.core.tensor import Tensor
from jitgrad.guards.guard import Guard
from jitgrad.guards.writes import RepeatedStore
from jitgrad.jit.devices import TracePlace
from jitgrad.jit.made_objects import MadeObjects
from jitgrad.jit.output_views import Reshaped, ResultView


@dataclass(frozen=True, eq=False, slots=True)
class Effect:
    """A change of outside state: the data of ``target``, a tensor or an array, becomes ``output``.

    ``history``: the target takes over the history of the output, or loses its own if that has none.
    ``replaced``: the target gets the memory of the output, and others who share its memory do not.
    """

    target: InputSource
    output: int
    history: bool = False
    replaced: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Result:
    """One leaf of the function's result, or of what it stores outside: a new tensor, an object, a view of either, or a
    value."""

    output: int | None = None  # of the program, for a new tensor
    weak: bool = False
    new_leaf: bool = False  # the new tensor requires grad
    read_only: bool = False  # the new tensor is a broadcast, which shows elements several times in eager execution
    freed: Node | None = None  # the history of the new tensor, from which backward is an error
    source: InputSource | None = None  # of an object that exists before the call
    base: int | None = None  # the output that has the memory of a new tensor which shares it
    through: tuple[ResultView, ...] = ()  # what leads from ``source`` to where ``view`` starts
    view: ResultView | None = None  # of ``source`` or ``base``
    reshaped: Reshaped | None = None  # how ``view`` goes through a reshape, which may copy
    value: Any = None
    copied: int | None = None  # the position of the copy of ``value`` that each call makes
    number: bool = False  # the output becomes a Python number


@dataclass(frozen=True, eq=False, slots=True)
class GradientChange:
    """The .grad of ``target`` becomes what ``grad`` says, or None.

    ``target``: where a tensor comes from that exists before the call, or the number of a result.
    """

    target: InputSource | int
    grad: Result | None


@dataclass(frozen=True, eq=False, slots=True)
class Decided:
    """``output`` of the program was ``contents`` in the call that was traced, and what it ran depends on that.

    ``what`` says where, and which operation asked.
    """

    output: int
    contents: bool | int
    what: str

    def __str__(self) -> str:
        return f"{self.what} is {self.contents}"


@dataclass(frozen=True, eq=False, slots=True)
class TraceResult:
    """The results of one trace.

    Attributes:
        results, treedef: of the function's result; with ``stores`` of the pair of it and of a list
            of their values.
        differentiable: positions of the outputs through which gradients flow to the inputs.
        broken: errors that backward from these outputs raises: the function changed in place what
            that reads, or freed its graph.
        wants_grad: positions of the inputs that require grad.
        written: positions of the inputs whose data the function changes in place.
        contiguous: positions of the inputs whose data must be C-contiguous: an in-place change in the
            trace shows, or does not show, in a reshape for that reason.
        orders: tensors of whose memory the function asked something, the question, and the answer.
        grads_read: sources of the tensors whose gradients were read, and whether that required grad; None: there was none.
        alive: objects whose ids other parts of the program hold.
        names: paths from the function to tensors, by the ids of the tensors.
        shared: (position, tensor) of the arguments that are also outside tensors.
        number_conditions: in which calls Python's arithmetic of number arguments gives floats, or raises, as in the trace.
        compared: the outside tensors that the function compares with others by identity.
        made: the objects among the results that each call makes.
        stores: the changes of Python state that a compiled call makes.
        changes_python: running the function changes Python state in other ways.
        python_effects: the places of these changes that the function does not read.
        gradients: the changes of .grad, which are the last, in this order.
        detached: arguments that lose their history.
        place: the device that it runs on.
        decided: the values that Python code asked for, in this order.
        asked_class: whether the function asked for the class of an array, for which the trace has a tensor.
        argument_names: the flat arguments of the call, for messages.
    """

    graph: Graph
    sources: tuple[InputSource, ...]
    results: tuple[Result, ...]
    treedef: Any
    effects: tuple[Effect, ...]
    differentiable: tuple[int, ...]
    broken: Mapping[int, AutogradError]
    wants_grad: tuple[int, ...]
    written: tuple[int, ...]
    contiguous: tuple[int, ...]
    guard: Guard
    orders: tuple[tuple[InputSource, Question, bool], ...]
    grads_read: tuple[tuple[InputSource, bool | None], ...]
    alive: tuple[Any, ...]
    names: dict[int, str]
    made: MadeObjects
    stores: tuple[RepeatedStore, ...]
    changes_python: bool
    python_effects: tuple[str, ...]
    place: TracePlace
    gradients: tuple[GradientChange, ...] = ()
    detached: tuple[InputSource, ...] = ()
    decided: tuple[Decided, ...] = ()
    asked_class: bool = False
    argument_names: tuple[str, ...] = ()
    shared: tuple[tuple[int, Tensor], ...] = ()
    compared: tuple[Tensor, ...] = ()
    number_conditions: tuple[NumberCondition, ...] = ()

    @property
    def result_treedef(self) -> Any:
        """The containers of the function's result alone; those that existed before the call are leaves."""
        return self.treedef.child(0) if self.stores else self.treedef

    def result_leaves(self, result: Any) -> list[Any]:
        """The leaves of a ``result`` with the containers of the traced one.

        A class of named tuples that the function makes is another one in each run, under the same name.
        Raises ValueError if the containers differ.
        """
        traced = self.result_treedef
        try:
            return list(traced.flatten_up_to(result))
        except ValueError:
            leaves, treedef = optree.tree_flatten(result, none_is_leaf=True, namespace=traced.namespace)
            if str(treedef) != str(traced):
                raise
            return list(leaves)

    @property
    def made_by_calls(self) -> list[Result]:
        """The leaves of the function's result and of what it stores, and then the gradients that it sets."""
        return [*self.results, *[change.grad for change in self.gradients if change.grad is not None]]

    @property
    def changes_state(self) -> bool:
        """Whether a call changes tensors or arrays that exist before it."""
        return bool(self.effects or self.gradients or self.detached)

    def changed(self) -> list[InputSource]:
        """Where the tensors and arrays come from that a call changes."""
        sources = [change.target for change in self.gradients if isinstance(change.target, InputSource)]
        return [*[effect.target for effect in self.effects], *sources, *self.detached]

    def observed(self, result: Any, arguments: Sequence[Any]) -> list[tuple[str, Any]]:
        """What `made_by_calls` lists after an eager run on ``arguments`` that returned ``result``, with names."""
        leaves = [(f"result {k}", x) for k, x in enumerate(self.result_leaves(result))]
        for store in self.stores:
            name = f"what {store.path} holds"
            leaves += [(name, x) for x in optree.tree_leaves(store.present(), none_is_leaf=True)]
        gradients = []
        for change in self.gradients:
            if change.grad is not None:
                target = change.target
                holder = leaves[target][1] if isinstance(target, int) else target.resolve(arguments)
                gradients.append((f"gradient of {self.describe_holder(target)}", holder._grad))
        return leaves + gradients

    def hidden(self) -> dict[int, list[ResultView]]:
        """The outputs that are no results, but whose views are; of these their elements are known outside of the call."""
        outputs, found = {r.output for r in self.made_by_calls}, dict[int, list[ResultView]]()
        for r in self.made_by_calls:
            if r.base is not None and r.view is not None and r.base not in outputs:
                found.setdefault(r.base, []).append(r.view)
        return found

    def describe(self, source: InputSource) -> str:
        """The object at ``source`` in words, for messages."""
        return describe_source(self.names, self.argument_names.__getitem__, source)

    def describe_holder(self, target: InputSource | int) -> str:
        """The tensor in words whose gradient changes."""
        return f"result {target}" if isinstance(target, int) else self.describe(target)

    def positions_of(self, arguments: Collection[int]) -> list[int]:
        """Positions of the inputs that are these flat arguments."""
        return [k for k, s in enumerate(self.sources) if s.kind is SourceKind.ARGUMENT and s.key in arguments]

    def outside(self) -> dict[int, Tensor]:
        """The tensors from outside that the program reads, by id."""
        return {id(s.key): s.key for s in self.sources if s.kind is SourceKind.TENSOR}

    def told_apart(self) -> dict[int, Tensor]:
        """The outside tensors, by id, that must not be arguments which were traced as others.

        Where the function changes nothing and compares no identities, two inputs for one tensor do no harm.
        """
        compared = {id(t): t for t in self.compared}
        return {**self.outside(), **compared} if self.changes_state else compared

    def shared_arguments(self, leaves: Sequence[Any]) -> frozenset[int]:
        """Positions of arguments that are outside tensors as well, and not traced as such."""
        return leaves_among(self.told_apart(), leaves) - {k for k, _ in self.shared}


def leaves_among(tensors: Collection[int], leaves: Sequence[Any]) -> frozenset[int]:
    """Positions of the ``leaves`` that are among ``tensors``, which are given by id."""
    return frozenset([k for k, x in enumerate(leaves) if id(x) in tensors])


def describe_source(names: Mapping[int, str], argument_name: Callable[[int], str], source: InputSource) -> str:
    """The object at ``source`` in words; ``names`` are those of outside tensors, by id."""
    if source.kind is SourceKind.GRADIENT:
        return f"the gradient of {describe_source(names, argument_name, source.key)}"
    if source.kind is SourceKind.ARGUMENT:
        return argument_name(source.key)
    return names.get(id(source.key), "a captured array")
