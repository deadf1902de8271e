"""Times a hundred functions, compiled and eager, at three sizes: `python -m benchmarks.survey [part of a name]`.

A jit is made for programs of many ops. These are single ops and short chains, which compiling must not slow down. It
prints those that are slower compiled than eager, slowest first.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

import jitgrad as jg
from benchmarks.measure import until_idle

SIZES = (64, 10_000, 1_000_000)
SECONDS = 0.15  # of timing for each function and size, compiled and eager
ROUNDS = 9
NOISE = 1.05  # smaller ratios are not listed
SHORT = 100  # batches of fewer calls wait until the threads of BLAS are idle

Function = Callable[..., Any]

UNARY = """abs negative sign sqrt rsqrt reciprocal square exp log sin tanh sigmoid erf floor isnan relu leaky_relu elu silu
gelu softplus hardtanh softmax log_softmax logsumexp sum mean prod max var std any argmax norm sort
argsort flip""".split()
BINARY = "add subtract multiply divide pow maximum atan2 less equal".split()
# x and y are [n, n], v is [n], t is [n / 4, 4, n], i are integers below n, k a number
EXPRESSIONS = """x + 1|x * k|x.T|x.T * 1.0|x.T + y|x.reshape(-1)|x.reshape(-1) * 2|x[1:]|x[:, 1:]|x[::2, ::-1]|x[0]|x[:, 0]
x[1:] - x[:-1]|(x.T * y).sum(1)|x.sum(0)|x.sum(1)|x.mean(0)|x.max(0)|x.max(1)|x.argmax(1)|x.var(0)|x.var(1)|t.sum(0)
t.sum(1)|t.sum(2)|t.sum((0, 2))|t.max(1)|x.any(0)|x.prod(1)|jg.cumulative_sum(x, axis=0)|jg.cumulative_sum(x, axis=1)
jg.softmax(x, axis=0)|jg.softmax(x, axis=1)|x[i]|x[:, i]|x[i, i]|jg.take(x, i, axis=1)
jg.take_along_axis(x, x.argmax(1, keepdims=True), 1)|jg.where(x > 0, x, y)|jg.clip(x, -1, 1)|jg.concat([x, y])
jg.concat([x, y], axis=1)|jg.stack([x, y])|jg.split(x, 2)|jg.pad(x, 1)|jg.tile(x, (2, 1))|jg.roll(x, 1, 0)
jg.repeat(v, 3)|jg.flip(x, 0)|jg.diagonal(x)|jg.tril(x)|jg.expand_dims(v, 0) + x|x + v|x * v.reshape(-1, 1)
x.astype(jg.float64)|jg.broadcast_to(v, x.shape)|jg.sort(x, axis=1)|jg.topk(x, 2)|x @ y|x @ v|v @ x|v @ v
jg.outer(v, v)|x.T @ v|x.T @ y|t @ y|t @ t.mT|jg.einsum('ij,ij->i', x, y)|jg.einsum('ij,ij->j', x, y)
jg.einsum('ij,jk->ik', x, y)|jg.einsum('aij,aij->a', t, t)|jg.einsum('ij->ji', x)|jg.einsum('i,j->ij', v, v)
jg.einsum('aij,j->ai', t, v)|jg.einsum('ii->i', x)|jg.linear(x, y, v)|jg.layer_norm(x, (x.shape[1],))
jg.rms_norm(x, (x.shape[1],))|jg.mse_loss(x, y)|jg.cross_entropy(x, i)|jg.embedding(i, x)|jg.one_hot(i, 1000)
jg.zeros_like(x)|x.clone()|x|jg.tanh(x @ y + v)|jg.relu(x)[1:]|jg.exp(x).T|jg.exp(x).sum()|(x, x.T)|x[None]|b @ b
b.mT @ b|b @ b.mT""".replace("\n", "|").split("|")


def operands(size: int) -> dict[str, Any]:
    """Arguments of some ``size`` elements, by the names that expressions use."""
    rng = np.random.default_rng(size)
    n = max(4, int(size**0.5) // 4 * 4)

    def array(*shape: int) -> jg.Tensor:
        return jg.tensor(rng.uniform(0.1, 2.0, shape).astype(np.float32))

    return {
        "x": array(n, n), "y": array(n, n), "v": array(n), "t": array(n // 4, 4, n),
        "b": array(max(1, size // 64), 8, 8), "i": jg.tensor(rng.integers(0, n, n)), "k": 1.5,
    }  # fmt: skip


def functions() -> Iterator[tuple[str, Function, str]]:
    """(name, function, names of its arguments) of all functions."""
    texts = [f"jg.{name}(x)" for name in UNARY] + [f"jg.{name}(x, y)" for name in BINARY] + EXPRESSIONS
    for text in texts:
        code = compile(text, "<survey>", "eval")
        names = [name for name in "xyvtbik" if name in code.co_names]
        yield text, eval(f"lambda {', '.join(names)}: {text}", {"jg": jg}), "".join(names)


def gradient_of(function: Function, arguments: list[Any]) -> Function | None:
    """The gradient of the sum of ``function`` for its first argument; None if it is not differentiable."""

    def loss(*xs: Any) -> Any:
        out = function(*xs)
        return (out * out).sum()

    gradient = jg.grad(loss)
    try:
        gradient(*arguments)
    except Exception:
        return None
    return gradient


def _times(calls: list[Callable[[], Any]]) -> list[float]:
    """Seconds of each of ``calls``, run in turn."""
    repeats = []
    for call in calls:
        start = perf_counter()
        call()
        repeats.append(max(1, int(SECONDS / ROUNDS / max(perf_counter() - start, 1e-7))))
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(ROUNDS):
        for k in random.sample(range(len(calls)), len(calls)):
            if repeats[k] < SHORT:
                until_idle()
                calls[k]()
            start = perf_counter()
            for _ in range(repeats[k]):
                calls[k]()
            times[k].append((perf_counter() - start) / repeats[k])
    return [median(seconds) for seconds in times]


def compare(function: Function, arguments: list[Any]) -> tuple[float, float]:
    """Seconds of (eager, compiled) calls."""
    compiled = jg.jit(function, check="off")
    for _ in range(3):
        compiled(*arguments)
    eager, fused = _times([lambda: function(*arguments), lambda: compiled(*arguments)])
    return eager, fused


def main(chosen: str = "") -> None:
    """Measure functions with ``chosen`` in their name, and print those that are slower compiled."""
    rows = []
    for size in SIZES:
        given = operands(size)
        for name, function, names in functions():
            if chosen not in name:
                continue
            arguments = [given[key] for key in names]
            for what, f in (("", function), ("gradient of ", gradient_of(function, arguments))):
                if f is not None:
                    eager, fused = compare(f, arguments)
                    rows.append((fused / eager, f"{size:>8} {eager * 1e6:10.1f} {fused * 1e6:10.1f} us  {what}{name}"))
    rows.sort(reverse=True)
    slower = [row for row in rows if row[0] > NOISE or chosen]
    print(f"{len(rows)} measured, {len(slower)} listed: compiled / eager, size, eager, compiled")
    for ratio, text in slower:
        print(f"{ratio:6.2f} {text}")


if __name__ == "__main__":
    main(*sys.argv[1:])
