"""Histories of gradients that a @jit function reads or leaves, and hooks that run when a gradient is complete."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import AutogradError, GraphFreedError

Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]


def leaf(lib: Any) -> Any:
    return lib.tensor(np.array([1, 2, 3], np.float32), requires_grad=True)


def batches(lib: Any) -> list[Any]:
    return [lib.tensor(np.array([k, 1, 2], np.float32)) for k in range(4)]


def plain(x: Any) -> Any:
    return None if x is None else x.detach().numpy().tolist()


def test_a_gradient_that_is_read_has_its_history() -> None:
    w = leaf(jg)
    (w**3).sum().backward(create_graph=True)
    penalty = jg.jit(lambda: (w.grad * w).sum())
    for _ in range(3):
        (g,) = jg.autograd.grad(penalty(), w, retain_graph=True)
        assert g.tolist() == [9, 36, 81]  # of 3 w**3, not of constant * w
    w.grad = w.grad.detach()
    for _ in range(3):
        assert jg.autograd.grad(penalty(), w)[0].tolist() == [3, 12, 27]
    assert penalty.cache_info().traces == 2


def test_a_history_that_a_gradient_is_left_with_is_not_dropped_silently() -> None:
    w = leaf(jg)

    @jg.jit
    def step(x: Any) -> None:
        w.grad = None
        (w * w * x).sum().backward(create_graph=True)

    for k, x in enumerate(batches(jg)):
        step(x)
        assert w.grad.requires_grad and plain(w.grad) == (2 * np.array([1, 2, 3]) * x.numpy()).tolist()
        if k:
            with pytest.raises(GraphFreedError, match=r"'step' leaves a \.grad f32\[3\] of .*create_graph=True"):
                (w.grad * w).sum().backward()


def stepping_in_backward(lib: Any, wrap: Wrap) -> Any:
    w, found = leaf(lib), []

    def update(p: Any) -> None:
        with lib.no_grad():
            p.sub_(p.grad * 0.5)
        p.grad = None

    handle = w.register_post_accumulate_grad_hook(update)
    w.register_hook(lambda g: g * 2)

    @wrap
    def f(x: Any) -> None:
        (w * w * x).sum().backward()

    for k, x in enumerate(batches(lib)):
        if k == 3:
            handle.remove()
        f(x)
        found.append((plain(w), plain(w.grad)))
    return found, plain(lib.autograd.grad((w * w).sum(), w)[0])


def test_hooks_after_accumulation() -> None:
    eager = stepping_in_backward(jg, lambda f: f)
    assert stepping_in_backward(jg, jg.jit) == eager
    if find_spec("torch") is not None:
        import torch

        assert stepping_in_backward(torch, lambda f: f) == eager
    for x in (jg.ones(3), leaf(jg) * 2):
        with pytest.raises(AutogradError, match=r"only leaves have a \.grad"):
            x.register_post_accumulate_grad_hook(print)
