"""The backward program of a compiled function, for those of its results that have a gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from jitgrad.compiler.absent_seeds import without_seeds
from jitgrad.compiler.differentiate import Joint, Split
from jitgrad.compiler.passes.cleanup import eliminate_dead
from jitgrad.core.fork import cached_property
from jitgrad.core.ir import Graph, Value
from jitgrad.runtime.program import Program


@dataclass(eq=False)
class GradientProgram:
    """Gradients of the inputs from those of the results whose seeds have the numbers ``present``."""

    joint: Joint
    split: Split
    present: tuple[int, ...]
    compile: Callable[[Graph], Program]

    @cached_property
    def program(self) -> Program:
        """used inputs + saved + seeds -> gradients."""
        return self.compile(self._part[0])

    @cached_property
    def flows(self) -> tuple[bool, ...]:
        """Which of the differentiated inputs get a gradient."""
        left = iter(self._part[1])
        return tuple(flows and next(left) for flows in self.joint.flows)

    @cached_property
    def graph(self) -> Graph:
        """inputs + seeds -> gradients, with nothing saved."""
        whole = self.joint.graph
        return self._without_absent(eliminate_dead(replace(whole, outputs=whole.outputs[self.joint.outputs :])))[0]

    @cached_property
    def _part(self) -> tuple[Graph, tuple[bool, ...]]:
        return self._without_absent(self.split.backward)

    def _without_absent(self, graph: Graph) -> tuple[Graph, tuple[bool, ...]]:
        present, absent = self._seeds()
        if not absent:
            return graph, (True,) * len(graph.outputs)
        graph, left = without_seeds(graph, absent, present)
        return replace(graph, inputs=tuple([v for v in graph.inputs if v not in absent])), left

    def _seeds(self) -> tuple[Sequence[Value], Sequence[Value]]:
        seeds = self.joint.seeds
        present = [seeds[k] for k in self.present]
        return present, [seed for seed in seeds if seed not in present]
