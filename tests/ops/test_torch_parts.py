"""Functions with torch's names that replace, add, choose or place parts of tensors, and arithmetic that differs from NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import ArgumentError, DtypeError, OperandError, ShapeError
from tests.agreement import assert_compiled_is_eager, assert_same_as_torch

RNG = np.random.default_rng(3)
X, Y, V, W = RNG.normal(size=(5, 4)), RNG.normal(size=(5, 4)), RNG.normal(size=4), RNG.normal(size=5)
CUBE, SRC = RNG.normal(size=(3, 4, 5)), RNG.normal(size=(2, 4))
INTS, OTHERS = np.array([[7, -7, 12, 0], [-9, 5, 8, 6]]), np.array([[2, 2, -8, 3], [4, -5, 12, -4]])
PLACES, MASK = np.array([[0, 4, 1, 1], [0, 2, 1, 3]]), np.array([[True, False, True, False]] * 5)
DISTINCT = np.array([0, 2, 4, 1])
ROWS, COLUMNS = np.array([0, 2, 0, -1]), np.array([1, 1, 1, 3])
RUNS = np.array([1, 1, 2, 2, 2, 3, 1])

SAME: dict[str, tuple[Any, ...]] = {
    "alpha": (lambda m, x, y: (m.add(x, y, alpha=2.5), m.sub(x, y, alpha=3), x.add(y, alpha=-1), m.rsub(x, y, alpha=2)), X, Y),
    "div": (lambda m, x, y: [m.div(x, y, rounding_mode=k) for k in (None, "floor", "trunc")], X, Y),
    "div of ints": (lambda m, x, y: [x.div(y, rounding_mode=k) for k in (None, "floor", "trunc")], INTS, OTHERS),
    "divisors": (lambda m, x, y: (m.gcd(x, y), m.lcm(x, y), x.gcd(y)), INTS, OTHERS),
    "exponents": (lambda m, x, n: (m.ldexp(x, n.abs()), *m.frexp(x.detach())), X, INTS[1]),
    "small": (lambda m, x: (m.frac(x * 3), m.sgn(x), x.frac(), m.ravel(x), m.vdot(x[0], x[1]), m.ger(x[0], x[1])), X),
    "dist": (lambda m, x, y: (m.dist(x, y), m.dist(x, y, 1.0), x.dist(y, 3.0)), X, Y),
    "addr": (lambda m, x, v, w: (m.addr(x, w, v), m.addr(x, w, v, beta=0.5, alpha=2), x.addr(w, v, beta=0)), X, V, W),
    "addbmm": (lambda m, x, c: m.addbmm(x[:4], c, c.permute(0, 2, 1), beta=2, alpha=0.5), X, CUBE),
    "aminmax": (lambda m, x: (*m.aminmax(x), *m.aminmax(x, dim=1, keepdim=True)), X),
    "isin": (lambda m, x: (m.isin(x, x[:1]), m.isin(x, m.tensor([7, 8]), invert=True)), INTS),
    "bucketize": (lambda m, x, v: [m.bucketize(x, v.sort(dim=0)[0], right=k) for k in (False, True)], X, V),
    "logcumsumexp": (lambda m, x: (m.logcumsumexp(x, 0), (x * 300).logcumsumexp(dim=-1)), X),
    "unique_consecutive": (lambda m, x: (*m.unique_consecutive(x, True, True), m.unique_consecutive(x)), RUNS),
    "unique_consecutive_slices": (lambda m, x: m.unique_consecutive(x[:, None] * 0 + x, dim=1), RUNS),
    "slice_scatter": (lambda m, x, s: (m.slice_scatter(x, s, 0, 1, 5, 2), m.slice_scatter(x, x[:, :2], dim=1, start=2)), X, SRC),
    "select_scatter": (lambda m, x, v: (m.select_scatter(x, v, 0, 2), x.select_scatter(x[:, 0], dim=1, index=-1)), X, V),
    "diagonal_scatter": (lambda m, x, v: [x.diagonal_scatter(v[:n], k) for n, k in ((4, 0), (3, 1), (4, -1))], X, V),
    "diagonal_scatter of a cube": (lambda m, c: c.diagonal_scatter(c[:, 0, :4] * 2, 1, 1, 2), CUBE),
    "as_strided": (lambda m, x: (m.as_strided(x, (3, 2), (4, 1), 2), x.as_strided((2, 2), (0, 5))), X),
    "masked_scatter": (lambda m, x, k, y: (m.masked_scatter(x, k, y), m.masked_scatter(x, k[0], y)), X, MASK, Y),
    "index_put": (lambda m, x, v, i, j: (m.index_put(x, (i, j), v), x.index_put((i,), x[:1])), X, V, DISTINCT, COLUMNS),
    "index_put adds": (lambda m, x, v, i, j: [x.index_put(k, v, True) for k in ((i, j), (i,))], X, V, ROWS, COLUMNS),
    "index_put_": (lambda m, x, v, i: (x * 1).index_put_((i,), v, accumulate=True), X, V, ROWS),
    "scatter_reduce": (
        lambda m, x, i, s: [m.scatter_reduce(x, 0, i, s, r, include_self=k) for r in REDUCTIONS for k in (True, False)],
        X, PLACES, SRC,
    ),
    "scatter_reduce dim": (lambda m, x, i, s: [x.scatter_reduce(1, i, s, r) for r in REDUCTIONS], X, PLACES % 4, SRC),
    "products": (lambda m, x, y: (m.cartesian_prod(x, y), m.cartesian_prod(x), m.combinations(x)), V, W),
    "combinations": (lambda m, x: (m.combinations(x, 3, True), m.combinations(x, 1), m.combinations(x, 4)), W),
    "triangles": (lambda m: (m.tril_indices(3, 4, 1), m.triu_indices(4, 3, -1))),
    "block_diag": (lambda m, x, v: m.block_diag(x, v, v[0], x[:2]), X, V),
    "diag_embed": (lambda m, x: (m.diag_embed(x), m.diag_embed(x, 1), x.diag_embed(offset=-2, dim1=0, dim2=-1)), X),
    "unfold": (lambda m, x: (x.unfold(0, 2, 1), x.unfold(1, 3, 1), x.unfold(-1, 2, 2)), X),
    "trapezoid": (lambda m, x, v: (m.trapezoid(x), m.trapezoid(x, v), m.trapezoid(x, dx=2.0, dim=0)), X, V),
    "in place": (lambda m, x: (x * 1).frac_().cumsum_(0).sinc_().nan_to_num_().deg2rad_().arctan_().fix_(), X),
    "in place of ints": (lambda m, x, y: (x.gcd_(y), x.bitwise_left_shift_(y.abs())), INTS * 1, OTHERS),
}  # fmt: skip
REDUCTIONS = ("sum", "mean", "amax", "amin")


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SAME)
def test_same_as_torch(name: str) -> None:
    call, *arrays = SAME[name] if isinstance(SAME[name], tuple) else (SAME[name],)

    assert_same_as_torch(call, *arrays)


# --- without torch -----------------------------------------------------------------------------------------------

TRACEABLE = [name for name in SAME if not name.startswith("unique") and name not in ("triangles", "in place of ints")]


@pytest.mark.parametrize("name", TRACEABLE)
def test_compiled(name: str) -> None:
    call, *arrays = SAME[name]
    assert_compiled_is_eager(call, *arrays, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("reduce", REDUCTIONS)
@pytest.mark.parametrize("include_self", [True, False])
def test_gradients_of_reductions_at_indices(reduce: str, include_self: bool) -> None:
    index = jg.tensor(PLACES)

    def f(x: Any, src: Any) -> Any:
        return jg.scatter_reduce(x, 0, index, src, reduce, include_self=include_self)

    assert jg.gradcheck(f, (jg.tensor(X, requires_grad=True), jg.tensor(SRC, requires_grad=True)))


def test_mantissas_have_the_gradient_of_a_scaling() -> None:
    x = jg.tensor([12.0, -0.3], requires_grad=True)
    mantissa, exponent = jg.frexp(x)
    mantissa.sum().backward()

    assert (mantissa * 2.0**exponent).tolist() == x.tolist() and x.grad.tolist() == [1 / 16, 2.0]


def test_equal_extremes_share_the_gradient() -> None:
    x, src = jg.tensor([1.0, 5.0], requires_grad=True), jg.tensor([1.0, 1.0, 0.5], requires_grad=True)
    jg.scatter_reduce(x, 0, jg.tensor([0, 0, 1]), src, "amax").sum().backward()

    np.testing.assert_allclose(x.grad.numpy(), [1 / 3, 1.0])
    np.testing.assert_allclose(src.grad.numpy(), [1 / 3, 1 / 3, 0.0])


def test_reductions_of_ints_at_indices() -> None:
    x, index, src = jg.tensor([5, 5, 5]), jg.tensor([0, 0, 2]), jg.tensor([1, 9, 3])

    assert jg.scatter_reduce(x, 0, index, src, "amax", include_self=False).tolist() == [9, 5, 3]
    assert jg.scatter_reduce(x, 0, index, src, "amin").tolist() == [1, 5, 3]
    assert jg.scatter_reduce(x, 0, index, src, "sum").tolist() == [15, 5, 8]


def test_generators_can_be_set_back_and_forked() -> None:
    g = jg.Generator(7)
    state = g.get_state()
    first = g.randn(3).tolist()
    g.set_state(state)
    assert g.randn(3).tolist() == first
    a, b = g.fork(), g.fork()
    assert a.randn(4).tolist() != b.randn(4).tolist()
    state = jg.get_rng_state()
    drawn = jg.rand(2).tolist()
    jg.set_rng_state(state)
    assert jg.rand(2).tolist() == drawn
    with pytest.raises(ArgumentError, match="uint64 vector of 2"):
        g.set_state([1, 2, 3])


def test_a_forked_generator_is_the_same_compiled() -> None:
    def draw(seed: int) -> Any:
        g = jg.Generator(seed)
        return g.fork().randn(4), g.rand(2)

    for ours, eager in zip(jg.jit(draw, backend="python")(3), draw(3), strict=True):
        assert ours.tolist() == eager.tolist()


@pytest.mark.peers
def test_torch_tensors_share_their_memory() -> None:
    torch: Any = pytest.importorskip("torch")
    theirs = torch.zeros(2, 3)
    ours = jg.from_torch(theirs.T)
    theirs[1, 2] = 5.0

    assert ours.shape == (3, 2) and ours.numpy()[2, 1] == 5.0
    with pytest.raises(OperandError, match=r"x\.detach"):
        jg.from_torch(torch.zeros(2, requires_grad=True))
    with pytest.raises(OperandError, match="bfloat16"):
        jg.from_torch(torch.zeros(2, dtype=torch.bfloat16))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: jg.div(X, Y, rounding_mode="up"), ArgumentError, "'floor' or 'trunc'"),
        (lambda: jg.gcd(X, Y), DtypeError, "gcd and lcm take integers"),
        (lambda: jg.ldexp(X, Y), DtypeError, "exponents must be integers"),
        (lambda: jg.as_strided(X, (3, 3), (9, 9)), ArgumentError, "lead out of the 20 elements"),
        (lambda: jg.as_strided(X, (3, 3), (9,)), ArgumentError, "one stride for each size"),
        (lambda: jg.masked_scatter(X, X, Y), DtypeError, "compare it with 0"),
        (lambda: jg.scatter_reduce(X, 0, PLACES, SRC, "multiply"), ArgumentError, "must be one of sum, prod, mean"),
        (lambda: jg.scatter_reduce(X, 0, PLACES[:, :3], SRC[:, :2], "amax"), ShapeError, "in the shape of src"),
        (lambda: jg.combinations(X), ArgumentError, "expected a vector"),
        (lambda: jg.block_diag(CUBE), ShapeError, "expected matrices"),
        (lambda: jg.diag_embed(jg.tensor(1.0)), ShapeError, "at least one axis"),
        (lambda: jg.asarray(X).unfold(0, 9, 1), ArgumentError, "do not fit axis 0"),
    ],
)
def test_errors(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()
