"""Programs written for another library as modules: as they are, or with changed import lines; and their compiled runs."""

from __future__ import annotations

import re
import types
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import jitgrad as jg


def module_of(path: Path, changed: Callable[[str], str] | None = None) -> types.ModuleType:
    """The program at ``path`` as a module, of its text as ``changed`` gives it."""
    text = path.read_text(encoding="utf-8")
    module = types.ModuleType(path.stem)
    exec(compile(text if changed is None else changed(text), path.name, "exec", dont_inherit=True), module.__dict__)
    return module


def program_for(library: str, path: Path, changed: bool) -> types.ModuleType:
    """The program at ``path`` as a module, with ``library`` in its import lines made ``jitgrad.library`` if it is to be
    ``changed``."""
    return module_of(path, partial(_with_jitgrad, library) if changed else None)


def _with_jitgrad(library: str, text: str) -> str:
    text = re.sub(rf"^import {library}$", f"import jitgrad.{library} as {library}", text, flags=re.MULTILINE)
    return re.sub(rf"^(import|from) {library}\b", rf"\1 jitgrad.{library}", text, flags=re.MULTILINE)


def eager(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    return function


def assert_compiled_is_eager(main: Callable[..., Any], traces: int) -> np.ndarray[Any, Any]:
    """Compare ``main(jg.jit)`` with ``main(eager)``, which is returned; ``traces``: the most of its first function."""
    compiled: list[Any] = []

    def jit(function: Callable[..., Any], **options: Any) -> Any:
        compiled.append(jg.jit(function, **options))
        return compiled[-1]

    expected: np.ndarray[Any, Any] = main(eager).numpy()

    assert np.isfinite(expected).all()
    np.testing.assert_allclose(main(jit).numpy(), expected, rtol=1e-7, atol=1e-9)
    assert [f.cache_info().fallbacks for f in compiled] == [0] * len(compiled)
    assert compiled[0].cache_info().traces <= traces
    return expected
