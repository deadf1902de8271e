"""Programs written for another library as modules: as they are, or with changed import lines; and their compiled runs."""

from __future__ import annotations

import types
from collections.abc import Callable
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
