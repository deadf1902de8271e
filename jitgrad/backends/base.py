"""What a target is: it schedules and compiles kernels, allocates memory, and runs programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from jitgrad.backends.codegen.scalar import function_name
from jitgrad.backends.codegen.source import Source
from jitgrad.compiler.lowering.kernel_ir import Compute, Kernel, Schedule
from jitgrad.compiler.lowering.layout import Buffer
from jitgrad.compiler.lowering.loop_nest import LoopNest
from jitgrad.compiler.pipeline import Pass
from jitgrad.compiler.plan import OpStep, Plan
from jitgrad.compiler.recompute.limit import MemoryBudget
from jitgrad.compiler.tuning import Tuning
from jitgrad.core.aval import Dtype
from jitgrad.core.fork import fork_safe_lock
from jitgrad.core.ir import Graph


@dataclass(eq=False, slots=True)
class CompiledKernel:
    """One kernel as compiled, shared by all launches that are structurally equal.

    A ``general`` one has the user's float literals as parameters: launches that differ in them
    share it too, and the notes in its text show the values of the first.
    """

    name: str
    main: Source
    epilogue: Source | None
    kernel: Kernel
    schedule: Schedule
    main_code: Any
    epilogue_code: Any
    from_disk: bool
    general: bool = False

    @property
    def source(self) -> str:
        """Readable source of everything that runs."""
        return self.main.text + ("\n" + self.epilogue.text if self.epilogue is not None else "")


@dataclass(frozen=True, slots=True)
class CompiledLaunch:
    """A compiled kernel for one launch.

    Attributes:
        new: whether it was compiled just now, not found among earlier ones.
        args, epilogue_args: the launch's float literals, if the kernel has them as parameters: they
            follow its other arguments.
    """

    kernel: CompiledKernel
    new: bool
    args: tuple[int, ...] = ()
    epilogue_args: tuple[int, ...] = ()


class Frame(Protocol):
    """Memory of one running call."""

    def results(self) -> list[Any]:
        """Arrays for the results of the program's kernels."""

    def run(self, inputs: Sequence[Any], results: list[Any], interruptible: bool = False) -> None:
        """Run all steps on ``inputs``; they write to ``results``, where None is for arrays that
        library calls return. ``interruptible``: a signal may stop the run between two blocks."""


class AddressSpace(Enum):
    """What a generated call passes to the frames of a program."""

    HOST = "addresses of arrays on the host"
    DEVICE = "addresses of arrays on a device, and the inputs that are on the host"


class Runner(Protocol):
    """Runs one program on its target.

    Attributes:
        address_space: None if there is no generated call for its programs.
        launched: how the steps are started, in words; "" for one after the other.
        interruptible: whether a signal can stop a run between its blocks. Where it cannot, the time of a run says nothing:
            a device may make the host wait until it has room for more work.
        repeats: whether the native loop can run the program for each turn of a loop.
    """

    @property
    def address_space(self) -> AddressSpace | None: ...

    @property
    def launched(self) -> str: ...

    @property
    def interruptible(self) -> bool: ...

    @property
    def repeats(self) -> bool: ...

    @property
    def tiled_products(self) -> frozenset[Any]:
        """The matrix products that this package's own kernels compute, not BLAS."""

    def computed_by(self, call: Any) -> str:
        """What computes the library call ``call``, in words; "" for NumPy or a compiled library op."""

    def frame(self) -> Frame:
        """Memory for one more call at a time."""


