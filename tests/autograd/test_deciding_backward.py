"""Backward functions of custom_vjp that decide by values, such as a loop until it converges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import AutogradError


def babylonian_root() -> Any:
    """A square root, whose forward and backward functions are loops until they converge."""

    def until_it_stays(step: Callable[[Any], Any], start: Any) -> Any:
        moves = lambda s: jg.abs(s[0] - s[1]).max() > 1e-10  # noqa: E731
        return jg.lax.while_loop(moves, lambda s: (s[1], step(s[1])), (start, step(start)))[1]

    def root(a: Any) -> Any:
        return until_it_stays(lambda x: 0.5 * (x + a / x), a * 0.0 + 1.0)

    def fwd(a: Any) -> Any:
        x = root(a)
        return x, (a, x)

    def bwd(read: Any, g: Any) -> Any:
        a, x = read
        slope = jg.vjp(lambda x: 0.7 * x + 0.15 * (x + a / x), x)[1]  # of a slower iteration, which takes turns
        adjoint = until_it_stays(lambda u: g + slope(u)[0], g)
        return (0.15 * adjoint / x,)

    function = jg.custom_vjp(root)
    function.defvjp(fwd, bwd)
    return function


def test_a_backward_loop_until_it_converges_runs_where_the_gradient_is_taken() -> None:
    root, a = babylonian_root(), jg.tensor([2.0, 9.0], dtype=jg.float64)
    expected = 0.5 / np.sqrt([2.0, 9.0])

    gradient = jg.jit(jg.grad(lambda a: root(a).sum()), backend="python")
    np.testing.assert_allclose(gradient(a).numpy(), expected, rtol=1e-9)
    np.testing.assert_allclose(gradient(a * 4.0).numpy(), expected / 2.0, rtol=1e-9)  # other numbers of turns
    np.testing.assert_allclose(jg.vmap(jg.grad(root))(a).numpy(), expected, rtol=1e-9)


def test_a_backward_loop_until_it_converges_is_refused_where_only_the_result_was_compiled() -> None:
    root, a = babylonian_root(), jg.tensor([2.0, 9.0], dtype=jg.float64)

    compiled = jg.jit(root, backend="python")
    np.testing.assert_allclose(compiled(a).numpy(), np.sqrt([2.0, 9.0]), rtol=1e-12)
    with pytest.raises(AutogradError, match=r"decides by values.*jit\(grad\(f\)\) in place of grad\(jit\(f\)\)"):
        jg.grad(lambda a: compiled(a).sum())(a)
