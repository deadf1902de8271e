"""Makes compositions (see `jitgrad.eager.compositions`): records a function and its gradient as two lines of NumPy calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from jitgrad.autograd.applied_op import AppliedOp
from jitgrad.autograd.array_masks import MaskKind
from jitgrad.autograd.backward_pass import BackwardPass
from jitgrad.autograd.lines import Line, Recorder, Unrecordable, fold_constants, steps_for
from jitgrad.autograd.rule_parts import ArrayRule, Returned, arriving, read_saved, recording, rule_head
from jitgrad.core.aval import aval_of_array
from jitgrad.core.context import grad_enabled
from jitgrad.core.ir import Value
from jitgrad.core.op import Kind, OpDef
from jitgrad.core.tape_node import edge_of
from jitgrad.core.tensor import Tensor
from jitgrad.eager.compositions import Composition, make_compositions_by
from jitgrad.eager.large_arrays import LARGE
from jitgrad.eager.numpy_errors import RETURNS_ARRAYS

_LARGEST = 1 << 25  # bytes: a composition keeps all its operands, which single ops need not


class _Recording:
    """What a composition does, recorded: its operands, its steps and its result."""

    def __init__(self, composition: Composition, wanted: Sequence[int]) -> None:
        self.recorder = Recorder()
        self.operands = [Tensor(Value(aval)) for aval in composition.avals]
        for k in wanted:
            self.operands[k]._requires_grad = True
        with recording(self.recorder):
            self.out = composition.apply(self.operands)
        self.steps: list[AppliedOp] = fold_constants(self.recorder, self.recorder.steps, self.out)
        self.recorder.steps = [*self.steps]
        self.named = {id(x._data): f"x{k}" for k, x in enumerate(self.operands)}
        if type(self.out) is not Tensor or all(step.out is not self.out for step in self.steps):
            raise Unrecordable("a result that no op made")
        sizes = [x.aval.nbytes for x in (*self.operands, *[step.out for step in self.steps])]
        made = [step.out.aval.nbytes for step in self.steps if not step.op.views]
        # a node keeps all operands, which single ops need not; without one only results take memory
        self.large = max(sizes if wanted else made, default=0) >= LARGE
        if max(sizes) > _LARGEST or self.out.aval.weak:
            raise Unrecordable("large arrays, or numbers")
        self.roots = self._roots()
        if self.root(self.out) in self.named:
            raise Unrecordable("a view of an operand")

    def _roots(self) -> dict[int, int]:
        """By the id of each value that may share another one's memory, the id of that one."""
        roots: dict[int, int] = {}
        for step in self.steps:
            if step.op.views and isinstance(step.operands[0], Tensor):
                before = id(step.operands[0]._data)
                roots[id(step.out._data)] = roots.get(before, before)
        return roots

    def root(self, x: Tensor) -> int:
        """The id of the value whose memory ``x`` may share."""
        return self.roots.get(id(x._data), id(x._data))

    def gradients(self, kind: MaskKind | None) -> Returned:
        """The gradients of the operands, which the recorder lists after the steps."""
        token = grad_enabled.set(False)
        try:
            with recording(self.recorder):
                raw = Tensor(Value(self.out.aval))
                sweep = BackwardPass(None, None, False)
                sweep.run_nodes([(edge_of(self.out), arriving(raw, kind, self.named))])
                found = {id(leaf): g for leaf, g, _ in sweep.leaves.values()}  # masks and all
                return Returned([found.get(id(x)) for x in self.operands])
        finally:
            grad_enabled.reset(token)


