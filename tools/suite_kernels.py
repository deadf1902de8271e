"""The CUDA kernels of the test suite, collected by several processes, some test files each; what they found is kept on disk,
so that a run that was stopped goes on where it was, and one after a change of some tests runs only these."""

from __future__ import annotations

import multiprocessing
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from jitgrad.backends.codegen.source import Source
from jitgrad.backends.cuda.capability import Capability
from tools.assembled_kernels import Results, compiled_now
from tools.collected_kernels import Collected, Collector, run_tests

ROOT = Path(__file__).parents[1]
FILES_AT_ONCE = 6
# their programs run in processes of their own, or compile nothing
WITHOUT_KERNELS = ("tests/project", "tests/cli", "tests/benchmarks")


class SuiteKernels(NamedTuple):
    """What tests compile.

    Attributes:
        files, unfinished: test files, and how many of them nobody has run.
    """

    kernels: list[Collected]
    programs: int
    refused: Counter[str]
    files: int
    unfinished: int


def suite_kernels(
    paths: Sequence[str], capabilities: Iterable[Capability], jobs: int, results: Results, run: bool = True
) -> SuiteKernels:
    """The kernels of the tests in ``paths``, each once; only those known from earlier runs unless ``run``."""
    files = sorted({str(file) for path in paths for file in _test_files(path)})
    chunks = [files[k : k + FILES_AT_ONCE] for k in range(0, len(files), FILES_AT_ONCE)]
    wanted = sorted({tuple(c) for c in capabilities})
    found = [results.load(*_key(chunk)) for chunk in chunks]
    missing = [chunk for chunk, known in zip(chunks, found, strict=True) if known is None]
    if missing and run:
        # a process for each chunk: tests patch modules, and remember what they compiled
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(jobs, mp_context=context, max_tasks_per_child=1) as pool:
            waiting = [pool.submit(_collect, chunk, wanted, str(results.folder)) for chunk in missing]
            for done, future in enumerate(as_completed(waiting), 1):
                future.result()
                print(f"  {done} of {len(missing)} parts of the tests", flush=True)
        found = [results.load(*_key(chunk)) for chunk in chunks]
    complete = [part for part in found if part is not None]
    refused = Counter[str]()
    for part in complete:
        refused.update(part["refused"])
    unfinished = sum(len(chunk) for chunk, part in zip(chunks, found, strict=True) if part is None)
    return SuiteKernels(_joined(complete), sum(part["programs"] for part in complete), refused, len(files), unfinished)


def _test_files(path: str) -> Iterable[Path]:
    given = Path(path).resolve()
    files = given.rglob("test_*.py") if given.is_dir() else [given]
    return [f.relative_to(ROOT) for f in files if not str(f.relative_to(ROOT)).startswith(WITHOUT_KERNELS)]


@cache
def _package() -> str:
    """A digest of the package, and of what this module makes of it."""
    files = [*sorted((ROOT / "jitgrad").rglob("*.py")), Path(__file__), Path(__file__).with_name("collected_kernels.py")]
    return sha256("\0".join(file.read_text() for file in files).encode()).hexdigest()


def _key(chunk: Sequence[str]) -> tuple[str, ...]:
    return ("tests", _package(), *chunk, *[(ROOT / file).read_text() for file in chunk])


def _collect(chunk: Sequence[str], capabilities: Sequence[tuple[int, int]], folder: str) -> None:
    """Run some test files, and store what they compile."""
    os.environ["JITGRAD_VERIFY"] = "0"  # the suite itself verifies each pass
    target = Collector()
    programs, refused = run_tests(list(chunk), target, quick=True)
    kernels = []
    for kernel in target.kernels:
        # functions of users cannot be stored
        ready = {str(c): compiled_now(kernel, Capability(*c)) for c in capabilities} if kernel.functions else {}
        kernels.append([kernel.origin, kernel.source.identity, kernel.source.params, kernel.entry, ready])
    part = {"programs": programs, "refused": refused, "kernels": kernels}
    Results(Path(folder)).store(part, *_key(chunk))


def _joined(parts: Sequence[Any]) -> list[Collected]:
    """The kernels of all parts, each once."""
    found: dict[Any, Collected] = {}
    for part in parts:
        for origin, identity, params, entry, ready in part["kernels"]:
            source = Source(identity, identity, tuple(params))
            found.setdefault((identity, *params, entry), Collected(origin, source, entry, {}, ready))
    return list(found.values())
