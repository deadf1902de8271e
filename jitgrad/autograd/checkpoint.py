"""checkpoint: backward recomputes the intermediate results of a function instead of saving them."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
import optree

from jitgrad.autograd.backward import gradients
from jitgrad.autograd.backward_pass import edge_key
from jitgrad.autograd.leaf_gradients import accumulate
from jitgrad.autograd.level import same_memory
from jitgrad.autograd.modes import enable_grad
from jitgrad.core.context import Interpreter, current_interpreter, grad_enabled, open_tapes
from jitgrad.core.errors import AutogradError, InPlaceError, require_function
from jitgrad.core.op import Kind, OpDef, define
from jitgrad.core.storage import Storage
from jitgrad.core.tape_node import Node, edge_of, next_sequence, record
from jitgrad.core.tensor import Tensor
from jitgrad.ops.identity import ALIAS

_F = TypeVar("_F", bound=Callable[..., Any])


def _never(*_operands: Any) -> Any:
    raise AutogradError("checkpoint is no op that can be applied: call jitgrad.checkpoint(f)(...)")


CHECKPOINT = define(
    "checkpoint(*operands)",
    kind=Kind.OPAQUE,
    eager=_never,
    abstract=_never,
    multiple=True,
    partial_vjp=True,
    takes_complex=True,
    register=False,
)


def checkpoint(f: _F) -> _F:
    """A function like ``f`` whose intermediate results backward recomputes (T. Chen et al.,
    "Training deep nets with sublinear memory cost", 2016).

    Gradients reach arguments (pytrees, positional and keyword) and outside tensors that ``f`` uses,
    such as the parameters of a module. ``f`` must do the same in both runs. Random generators and
    other tensors that it changes in place outside of autograd get their earlier values for the
    second run, and the later ones back after it.

    Raises (in backward):
        InPlaceError: a tensor that ``f`` reads was changed in between.
        AutogradError: the second run returned other results.
    """

    require_function("checkpoint", f)

    @wraps(f)
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        if not grad_enabled.get():
            return f(*args, **kwargs)
        return _Segment(f, args, kwargs).run()

    return cast(_F, checkpointed)


class _Watch:
    """A tape for the first run: collects outside tensors, and the memory that it reads."""

    def __init__(self, since: int, inputs: Sequence[Any]) -> None:
        self.since = since
        self.inputs = {id(x) for x in inputs}
        self.outside: dict[Any, Tensor] = {}
        self.storages: dict[int, tuple[Storage, int]] = {}  # with the version at the first use

    def record(self, node: Node, operands: tuple[Any, ...]) -> None:
        for x in operands:
            if not isinstance(x, Tensor):
                continue
            self.storages.setdefault(id(x._storage), (x._storage, x._storage.version))
            if x._requires_grad and self.is_outside(x):
                self.outside[edge_key(edge_of(x))] = x

    def is_outside(self, x: Tensor) -> bool:
        """Whether ``x`` was neither an argument nor computed since."""
        return id(x) not in self.inputs if x.grad_fn is None else x.grad_fn.sequence < self.since


@dataclass(frozen=True, slots=True)
class _Write:
    """Memory that the first run changed in place, and the tensors over it at that time with their values before."""

    storage: Storage
    before: list[tuple[weakref.ref[Tensor], Tensor]]

    def alive(self) -> list[tuple[Tensor, Tensor]]:
        """Those of the tensors that are still there, with their values before."""
        return [(target, before) for ref, before in self.before if (target := ref()) is not None]


class WriteLog:
    """The current interpreter, which also records values that in-place changes overwrite."""

    def __init__(self, inner: Interpreter) -> None:
        self.inner = inner
        self.writes: dict[int, _Write] = {}
        self.gradients: dict[int, tuple[weakref.ref[Tensor], Tensor | None]] = {}  # with their tensors, before the first change

    def write(self, target: Tensor, value: Any) -> None:
        self.keep(target)
        self.inner.write(target, value)

    def write_grad(self, target: Tensor, grad: Tensor | None) -> None:
        if id(target) not in self.gradients:
            self.gradients[id(target)] = weakref.ref(target), self.inner.read_grad(target)
        self.inner.write_grad(target, grad)

    def keep(self, target: Tensor) -> None:
        """Keep the contents of ``target`` and of what shares its memory, which is about to be changed."""
        if isinstance(self.inner, WriteLog):
            self.inner.keep(target)
        storage = target._storage
        if id(storage) not in self.writes:
            # what is written to may be a view of what stays
            over = (target, *[t for t in storage.others(target) if self.inner.knows(t)])
            shown = [(id(self.inner.current(t)), t) for t in over]
            values = {key: snapshot(self.inner, t) for key, t in dict(shown).items()}
            self.writes[id(storage)] = _Write(storage, [(weakref.ref(t), values[key]) for key, t in shown])

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def snapshot(interpreter: Interpreter, tensor: Tensor) -> Tensor:
    """A copy of ``tensor``, safe from later changes."""
    data = interpreter.current(tensor)
    return Tensor(data.copy() if isinstance(data, np.ndarray) else data)


@contextmanager
def _logged_writes() -> Iterator[WriteLog]:
    log = WriteLog(current_interpreter.get())
    token = current_interpreter.set(cast(Interpreter, log))
    try:
        yield log
    finally:
        current_interpreter.reset(token)


@contextmanager
def _put_back(writes: Sequence[_Write]) -> Iterator[None]:
    """Within it, the tensors of ``writes`` have their values from before the first run."""
    interpreter = current_interpreter.get()
    alive = [pair for w in writes for pair in w.alive()]
    now = [(target, snapshot(interpreter, target), target._storage.version) for target, _ in alive]
    for target, before in alive:
        interpreter.write(target, before)
    try:
        yield
    finally:
        for target, value, version in now:
            interpreter.write(target, value)
            target._storage.version = version  # its content has not changed


@contextmanager
def _put_back_gradients(gradients: Sequence[tuple[weakref.ref[Tensor], Tensor | None]]) -> Iterator[None]:
    """Within it, tensors have the gradients from before the first run; what the second run adds is dropped."""
    interpreter = current_interpreter.get()
    alive = [(target, before) for ref, before in gradients if (target := ref()) is not None]
    now = [(target, interpreter.read_grad(target)) for target, _ in alive]
    for target, before in alive:
        interpreter.write_grad(target, before)
    try:
        yield
    finally:
        for target, grad in now:
            interpreter.write_grad(target, grad)


@contextmanager
def _only_tape(*tapes: Any) -> Iterator[None]:
    token = open_tapes.set(tapes)
    try:
        yield
    finally:
        open_tapes.reset(token)


class _Segment:
    """One checkpointed call: its arguments, and the state that the second run needs."""

    def __init__(self, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.f = f
        leaves, self.treedef = optree.tree_flatten((args, kwargs))
        self.places = [k for k, x in enumerate(leaves) if isinstance(x, Tensor)]
        self.leaves: list[Any] = [None if isinstance(x, Tensor) else x for x in leaves]
        self.given: list[Tensor] = [leaves[k] for k in self.places]
        self.results: list[int] = []
        self.changed: dict[int, Tensor] = {}  # those of ``given`` that the first run changes, by position
        self.writes: list[_Write] = []
        self.gradients: list[tuple[weakref.ref[Tensor], Tensor | None]] = []  # that the first run changed, as they were
        self.versions: list[tuple[Storage, int]] = []

    def call(self, tensors: Sequence[Tensor]) -> tuple[list[Any], Any]:
        """The flat results of ``f`` on ``tensors`` and the other arguments, and their structure."""
        leaves = list(self.leaves)
        for k, x in zip(self.places, tensors, strict=True):
            leaves[k] = x
        args, kwargs = optree.tree_unflatten(self.treedef, leaves)
        with enable_grad():
            return optree.tree_flatten(self.f(*args, **kwargs))  # type: ignore[no-any-return]

    def run(self) -> Any:
        """The first run: its graph is dropped, and one node is recorded in its place."""
        given = self.given
        fresh = [_leaf_like(x) if x._requires_grad else x for x in given]
        watch = _Watch(next_sequence(), fresh)
        with _only_tape(watch), _logged_writes() as log:
            outs, out_tree = self.call(fresh)
        self.hand_on_gradients(fresh)
        originals = {id(x): original for x, original in zip(fresh, given, strict=True)}
        outs = [originals.get(id(x), x) for x in outs]
        self.results = [k for k, x in enumerate(outs) if _has_history_since(x, watch.since)]
        self.check_all_logged(watch, log)
        self.keep_writes(log, watch.since)
        self.gradients = [*log.gradients.values()]
        self.given = []  # the node has them now, with their versions
        if not self.results:
            return optree.tree_unflatten(out_tree, outs)
        operands = (*given, *watch.outside.values())
        detached = tuple(same_memory(outs[k]) for k in self.results)
        inside = {id(x._storage) for x in outs if isinstance(x, Tensor)} | {id(w.storage) for w in self.writes}
        self.versions = [(s, s.version) for s, _ in watch.storages.values() if id(s) not in inside]
        record(self.op(len(operands)), operands, {}, detached)
        for k, x in zip(self.results, detached, strict=True):
            outs[k] = x
        return optree.tree_unflatten(out_tree, outs)

    def hand_on_gradients(self, fresh: Sequence[Tensor]) -> None:
        """What a backward pass in the first run gave to the leaves ``fresh`` is for the arguments.

        Raises:
            AutogradError: an argument was computed from others, to which the gradient would have to flow on.
        """
        interpreter = current_interpreter.get()
        for x, leaf in zip(self.given, fresh, strict=True):
            grad = interpreter.read_grad(leaf) if leaf is not x else None
            if grad is None:
                continue
            if x.grad_fn is not None:
                raise AutogradError(
                    f"checkpoint({getattr(self.f, '__name__', self.f)}): backward() in it reaches an argument {x.aval} that was "
                    "computed from other tensors. Call backward() outside, use jitgrad.grad, or pass x.detach()."
                )
            accumulate(x, grad)

    def check_all_logged(self, watch: _Watch, log: WriteLog) -> None:
        """Raise InPlaceError if an unlogged write changed memory, which nothing can restore."""
        for storage, version in watch.storages.values():
            if storage.version != version and id(storage) not in log.writes:
                raise InPlaceError(
                    f"checkpoint({getattr(self.f, '__name__', self.f)}): a compiled function that it calls changes a "
                    f"tensor in place (at {storage.changed_at.full()}), such as a random generator or running "
                    "statistics. Put checkpoint inside the @jit function instead."
                )

    def keep_writes(self, log: WriteLog, since: int) -> None:
        """Keep old values of arguments and of tensors outside, such as running statistics, but not of own results."""
        self.changed = {k: x for k, x in enumerate(self.given) if id(x._storage) in log.writes}
        for write in log.writes.values():
            before = [(weakref.ref(x), old) for x, old in write.alive() if not _has_history_since(x, since)]
            if before:
                self.writes.append(_Write(write.storage, before))

    def op(self, operands: int) -> OpDef:
        return replace(CHECKPOINT, vjp=self.vjp, saves=(frozenset(range(operands)),), saves_out=(False,))

    def vjp(self, g: tuple[Tensor | None, ...], _out: Any, *operands: Tensor) -> list[Tensor | None]:
        """The second run, and backward through it."""
        name = getattr(self.f, "__name__", str(self.f))
        for storage, version in self.versions:
            if storage.version != version:
                raise InPlaceError(
                    f"checkpoint({name}): a tensor that it reads was changed in place at {storage.changed_at.full()}, "
                    "before backward could run it again. .clone() the tensor first."
                )
        nested = grad_enabled.get()
        count = len(self.places)
        since = next_sequence()
        with _put_back(self.writes), _put_back_gradients(self.gradients):
            given = [_fresh(x, self.changed.get(k, x), nested) for k, x in enumerate(operands[:count])]
            with _only_tape():
                outs, _ = self.call(given)
            return self.pull(g, outs, given, operands, since)

    def pull(
        self, g: tuple[Tensor | None, ...], outs: Sequence[Any], given: Sequence[Tensor], operands: Sequence[Tensor], since: int
    ) -> list[Tensor | None]:
        """Backward through the second run, which made ``outs`` of ``given``."""
        name = getattr(self.f, "__name__", str(self.f))
        nested = grad_enabled.get()
        count = len(given)
        chosen = [outs[k] for k in self.results if k < len(outs) and _has_history_since(outs[k], since)]
        if len(chosen) != len(g) or any(gx is not None and x.shape != gx.shape for x, gx in zip(chosen, g, strict=True)):
            raise AutogradError(f"checkpoint({name}): the second run returned something else than the first")
        arrived = [(x, gx) for x, gx in zip(chosen, g, strict=True) if gx is not None]
        places = [*given, *operands[count:]]
        grads = gradients(
            [x for x, _ in arrived],
            [gx for _, gx in arrived],
            [x for x in places if x._requires_grad],
            retain_graph=nested,
            create_graph=nested,
            since=since,
            quiet=[edge_of(x) for x in operands[count:]],
            inside_vjp=True,
        )
        remaining = iter(grads)
        return [next(remaining) if x._requires_grad else None for x in places]


def _has_history_since(x: Any, since: int) -> bool:
    return isinstance(x, Tensor) and x.grad_fn is not None and x.grad_fn.sequence >= since


def _leaf_like(x: Tensor) -> Tensor:
    leaf = same_memory(x)
    leaf._requires_grad = True
    current_interpreter.get().take_over(leaf, x)
    return leaf


def _fresh(x: Tensor, same: Tensor, nested: bool) -> Tensor:
    """An input of the second run, with the contents of ``same`` and a history only if backward is recorded: that of ``x``."""
    if not x._requires_grad:
        return same
    if not nested:
        return _leaf_like(same)
    alias = same_memory(same)
    record(ALIAS, (x,), {}, alias)
    return alias
