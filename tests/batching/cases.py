"""Operands of one example for every op of the registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import jitgrad.scipy.stats  # noqa: F401  # defines ops
from jitgrad.core.op import REGISTRY, OpDef
from jitgrad.testing.samples import DOMAINS, sample_operands

Operands = list[np.ndarray[Any, Any]]


@dataclass(frozen=True)
class Case:
    """An op, a function that draws operands for one example, and attributes; the first operands may be one value's parts."""

    op: OpDef
    draw: Callable[[np.random.Generator], Operands]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""
    parts: int = 1  # how many of the first operands are mapped together

    def __str__(self) -> str:
        return f"{self.op}{self.label and '-' + self.label}"


def real(*shape: int) -> Callable[[np.random.Generator], Any]:
    return lambda rng: rng.normal(0.0, 1.2, shape)


def index(n: int, *shape: int) -> Callable[[np.random.Generator], Any]:
    return lambda rng: rng.integers(-n, n, shape)


def whole_index(n: int, *shape: int) -> Callable[[np.random.Generator], Any]:
    return lambda rng: rng.integers(0, n, shape)


def ordered(n: int) -> Callable[[np.random.Generator], Any]:
    return lambda rng: np.sort(rng.normal(0.0, 1.2, n))


def positive(rng: np.random.Generator) -> Any:
    return rng.uniform(0.3, 3.0, (2, 3))


def probability(rng: np.random.Generator) -> Any:
    return rng.uniform(0.05, 0.95, (2, 3))


def case(name: str, *draws: Any, label: str = "", **attrs: Any) -> Case:
    return Case(REGISTRY[name], lambda rng: [np.asarray(draw(rng)) for draw in draws], attrs, label)


def factored(*right: int) -> Callable[[np.random.Generator], Operands]:
    """A matrix, its factors, and right sides of shape ``right`` if one is given."""

    def draw(rng: np.random.Generator) -> Operands:
        matrix = DOMAINS["invertible"](rng, ())
        lu, pivots = REGISTRY["lu_factors"].eager(matrix)
        return [matrix, lu, pivots, *([real(*right)(rng)] if right else [])]

    return draw


