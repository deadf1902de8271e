"""The gradient of a stencil is computed where it is summed, from the few values that its terms are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.compiler.fusion.cheapest_cut import cheapest_cut
from jitgrad.compiler.passes.border_values import zero_at_border
from jitgrad.core.ir import Graph
from jitgrad.jit.decorator import jit

RNG = np.random.default_rng(0)


def windows(x: Any, width: int, **pad: Any) -> dict[tuple[int, int], Any]:
    h, w = x.shape
    p = jg.pad(x, width, **pad)
    size = range(2 * width + 1)
    return {(i, j): p[i : i + h, j : j + w] for i in size for j in size}


def sobel(x: Any, **pad: Any) -> Any:
    s = windows(x, 1, **pad)
    gx = s[0, 2] + 2 * s[1, 2] + s[2, 2] - s[0, 0] - 2 * s[1, 0] - s[2, 0]
    gy = s[2, 0] + 2 * s[2, 1] + s[2, 2] - s[0, 0] - 2 * s[0, 1] - s[0, 2]
    return jg.sqrt(gx * gx + gy * gy + 1e-3).sum()


def bilateral(x: Any, width: int = 1, **pad: Any) -> Any:
    weights = {at: jg.exp(-((s - x) ** 2) * 3.0) for at, s in windows(x, width, **pad).items()}
    total = sum(weights.values())
    return ((sum(w * s for w, s in zip(weights.values(), windows(x, width, **pad).values(), strict=True)) / total) ** 2).sum()


def graph_after(function: Any, x: Any, stage: str) -> Graph:
    graph = jit(function, check="off").graph(x, stage=stage)
    assert isinstance(graph, Graph)
    return graph


def placed_after(function: Any, x: Any, stage: str = "merge_pads") -> list[str]:
    return [str(n.out.aval) for n in graph_after(function, x, stage).nodes if n.op.name == "place"]


MODES: list[dict[str, Any]] = [
    {},
    {"constant_values": 1.5},
    {"mode": "edge"},
    {"mode": "reflect"},
    {"mode": "symmetric"},
    {"mode": "wrap"},
]


@pytest.mark.numba
@pytest.mark.parametrize("pad", MODES, ids=str)
@pytest.mark.parametrize("shape", [(12, 15), (3, 4)])
@pytest.mark.parametrize("function", [sobel, bilateral])
def test_gradients_of_padded_stencils(function: Any, pad: dict[str, Any], shape: Any, same: Any) -> None:
    x = jg.tensor(RNG.normal(size=shape))
    same(jg.value_and_grad(lambda x: function(x, **pad)), x, rtol=1e-11, atol=1e-11)


def test_terms_that_are_multiples_of_two_arrays_write_two() -> None:
    assert placed_after(jg.grad(sobel), jg.ones((40, 50)), "trace").count("f32[42,52]") == 9
    assert placed_after(jg.grad(sobel), jg.ones((40, 50))) == ["f32[42,52]"] * 3  # the image, and two


def test_terms_of_a_filter_are_computed_from_three_arrays_and_a_mask() -> None:
    x = jg.ones((40, 50))
    assert placed_after(jg.grad(lambda x: bilateral(x, 2)), x, "trace").count("f32[44,54]") > 50
    placed = placed_after(jg.grad(lambda x: bilateral(x, 2)), x)

    assert sum(p.startswith("bool") for p in placed) == 1 and len(placed) <= 5, placed


def test_the_image_and_two_arrays_are_written_beside_the_gradient() -> None:
    x = jg.tensor(RNG.normal(size=(160, 180)))

    assert jit(jg.grad(sobel), check="off").explain(x).bytes_written <= 4.2 * x.numpy().nbytes


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("pad", MODES, ids=str)
def test_borders_that_are_not_finite(bad: float, pad: dict[str, Any], same: Any) -> None:
    """What lies outside does not reach the elements inside: 0 times infinity would be NaN."""

    def product(x: Any, y: Any) -> Any:
        s = windows(x, 1, **pad)
        return sum((s[k] ** 2 * y * (1.0 + k[0] - 2.0 * k[1])).sum() for k in s)

    def guarded(x: Any, y: Any) -> Any:
        s = windows(x, 1, **pad)
        return sum((jg.where(jg.isfinite(s[k]), s[k], 0.0) * y * (1.0 + k[0] + k[1])).sum() for k in s)

    x, y = RNG.normal(size=(7, 9)), RNG.normal(size=(7, 9))
    x[0, 0] = x[6, 4] = x[3, 8] = x[2, 2] = bad
    y[0, 3] = bad
    for function in (product, guarded):
        same(jg.grad(function, argnums=(0, 1)), jg.tensor(x), jg.tensor(y), rtol=1e-11, atol=1e-11)


def test_second_derivatives(same: Any) -> None:
    x = jg.tensor(RNG.normal(size=(6, 7)))
    v = jg.tensor(RNG.normal(size=(6, 7)))
    for function in (sobel, bilateral):
        same(jg.grad(lambda x, f=function: (jg.grad(f)(x) * v).sum()), x, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("shape", [(1, 1), (2, 1), (1, 9), (2, 2)])
def test_windows_larger_than_the_array(shape: Any, same: Any) -> None:
    x = jg.tensor(RNG.normal(size=shape))
    same(jg.value_and_grad(lambda x: bilateral(x, 2)), x, rtol=1e-11, atol=1e-11)
    same(jg.value_and_grad(lambda x: bilateral(x, 2, mode="edge")), x, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0, 0)])
def test_arrays_without_elements(shape: Any, same: Any) -> None:
    x = jg.tensor(np.zeros(shape))
    same(jg.value_and_grad(sobel), x)
    same(jg.value_and_grad(bilateral), x)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_dtypes(dtype: str, same: Any) -> None:
    x = jg.tensor(RNG.normal(size=(9, 8)).astype(dtype))
    tolerance = {"f2": 2e-2, "f4": 1e-5, "f8": 1e-12}[dtype]
    same(jg.value_and_grad(sobel), x, rtol=tolerance, atol=tolerance)
    same(jg.value_and_grad(bilateral), x, rtol=tolerance, atol=tolerance)


def test_views_and_traced_numbers(same: Any) -> None:
    def function(x: Any, a: Any) -> Any:
        s = windows(x[::-1, ::2], 1)
        return sum((jg.tanh(s[k] * a) * (k[0] + 0.5)).sum() + (s[k] * a * a * k[1]).sum() for k in s)

    x, a = jg.tensor(RNG.normal(size=(9, 16))), jg.tensor(0.7)
    same(jg.value_and_grad(function, argnums=(0, 1)), x, a, rtol=1e-11, atol=1e-11)
    same(jg.grad(function), x, jg.tensor(np.inf))


def test_a_large_formula_computes_early_values_again(tune: Callable[..., None], same: Any) -> None:
    tune(max_kernel_nodes=20)
    x = jg.tensor(RNG.normal(size=(10, 11)))
    same(jg.value_and_grad(bilateral), x, rtol=1e-11, atol=1e-11)


def test_large_steps_between_places_stay_apart(same: Any) -> None:
    x = jg.tensor(RNG.normal(size=(40,)))
    same(jg.grad(lambda x: (jg.tanh(x[:10] * x[30:]) * jg.exp(x[15:25])).sum()), x, rtol=1e-12)


@pytest.mark.parametrize("seed", range(40))
def test_random_windows(seed: int, same: Any) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.integers(2, 8, rng.integers(1, 4)))
    before, after = (tuple(int(n) for n in rng.integers(0, 3, len(shape))) for _ in range(2))
    mode = ["constant", "edge", "symmetric", "wrap"][int(rng.integers(4))]
    widths = [b + a + 1 for b, a in zip(before, after, strict=True)]
    picks = [(tuple(int(rng.integers(n)) for n in widths), int(rng.integers(6))) for _ in range(6)]

    def f(u: Any, w: Any) -> Any:
        p = jg.pad(u * w, tuple(zip(before, after, strict=True)), mode=mode)
        total = u * 0.0
        for start, kind in picks:
            s = p[tuple(slice(i, i + n) for i, n in zip(start, shape, strict=True))]
            total = total + [
                s * 2.0, -s, s * w, jg.exp(-(s - u) ** 2), jg.where(s > w, s * u, w), jg.maximum(s, total),
            ][kind]  # fmt: skip
        return (total**2).sum(), total

    u, w = (jg.tensor(rng.normal(size=shape)) for _ in range(2))
    same(jg.value_and_grad(f, argnums=(0, 1), has_aux=True), u, w, rtol=1e-10, atol=1e-10)


# --- the parts ------------------------------------------------------------------------------------------------------


def test_the_cheapest_cut() -> None:
    operands = {"a": ["x", "y"], "b": ["x", "c"], "c": ["y"], "x": [], "y": []}
    for costs, expected in (
        ({"a": 9, "b": 9, "c": 9, "x": 2, "y": 2}, {"x", "y"}),
        ({"a": 2, "b": 1, "c": 9, "x": 2, "y": 2}, {"a", "b"}),
        ({"a": 2, "b": 2, "c": 9, "x": 2, "y": 2}, {"a", "b"}),  # equal: the nearer one
        ({"a": 9, "b": 9, "c": 1, "x": 1, "y": 5}, {"x", "y"}),  # c saves nothing: a needs y too
    ):
        assert set(cheapest_cut(["a", "b"], operands.__getitem__, costs.__getitem__)) == expected


@pytest.mark.parametrize("seed", range(20))
def test_cuts_of_random_graphs_are_the_cheapest(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 9
    operands = {k: sorted({int(i) for i in rng.integers(0, k, 2)}) if k > 2 else [] for k in range(n)}
    costs = [int(c) for c in rng.integers(1, 6, n)]

    def cuts(chosen: set[int], value: int) -> bool:
        return value in chosen or (bool(operands[value]) and all(cuts(chosen, x) for x in operands[value]))

    wanted = [n - 1, n - 2]
    sets = [{k for k in range(n) if bits >> k & 1} for bits in range(1 << n)]
    best = min(sum(costs[k] for k in s) for s in sets if all(cuts(s, w) for w in wanted))
    found = set(cheapest_cut(wanted, operands.__getitem__, costs.__getitem__))

    assert all(cuts(found, w) for w in wanted) and sum(costs[k] for k in found) == best


def test_what_is_zero_where_its_operands_are() -> None:
    def function(x: Any, y: Any) -> Any:
        return (
            x * 2.0 - x, x * y, -x, jg.tanh(x), jg.where(x > 0, y, x), x * jg.exp(x), x / (x + 1.0), jg.where(y > 0, x, x),
            jg.exp(x), x + 1.0, x / x, jg.where(x >= 0, y, x), x + y, jg.where(jg.exp(x) > 1.0, x, 1.0), x * (1.0 / x),
        )  # fmt: skip

    graph = jit(function, check="off").graph(jg.ones((3,)), jg.ones((3,)), stage="trace")
    assert isinstance(graph, Graph)
    zero = zero_at_border(graph.nodes, graph.inputs[:1])
    assert [out in zero for out in graph.outputs] == [True, False, *[True] * 6, *[False] * 7]
    both = zero_at_border(graph.nodes, graph.inputs)
    assert [out in both for out in graph.outputs] == [*[True] * 8, False, False, False, True, True, False, False]
