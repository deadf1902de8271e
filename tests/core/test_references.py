"""Owners of an object by its reference count, whatever else the interpreter counts."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from jitgrad.core import references


def test_owners_are_counted() -> None:
    held = [np.ones(3)]
    assert references.counts_owners()
    assert references.has_owners(held)
    assert not references.has_owners(held, 1)

    others = [held[0]]
    assert references.has_owners(held, 1)
    view = held[0][1:]
    assert references.has_owners(held, 2)

    del others, view
    assert references.has_owners(held)


@pytest.mark.parametrize("count", [lambda x: 1, lambda x: 2**32, lambda x: sys.getrefcount(x) // 2])
def test_a_count_that_tells_nothing_makes_nobody_the_only_owner(monkeypatch: pytest.MonkeyPatch, count: object) -> None:
    monkeypatch.setattr(references, "getrefcount", count)
    monkeypatch.setattr(references, "_ONE_OWNER", references._references_of_one_owner())

    assert not references.counts_owners()
    assert not references.has_owners([object()])


@pytest.mark.parametrize("more", [-1, 1, 5])
def test_what_else_an_interpreter_counts_does_not_matter(monkeypatch: pytest.MonkeyPatch, more: int) -> None:
    monkeypatch.setattr(references, "getrefcount", lambda x: sys.getrefcount(x) + more)
    monkeypatch.setattr(references, "_ONE_OWNER", references._references_of_one_owner())
    held = [object()]

    assert references.has_owners(held)
    assert references.has_owners([*held], 1)
