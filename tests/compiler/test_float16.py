"""float16 in kernels: eager's bits for every value and op, conversions, reductions, gradients, and errors."""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.compiler.plan import KernelStep
from jitgrad.core.aval import Aval
from jitgrad.core.dispatch import apply_op
from jitgrad.core.errors import DtypeError
from jitgrad.core.op import REGISTRY, Kind, OpDef
from jitgrad.eager import float16
from jitgrad.jit.decorator import jit
from jitgrad.testing import sample_operands
from tests.machine_code import CPUS, needs_f16c, needs_x86, program_assembly

EVERY = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 0.1, 65504.0, -65504.0, 6e-8, -6e-8, 6.2e-5, 2049.0, np.inf, -np.inf, np.nan], "e")
FLOATS, INTEGERS = ("e", "f", "d"), ("?", "b", "h", "i", "l", "B", "H", "I", "L")


def takes_half(op: OpDef) -> bool:
    avals = [Aval((), float16.HALF)] * len(op.operands)
    try:
        op.abstract(avals, op.sample_attrs)
    except DtypeError:
        return False
    return True


OPS = [
    op
    for op in REGISTRY.values()
    if op.kind is Kind.ELEMENTWISE and op.domain and op.scalar and not op.name.startswith("philox") and takes_half(op)
]
IN_KERNELS = [op for op in OPS if op.name != "nextafter"]


def applied(op: OpDef) -> Callable[..., Any]:
    return lambda *xs: apply_op(op, *xs, **op.sample_attrs)


def operands(op: OpDef, first: np.ndarray[Any, Any]) -> list[Any]:
    """``first``, and the same in other orders."""
    rng = np.random.default_rng(0)
    found = [first, *(rng.permutation(first) for _ in op.operands[1:])]
    return [x > 0 if name == "bool" else x for x, name in zip(found, op.domain, strict=True)]


def array(*shape: int, dtype: str = "e") -> Any:
    return jg.tensor(np.random.default_rng(3).normal(size=shape).astype(dtype))


@needs_f16c
@pytest.mark.numba
@pytest.mark.parametrize("op", IN_KERNELS, ids=str)
def test_every_value_has_the_bits_of_eager(op: OpDef, same: Any, steps_of: Any) -> None:
    xs = operands(op, EVERY)

    compiled = same(applied(op), *xs)

    assert steps_of(compiled, *xs) == ["kernel"]


@pytest.mark.parametrize("op", OPS, ids=str)
def test_special_values_step_by_step(op: OpDef, same: Any) -> None:
    same(applied(op), *operands(op, SPECIAL))


@pytest.mark.parametrize("op", OPS, ids=str)
def test_eager_results_are_those_of_float32_rounded(op: OpDef) -> None:
    """Of what NumPy would compute in float16, all but a few differ by no bit, and none by more than one."""
    xs = sample_operands(op, np.random.default_rng(1), (9, 700), np.float16)
    wide = [x.astype(np.float32) if x.dtype == float16.HALF else x for x in xs]
    found = np.asarray(applied(op)(*xs).numpy())

    if op.name in ("nextafter", "astype") or found.dtype != float16.HALF:
        return
    expected = np.asarray(applied(op)(*wide).numpy()).astype(np.float16)
    apart = np.abs(found.astype(np.float32) - expected.astype(np.float32))
    assert (apart <= np.abs(np.spacing(expected)).astype(np.float32)).all()
    assert np.count_nonzero(apart) <= 5


@needs_f16c
@pytest.mark.numba
@pytest.mark.parametrize("ufunc", [np.add, np.subtract, np.multiply, np.divide])
def test_arithmetic_is_numpys(ufunc: np.ufunc) -> None:
    rng = np.random.default_rng(4)
    x, y = rng.permutation(np.tile(EVERY, 8)), rng.permutation(np.tile(EVERY, 8))

    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(jit(lambda x, y: ufunc(x, y), check="off")(x, y).numpy(), ufunc(x, y))


def around_midpoints() -> np.ndarray[Any, Any]:
    """float64 values on and next to the middle between neighbouring float16, which two roundings would get wrong."""
    exact = EVERY[np.isfinite(EVERY)].astype(np.float64)
    middle = (exact + np.nextafter(EVERY[np.isfinite(EVERY)], np.float16(np.inf)).astype(np.float64)) / 2
    middle = np.where(np.isfinite(middle), middle, 65520.0 * np.sign(exact))
    near = [middle * (1 + sign * 2.0**-k) for sign in (-1, 1) for k in (52, 40, 29, 24, 20)]
    rest = [1e-320, -1e-320, 1e-40, 3e38, 1e300, -1e300, np.inf, -np.inf, np.nan, 0.0, -0.0, 2.0**-25, -(2.0**-25)]
    return np.concatenate([exact, middle, *near, rest])


