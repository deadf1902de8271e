"""How near jitgrad's kernels are to what the machine allows: a copy of as many bytes, or their own arithmetic."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

LEAST_BYTES = 1_000_000  # smaller kernels find their arrays in a second-level cache
ENOUGH = 0.8  # of the limit
SHOWN = 4  # kernels in the line of a workload


@dataclass(frozen=True, slots=True)
class KernelLimit:
    """A kernel that moves ``bytes``, and the part of its time that its limit takes: "memory" or "arithmetic"."""

    name: str
    bytes: int
    of_limit: float
    limit: str

    def __str__(self) -> str:
        return f"`{self.name}` ({self.bytes / 1e6:.3g} MB) {self.of_limit:.0%} of {self.limit}"


def kernel_limits(function: Any, arguments: Sequence[Any]) -> list[KernelLimit]:
    """The kernels of 1 MB and more of a compiled jitgrad function on the host, those farthest from their limit first."""
    if not hasattr(function, "explain") or function.explain(*arguments).device != "cpu":
        return []
    explanation = function.explain(*arguments, measure=True)
    kernels: dict[str, KernelLimit] = {}
    for program in filter(None, (explanation, explanation.backward)):
        for step in program.steps:
            nbytes = step.bytes_read + step.bytes_written
            if nbytes >= LEAST_BYTES and step.of_limit is not None:
                worst = kernels.get(step.name)
                if worst is None or step.of_limit < worst.of_limit:
                    kernels[step.name] = KernelLimit(step.name, nbytes, step.of_limit, step.limit)
    return sorted(kernels.values(), key=lambda kernel: kernel.of_limit)


def line_of(kernels: Sequence[KernelLimit]) -> str:
    """One line about the kernels of a workload; "" without any."""
    if not kernels:
        return ""
    near = sum(kernel.of_limit >= ENOUGH for kernel in kernels)
    farthest = "; ".join(map(str, kernels[:SHOWN]))
    return f"Kernels of 1 MB and more at {ENOUGH:.0%} of their limit or above: {near} of {len(kernels)}. Farthest: {farthest}."


def far_kernels(workloads: Iterable[tuple[str, Sequence[KernelLimit]]]) -> str:
    """A list of the kernels below 80 % of their limit, by workload; "" without any."""
    lines = [
        f"* {name}: {'; '.join(str(kernel) for kernel in kernels if kernel.of_limit < ENOUGH)}"
        for name, kernels in workloads
        if any(kernel.of_limit < ENOUGH for kernel in kernels)
    ]
    return f"### Kernels below {ENOUGH:.0%} of their limit\n\n{_ABOUT}\n" + "\n".join(lines) + "\n" if lines else ""


_ABOUT = """The limit of a kernel is the time of a copy of as many bytes, which takes turns with it, or of its own arithmetic
on elements in the first-level cache, whichever is longer. Shortest runs are compared. Above 100 % a kernel moves its
bytes faster than a copy, because more of them are in cache. Below, the usual reasons are: reductions whose sums wait for
each other; stencils and joined arrays, whose offset reads cross cache lines; many streams, which prefetchers follow
less well than two; operands that are read across rows; and one thread, where a kernel is not shared.
"""
