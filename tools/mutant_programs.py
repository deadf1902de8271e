"""The programs that `tools/mutants.py` runs under the first-call check, with one mistake in the compiler.

    python tools/mutant_programs.py python    # or cpu: the kernels are compiled

Fails if a program fails or if the check finds it wrong. Each program is there for one pass or for
one form of loop; the random programs mix them.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import jitgrad as jg
from jitgrad.testing import random_program

Program = tuple[Callable[..., Any], tuple[tuple[int, ...], ...], str]  # function, shapes, dtype
SEEDS = {"python": range(120), "cpu": range(100, 112)}


def elementwise() -> Iterator[Program]:
    yield lambda x, y: jg.tanh(x * 0.7 + y) * jg.exp(-x * x * 0.5) / (2.5 + y), ((300,), (300,)), "f4"
    yield lambda x, y: (x - y, y - x * 0.25, (x > y) & (y > 0.1), jg.where(x < y, x, -y)), ((7, 33), (33,)), "f8"
    yield lambda x: (jg.floor(x * 10.0).astype(jg.int32) // 3, (x * 50.0).astype(jg.int64) % 7), ((211,),), "f4"
    yield lambda x: (jg.gelu(x), jg.sigmoid(x) ** 2.0, x**3, abs(x) ** 0.5), ((65,),), "f2"
    yield lambda x, y: (x * 3.0).astype(jg.int64) ** abs((y * 3.0).astype(jg.int64)), ((50,), (50,)), "f4"
    yield in_place_of_what_is_read_again, ((5, 300),), "f8"
    yield lambda x, y: jg.maximum(x[:, None], y[None, :]) - x[:, None] * y, ((23,), (19,)), "f4"


def of_integers() -> Iterator[Program]:
    """Integers wrap around, and those beyond 2**53 have no float64."""
    yield lambda x: (x * 1e3).astype(jg.int8).sum(axis=1, dtype=jg.int8), ((5, 90),), "f4"
    yield lambda x: (x * 99.0).astype(jg.int16).prod(axis=0, dtype=jg.int16), ((9, 30),), "f4"
    yield lambda x: ((x * 1e3).astype(jg.int64) * 2**45 + 1).sum(axis=1), ((5, 90),), "f4"
    yield lambda x: ((x * 1e3).astype(jg.int64) * 2**45 + 1).sum(), ((400,),), "f4"
    yield lambda x: ((x * 9.0).astype(jg.int32).max(axis=0), (x * 9.0).astype(jg.int32).min(axis=1)), ((6, 7),), "f4"


def reductions() -> Iterator[Program]:
    yield lambda x: (x.sum(axis=0), x.mean(axis=1), x.max(axis=(0, 1)), (x * x).sum(), x.min(axis=0)), ((37, 41),), "f4"
    yield lambda x: (jg.softmax(x, axis=-1), jg.logsumexp(x, axis=0), x.var(axis=1), x.std()), ((29, 31),), "f8"
    yield lambda x: (x.sum(axis=(0, 2)), (x + 1.5).prod(axis=1), (x > 0.2).any(axis=2), x.argmax(axis=1)), ((5, 6, 7),), "f8"
    yield lambda x: (x.sum(axis=1), x.max(axis=1), (x - x.mean(axis=1, keepdims=True)) ** 2), ((50, 3),), "f4"
    yield lambda x: ((x * 2.0).sum(axis=0), x.mean(), jg.softmax(x, axis=-1)), ((17, 40),), "f2"
    yield lambda x: jg.permute_dims(x, (2, 0, 1)).sum(axis=(1, 2)), ((6, 7, 8),), "f8"
    yield lambda x, y: (x * y, y.sum()), ((30, 200), (200,)), "f4"  # a sum of what is repeated along the rows
    yield lambda x, y: (x * y[:, None], y.sum()), ((30, 200), (30,)), "f4"
    yield lambda x, y: (x * y, y.sum(axis=0), y.sum(axis=1)), ((30, 20, 10), (20, 10)), "f8"
    yield lambda x, y: (x * y[:, :, None], y.sum(axis=1), y.max()), ((30, 20, 10), (30, 20)), "f8"
    yield lambda x: ((x[:, ::2, :7] * 2.0).sum(axis=0), jg.exp(x[:, 1::2, 2:9]).max(axis=0)), ((50, 6, 20),), "f8"
    yield lambda x: (jg.permute_dims(x, (1, 2, 0)) * 2.0).max(axis=0), ((6, 7, 8),), "f8"
    yield lambda x: ((x > 0.2).any(axis=0), jg.any(x), jg.all(x, axis=1)), ((9, 8),), "f2"
    yield lambda x, y: ((x - y.mean()) / (y.std() + 0.1), (x * y).sum(axis=0)), ((300, 4), (300, 4)), "f4"


def movement() -> Iterator[Program]:
    yield lambda x: (x.T * 2.0 + 1.0, x.T @ x, (x.T + x.T).sum(axis=0), x[::-1, 2:9:3] * 3.0), ((31, 12),), "f8"
    yield lambda x: jg.concat([x[1:] - x[:-1], x[:1] * 2.0, jg.flip(x, axis=1)]), ((14, 9),), "f4"
    yield lambda x: jg.permute_dims(x * 2.0, (2, 0, 1)) + jg.permute_dims(x, (2, 0, 1)), ((4, 5, 6),), "f4"
    yield lambda x: (jg.stack([x, x * 2.0, x - 1.0], axis=1).sum(axis=1), jg.roll(x, 3, axis=0)), ((20, 6),), "f8"
    yield lambda x: (x.reshape(6, 20).sum(axis=1), x.reshape(2, 60) * 0.5, jg.broadcast_to(x[:1], (8, 12))), ((10, 12),), "f4"
    yield lambda x: jg.pad(x * 1.5, ((1, 2), (0, 3))) - 0.5, ((8, 8),), "f4"


def products() -> Iterator[Program]:
    yield lambda x, y: (jg.tanh(x @ y) * 0.5, (x @ y).sum(axis=1), x @ y[:, 0]), ((16, 24), (24, 8)), "f4"
    yield lambda x, y: (x @ y, (x * y).sum(axis=0) @ y), ((7, 30, 30), (30, 30)), "f8"
    yield lambda x, y: tuple(jg.sin(x[k] @ y) for k in range(6)), ((6, 5, 12), (12, 9)), "f8"
    yield lambda x, y: sum((jg.sin(x[k] @ y).sum() for k in range(6)), start=x[0] @ y), ((6, 2, 5, 12), (12, 9)), "f8"
    yield lambda x, y: tuple(jg.sin(x[k] @ y[:, 0]) for k in range(6)), ((6, 5, 12), (12, 9)), "f8"
    yield lambda x, y: tuple(x[k] @ y + 1.0 for k in range(6)), ((6, 5, 0), (0, 9)), "f8"
    yield sums_of_products, ((8, 5), (8, 5), (8, 5), (8, 7)), "f8"
    yield lambda x, y: jg.take(x, jg.tensor([3, 1, 1, 0]), axis=0) + jg.cumulative_sum(y, axis=0), ((6, 5), (4, 5)), "f8"


def sums_of_products(x: Any, y: Any, z: Any, d: Any) -> Any:
    """Rows of different arrays, and sums that are results themselves."""
    first = x[:4].T @ d[:4] + y[4:].T @ d[4:]
    second = first + z[2:6].T @ d[2:6]
    return first, second, second + x.T @ d, z[:4].T @ d[:4] + z[4:].T @ d[4:]


def positions() -> Iterator[Program]:
    yield lambda x: (jg.tril(x), x + jg.arange(9), x * jg.arange(9)[:, None], jg.eye(9) - x), ((9, 9),), "f8"
    yield lambda x: jg.one_hot(jg.argmax(x, axis=1), 6) - jg.softmax(x), ((11, 6),), "f4"
    yield jg.value_and_grad(lambda x: jg.cross_entropy(x, jg.tensor([1, 0, 4, 2]))), ((4, 5),), "f8"


def recurrence(x: Any, v: Any) -> Any:
    for k in range(14):
        v = v * 0.9 - 0.01 * (x + jg.sin(x) * (0.5 + 0.1 * k))
        x = x + v
    return x, v


def normalised(x: Any) -> Any:
    for _ in range(3):
        x = (x - x.mean(axis=1, keepdims=True)) / jg.sqrt((x * x).mean(axis=1, keepdims=True) + 0.1)
        x = jg.gelu(x) - x.mean(axis=0) * 0.1
    return x


def rotation(x: Any) -> Any:
    """Short last axes, taken apart element by element."""
    a, b, c = x[:, 0], x[:, 1], x[:, 2]
    y = jg.stack([a * b - c, b * c + a, c - a * 0.5], axis=1)
    return jg.sqrt((y * y).sum(axis=1)), y - y.mean(axis=1, keepdims=True), y[:, ::-1] * x


def in_place(x: Any) -> Any:
    y = x * 1.0
    y[1:] += x[:-1] * 0.5
    y[:, 2] = x[:, 0] - 1.0
    y *= 1.25
    return y, y.sum(axis=0)


def in_place_of_what_is_read_again(x: Any) -> Any:
    x = x * 1.0
    x *= jg.softmax(x, axis=1)
    x -= x.mean(axis=1, keepdims=True) * jg.exp(x - x.max(axis=1, keepdims=True))
    return x


def of_all_forms() -> Iterator[Program]:
    yield recurrence, ((60,), (60,)), "f8"
    yield normalised, ((12, 40),), "f8"
    yield rotation, ((45, 3),), "f8"
    yield in_place, ((11, 6),), "f4"
    yield lambda x: x[1:-1] * 2.0 - x[2:] - x[:-2], ((400,),), "f8"


def gradients() -> Iterator[Program]:
    for makers in (of_all_forms, reductions, products, movement):
        for f, shapes, dtype in makers():
            if dtype != "f2":
                yield jg.value_and_grad(_loss(f), argnums=tuple(range(len(shapes)))), shapes, dtype


def _loss(f: Callable[..., Any]) -> Callable[..., Any]:
    def loss(*xs: Any) -> Any:
        outs = f(*xs)
        outs = outs if isinstance(outs, tuple) else (outs,)
        return sum(((out * out).mean() for out in outs if out.dtype.kind == "f"), start=jg.tensor(0.0))

    return loss


def operands(shapes: tuple[tuple[int, ...], ...], dtype: str) -> list[Any]:
    random = np.random.default_rng(7)
    return [jg.tensor(random.uniform(-1.5, 1.5, shape).astype(dtype)) for shape in shapes]


def large() -> Iterator[Program]:
    """Several blocks of each loop; the thread pool; wide, narrow and transposed rows."""
    yield lambda x, y: (jg.tanh(x) * y + x, (x * y).sum(), x - x.mean(axis=1, keepdims=True)), ((300, 1001), (300, 1001)), "f4"
    yield lambda x: (x.T * 2.0 + 1.0, x.sum(axis=0), x.max(axis=1)), ((2000, 130),), "f4"
    yield lambda x: (jg.softmax(x, axis=1), x.T + 0.0), ((70_000, 3),), "f8"
    yield jg.value_and_grad(lambda x: (jg.sin(x) * x).mean()), ((250_000,),), "f4"


def main() -> None:
    warnings.simplefilter("error")
    backend = sys.argv[1]
    groups = [elementwise, of_integers, reductions, movement, products, positions, of_all_forms, gradients]
    for group in groups if backend == "python" else [*groups, large]:
        for f, shapes, dtype in group():
            jg.jit(f, backend=backend)(*operands(shapes, dtype))
    for seed in SEEDS[backend]:
        program = random_program(seed, 14)
        jg.jit(program.function, backend=backend)(*program.operands())


if __name__ == "__main__":
    main()
