"""Groups that are made by renaming earlier ones are those that planning would give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.compiler.fusion import fuser, iterations, known_groups
from jitgrad.compiler.fusion.group import Group
from jitgrad.compiler.fusion.known_groups import KnownGroups
from jitgrad.testing import random_program

TURNS = 6


@pytest.fixture
def renamed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Compares each group with a planned one; the kinds of those that were made without planning."""
    kinds: list[str] = []

    def compare(kind: str, planned: Callable[..., Any]) -> None:
        original = getattr(KnownGroups, kind)

        def compared(self: KnownGroups, *operands: Any) -> Any:
            known = len(self._forms)
            found = original(self, *operands)
            if len(self._forms) == known:
                kinds.append(kind)
            rest = () if kind == "single" else (self.tuning,)
            assert shown(found) == shown(planned(*operands, self.definitions, *rest))
            return found

        monkeypatch.setattr(KnownGroups, kind, compared)

    for kind in ("single", "extended", "merge"):
        compare(kind, getattr(known_groups, kind))
    return kinds


def shown(group: Group | str | None) -> Any:
    """All that a group has, or the reason that there is none."""
    if not isinstance(group, Group):
        return group
    known = {*group.computed, *group.external}
    permuted = None if group.permuted is None else group.permuted & known
    maps = dict(group.axis_maps), dict(group.computed), list(group.external.items())
    return group.sizes, group.nodes, maps, group.schedule, permuted


def repeated(seed: int) -> tuple[Callable[..., Any], list[jg.Tensor]]:
    """The turns of a loop around a random program, and its operands."""
    program = random_program(seed, 10)

    def loop(*xs: Any) -> Any:
        total: Any = 0.0
        for _ in range(TURNS):
            total = total + sum(out.mean() for out in program(*xs))
            xs = tuple(jg.tanh(x + 0.1 * total) for x in xs)
        return total

    return loop, [jg.tensor(x) for x in program.operands(np.float64)]


@pytest.mark.parametrize("seed", range(12))
def test_groups_are_those_that_planning_gives(seed: int, renamed: list[str]) -> None:
    loop, operands = repeated(seed)
    derived = jg.value_and_grad(loop, argnums=tuple(range(len(operands))))
    jg.jit(derived, check="off", backend="python").lookup(*operands)

    assert len(renamed) > TURNS


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 5, 6])
def test_loops_of_random_programs(seed: int, same: Any, tune: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where kernels are small, and the start of a long loop is grouped first."""
    tune(max_kernel_nodes=12)
    for module in (fuser, iterations):
        monkeypatch.setattr(module, "LONG_LOOP", 3)
    loop, operands = repeated(seed)
    same(jg.value_and_grad(loop, argnums=tuple(range(len(operands)))), *operands, rtol=1e-9, atol=1e-9)


def test_most_turns_of_a_long_loop_need_no_planning(renamed: list[str]) -> None:
    def walk(x: Any) -> Any:
        for _ in range(100):
            x = jg.sin(x) + 0.1 * x.mean()
        return x.sum()

    before = len(renamed)
    jg.jit(jg.grad(walk), check="off", backend="python").graph(jg.ones(5), stage="fuse")
    assert len(renamed) - before > 500
