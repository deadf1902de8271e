"""Programs written for HIPS autograd run with their imports changed, eager and compiled, and compute what it computes."""

from __future__ import annotations

import re
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jitgrad as jg

PROGRAMS = ["gaussian_process", "variational"]


def program(name: str, changed: bool) -> types.ModuleType:
    """The program as a module, with ``autograd`` in its import lines made ``jitgrad.autograd`` if it is to be ``changed``."""
    text = (Path(__file__).parent / f"{name}.py").read_text(encoding="utf-8")
    if changed:
        text = re.sub(r"^(import|from) autograd\b", r"\1 jitgrad.autograd", text, flags=re.MULTILINE)
    module = types.ModuleType(f"{name}_{'jitgrad' if changed else 'autograd'}")
    exec(compile(text, f"{name}.py", "exec", dont_inherit=True), module.__dict__)
    return module


def eager(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_program_is_the_eager_program(name: str) -> None:
    compiled: list[Any] = []

    def jit(function: Callable[..., Any]) -> Any:
        compiled.append(jg.jit(function))
        return compiled[-1]

    main = program(name, changed=True).main
    expected = main(eager).numpy()

    assert np.isfinite(expected).all() and expected[0] > expected[5]
    np.testing.assert_allclose(main(jit).numpy(), expected, rtol=1e-7, atol=1e-9)
    assert [f.cache_info().fallbacks for f in compiled] == [0] * len(compiled)
    assert compiled[0].cache_info().traces <= 2


@pytest.mark.peers
@pytest.mark.parametrize("name", PROGRAMS)
def test_program_computes_what_autograd_computes(name: str) -> None:
    pytest.importorskip("autograd")
    expected = np.asarray(program(name, changed=False).main(eager))
    np.testing.assert_allclose(program(name, changed=True).main(eager).numpy(), expected, rtol=1e-7, atol=1e-9)
