"""The backward program of a compiled function, for those of its results that have a gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from jitgrad.compiler.absent_seeds import depends_on, without_seeds
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
        return self.compile(self._without_absent(self.split.backward))

    @cached_property
    def flows(self) -> tuple[bool, ...]:
        """Which of the differentiated inputs get a gradient."""
        left = iter(self._left)
        return tuple(flows and next(left) for flows in self.joint.flows)

    @cached_property
    def graph(self) -> Graph:
        """inputs + seeds -> gradients, with nothing saved."""
        whole = self.joint.graph
        return self._without_absent(eliminate_dead(replace(whole, outputs=whole.outputs[self.joint.outputs :])))

    @cached_property
    def _left(self) -> tuple[bool, ...]:
        """Which gradients do not come from absent seeds alone."""
        return tuple(depends_on(self.joint.graph, self._seeds()[0])[self.joint.outputs :])

    def _without_absent(self, graph: Graph) -> Graph:
        present, absent = self._seeds()
        if not absent:
            return graph
        graph = without_seeds(graph, absent, present, self._left)
        return replace(graph, inputs=tuple([v for v in graph.inputs if v not in absent]))

    def _seeds(self) -> tuple[Sequence[Value], Sequence[Value]]:
        seeds = self.joint.seeds
        present = [seeds[k] for k in self.present]
        return present, [seed for seed in seeds if seed not in present]
