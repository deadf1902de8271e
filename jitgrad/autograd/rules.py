"""The gradient of an op as a function of arrays: its vjp, recorded once for operands of certain avals.

A vjp is written in ops on tensors. Where backward itself is not recorded, the tensors, their avals and the
choice of NumPy's functions are the same each time. What remains is a straight line of calls, which is
written as a Python function. For ``multiply(x, y)``, both with a gradient, it is::

    def rule(node, g):
        x0, memory, version = node.saved[0]
        if memory.version != version: node.unpack()
        x1, memory, version = node.saved[1]
        if memory.version != version: node.unpack()
        t0 = multiply(g, x1)
        t1 = multiply(g, x0)
        return t0, t1

A rule for gradients under a mask takes the condition of the mask as a third argument. Where a vjp makes a masked gradient,
its rule returns a MaskedArray.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from jitgrad.autograd.array_masks import MaskedArray, MaskKind
from jitgrad.autograd.lines import Line, Recorder, steps_for
from jitgrad.autograd.local_gradients import fit, vjp_of
from jitgrad.autograd.rule_parts import ArrayRule, Returned, arriving, read_saved, recording, rule_head
from jitgrad.core.ir import Value
from jitgrad.core.plan import Recipe
from jitgrad.core.tape_node import Node
from jitgrad.core.tensor import Tensor
from jitgrad.eager.compositions import CompositionNode
from jitgrad.ops.arithmetic import DIVIDE, MULTIPLY

_USES = 3  # recording takes as long as some ten calls of the vjp, so it waits until an op has come back
_MOST = 64  # rules of a recipe for masks and numbers
_ANY_NUMBER = frozenset({MULTIPLY, DIVIDE})  # their vjps do not look at the value of a number


def gradients_by_rule(node: Node, recipe: Recipe, g: Any) -> Sequence[Any] | None:
    """The gradients of the operands of ``node``, from the array or MaskedArray ``g``; None if there is no rule for it."""
    if type(g) is MaskedArray:
        rule = rule_of(node, recipe, g.kind)
        return None if rule is None else rule(node, g.raw, g.condition)
    rule = recipe.rule or rule_of(node, recipe)
    return None if rule is None else rule(node, g)


def rule_of(node: Node, recipe: Recipe, kind: MaskKind | None = None) -> ArrayRule | None:
    """The rule of ``node`` with this recipe for gradients under a mask of ``kind``.

    None if there is none, or it has hardly been used.
    """
    number = _number_of(node, recipe)
    if kind is None and number is None:
        if recipe.rule is None:
            recipe.uses += 1
            if recipe.uses <= _USES:
                return None
            recipe.rule = make_rule(node, None) or False
        return recipe.rule or None
    others, key = recipe.others, (kind, type(number), number)
    found = others.get(key, 0)
    if type(found) is int:
        if number is not None and (number == 0 or math.isnan(number)):  # zeros of either sign are one key
            return None
        if len(others) >= _MOST:
            others.clear()
        # what has a rule, and a composition, have come back
        waits = found < _USES and recipe.plan is not None and not recipe.rule
        others[key] = found = found + 1 if waits else (make_rule(node, kind) or False)
    return None if type(found) is int else found or None


def _number_of(node: Node, recipe: Recipe) -> Any:
    """The Python number at which the vjp of ``node`` looks, which a rule has as a constant; None if there is none."""
    plan = recipe.plan
    if plan is None or plan.number not in recipe.needed or node.op in _ANY_NUMBER:
        return None
    return node.saved[plan.number]


def make_rule(node: Node, kind: MaskKind | None) -> ArrayRule | None:
    """The rule of ``node`` and those with its recipe; None if its vjp cannot be recorded."""
    if type(node) is CompositionNode:
        rule: ArrayRule | None = node.composition.make_rule(kind)
        return rule
    assert node.recipe is not None and node.edges is not None and node.recipe.plan is not None
    plan = node.recipe.plan
    recorder = Recorder()
    named: dict[int, str] = {}
    operands: list[Any] = [*plan.avals]
    number = _number_of(node, node.recipe)
    for k in node.recipe.needed:
        if k == plan.number and number is not None:
            operands[k] = number
            continue
        operands[k] = Tensor(Value(plan.avals[k]))
        named[id(operands[k]._data)] = f"x{k}"
    out = Tensor(Value(plan.out))
    named[id(out._data)] = "out"
    try:
        with recording(recorder):
            g = arriving(Tensor(Value(plan.out)), kind, named)
            grads = vjp_of(node, node.edges, {0: g}, operands, out if node.recipe.needs_out else plan.out)
            fitted = [
                None if gx is None or edge is None else fit(node, gx, aval)
                for gx, edge, aval in zip(grads, node.edges, plan.avals, strict=True)
            ]
            return _written(node, Line(recorder, named), Returned(fitted), recorder, kind)
    except Exception:  # whatever it is, the vjp itself will say so
        return None


def _written(
    node: Node, line: Line, returned: Returned, recorder: Recorder, kind: MaskKind | None
) -> ArrayRule:
    """The function of ``recorder``'s steps."""
    assert node.recipe is not None and node.recipe.plan is not None
    number = node.recipe.plan.number
    for k in node.recipe.needed:
        if k == number:
            line.text.append(f"x{k} = node.saved[{k}]")
        else:
            line.text += read_saved(f"node.saved[{k}]", f"x{k}")
    if node.recipe.needs_out:
        line.text += read_saved("node.saved_outs[0]", "out", "out = node.raw_result()")
    line.add_grouped(steps_for(recorder.steps, returned.tensors), returned.tensors)
    return line.function(rule_head(kind), returned.text(line))
