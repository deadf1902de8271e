"""All JITGRAD_* environment variables and process-wide settings, with their documentation."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitgrad.core.errors import ArgumentError, DtypeError, shown


@dataclass(frozen=True, slots=True)
class Variable:
    """One environment variable: its default text, its parser and the line that documents it."""

    name: str
    default: str
    parse: Callable[[str], Any]
    doc: str

    def read(self) -> Any:
        """The parsed value, read from the environment now."""
        text = os.environ.get(self.name, self.default)
        try:
            return self.parse(text)
        except ValueError as error:
            raise ArgumentError(f"environment variable {self.name}={text!r}: {error}. {self.doc}") from None


def _flag(text: str) -> bool:
    lowered = text.strip().lower()
    if lowered in ("", "0", "false", "no", "off"):
        return False
    if lowered in ("1", "true", "yes", "on"):
        return True
    raise ValueError("expected 0 or 1")


def _choice(*allowed: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in allowed:
            raise ValueError(f"expected one of {', '.join(allowed)}")
        return text

    return parse


TOPICS = ("trace", "guards", "kernels", "all")


def _topics(text: str) -> frozenset[str]:
    words = frozenset(word.strip() for word in text.split(",") if word.strip())
    if unknown := words.difference(TOPICS):
        raise ValueError(f"there is no topic {sorted(unknown)[0]!r}")
    return words


def _level(text: str) -> int:
    if text not in ("0", "1", "2"):
        raise ValueError("expected 0, 1 or 2")
    return int(text)


def _count(text: str) -> int | None:
    if not text:
        return None
    if not text.strip().isdecimal() or int(text) < 1:
        raise ValueError("expected a positive integer")
    return int(text)


VARIABLES: dict[str, Variable] = {
    v.name: v
    for v in (
        Variable("JITGRAD_DISABLE", "0", _flag, "1 runs every @jit function eagerly."),
        Variable(
            "JITGRAD_CHECK",
            "",
            _choice("", "first", "always", "off"),
            "Overrides check= of every @jit: first, always or off.",
        ),
        Variable("JITGRAD_DUMP", "", str, "A folder: every pass's graph and every kernel is written there."),
        Variable(
            "JITGRAD_LOGS",
            "",
            _topics,
            "Comma-separated topics logged to stderr: trace, guards, kernels, all.",
        ),
        Variable("JITGRAD_CACHE_DIR", "", str, "Where compiled kernels are kept; empty: the user's cache folder."),
        Variable("JITGRAD_BACKEND", "cpu", str, "Runs kernels: cpu (compiled by LLVM), numba or python (step by step)."),
        Variable("JITGRAD_VERIFY", "1", _level, "0: never verify graphs, 1: after tracing and fusing, 2: every pass."),
        Variable(
            "JITGRAD_MAX_PROGRAMS",
            "256",
            _count,
            "Kinds of arguments for which a @jit function keeps programs; the longest unused are dropped.",
        ),
        Variable("JITGRAD_NUM_THREADS", "", _count, "Threads for kernels; default OMP_NUM_THREADS, else all cores."),
    )
}


def read(name: str) -> Any:
    """The current value of the variable ``name``."""
    return VARIABLES[name].read()


def documentation() -> str:
    """All environment variables as a Markdown table."""
    rows = [f"| `{v.name}` | {f'`{v.default}`' if v.default else 'empty'} | {v.doc} |" for v in VARIABLES.values()]
    return "\n".join(["| variable | default | meaning |", "| --- | --- | --- |", *rows])


class _Defaults:
    float_dtype: np.dtype[Any] = np.dtype(np.float32)
    methods_of: str = "numpy"  # whose meaning x.std(), x.max(1) and others have: "torch" from `import jitgrad.torch` on
    immutable: bool = False  # whether x += y makes a new tensor: from `import jitgrad.jax` on


def set_default_dtype(dtype: Any) -> None:
    """Set the dtype that Python floats get in ``jg.tensor`` and creation functions (float32 or
    float64).

    Raises:
        DtypeError: if ``dtype`` is no floating dtype.
    """
    try:
        new = np.dtype(dtype)
    except TypeError:
        new = None
    if new is None or new.kind != "f":
        raise DtypeError(f"set_default_dtype: expected a floating dtype such as float32, got {shown(dtype)}")
    _Defaults.float_dtype = new


def get_default_dtype() -> np.dtype[Any]:
    """The dtype that Python floats get in ``jg.tensor`` and creation functions."""
    return _Defaults.float_dtype


def set_methods_of(package: str) -> None:
    """Say whose meaning the methods of tensors have, "numpy" or "torch": calls traced for one do not serve the other."""
    _Defaults.methods_of = package


def get_methods_of() -> str:
    """Whose meaning the methods of tensors have."""
    return _Defaults.methods_of


def set_immutable(immutable: bool) -> None:
    """Say whether ``x += y`` makes a new tensor, as in JAX, or changes ``x``: calls traced for one do not serve the other."""
    _Defaults.immutable = immutable


def get_immutable() -> bool:
    """Whether ``x += y`` makes a new tensor."""
    return _Defaults.immutable
