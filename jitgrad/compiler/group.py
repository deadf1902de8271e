"""A set of nodes that may become one kernel: its loop axes, what it reads, and whether one loop nest can run it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from jitgrad.aval import Dtype
from jitgrad.compiler.axes import NONE, AxisMap, Definitions, Read, compose
from jitgrad.ir import TraceNode, Value
from jitgrad.op import Kind

# Limits beyond which one kernel compiles slowly or spills registers; a larger group is split.
MAX_NODES = 160
MAX_STREAMS = 28

MONOIDS = frozenset({"sum", "prod", "max", "min", "any", "all"})


def is_fusible(node: TraceNode) -> bool:
    """Whether ``node`` can be part of a kernel at all."""
    op = node.op
    if op.kind is Kind.ELEMENTWISE:
        if op.scalar is None and op.function is None:
            return False
        dtypes = [*op.dtypes([a.aval for a in node.ins], **dict(node.attrs))[0], node.out.aval.dtype]
        return all(map(_in_kernels, dtypes)) and all(_in_kernels(a.aval.dtype) for a in node.ins)
    if op.kind is Kind.REDUCE:
        aval = node.ins[0].aval
        return op.monoid in MONOIDS and _in_kernels(aval.dtype) and aval.size > 0
    return op.kind is Kind.INDEX


def why_not_fusible(node: TraceNode) -> str:
    """Why ``node`` runs as a call of its own."""
    if node.op.kind is Kind.ELEMENTWISE:
        return "it has no scalar form" if node.op.scalar is None else "kernels do not handle its dtypes"
    if node.op.kind is Kind.MOVEMENT:
        return "it is a view: nothing to compute"
    return "it is a library call"


def _in_kernels(dtype: Dtype) -> bool:
    return dtype.kind in "biu" or (dtype.kind == "f" and dtype.itemsize in (4, 8))


@dataclass(frozen=True, slots=True)
class Schedule:
    """How a group's loops run: the first ``split`` axes are outer (rows), the rest inner; None: any split will do."""

    split: int | None = None
    finish: frozenset[int] = frozenset()  # ids of nodes that run once, after all chunks, on merged reductions
    merged: frozenset[int] = frozenset()  # ids of reductions whose partial results are merged after all chunks
    rows: frozenset[int] = frozenset()  # ids of reductions over the inner axes, one result per row
    late: frozenset[int] = frozenset()  # ids of values that are known only after all chunks


@dataclass(frozen=True, eq=False, slots=True)
class Group:
    """Nodes of one kernel. ``frames`` maps each node's own loop dimensions to the group's axes.

    A node's own loop dimensions are those of its result, or for a reduction those of its operand. ``computed`` holds
    the axes of the values made here, ``external`` those of values from elsewhere as they are first read.
    """

    sizes: tuple[int, ...]
    nodes: tuple[TraceNode, ...]
    frames: Mapping[int, AxisMap]
    schedule: Schedule
    computed: Mapping[int, AxisMap]
    external: Mapping[int, tuple[Value, AxisMap]]

    def out_map(self, node: TraceNode) -> AxisMap:
        """The axis of every dimension of ``node``'s result."""
        return self.computed[id(node.outs[0])]

    def operand_maps(self, node: TraceNode, definitions: Definitions) -> Iterator[tuple[Read, AxisMap]]:
        """For every operand of ``node``: what is read, and the axis of each dimension of that."""
        frame = self.frames[id(node)]
        for read in definitions.reads(node):
            yield read, compose(read.dims, frame)


def accesses(
    nodes: tuple[TraceNode, ...], frames: Mapping[int, AxisMap], definitions: Definitions
) -> tuple[dict[int, AxisMap], dict[int, tuple[Value, AxisMap]]]:
    """(axes of the values computed by ``nodes``, values read from elsewhere with the axes they are first read by)."""
    computed = {id(node.outs[0]): out_axes(node, frames[id(node)]) for node in nodes}
    external: dict[int, tuple[Value, AxisMap]] = {}
    for node in nodes:
        for read in definitions.reads(node):
            key = id(read.root)
            if key not in computed and key not in external and isinstance(read.root, Value):
                external[key] = (read.root, compose(read.dims, frames[id(node)]))
    return computed, external


def out_axes(node: TraceNode, frame: AxisMap) -> AxisMap:
    """The axis of every dimension of ``node``'s result."""
    if node.op.kind is not Kind.REDUCE:
        return frame
    reduced = set(node.attr("axis"))
    return tuple(axis for k, axis in enumerate(frame) if k not in reduced)


