"""Groups the nodes of a program into kernels: convex sets of nodes that one loop nest can run."""

from __future__ import annotations

from dataclasses import replace

from jitgrad.compiler.compiler_ops import FUSED
from jitgrad.compiler.fusion.cluster import ordered
from jitgrad.compiler.fusion.fuser import Fuser
from jitgrad.compiler.fusion.group import Group
from jitgrad.compiler.fusion.sink import sink
from jitgrad.compiler.passes.cleanup import eliminate_dead
from jitgrad.compiler.tuning import Tuning
from jitgrad.core.ir import Atom, Graph, TraceNode, Value


def fuse(graph: Graph, tuning: Tuning) -> Graph:
    """Replace every group of fusible nodes by one ``fused`` node that holds their graph and their loop plan."""
    fuser = Fuser(graph, tuning)
    fuser.run()
    if not tuning.spare_memory:
        sink(fuser)
    return build(fuser)


def build(fuser: Fuser) -> Graph:
    """The program of ``fuser``'s clusters; renaming movement that someone outside a kernel needs stays as a view."""
    graph = fuser.graph
    used = _used_outside(fuser)
    nodes: list[TraceNode] = []
    placed: set[Atom] = set(graph.inputs)

    def view(atom: Atom) -> None:
        """Emit the renaming movement behind ``atom``, once."""
        chain = []
        while isinstance(atom, Value) and atom not in placed:
            node = graph.producer(atom)
            assert node is not None
            chain.append(node)
            placed.add(atom)
            atom = node.ins[0]
        nodes.extend(reversed(chain))

    for cluster in ordered(fuser.live, fuser.find):
        if cluster.group is None:
            (node,) = cluster.nodes
            for atom in node.ins:
                view(atom)
            nodes.append(node)
            placed.update(node.outs)
        else:
            fused = fused_node(cluster.group, used, fuser)
            nodes.append(fused)
            placed.update(fused.outs)
    for atom in graph.outputs:
        view(atom)
    return eliminate_dead(replace(graph, nodes=tuple(nodes)))


def _used_outside(fuser: Fuser) -> set[Atom]:
    """Values that must be in memory: read by another cluster, or results of the program."""
    used = {fuser.definitions.resolve(a).root for a in fuser.graph.outputs}
    for cluster in fuser.clusters:
        if cluster.merged_into is None:
            for node in cluster.nodes:
                for root in fuser.roots(node):
                    if root not in fuser.home or fuser.find(fuser.home[root]) is not cluster:
                        used.add(root)
    return used


def fused_node(group: Group, used: set[Atom], fuser: Fuser) -> TraceNode:
    """One node for ``group``; its body holds the renaming movement inside it too."""
    emitted: set[Atom] = {node.out for node in group.nodes}
    body: list[TraceNode] = []
    inputs: dict[Value, None] = {}

    def need(atom: Atom) -> None:
        chain = []
        while isinstance(atom, Value) and atom not in emitted:
            node = fuser.graph.producer(atom)
            if node is None or not node.op.renames:
                inputs[atom] = None
                break
            chain.append(node)
            emitted.add(atom)
            atom = node.ins[0]
        body.extend(reversed(chain))

    for node in group.nodes:
        for atom in node.ins:
            need(atom)
        body.append(node)
    outs = tuple(node.out for node in group.nodes if node.out in used)
    name = "_".join(node.op.name for node in group.nodes[:6]) + ("_etc" if len(group.nodes) > 6 else "")
    graph = Graph(name, tuple(inputs), tuple(body), outs)
    return TraceNode(FUSED, tuple(inputs), outs, (("body", graph), ("group", group)), group.nodes[0].origin)
