"""Programs written for JAX run with their imports changed, eager and compiled, and compute what JAX computes."""

from __future__ import annotations

import re
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jitgrad as jg

PROGRAMS = ["hmc", "kalman", "neural_ode", "convnet"]


def program(name: str, changed: bool) -> types.ModuleType:
    """The program as a module, with ``jax`` in its import lines made ``jitgrad.jax`` if it is to be ``changed``."""
    text = (Path(__file__).parent / f"{name}.py").read_text(encoding="utf-8")
    if changed:
        text = re.sub(r"^import jax$", "import jitgrad.jax as jax", text, flags=re.MULTILINE)
        text = re.sub(r"^(import|from) jax\b", r"\1 jitgrad.jax", text, flags=re.MULTILINE)
    module = types.ModuleType(f"{name}_{'jitgrad' if changed else 'jax'}")
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

    assert np.isfinite(expected).all()
    np.testing.assert_allclose(main(jit).numpy(), expected, rtol=1e-7, atol=1e-9)
    assert [f.cache_info().fallbacks for f in compiled] == [0] * len(compiled)
    assert compiled[0].cache_info().traces <= (2 if name == "neural_ode" else 1)  # whose first arguments share tensors


@pytest.mark.peers
@pytest.mark.parametrize("name", PROGRAMS)
def test_program_computes_what_jax_computes(name: str) -> None:
    jax: Any = pytest.importorskip("jax")

    before = jax.config.jax_enable_x64
    try:
        expected = np.asarray(program(name, changed=False).main(jax.jit))
    finally:
        jax.config.update("jax_enable_x64", before)
    np.testing.assert_allclose(program(name, changed=True).main(eager).numpy(), expected, rtol=1e-6, atol=1e-8)