def single(node: TraceNode, definitions: Definitions) -> Group | str:
    """The group of ``node`` alone, or why no loop nest can run it."""
    shape = node.ins[0].aval.shape if node.op.kind is Kind.REDUCE else node.out.aval.shape
    number = {k: position for position, k in enumerate(k for k, n in enumerate(shape) if n != 1)}
    # an axis of length 1 is no loop; without it a value looks the same whether or not it has been squeezed
    frame = tuple(number.get(k, NONE) for k in range(len(shape)))
    return _scheduled(tuple(n for n in shape if n != 1), (node,), {id(node): frame}, definitions)


def merge(first: Group, second: Group, definitions: Definitions) -> Group | str:
    """One group for the nodes of both, in program order, or why that cannot be one loop nest."""
    if len(first.nodes) + len(second.nodes) > MAX_NODES:
        return f"the kernel would have more than {MAX_NODES} operations"
    if isinstance(pairs := _pair_axes(first, second), str):
        return pairs
    if (simple := _with_one_more(first, second, pairs, definitions)) is not None:
        return simple
    back = {a: b for b, a in pairs.items()}
    if len(pairs) == len(second.sizes):
        sizes, ours, theirs = first.sizes, {k: k for k in range(len(first.sizes))}, pairs
    elif len(back) == len(first.sizes):
        sizes, ours, theirs = second.sizes, back, {k: k for k in range(len(second.sizes))}
    else:
        return f"their loops differ: {list(first.sizes)} and {list(second.sizes)}"
    frames = {key: _renamed(frame, ours) for key, frame in first.frames.items()}
    frames.update({key: _renamed(frame, theirs) for key, frame in second.frames.items()})
    nodes = tuple(sorted(first.nodes + second.nodes, key=lambda node: definitions.position[id(node)]))
    return _scheduled(sizes, nodes, frames, definitions)


def _with_one_more(first: Group, second: Group, pairs: Mapping[int, int], definitions: Definitions) -> Group | None:
    """``first`` and one elementwise node over all its axes that reads nothing late: the schedule stays as it is.

    This is most of all merges; planning the whole group again would make long chains quadratic.
    """
    node = second.nodes[0]
    if len(second.nodes) > 1 or node.op.kind is not Kind.ELEMENTWISE or len(pairs) != len(first.sizes):
        return None
    if (
        len(second.sizes) != len(first.sizes)
        or definitions.position[id(node)] < definitions.position[id(first.nodes[-1])]
    ):
        return None
    if any(id(read.root) in first.schedule.late for read in definitions.reads(node)):
        return None
    frame = _renamed(second.frames[id(node)], pairs)
    reads = [(id(read.root), compose(read.dims, frame)) for read in definitions.reads(node)]
    if any(first.computed.get(key, axes) != axes for key, axes in reads):
        return None
    external = dict(first.external)
    for key, (value, axes) in second.external.items():
        if key not in first.computed:
            external.setdefault(key, (value, _renamed(axes, pairs)))
    return Group(
        first.sizes,
        (*first.nodes, node),
        {**first.frames, id(node): frame},
        first.schedule,
        {**first.computed, id(node.outs[0]): frame},
        external,
    )


def _renamed(frame: AxisMap, names: Mapping[int, int]) -> AxisMap:
    return tuple(NONE if k == NONE else names[k] for k in frame)


def _pair_axes(first: Group, second: Group) -> dict[int, int] | str:
    """second's axis -> first's axis: by the values that flow between them, then by shared inputs, then by length."""
    computed_1, external_1, computed_2, external_2 = first.computed, first.external, second.computed, second.external
    pairs: dict[int, int] = {}
    for key, (_, axes) in external_2.items():
        if key in computed_1 and not _unify(pairs, computed_1[key], axes, first.sizes, second.sizes):
            return "they index a shared value differently"
    backward = computed_2 if len(computed_2) > 1 else ()  # a single new node is read by nobody yet
    for key, (_, axes) in external_1.items() if backward else ():
        if key in computed_2 and not _unify(pairs, axes, computed_2[key], first.sizes, second.sizes):
            return "they index a shared value differently"
    for key, (_, axes) in external_2.items():
        if key in external_1:
            _unify(pairs, external_1[key][1], axes, first.sizes, second.sizes)
    for b in reversed(range(len(second.sizes))):
        if b in pairs:
            continue
        taken = set(pairs.values())
        for a in reversed(range(len(first.sizes))):
            if a not in taken and first.sizes[a] == second.sizes[b]:
                pairs[b] = a
                break
    return pairs


def _unify(
    pairs: dict[int, int], ours: AxisMap, theirs: AxisMap, our_sizes: tuple[int, ...], their_sizes: tuple[int, ...]
) -> bool:
    """Add to ``pairs`` that dimension by dimension ``theirs`` is ``ours``; False, and no change, on a contradiction."""
    trial = dict(pairs)
    for a, b in zip(ours, theirs, strict=True):
        if a == NONE or b == NONE:
            continue
        if our_sizes[a] != their_sizes[b] or trial.get(b, a) != a:
            return False
        if b not in trial and a in trial.values():
            return False
        trial[b] = a
    pairs.update(trial)
    return True


