"""The bytes that a step or an eager program must move at least: every distinct array once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod

from jitgrad.compiler.lowering.layout import Buffer
from jitgrad.compiler.plan import BlockRun, Place, Plan, Step
from jitgrad.core.ir import Graph, TraceNode, Value
from jitgrad.core.op import Kind

_Array = tuple[Buffer, int, tuple[tuple[int, int], ...]]  # offset, and length and stride of the axes that move


def plan_traffic(plan: Plan) -> dict[Step, tuple[int, int]]:
    """(bytes read, bytes written) by each step; an operand that is broadcast counts its own elements once.

    In a run of kernels that goes block by block, an array counts for the first kernel that reads or writes it: the
    others find it in cache. Temporaries of one block do not count.
    """
    run_of = {k: run for run in plan.block_runs for k in range(run.first, run.stop)}
    in_cache: dict[BlockRun, set[_Array]] = {}
    traffic = {}
    for k, step in enumerate(plan.steps):
        run = run_of.get(k)
        reads, writes = _arrays(step.reads), _arrays(step.writes)
        if run is not None:
            cached = in_cache.setdefault(run, set())
            new = {a for a in (*reads, *writes) if a not in cached and a[0] not in run.local}
            reads, writes = ({a: n for a, n in arrays.items() if a in new} for arrays in (reads, writes))
            cached |= new
        traffic[step] = _total(reads), _total(writes)
    return traffic


def _total(arrays: Mapping[_Array, int]) -> int:
    """The bytes of ``arrays``; those that overlap, as in a stencil, count at most once for each byte of their buffer."""
    sizes: dict[Buffer, int] = {}
    for (buffer, _, _), nbytes in arrays.items():
        sizes[buffer] = min(buffer.nbytes, sizes.get(buffer, 0) + nbytes)
    return sum(sizes.values())


def _arrays(places: Iterable[Place]) -> dict[_Array, int]:
    """The distinct arrays among ``places``, and their bytes."""
    sizes: dict[_Array, int] = {}
    for place in places:
        if place.location is not None:
            axes = [(n, s) for n, s in zip(place.aval.shape, place.location.strides, strict=True) if s != 0]
            key = (place.location.buffer, place.location.offset, tuple(axes))
            sizes[key] = prod(n for n, _ in axes) * place.aval.dtype.itemsize
    return sizes


def eager_traffic(graph: Graph) -> int:
    """Bytes that running ``graph`` op by op reads and writes; views move no bytes."""
    return sum(_node_traffic(node) for node in graph.nodes if node.op.kind is not Kind.MOVEMENT)


def _node_traffic(node: TraceNode) -> int:
    return sum(value.aval.nbytes for value in {x for x in (*node.ins, *node.outs) if isinstance(x, Value)})


def readable_bytes(count: float) -> str:
    """``count`` bytes as text: ``1.5 MB`` (decimal units)."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.3g} {unit}"
        count /= 1000
    raise AssertionError("the last unit always returns")
