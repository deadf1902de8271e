"""What happens after an alarm: the wrong kernel alone is replaced, a short warning, and a small script."""

from __future__ import annotations

import re
import runpy
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import MismatchWarning
from jitgrad.core.ir import Graph
from jitgrad.jit import mismatch_report
from jitgrad.jit.decorator import JitFunction, jit
from jitgrad.jit.isolate import find_wrong_kernels
from jitgrad.runtime import program_op
from tests.wrong_kernels import wrong_functions


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JITGRAD_CACHE_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def wrong_tanh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    yield from wrong_functions(monkeypatch, {"tanh": "sin"})


def layers(x: Any, w: Any) -> Any:
    h = jg.exp(-x * x) @ w
    h = jg.tanh(h) + h * 0.1
    return jg.sigmoid(h @ w).sum(axis=1)


def operands(rows: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    return random.standard_normal((rows, 20)).astype("f4"), random.standard_normal((20, 20)).astype("f4")


def message_of(f: Callable[..., Any], *args: Any) -> str:
    with pytest.warns(MismatchWarning) as caught:
        f(*args)
    assert caught[0].filename == __file__
    return str(caught[0].message)


def script_of(message: str) -> Path:
    found = re.search(r"alone: (\S+\.py)$", message)
    assert found is not None
    return Path(found[1])


@pytest.mark.usefixtures("wrong_tanh")
def test_the_wrong_kernel_alone_runs_op_by_op() -> None:
    f = jit(layers)
    args = operands(30)

    message = message_of(f, *args)

    steps = [(s.kind, s.name) for s in f.explain(*args).steps]
    assert [name for kind, name in steps if kind != "fused"] == ["matmul", "group", "matmul"]
    line = layers.__code__.co_firstlineno + 2
    assert f"{__file__}:{line} (tanh multiply add)" in message
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = f(*args).numpy()
    np.testing.assert_allclose(again, layers(*map(jg.tensor, args)).numpy(), rtol=1e-5)


@pytest.mark.usefixtures("wrong_tanh")
def test_the_warning_is_short_and_the_script_small_however_large_the_program() -> None:
    def many(x: Any) -> Any:
        return [jg.tanh(jg.cumulative_sum(x * (k * 1e-3), axis=0)) for k in range(1, 30)]

    message = message_of(jit(many), np.random.default_rng(0).standard_normal(100_000).astype("f4"))

    assert len(message.splitlines()) <= 10
    path = script_of(message)
    assert path.stat().st_size + path.with_suffix(".npz").stat().st_size <= 1_000_000


@pytest.mark.usefixtures("wrong_tanh")
@pytest.mark.parametrize("rows", [5, 3000])
def test_the_script_shows_the_difference_alone(rows: int, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    path = script_of(message_of(jit(layers), *operands(rows)))
    monkeypatch.setattr(sys, "argv", [str(path)])

    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(path), run_name="__main__")

    assert ended.value.code == 1
    assert capsys.readouterr().out.count("WRONG") == 1


@pytest.mark.usefixtures("wrong_tanh")
def test_old_scripts_are_removed(monkeypatch: pytest.MonkeyPatch, own_cache: Path) -> None:
    monkeypatch.setattr(mismatch_report, "MOST_SCRIPTS", 2)
    for k in range(4):
        last = message_of(jit(lambda x, k=float(k): jg.tanh(x) + k), np.ones(3, "f4"))

    kept = sorted(own_cache.rglob("jitgrad_repro_*"))
    assert len(kept) == 4
    assert script_of(last) in kept


@pytest.mark.usefixtures("wrong_tanh")
def test_a_folder_that_cannot_be_written_costs_the_script_only(own_cache: Path) -> None:
    (own_cache / "repros").write_text("", encoding="utf-8")

    with pytest.warns(MismatchWarning) as caught:
        jit(lambda x: jg.tanh(x))(np.ones(3, "f4"))

    assert ["no script" in str(w.message) for w in caught] == [True, False]


@pytest.mark.parametrize("wrong", [{0}, {5}, {2, 3}, {0, 6}, {1, 2, 5}, set(range(7))])
def test_bisection_finds_exactly_the_wrong_kernels(wrong: set[int]) -> None:
    def seven(x: Any) -> Any:
        for k in range(7):
            x = jg.sort(x * float(k + 2))
        return x

    executable = jit(seven, backend="python").lookup(np.ones(4))
    tried: list[frozenset[int]] = []

    class Tried:
        def with_unfused(self, count: Any, unfused: frozenset[int]) -> frozenset[int]:
            tried.append(unfused)
            return unfused

        program = executable.program

    found = find_wrong_kernels(Tried(), lambda unfused: wrong <= unfused)  # type: ignore[arg-type]

    assert set(found or ()) == wrong
    assert len(tried) <= 16


def test_a_wrong_pass_runs_the_whole_call_eagerly(monkeypatch: pytest.MonkeyPatch) -> None:
    right = program_op.run_passes

    def wrong(graph: Graph, *rest: Any) -> Graph:
        swapped = Graph(graph.name, graph.inputs, graph.nodes, (graph.outputs[1], graph.outputs[0]))
        return right(swapped, *rest)

    monkeypatch.setattr(program_op, "run_passes", wrong)
    f: JitFunction = jit(lambda x: (x + 1.0, x * 2.0))

    message = message_of(f, np.zeros(3))

    assert "No kernel is at fault" in message
    assert f"{__file__}:" in message
    assert [r.tolist() for r in f(np.zeros(3))] == [[1.0] * 3, [0.0] * 3]
    assert f.cache_info().fallbacks == 1
