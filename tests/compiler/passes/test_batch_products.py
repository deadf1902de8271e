"""Which matrix products are batched, with the same results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.jit.decorator import JitFunction, jit
from jitgrad.runtime.program import Program

CLOSE = {"rtol": 2e-4, "atol": 2e-5}


def tensor(*shape: int, seed: int = 0, dtype: Any = np.float32) -> jg.Tensor:
    return jg.tensor(np.random.default_rng([seed, *shape]).uniform(-1.0, 1.0, shape).astype(dtype))


def program_of(f: Any, *args: Any) -> Program:
    function = f if isinstance(f, JitFunction) else jit(f, check="off")
    return function.lookup(*args).program  # type: ignore[no-any-return]


def products(program: Program) -> list[tuple[int, ...]]:
    """(rows, what is summed over, columns) of every product."""
    found = []
    for step in program.plan.steps:
        if step.node.op.name == "matmul":
            (m, k), n = step.reads[0].aval.shape, step.reads[1].aval.shape[1]
            found.append((m, k, n))
    return found


def words(program: Program) -> list[str]:
    return [getattr(s, "op", s.node.op).name for s in program.plan.steps]


def unrolled(x: Any, w: Any, u: Any, b: Any) -> Any:
    """A plain recurrent network over the rows of ``x``; the sum of squares of its last state."""
    h = x[0] * 0.0
    for t in range(x.shape[0]):
        h = jg.tanh(x[t] @ w + h @ u + b)
    return (h * h).sum()


NETWORK = tensor(6, 3, 4), tensor(4, 4, seed=1), tensor(4, 4, seed=2), tensor(4, seed=3)


def test_products_of_neighbouring_slices_are_one(same: Any) -> None:
    def f(x: Any, w: Any) -> Any:
        return [jg.tanh(x[t] @ w) for t in range(5)]

    x, w = tensor(5, 3, 4), tensor(4, 6)
    same(f, x, w, **CLOSE)

    assert products(program_of(f, x, w)) == [(15, 4, 6)]


def test_rows_of_a_matrix_are_slices_too(same: Any) -> None:
    def f(x: Any, w: Any) -> Any:
        return jg.tanh(x[:2] @ w), jg.tanh(x[2:7] @ w)

    x, w = tensor(9, 4), tensor(4, 6)
    same(f, x, w, **CLOSE)

    assert products(program_of(f, x, w)) == [(7, 4, 6)]


def test_slices_with_gaps_or_other_columns_stay_apart(same: Any) -> None:
    def gaps(x: Any, w: Any) -> Any:
        return [jg.tanh(x[t] @ w) for t in (0, 2, 4)]

    def columns(x: Any, w: Any) -> Any:
        return jg.tanh(x[0, :, :4] @ w), jg.tanh(x[0, :, 2:] @ w)

    def transposed(x: Any, w: Any) -> Any:
        return jg.tanh(x[0].T @ w), jg.tanh(x[1].T @ w)

    def flipped(x: Any, w: Any) -> Any:
        return jg.tanh(x[0, ::-1] @ w), jg.tanh(x[1, ::-1] @ w)

    for f, x, w in (
        (gaps, tensor(5, 3, 4), tensor(4, 6)),
        (columns, tensor(2, 3, 6), tensor(4, 5)),
        (transposed, tensor(2, 4, 3), tensor(4, 5)),
        (flipped, tensor(2, 3, 4), tensor(4, 5)),
    ):
        same(f, x, w, **CLOSE)
        assert len(products(program_of(f, x, w))) > 1


def test_other_right_operands_stay_apart(same: Any) -> None:
    def f(x: Any, w: Any) -> Any:
        return [jg.tanh(x[t] @ w[t]) for t in range(3)]

    x, w = tensor(3, 3, 4), tensor(3, 4, 6)
    same(f, x, w, **CLOSE)

    assert len(products(program_of(f, x, w))) == 3


def test_a_run_of_slices_between_others(same: Any) -> None:
    def f(x: Any, w: Any) -> Any:
        return [jg.tanh(x[t] @ w) for t in (3, 1, 2, 5)]

    x, w = tensor(7, 3, 4), tensor(4, 6)
    same(f, x, w, **CLOSE)

    assert sorted(products(program_of(f, x, w))) == [(3, 4, 6), (9, 4, 6)]


def test_products_that_wait_for_each_other_stay_apart(same: Any) -> None:
    def f(x: Any, w: Any) -> Any:
        h = x[0]
        for _ in range(4):
            h = jg.tanh(h @ w)
        return h

    x, w = tensor(2, 3, 4), tensor(4, 4)
    same(f, x, w, **CLOSE)

    assert len(products(program_of(f, x, w))) == 4


def test_an_unrolled_loop_has_one_product_per_weight_and_gradient(same: Any) -> None:
    f = jg.value_and_grad(unrolled, argnums=(1, 2, 3))
    same(f, *NETWORK, **CLOSE)

    found = products(program_of(f, *NETWORK))
    assert found.count((18, 4, 4)) == 1  # the inputs of all steps
    assert found.count((4, 18, 4)) == 2  # the gradients of both weights
    assert len(found) == 3 + 6 + 5  # and the states, forward and backward (the first state has no gradient)


def test_what_is_summed_over_is_written_to_its_place() -> None:
    program = program_of(jg.value_and_grad(unrolled, argnums=(1, 2, 3)), *NETWORK)

    assert "copy" not in words(program)
    assert "insert_slices" not in words(program)


@pytest.mark.numba
def test_an_unrolled_loop_runs_as_native_code_alone(same: Any) -> None:
    f = same(jg.value_and_grad(unrolled, argnums=(1, 2, 3)), *NETWORK, **CLOSE)

    assert len(f._fast_calls) == 1


def test_the_gradient_of_a_loop_through_its_inputs(same: Any) -> None:
    same(jg.value_and_grad(unrolled, argnums=(0, 1, 2, 3)), *NETWORK, **CLOSE)


def test_the_tape_outside(same: Any) -> None:
    """Forward and backward are two programs, and the states come to the second one as arrays of their own."""
    x, w, u, b = (jg.tensor(t.numpy(), requires_grad=True) for t in NETWORK)
    f = jit(unrolled)
    for _ in range(3):
        for p in (x, w, u, b):
            p.grad = None
        f(x, w, u, b).backward()
    found = [p.grad.numpy() for p in (x, w, u, b)]
    for p in (x, w, u, b):
        p.grad = None
    unrolled(x, w, u, b).backward()
    for p, g in zip((x, w, u, b), found, strict=True):
        np.testing.assert_allclose(g, p.grad.numpy(), **CLOSE)


def test_a_part_that_is_a_result_keeps_its_own_memory(same: Any) -> None:
    """The states are results too: they cannot lie in one array with the others."""

    def f(x: Any, w: Any, u: Any) -> Any:
        states = []

        def loss(w: Any, u: Any) -> Any:
            h = x[0] * 0.0
            for t in range(4):
                h = jg.tanh(x[t] @ w + h @ u)
                states.append(h)
            return (h * h).sum()

        return jg.grad(loss, argnums=(0, 1))(w, u)

    same(f, *NETWORK[:3], **CLOSE)


def test_one_product_in_a_sum_twice(same: Any) -> None:
    """``p + p``, and a sum whose products share a factor."""

    def f(a: Any, d: Any) -> Any:
        a, d = jg.tanh(a), jg.tanh(d)
        p = a[0].T @ d[0]
        return p + p + a[1].T @ d[0] + a[1].T @ d[1] + 1.0

    same(f, tensor(2, 3, 4), tensor(2, 3, 5), **CLOSE)


def test_a_sum_of_products_with_other_terms(same: Any) -> None:
    def f(x: Any, w: Any, d: Any) -> Any:
        terms = [jg.tanh(w * t).T @ jg.sin(d * t) for t in range(1, 5)]
        return terms[0] + x + (terms[1] + terms[2]) + terms[3] * 2.0

    x, w, d = tensor(4, 5), tensor(3, 4), tensor(3, 5)
    same(f, x, w, d, **CLOSE)

    assert sorted(products(program_of(f, x, w, d))) == [(4, 3, 5), (4, 9, 5)]


def test_more_than_one_reader_keeps_a_product(same: Any) -> None:
    def f(w: Any, d: Any) -> Any:
        p, q = jg.tanh(w).T @ jg.sin(d), jg.tanh(w * 2.0).T @ jg.sin(d * 2.0)
        return p + q, p * 2.0

    same(f, tensor(3, 4), tensor(3, 5), **CLOSE)


def test_many_rows_stay_apart() -> None:
    def f(x: Any, w: Any) -> Any:
        return [jg.tanh(x[t] @ w) for t in range(3)]

    assert len(products(program_of(f, tensor(3, 300, 4), tensor(4, 6)))) == 3


def test_large_results_are_made_in_pieces(tune: Any, same: Any) -> None:
    """A loop over many steps must not need memory for the products of all of them at once."""

    def f(x: Any, w: Any) -> Any:
        return [jg.tanh(x[t] @ w) for t in range(5)]

    x, w = tensor(5, 3, 4), tensor(4, 6)
    tune(max_batched_result_bytes=2 * 3 * 6 * 4)
    same(f, x, w, **CLOSE)

    assert products(program_of(f, x, w)) == [(6, 4, 6), (6, 4, 6), (3, 4, 6)]


def test_large_operands_of_a_sum_are_not_collected(tune: Any, same: Any) -> None:
    f = jg.value_and_grad(unrolled, argnums=(1, 2, 3))
    tune(max_batched_operand_bytes=6 * 3 * 4 * 4 - 1)
    same(f, *NETWORK, **CLOSE)

    assert (4, 18, 4) not in products(program_of(f, *NETWORK))


def test_sums_of_float16_and_integers_stay_apart(same: Any) -> None:
    def f(x: Any, w: Any) -> Any:
        return [x[t] @ w for t in range(3)]

    same(f, tensor(3, 3, 4, dtype=np.float16), tensor(4, 6, dtype=np.float16), rtol=1e-2, atol=1e-2)
    n = jg.tensor(np.arange(24).reshape(3, 2, 4))
    same(f, n, jg.tensor(np.arange(8).reshape(4, 2)))


def test_concatenations_of_concatenations(same: Any) -> None:
    """Each is written to its place in the next one, whatever their number."""

    def f(x: Any) -> Any:
        y = jg.tanh(x)
        for k in range(400):
            y = jg.concat([y, jg.tanh(x * (k / 400.0))])
        return y * 1.0

    same(f, tensor(2, 3), rtol=1e-6)


@pytest.mark.parametrize("seed", range(12))
def test_random_loops(seed: int, same: Any) -> None:
    """Loops with random gates, slices, orders of time and dtypes: values and gradients are eager's."""
    rng = np.random.default_rng(seed)
    steps, batch, n = (int(rng.integers(low, high)) for low, high in ((2, 6), (1, 4), (2, 5)))
    dtype = np.float64 if rng.integers(2) else np.float32
    gates, backwards = int(rng.integers(1, 4)), bool(rng.integers(2))
    kept, skipped, summed = bool(rng.integers(2)), int(rng.integers(1, 3)), bool(rng.integers(2))

    def loss(w: Any, u: Any, b: Any, x: Any) -> Any:
        h, total = x[0, :, :1] * 0.0 + u[0, :n] * 0.0, 0.0
        for t in range(0, steps, skipped)[:: -1 if backwards else 1]:
            i, j = x[t] @ w + b, h @ u
            new = jg.tanh(i[:, :n] + j[:, :n])
            for k in range(1, gates):
                new = new * jg.sigmoid(i[:, k * n : (k + 1) * n] + j[:, k * n : (k + 1) * n])
            h = h + new if kept else new
            total = total + (h * x[t]).sum() if summed else (h * h).sum()
        return total

    shapes = ((n, gates * n), (n, gates * n), (gates * n,), (steps, batch, n))
    args = [tensor(*shape, seed=seed + k, dtype=dtype) for k, shape in enumerate(shapes)]
    tolerance = {"rtol": 1e-9, "atol": 1e-11} if dtype == np.float64 else {"rtol": 1e-3, "atol": 1e-4}
    same(jg.value_and_grad(loss, argnums=(0, 1, 2, 3)), *args, **tolerance)
    same(jg.value_and_grad(loss), *args, **tolerance)
