"""Training steps of dense networks with Adam: with parameters passed in and returned, and in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.peers import Peer
from benchmarks.workload import Arrays, Variant, Workload, f32
from benchmarks.workloads.networks import dense, mlp_inputs
from benchmarks.workloads.optimisers import adam

WIDTHS = (784, 512, 512, 10)
DEEP = (64, *(128,) * 11, 10)


def _step(peer: Peer) -> Callable[..., Any]:
    """state = (parameters, first moments, second moments); returns the loss and the new state."""
    xp = peer.xp
    assert peer.value_and_grad
    with_gradient = peer.value_and_grad(
        lambda parameters, x, labels: xp.cross_entropy(dense(xp, parameters, x, xp.relu), labels)
    )

    def step(state: Any, x: Any, labels: Any) -> Any:
        loss, gradients = with_gradient(state[0], x, labels)
        return loss, adam(xp, state, gradients)

    return step


def _inputs(rng: Any, sizes: Any) -> Arrays:
    """Moments as in the middle of a training. The very first step divides every gradient by its own size, and where a
    gradient is nearly zero, that quotient is rounding noise in any library.
    """
    parameters, x, labels = mlp_inputs(rng, sizes)
    first = [1e-3 * f32(rng, *p.shape) for p in parameters]
    second = [1e-6 * (1 + f32(rng, *p.shape) ** 2) for p in parameters]
    return (parameters, first, second), x, labels


def _in_place(inputs: Arrays) -> Variant:
    """The same step on a Module and an Adam of jitgrad; returns the loss."""
    import jitgrad as jg
    from jitgrad import nn, optim
    from jitgrad.jit.decorator import jit

    (parameters, _, _), *data = inputs
    blocks: list[nn.Module] = []
    for w, b in zip(parameters[::2], parameters[1::2], strict=True):
        layer = nn.Linear(*w.shape)
        layer.weight, layer.bias = nn.Parameter(jg.tensor(w.T.copy())), nn.Parameter(jg.tensor(b))
        blocks += [layer, nn.ReLU()]
    model = nn.Sequential(*blocks[:-1])
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    x, labels = map(jg.tensor, data)

    @jit
    def step(x: Any, labels: Any) -> Any:
        optimizer.zero_grad()
        loss = jg.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
        return loss

    return step, (x, labels), lambda loss: [loss.detach().numpy()]


def _torch_in_place(inputs: Arrays) -> Variant:
    """The same step as users of PyTorch write it: compiled forward and backward, fused Adam."""
    import torch
    from torch import nn

    (parameters, _, _), *data = inputs
    blocks: list[nn.Module] = []
    for w, b in zip(parameters[::2], parameters[1::2], strict=True):
        layer = nn.Linear(*w.shape)
        layer.weight, layer.bias = (nn.Parameter(torch.from_numpy(a.copy())) for a in (w.T.copy(), b))
        blocks += [layer, nn.ReLU()]
    model = nn.Sequential(*blocks[:-1])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    x, labels = map(torch.from_numpy, data)
    compiled = torch.compile(lambda x, labels: nn.functional.cross_entropy(model(x), labels), dynamic=False)

    def step() -> Any:
        optimizer.zero_grad()
        loss = compiled(x, labels)
        loss.backward()
        optimizer.step()
        return loss

    return step, (), lambda loss: [loss.detach().numpy()]


VARIANTS = {"jitgrad.module": _in_place, "torch.module": _torch_in_place}


def _mlp(batch: int) -> Workload:
    return Workload(
        f"mlp_step_{batch}",
        f"training step of the 3-layer MLP with Adam, batch {batch}",
        _inputs,
        _step,
        {"widths": WIDTHS, "batch": batch},
        {"widths": (8, 6, 4), "batch": 5},
        carries=True,
        tolerance=1e-3,
        variants=VARIANTS,
        limits="Adam: 2 x 10 MB of state and parameters" if batch < 256 else "matrix products",
    )


WORKLOADS = (
    *(_mlp(batch) for batch in (32, 128, 1024)),
    Workload(
        "deep_mlp_step",
        "training step of a 12-layer MLP with Adam, batch 64",
        _inputs,
        _step,
        {"widths": DEEP, "batch": 64},
        {"widths": (8, 6, 6, 4), "batch": 5},
        carries=True,
        tolerance=1e-3,
        variants=VARIANTS,
        limits="many small operations: the launches",
    ),
)
