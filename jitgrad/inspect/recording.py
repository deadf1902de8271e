"""Runs a script and records every @jit function in it."""

from __future__ import annotations

import os
import runpy
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jitgrad.core.errors import FallbackWarning, MismatchWarning
from jitgrad.jit.decorator import JitFunction, on_compile
from jitgrad.jit.executable import Executable


@dataclass(eq=False, slots=True)
class Recording:
    """A run of a script: its @jit functions with all their specialisations, and all problems.

    Attributes:
        compiled: the specialisations of every @jit function, in the order of the first calls.
        problems: warnings that fused and eager disagreed, or that a function ran eagerly.
        error: the exception that ended the script; None if it ran to its end.
    """

    compiled: dict[JitFunction, list[Executable]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    error: BaseException | None = None

    def note(self, function: JitFunction, compiled: Executable) -> None:
        self.compiled.setdefault(function, []).append(compiled)


def record_script(path: Path, arguments: Sequence[str] = (), environment: Mapping[str, str] | None = None) -> Recording:
    """Run the script at ``path`` as from the command line, with ``environment`` added; its errors are recorded."""
    recording = Recording()
    token = on_compile.set(recording.note)
    try:
        with _as_main(path, arguments), environment_set(environment or {}), _warnings(recording):
            runpy.run_path(str(path), run_name="__main__")
    except SystemExit as error:
        recording.error = error if error.code not in (None, 0) else None
    except Exception as error:
        recording.error = error
    finally:
        on_compile.reset(token)
    return recording


@contextmanager
def _as_main(path: Path, arguments: Sequence[str]) -> Iterator[None]:
    """Sets the script's arguments and import path."""
    before, folders = sys.argv, sys.path
    sys.argv = [str(path), *arguments]
    sys.path = [str(path.resolve().parent), *folders]
    try:
        yield
    finally:
        sys.argv, sys.path = before, folders


@contextmanager
def environment_set(variables: Mapping[str, str]) -> Iterator[None]:
    """Sets environment variables, and restores them."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _warnings(recording: Recording) -> Iterator[None]:
    """Collects the warnings of @jit; others are shown as usual."""
    with warnings.catch_warnings():
        for category in (MismatchWarning, FallbackWarning):
            warnings.simplefilter("always", category)
        show = warnings.showwarning

        def collect(message: Any, category: type[Warning], *where: Any, **more: Any) -> None:
            if issubclass(category, (MismatchWarning, FallbackWarning)):
                recording.problems.append(str(message))
            else:
                show(message, category, *where, **more)

        warnings.showwarning = collect
        yield
