"""What tests of the runtime share: a number of threads, and machine code for arrays of every size."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import jitgrad as jg
from jitgrad.runtime import places


@pytest.fixture(params=[1, 2, 3])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = jg.get_num_threads()
    jg.set_num_threads(request.param)
    yield request.param
    jg.set_num_threads(before)


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Machine code for reads and changes at places of arrays of every size."""
    monkeypatch.setattr(places, "CALL", 0)
