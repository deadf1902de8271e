"""Tests of JAX's names mean what ``import jitgrad.jax`` makes of a process: ``x += y`` is a new tensor."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jitgrad.core.config import set_immutable


@pytest.fixture(autouse=True)
def jax_meanings(methods_of_numpy: None) -> Iterator[None]:
    set_immutable(True)
    yield
