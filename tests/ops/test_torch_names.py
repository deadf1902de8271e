"""The names that users of PyTorch type first: functions, methods and keywords, against torch and without it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import ArgumentError, DtypeError, IndexingError, ShapeError
from jitgrad.ops import torch_in_place
from jitgrad.ops.torch_methods import IN_PLACE
from tests.agreement import assert_same_as_torch

RNG = np.random.default_rng(0)
X, Y, B = RNG.normal(size=(3, 4)), RNG.normal(size=(3, 4)), RNG.normal(size=(2, 3, 4))
M, S = RNG.normal(size=(4, 3)), RNG.normal(size=(3, 3))
V, B2 = RNG.normal(size=4), RNG.normal(size=(2, 4, 5))
ROWS, MASK = np.array([2, 0]), X > 0
PLACES = np.array([[0, 2, 1, 0], [1, 0, 2, 2]])
TIES = np.array([[1.0, 3.0, 3.0, 2.0], [2.0, 2.0, 1.0, 2.0]])

SAME: dict[str, tuple[Any, ...]] = {
    # keywords
    "sum_dim": (lambda m, x: (m.sum(x, dim=0), x.sum(dim=(0, 1)), x.sum(1, keepdim=True)), X),
    "mean_dim": (lambda m, x: (m.mean(x, dim=-1, keepdim=True), x.mean((0, 1))), X),
    "prod_dim": (lambda m, x: x.prod(dim=1), X),
    "var_dim": (lambda m, x: (x.var(dim=1), m.var(x, dim=1, unbiased=False), x.var(1, keepdim=True)), X),
    "std_dim": (lambda m, x: (x.std(dim=0), x.std(0, unbiased=False), x.std(dim=1, correction=0)), X),
    "max_dim": (lambda m, x: (*m.max(x, dim=1), x.max(dim=0, keepdim=True).values, x.max()), X),
    "min_dim": (lambda m, x: (*m.min(x, dim=1), x.min(dim=-1).indices, x.min(-1, keepdim=True)[0]), X),
    "argmax_dim": (lambda m, x: (x.argmax(dim=1), m.argmin(x, dim=0, keepdim=True)), X),
    "logsumexp": (lambda m, x: m.logsumexp(x, dim=1), X),
    "softmax_dim": (lambda m, x: (m.softmax(x, dim=0), x.log_softmax(dim=-1), x.softmax(1)), X),
    "cumsum_dim": (lambda m, x: m.cumsum(x, dim=1), X),
    "norm": (lambda m, x: (x.norm(), m.norm(x, p=2), x.norm(p=1, dim=1), x.norm(dim=0, keepdim=True)), X),
    "sort_dim": (lambda m, x: (*m.sort(x, dim=1), *x.sort(dim=0, descending=True)), X),
    "argsort_dim": (lambda m, x: m.argsort(x, dim=0, descending=True), X),
    "topk": (lambda m, x: (*x.topk(2, dim=1), *m.topk(x, 2, dim=0, largest=False)), X),
    "cat_stack": (lambda m, x, y: (m.cat([x, y], dim=1), m.stack((x, y), dim=-1)), X, Y),
    "split_dim": (lambda m, x: (x.split(3, dim=1), m.split(x, [1, 3], dim=-1)), X),
    "squeeze_dim": (lambda m, x: (x.unsqueeze(1).squeeze(dim=1), x.squeeze(dim=0), m.unsqueeze(x, dim=0)), X),
    "flip_roll": (lambda m, x: (x.flip(dims=(0,)), m.roll(x, shifts=1, dims=1)), X),
    "gather_dim": (lambda m, x, i: (m.gather(x, dim=0, index=i), x.gather(0, i)), X, PLACES),
    "scatter_add_dim": (lambda m, x, i, y: m.scatter_add(x, dim=0, index=i, src=y), X, PLACES, Y[:2]),
    "index_add_dim": (lambda m, x, i, y: m.index_add(x, dim=0, index=i, source=y[:2]), X, ROWS, Y),
    "diagonal_dim": (lambda m, x: x.diagonal(dim1=1, dim2=2, offset=1), B),
    "flatten_dim": (lambda m, x: (m.flatten(x, start_dim=1), x.flatten(0, 1), x.flatten()), B),
    "tril": (lambda m, x: (m.tril(x, diagonal=-1), x.triu(1)), X),
    "tensordot": (lambda m, x, y: m.tensordot(x, y, dims=1), X, M),
    "unbind_dim": (lambda m, x: (m.unbind(x, dim=1), x.unbind()), X),
    # functions
    "mm": (lambda m, x, y: (m.mm(x, y), x.mm(y)), X, M),
    "mv": (lambda m, x, v: (m.mv(x, v), x.mv(v)), X, V),
    "bmm": (lambda m, x, y: (m.bmm(x, y), x.bmm(y)), B, B2),
    "addmm": (lambda m, s, x, y: (m.addmm(s, x, y), s.addmm(x, y, beta=0.5, alpha=-2)), S, X, M),
    "addmm_zero": (lambda m, s, x, y: m.addmm(s.detach() * m.inf, x, y, beta=0), S, X, M),
    "addmv": (lambda m, s, x, v: m.addmv(s[0], x, v, alpha=2), S, X, V),
    "baddbmm": (lambda m, s, x, y: m.baddbmm(s[0, 0], x, y, beta=2, alpha=3), S, B, B2),
    "addcmul": (lambda m, x, y: (m.addcmul(x, x, y, value=0.5), x.addcmul(x, y)), X, Y),
    "addcdiv": (lambda m, x, y: (m.addcdiv(x, x, y, value=0.5), x.addcdiv(x, y)), X, Y),
    "masked_fill": (lambda m, x, k: (m.masked_fill(x, k, -1e9), x.masked_fill(k, 2)), X, MASK),
    "masked_select": (lambda m, x, k: (m.masked_select(x, k), x.masked_select(k)), X, MASK),
    "index_select": (lambda m, x, i: (m.index_select(x, 0, i), x.index_select(1, i)), X, ROWS),
    "index_fill": (lambda m, x, i: (m.index_fill(x, 1, i, 7.0), x.index_fill(0, i, 0)), X, ROWS),
    "index_copy": (lambda m, x, i, y: (m.index_copy(x, 0, i, y[:2]), x.index_copy(1, i, y[:, :2])), X, ROWS, Y),
    "scatter": (lambda m, x, i, y: (m.scatter(x, 0, i, y), x.scatter(0, i, 1.5)), X, np.array([[2, 0, 1, 0]]), Y[:1]),
    "cdist": (lambda m, x, y: (m.cdist(x, y), m.cdist(x[None], y[None], p=1.0), m.cdist(x, x)), X, Y),
    "special": (
        lambda m, u: (m.erfinv(u), u.lgamma(), m.digamma(u), m.polygamma(1, u), u.logit(), m.xlogy(u, u), m.special.expit(u)),
        RNG.uniform(0.1, 0.9, 7),
    ),
    "limits": (lambda m, x: m.tensor([m.finfo(x.dtype).eps, m.iinfo(m.int32).max]), X),
    "stacks": (lambda m, x, y: (m.hstack([x, y]), m.vstack((x, y)), m.dstack([x, y]), m.column_stack([x, y])), X, Y),
    "cumprod": (lambda m, x: (m.cumprod(x, dim=1), x.cumprod(0), m.diff(x, dim=0), x.diff()), X),
    "diagonals": (lambda m, x, v: (m.diag(v), m.diag(x, diagonal=1), x.trace(), m.diagflat(v), m.kron(x, v)), S, V),
    "flips": (lambda m, x: (m.fliplr(x), x.flipud(), m.rot90(x), m.rot90(x, 2, dims=(0, 1))), X),
    "nan": (lambda m, x: (m.nan_to_num(m.log(x), nan=0.5), x.nansum(dim=0), m.nanmean(x, dim=1, keepdim=True)), X),
    "counts": (lambda m, k, i: (m.count_nonzero(k, dim=0), k.count_nonzero(), m.bincount(i, minlength=5)), MASK, ROWS),
    "quantile": (lambda m, x: (m.quantile(x, 0.3, dim=1), x.quantile(0.5), m.quantile(x, 0.1, dim=0, keepdim=True)), X),
    "median": (lambda m, x: (m.median(x, dim=1), x.median(dim=0, keepdim=True), m.nanmedian(x[:1, :3])), X),
    "angles": (lambda m, x: (m.deg2rad(x), x.rad2deg(), m.sinc(x), m.logaddexp2(x, x * 2)), X),
    "extrema_without_nan": (lambda m, x, y: (m.fmax(x, y), x.fmin(m.log(y))), X, Y),
    "steps": (lambda m, x, y: (m.heaviside(x.detach(), y.detach()), m.isposinf(x / 0), m.argwhere(x > 0)), X, Y),
    "covariance": (lambda m, x: (m.cov(x), m.cov(x, correction=0), m.corrcoef(x)), X),
    "at_least": (lambda m, x: (m.atleast_1d(x[0, 0]), m.atleast_2d(x[0]), m.atleast_3d(x)), X),
    "parts": (lambda m, x: (m.tensor_split(x, 3, dim=1), m.hsplit(x, 2), x.vsplit([1]), m.broadcast_tensors(x, x[:1])), X),
    "matrices": (lambda m, s: (m.det(s), m.inverse(s), m.linalg.slogdet(s), m.matrix_power(s, 3), m.linalg.solve(s, s)), S),
    "log_ranges": (lambda m, x: (m.logspace(0, 2, steps=5), m.float_power(x, 2)), X),
    "cross": (lambda m, x, y: (m.cross(x, y, dim=-1), m.inner(x, y)), S, S[::-1].copy()),
    "narrow": (lambda m, x: (m.narrow(x, 1, 1, 2), x.narrow(0, -2, 2)), X),
    "select": (lambda m, x: (m.select(x, 1, -1), x.select(dim=0, index=1)), X),
    "chunk": (lambda m, x: (m.chunk(x, 3, dim=1), x.chunk(2), x.chunk(9, 1)), X),
    "permute": (lambda m, x: (m.permute(x, (2, 0, 1)), x.permute(1, 0, 2), x.permute(dims=(0, 2, 1))), B),
    "transpose": (lambda m, x: (m.transpose(x, 0, 2), x.transpose(-2, -1), x[0].transpose(0, 1)), B),
    "transpose_dim": (lambda m, x: (x.transpose(dim0=0, dim1=1), m.swapaxes(x, 0, 1), x.swapdims(0, 2)), B),
    "t": (lambda m, x: (m.t(x), x.t(), x[0].t(), x.T, x.mT), X),
    "movedim": (lambda m, x: (m.movedim(x, 0, -1), x.movedim((0, 1), (1, 2))), B),
    "unflatten": (lambda m, x: (m.unflatten(x, 1, (2, -1)), x.unflatten(dim=-1, sizes=(1, 4))), X),
    "expand": (lambda m, v, x: (v.expand(2, 3, 4), v.expand(3, -1), v.expand_as(x)), V, X),
    "view": (lambda m, x: (x.view(-1), x.view(2, -1), x.view((6, 2)), x.view_as(x.reshape(4, 3)), x.contiguous()), X),
    "amax": (lambda m, x: (m.amax(x, dim=1), x.amin(dim=0, keepdim=True), m.amax(x, (0, 1))), X),
    "amax_ties": (lambda m, x: (m.amax(x, 1), x.amin(1)), TIES),
    "var_mean": (lambda m, x: (m.var_mean(x, dim=1), m.std_mean(x, dim=0, keepdim=True)), X),
    "kthvalue": (lambda m, x: (m.kthvalue(x, 2), x.kthvalue(3, dim=0, keepdim=True)), X),
    "cummax": (lambda m, x: (m.cummax(x, dim=1), x.cummin(0)), X),
    "cummax_ties": (lambda m, x: (m.cummax(x, dim=1), x.cummin(1)), TIES),
    "cummax_nan": (lambda m, x: (m.cummax(x, dim=0), x.cummin(0)), np.array([1.0, 2.0, np.nan, 3.0, np.nan])),
    "clamp": (lambda m, x: (m.clamp(x, min=-0.5, max=0.5), x.clamp_min(0.1), m.clamp_max(x, 0.1)), X),
    "tile": (lambda m, x: (x.tile(2, 1), m.tile(x, dims=(2,)), x.repeat_interleave(2, dim=1)), X),
    "nonzero": (lambda m, x, k: (k.nonzero(as_tuple=False), k.nonzero(as_tuple=True)), X, MASK),
    "new": (lambda m, x: (x.new_zeros(2, 3), x.new_ones((2,)), x.new_full((2,), 3.0), x.new_tensor([1.0, 2.0])), X),
    "sizes": (lambda m, x: m.tensor([x.itemsize, x.nbytes, x.element_size(), x.nelement(), x.ndimension()]), X),
    "types": (lambda m, x: (x.float(), x.long(), x.int(), x.bool(), x.type(m.int64), x.to(m.double), x.half()), X),
    "creation": (lambda m, x: (m.zeros(2, 3), m.ones(2), m.zeros((2,), dtype=m.long), m.full(size=(2,), fill_value=1)), X),
    "ranges": (lambda m, x: (m.linspace(0, 1, steps=5), m.arange(start=1, end=7, step=2), m.eye(n=3, m=2)), X),
}


@pytest.mark.peers
@pytest.mark.parametrize("name", SAME)
def test_same_as_torch(name: str):
    call, *arrays = SAME[name]

    assert_same_as_torch(call, *arrays)


UNARY = [name[:-1] for name in IN_PLACE if hasattr(jg, name[:-1])]
BINARY = "add sub mul div subtract multiply divide pow remainder fmod copysign hypot atan2 clamp_min clamp_max".split()
LIMITED = "log log2 log10 sqrt rsqrt asin acos atanh acosh log1p pow".split()


NOT_IN_TORCH = "logical_not floor_divide asinh acosh atanh arcsinh arccosh arctanh sgn".split()  # nothing, or no gradient


def in_place(name: str, *more: Any) -> Any:
    def call(m: Any, x: Any, *others: Any) -> Any:
        changed = (x.sigmoid() * 0.9 + (1.05 if name == "acosh" else 0.05)) if name in LIMITED else x * 1.0
        result = getattr(changed, f"{name}_")(*others, *more)
        assert result is changed
        return changed

    return call


@pytest.mark.peers
@pytest.mark.parametrize("name", [n for n in UNARY if n not in (*BINARY, *NOT_IN_TORCH)])
def test_unary_in_place_same_as_torch(name: str):
    others = {"lerp": (Y, 0.3), "clip": (-0.5, 0.5), "clamp": (-0.5, 0.5), "masked_fill": (MASK, 2.0)}
    others |= {"addcmul": (Y, Y), "addcdiv": (Y, Y), "scatter_add": (0, PLACES, Y), "index_add": (0, ROWS, Y[:2])}
    others |= {"scatter": (0, np.array([[2, 0, 1, 0]]), Y[:1]), "index_fill": (0, ROWS, 2.0), "index_copy": (0, ROWS, Y[:2])}
    others |= {"addmm": (S, X), "cumsum": (0,), "logit": (0.1,), "ldexp": (np.array([[2, 1, 0, 3]]),)}
    others |= dict.fromkeys(("arctan2", "xlogy", "true_divide"), (np.abs(Y) + 0.5,))
    others |= dict.fromkeys("nextafter addmv addr addbmm baddbmm index_put masked_scatter scatter_reduce gcd lcm".split(), ())
    others |= dict.fromkeys("bernoulli normal uniform".split(), ())
    torch: Any = pytest.importorskip("torch")
    if not hasattr(torch.Tensor, f"{name}_") or others.get(name) == ():
        pytest.skip("random, of other axes, or not in torch")
    if name.startswith(("bitwise", "logical")):
        pytest.skip("not of floats")
    given = others.get(name, ())

    def call(m: Any, x: Any) -> Any:
        return in_place(name, *(m.tensor(v) if isinstance(v, np.ndarray) else v for v in given))(m, x)

    assert_same_as_torch(call, X)


@pytest.mark.peers
@pytest.mark.parametrize("name", BINARY)
def test_binary_in_place_same_as_torch(name: str):
    torch: Any = pytest.importorskip("torch")
    if not hasattr(torch.Tensor, f"{name}_"):
        pytest.skip("not in torch")

    assert_same_as_torch(in_place(name), X, np.abs(Y) + 0.5)


@pytest.mark.peers
def test_views_changed_in_place_same_as_torch():
    def call(m: Any, x: Any, y: Any) -> Any:
        z = x * 1.0
        z[0].add_(y[1], alpha=-2)
        z.view(-1)[2:5].mul_(3.0)
        z.t().exp_()
        return z

    assert_same_as_torch(call, X, Y)


# --- without torch -----------------------------------------------------------------------------------------------


def test_one_argument_under_two_names_is_refused():
    x = jg.asarray(X)

    with pytest.raises(ArgumentError, match="sum: dim= and axis= are two names of one argument"):
        x.sum(0, dim=1)
    with pytest.raises(ArgumentError, match="keepdim= and keepdims="):
        x.sum(dim=1, keepdim=True, keepdims=True)
    with pytest.raises(ArgumentError, match="size= and shape="):
        jg.zeros(2, size=(3,))


def test_numpys_names_keep_numpys_meaning():
    x = jg.asarray(X)

    assert isinstance(x.max(axis=1), jg.Tensor)
    assert isinstance(jg.sort(x, axis=1), jg.Tensor)
    assert x.clone().sort(axis=1) is None
    np.testing.assert_allclose(x.var(axis=0).numpy(), X.var(axis=0))
    np.testing.assert_allclose(x.var(dim=0).numpy(), X.var(axis=0, ddof=1))
    assert [part.shape for part in jg.split(x, 2, 1)] == [(3, 2)] * 2
    assert [part.shape for part in jg.split(x, 3, dim=1)] == [(3, 3), (3, 1)]
    assert x.transpose((1, 0)).shape == x.transpose(1, 0).shape == x.transpose(0, 1).shape == (4, 3)
    with pytest.raises(ShapeError):
        x.squeeze(axis=0)


def test_size_is_a_number_and_a_function():
    x = jg.asarray(B)

    assert x.size == 24
    assert isinstance(x.size, int)
    assert (x.size(), x.size(0), x.size(-1), x.dim(), x.numel()) == ((2, 3, 4), 2, 4, 3, 24)
    assert x.sum() / x.size == x.mean()
    with pytest.raises(IndexError, match="size"):
        x.size(3)


def test_size_in_a_compiled_function():
    @jg.jit
    def f(x):
        n, m = x.size()
        return x.view(m * n) / x.size + jg.zeros(x.size), [x[k].sum() for k in range(x.size(0))]

    for shape in [(2, 3), (4, 3), (2, 3)]:
        x = jg.ones(shape)
        flat, sums = f(x)
        np.testing.assert_allclose(flat.numpy(), np.full(x.size, 1 / x.size), rtol=1e-6)
        assert len(sums) == shape[0]



def test_devices_have_a_type():
    device = jg.device("cpu")
    x = jg.ones(2, device=device).to(device, non_blocking=True)

    assert x.device == device == "cpu"
    assert (x.device.type, x.device.index, jg.device("cuda", 1).index) == ("cpu", None, 1)
    assert (x.is_cuda, x.is_cpu) == (False, True)
    assert jg.rand(2, device=device).device == jg.randn(2, device="cpu", requires_grad=True).device
    with pytest.raises(ArgumentError, match="tpu"):
        jg.device("tpu")


def test_random_tensors_like_others():
    x = jg.zeros((200, 50), dtype=jg.float64)
    generator = jg.Generator(0)
    u, z = jg.rand_like(x, generator=generator), jg.randn_like(x, requires_grad=True, generator=generator)
    k = jg.randint_like(x, 3, 6, generator=generator)

    assert u.shape == z.shape == k.shape == x.shape
    assert u.dtype == z.dtype == k.dtype == x.dtype
    assert z.requires_grad
    assert 0.49 < u.mean().item() < 0.51
    assert abs(z.mean().item()) < 0.05
    assert set(np.unique(k.numpy())) == {3.0, 4.0, 5.0}


def test_closeness():
    x = jg.asarray(X)

    assert jg.allclose(x, x + 1e-9)
    assert not x.allclose(input := x + 0.1)
    assert jg.isclose(x, other=input).tolist() == [[False] * 4] * 3


def test_functions_of_numpy_are_shared_under_their_names():
    from jitgrad.numpy.shared_with_torch import SHARED

    assert all(getattr(jg, name) is function for name, function in SHARED.items())


MORE_FILLS = [("random_", (2, 5), 3.0, 0.8165), ("exponential_", (2.0,), 0.5, 0.5), ("bernoulli_", (0.2,), 0.2, 0.4)]


def test_multinomial_draws_in_proportion():
    p = jg.tensor([[1.0, 0.0, 3.0, 4.0], [0.0, 2.0, 0.0, 2.0]])
    drawn = jg.multinomial(p, 8000, replacement=True, generator=jg.Generator(0)).numpy()
    two = jg.jit(lambda p: jg.multinomial(p, 2))(p).numpy()

    shares = np.stack([np.bincount(row, minlength=4) for row in drawn]) / 8000
    np.testing.assert_allclose(shares, p.numpy() / p.numpy().sum(1, keepdims=True), atol=0.02)
    assert (shares == 0).tolist() == (p.numpy() == 0).tolist()
    assert sorted(two[1]) == [1, 3]
    assert two[0][0] != two[0][1] and 1 not in two[0]
    with pytest.raises(ArgumentError, match="cannot draw 5 of 4 classes"):
        jg.multinomial(p, 5)


FILLS = [("normal_", (2, 3), 2, 3), ("uniform_", (-1, 3), 1, 1.155), *MORE_FILLS]


@pytest.mark.parametrize(("name", "arguments", "mean", "std"), FILLS)
def test_filled_in_place_with_random_numbers(name: str, arguments: tuple[float, float], mean: float, std: float):
    x = jg.zeros(10_000, dtype=jg.float64)
    view = x.view(100, 100)

    assert getattr(x, name)(*arguments, generator=jg.Generator(1)) is x
    assert abs(view.mean().item() - mean) < 0.1
    assert abs(view.std(correction=0).item() - std) < 0.1


def test_in_place_methods_in_a_compiled_step():
    w = jg.ones(3, requires_grad=True)
    momentum = jg.zeros(3)

    @jg.jit
    def step(x):
        loss = ((w * x) ** 2).sum()
        loss.backward()
        with jg.no_grad():
            momentum.mul_(0.5).add_(w.grad, alpha=0.1)
            w.sub_(momentum)
            w.grad.zero_()
        return loss

    expected, m = np.ones(3), np.zeros(3)
    for _ in range(3):
        step(jg.tensor([1.0, 2.0, 3.0]))
        m = 0.5 * m + 0.1 * 2 * expected * np.array([1.0, 4.0, 9.0])
        expected = expected - m
    np.testing.assert_allclose(w.detach().numpy(), expected, rtol=1e-5)
    assert w.grad.tolist() == [0.0, 0.0, 0.0]


def test_contiguous_copies_views_in_another_order():
    x = jg.arange(6.0).view(2, 3)

    assert x.contiguous() is x
    x.t().contiguous().mul_(0.0)
    assert x.sum().item() == 15.0


def test_pairs_in_a_compiled_function():
    @jg.jit
    def f(x):
        best = x.max(dim=1)
        values, order = x.sort(dim=1)
        return best, values.sum(), order

    best, _, order = f(jg.asarray(X))

    assert best.indices.tolist() == X.argmax(1).tolist()
    np.testing.assert_array_equal(best.values.numpy(), X.max(1))
    np.testing.assert_array_equal(order.numpy(), X.argsort(1))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: jg.mm(x, jg.ones(4)), ShapeError, "mm: .*expected 2 and 2 axes"),
        (lambda x: jg.bmm(jg.ones(2, 3, 4), jg.ones(3, 4, 5)), ShapeError, "equally many matrices"),
        (lambda x: x.masked_fill(x, 0.0), DtypeError, "mask must be of bools"),
        (lambda x: x.narrow(1, 3, 2), IndexingError, "leave axis 1"),
        (lambda x: x.select(0, 3), IndexingError, "index 3 is out of bounds"),
        (lambda x: x.chunk(0), ArgumentError, "must be positive"),
        (lambda x: x.expand(3), ArgumentError, "expand: sizes"),
        (lambda x: jg.t(jg.ones(1, 2, 3)), ShapeError, "at most two axes"),
        (lambda x: x.kthvalue(5), ArgumentError, "between 1 and"),
        (lambda x: x.split([1, 1], dim=1), ArgumentError, "do not add up"),
        (lambda x: x.split(0, dim=1), ArgumentError, "pieces of size 0"),
        (lambda x: x.index_select(0, jg.asarray(PLACES)), ShapeError, "must be 1-D"),
        (lambda x: x.flatten(1, 0), IndexError, "comes after"),
    ],
)
def test_errors(call: Any, error: type[Exception], words: str):
    with pytest.raises(error, match=words):
        call(jg.asarray(X))


def test_functions_at_the_top_that_change_their_argument() -> None:
    names = sorted(name for name in torch_in_place.__dict__ if name.endswith("_") and not name.startswith("_"))
    x = jg.tensor([0.5, -0.25], dtype=jg.float64)

    assert len(names) > 60 and all(getattr(jg, name).__name__ == name for name in names)
    assert jg.exp_(x) is x and jg.clamp_(x, 1.0, max=1.2).tolist() == [1.2, 1.0]

    @jg.jit(backend="python")
    def step(x: Any) -> Any:
        y = x * 2.0
        return jg.mul(jg.sin_(y), y)

    (g,) = jg.vjp(step, x)[1](jg.ones(2, dtype=jg.float64))
    np.testing.assert_allclose(g.numpy(), 4 * np.sin(2 * x.numpy()) * np.cos(2 * x.numpy()))
    with pytest.raises(ArgumentError, match=r"exp_ changes a tensor in place, got 1\.0; exp returns a new one"):
        jg.exp_(1.0)
