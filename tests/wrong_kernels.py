"""Kernels with mistakes in them, for tests of what finds these."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

import pytest

from jitgrad.backends.codegen import scalar


def wrong_functions(monkeypatch: pytest.MonkeyPatch, replaced: Mapping[str, str]) -> Iterator[None]:
    """Code generation that writes one function for another; what it rendered before, or renders
    meanwhile, is forgotten."""
    right = scalar.parsed_scalar

    def parsed(text: str) -> ast.expr:
        for name, other in replaced.items():
            text = text.replace(name, other)
        return right(text)

    monkeypatch.setattr(scalar, "parsed_scalar", parsed)
    scalar._template.cache_clear()
    yield
    scalar._template.cache_clear()
