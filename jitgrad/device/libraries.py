"""Finds the libraries of CUDA that jitgrad's extras install, or a CUDA toolkit has."""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

# of CUDA 13, whose wheels share their folders, below the namespace package nvidia
_SHARED_FOLDERS = ("cu13/lib", "cu13/bin/x86_64")


def _candidates(names: Sequence[str], package: str) -> Iterator[str]:
    """Libraries in the wheels, then those that the system's search path leads to."""
    spec = importlib.util.find_spec("nvidia")
    for root in (spec.submodule_search_locations or ()) if spec is not None else ():
        for folder in (*_SHARED_FOLDERS, f"{package}/lib", f"{package}/bin"):
            yield from (str(path) for name in names if (path := Path(root, folder, name)).exists())
    yield from names


def find_library(names: Sequence[str], package: str) -> Any:
    """The first library of ``names`` that can be loaded; ``package`` is its folder in the wheels of CUDA 12.

    None if it is not installed.
    """
    for name in _candidates(names, package):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None