def make_composition(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Composition | None:
    """The composition of ``function`` with such arguments; None if it cannot be recorded, or the arguments are wrong."""
    tensors = [x for x in (*args, *kwargs.values()) if type(x) is Tensor]
    if not tensors or not RETURNS_ARRAYS or any(x.aval.weak or x.dtype.kind == "c" for x in tensors):
        return None
    for x in tensors:
        x._aval = aval_of_array(x._data)
    avals = tuple([x.aval for x in tensors])
    wanted = [k for k, x in enumerate(tensors) if x._requires_grad] if grad_enabled.get() else []
    op = OpDef(function.__name__, Kind.OPAQUE, (), function, lambda _avals, _attrs: composition.out)
    composition = Composition(function, _placing(args, kwargs), op, avals, avals[0])
    try:
        recorded = _Recording(composition, wanted)
        composition.out = aval_of_array(recorded.out.aval)
        composition.outs = (composition.out,)
        if recorded.out._requires_grad:
            _with_gradient(composition, recorded, wanted)
        _write_forward(composition, recorded)
    except Exception:  # whatever it is, the function itself will say so
        return None
    return composition


def _placing(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Callable[[Sequence[Any]], tuple[list[Any], dict[str, Any]]]:
    """Puts tensors in the places that those among ``args`` and ``kwargs`` have; no tensor of these is kept."""
    given = [None if type(x) is Tensor else x for x in args]
    named = {name: None if type(x) is Tensor else x for name, x in kwargs.items()}
    positions = [k for k, x in enumerate(args) if type(x) is Tensor]
    names = [name for name, x in kwargs.items() if type(x) is Tensor]

    def place(tensors: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        placed, keywords = [*given], dict(named)
        for k, x in zip(positions, tensors):  # the further ones have names
            placed[k] = x
        keywords.update(zip(names, tensors[len(positions) :], strict=True))
        return placed, keywords

    return place


def _with_gradient(composition: Composition, recorded: _Recording, wanted: Sequence[int]) -> None:
    """Decide what is kept, and write the rule."""
    returned = recorded.gradients(None)
    composition.edges = tuple([k for k in wanted if returned.parts[k] is not None])
    count = len(recorded.steps)
    own = {id(step.out._data): j for j, step in enumerate(recorded.steps)}
    backward = steps_for(recorded.recorder.steps[count:], returned.tensors)
    read = [x for step in backward for x in step.operands if isinstance(x, Tensor)] + returned.tensors
    composition.kept = tuple(sorted({own[id(x._data)] for x in read if id(x._data) in own}))
    composition.recipe.rule = _rule(composition, recorded, returned, None)
    composition.make_rule = partial(composition_rule, composition)


def _write_forward(composition: Composition, recorded: _Recording) -> None:
    line = Line(recorded.recorder, recorded.named)
    kept = [recorded.steps[j].out for j in composition.kept]
    wanted = [recorded.out, *kept]
    if not line.add_grouped(steps_for(recorded.steps, wanted), wanted) and recorded.large:
        raise Unrecordable("large arrays, which the tape would give up earlier")
    names = ", ".join(f"x{k}" for k in range(len(recorded.operands)))
    listed = "".join(f"{line[x]}, " for x in kept)
    composition.forward = line.function(f"forward({names})", f"{line[recorded.out]}, ({listed})")


def composition_rule(composition: Composition, kind: MaskKind | None) -> ArrayRule | None:
    """The rule of ``composition`` for gradients under a mask of ``kind``; None if there is none."""
    token = grad_enabled.set(True)
    try:
        recorded = _Recording(composition, composition.edges)
        return _rule(composition, recorded, recorded.gradients(kind), kind)
    except Exception:  # as above
        return None
    finally:
        grad_enabled.reset(token)


def _rule(composition: Composition, recorded: _Recording, returned: Returned, kind: MaskKind | None) -> ArrayRule:
    """The function of the steps of the gradient, and of those before whose results were not kept."""
    named, text = dict(recorded.named), []
    kept = {id(x._data): x for x in [recorded.steps[j].out for j in composition.kept]}
    steps = steps_for(recorded.recorder.steps, returned.tensors, kept)
    read = {id(x._data): x for step in steps for x in step.operands if isinstance(x, Tensor)}
    read |= {id(x._data): x for x in returned.tensors}
    sources = {recorded.root(x) for x in read.values()}
    for k, x in enumerate(recorded.operands):
        if id(x._data) in sources:
            text += read_saved(f"node.saved[{k}]", f"x{k}")
    # a later change of the result would change what was kept of its memory
    if recorded.root(recorded.out) in {recorded.root(x) for value, x in kept.items() if value in read}:
        if kind is not None and not composition.reads_out:
            raise Unrecordable("the result")
        composition.reads_out = True
        text += read_saved("node.saved_outs[0]", "out")
    for place, value in enumerate(kept):
        named[value] = f"k{place}"
        if value in read:
            text.append(f"k{place} = node.kept[{place}]")
    line = Line(recorded.recorder, named)
    line.text += text
    line.add_grouped(steps, returned.tensors)
    return line.function(rule_head(kind), returned.text(line))


make_compositions_by(make_composition)
