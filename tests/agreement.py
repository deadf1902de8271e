"""Runs one piece of code with jitgrad and with torch, and compares values and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg


def leaves(result: Any) -> list[Any]:
    """The tensors of a result, which may be a tuple or a list of tensors."""
    if isinstance(result, (tuple, list)):
        return [x for part in result for x in leaves(part)]
    return [] if result is None else [result]


def run(module: Any, call: Callable[..., Any], arrays: tuple[Any, ...]) -> list[Any]:
    """The values of ``call(module, *tensors)``, and the gradients of its weighted sum by floating operands."""
    xs = [module.tensor(a) for a in arrays]
    learned = [x.requires_grad_() for x, a in zip(xs, arrays) if np.asarray(a).dtype.kind == "f"]
    outs = leaves(call(module, *xs))
    parts = [x for x in outs if getattr(x, "requires_grad", False)]
    if parts:
        total = sum((x * module.tensor(np.cos(np.arange(x.numel()).reshape(x.shape)))).sum() for x in parts)
        total.backward()
    found = [x.detach().numpy() if hasattr(x, "detach") else np.asarray(x) for x in outs]
    return [*found, *(np.zeros(x.shape) if x.grad is None else x.grad.numpy() for x in learned if parts)]


def assert_same_as_torch(call: Callable[..., Any], *arrays: Any) -> None:
    """``call(jitgrad, *xs)`` and ``call(torch, *xs)`` give equal shapes, values and gradients."""
    torch: Any = pytest.importorskip("torch")

    ours, theirs = run(jg, call, arrays), run(torch, call, arrays)

    assert [x.shape for x in ours] == [x.shape for x in theirs]
    for x, y in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(x, y, rtol=3e-8, atol=1e-11)


def assert_compiled_is_eager(call: Callable[..., Any], *arrays: Any, rtol: float, atol: float) -> None:
    """Compare the compiled ``call(jitgrad, *tensors)`` with the eager one; its results are one or several tensors."""

    def run(*xs: Any) -> Any:
        outs = call(jg, *xs)
        return tuple(outs) if isinstance(outs, (list, tuple)) else (outs,)

    xs = [jg.tensor(a) for a in arrays]
    for ours, eager in zip(jg.jit(run, backend="python")(*xs), run(*xs), strict=True):
        np.testing.assert_allclose(ours.numpy(), eager.numpy(), rtol=rtol, atol=atol)
