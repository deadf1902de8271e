"""Two groups as one: their axes paired, their nodes in program order, and whether one loop nest can run them."""

from __future__ import annotations

from collections.abc import Mapping

from jitgrad.compiler.fusion.axis_maps import NONE, AxisMap, Definitions, compose, identity
from jitgrad.compiler.fusion.group import Group, SweepOrder, accesses
from jitgrad.compiler.fusion.row_costs import costs_much_per_row
from jitgrad.compiler.fusion.schedule import scheduled
from jitgrad.compiler.tuning import Tuning
from jitgrad.core.ir import TraceNode, Value
from jitgrad.core.op import Kind

_ANY_SPLIT, _NO_LOOP = SweepOrder(), SweepOrder(split=0)
_NOTHING: frozenset[int] = frozenset()


def single(node: TraceNode, definitions: Definitions) -> Group | str:
    """The group of ``node`` alone, or why no loop nest can run it."""
    reduction = node.op.kind is Kind.REDUCE
    shape = node.ins[0].aval.shape if reduction else node.out.aval.shape
    sizes, frame = shape, identity(len(shape))
    if 1 in shape:
        # an axis of length 1 is no loop; without it a value looks the same whether or not it has been squeezed
        number = {k: position for position, k in enumerate(k for k, n in enumerate(shape) if n != 1)}
        sizes, frame = tuple(n for n in shape if n != 1), tuple(number.get(k, NONE) for k in range(len(shape)))
    if reduction:
        return scheduled(sizes, (node,), {id(node): frame}, definitions)
    nodes, frames = (node,), {id(node): frame}
    computed, external = accesses(nodes, frames, definitions)
    plain = node.op.kind is Kind.ELEMENTWISE and len(sizes) == len(shape) > 0
    permuted = _permuted_reads(node, definitions) if plain else None
    return Group(sizes, nodes, frames, _ANY_SPLIT if sizes else _NO_LOOP, computed, external, permuted)


def _permuted_reads(node: TraceNode, definitions: Definitions) -> frozenset[int]:
    """Ids of what the elementwise ``node`` reads by other axes than all of its own in their order."""
    straight = identity(len(node.outs[0].aval.shape))
    found = [id(root) for root, dims in definitions.reads(node) if dims != straight]
    return frozenset(found) if found else _NOTHING


def merge(first: Group, second: Group, definitions: Definitions, tuning: Tuning) -> Group | str:
    """One group for the nodes of both, in program order, or why that cannot be one loop nest."""
    if len(first.nodes) + len(second.nodes) > tuning.max_kernel_nodes:
        return f"the kernel would have more than {tuning.max_kernel_nodes} operations"
    if (0 in first.sizes) != (0 in second.sizes):  # the loops of the one never run
        return f"only one of them has elements: {list(first.sizes)} and {list(second.sizes)}"
    if (plain := _plain(first, second, definitions, tuning)) is not None:
        return plain
    if isinstance(pairs := _pair_axes(first, second), str):
        return pairs
    if _streams(first, second) > tuning.max_kernel_operands:
        return f"the kernel would touch more than {tuning.max_kernel_operands} arrays"
    if (simple := _with_one_more(first, second, pairs, definitions)) is not None:
        return simple
    if not (orders := _orders(first, second, pairs)):
        return f"their loops differ: {list(first.sizes)} and {list(second.sizes)}"
    nodes, start = first.nodes + second.nodes, (first if first.sizes else None)
    if definitions.position[first.nodes[-1]] > definitions.position[second.nodes[0]]:
        nodes, start = tuple(sorted(nodes, key=lambda node: definitions.position[node])), None
    found: Group | str = ""
    for sizes, ours, theirs in orders:
        frames = {key: _renamed(frame, ours) for key, frame in first.axis_maps.items()}
        frames.update({key: _renamed(frame, theirs) for key, frame in second.axis_maps.items()})
        as_before = all(a == b for a, b in ours.items()) and sizes == first.sizes
        found = scheduled(sizes, nodes, frames, definitions, start if as_before else None)
        if isinstance(found, Group):
            break
    if isinstance(found, Group) and costs_much_per_row(found, tuning):
        return "each row is short for what would be computed once for it, without vectors"
    return found


def _orders(
    first: Group, second: Group, pairs: Mapping[int, int]
) -> list[tuple[tuple[int, ...], Mapping[int, int], Mapping[int, int]]]:
    """The loops that both groups' axes can be: lengths, and the number there of each of ``first``'s and ``second``'s.

    None if each has an axis the other lacks. Both orders of the same axes if one group reduces rows, which are such only
    in its own order, and if both end with the same axis: the innermost loop stays the one that both were made for. Or if
    ``first`` ends with the last axis of ``second``'s rows, which then are the lanes of vectors.
    """
    whole, rest = range(len(first.sizes)), range(len(second.sizes))
    back = {a: b for b, a in pairs.items()}
    found: list[tuple[tuple[int, ...], Mapping[int, int], Mapping[int, int]]] = []
    if len(pairs) == len(rest):
        found.append((first.sizes, {k: k for k in whole}, pairs))
    if len(back) == len(whole):
        found.append((second.sizes, back, {k: k for k in rest}))
    if len(found) < 2:
        return found
    alike = all(a == b for b, a in pairs.items())
    if alike or not (first.schedule.rows or second.schedule.rows):
        return found[:1]
    innermost, split = back[whole[-1]], second.schedule.split
    across = bool(second.schedule.rows) and split is not None and innermost == split - 1
    return found if across or innermost == rest[-1] else found[:1]


