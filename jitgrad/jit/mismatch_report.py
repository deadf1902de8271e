"""The warning about a program that disagrees with eager, and the scripts that show it."""

from __future__ import annotations

import contextlib
import re
import tempfile
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jitgrad.backends.llvm.disk_cache import directory
from jitgrad.compiler.loops.loop_op import LOOP, nodes_of
from jitgrad.core.errors import MismatchWarning
from jitgrad.core.ir import Literal, TraceNode
from jitgrad.core.origin import Origin, users_frame
from jitgrad.jit.executable import Executable
from jitgrad.jit.isolate import kernel_nodes
from jitgrad.jit.repro import write_repro
from jitgrad.jit.rounding_judge import Mismatch

MOST_SCRIPTS = 16  # older ones are removed
_LISTED = 2  # of anything: the warning is short


def warn_of_mismatch(
    executable: Executable,
    inputs: Sequence[np.ndarray[Any, Any]],
    mismatches: Sequence[Mismatch],
    wrong: Sequence[int] | None,
) -> None:
    """Warn in at most ten lines, and write a script that shows the difference.

    ``wrong``: the numbers of the kernels that are at fault; None if no kernel is.
    """
    name = executable.traced.graph.name
    lines = [f"the fused program of {name!r} disagrees with eager:", *_listed(map(str, mismatches))]
    if wrong is None:
        lines.append("No kernel is at fault: run op by op, the program disagrees as well. This call runs eagerly from now on:")
        lines += _listed(_lines_of([_producer(executable, m) for m in mismatches]))
    else:
        nodes = kernel_nodes(executable.program)
        lines.append("The ops of these lines run one by one from now on; the other kernels stay compiled:")
        lines += _listed(_kernel_line(nodes[k]) for k in wrong)
        only_loops = all(nodes[k].op is LOOP for k in wrong)  # scripts show single kernels
        if not only_loops and (path := _script(executable, inputs, mismatches, wrong)):
            lines.append(f"A script that shows it alone: {path}")
    warnings.warn("\n  ".join(lines[:-1]) + "\n" + lines[-1], MismatchWarning, stacklevel=users_frame())


def warn_of_other_objects(executable: Executable, found: Sequence[str]) -> None:
    """Warn of results that the program does not compute, and that are others in eager execution."""
    first = f"the program of {executable.traced.graph.name!r} returns other objects than eager execution:"
    last = (
        "The function asks something that a trace answers differently, such as the class of an array, which is a\n  tensor "
        "there. This call runs eagerly from now on."
    )
    warnings.warn("\n  ".join([first, *_listed(found), last]), MismatchWarning, stacklevel=users_frame())


def _listed(items: Iterable[str]) -> list[str]:
    """The first items, cut to a line each, and how many more there are."""
    texts = [text if len(text) <= 240 else text[:237] + "..." for text in dict.fromkeys(items)]
    return [*texts[:_LISTED], *([f"... and {len(texts) - _LISTED} more"] if len(texts) > _LISTED else [])]


def _producer(executable: Executable, mismatch: Mismatch) -> Origin:
    graph = executable.traced.graph
    atom = graph.outputs[mismatch.output]
    node = None if isinstance(atom, Literal) else graph.producer(atom)
    return Origin() if node is None else node.origin


def _lines_of(origins: Iterable[Origin]) -> list[str]:
    return [str(origin.full()) for origin in dict.fromkeys(origins) if origin.line]


def _kernel_line(node: TraceNode) -> str:
    body = [*nodes_of(node.attr("body").graph if node.op is LOOP else node.attr("body"))]
    lines = _lines_of(n.origin for n in body) or ["an unknown line"]
    shown = ", ".join(lines[:3]) + (", ..." if len(lines) > 3 else "")
    return f"{shown} ({' '.join(dict.fromkeys(n.op.name for n in body))})"


def _script(
    executable: Executable, inputs: Sequence[Any], mismatches: Sequence[Mismatch], wrong: Sequence[int]
) -> Path | None:
    """The path of a new script in the cache folder; None, with its own warning, if the disk refuses."""
    worst = mismatches[0]
    shape = executable.traced.graph.outputs[worst.output].aval.shape
    center = 0.0
    if worst.element and shape:
        center = float(np.ravel_multi_index(worst.element, shape)) / max(1, int(np.prod(shape)))
    try:
        folder = directory().parent / "repros"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = re.sub(r"\W", "_", executable.traced.graph.name)[:40]
        with tempfile.NamedTemporaryFile(prefix=f"jitgrad_repro_{name}_", suffix=".py", dir=folder, delete=False) as file:
            path = Path(file.name)
        write_repro(str(path), executable.program, inputs, wrong, center)
        _remove_old_scripts(folder)
    except OSError as error:
        warnings.warn(f"no script shows the difference: {error}", MismatchWarning, stacklevel=users_frame())
        return None
    return path


def _remove_old_scripts(folder: Path) -> None:
    with contextlib.suppress(OSError):
        scripts = sorted(folder.glob("jitgrad_repro_*.py"), key=lambda path: path.stat().st_mtime_ns)
        for path in scripts[:-MOST_SCRIPTS]:
            path.unlink(missing_ok=True)
            path.with_suffix(".npz").unlink(missing_ok=True)