F8 = np.dtype(np.float64)
# each op without a domain, and forms of others that have a rule of their own
SPECIAL = [
    case("place", real(3, 4), shape=(6, 8), index=((0, 1, 3), (7, -2, 4))),
    case("full", real(), shape=(2, 3), dtype=F8),
    case("full", real(), label="number", shape=(), dtype=np.dtype(np.float32)),
    case("take", real(3, 4, 2), index(4, 2, 2), axis=1),
    case("take", real(3, 4), index(3), label="number", axis=0),
    case("take", real(3), index(3, 5), label="vector", axis=0),
    case("gather", real(3, 4), whole_index(4, 3, 2), axis=1),
    case("scatter_add", real(3, 4), whole_index(3, 2, 4), real(2, 4), axis=0),
    case("scatter_extreme", real(3, 4), whole_index(4, 3, 2), real(3, 2), axis=1, largest=False),
    case("scatter_product", real(3, 4), whole_index(4, 3, 2), real(3, 2), axis=1),
    case("index_add", real(3, 4, 2), index(4, 5), real(3, 5, 2), axis=1),
    case("index_get", real(3, 4, 5), index(4, 2), axes=(1,)),
    case("index_get", real(3, 4, 5), index(4, 2, 1), index(5, 3), label="neighbours", axes=(1, 2)),
    case("index_get", real(3, 4, 5), index(3, 2), index(5, 2), label="apart", axes=(0, 2)),
    case("index_get", real(3, 4, 5), index(3), index(4), index(5, 2), label="all", axes=(0, 1, 2)),
    case("index_put", real(3, 4, 5), real(3, 2, 5), index(4, 2), axes=(1,)),
    case("index_put", real(3, 4, 5), real(2, 4), index(3, 2), index(5, 2), label="apart", axes=(0, 2)),
    case("index_put_add", real(3, 4, 5), real(3, 2, 3), index(4, 2, 1), index(5, 3), axes=(1, 2)),
    case("index_put_add", real(3, 4, 5), real(2, 4), index(3, 2), index(5, 2), label="apart", axes=(0, 2)),
    case("put_slice", real(3, 4), real(2, 2), index=((2, -1, 2), (0, 2, 2))),
    case("searchsorted", ordered(6), real(2, 3), side="left"),
    case("unfold", real(2, 5, 4), kernel=(2, 2), stride=(1, 2), dilation=(2, 1)),
    case("fold", real(2, 2, 2, 3, 2), shape=(5, 4), kernel=(2, 2), stride=(1, 2), dilation=(2, 1)),
    case("exponent", real(3, 2)),
    case("gcd", whole_index(9, 3, 1), whole_index(9, 4)),
    case("check_classes", whole_index(9, 3), count=100),
    *[case(name, positive, positive) for name in ("gammainc", "gammaincc", "zeta")],
    *[case(name, positive, positive, probability) for name in ("betainc", "betaincc")],
    case("student_cdf", real(2, 3), positive),
    *[case(f"{name}_quantile", probability, positive) for name in ("student", "gamma")],
    case("beta_quantile", probability, positive, positive),
    *[
        case("matmul", real(*x), real(*y), label=f"{len(x)}x{len(y)}")
        for x, y in (
            ((3,), (3,)), ((3,), (3, 2)), ((4, 3), (3,)), ((3,), (5, 3, 2)), ((5, 4, 3), (3,)), ((5, 4, 3), (3, 2)),
            ((4, 3), (5, 3, 2)), ((5, 1, 4, 3), (2, 3, 2)), ((4, 1), (1, 2)),
        )
    ],
    case("solve", lambda rng: DOMAINS["invertible"](rng, ()), real(3, 2)),
    case("solve", lambda rng: DOMAINS["invertible"](rng, ()), real(2, 3, 2), label="batch"),
    case("lu_factors", lambda rng: DOMAINS["invertible"](rng, ())),
    case("reflections", real(3, 2)),
    case("row_order", lambda rng: rng.integers(3, 5, 3), rows=4),
    case("failing_minor", lambda rng: rng.normal(size=(3, 3)) + np.eye(3)),
    Case(REGISTRY["solve_by_factors"], factored(3, 2), {"transposed": False}, parts=3),
    Case(REGISTRY["solve_by_factors"], factored(2, 3, 2), {"transposed": True}, "batch", parts=3),
    Case(REGISTRY["slogdet_by_factors"], factored(), parts=3),
    case("concat", real(2, 3), real(2, 1), real(2, 2), axis=1),
    case("broadcast_to", real(3), label="more_axes", shape=(2, 2, 3)),
    case("broadcast_to", real(), label="number", shape=(2,)),
    case("reshape", real(), label="number", shape=(1, 1)),
    case("squeeze", real(2, 1, 3, 1), label="axes", axis=(1, 3)),
    case("add", real(3, 1), real(4), label="ranks"),
    case("where", lambda rng: rng.integers(0, 2, ()).astype(bool), real(3, 1), real(4), label="ranks"),
    case("updated", real(3), real(3)),
    case("hurwitz_zeta", lambda rng: rng.uniform(1.2, 4.0, (2, 3)), order=2.0),
    case("sum", real(2, 3, 4), label="axes", axis=(0, 2)),
    case("sum", real(2, 3), label="no_axes", axis=()),
    case("max", real(2, 3), label="all", axis=(0, 1)),
    case("cumulative_sum", real(2, 3), label="last", axis=1, reverse=False),
    case("argtopk", real(5), label="line", axis=0, count=3),
]  # fmt: skip

_LISTED = {c.op.name for c in SPECIAL if not c.label}
ALL = [
    *[
        Case(op, lambda rng, op=op: sample_operands(op, rng), op.sample_attrs)
        for op in REGISTRY.values()
        if op.name not in _LISTED and op.operands and op.domain and set(op.domain) <= set(DOMAINS)
    ],
    *SPECIAL,
]
