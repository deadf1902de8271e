"""Systems of small matrices as machine code: correct for every layout, and left to NumPy where rounding decides."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad import numpy as jnp
from jitgrad.core.errors import MatrixError
from jitgrad.eager.lu import has_lapack
from jitgrad.jit.decorator import JitFunction
from jitgrad.jit.rounding_judge import find_mismatches
from jitgrad.runtime.library.small_systems import MOST_COLUMNS, MOST_ROWS, small_system
from jitgrad.runtime.library.system import IN_REGISTERS
from jitgrad.runtime.library_call import LibraryCall
from jitgrad.testing import check_grads

pytestmark = pytest.mark.numba

R = np.random.default_rng(0)
SIZES = [1, 2, 3, IN_REGISTERS, IN_REGISTERS + 1, 8, 9, 16, 17, 33, MOST_ROWS]
OPS: dict[str, Callable[[Any], Any]] = {
    "solve": lambda x: jnp.linalg.solve(x, x[..., :2] * 2.0),
    "upper": lambda x: jnp.linalg.solve_triangular(x, x[..., :2] * 2.0, upper=True),
    "lower": lambda x: jnp.linalg.solve_triangular(x, x[..., :2] * 2.0, upper=False),
    "inv": jnp.linalg.inv,
    "det": jnp.linalg.det,
    "slogdet": jnp.linalg.slogdet,
    "cholesky": jnp.linalg.cholesky,
}
NUMPY: dict[str, Callable[[Any], Any]] = {
    "solve": lambda x: np.linalg.solve(x, x[..., :2] * 2),
    "upper": lambda x: np.linalg.solve(np.triu(x), x[..., :2] * 2),
    "lower": lambda x: np.linalg.solve(np.tril(x), x[..., :2] * 2),
    "inv": np.linalg.inv,
    "det": np.linalg.det,
    "slogdet": np.linalg.slogdet,
    "cholesky": np.linalg.cholesky,
}


def matrices(op: str, n: int, *batch: int, dtype: Any = np.float64) -> np.ndarray[Any, Any]:
    """Matrices of moderate condition numbers; some of their largest elements are not on the diagonal."""
    basis = np.linalg.qr(R.normal(size=(*batch, n, n)))[0]
    values = basis * np.linspace(0.5, 2.0, n) @ np.swapaxes(basis, -1, -2)
    if op in ("upper", "lower"):
        found = (values - np.eye(n)) / n + np.eye(n)
    else:
        found = values if op == "cholesky" else values @ basis[..., ::-1, :]
    return found.astype(dtype)


def systems(f: JitFunction, *args: Any) -> list[LibraryCall]:
    """The steps of a call that machine code computes."""
    steps = f.lookup(*args).program.steps
    return [s for s in steps if isinstance(s, LibraryCall) and s.instruction is not None and small_system(s.step) is not None]


def needs_no_python(f: JitFunction, *args: Any) -> bool:
    return not any(isinstance(part, LibraryCall) for part in f.lookup(*args).program.runner.parts)


def close(found: Any, expected: Any, tolerance: float) -> None:
    pairs = zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
    for a, b in pairs:
        np.testing.assert_allclose(a.numpy(), np.asarray(b), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("op", OPS)
def test_values_of_all_sizes(op: str, n: int, dtype: Any) -> None:
    x = matrices(op, n, 5, dtype=dtype)
    f = jg.jit(OPS[op])
    tensor = jg.asarray(x)

    for _ in range(2):
        found = f(tensor)
        close(found, NUMPY[op](x), 32 * n * float(np.finfo(dtype).eps))
    assert len(systems(f, tensor)) == 1 and needs_no_python(f, tensor)
    close(f(jg.asarray(x[:1])), NUMPY[op](x[:1]), 32 * n * float(np.finfo(dtype).eps))


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


@pytest.mark.parametrize("n", [2, 4, 6])
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
    f = jg.jit(OPS[op])
    f(jg.asarray(x))
    graph = f.lookup(jg.asarray(x)).traced.graph
    results = OPS[op](jg.asarray(x))
    eager = [r.numpy() for r in (results if isinstance(results, tuple) else (results,))]
    last = len(eager) - 1

    for size, wrong in ((1e-15, False), (1e-10, True)):
        ours = eager[last] * (1 + size)
        assert bool(find_mismatches(graph, [x], {last: ("it", ours, eager[last])})) is wrong


# --- matrices that are left to NumPy ---------------------------------------------------------------------------------------

SINGULAR: dict[str, np.ndarray[Any, Any]] = {
    "ones": np.ones((3, 3)),
    "zeros": np.zeros((3, 3)),
    "of rank 2": np.array([[1.0, 2, 3], [4, 5, 6], [7, 8, 9]]),
    "of rank 2, large": np.diag([1.0] * 7 + [0.0]) + np.eye(8, k=1),
    "not a number": np.array([[1.0, np.nan], [0, 1]]),
    "not a number below": np.array([[1.0, 0], [0, np.nan]]),
    "infinite": np.array([[1.0, 0], [np.inf, 1]]),
    "not a number, large": np.where(np.eye(6) > 0, 2.0, np.where(np.arange(6) == 3, np.nan, 0.1)),
}


def outcome(f: Callable[[Any], Any], x: Any) -> Any:
    """The results as arrays, or the text of the error."""
    try:
        with np.errstate(all="ignore"):
            result = f(x)
    except np.linalg.LinAlgError as error:
        return str(error)
    return [r.numpy() for r in (result if isinstance(result, tuple) else (result,))]


@pytest.mark.parametrize("x", [pytest.param(x, id=name) for name, x in SINGULAR.items()])
@pytest.mark.parametrize("op", OPS)
def test_singular_matrices_and_those_with_nan_are_what_they_are_eagerly(op: str, x: Any) -> None:
    f = jg.jit(OPS[op], check="off")
    expected = outcome(f.eager, jg.asarray(x))
    for _ in range(3):
        found = outcome(f, jg.asarray(x))
        if isinstance(expected, str):
            assert found.startswith(f"{expected} (in {__file__}:")
        else:
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-12)
    assert len(systems(f, jg.asarray(x))) == 1


def test_the_error_names_the_op_its_operands_and_the_users_line() -> None:
    f = jg.jit(jnp.linalg.solve, check="off")
    g = jg.jit(lambda x: jnp.linalg.inv(x) + 1.0, check="off")
    x = jg.asarray(np.ones((2, 2)))
    where = re.escape(__file__)

    with pytest.raises(MatrixError, match=rf"solve of float64\[2, 2\] and float64\[2, 1\]: Singular.*\(in {where}:\d+\)"):
        f(x, jg.asarray(np.ones(2)))
    for _ in range(2):
        with pytest.raises(np.linalg.LinAlgError, match=rf"inv of float64\[2, 2\]: Singular.*\(in {where}:\d+\)"):
            g(x)


def test_one_singular_matrix_of_a_batch_is_an_error_and_later_calls_are_right() -> None:
    x = matrices("solve", 4, 300)
    f = jg.jit(lambda x: jnp.linalg.inv(x) * 2.0)
    good, bad = jg.asarray(x), x.copy()
    bad[250] = 1.0

    for _ in range(3):
        close(f(good), 2 * np.linalg.inv(x), 1e-11)
        with pytest.raises(MatrixError, match="Singular"):
            f(jg.asarray(bad))


def test_steps_behind_one_that_was_left_to_numpy_go_on() -> None:
    """Two such steps in one table, with a library call in Python between others."""

    def program(x: Any) -> Any:
        first = jnp.linalg.det(x * 1.0) + 1.0
        second = jnp.linalg.slogdet(x * 2.0)[1] * 0.5
        values = jnp.linalg.eigvalsh(x + 3.0) + first
        return first, second, values, jnp.linalg.det(x * 3.0) - second, jnp.linalg.det(jnp.eye(2) * 2.0 + values[0])

    x = jg.asarray(np.ones((2, 2)))
    for f in (jg.jit(program, check="off"), jg.jit(lambda x: program(x)[:2], check="off")):
        with np.errstate(all="ignore"):
            expected = f.eager(x)
        for _ in range(3):
            for a, b in zip(f(x), expected, strict=True):
                np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-13)


def test_state_is_unchanged_if_a_step_fails() -> None:
    state, count = jg.asarray(np.zeros(2)), jg.asarray(np.zeros(3))

    @jg.jit
    def step(x: Any) -> Any:
        count[:] = count + 1.0
        state[:] = state + jnp.linalg.solve(x, jnp.ones(2))
        return count.sum()

    good, bad = jg.asarray(np.eye(2) * 2.0), jg.asarray(np.ones((2, 2)))
    for k in range(1, 4):
        step(good)
        with pytest.raises(MatrixError):
            step(bad)
        assert state.tolist() == [k / 2, k / 2] and count.tolist() == [k] * 3


def test_a_failing_step_keeps_donated_arguments() -> None:
    f = jg.jit(lambda w, x: w - jnp.linalg.solve(x, w), donate=(0,))
    good, bad = jg.asarray(np.eye(2) * 2.0), jg.asarray(np.ones((2, 2)))
    assert f(jg.asarray([2.0, 4.0]), good).tolist() == [1.0, 2.0]
    for _ in range(2):
        w = jg.asarray([2.0, 4.0])
        with pytest.raises(MatrixError):
            f(w, bad)
        assert f(w, good).tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    "x",
    [
        np.diag([1e200, 1e200, 1e-200, 1e-200]),
        np.diag([1e-200, 1e-200, 1e200, 1e200]),
        np.diag([1e200, 1e200, 1.0]),
        np.diag([1e-320, 1.0]),
        np.diag([1e30] * 6 + [1e-30] * 6),
    ],
)
def test_determinants_out_of_range_on_the_way_are_numpys(x: Any) -> None:
    f = jg.jit(lambda x: (jnp.linalg.det(x), *jnp.linalg.slogdet(x)), check="off")
    with np.errstate(all="ignore"):
        expected = (np.linalg.det(x), *np.linalg.slogdet(x))

    for a, b in zip(f(jg.asarray(x)), expected, strict=True):
        np.testing.assert_allclose(a.numpy(), b, rtol=1e-12)


@pytest.mark.parametrize("n", [3, 7])
def test_matrices_of_any_scale_are_machine_codes(n: int) -> None:
    """The limit below which NumPy decides is relative to the columns."""
    columns = 10.0 ** np.linspace(-100, 100, n)
    x = matrices("solve", n) * columns
    f = jg.jit(jnp.linalg.solve, check="off")
    b = R.normal(size=(n, 2))

    found = f(jg.asarray(x), jg.asarray(b)).numpy()

    np.testing.assert_allclose(found * columns[:, None], np.linalg.solve(x, b) * columns[:, None], rtol=1e-11)
    assert f.lookup(jg.asarray(x), jg.asarray(b)).program.runner.parts[0].declines


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
