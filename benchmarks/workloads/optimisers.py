"""Adam alone, over one large tensor, tensors of mixed sizes, and thousands of small ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.peers import Peer
from benchmarks.workload import Arrays, Sizes, Variant, Workload, f32

RATE, KEEP_FIRST, KEEP_SECOND, EPS = 1e-3, 0.9, 0.999, 1e-8


def adam(xp: Any, state: Any, gradients: Any) -> Any:
    """The new (parameters, first moments, second moments) after the first step (Kingma and Ba 2015).

    The step count stays 1, so bias corrections are constants, for every library.
    """
    rows = []
    for p, m, v, g in zip(*state, gradients, strict=True):
        m = KEEP_FIRST * m + (1 - KEEP_FIRST) * g
        v = KEEP_SECOND * v + (1 - KEEP_SECOND) * g * g
        root = xp.sqrt(v / (1 - KEEP_SECOND)) + EPS
        rows.append((p - RATE / (1 - KEEP_FIRST) * m / root, m, v))
    return tuple(list(column) for column in zip(*rows, strict=True))


def _adam(peer: Peer) -> Callable[..., Any]:
    return lambda state, gradients: (adam(peer.xp, state, gradients),)


def _inputs(rng: np.random.Generator, sizes: Sizes) -> Arrays:
    counts = sizes["counts"]
    state = ([f32(rng, n) for n in counts], *([np.zeros(n, np.float32) for n in counts] for _ in range(2)))
    return state, [f32(rng, n) for n in counts]


def _in_place(inputs: Arrays) -> Variant:
    """jitgrad's own optimiser, changing parameters in place."""
    import jitgrad as jg
    from jitgrad import optim
    from jitgrad.jit.decorator import jit

    (arrays, _, _), gradients = inputs
    parameters = [jg.tensor(a, requires_grad=True) for a in arrays]
    for p, g in zip(parameters, gradients, strict=True):
        p.grad = jg.tensor(g)
    optimizer = optim.Adam(parameters, lr=RATE)
    step = jit(optimizer.step)
    return step, (), lambda out: [p.detach().numpy() for p in parameters]


def _torch_in_place(inputs: Arrays) -> Variant:
    """torch.optim.Adam(fused=True)."""
    import torch

    (arrays, _, _), gradients = inputs
    parameters = [torch.from_numpy(a.copy()).requires_grad_() for a in arrays]
    for p, g in zip(parameters, gradients, strict=True):
        p.grad = torch.from_numpy(g.copy())
    optimizer = torch.optim.Adam(parameters, lr=RATE, fused=True)
    return optimizer.step, (), lambda out: [p.detach().numpy() for p in parameters]


VARIANTS = {"jitgrad.module": _in_place, "torch.module": _torch_in_place}

# evenly spaced in the logarithm, roughly like the tensors of a convolutional network
MIXED = tuple(int(64 * (1e6 / 64) ** (k / 149)) for k in range(150))


def _workload(name: str, title: str, counts: tuple[int, ...], quick: tuple[int, ...], **more: Any) -> Workload:
    return Workload(
        name,
        title,
        _inputs,
        _adam,
        {"counts": counts},
        {"counts": quick},
        gradients=False,
        carries=True,
        variants=VARIANTS,
        **more,
    )


WORKLOADS = (
    _workload("adam_one", "Adam over one tensor of 1e7", (10_000_000,), (100,), limits="memory: 4 read, 3 written"),
    _workload("adam_mixed", "Adam over 150 tensors of 64 to 1e6", MIXED, (3, 5, 7), limits="memory"),
    _workload(
        "adam_many",
        "Adam over 5,000 tensors of 1,000",
        (1000,) * 5000,
        (5,) * 20,
        slow_peers=("torch.compile", "jax"),
        slow=True,
        limits="5,000 tensors: compiling them takes minutes, and each call collects and checks them in Python",
    ),
)
