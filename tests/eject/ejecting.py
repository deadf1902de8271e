"""What the tests of ejected modules share: modules without numba's compiler, and their results on Tensors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.core import config as numba_config

import jitgrad as jg
from jitgrad.jit.ejection import Ejected

Eject = Callable[..., tuple[Ejected, Any]]


@pytest.fixture
def in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions with ``@numba.njit`` stay Python functions, as with NUMBA_DISABLE_JIT=1."""
    monkeypatch.setattr(numba_config, "DISABLE_JIT", True)


@pytest.fixture
def eject(tmp_path: Path) -> Eject:
    """``eject(f, *args)``: the files, and the function of the module, which agrees with the recorded results."""

    def ejected(function: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[Ejected, Any]:
        files = jg.jit(function).eject(tmp_path / "ejected.py", *args, **kwargs)
        return files, jg.load_ejected(files.path)

    return ejected


def tensor(*shape: int, dtype: str = "f4", seed: int = 0) -> jg.Tensor:
    """Normal numbers; a seed of its own for each shape."""
    return jg.tensor((np.random.default_rng([seed, *shape]).normal(size=shape) * 2).astype(dtype))


def integers(n: int, *shape: int, dtype: str = "i8") -> jg.Tensor:
    return jg.tensor(np.random.default_rng([n, *shape]).integers(0, n, shape).astype(dtype))


def text_of(files: Ejected) -> str:
    return Path(files.path).read_text(encoding="utf-8")
