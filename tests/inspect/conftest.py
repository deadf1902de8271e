"""Looking at programs needs no machine code: these tests run kernels as Python, except those marked numba."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", "cpu" if request.node.get_closest_marker("numba") else "python")
    for name in ("JITGRAD_CHECK", "JITGRAD_DISABLE"):
        monkeypatch.delenv(name, raising=False)
