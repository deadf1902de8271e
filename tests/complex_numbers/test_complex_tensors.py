"""Complex tensors as NumPy's and torch's users expect them: creation, parts, in-place changes, autograd, errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
import jitgrad.numpy as jnp
from jitgrad.core.aval import Aval
from jitgrad.core.errors import AutogradError, CheckpointError, DtypeError, GradcheckError, ShapeError
from jitgrad.core.ir import TraceNode, Value
from jitgrad.jit.disturbed_run import Disturbance
from jitgrad.ops.linalg import MATMUL

Z = np.array([1 + 2j, -3 + 0.5j, 0.25 - 1j])


def leaf(x: Any = Z) -> jg.Tensor:
    return jg.tensor(x, requires_grad=True)


def same_as_torch(ours: Any, theirs: Any, *arrays: np.ndarray[Any, Any]) -> None:
    """Values and gradients of the sum of |f|^2."""
    torch = pytest.importorskip("torch")
    xs, ts = [leaf(x) for x in arrays], [torch.tensor(x, requires_grad=True) for x in arrays]
    out, expected = ours(*xs), theirs(*ts)
    np.testing.assert_allclose(out.detach().numpy(), expected.detach().resolve_conj().numpy(), 1e-12, 1e-12)
    (jg.abs(out) ** 2).sum().backward()
    (torch.abs(expected) ** 2).sum().backward()
    for x, t in zip(xs, ts, strict=True):
        assert x.grad.dtype == x.dtype
        np.testing.assert_allclose(x.grad.numpy(), t.grad.resolve_conj().numpy(), 1e-10, 1e-10)


def test_dtypes_of_python_and_numpy_numbers() -> None:
    assert jg.tensor([1j]).dtype == jg.tensor(1 + 2j).dtype == jg.full((2,), 1j).dtype == jg.complex64
    assert jg.tensor(Z).dtype == jnp.array(1j).dtype == jnp.zeros(2, complex).dtype == jg.complex128
    x = jg.tensor([1.0, 2.0])
    assert (x * 1j).dtype == (1j - x).dtype == (x**2j).dtype == jg.complex64
    assert (x.double() * 1j).dtype == (jg.tensor([1, 2]) + 1j).dtype == jg.complex128
    assert (x * np.complex128(1j)).dtype == jg.complex128
    assert jg.zeros(2, dtype=jg.cfloat).dtype == jg.complex64


def test_numbers_out_of_tensors() -> None:
    z = jg.tensor(Z)
    assert z[0].item() == complex(z[0]) == 1 + 2j
    assert z.tolist() == Z.tolist()
    assert repr(jg.tensor([1 + 2j])) == "tensor([1.+2.j], dtype=complex64)"
    assert bool(z[0]) and z.is_complex() and jnp.iscomplexobj(z) and not jg.is_complex(z.real)
    with pytest.raises(TypeError):
        float(z[0])


def test_parts_are_views() -> None:
    z = jg.tensor(Z)
    z.real[0] = 9.0
    z.imag += 1.0
    z.real = z.real * 2
    np.testing.assert_array_equal(z.numpy(), [18 + 3j, -6 + 1.5j, 0.5 + 0j])
    with pytest.raises(DtypeError, match="not complex"):
        z.real.imag = 1.0


def test_in_place_changes_of_parts_compile() -> None:
    def f(z: Any) -> Any:
        w = z * 2.0
        w.real[0] = 5.0
        w.imag *= 3.0
        return w, (jg.abs(w) ** 2).sum()

    for function in (f, jg.jit(f)):
        z = leaf()
        w, loss = function(z)
        loss.backward()
        expected = np.array([5.0, -6.0, 0.5]) + 6j * Z.imag
        np.testing.assert_allclose(w.detach().numpy(), expected)
        np.testing.assert_allclose(z.grad.numpy(), 4 * expected.real * [0, 1, 1] + 12j * expected.imag)


def test_conjugates_angles_and_pairs() -> None:
    z = jg.tensor(Z)
    np.testing.assert_array_equal(z.conj().numpy(), Z.conj())
    np.testing.assert_array_equal(np.conj(z).numpy(), Z.conj())
    np.testing.assert_allclose(jnp.angle(z, deg=True).numpy(), np.angle(Z, deg=True))
    np.testing.assert_allclose(jg.polar(jg.abs(z), jg.angle(z)).numpy(), Z)
    np.testing.assert_array_equal(jg.view_as_complex(jg.view_as_real(z)).numpy(), Z)
    np.testing.assert_array_equal(z.reshape(1, 3).mH.numpy(), Z.conj().reshape(3, 1))
    np.testing.assert_array_equal(jg.complex(jg.tensor([np.inf]), jg.tensor([np.nan])).numpy(), [complex(np.inf, np.nan)])
    np.testing.assert_array_equal(jnp.angle(np.array([-1.0, 0.0, 2.0, np.nan])).numpy(), np.angle([-1.0, 0.0, 2.0, np.nan]))
    with pytest.raises(ShapeError, match="must hold two numbers"):
        jg.view_as_complex(jg.ones(3))
    with pytest.raises(DtypeError, match="only complex tensors"):
        jg.view_as_real(jg.ones(3))


@pytest.mark.parametrize(
    "name",
    "exp log sqrt sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh reciprocal square abs angle sgn rsqrt "
    "log2 log10 log1p exp2 expm1 conj real imag negative".split(),
)
def test_functions_equal_torch(name: str) -> None:
    torch = pytest.importorskip("torch")
    same_as_torch(getattr(jg, name), getattr(torch, name), Z)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "pow", "matmul", "outer", "vdot"])
def test_functions_of_two_equal_torch(name: str) -> None:
    torch = pytest.importorskip("torch")
    same_as_torch(getattr(jg, name), getattr(torch, name), Z, Z[::-1].copy() * (0.5 - 1j))


def test_reductions_and_products_equal_torch() -> None:
    torch = pytest.importorskip("torch")
    a, b = np.outer(Z, Z + 1), np.outer(Z.conj() - 2, Z)
    same_as_torch(lambda x: x.mean(0), lambda x: x.mean(0), a)
    same_as_torch(lambda x: x.prod(1), lambda x: x.prod(1), a)
    same_as_torch(lambda x: jg.cumsum(x, 0), lambda x: torch.cumsum(x, 0), a)
    same_as_torch(lambda x: jg.var(x, dim=0), lambda x: torch.var(x, dim=0), a)
    same_as_torch(lambda x: jg.std(x, dim=1), lambda x: torch.std(x, dim=1), a)
    same_as_torch(lambda x: jg.linalg.norm(x), lambda x: torch.linalg.norm(x), a)
    same_as_torch(lambda x, y: jg.einsum("ij,kj->ik", x, y), lambda x, y: torch.einsum("ij,kj->ik", x, y), a, b)
    same_as_torch(lambda x, y: jg.tensordot(x, y, 1), lambda x, y: torch.tensordot(x, y, 1), a, b)
    same_as_torch(lambda x, y: jg.linalg.vecdot(x, y), lambda x, y: torch.linalg.vecdot(x, y), a, b)
    same_as_torch(lambda x: jg.linalg.inv(x + 2 * jg.eye(3)), lambda x: torch.linalg.inv(x + 2 * torch.eye(3)), a)
    same_as_torch(lambda x: jg.linalg.det(x + 2 * jg.eye(3)), lambda x: torch.linalg.det(x + 2 * torch.eye(3)), a)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4), (0, 4)])
def test_the_first_call_check_knows_how_complex_products_round(shape: tuple[int, ...], dtype: Any) -> None:
    for seed in range(3):  # a warning, of results beyond rounding, is an error in tests
        rng = np.random.default_rng(seed)
        x, y = [(rng.normal(size=s) + 1j * rng.normal(size=s)).astype(dtype) for s in (shape, (5, 4))]
        f = jg.jit(lambda x, y: (x @ y.T) @ y)
        np.testing.assert_allclose(f(jg.tensor(x), jg.tensor(y)).numpy(), (x @ y.T) @ y, rtol=2e-5)


def test_covariances_are_numpys() -> None:
    a = np.outer(Z, Z + 1) + np.arange(9).reshape(3, 3)
    np.testing.assert_allclose(jnp.cov(a).numpy(), np.cov(a))
    np.testing.assert_allclose(jnp.correlate(Z, Z[:2]).numpy(), np.correlate(Z, Z[:2]))
    np.testing.assert_allclose(jnp.nanvar(a).numpy(), np.nanvar(a))
    odd = np.array([complex(np.nan, np.inf)])
    np.testing.assert_allclose(jnp.nan_to_num(odd).numpy(), np.nan_to_num(odd))


def test_hooks_see_the_gradient_of_users() -> None:
    z, seen = leaf(), []
    y = z * (1 + 1j)
    y.retain_grad()
    y.register_hook(lambda g: seen.append(g.numpy()) or g * 2)

    (jg.abs(y) ** 2).sum().backward()

    np.testing.assert_allclose(seen[0], 2 * Z * (1 + 1j))
    np.testing.assert_allclose(y.grad.numpy(), 4 * Z * (1 + 1j))
    np.testing.assert_allclose(z.grad.numpy(), 4 * Z * (1 + 1j) * (1 - 1j))


def test_gradients_through_checkpoints_and_custom_ops() -> None:
    turned = jg.custom_op(forward=lambda x: x * (2 + 1j), vjp=lambda g, _out, _x: g * (2 - 1j), name="turned")

    assert jg.gradcheck(lambda z: turned(jg.checkpoint(lambda x: jg.exp(x * 1j))(z)), Z)
    assert jg.gradcheck(jg.jit(lambda z: turned(jg.exp(z * 1j))), Z)


def test_transforms_of_functions() -> None:
    v = Z[::-1].copy()
    value, tangent = jg.jvp(lambda z: z * z, (jg.tensor(Z),), (jg.tensor(v),))
    np.testing.assert_allclose(tangent.numpy(), 2 * Z * v)
    np.testing.assert_allclose(value.numpy(), Z * Z)
    g = jg.grad(lambda z: jg.sum(z * jg.conj(z)).real)(jg.tensor(Z))
    np.testing.assert_allclose(g.numpy(), 2 * Z)
    assert jg.gradgradcheck(lambda z: z * z * jg.conj(z) + jg.abs(z), Z)
    (product,) = jg.hvp(lambda z: jg.sum(jg.abs(z) ** 4), (jg.tensor(Z),), (jg.tensor(v),))
    np.testing.assert_allclose(product.numpy(), 8 * np.real(Z.conj() * v) * Z + 4 * np.abs(Z) ** 2 * v)


def test_gradcheck_sees_a_missing_conjugate() -> None:
    wrong = jg.custom_op(forward=lambda x: x * (2 + 1j), vjp=lambda g, _out, _x: g * (2 + 1j), name="wrong")

    with pytest.raises(GradcheckError, match="real part of element"):
        jg.gradcheck(wrong, Z)


def test_gradients_at_zero_and_beside_infinities() -> None:
    z = leaf(np.array([0j, 3 + 4j]))
    (jg.abs(z) + jg.angle(z) + jg.real(jg.sgn(z))).sum().backward()
    assert np.isfinite(z.grad.numpy()).all()
    np.testing.assert_array_equal(z.grad.numpy()[0], 0)
    w = leaf(np.array([0j, 1 + 0j]))
    jg.where(w == 0, 0.0, jg.log(w)).sum().real.backward()
    np.testing.assert_array_equal(w.grad.numpy(), [0, 1])


def test_division_and_size_do_not_overflow() -> None:
    big = np.array([1e200 + 1e200j, 1e-200 - 1e-200j])

    for f in (lambda x: x / x, jg.abs, lambda x: 1.0 / x, lambda x: jg.log(x)):
        expected = f(big) if f is not jg.abs else np.abs(big)
        for function in (f, jg.jit(f)):
            found = function(jg.tensor(big)).numpy()
            np.testing.assert_allclose(found, np.asarray(expected), 1e-12)


REFUSED = {
    "less": lambda z: z < z,
    "maximum": lambda z: jg.maximum(z, 1.0),
    "floor_divide": lambda z: z // 2,
    "remainder": lambda z: z % 2,
    "max": lambda z: jg.max(z),
    "argsort": lambda z: jg.sort(z),
    "sigmoid": lambda z: jg.sigmoid(z),
    "softmax": lambda z: jg.softmax(z),
    "mse_loss": lambda z: jg.mse_loss(z, z),
    "normalisation": lambda z: jg.layer_norm(z, (3,)),
    "imaginary": lambda z: z.astype(jg.float64),
    "clip": lambda z: jg.clip(z, 0, 1),
    "logaddexp": lambda z: jg.logaddexp(z, z),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_complex_numbers_do_not_have_is_refused(name: str) -> None:
    for function in (REFUSED[name], jg.jit(REFUSED[name])):
        with pytest.raises(DtypeError, match=f"(?s){name}.*(complex|real)"):
            function(jg.tensor(Z))


def test_losses_are_real() -> None:
    with pytest.raises(AutogradError, match="a loss must be real"):
        leaf().sum().backward()
    with pytest.raises(AutogradError, match="a loss must be real"):
        jg.grad(lambda z: z.sum())(jg.tensor(Z))
    with pytest.raises(AutogradError, match="jacobian: a result is complex"):
        jg.jacobian(lambda z: z * 2j)(jg.tensor(Z))
    with pytest.raises(ValueError, match=r"jg\.complex\(re, im\)"):
        jg.optim.SGD([leaf()], lr=0.1)


def test_numbers_as_arguments_of_compiled_functions_are_static() -> None:
    f = jg.jit(lambda x, c: x * c)
    x = jg.tensor([1.0, 2.0])

    np.testing.assert_array_equal(f(x, 2j).numpy(), [2j, 4j])
    np.testing.assert_array_equal(f(x, 2j).numpy(), [2j, 4j])
    np.testing.assert_array_equal(f(x, 1 - 1j).numpy(), [1 - 1j, 2 - 2j])
    assert f.cache_info().traces == 2


def test_files(tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    with pytest.raises(CheckpointError, match=r"complex128.*save \.real and \.imag"):
        jg.save({"z": jg.tensor(Z)}, tmp_path / "z.safetensors")


def test_dlpack() -> None:
    torch = pytest.importorskip("torch")
    assert torch.from_dlpack(jg.tensor(Z)).tolist() == Z.tolist()
    assert jg.from_torch(torch.tensor(Z)).tolist() == Z.tolist()


def test_the_check_knows_how_products_of_complex_matrices_round() -> None:
    """Each part of an element is off by roundings of its row and column, also where it is nearly zero."""
    x = Value(Aval((3, 3), np.dtype(np.complex128)))
    node = TraceNode(MATMUL, (x, x), (Value(x.aval),))
    a = np.array([[1, 1j, 1], [1, 1, 1], [1, 2, 3]]) / 3
    exact = a @ a

    moved = Disturbance(1).run(node, [a, a], {})

    for part in (moved.real - exact.real, moved.imag - exact.imag):
        assert part.any() and np.abs(part).max() < 1e-13
