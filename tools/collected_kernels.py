"""CUDA kernels, collected from the programs that use them, and from the whole test suite."""

from __future__ import annotations

import contextlib
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from jitgrad.backends.base import user_functions
from jitgrad.backends.codegen.source import Source
from jitgrad.backends.cuda_target.target import CudaTarget
from jitgrad.backends.emulated import EmulatedTarget
from jitgrad.compiler.lowering.kernel_ir import Kernel
from jitgrad.core.errors import JitgradError
from jitgrad.jit import executable
from jitgrad.runtime import program_op
from jitgrad.runtime.program import Program
from jitgrad.runtime.program_op import compile_graph


@dataclass(frozen=True, slots=True)
class Collected:
    """One function of a kernel that a program has; ``ready``: what it was compiled to, by capability, if that is known."""

    origin: str
    source: Source
    entry: str
    functions: dict[str, Any]
    ready: Mapping[str, Any] = field(default_factory=dict)


class Collector(EmulatedTarget):
    """The emulated target; it keeps every kernel that it is given, once."""

    def __init__(self) -> None:
        super().__init__()
        self.origin = ""
        self._kernels_by_text: dict[Any, Collected] = {}

    def load(self, kernel: Kernel, source: Source, entry: str) -> Any:
        self.keep(source, entry, user_functions(kernel))
        return super().load(kernel, source, entry)

    def keep(self, source: Source, entry: str, functions: dict[str, Any]) -> None:
        text = source.identity, source.params, entry
        self._kernels_by_text.setdefault(text, Collected(self.origin, source, entry, functions))

    @property
    def kernels(self) -> list[Collected]:
        return list(self._kernels_by_text.values())


class SuiteKernels:
    """A plugin of pytest: what the tests compile for any target is compiled for CUDA as well, and not run there.

    Attributes:
        refused: why the CUDA target refused a graph that another one compiled, and how often.
    """

    def __init__(self, target: Collector) -> None:
        self.target = target
        self.refused: Counter[str] = Counter()
        self.programs = 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        self.target.origin = item.nodeid

    def compile(self, graph: Any, target: Any, *rest: Any, **options: Any) -> Program:
        """``compile_graph``, and the same again for CUDA."""
        program = compile_graph(graph, target, *rest, **options)
        if not isinstance(target, CudaTarget):
            self.programs += 1
            try:
                compile_graph(graph, self.target)
            except JitgradError as error:
                self.refused[f"{type(error).__name__}: {str(error).splitlines()[0]}"] += 1
        return program

    def collect_loaded(self) -> None:
        """Keep what tests of the device itself compile: eager ops, copies, sorts."""
        load = CudaTarget.load

        def loaded(target: CudaTarget, kernel: Any, source: Any, entry: str) -> Any:
            code = load(target, kernel, source, entry)
            self.target.keep(source, entry, dict(code.functions))
            return code

        CudaTarget.load = loaded  # type: ignore[method-assign]


def run_tests(paths: Sequence[str], target: Collector, quick: bool) -> tuple[int, Counter[str]]:
    """Run the tests in ``paths``, in this process; gives how many programs they compiled, and what CUDA refused how often.

    A test that fails is no failure here: the suite itself says so, and some count compilations. ``quick``: without the
    tests that compare with PyTorch and JAX, which compile these for every program.
    """
    plugin = SuiteKernels(target)
    executable.compile_graph = program_op.compile_graph = plugin.compile  # type: ignore[assignment]
    plugin.collect_loaded()
    options = ["-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=no", "-r", "N"]
    options += ["-m", "not peers"] if quick else []
    with contextlib.redirect_stdout(io.StringIO()):
        pytest.main([*options, *paths], plugins=[plugin])
    return plugin.programs, plugin.refused
