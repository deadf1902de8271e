"""One level of differentiation: fresh inputs for a function, and whether outer levels differentiate
through it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from typing import Any

import optree

from jitgrad.autograd.backward import gradients
from jitgrad.autograd.modes import enable_grad
from jitgrad.autograd.reachable import reachable_nodes
from jitgrad.core.aval import is_differentiable
from jitgrad.core.context import current_interpreter, grad_enabled
from jitgrad.core.dispatch import apply_op
from jitgrad.core.errors import AutogradError, DtypeError, OperandError
from jitgrad.core.tape_node import edge_of, next_sequence, record
from jitgrad.core.tensor import Tensor
from jitgrad.ops.creation import zeros_like
from jitgrad.ops.identity import ALIAS

# The levels whose functions are running, outermost first.
_running: ContextVar[tuple[Level, ...]] = ContextVar("running_levels", default=())

# The level whose gradients are computed without a record, though its results might be differentiated from outside.
unrecorded_level: ContextVar[Level | None] = ContextVar("unrecorded_level", default=None)

def same_memory(tensor: Tensor) -> Tensor:
    """A tensor over the same memory (or traced value), without history."""
    interpreter = current_interpreter.get()
    view = Tensor(interpreter.current(tensor), tensor._aval, tensor._storage)
    tensor._storage.share(tensor, view)
    interpreter.share(tensor, view)
    return view


class Level:
    """One application of a functional transform.

    Its inputs are new tensors over the caller's data, so gradients of different levels stay apart.
    They are leaves, or results of the identity op if the caller's tensor requires grad. ``nested``
    becomes true if results depend on an outside tensor that requires grad; then the gradient
    computation is recorded, too.
    """

    def __init__(self) -> None:
        self.outer_mode: bool = grad_enabled.get()
        self.since: int = next_sequence()
        self.inputs: list[Tensor] = []
        self.inner: list[Tensor] = []  # inputs of inner levels, which do not count as outside
        self.nested: bool = False

    def enter(self, tree: Any, what: str) -> Any:
        """``tree`` with fresh inputs as leaves. Raises DtypeError for a leaf that is not
        floating."""
        paths, leaves, treedef = optree.tree_flatten_with_path(tree)
        fresh = [self._fresh(x, what, path) for path, x in zip(paths, leaves, strict=True)]
        self.inputs += fresh
        for outer in _running.get():
            outer.inner += fresh
        return optree.tree_unflatten(treedef, fresh)

    def _fresh(self, x: Any, what: str, path: tuple[Any, ...]) -> Tensor:
        place = "".join(f"[{key!r}]" for key in path)
        try:
            given = x if isinstance(x, Tensor) else apply_op(ALIAS, x)
        except OperandError as error:
            raise OperandError(f"{what}: cannot differentiate with respect to argument{place}: {error}") from None
        if not is_differentiable(given.dtype):
            raise DtypeError(
                f"{what}: argument{place} is {given.aval}; only floats and complex numbers have gradients. "
                "Convert it with .astype(jitgrad.float32), write 2.0 in place of 2, or change argnums"
            )
        fresh = same_memory(given)
        if given._requires_grad and self.outer_mode:
            record(ALIAS, (given,), {}, fresh)
        else:
            fresh._requires_grad = True
        return fresh

    def call(self, f: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """``f(*args, **kwargs)``, recorded even under ``no_grad``."""
        token = _running.set((*_running.get(), self))
        try:
            with enable_grad():
                return f(*args, **kwargs)
        finally:
            _running.reset(token)

    def look_outside(self, results: Iterable[Any]) -> None:
        """Set ``nested`` if ``results`` depend on outside tensors that require grad."""
        if not self.outer_mode or self.nested:
            return
        edges = [edge_of(x) for x in results]
        own = {id(x) for x in (*self.inputs, *self.inner)}
        for node in reachable_nodes(edges, self.since):
            edges.extend(node.edges or ())
        self.nested = any(
            id(edge) not in own if isinstance(edge, Tensor) else edge is not None and edge[0].sequence < self.since
            for edge in edges
        )

    def leave(self, tree: Any) -> Any:
        """Results for the caller, without this level's history unless an outer level needs it."""
        return optree.tree_map(self._leave, tree)

    def _leave(self, x: Any) -> Any:
        if self.nested or not isinstance(x, Tensor) or not x._requires_grad:
            return x
        is_inner = any(x is y for y in self.inputs) if x.grad_fn is None else x.grad_fn.sequence >= self.since
        return same_memory(x) if is_inner else x

    def pull(self, outs: Sequence[Tensor], seeds: Sequence[Tensor], *, retain: bool, create: bool) -> list[Tensor]:
        """The gradients of all inputs; zeros where ``outs`` does not depend on one."""
        grads = self.pull_sparse(outs, seeds, retain=retain, create=create)
        return [zeros_like(same_memory(x)) if g is None else g for x, g in zip(self.inputs, grads, strict=True)]

    def pull_sparse(
        self, outs: Sequence[Tensor], seeds: Sequence[Tensor], *, retain: bool, create: bool
    ) -> list[Tensor | None]:
        unwatched = create or self.nested or not (self.outer_mode and grad_enabled.get())
        token = unrecorded_level.set(None if unwatched else self)
        try:
            return gradients(outs, seeds, self.inputs, retain_graph=retain, create_graph=create, since=self.since)
        finally:
            unrecorded_level.reset(token)


def tensors_of(what: str, tree: Any) -> tuple[list[Tensor], Any]:
    """Leaves and structure of a result. Raises AutogradError unless all are float Tensors."""
    leaves, treedef = optree.tree_flatten(tree)
    for x in leaves:
        if not isinstance(x, Tensor) or not is_differentiable(x.dtype):
            returned = x.aval if isinstance(x, Tensor) else f"a {type(x).__name__}"
            raise AutogradError(f"{what}: the function must return float Tensors; it returned {returned}")
    return list(leaves), treedef


def scalar_of(what: str, out: Any) -> Tensor:
    """``out`` checked to be a loss. Raises AutogradError unless it is one real float element."""
    if isinstance(out, Tensor) and out.size == 1 and out.dtype.kind == "f":
        return out
    returned = out.aval if isinstance(out, Tensor) else f"a {type(out).__name__}"
    if isinstance(out, Tensor) and out.dtype.kind == "c":
        raise AutogradError(f"{what}: a loss must be real, the function returned {returned}: take its .real, or abs(x)**2")
    hint = " (with has_aux=True: a pair of it and anything else)" if isinstance(out, tuple) else ""
    raise AutogradError(f"{what}: the function must return a Tensor of one float element{hint}; it returned {returned}")
