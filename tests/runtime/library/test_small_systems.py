"""Systems of small matrices as machine code: correct for every layout, and left to NumPy where rounding decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad import numpy as jnp
from jitgrad.eager.lu import has_lapack
from jitgrad.jit.rounding_judge import find_mismatches
from jitgrad.runtime.library.small_systems import MOST_COLUMNS, MOST_ROWS
from jitgrad.runtime.library.system import IN_REGISTERS
from jitgrad.testing import check_grads
from tests.runtime.library.systems import NUMPY, OPS, R, close, matrices, needs_no_python, systems

pytestmark = pytest.mark.numba

SIZES = [1, 2, 3, IN_REGISTERS, IN_REGISTERS + 1, 8, 9, 16, 17, 33, MOST_ROWS]


# every op at every size, alternately in both formats
VALUES = [(op, n, (np.float32, np.float64)[(i + j) % 2]) for i, op in enumerate(OPS) for j, n in enumerate(SIZES)]


@pytest.mark.parametrize(("op", "n", "dtype"), VALUES)
def test_values_of_all_sizes(op: str, n: int, dtype: Any) -> None:
    x = matrices(op, n, 5, dtype=dtype)
    f = jg.jit(OPS[op])
    tensor = jg.asarray(x)

    for _ in range(2):
        found = f(tensor)
        close(found, NUMPY[op](x), 32 * n * float(np.finfo(dtype).eps))
    assert len(systems(f, tensor)) == 1 and needs_no_python(f, tensor)


@pytest.mark.parametrize("n", [3, 9])
@pytest.mark.parametrize("op", OPS)
def test_one_matrix(op: str, n: int) -> None:
    x = matrices(op, n, 1)
    f = jg.jit(OPS[op])

    for _ in range(2):
        close(f(jg.asarray(x)), NUMPY[op](x), 32 * n * float(np.finfo(x.dtype).eps))
    assert needs_no_python(f, jg.asarray(x))


LAYOUTS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "transposed": lambda np, x, b: np.linalg.solve(np.swapaxes(x, -1, -2), np.swapaxes(b, -1, -2)),
    "parts": lambda np, x, b: np.linalg.solve(x[:, :, 1:, :-1], b[:, :, 1:, 1:3]),
    "every other one": lambda np, x, b: np.linalg.solve(x[:, ::2], b[:, ::2]),
    "one matrix": lambda np, x, b: np.linalg.solve(x[1, 2], b),
    "one right side": lambda np, x, b: np.linalg.solve(x, b[1, 2]),
    "a row of matrices": lambda np, x, b: np.linalg.solve(x[:, :1], b[:1]),
    "a vector": lambda np, x, b: np.linalg.solve(x, b[0, 0, 0]),
    "axes in another order": lambda np, x, b: np.linalg.solve(np.transpose(x, (1, 0, 2, 3)), np.transpose(b, (1, 0, 2, 3))),
    "backwards": lambda np, x, b: np.linalg.solve(x[..., ::-1, :], b[..., ::-1]),
    "a determinant of a transpose": lambda np, x, b: np.linalg.det(np.swapaxes(x, -1, -2)[:, 1:]),
    "a factor of a part": lambda np, x, b: np.linalg.cholesky((x @ np.swapaxes(x, -1, -2))[1:, :, :-1, :-1]),
}


@pytest.mark.parametrize("n", [3, 6])
@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts(name: str, n: int) -> None:
    x, b = matrices("solve", n, 2, 4), R.normal(size=(2, 4, n, n))
    f = jg.jit(lambda x, b: LAYOUTS[name](jnp, x, b))
    tensors = jg.asarray(x), jg.asarray(b)

    for _ in range(2):
        close(f(*tensors), LAYOUTS[name](np, x, b), 1e-11)
    assert len(systems(f, *tensors)) == 1 and needs_no_python(f, *tensors)


def test_matrices_that_are_strided_inputs() -> None:
    x, b = matrices("solve", 4, 6), R.normal(size=(6, 4, 2))
    f = jg.jit(jnp.linalg.solve)
    for given in (jg.asarray(x[::-1]), jg.asarray(x.swapaxes(1, 2)), jg.asarray(x[::2])):
        right = jg.asarray(b[: len(given)][:, ::-1])
        for _ in range(2):
            close(f(given, right), np.linalg.solve(given.numpy(), right.numpy()), 1e-12)


@pytest.mark.parametrize("columns", [1, 2, 31, 33, MOST_COLUMNS])
@pytest.mark.parametrize("n", [4, 20])
def test_right_sides(n: int, columns: int) -> None:
    x, b = matrices("solve", n), R.normal(size=(n, columns))
    f = jg.jit(jnp.linalg.solve)

    close(f(jg.asarray(x), jg.asarray(b)), np.linalg.solve(x, b), 1e-11)
    assert needs_no_python(f, jg.asarray(x), jg.asarray(b))


@pytest.mark.parametrize(
    "shapes",
    [
        ((8, 8), (8, MOST_COLUMNS + 1)),
        ((0, 0), (0, 2)),
        ((3, 3), (3, 0)),
        ((0, 3, 3), (3, 1)),
    ],
)
def test_many_columns_and_empty_matrices_go_to_numpy(shapes: tuple[tuple[int, ...], ...]) -> None:
    x, b = (jg.asarray(R.normal(size=shape)) for shape in shapes)
    f = jg.jit(jnp.linalg.solve)

    close(f(x, b), np.linalg.solve(x.numpy(), b.numpy()), 1e-9)
    assert not systems(f, x, b) and f.explain(x, b).steps[0].by == "NumPy"


def test_large_matrices_go_to_lapack() -> None:
    x, b = (jg.asarray(R.normal(size=(MOST_ROWS + 1, n))) for n in (MOST_ROWS + 1, 1))
    f = jg.jit(jnp.linalg.solve)

    close(f(x, b), np.linalg.solve(x.numpy(), b.numpy()), 1e-9)
    assert not systems(f, x, b)
    assert [step.by for step in f.explain(x, b).steps] == ["LAPACK" if has_lapack() else "NumPy"] * 2


def test_dtypes_that_differ_and_complex_ones_go_to_numpy() -> None:
    x, b = matrices("solve", 3), R.normal(size=(3, 1))
    f = jg.jit(jnp.linalg.solve)

    close(f(jg.asarray(x), jg.asarray(b.astype(np.float32))), np.linalg.solve(x, b.astype(np.float32)), 1e-6)
    close(f(jg.asarray(x + 0j), jg.asarray(b + 1j)), np.linalg.solve(x + 0j, b + 1j), 1e-11)


def test_explain_says_what_computes_a_system() -> None:
    x = jg.asarray(matrices("cholesky", 3))

    steps = jg.jit(lambda x: jnp.linalg.slogdet(x)[1] + jnp.linalg.eigvalsh(x)[0]).explain(x).steps

    assert {s.name: s.by for s in steps if s.kind == "unfused"} == {"slogdet": "small matrices", "eigh": ""}


# --- gradients -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [3, 6])
@pytest.mark.parametrize("op", OPS)
def test_gradients_of_both_orders_need_no_python(op: str, n: int) -> None:
    x = matrices(op, n, 2)

    def loss(x: Any) -> Any:
        result = OPS[op]((x + jnp.swapaxes(x, -1, -2)) / 2 if op == "cholesky" else x)
        return jnp.sum(jnp.sin(result[1] if op == "slogdet" else result))

    check_grads(jg.jit(loss), [x], order=2)
    for f in (jg.jit(jg.value_and_grad(loss)), jg.jit(jg.grad(lambda x: jnp.sum(jg.grad(loss)(x) ** 2)))):
        assert systems(f, jg.asarray(x)) and needs_no_python(f, jg.asarray(x))
        for a, b in zip(f(jg.asarray(x)), f.eager(jg.asarray(x)), strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-8, atol=1e-10)


def test_a_filter_needs_no_python() -> None:
    """Systems, products and kernels of all steps are one table."""
    a, h, y = 0.9 * np.eye(4) + 0.05, R.normal(size=(2, 4)), R.normal(size=(6, 2))

    def loss(a: Any, h: Any, y: Any) -> Any:
        mean, cov, total = jnp.zeros(4), jnp.eye(4), 0.0
        for t in range(6):
            mean, cov = a @ mean, a @ cov @ a.T + 0.1 * jnp.eye(4)
            s, error = h @ cov @ h.T + 0.3 * jnp.eye(2), y[t] - h @ mean
            gain = jnp.linalg.solve(s, h @ cov).T
            total = total + error @ jnp.linalg.solve(s, error) + jnp.linalg.slogdet(s)[1]
            mean, cov = mean + gain @ error, cov - gain @ h @ cov
        return total

    f = jg.jit(jg.value_and_grad(loss, (0, 1)))
    args = [jg.asarray(x) for x in (a, h, y)]
    (value, grads), (wanted, expected) = f(*args), f.eager(*args)

    assert needs_no_python(f, *args)
    np.testing.assert_allclose(value.numpy(), wanted.numpy(), rtol=1e-12)
    for found, other in zip(grads, expected, strict=True):
        np.testing.assert_allclose(found.numpy(), other.numpy(), rtol=1e-10, atol=1e-12)


def test_any_number_of_threads_gives_the_same_bits() -> None:
    x = jg.asarray(matrices("solve", 4, 1000))
    f, before, found = jg.jit(jnp.linalg.inv), jg.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            jg.set_num_threads(threads)
            found.append(f(x).numpy().tobytes())
            found.append(f(x).numpy().tobytes())
    finally:
        jg.set_num_threads(before)
    assert len(set(found[1:])) == 1  # the first call gives eager's


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("n", [4, 20])
def test_the_first_call_check_tells_mistakes_from_rounding(op: str, n: int) -> None:
    x = matrices(op, n, 3)
    f = jg.jit(OPS[op], check="off")
    graph = f.lookup(jg.asarray(x)).traced.graph
    results = OPS[op](jg.asarray(x))
    eager = [r.numpy() for r in (results if isinstance(results, tuple) else (results,))]
    last = len(eager) - 1

    for size, wrong in ((1e-15, False), (1e-10, True)):
        ours = eager[last] * (1 + size)
        assert bool(find_mismatches(graph, [x], {last: ("it", ours, eager[last])})) is wrong


def test_pivots_are_lapacks() -> None:
    """Of equal elements the first is the pivot, so exact arithmetic gives exact results."""
    x = np.array([[0.0, 2, 1, 0], [2, 1, 0, 1], [2, -1, 4, 0], [-2, 0, 1, 8]])
    b = x @ np.array([1.0, -2.0, 3.0, 0.5])
    f = jg.jit(lambda x, b: (jnp.linalg.solve(x, b), jnp.linalg.det(x)), check="off")

    solution, determinant = f(jg.asarray(x), jg.asarray(b))

    np.testing.assert_allclose(solution.numpy(), [1.0, -2.0, 3.0, 0.5], rtol=1e-15)
    np.testing.assert_allclose(determinant.numpy(), np.linalg.det(x), rtol=1e-14)


def test_cholesky_reads_the_lower_triangle() -> None:
    for n in (3, 6):
        x = matrices("cholesky", n)
        found = jg.jit(lambda x: jnp.linalg.cholesky(jnp.tril(x)), check="off")(jg.asarray(x))
        np.testing.assert_allclose(found.numpy(), np.linalg.cholesky(x), rtol=1e-13, atol=1e-14)