@needs_f16c
@pytest.mark.numba
@pytest.mark.parametrize("dtype", ["f", "d"])
def test_floats_become_half_with_one_rounding(dtype: str) -> None:
    with np.errstate(all="ignore"):
        x = around_midpoints().astype(dtype)
        found = jit(lambda x: x.astype("float16"), check="off")(jg.tensor(x)).numpy()

        np.testing.assert_array_equal(found, x.astype(np.float16))
        np.testing.assert_array_equal(np.signbit(found) | np.isnan(found), np.signbit(x) | np.isnan(x))


@needs_f16c
@pytest.mark.numba
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_to_half_and_back(dtype: str, same: Any) -> None:
    rng = np.random.default_rng(5)
    low, high = (0, 1) if dtype == "?" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    small = np.arange(max(low, -5000), min(high, 70_000) + 1)
    x = np.concatenate([rng.integers(low, high, 3000, dtype="L" if dtype == "L" else "l", endpoint=True), small]).astype(dtype)
    finite = EVERY[np.isfinite(EVERY) & (np.float16(0 if dtype in "?BHIL" else -128) <= EVERY) & (EVERY < 128)]

    same(lambda x: x.astype("float16"), jg.tensor(x))
    same(lambda x: x.astype(np.dtype(dtype)), jg.tensor(finite))


@needs_f16c
@pytest.mark.numba
def test_dtypes_meet(same: Any, steps_of: Any) -> None:
    def f(h: Any, s: Any, d: Any, i: Any, b: Any) -> Any:
        mixed = [h + s, h * d, h + i, h * b, jg.where(b, h, s), jg.where(h > s, h, h * 2), h < d, h == i, jg.maximum(h, i)]
        return [*mixed, (h.astype("float32") * 1.001).astype("float16"), jg.exp(i), jg.exp(b), h * 0.1 + 2, h ** 2]

    h, s, d = (jg.tensor(np.roll(np.tile(SPECIAL, 5), k).astype(t)) for k, t in enumerate(FLOATS))
    i, b = jg.tensor(np.arange(70).astype("b")), jg.tensor(np.arange(70) % 3 > 0)

    assert set(steps_of(same(f, h, s, d, i, b), h, s, d, i, b)) == {"kernel"}


@needs_f16c
@pytest.mark.numba
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_shapes_and_layouts(threads: int, same: Any) -> None:
    wide = np.random.default_rng(6).normal(size=(600, 240)).astype("e")
    views = [wide, wide[::2, ::3], wide[::-2, ::-3], wide.T, wide[:, :1], wide[3], wide[2, 1], wide[:0], wide[:40, :4]]

    def f(*xs: Any) -> Any:
        return [(jg.tanh(x) * 0.3 + x, x + 1 if x.ndim < 2 else x + x[:1], x.T * 2) for x in xs]

    before = jg.get_num_threads()
    jg.set_num_threads(threads)
    try:
        same(f, *views)
    finally:
        jg.set_num_threads(before)


REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sum": lambda x, a: x.sum(a),
    "prod": lambda x, a: (1 + x * 0.01).prod(a),
    "max": lambda x, a: x.max(a),
    "min": lambda x, a: x.min(a),
    "any": lambda x, a: (x > 1).any(a),
    "all": lambda x, a: x.all(a),
    "mean": lambda x, a: jg.tanh(x).mean(a),
    "var": lambda x, a: x.var(a),
    "softmax": lambda x, a: jg.softmax(x, a),
    "logsumexp": lambda x, a: jg.logsumexp(x, a),
}


@needs_f16c
@pytest.mark.numba
@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("shape", [(3000, 40), (40, 3000), (9, 5000), (3, 50, 70), (2000, 5), (1, 7)])
def test_reductions(name: str, shape: tuple[int, ...], same: Any, steps_of: Any) -> None:
    """Within one unit in the last place: both sum in float32 or better, and round once."""
    f = lambda x: [REDUCTIONS[name](x, a) for a in (0, -1, None, tuple(range(len(shape))))[: 2 if name == "softmax" else 4]]  # noqa: E731
    x = array(*shape)

    compiled = same(f, x, ulp=1.0)

    assert set(steps_of(compiled, x)) == {"kernel"}


