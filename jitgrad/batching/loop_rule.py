"""A loop for all examples: each turn applies its graph to whole arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jitgrad.batching.application import Application
from jitgrad.batching.gradient_rules import ApplyToAll, WholeContents, applied_to_all
from jitgrad.compiler.loops.body_trace import record_body
from jitgrad.compiler.loops.loop_op import LoopBody, emit_loop
from jitgrad.core.aval import Aval, strong_aval
from jitgrad.core.tensor import Tensor
from jitgrad.ops.creation import asarray
from jitgrad.ops.movement import broadcast_to, moveaxis


def loop_for_all(a: Application, apply_to_all: ApplyToAll) -> tuple[Tensor, ...]:
    """The results of a loop for all examples. Every carry gets an axis of examples, others where they had one."""
    body: LoopBody = a.attrs["body"]
    first = body.carries + body.slices
    carries = [a.whole(k) for k in range(body.carries)]
    slices = [moveaxis(x, 1, 0) if m else asarray(x) for x, m in _pairs(a, body.carries, first)]

    def turn(tensors: Sequence[Any]) -> list[Tensor]:
        contents = [WholeContents(x, k < body.carries or a.mapped[k]) for k, x in enumerate(tensors)]
        contents += [WholeContents(x, m) for x, m in _pairs(a, first, len(a.operands))]
        results = applied_to_all(body.graph, contents, apply_to_all, a.size)
        return [_whole(result, a.size) for result in results]

    avals = [strong_aval(x.shape, x.dtype) for x in carries] + [Aval(x.shape[1:], x.dtype) for x in slices]
    recorded = record_body(f"{body.name}_vmap", turn, [(aval, False) for aval in avals])
    length, reverse = a.attrs["length"], a.attrs["reverse"]
    outs = emit_loop(recorded.graph, carries, slices, recorded.constants, length, reverse)
    return (*outs[: body.carries], *[moveaxis(x, 0, 1) for x in outs[body.carries :]])


def _pairs(a: Application, start: int, stop: int) -> list[tuple[Any, bool]]:
    return [*zip(a.operands[start:stop], a.mapped[start:stop], strict=True)]


def _whole(result: WholeContents, size: int) -> Tensor:
    x = asarray(result.whole)
    return x if result.mapped else broadcast_to(x, (size, *x.shape))