def _streams(first: Group, second: Group) -> int:
    """How many arrays a kernel of both would read."""
    more = sum(key not in first.computed and key not in first.external for key in second.external)
    return more + sum(key not in second.computed for key in first.external)


def _plain(first: Group, second: Group, definitions: Definitions, tuning: Tuning) -> Group | None:
    """One group for two of elementwise nodes over the same axes, which read each other's values along these."""
    if first.permuted is None or second.permuted is None or first.sizes != second.sizes:
        return None
    across = first.permuted.isdisjoint(second.computed) and second.permuted.isdisjoint(first.computed)
    if not across or not _same_axes(first, second) or _streams(first, second) > tuning.max_kernel_operands:
        return None
    external = {key: seen for key, seen in first.external.items() if key not in second.computed}
    external.update([(k, seen) for k, seen in second.external.items() if k not in first.computed and k not in external])
    nodes = first.nodes + second.nodes
    if definitions.position[first.nodes[-1]] > definitions.position[second.nodes[0]]:
        nodes = tuple(sorted(nodes, key=lambda node: definitions.position[node]))
    frames, computed = {**first.axis_maps, **second.axis_maps}, {**first.computed, **second.computed}
    return Group(first.sizes, nodes, frames, _ANY_SPLIT, computed, external, first.permuted | second.permuted)


def _with_one_more(first: Group, second: Group, pairs: Mapping[int, int], definitions: Definitions) -> Group | None:
    """``first`` and one elementwise node over all its axes that reads no epilogue value: the schedule stays as it is.

    This is most of all merges; planning the whole group again would make long chains quadratic.
    """
    node = second.nodes[0]
    if len(second.nodes) > 1 or node.op.kind is not Kind.ELEMENTWISE or len(pairs) != len(first.sizes):
        return None
    if len(second.sizes) != len(first.sizes):
        return None
    return _with(first, node, _renamed(second.axis_maps[id(node)], pairs), definitions)


def extended(group: Group, node: TraceNode, definitions: Definitions, tuning: Tuning) -> Group | None:
    """`merge` of ``group`` and the fusible ``node`` alone, where that is plain: an elementwise node over the group's axes.

    The values that both know run along the same axes, so there is nothing to pair. None: only `merge` can say.
    """
    if node.op.kind is not Kind.ELEMENTWISE or node.outs[0].aval.shape != group.sizes:
        return None
    if len(group.nodes) >= tuning.max_kernel_nodes:
        return None
    frame = identity(len(group.sizes))
    for root, dims in definitions.reads(node):
        known = group.external.get(id(root))
        if known is not None and known[1] != compose(dims, frame):
            return None
    found = _with(group, node, frame, definitions)
    return found if found is not None and len(found.external) <= tuning.max_kernel_operands else None


def _with(group: Group, node: TraceNode, frame: AxisMap, definitions: Definitions) -> Group | None:
    """``group`` and ``node``, whose loop runs along ``frame``, all axes; None if the schedule has to be made anew."""
    if definitions.position[node] < definitions.position[group.nodes[-1]]:
        return None
    late, computed = group.schedule.epilogue_values, group.computed
    external = group.external
    for root, dims in definitions.reads(node):
        key = id(root)
        if key in computed:
            if key in late or computed[key] != compose(dims, frame):
                return None
        elif key not in external and isinstance(root, Value):
            external = {**external, key: (root, compose(dims, frame))}
    return Group(
        group.sizes,
        (*group.nodes, node),
        {**group.axis_maps, id(node): frame},
        group.schedule,
        {**computed, id(node.outs[0]): frame},
        external,
        None if group.permuted is None or frame != identity(len(frame)) else group.permuted | _permuted_reads(node, definitions),
    )


def _renamed(frame: AxisMap, names: Mapping[int, int]) -> AxisMap:
    return tuple([NONE if k == NONE else names[k] for k in frame])


def _pair_axes(first: Group, second: Group) -> dict[int, int] | str:
    """second's axis -> first's axis: by the values that flow between them, then by shared inputs, then by length."""
    if first.sizes == second.sizes and _same_axes(first, second):
        return {k: k for k in range(len(first.sizes))}
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
        for a in reversed(range(len(first.sizes))):
            # the same order of axes: by length alone, [1023, 1024] and [1024, 1023] would be walked against each other
            in_order = all(a != a2 and (a < a2) == (b < b2) for b2, a2 in pairs.items())
            if in_order and first.sizes[a] == second.sizes[b]:
                pairs[b] = a
                break
    return pairs


def _same_axes(first: Group, second: Group) -> bool:
    """Whether every value that both know runs along axes of the same numbers."""
    computed_1, external_1, computed_2 = first.computed, first.external, second.computed
    for key, (_, axes) in second.external.items():
        ours = computed_1.get(key)
        if ours is None and key in external_1:
            ours = external_1[key][1]
        if ours is not None and ours != axes:
            return False
    return len(computed_2) == 1 or all(computed_2.get(key, axes) == axes for key, (_, axes) in external_1.items())


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