def test_sums_are_not_rounded_before_they_are_complete(same: Any) -> None:
    ones, large = jg.tensor(np.ones((4096, 2), "e")), jg.tensor(np.array([[60000, 60000, -60000]], "e").T)

    assert ones.sum(0).tolist() == [4096, 4096]
    assert large.sum(0).tolist() == [60000]
    assert np.isinf((jg.abs(large)).sum(0).numpy()).all()
    same(lambda x, y: (x[:70].sum(0), y.sum(0), jg.abs(y).sum(0)), ones, large)


@needs_f16c
@pytest.mark.numba
def test_products_with_a_vector(same: Any, steps_of: Any) -> None:
    x, w, v = array(300, 130), array(130), array(300)
    f = lambda x, w, v: (x @ w, x.T @ v, x @ w[:, None])  # noqa: E731

    assert set(steps_of(same(f, x, w, v, ulp=2.0, atol=1e-3), x, w, v)) == {"kernel"}


@needs_f16c
@pytest.mark.numba
def test_gradients(same: Any, steps_of: Any) -> None:
    def loss(x: Any, b: Any) -> Any:
        h = jg.gelu(x * b + 0.5) + jg.sqrt(jg.abs(x)) / (1 + jg.sigmoid(b))
        return (jg.softmax(h, -1) * h).sum()

    x, b = array(64, 33), array(33)
    both = jg.value_and_grad(loss, argnums=(0, 1))

    compiled = same(both, x, b, rtol=2e-2, atol=2e-2)
    exact = both(x.astype("float64"), b.astype("float64"))
    assert set(steps_of(compiled, x, b)) == {"kernel"}
    for found, right in zip(compiled(x, b)[1], exact[1], strict=True):
        assert found.dtype == float16.HALF
        np.testing.assert_allclose(found.numpy(), right.numpy(), rtol=2e-2, atol=2e-2)


@needs_f16c
@pytest.mark.numba
@pytest.mark.parametrize("op", [op for op in IN_KERNELS if op.vjp is not None and op.sample_attrs == {}], ids=str)
def test_elementwise_gradients_have_the_bits_of_eager(op: OpDef, same: Any) -> None:
    xs = [jg.tensor(x) for x in sample_operands(op, np.random.default_rng(7), (5, 30), np.float16)]
    floating = tuple(k for k, x in enumerate(xs) if x.dtype == float16.HALF)

    same(jg.grad(lambda *xs: applied(op)(*xs).astype("float32").sum(), argnums=floating), *xs)


SHAPES = [
    ((30, 40), (40, 20)), ((3, 30, 40), (40, 20)), ((2, 1, 5, 6), (3, 6, 4)), ((40,), (40, 5)), ((5, 0), (0, 3)), ((9,), (9,)),
]  # fmt: skip


@pytest.mark.numba
@pytest.mark.parametrize("shapes", SHAPES)
def test_matrix_products_are_float32s_rounded_once(shapes: tuple[tuple[int, ...], ...], same: Any) -> None:
    """Of small whole numbers all sums are exact, and more than float16 can hold."""
    rng = np.random.default_rng(1)
    x, y = (jg.tensor(rng.integers(-40, 40, shape).astype(float16.HALF)) for shape in shapes)
    exact = (x.numpy().astype(np.float64) @ y.numpy().astype(np.float64)).astype(float16.HALF)

    for f in (lambda x, y: x @ y, lambda x, y: jg.astype(x, "int8") @ y):
        same(f, x, y)
        assert f(x, y).dtype == float16.HALF
        np.testing.assert_array_equal(f(x, y).numpy(), exact)
    same(jg.grad(lambda x, y: (x @ y).astype("float32").sum(), argnums=(0, 1)), x, y)


@needs_f16c
@pytest.mark.numba
def test_conversions_around_a_matrix_product_are_parts_of_kernels(same: Any, steps_of: Any) -> None:
    def f(x: Any, y: Any) -> Any:
        return jg.relu(jg.relu(x) @ jg.relu(y) + 0.5)

    x, y = array(30, 40), array(40, 20)

    compiled = same(f, x, y, rtol=1e-3, atol=1e-3)
    assert [s for s in steps_of(compiled, x, y) if s != "kernel"] == ["matmul"]


