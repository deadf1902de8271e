"""Random functions that change state, arguments and views: compiled equals eager; the seed names the function.

`python tools/random_programs.py 10000` runs many more.
"""

from __future__ import annotations

from functools import partial

import pytest

import jitgrad as jg
from jitgrad.testing.gradient_programs import GradientStateProgram, GradientWriter
from jitgrad.testing.state_programs import SHAPES, StateProgram, Writer

REFUSED = ("refused: ", "error: ")


@pytest.mark.parametrize("kind", [StateProgram, GradientStateProgram])
@pytest.mark.parametrize("seed", range(200))
def test_compiled_equals_eager(seed: int, kind: type[StateProgram], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", "python")
    program = kind(seed, partial(jg.jit, check="off"), {"jg": jg})

    difference = program.difference()
    if difference.startswith(REFUSED):
        pytest.skip(difference)
    assert not difference, f"{difference}\n{program.source}"


def test_programs_are_varied() -> None:
    writers = [Writer(seed) for seed in range(300)]
    text = "\n".join(writer.source() for writer in writers)

    assert {writer.shape for writer in writers} == {*SHAPES}
    parts = ("inner(", "S.buf[", "S.gen.", "d.items()", ".mT", "[::-1]", ".backward()", "S.log", ".copy_(", "jg.take(", "[0] +=")
    for part in parts:
        assert part in text, part


def test_gradient_programs_are_varied() -> None:
    text = "\n".join(GradientWriter(seed).source() for seed in range(100))

    parts = (".grad = None", ".grad, S.", ".grad.mul_(", "detach_()", "retain_grad()", "requires_grad_()", ".grad * 1.5")
    for part in parts:
        assert part in text, part
