"""A replaced gradient for all examples: the graph that computes it for one, applied to whole arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jitgrad.autograd.replaced_gradient import GradientRule, with_gradient
from jitgrad.batching.application import Application
from jitgrad.core.dispatch import aval_of
from jitgrad.core.ir import Graph, evaluate
from jitgrad.core.op import OpDef
from jitgrad.ops.creation import asarray
from jitgrad.ops.movement import broadcast_to
from jitgrad.ops.reduce import sum

# (op, operands, which are mapped, attributes, number of examples) -> what the op gives for all of them
ApplyToAll = Callable[[OpDef, tuple[Any, ...], tuple[bool, ...], Mapping[str, Any], int], Any]


@dataclass(frozen=True, slots=True)
class WholeContents:
    """A value of the graph for all examples, or what is the same for all."""

    whole: Any
    mapped: bool


def replaced_for_all(a: Application, apply_to_all: ApplyToAll) -> tuple[Any, ...]:
    """The results for all examples, whose gradients come from the rule of one example."""
    rule: GradientRule = a.attrs["rule"]
    results, first = len(rule.avals), len(rule.avals) + rule.inputs
    outs = [a.whole(k) for k in range(results)]
    inputs, mapped = a.operands[results:first], a.mapped[results:first]
    avals = tuple(aval_of(a.op, x) for x in outs)
    body = rule.body
    if body is None:  # lazy; its function refuses to run anywhere else
        return with_gradient(a.op.name, outs, inputs, a.operands[first:], replace(rule, avals=avals))

    def pull(g: Sequence[Any], given: Sequence[Any], residuals: Sequence[Any]) -> list[Any]:
        contents = [WholeContents(x, True) for x in (*g, *given)]
        contents += [WholeContents(x, m) for x, m in zip(residuals, a.mapped[first:], strict=True)]
        flows = iter(applied_to_all(body, contents, apply_to_all, a.size))
        return [_gradient(next(flows), m, a.size) if there else None for there, m in zip(rule.present, mapped, strict=True)]

    whole = replace(rule, avals=avals, pull=pull, body=None)
    return with_gradient(a.op.name, outs, inputs, a.operands[first:], whole)


def applied_to_all(body: Graph, contents: Sequence[WholeContents], apply_to_all: ApplyToAll, size: int) -> list[WholeContents]:
    """The results of ``body`` for all examples."""

    def apply(op: OpDef, operands: tuple[Any, ...], attrs: Mapping[str, Any]) -> Any:
        given = [x if isinstance(x, WholeContents) else WholeContents(x, False) for x in operands]
        mapped = tuple([x.mapped for x in given])
        out = apply_to_all(op, tuple([x.whole for x in given]), mapped, attrs, size)
        return tuple([WholeContents(x, any(mapped)) for x in out]) if op.multiple else WholeContents(out, any(mapped))

    results = evaluate(body, tuple(contents), apply)
    return [x if isinstance(x, WholeContents) else WholeContents(x, False) for x in results]


def _gradient(result: WholeContents, mapped: bool, size: int) -> Any:
    """The gradient of an input: of one that is the same for all examples, the sum over them."""
    whole = asarray(result.whole)
    if not result.mapped:
        whole = broadcast_to(whole, (size, *whole.shape))
    return whole if mapped else sum(whole, axis=0)