@pytest.mark.filterwarnings("ignore:overflow")
def test_a_product_beyond_float16_is_infinite(same: Any) -> None:
    same(lambda x: x @ x.T, jg.full((3, 4), 300.0, dtype="float16"))


@needs_f16c
@pytest.mark.numba
@pytest.mark.filterwarnings("ignore:overflow")
def test_numbers_become_parameters(same: Any) -> None:
    """The second number compiles the general form, in which it is an argument of the kernel."""
    x = array(100)

    for slope in (0.1, 0.3, 1e-7, 1e9, float("nan")):
        same(lambda x, s=slope: x * s + 1, x)
    same(lambda x, a: x * a, x, 0.7)


@needs_f16c
@pytest.mark.numba
def test_state_is_updated_in_place() -> None:
    def step(p: Any, g: Any) -> None:
        p -= 0.1 * g

    p, q, g = array(5000), array(5000), array(5000, dtype="e")
    jit(step, check="off")(p, g)
    step(q, g)

    np.testing.assert_array_equal(p.numpy(), q.numpy())


@needs_f16c
@pytest.mark.numba
def test_users_expressions(same: Any, steps_of: Any) -> None:
    @jg.elementwise
    def bend(x, y, *, slope):  # type: ignore[no-untyped-def]
        return x * x + 0.1 if x > 0 and not y > 1 else (x / 3) ** 2 * slope

    scaled = jg.elementwise("scaled(x, *, slope)", scalar="x * slope")
    root = jg.elementwise("root(x)", scalar="x ** 0.3")

    def f(x: Any, y: Any) -> Any:
        return bend(x, y, slope=0.7), scaled(x, slope=0.1), root(x)

    compiled = same(f, EVERY, EVERY[::-1])
    assert set(steps_of(compiled, EVERY, EVERY[::-1])) == {"kernel"}
    same(jg.grad(lambda x: bend(x, x, slope=0.7).sum()), array(64))


def test_users_functions_stay_calls(same: Any, steps_of: Any) -> None:
    @jg.elementwise
    def bend(x):  # type: ignore[no-untyped-def]
        for _ in range(3):
            x = x * x / 2
        return x

    x = array(40)

    assert steps_of(same(lambda x: bend(x), x), x) == ["bend"]


def test_without_conversion_instructions_nothing_is_compiled(
    monkeypatch: pytest.MonkeyPatch, same: Any, steps_of: Any
) -> None:
    for place in ("fusion.group", "passes.upcast_fp16", "passes.decompose_matvec"):
        monkeypatch.setattr(f"jitgrad.compiler.{place}.in_kernels", lambda: False)
    x = array(6, 7)

    compiled = same(lambda x: (jg.tanh(x) * x, x.sum(0), x.max(1), x @ x[0]), x)

    assert "kernel" not in steps_of(compiled, x)


@needs_f16c
@needs_x86
@pytest.mark.numba
@pytest.mark.parametrize("cpu", CPUS)
def test_conversions_are_vector_instructions(cpu: str) -> None:
    text = program_assembly(cpu, jit(lambda x: jg.tanh(x) * 0.5, check="off"), array(4096))

    assert "vcvtph2ps" in text and "vcvtps2ph" in text
    assert not any(name in text for name in ("__extendhfsf2", "__truncsfhf2", "__truncdfhf2"))
    narrowed = jit(lambda x: x.astype("float16"), check="off")
    assert "__truncdfhf2" not in program_assembly(cpu, narrowed, array(4096, dtype="d"))


@needs_f16c
def test_kernel_source(golden: Any) -> None:
    f = lambda x, row: (jg.leaky_relu(x - row, 0.1) / 3).sum(0)  # noqa: E731
    steps = jit(f, check="off").lookup(array(40, 50), array(50)).program.plan.steps
    kernels = [s for s in steps if isinstance(s, KernelStep)]

    assert len(kernels) == len(steps)
    assert "\n".join(_source(s) for s in kernels) == golden


def _source(step: KernelStep) -> str:
    from jitgrad.backends.cpu.emit import emit_kernel

    return "\n".join(s.identity for s in emit_kernel(step.lowered.kernel, step.lowered.schedule) if s is not None)


def test_half_is_float16_and_not_bfloat16() -> None:
    assert not hasattr(jg, "bfloat16")
    assert platform.machine() not in ("x86_64", "AMD64") or float16.in_kernels() == bool(float16.FEATURES["F16C"])