class Target(Protocol):
    """Something that programs are compiled for. `jitgrad.backends.targets` lists all of them.

    Attributes:
        passes: over the graphs of its programs.
        memory_budget: of the temporaries of each program; None: any number.
        runs_loops: whether programs may have loops; else every turn is written out.
        native: whether steps without kernel may be machine code.
    """

    name: str
    device: str  # "cpu" or "cuda"
    passes: Sequence[Pass]
    memory_budget: MemoryBudget | None
    runs_loops: bool
    native: bool

    @property
    def tuning(self) -> Tuning:
        """Thresholds of its passes and schedules."""

    def warm_up(self) -> None:
        """Start compiling code that every program needs, while the function is traced."""

    def expect(self, graph: Graph) -> None:
        """Start compiling library code that ``graph`` needs, while the passes run."""

    def schedule(self, nest: LoopNest) -> Schedule:
        """How this target runs ``nest``."""

    def emit(self, kernel: Kernel, schedule: Schedule) -> tuple[Source, Source | None]:
        """The text of the kernel and of its epilogue."""

    def compile(self, kernel: Kernel, schedule: Schedule) -> CompiledLaunch:
        """The compiled kernel for one launch."""

    def allocate(self, shape: tuple[int, ...], dtype: Dtype) -> Any:
        """Memory for a result."""

    def constant(self, array: Any) -> Any:
        """A new array with the elements of the ndarray ``array``: a result that is known beforehand."""

    def library_call(self, step: OpStep, slots: Mapping[Buffer, int], plan: Plan) -> Any:
        """A step without kernel; ``slots`` number the inputs and results of the program."""

    def runner(self, program: Any) -> Runner:
        """Runs ``program``, a `jitgrad.runtime.program.Program` compiled for this target."""


LoadCode = Callable[[Kernel, Source, str], Any]
"""Makes the function of a name ("kernel" or "epilogue") that a source of the kernel defines."""


class KernelCache:
    """The kernels that a target has compiled, by structure.

    The first kernel of a structure is compiled with its float literals in the text, where they cost
    nothing. When the structure comes again with other literals, it is compiled once more with the
    literals as parameters, and that serves every further value. So a number read from a global
    costs two compiles, however many values it takes.
    """

    def __init__(self, load: LoadCode) -> None:
        self._load = load
        self._compiled: dict[Any, CompiledKernel] = {}
        self._structures: set[Any] = set()
        self._functions: dict[Any, Any] = {}
        self._lock = fork_safe_lock()

    def find(self, kernel: Kernel, schedule: Schedule, main: Source, epilogue: Source | None) -> CompiledLaunch:
        """The kernel of these sources, compiled now if it is new."""
        general, general_epilogue = main.generalised, epilogue and epilogue.generalised
        args = general.args, general_epilogue.args if general_epilogue is not None else ()
        exact, structure = (main, epilogue), (general, general_epilogue)
        with self._lock:
            if (compiled := self._compiled.get(_identity(*exact))) is not None:
                return CompiledLaunch(compiled, False)
            if (compiled := self._compiled.get(_identity(*structure))) is not None:
                return CompiledLaunch(compiled, False, *args)
            if _identity(*structure) not in self._structures:
                compiled = self._compile(kernel, schedule, *exact, general=False)
                self._structures.add(_identity(*structure))
                return CompiledLaunch(compiled, True)
            return CompiledLaunch(self._compile(kernel, schedule, *structure, general=True), True, *args)

    def _compile(
        self, kernel: Kernel, schedule: Schedule, main: Source, epilogue: Source | None, *, general: bool
    ) -> CompiledKernel:
        # the epilogue first: LLVM compiles it while the kernel, which takes longer, is lowered
        epilogue_code = None if epilogue is None else self._function(kernel, epilogue, "epilogue")
        main_code = self._function(kernel, main, "kernel")
        from_disk = all(getattr(c, "from_disk", False) for c in (main_code, epilogue_code) if c is not None)
        codes = main_code, epilogue_code, from_disk
        compiled = CompiledKernel(kernel.name, main, epilogue, kernel, schedule, *codes, general)
        self._compiled[_identity(main, epilogue)] = compiled
        return compiled

    def _function(self, kernel: Kernel, source: Source, entry: str) -> Any:
        """Kernels that end alike share their epilogue."""
        key = source.identity, entry, source.params, source.row_vectors
        if key not in self._functions:
            self._functions[key] = self._load(kernel, source, entry)
        return self._functions[key]


def _identity(main: Source, epilogue: Source | None) -> tuple[Any, ...]:
    return (main.identity, main.params, main.row_vectors, epilogue and epilogue.identity, epilogue and epilogue.params)


def user_functions(kernel: Kernel) -> dict[str, Any]:
    """The user's scalar functions in ``kernel``, by the names that they have in its source."""
    ops = {s.node.op for s in kernel.statements if isinstance(s, Compute) and s.node.op.function is not None}
    return {function_name(op): op.function for op in ops}
