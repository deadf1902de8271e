"""jitgrad.lax's functions of arrays are JAX's, with their gradients, eager and compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad import lax as ours
from jitgrad.core.errors import ArgumentError, ShapeError
from tests.compiled import backend  # noqa: F401 - a fixture

RNG = np.random.default_rng(4)
X = RNG.normal(size=(4, 3))
Y = np.array([[1, 5, 2], [3, 3, 9], [0, 7, 7], [4, 2, 8]])
IMAGE, FILTERS = RNG.normal(size=(2, 6, 7, 4)), RNG.normal(size=(3, 2, 4, 5))
ROW, KERNEL = RNG.normal(size=(2, 4, 9)), RNG.normal(size=(6, 2, 3))
VOLUME, BLOCK = RNG.normal(size=(1, 2, 4, 5, 4)), RNG.normal(size=(3, 2, 2, 3, 2))

Case = tuple[Callable[..., Any], tuple[Any, ...]]
CASES: dict[str, Case] = {
    **{name: (lambda lax, x, name=name: getattr(lax, name)(x), (X * 0.4,)) for name in (
        "asin acos atan asinh atanh sin cos tan sinh cosh tanh exp exp2 expm1 logistic erf erfc erf_inv cbrt abs neg sign square "
        "bessel_i0e bessel_i1e round floor ceil is_finite"
    ).split()},
    **{name: (lambda lax, x, name=name: getattr(lax, name)(x), (np.abs(X) + 1.5,)) for name in (
        "log log1p sqrt rsqrt reciprocal acosh lgamma digamma"
    ).split()},
    **{name: (lambda lax, x, name=name: getattr(lax, name)(x, x[::-1] + 0.1), (X,)) for name in (
        "add sub mul div max min rem atan2 eq ne lt le gt ge nextafter"
    ).split()},
    **{name: (lambda lax, k, name=name: getattr(lax, name)(k, k[::-1] + 1), (Y,)) for name in (
        "bitwise_and bitwise_or bitwise_xor shift_left shift_right_arithmetic shift_right_logical div rem"
    ).split()},
    "bitwise_not": (lambda lax, k: lax.bitwise_not(k), (Y,)),
    "logical shift": (lambda lax, k: lax.shift_right_logical(-k, k * 0 + 3), (Y,)),
    "quotient towards zero": (lambda lax, k: lax.div(k - 5, k * 0 + 2), (Y,)),
    "remainder": (lambda lax, k: lax.rem(k - 5, k * 0 + 3), (Y,)),
    "igamma": (lambda lax, x: lax.igamma(Y + 0.5, x + 0.3), (np.abs(X),)),
    "betainc": (lambda lax, x: lax.betainc(Y + 1.0, Y + 2.0, x / 4), (np.abs(X),)),
    "pow": (lambda lax, x: lax.pow(x, x) + lax.integer_pow(x, 3), (np.abs(X),)),
    "halves": (lambda lax, x: lax.round(x), (np.array([0.5, 1.5, -0.5, -2.5, 0.4, 7.0]),)),
    "halves to even": (lambda lax, x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), (np.array([0.5, 1.5, -0.5, -2.5]),)),
    "clamp": (lambda lax, x: lax.clamp(-0.5, x, 0.7), (X,)),
    "select": (lambda lax, x: lax.select(x > 0, x * 2, x * 3), (X,)),
    "select_n": (lambda lax, x: lax.select_n(x > 0, x * 2, x * 3), (X,)),
    "select_n of ints": (lambda lax, k, x: lax.select_n(k % 3, x, x * 2, x * 3), (Y, X)),
    "complex": (lambda lax, x: lax.imag(lax.conj(lax.complex(x, x * 2))) + lax.real(lax.complex(x, x)), (X,)),
    "broadcast": (lambda lax, x: lax.broadcast(x, (2, 1)), (X,)),
    "broadcast_in_dim": (lambda lax, x: lax.broadcast_in_dim(x, (4, 2, 3), (0, 2)), (X,)),
    "collapse": (lambda lax, x: lax.collapse(x, 1, 3)[..., 0] * lax.collapse(x, 1)[:, :1], (IMAGE,)),
    "expand and squeeze": (lambda lax, x: lax.squeeze(lax.expand_dims(x, (0, 2)), (0,)), (X,)),
    "reshape": (lambda lax, x: lax.reshape(x, (2, 6), (1, 0)), (X,)),
    "rev": (lambda lax, x: lax.rev(x, (0,)), (X,)),
    "transpose": (lambda lax, x: lax.transpose(x, (1, 0)), (X,)),
    "tile": (lambda lax, x: lax.tile(x, (2, 3)), (X,)),
    "split": (lambda lax, x: lax.split(x, (1, 3), 0)[1], (X,)),
    "slice": (lambda lax, x: lax.slice(x, (1, 0), (4, 3), (2, 1)), (X,)),
    "slice_in_dim": (lambda lax, x: lax.slice_in_dim(x, 0, -1, 2, axis=-1), (X,)),
    "index_in_dim": (lambda lax, x: lax.index_in_dim(x, -1, 1) + lax.index_in_dim(x, 0, 1, keepdims=True), (X,)),
    "pad": (lambda lax, x: lax.pad(x, 7.0, ((1, 2, 0), (0, -1, 2))), (X,)),
    "pad that cuts": (lambda lax, x: lax.pad(x, 7.0, ((-1, 2, 1), (-1, -1, 0))), (X,)),
    "concatenate": (lambda lax, x: lax.concatenate([x, x * 2], 1), (X,)),
    "full": (lambda lax, x: lax.full((2, 3), 2.0) * lax.full_like(x, 3, shape=(3,)) + x[:2], (X,)),
    "iota": (lambda lax, x: lax.iota("int32", 3) + lax.broadcasted_iota("int64", (4, 3), 0) * x, (X,)),
    "convert": (lambda lax, x: lax.convert_element_type(x, "float32"), (X,)),
    **{name: (lambda lax, x, name=name: getattr(lax, name)(x, (0,)), (X,)) for name in
        ("reduce_sum", "reduce_prod", "reduce_max", "reduce_min")},
    "reduce_sum of ints": (lambda lax, k: lax.reduce_sum(lax.convert_element_type(k, "int32"), (0, 1)), (Y,)),
    "reduce_and": (lambda lax, x: lax.reduce_and(x > -1, (1,)) | lax.reduce_or(x > 1, (1,)), (X,)),
    "reduce": (lambda lax, x: lax.reduce(x, np.float64(1.0), lambda a, b: a * b, (0,)), (X,)),
    "reduce all": (lambda lax, x: lax.reduce(x, np.float64(0.5), lax.max, (0, 1)), (X,)),
    **{name: (lambda lax, x, name=name: getattr(lax, name)(x, axis=1) + getattr(lax, name)(x, 1, reverse=True), (X,)) for name in
        ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")},
    "argmax": (lambda lax, x: lax.argmax(x, 1, "int32") - lax.argmin(x, 1, "int32"), (X,)),
    "top_k": (lambda lax, x: (lax.top_k(x, 2)[0], lax.top_k(x, 2)[1] * 1.0), (X,)),
    "sort": (lambda lax, x: lax.sort(x, dimension=0), (X,)),
    "sort by two keys": (lambda lax, k, x: lax.sort((k // 3, x, k), dimension=0, num_keys=2), (Y, X)),
    "sort_key_val": (lambda lax, k, x: lax.sort_key_val(k, x), (Y, X)),
    "dot": (lambda lax, x: lax.dot(x, x.T), (X,)),
    "batch_matmul": (lambda lax, x: lax.batch_matmul(x, x), (IMAGE[:, :, :4, :],)),
    "dot_general": (
        lambda lax, x, y: lax.dot_general(x, y, (((3, 1), (0, 2)), ((0,), (3,)))),
        (IMAGE[:, :5], IMAGE[:, :5].transpose(3, 2, 1, 0)),
    ),
    "dot_general without batch": (lambda lax, x: lax.dot_general(x, x, (((0,), (0,)), ((), ()))), (X,)),
    "conv": (lambda lax, x, w: lax.conv(x, w, (2, 1), "SAME"), (IMAGE.transpose(0, 3, 1, 2), FILTERS.transpose(3, 2, 0, 1))),
    "channels last": (
        lambda lax, x, w: lax.conv_general_dilated(x, w, (1, 2), [(1, 0), (2, 1)], (1, 2), (2, 1), ("NHWC", "HWIO", "NHWC")),
        (IMAGE, FILTERS),
    ),
    "lower": (
        lambda lax, x, w: lax.conv_general_dilated(x, w, (2, 3), "SAME_LOWER", dimension_numbers=("NHWC", "HWIO", "NHWC")),
        (IMAGE, FILTERS),
    ),
    "groups of a row": (lambda lax, x, w: lax.conv_general_dilated(x, w, (2,), "VALID", feature_group_count=2), (ROW, KERNEL)),
    "volume": (lambda lax, x, w: lax.conv_general_dilated(x, w, (1, 2, 1), "SAME"), (VOLUME, BLOCK)),
    "negative padding": (lambda lax, x, w: lax.conv_general_dilated(x, w, (1,), [(-1, 2)], feature_group_count=2), (ROW, KERNEL)),
    **{f"transposed, {p} {s} {t}": (
        lambda lax, x, w, p=p, s=s, t=t: lax.conv_transpose(x, w.transpose(0, 1, 3, 2) if t else w, s, p, transpose_kernel=t),
        (IMAGE, FILTERS),
    ) for p in ("SAME", "VALID") for s in ((2, 1), (3, 4)) for t in (False, True)},
    "reduce_window": (lambda lax, x: lax.reduce_window(x, -np.inf, lax.max, (1, 2, 3, 1), (1, 2, 2, 1), "SAME"), (IMAGE,)),
    "sum of windows": (
        lambda lax, x: lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 1), [(1, 1), (0, 0)], window_dilation=(1, 2)),
        (X,),
    ),
    "associative_scan": (lambda lax, x: lax.associative_scan(lax.mul, x), (X,)),
    "associative_scan from the end": (lambda lax, x: lax.associative_scan(lax.max, x, reverse=True, axis=1), (X,)),
    "linear recurrence": (
        lambda lax, x: lax.associative_scan(lambda a, b: (a[0] * b[0], b[0] * a[1] + b[1]), (x, x * 2 - 1), axis=0)[1],
        (RNG.normal(size=(11, 2)),),
    ),
    "products of matrices": (
        lambda lax, x: lax.associative_scan(lambda a, b: a @ b, x, reverse=False), (RNG.normal(size=(5, 3, 3)),)
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def jax() -> Any:
    module = pytest.importorskip("jax")
    with module.enable_x64(True):
        yield module


def _leaves(out: Any) -> list[Any]:
    return list(out) if isinstance(out, (tuple, list)) else [out]


def _loss(out: Any) -> Any:
    total: Any = 0.0
    for x in _leaves(out):
        if x.dtype.kind == "f":
            weights = np.cos(np.arange(float(x.size))).reshape(x.shape)
            total = total + (x * weights).sum()
    return total


@pytest.mark.peers
@pytest.mark.parametrize("name", CASES)
def test_functions_are_those_of_jax(name: str, jax: Any) -> None:
    function, operands = CASES[name]
    expected = _leaves(function(jax.lax, *map(jax.numpy.asarray, operands)))
    for wrap in (lambda f: f, jg.jit):
        found = _leaves(wrap(lambda *xs: function(ours, *xs))(*map(jg.tensor, operands)))
        for a, b in zip(found, expected, strict=True):
            assert a.shape == b.shape and a.dtype == b.dtype
            np.testing.assert_allclose(a.numpy(), np.asarray(b), rtol=1e-9, atol=1e-11)


@pytest.mark.peers
@pytest.mark.parametrize("name", [k for k, (_, xs) in CASES.items() if any(x.dtype.kind == "f" for x in xs) and k != "nextafter"])
def test_gradients_are_those_of_jax(name: str, jax: Any) -> None:
    function, operands = CASES[name]
    places = tuple(k for k, x in enumerate(operands) if x.dtype.kind == "f")
    if not isinstance(_loss(function(ours, *map(jg.tensor, operands))), jg.Tensor):
        pytest.skip("no result has a gradient")
    expected = jax.grad(lambda *xs: _loss(function(jax.lax, *xs)), places)(*map(jax.numpy.asarray, operands))
    slope = jg.grad(lambda *xs: _loss(function(ours, *xs)), places)
    for wrap in (lambda f: f, jg.jit):
        for a, b in zip(wrap(slope)(*map(jg.tensor, operands)), expected, strict=True):
            np.testing.assert_allclose(a.numpy(), np.asarray(b), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 8, 13])
def test_associative_scan_of_any_length(n: int) -> None:
    x = jg.arange(float(n)).reshape(n, 1)[::-1]

    for wrap in (lambda f: f, jg.jit):
        np.testing.assert_array_equal(wrap(lambda x: ours.associative_scan(ours.add, x))(x).numpy(), np.cumsum(x.numpy(), 0))


def test_errors() -> None:
    x = jg.ones((2, 3))
    for call, error, words in (
        (lambda: ours.associative_scan(ours.add, {}), ArgumentError, "no arrays"),
        (lambda: ours.associative_scan(ours.add, (x, x[:1])), ShapeError, "one length"),
        (lambda: ours.associative_scan(lambda a, b: (a, b), x), ArgumentError, "structure"),
        (lambda: ours.pad(x, 0.0, ((0, 0, 0),)), ShapeError, "one is needed for each axis"),
        (lambda: ours.pad(x, 0.0, ((-2, -1, 0), (0, 0, 0))), ShapeError, "cut off more"),
        (lambda: ours.slice(x, (0, 0), (3, 3)), ShapeError, "not within"),
        (lambda: ours.broadcast_in_dim(x, (2, 3), (1, 0)), ShapeError, "in order"),
        (lambda: ours.select_n(x > 0, x, x, x), ArgumentError, "two cases"),
        (lambda: ours.conv_general_dilated(x, x, (1,), "SAME"), ShapeError, "3 to 5 axes"),
        (lambda: ours.conv(jg.ones((1, 1, 4)), jg.ones((1, 1, 2)), (1,), "FULL"), ArgumentError, "SAME_LOWER"),
        (lambda: ours.conv_dimension_numbers((1, 2, 3), (1, 2, 3), ("NC", "IO", "NC")), ArgumentError, "3 letters"),
        (lambda: ours.reduce((x, x), 0.0, ours.add, (0,)), ArgumentError, "several operands"),
    ):
        with pytest.raises(error, match=words):
            call()
    with pytest.raises(AttributeError, match="there is one device"):
        _ = ours.psum
