"""A call that raises leaves the state as it was, also while its first-call check runs eagerly."""

from __future__ import annotations

from typing import Any

import pytest

import jitgrad as jg
from jitgrad.jit.decorator import jit


@pytest.mark.parametrize("backend", ["python", pytest.param("cpu", marks=pytest.mark.numba)])
@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize("check", ["first", "always", "off"])
def test_an_error_between_two_updates_leaves_both(
    check: str, error: type[BaseException], backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", backend)
    runs: list[int] = []  # of the opaque op in the present call: by the trace, the program and eager

    def forward(x: Any) -> Any:
        runs.append(1)
        if len(runs) == fails_at:
            raise error("in the middle")
        return x + 0

    opaque = jg.custom_op(forward=forward, vjp=lambda g, out, x: (g,))
    w, m, n = jg.ones(3).requires_grad_(), jg.zeros(3), jg.zeros(3)

    def step(x: Any) -> Any:
        (w * x).sum().backward()
        m[...] = m + 1
        y = opaque(x)
        n[...] = n + 1
        return y

    failures, succeeded = 0, 0
    for fails_at in (1, 2, 3, 4) * 2:  # noqa: B007 - `forward` reads it
        f, before = jit(step, check=check), [None if t is None else t.tolist() for t in (m, n, w.grad)]
        for _ in range(3):
            runs.clear()
            try:
                f(jg.ones(3))
            except error:
                failures += 1
            else:
                succeeded += 1
                before = [[float(succeeded)] * 3] * 3
            assert [None if t is None else t.tolist() for t in (m, n, w.grad)] == before

    assert failures and succeeded
