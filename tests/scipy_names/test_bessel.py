"""Bessel functions, exponential integrals and what is SciPy's own with gradients: values, edges, gradients, @jit, vmap."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import AutogradError
from jitgrad.scipy import special
from jitgrad.testing import check_grads

scipy: Any = pytest.importorskip("scipy.special")
INF, NAN = math.inf, math.nan
KERNELS = "j0 j1 y0 y1 k0 k1 k0e k1e exp1 expi".split()
X = np.concatenate([[0.0, -0.0, INF, -INF, NAN, -2.0, -700.0], np.geomspace(1e-310, 600.0, 300)])
POSITIVE = np.array([0.3, 1.2, 3.7])
# SciPy's functions of several arguments: their first operands, and whether these have gradients
OF_SCIPY = {
    "jv": (1.5,), "yv": (0.5,), "iv": (2.0,), "kv": (1.5,), "ive": (1.0,), "kve": (0.5,), "struve": (1.0,), "modstruve": (0.5,),
    "expn": (3,), "dawsn": (), "erfi": (), "spence": (), "hyp0f1": (1.5,), "hyp1f1": (0.5, 1.5), "jn": (2,), "yn": (1,),
    "kn": (2,), "spherical_jn": (2,), "spherical_yn": (1,), "spherical_in": (2,), "spherical_kn": (1,),
}  # fmt: skip


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_have_scipys_values_and_edges(name: str) -> None:
    found, expected = getattr(special, name)(X).numpy(), getattr(scipy, name)(X)

    assert not name.startswith(("j", "y")) or found[2] == 0.0  # at infinity, where SciPy's are NaN
    finite = np.isfinite(expected)
    expected[2:4] = found[2:4] if name.startswith(("j", "y")) else expected[2:4]
    np.testing.assert_array_equal(found[~finite], expected[~finite])
    scale = np.maximum(np.abs(expected[finite]), np.sqrt(2 / np.pi / np.maximum(np.abs(X[finite]), 1)) * (name[0] in "jy"))
    assert (np.abs(found[finite] - expected[finite]) <= 1e-13 * scale + 1e-300).all()


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_have_gradients_of_two_orders_and_keep_float32(name: str) -> None:
    function = getattr(special, name)
    check_grads(function, [POSITIVE], order=2)

    assert function(jg.tensor([0.5])).dtype == jg.float32 and function(3).dtype.kind == "f"
    compiled = jg.jit(jg.value_and_grad(lambda x: function(x).sum()))
    x = jg.tensor(np.linspace(0.1, 30.0, 40)[::-2])
    for got, want in zip(compiled(x), compiled.eager(x), strict=True):
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-12, atol=1e-15)


def test_slopes_of_bessel_functions_at_zero() -> None:
    zero = jg.tensor([0.0], dtype=jg.float64)

    assert jg.grad(lambda x: special.j1(x).sum())(zero).item() == 0.5
    assert jg.grad(jg.grad(lambda x: special.j0(x).sum()))(zero[0]).item() == -0.5


@pytest.mark.parametrize("name", OF_SCIPY)
def test_scipys_own_have_gradients_eager_compiled_and_under_vmap(name: str) -> None:
    first, ours = OF_SCIPY[name], getattr(special, name)
    np.testing.assert_allclose(ours(*first, POSITIVE).numpy(), getattr(scipy, name)(*first, POSITIVE), rtol=1e-14)
    check_grads(lambda x: ours(*first, x), [POSITIVE * 0.7], order=1, rtol=1e-5)

    slope = jg.grad(lambda x: ours(*first, x).sum())
    x = jg.tensor(POSITIVE)
    np.testing.assert_allclose(jg.jit(slope, backend="python")(x).numpy(), slope(x).numpy(), rtol=1e-12)
    np.testing.assert_allclose(jg.vmap(jg.grad(lambda x: ours(*first, x)))(x).numpy(), slope(x).numpy(), rtol=1e-12)


@pytest.mark.parametrize(("name", "count"), [("airy", 4), ("sici", 2), ("shichi", 2), ("fresnel", 2)])
def test_functions_with_several_results_have_the_gradient_of_each(name: str, count: int) -> None:
    function = getattr(special, name)

    np.testing.assert_array_equal([part.numpy() for part in function(POSITIVE)], getattr(scipy, name)(POSITIVE))
    for part in range(count):
        check_grads(lambda x, k=part: function(x)[k], [POSITIVE], order=2)


def test_functions_of_operands_with_gradients() -> None:
    check_grads(special.owens_t, [POSITIVE, POSITIVE[::-1].copy()], order=1)
    check_grads(special.ellipeinc, [POSITIVE, np.array([0.2, 0.5, 0.9])], order=1, rtol=1e-5)
    check_grads(lambda x: special.ellipkinc(x, 0.4) + special.hyp2f1(0.5, 1.0, 2.5, x * 0.2), [POSITIVE], order=2, rtol=1e-5)
    check_grads(lambda x: special.expn(0, x) + special.expn(1, x), [POSITIVE], order=1)
    check_grads(lambda x: special.spherical_jn(1, x, derivative=True), [POSITIVE], order=1)
    at = np.array([0.0, 2.0])
    np.testing.assert_allclose(special.spherical_jn(1, at, True).numpy(), scipy.spherical_jn(1, at, True))


def test_an_order_has_no_gradient() -> None:
    order = jg.tensor(1.5, requires_grad=True)

    with pytest.raises(AutogradError, match=r"jv has no gradient with respect to 'v'; pass a number or .* v\.detach\(\)"):
        special.jv(order, 2.0).backward()


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("bessel_j0", "j0"), ("bessel_j1", "j1"), ("bessel_y0", "y0"), ("bessel_y1", "y1"), ("modified_bessel_k0", "k0"),
        ("modified_bessel_k1", "k1"), ("scaled_modified_bessel_k0", "k0e"), ("scaled_modified_bessel_k1", "k1e"),
    ],
)  # fmt: skip
def test_torchs_names(name: str, ours: str) -> None:
    x = jg.tensor([0.5, 2.0])

    assert getattr(jg.special, name)(x).tolist() == getattr(special, ours)(x).tolist()


def test_airy_and_jaxs_list_of_orders() -> None:
    from jitgrad.jax.scipy.special import bessel_jn

    found = bessel_jn(POSITIVE, v=2).numpy()

    np.testing.assert_allclose(found, [scipy.jv(n, POSITIVE) for n in range(3)], rtol=1e-14)
    assert jg.special.airy_ai(POSITIVE).tolist() == scipy.airy(POSITIVE)[0].tolist()
