"""Complex numbers in kernels: the formulas of their parts, how they lie in memory, and what fuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
import jitgrad.numpy as jnp
from jitgrad.compiler.passes.complex_formulas import FORMULAS
from jitgrad.core.dispatch import apply_op
from jitgrad.core.op import OpDef
from tests.complex_numbers.spectral_programs import PROGRAMS

TAKING_COMPLEX = [op for op in FORMULAS if op.takes_complex]
ONE = [op for op in TAKING_COMPLEX if len(op.operands) == 1]
TWO = [op for op in TAKING_COMPLEX if len(op.operands) == 2]
RNG = np.random.default_rng(7)


def complex_grid(parts: list[float], dtype: Any) -> np.ndarray[Any, Any]:
    z = np.empty((len(parts), len(parts)), dtype)
    z.real, z.imag = np.array(parts)[:, None], np.array(parts)[None, :]
    return z.reshape(-1)


def assert_close(found: np.ndarray[Any, Any], expected: np.ndarray[Any, Any], ulps: float) -> None:
    """Both parts within ``ulps`` roundings of the size of the number; NaN and infinities alike."""
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    if expected.dtype.kind == "b":
        np.testing.assert_array_equal(found, expected)
        return
    least = float(np.finfo(expected.dtype).tiny)
    with np.errstate(all="ignore"):
        size = np.hypot(np.real(expected), np.imag(expected))
        for a, b in ((np.real(found), np.real(expected)), (np.imag(found), np.imag(expected))):
            near = np.abs(a - b) <= ulps * np.finfo(b.dtype).eps * np.where(np.isfinite(size), size, np.abs(b)) + least
            bad = ~(near | (a == b) | (np.isnan(a) & np.isnan(b)))
            assert not bad.any(), (found[bad][:4], expected[bad][:4])


def both(op: OpDef, *xs: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    tensors = [jg.tensor(x) for x in xs]
    compiled = jg.jit(lambda *xs: apply_op(op, *xs), check="off")
    return compiled(*tensors).numpy(), apply_op(op, *tensors).numpy()


@pytest.mark.parametrize("dtype", [np.complex128, np.complex64])
@pytest.mark.parametrize("op", ONE, ids=str)
def test_formulas_of_one_number(op: OpDef, dtype: Any) -> None:
    high, low = (1e300, 1e-300) if dtype == np.complex128 else (1e37, 1e-37)
    z = complex_grid([0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 30.0, high, -high, low, -low, 1.0 + 1e-4, np.inf, -np.inf, np.nan], dtype)
    if op.name == "square":  # NumPy's fused multiply-add has another infinity minus infinity
        z = z[(np.abs(z.real) < high) & (np.abs(z.imag) < high)]

    found, expected = both(op, z)

    assert_close(found, expected, 8.0)
    drawn = (RNG.normal(0, 2, 400) + 1j * RNG.normal(0, 2, 400)).astype(dtype)
    assert_close(*both(op, drawn), 8.0)


@pytest.mark.parametrize("dtype", [np.complex128, np.complex64])
@pytest.mark.parametrize("op", TWO, ids=str)
def test_formulas_of_two_numbers(op: OpDef, dtype: Any) -> None:
    high, low = (1e150, 1e-150) if dtype == np.complex128 else (1e18, 1e-18)
    z = complex_grid([0.0, -0.0, 1.0, -1.0, 0.5, -2.5, high, -high, low], dtype)

    found, expected = both(op, z[:, None], z[None, :])

    assert_close(found, expected, 8.0)


@pytest.mark.parametrize("dtype", [np.complex128, np.complex64])
@pytest.mark.parametrize("name", ["exp", "sin", "cos", "sinh", "cosh"])
def test_a_factor_that_overflows_alone(name: str, dtype: Any) -> None:
    exponent = np.log(float(np.finfo(dtype).max)) + 2
    z = np.array([complex(a, b) for a in (exponent, -exponent, 0.03, 3.1) for b in (exponent, 0.03, 3.1)], dtype)
    op = next(op for op in ONE if op.name == name)

    found, expected = both(op, z)

    near = 1e-3 if dtype == np.complex64 else 1e-12
    np.testing.assert_allclose(found.real, expected.real, near)
    np.testing.assert_allclose(found.imag, expected.imag, near)


def test_beside_an_infinite_exponent_an_angle_gives_signs_or_nothing() -> None:
    inf = np.inf
    z = np.array([-inf + 2j, -inf - 2j, complex(-inf, -inf), complex(-inf, inf), complex(inf, inf), complex(inf, np.nan)])

    found, expected = both(next(op for op in ONE if op.name == "exp"), z)

    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found.real), np.signbit(expected.real))
    np.testing.assert_array_equal(np.signbit(found.imag[:4]), np.signbit(expected.imag[:4]))


def test_roots_of_subnormal_numbers_keep_their_digits() -> None:
    z = complex_grid([0.0, 1e-310, -3e-312, 5e-324], np.complex128)

    found, expected = both(next(op for op in ONE if op.name == "sqrt"), z)

    np.testing.assert_allclose(found, expected, 1e-15)


def test_quotients_with_infinite_parts_are_numpys() -> None:
    z = complex_grid([0.0, -0.0, 1.0, -2.5, 1e300, np.inf, -np.inf, np.nan], np.complex128)
    assert_close(*both(next(op for op in TWO if op.name == "divide"), z[:, None], z[None, :]), 8.0)


# --- memory ------------------------------------------------------------------------------------------------------

Z = RNG.normal(0, 1, (4, 6)) + 1j * RNG.normal(0, 1, (4, 6))
X = RNG.normal(0, 1, (4, 6))


def in_place(z: Any) -> Any:
    w = z * 2.0
    w[1:3, ::2] = 1j
    w[0] += z[1]
    w.real[2] = 0.5
    return w, w.imag


def scaled_in_place(z: Any) -> Any:
    z *= 2j
    return z + 1


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "a part twice": lambda z, x: jg.complex(x * 2, x * 2),
    "two arrays of one part": lambda z, x: (jg.complex(y := jnp.exp(x), x), jg.complex(y, y), y),
    "a real number": lambda z, x: jg.complex(x, 0.0),
    "two numbers": lambda z, x: jg.full((3, 2), 1 - 2j) + 0,
    "a number beside rows": lambda z, x: jg.complex(x[:, :1], x[0]),
    "parts and whole": lambda z, x: ((w := z * x).real, w, w.imag),
    "the input itself": lambda z, x: (z, z.real, z.conj()),
    "twice": lambda z, x: ((w := z * 1j), w, w.T),
    "transposed": lambda z, x: jnp.transpose(z * x) @ (z + 1j),
    "reshaped parts": lambda z, x: (z * x).reshape(3, 8).real + z.reshape(3, 8).imag,
    "slices": lambda z, x: (z * x)[1:, ::-2] * z[:-1, ::-2],
    "joined": lambda z, x: jg.concat([z * x, (z + 1j)[:2], x * 1j], 0),
    "joined and rolled": lambda z, x: jg.roll(z * z, 1, 0) - jg.roll(z, (2, -1), (0, 1)),
    "padded": lambda z, x: jnp.pad(z * 1j, ((1, 0), (2, 3))) + 1,
    "stacked": lambda z, x: jg.stack([z * x, x * 2j, z.conj()], -1),
    "selected": lambda z, x: jg.where(x > 0, z, x) * jg.where(z.real > 0, 1j, z),
    "reduced": lambda z, x: (jg.sum(z * x, 0), jg.sum(z), jg.mean(z * 1j, 1), jg.any(z * x), jg.all(z == z), jg.prod(z, 1)),
    "gathered": lambda z, x: jg.take(z * 2, jg.tensor([3, 0, 0]), 0) + z[jg.tensor([1, 2, 3])],
    "transformed": lambda z, x: jnp.fft.ifft2(jnp.fft.fft2(z * x) * jnp.fft.fft2(x)),
    "transformed and moved": lambda z, x: jnp.fft.fft(jnp.fft.fft(z, axis=0).T, axis=0).T - jnp.fft.fft2(z),
    "converted": lambda z, x: (z.to(jg.complex64) * 2, (x > 0).to(jg.complex64), z.to(jg.bool), jg.tensor([1, 2]) * 1j),
    "mixed precision": lambda z, x: z.to(jg.complex64) * x.float() + x.half() * 1j + z,
    "numbers alone": lambda z, x: (jg.sum(x) * 1j + 2, jg.exp(1j * jg.sum(x)), z[0, 0] / (1 + 1j)),
    "empty": lambda z, x: (z[:0] * 1j, jg.sum(z[:0] * x[:0]), jg.exp(z[:, :0]).real),
    "no axes": lambda z, x: (z[0, 0] * x[1, 1], jg.complex(x[0, 0], x[1, 0]), jnp.abs(z[2, 2])),
    "in place": lambda z, x: in_place(z),
    "changed argument": lambda z, x: scaled_in_place(z * 1),
    "flags": lambda z, x: (jnp.isfinite(z), z == z.conj(), z != 1j, jg.logical_not(z), jnp.isclose(z, z + 1e-12)),
}


@pytest.mark.parametrize("layout", ["rows", "columns", "backwards", "strided"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled_equals_eager(name: str, layout: str) -> None:
    function = FUNCTIONS[name]
    change = {
        "rows": lambda a: a.copy(),
        "columns": np.asfortranarray,
        "backwards": lambda a: np.ascontiguousarray(a[::-1, ::-1])[::-1, ::-1],
        "strided": lambda a: np.repeat(np.repeat(a, 2, 0), 3, 1)[::2, ::3],
    }[layout]
    compiled = jg.jit(function, fallback="error")
    for _ in range(2):
        z, x = [jg.asarray(change(a)) for a in (Z, X)]
        expected = function(z, x)
        found = compiled(z, x)
        for a, b in zip(*[r if isinstance(r, tuple) else (r,) for r in (found, expected)], strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            tolerance = 1e-5 if b.dtype in (np.complex64, np.float32) else 1e-12
            np.testing.assert_allclose(a.numpy(), b.numpy(), tolerance, tolerance)


def test_state_that_is_complex_is_written_back() -> None:
    state = jg.tensor(Z)

    @jg.jit
    def step(x: Any) -> Any:
        state[...] = state * 1j + x
        state.real[0] = 1.0
        return jnp.abs(state)

    expected = Z.copy()
    for _ in range(3):
        expected = expected * 1j + X
        expected.real[0] = 1.0
        np.testing.assert_allclose(step(jg.tensor(X)).numpy(), np.abs(expected), 1e-12)
    np.testing.assert_allclose(state.numpy(), expected, 1e-12)


def test_donated_complex_arguments() -> None:
    f = jg.jit(lambda z: z * 1j + 1, donate=(0,))

    for _ in range(3):
        np.testing.assert_allclose(f(jg.tensor(Z)).numpy(), Z * 1j + 1, 1e-12)


# --- decisions ---------------------------------------------------------------------------------------------------


def unfused(name: str, **options: Any) -> list[str]:
    """The ops that a program and its gradient run as library calls."""
    function, arguments = PROGRAMS[name]
    compiled = jg.jit(jg.value_and_grad(function), **options)
    return [step.ops[0] for step in compiled.explain(*map(jg.tensor, arguments)).steps if step.kind == "unfused"]


@pytest.mark.parametrize(
    ("name", "calls"),
    [
        ("spectral_derivative", ["dft"] * 4),
        ("spectral_loss", ["rdft", "rdft", "irdft"]),
        ("polar", []),
        ("evolution", ["dft"] * 16),
        ("low_pass", ["dft"] * 4),
    ],
)
def test_only_transforms_are_calls(name: str, calls: list[str]) -> None:
    assert [op for op in unfused(name) if op != "matmul"] == calls


def test_without_the_pass_complex_ops_are_calls() -> None:
    assert "multiply" in unfused("spectral_derivative", passes={"decompose_complex": False})


def test_a_chain_of_complex_ops_is_one_kernel() -> None:
    f = jg.jit(lambda z, x: jnp.abs(jnp.exp(1j * x) * z + z.conj() / (z + 2)) ** 2)
    z, x = jg.tensor(Z), jg.tensor(X)

    assert f.explain(z, x).fused == 1
    np.testing.assert_allclose(f(z, x).numpy(), np.abs(np.exp(1j * X) * Z + Z.conj() / (Z + 2)) ** 2, 1e-12)


# --- random programs ---------------------------------------------------------------------------------------------

STEPS = [
    "{a} * {b}", "{a} + {b}", "{a} - jg.conj({b})", "{a} / ({b} + 3)", "jg.exp(0.3j * {a})", "jg.where(x > 0, {a}, {b})",
    "jnp.fft.fft({a}) * 0.4", "jnp.fft.ifft({a}, axis=0)", "jg.complex({a}.real, {b}.imag)", "jg.abs({a}) * 1j", "jg.sqrt({a})",
    "jg.roll({a}, 1, 1)", "{a}[::-1]", "jg.concat([{a}[:2], {b}[2:]], 0)", "jg.sum({a}, 0) * 0.2 + {b}", "jg.sin({a} * 0.3)",
    "jnp.fft.irfft(jnp.fft.rfft({a}.real) * 0.5, 6) + {b}", "-{a}", "{a} * x", "jg.log({a} + 4)", "{a}.mT.reshape(4, 6) * {b}",
    "{a} * jg.tensor(0.7)", "jg.square({a}) * 0.2",
]  # fmt: skip


@pytest.mark.parametrize("seed", range(20))
def test_random_programs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    names, lines = ["z", "w"], []
    for k in range(int(rng.integers(3, 10))):
        a, b = [names[-1 - min(len(names) - 1, int(rng.geometric(0.5)) - 1)] for _ in range(2)]
        lines.append(f"    t{k} = {STEPS[int(rng.integers(len(STEPS)))].format(a=a, b=b)}")
        names.append(f"t{k}")
    lines.append(f"    return jg.sum(jg.abs({names[-1]} - {names[-2]}) ** 2 * 0.01) + jg.sum({names[-1]}).real * 0.1")
    namespace: dict[str, Any] = {"jg": jg, "jnp": jnp}
    exec("def program(z, w, x):\n" + "\n".join(lines), namespace)
    eager = jg.value_and_grad(namespace["program"], argnums=(0, 1, 2))
    compiled = jg.jit(eager, fallback="error")
    tensors = [jg.tensor(a) for a in (Z, Z[::-1] + 0.5j, X)]

    for _ in range(2):
        value, grads = eager(*tensors)
        found, found_grads = compiled(*tensors)
        np.testing.assert_allclose(found.numpy(), value.numpy(), 1e-9)
        for a, b in zip(found_grads, grads, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-8, 1e-9 * np.abs(b.numpy()).max())


def test_python_numbers_as_parts() -> None:
    f = jg.jit(lambda x, c: (jg.complex(x, 2), jg.complex(x, c), jg.complex(True, x), jg.complex(c, 1) * x, 2 * jg.complex(1, 3)))
    x = jg.tensor([1.0, 2.0])
    for c in (0.5, 1.5):
        found = f(x, c)
        for a, b in zip(found, f.eager(x, c), strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            np.testing.assert_array_equal(a.numpy(), b.numpy())
