"""Which call makes the first-call check: the first that uses a program and returns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import jitgrad as jg
from jitgrad.core.errors import IndexingError, MismatchWarning
from jitgrad.core.op import REGISTRY
from jitgrad.jit.decorator import jit
from jitgrad.runtime import program_op


def planted(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """Programs on the python backend compute ``sin`` where the function says ``tanh``."""
    monkeypatch.setenv("JITGRAD_CACHE_DIR", str(tmp_path))
    right = program_op.run_passes

    def wrong(graph: Any, *rest: Any) -> Any:
        nodes = [replace(n, op=REGISTRY["sin"]) if n.op.name == "tanh" else n for n in graph.nodes]
        return right(replace(graph, nodes=tuple(nodes)), *rest)

    monkeypatch.setattr(program_op, "run_passes", wrong)


@pytest.mark.parametrize("method", ["compile", "explain", "kernels"])
def test_a_program_that_was_compiled_before_its_first_call_is_checked(
    method: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    planted(monkeypatch, tmp_path)
    f, x = jit(lambda x: jg.tanh(x) * 3.0, backend="python"), jg.ones(4)
    getattr(f, method)(x)

    with pytest.warns(MismatchWarning):
        assert f(x).tolist() == f.eager(x).tolist()


def test_a_first_call_that_raises_leaves_the_check_to_the_next(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    planted(monkeypatch, tmp_path)
    f = jit(lambda x, k: jg.tanh(x) * jg.one_hot(k, 3), backend="python")
    x = jg.ones(4, 3)
    with pytest.raises(IndexingError, match="one_hot"):
        f(x, jg.tensor([0, 1, 2, 3]))

    with pytest.warns(MismatchWarning):
        f(x, jg.tensor([0, 1, 2, 0]))


def test_a_program_from_the_background_is_checked(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    planted(monkeypatch, tmp_path)
    f, x = jit(lambda x: jg.tanh(x) * 3.0, backend="python", background=True), jg.ones(4)
    f(x)
    for future in f._pending._futures.values():
        future.result(60)

    with pytest.warns(MismatchWarning):
        assert f(x).tolist() == f.eager(x).tolist()
