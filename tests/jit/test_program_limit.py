"""A @jit function keeps a limited number of programs and drops the longest unused."""

from __future__ import annotations

import warnings

import pytest

import jitgrad as jg
from jitgrad.core.errors import RetraceWarning
from jitgrad.jit.decorator import jit


@pytest.fixture(autouse=True)
def three_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", "python")
    monkeypatch.setenv("JITGRAD_MAX_PROGRAMS", "3")


def test_the_longest_unused_program_is_dropped_and_made_again():
    f, x = jit(lambda x, n: x[:n] * 2, static_argnames=("n",)), jg.arange(9.0)
    for n in (1, 2, 3):
        f(x, n)
    f(x, 1)

    with pytest.warns(RetraceWarning, match=r"3 kinds of arguments.*JITGRAD_MAX_PROGRAMS"):
        f(x, 4)
    traces = f.cache_info().traces

    assert (f.cache_info().dropped, traces) == (1, 4)
    for n in (1, 3, 4):
        assert f(x, n).tolist() == [2.0 * k for k in range(n)]
    assert f.cache_info().traces == traces
    assert f(x, 2).tolist() == [0.0, 2.0]
    assert (f.cache_info().traces, f.cache_info().dropped) == (traces + 1, 2)


def test_the_warning_comes_once():
    f, x = jit(lambda x, n: x[:n] * 2), jg.arange(30.0)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RetraceWarning)
        for n in range(1, 30):
            assert f(x, n).shape == (n,)

    assert len([w for w in caught if "JITGRAD_MAX_PROGRAMS" in str(w.message)]) == 1
    assert f.cache_info().dropped == 26


@pytest.mark.filterwarnings("ignore:.*is traced for each value")
def test_an_empty_limit_keeps_all(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("JITGRAD_MAX_PROGRAMS", "")
    f, x = jit(lambda x, n: x[:n] * 2), jg.arange(30.0)

    for n in range(1, 30):
        f(x, n)

    assert f.cache_info().dropped == 0
