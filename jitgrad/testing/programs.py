"""Random straight-line programs with shared values, several outputs and odd shapes."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from dataclasses import dataclass
from math import log1p, prod, sqrt
from typing import Any

import numpy as np

from jitgrad.core.aval import Shape
from jitgrad.core.tensor import Tensor
from jitgrad.ops import linalg, movement, reduce
from jitgrad.ops.tables import ELEMENTWISE

SIZES = (1, 2, 3, 5, 7, 13, 17, 33)
LARGEST = 4000  # elements of an intermediate value
BOUND = 4.0  # values that may be larger are scaled down, so that no program overflows


@dataclass(frozen=True, slots=True)
class RandomProgram:
    """A callable program with its text and the shapes of its arguments."""

    function: Callable[..., tuple[Tensor, ...]]
    source: str
    shapes: tuple[Shape, ...]
    seed: int

    def __call__(self, *xs: Any) -> tuple[Tensor, ...]:
        return self.function(*xs)

    def __str__(self) -> str:
        return self.source

    def operands(self, dtype: Any = np.float32) -> list[np.ndarray[Any, Any]]:
        """Arguments for it, each within [-1, 1]; the same ones at every call."""
        rng = np.random.default_rng(self.seed)
        return [rng.uniform(-1.0, 1.0, shape).astype(dtype) for shape in self.shapes]


@dataclass(frozen=True, slots=True)
class _Local:
    """A variable of the program: its shape, and a bound on the magnitude of its elements."""

    name: str
    shape: Shape
    bound: float


def random_program(seed: int, size: int = 12) -> RandomProgram:
    """A program of about ``size`` ops over elementwise functions, broadcasts, reductions, products
    and views.

    The same seed and size give the same program. Every value it computes is finite and within a few
    units of 0.
    """
    writer = _Writer(np.random.default_rng([seed, size]), seed)
    for _ in range(size):
        writer.step()
    return writer.finish()


# Templates, with the bound of the result for operands bounded by ``a`` and ``b``.
_UNARY: tuple[tuple[str, Callable[[float], float]], ...] = (
    ("tanh({})", lambda a: 1.0),
    ("sin({})", lambda a: 1.0),
    ("cos({})", lambda a: 1.0),
    ("sigmoid({})", lambda a: 1.0),
    ("erf({})", lambda a: 1.0),
    ("relu({})", lambda a: a),
    ("gelu({})", lambda a: a),
    ("silu({})", lambda a: a),
    ("leaky_relu({}, 0.1)", lambda a: a),
    ("softplus({})", lambda a: a + 1.0),
    ("exp(negative(abs({})))", lambda a: 1.0),
    ("log1p(abs({}))", log1p),
    ("sqrt(add(abs({}), 1.0))", lambda a: sqrt(a + 1.0)),
    ("square({})", lambda a: a * a),
    ("pow({}, 3)", lambda a: a**3),
    ("divide(1.0, add(1.0, square({})))", lambda a: 1.0),
    ("multiply({}, 0.5)", lambda a: 0.5 * a),
    ("subtract(1.0, {})", lambda a: 1.0 + a),
    ("clip({}, -1.0, 1.0)", lambda a: 1.0),
    ("negative({})", lambda a: a),
)
_BINARY: tuple[tuple[str, Callable[[float, float], float]], ...] = (
    ("add({}, {})", lambda a, b: a + b),
    ("subtract({}, {})", lambda a, b: a + b),
    ("multiply({}, {})", lambda a, b: a * b),
    ("maximum({}, {})", max),
    ("minimum({}, {})", max),
    ("logaddexp({}, {})", lambda a, b: max(a, b) + 1.0),
    ("divide({}, add(1.5, square({})))", lambda a, b: a),
    ("where(greater({0}, 0.0), {0}, {1})", max),
    ("where(less({0}, {1}), multiply({0}, {1}), {1})", lambda a, b: max(a * b, b)),
)
_REDUCTIONS: tuple[tuple[str, Callable[[float, int], float]], ...] = (
    ("sum({}, {}, {})", lambda a, n: a * n),
    ("mean({}, {}, {})", lambda a, n: a),
    ("max({}, {}, {})", lambda a, n: a),
    ("min({}, {}, {})", lambda a, n: a),
    ("var({}, {}, {})", lambda a, n: a * a),
    ("logsumexp({}, {}, {})", lambda a, n: a + log1p(n)),
)
_NAMESPACE: dict[str, Any] = {
    **ELEMENTWISE,
    **{name: getattr(reduce, name) for name in ("sum", "mean", "max", "min", "var", "logsumexp", "softmax")},
    **{name: getattr(movement, name) for name in ("reshape", "matrix_transpose", "flip", "expand_dims", "cut")},
    "matmul": linalg.matmul,
}


class _Writer:
    """Writes a program line by line; every new value is a local that later lines may use again."""

    def __init__(self, rng: np.random.Generator, seed: int) -> None:
        self.rng = rng
        self.seed = seed
        n, m = (int(k) for k in rng.choice(SIZES, 2))
        candidates: list[Shape] = [(n, m), (m,), (n, 1), (1, m), (), (2, n, m), (m, n)]
        extra = [candidates[k] for k in rng.permutation(len(candidates))[: int(rng.integers(1, 4))]]
        self.locals = [_Local(f"x{k}", shape, 1.0) for k, shape in enumerate([(n, m), *extra])]
        self.arguments = tuple(self.locals)
        self.lines: list[str] = []

    def step(self) -> None:
        """Write one line of a random kind; a kind without fitting operands becomes a unary line."""
        kinds = (self.unary, self.binary, self.reduction, self.product, self.view)
        kind = kinds[int(self.rng.choice(len(kinds), p=(0.34, 0.36, 0.12, 0.08, 0.10)))]
        if not kind():
            self.unary()

    def pick(self) -> _Local:
        """A value, recent ones more often."""
        age = min(int(self.rng.geometric(0.25)), len(self.locals))
        return self.locals[-age]

    def write(self, text: str, shape: Shape, bound: float) -> bool:
        name = f"t{len(self.lines)}"
        if bound > BOUND:
            text, bound = f"multiply({text}, {1.0 / bound:.3g})", 1.01
        self.lines.append(f"{name} = {text}  # {shape}")
        self.locals.append(_Local(name, shape, bound))
        return True

    def unary(self) -> bool:
        x = self.pick()
        template, bound = _UNARY[int(self.rng.integers(len(_UNARY)))]
        return self.write(template.format(x.name), x.shape, bound(x.bound))

    def binary(self) -> bool:
        x, y = self.pick(), self.pick()
        try:
            shape = np.broadcast_shapes(x.shape, y.shape)
        except ValueError:
            return False
        if prod(shape) > LARGEST:
            return False
        template, bound = _BINARY[int(self.rng.integers(len(_BINARY)))]
        return self.write(template.format(x.name, y.name), shape, bound(x.bound, y.bound))

    def reduction(self) -> bool:
        x = self.pick()
        if not x.shape:
            return False
        axis = int(self.rng.integers(len(x.shape)))
        if self.rng.random() < 0.2:
            return self.write(f"softmax({x.name}, {axis})", x.shape, 1.0)
        keep = bool(self.rng.random() < 0.6)
        template, bound = _REDUCTIONS[int(self.rng.integers(len(_REDUCTIONS)))]
        shape = (*x.shape[:axis], *((1,) if keep else ()), *x.shape[axis + 1 :])
        return self.write(template.format(x.name, axis, keep), shape, bound(x.bound, x.shape[axis]))

    def product(self) -> bool:
        x = self.pick()
        partners = [y for y in self.locals if len(y.shape) == 2 and len(x.shape) == 2 and y.shape[0] == x.shape[1]]
        if not partners:
            if len(x.shape) != 2:
                return False
            shape, bound = (x.shape[0], x.shape[0]), x.bound**2 * x.shape[1]
            return self.write(f"matmul({x.name}, matrix_transpose({x.name}))", shape, bound)
        y = partners[int(self.rng.integers(len(partners)))]
        bound = x.bound * y.bound * x.shape[1]
        return self.write(f"matmul({x.name}, {y.name})", (x.shape[0], y.shape[1]), bound)

    def view(self) -> bool:
        x = self.pick()
        if not x.shape:
            return self.write(f"expand_dims({x.name}, 0)", (1,), x.bound)
        choice, axis = int(self.rng.integers(4)), int(self.rng.integers(len(x.shape)))
        if choice == 0 and len(x.shape) >= 2:
            shape = (*x.shape[:-2], x.shape[-1], x.shape[-2])
            return self.write(f"matrix_transpose({x.name})", shape, x.bound)
        if choice == 1:
            return self.write(f"reshape({x.name}, ({prod(x.shape)},))", (prod(x.shape),), x.bound)
        if choice == 2 and x.shape[axis] > 2:
            shape = (*x.shape[:axis], x.shape[axis] - 1, *x.shape[axis + 1 :])
            return self.write(f"cut({x.name}, {axis}, 1, {x.shape[axis]})", shape, x.bound)
        return self.write(f"flip({x.name}, {axis})", x.shape, x.bound)

    def finish(self) -> RandomProgram:
        """The function: it returns its last value and up to two others."""
        computed = self.locals[len(self.arguments) :]
        others: Any = self.rng.permutation(len(computed) - 1)[: int(self.rng.integers(0, 3))] if len(computed) > 1 else []
        outputs = [computed[int(k)].name for k in sorted(others)] + [computed[-1].name]
        head = f"def program({', '.join(x.name for x in self.arguments)}):"
        signature = f"# seed {self.seed}, shapes {', '.join(str(x.shape) for x in self.arguments)}"
        body = [f"    {line}" for line in self.lines]
        source = "\n".join([signature, head, *body, f"    return ({', '.join(outputs)},)", ""])
        return RandomProgram(_compiled(source, self.seed), source, tuple(x.shape for x in self.arguments), self.seed)


def _compiled(source: str, seed: int) -> Callable[..., tuple[Tensor, ...]]:
    """The function that ``source`` defines; tracebacks through it show its lines."""
    file = f"<random program {seed}, {len(source)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    namespace = dict(_NAMESPACE)
    exec(compile(source, file, "exec"), namespace)
    program: Callable[..., tuple[Tensor, ...]] = namespace["program"]
    return program