def _scheduled(
    sizes: tuple[int, ...], nodes: tuple[TraceNode, ...], frames: Mapping[int, AxisMap], definitions: Definitions
) -> Group | str:
    computed, external = accesses(nodes, frames, definitions)
    draft = Group(sizes, nodes, frames, Schedule(), computed, external)
    found = _Scheduler(draft, definitions).run()
    return found if isinstance(found, str) else Group(sizes, nodes, frames, found, computed, external)


class _Scheduler:
    """Finds the split of a group's axes into rows and row elements under which every node has a place.

    With axes ``O + I``: values run along all axes, along ``O`` only (one per row) or along none; reductions go over
    ``I`` (a row's result, usable by later sweeps of the row), over ``O`` (one partial row per chunk) or over all (one
    partial number per chunk). What reads a merged partial runs once at the end.
    """

    def __init__(self, group: Group, definitions: Definitions) -> None:
        self.group = group
        self.rank = len(group.sizes)
        self.everything = frozenset(range(self.rank))
        self.splits = set(range(self.rank + 1))
        self.finish: set[int] = set()
        self.merged: set[int] = set()
        self.rows: set[int] = set()
        self.late: dict[int, frozenset[int]] = {}  # values known only at the end, with their axes
        self.definitions = definitions

    def run(self) -> Schedule | str:
        computed = {id(node.out): self.group.out_map(node) for node in self.group.nodes}
        for node in self.group.nodes:
            operands = list(self.group.operand_maps(node, self.definitions))
            if any(computed.get(id(read.root), axes) != axes for read, axes in operands):
                return "a value would be read at another place than where it is computed"
            late = [read.root for read, _ in operands if id(read.root) in self.late]
            if late:
                problem = self.place_late(node, operands, computed)
            elif node.op.kind is Kind.REDUCE:
                problem = self.place_reduction(node)
            else:
                problem = self.require_level(frozenset(self.group.out_map(node)) - {NONE})
            if problem:
                return problem
            if not self.splits:
                return "no single loop nest fits all their axes"
        if self.finish or self.merged:
            for axes in self.late.values():
                if axes and not self.pin(self.rank - len(axes)):
                    return "no single loop nest fits all their axes"
        split = min(self.splits) if len(self.splits) == 1 else None
        return Schedule(
            split, frozenset(self.finish), frozenset(self.merged), frozenset(self.rows), frozenset(self.late)
        )

    def pin(self, split: int) -> bool:
        self.splits &= {split}
        return bool(self.splits)

    def require_level(self, axes: frozenset[int]) -> str | None:
        """A value computed in the loops runs along everything, along the rows, or is one number."""
        if axes == self.everything or not axes:
            return None
        if axes != frozenset(range(len(axes))):
            return "a value would be computed again for every row"
        return None if self.pin(len(axes)) else "no single loop nest fits all their axes"

    def place_late(
        self, node: TraceNode, operands: list[tuple[Read, AxisMap]], computed: Mapping[int, AxisMap]
    ) -> str | None:
        if node.op.kind is Kind.REDUCE:
            return "it reduces a result that is complete only after all rows"
        for read, _ in operands:
            if id(read.root) in computed and id(read.root) not in self.late:
                return "it needs a reduction that is complete only after all rows"
        axes = frozenset(self.group.out_map(node)) - {NONE}
        allowed = {self.late[id(read.root)] for read, _ in operands if id(read.root) in self.late}
        if axes not in allowed:
            return "it needs a reduction that is complete only after all rows"
        self.finish.add(id(node))
        self.late[id(node.out)] = axes
        return None

    def place_reduction(self, node: TraceNode) -> str | None:
        frame = self.group.frames[id(node)]
        over = frozenset(frame[k] for k in node.attr("axis")) - {NONE}
        along = frozenset(frame) - {NONE}
        kept = along - over
        suffix = frozenset(range(self.rank - len(over), self.rank))
        prefix = frozenset(range(len(over)))
        if along == self.everything and over == suffix and kept:
            self.rows.add(id(node))
            return None if self.pin(self.rank - len(over)) else "no single loop nest fits all their axes"
        if over == along and (along == self.everything or (along == prefix and self.pin(len(along)))):
            self.merge_late(node, frozenset())
            return None
        if along == self.everything and over == prefix:
            self.merge_late(node, kept)
            return None if self.pin(len(over)) else "no single loop nest fits all their axes"
        return "its reduced axes are neither the rows nor the columns of the loop"

    def merge_late(self, node: TraceNode, axes: frozenset[int]) -> None:
        self.merged.add(id(node))
        self.late[id(node.out)] = axes
