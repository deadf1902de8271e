"""When a kernel may write a result over one of its inputs."""

from __future__ import annotations

from jitgrad.compiler.fusion.axis_maps import NONE, Definitions
from jitgrad.compiler.fusion.group import Group
from jitgrad.core.ir import Graph, TraceNode, Value


def can_alias(node: TraceNode, source: Value, out: Value) -> bool:
    """Whether the fused ``node`` may write ``out`` into the memory of its input ``source``.

    Every element must be read where and before it is written: one access pattern for both, the same
    dtype and shape, no sweep that reads again after the sweep that writes, and no single number
    that all blocks read.
    """
    group: Group = node.attr("group")
    body: Graph = node.attr("body")
    if source.aval.shape != out.aval.shape or source.aval.dtype != out.aval.dtype:
        return False
    definitions = Definitions(body)
    maker = definitions.by_value.get(id(out))
    if maker is None or group.schedule.rows:
        return False
    writes = group.out_map(maker)
    epilogue, merged = group.schedule.epilogue, group.schedule.merged
    late = id(maker) in epilogue or id(maker) in merged
    loops = set(writes) - {NONE}
    split = group.schedule.split or len(group.sizes)  # without a split, every block computes what has no loop again
    if not late and loops != set(range(len(group.sizes))) and loops != set(range(split)):
        return False
    for reader in group.nodes:
        for read, axes in group.operand_maps(reader, definitions):
            if read.root is source and (axes != writes or (not late and id(reader) in epilogue)):
                return False
    return True
