"""PTX of CUDA kernels: text, accesses of 16 bytes, arithmetic as written, and what ptxas says of it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.backends.base import user_functions
from jitgrad.backends.codegen.source import Source
from jitgrad.backends.cuda.capability import Capability
from jitgrad.backends.cuda.compile import CudaCode, compile_source
from jitgrad.backends.cuda.ptx import llvm_version
from jitgrad.backends.cuda.ptxas import Usage, assemble, find_ptxas
from jitgrad.compiler.lowering.kernel_ir import Kernel
from jitgrad.core.dispatch import apply_op
from jitgrad.core.errors import BackendError
from jitgrad.ops.user import elementwise
from jitgrad.testing import sample_operands
from tests.backends.cuda.conftest import RecordingTarget, assert_agree, normal
from tests.backends.cuda.test_programs import FORMS
from tests.compiler.passes.test_gather_places import windows
from tests.ops.test_registry import SCALAR, accepts

AMPERE, HOPPER = Capability(8, 0), Capability(9, 0)
needs_ptxas = pytest.mark.skipif(find_ptxas() is None, reason="ptxas is not installed: pip install nvidia-cuda-nvcc-cu12")
ARCHITECTURES = {"sm_80": AMPERE, "sm_90": HOPPER, "sm_100": HOPPER}
each_capability = pytest.mark.parametrize("capability", [AMPERE, HOPPER], ids=["8.0", "9.0"])
MAX_REGISTERS = 128  # two blocks of 256 threads on each processor


@pytest.fixture
def compile_for(emulated: RecordingTarget, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[CudaCode]]:
    """PTX of the kernels of a function, compiled for arguments and not run."""

    def run(capability: Capability, function: Callable[..., Any], *args: Any) -> list[CudaCode]:
        codes: list[CudaCode] = []

        def load(kernel: Kernel, source: Source, entry: str) -> None:
            codes.append(compile_source(source, entry, capability, user_functions(kernel)))

        emulated._kernels = type(emulated._kernels)(load)
        _ = jg.jit(function, check="off", backend="emulated").lookup(*args).program
        return codes

    return run


def instructions(code: CudaCode, pattern: str) -> set[str]:
    return set(re.findall(rf"\b({pattern}[\w.]*)", code.ptx))


def gelu(x: Any) -> Any:
    return 0.5 * x * (1.0 + jg.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


NAMED: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    "gelu": (gelu, (64, 256)),
    "softmax": (lambda x: jg.softmax(x, axis=1), (64, 1000)),
    "sum of columns": (lambda x: (x * x).sum(axis=0), (64, 1000)),
}


@pytest.mark.parametrize("op", ["fmod", "remainder", "floor_divide"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_remainders_are_exact(op: str, dtype: Any, compile_for: Any) -> None:
    x = jg.tensor(np.ones(512, dtype))
    [code] = compile_for(AMPERE, getattr(jg, op), x, x)
    assert not instructions(code, "fma") and "frem" not in code.llvm


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_remainders_in_functions_of_users_are_exact(dtype: Any, compile_for: Any) -> None:
    @jg.elementwise
    def wrapped(x: Any, y: Any) -> Any:
        while x > 100.0:
            x = x % y + np.fmod(x, 7.0) % 3.0
        return x % 2.5

    x = jg.tensor(np.ones(512, dtype))
    [code] = compile_for(AMPERE, wrapped, x, x)
    assert not instructions(code, "fma") and "frem" not in code.llvm and "llvm.trunc" not in code.llvm


@pytest.mark.parametrize("name", NAMED)
def test_source(name: str, compile_for: Any, golden: Any) -> None:
    function, shape = NAMED[name]
    codes = compile_for(HOPPER, function, jg.tensor(np.ones(shape, np.float32)))
    assert "\n".join(code.source.identity for code in codes) == golden


@pytest.mark.skipif(llvm_version() != 22, reason="the golden texts are of LLVM 22, and differ between versions")
@pytest.mark.parametrize("name", NAMED)
def test_ptx(name: str, compile_for: Any, golden: Any) -> None:
    function, shape = NAMED[name]
    codes = compile_for(HOPPER, function, jg.tensor(np.ones(shape, np.float32)))
    assert "\n".join(code.ptx for code in codes) == golden


def test_vectors_are_one_access(compile_for: Any) -> None:
    (code,) = compile_for(AMPERE, gelu, normal(64, 256))
    assert {"ld.global.nc.v4.b32", "st.global.v4.b32"} <= instructions(code, r"(?:ld|st)\.global") or {
        "ld.global.nc.v4.f32", "st.global.v4.f32",
    } <= instructions(code, r"(?:ld|st)\.global")  # fmt: skip


def test_what_a_kernel_writes_is_not_read_through_the_read_only_cache(compile_for: Any) -> None:
    (code,) = compile_for(HOPPER, lambda x: jg.softmax(x, axis=1), normal(64, 10000))
    assert "ld.global.v4.b32" in instructions(code, r"ld\.global"), "the exponentials are kept in the result's memory"


def test_scratch_is_in_registers_behind_calls_for_numbers(compile_for: Any) -> None:
    """What inlining ``cos`` for large numbers left behind it was memory of each thread."""
    number = np.array(0.3)
    codes = compile_for(AMPERE, lambda s: jg.broadcast_to(jg.cos(s), (64,)) * 1.0, number)

    assert any("cos" in code.source.identity for code in codes)
    assert all("__local_depot" not in code.ptx for code in codes)


def test_arithmetic_is_as_written(compile_for: Any) -> None:
    (code,) = compile_for(HOPPER, lambda x, y: x * y + x / y, normal(64, 256), normal(64, 256))
    found = instructions(code, r"(?:fma|mul|add|div)\.\w+\.\w*f32|(?:mul|add|div|fma)\.rn\.f32|(?:mul|add|div|fma)\.f32")
    assert found == {"mul.rn.f32", "add.rn.f32", "div.rn.f32"}
    assert "ftz" not in code.ptx and "approx" not in code.ptx


def test_square_roots_are_exact(compile_for: Any) -> None:
    (code,) = compile_for(HOPPER, lambda x: jg.sqrt(x * x), normal(64, 256))
    assert instructions(code, r"sqrt") == {"sqrt.rn.f32"}


def test_old_gpus_are_refused() -> None:
    source = Source("", "def kernel(x, iterations):\n    threads(256)\n", ("f32*",))
    with pytest.raises(BackendError, match=r"compute capability 7.5: kernels need 8.0 or higher"):
        compile_source(source, "kernel", Capability(7, 5))


def test_source_that_is_no_kernel_is_refused() -> None:
    source = Source("", "def kernel(x, iterations):\n    x[0] = mystery(1)\n", ("f32*",))
    with pytest.raises(BackendError, match="calls mystery, which is not defined"):
        compile_source(source, "kernel", HOPPER)


@elementwise
def steps_to_one(x: Any) -> Any:
    n = 0.0
    while x > 1.0 and n < 50.0:
        x = x * 0.5
        n = n + 1.0
    return n


@pytest.mark.numba
def test_functions_of_users_are_linked(compile_for: Any) -> None:
    (code,) = compile_for(HOPPER, lambda x: steps_to_one(x) * 2.0, normal(64, 256))
    assert "call" not in code.ptx and ".extern" not in code.ptx


@pytest.mark.numba
def test_functions_of_users_are_emulated(emulated: RecordingTarget) -> None:
    assert_agree(lambda x: steps_to_one(x * 9.0) * 2.0, normal(20, 30), exact=True)


@needs_ptxas
@each_capability
def test_kernels_of_all_forms_assemble_without_spills(capability: Capability, compile_for: Any) -> None:
    codes = []
    for name, (function, shapes, _) in FORMS.items():
        if name != "user function":
            codes += compile_for(capability, function, *(normal(*shape) for shape in shapes))

    assert_fits_all(codes, capability)


@needs_ptxas
@pytest.mark.parametrize("dtype, part", [("e", (0, 4)), ("f", (1, 2)), ("d", (2, 4)), ("i", (0, 4))])
def test_scalar_ops_assemble_without_spills(dtype: str, part: tuple[int, int], compile_for: Any) -> None:
    """Every op of floats in one of their dtypes."""
    codes = []
    for op in [op for k, op in enumerate(SCALAR) if k % part[1] == part[0] and accepts(op, dtype)]:
        operands = sample_operands(op, np.random.default_rng(0), (5, 8), np.dtype(dtype))
        codes += compile_for(HOPPER, lambda *xs, op=op: apply_op(op, *xs, **op.sample_attrs), *map(jg.tensor, operands))

    assert_fits(codes, "sm_90")


@needs_ptxas
@each_capability
@pytest.mark.parametrize("count", [13, 28])
def test_kernels_of_many_operands_fit(count: int, capability: Capability, compile_for: Any) -> None:
    def added(*xs: Any) -> Any:
        total = sum(xs)
        return total, (total * total).sum()

    assert_fits_all(compile_for(capability, added, *[normal(384, 128) for _ in range(count)]), capability)


@needs_ptxas
@each_capability
def test_loops_over_very_many_arrays_keep_no_address_for_each(capability: Capability, compile_for: Any) -> None:
    def chain(*xs: Any) -> Any:
        t, kept = xs[0], []
        for x in xs * 2:
            t = t * x + jg.sqrt(x)
            kept.append(t)
        return kept, (t * t).sum()

    codes = compile_for(capability, chain, *[normal(40, 128, dtype="f8") for _ in range(26)])
    assert max(code.ptx.count(".param .u64 .ptr") + code.ptx.count(".param .b64") for code in codes) > 70
    assert_fits_all(codes, capability)


@needs_ptxas
@each_capability
def test_costly_mathematics_in_float64_fits(capability: Capability, compile_for: Any) -> None:
    def distance(spot: Any, strike: Any, volatility: Any, market: Any) -> Any:
        d = jg.log(spot / strike) / volatility + volatility
        return jg.abs(spot * jg.erf(d) - strike * jg.erf(d - volatility) - market).mean()

    args = [normal(*shape, dtype="f8") for shape in ((300, 200), (200,), (), (300, 200))]
    assert_fits_all(compile_for(capability, distance, *args), capability)


@needs_ptxas
@each_capability
def test_columns_of_bytes_fit(capability: Capability, compile_for: Any) -> None:
    """A loop over the parts of a block, which does not go through scratch, is not unrolled whole."""
    codes = []
    for name, dtype in (("max", "b"), ("min", "B"), ("max", "f")):
        x = jg.tensor(np.ones((6, 40), dtype))
        codes += compile_for(capability, lambda x, name=name: getattr(jg, name)(x, axis=0), x)

    assert_fits_all(codes, capability)


@needs_ptxas
@pytest.mark.numba
@each_capability
def test_kernels_that_need_many_registers_get_them(capability: Capability, compile_for: Any) -> None:
    def values_and_sums(*xs: Any) -> list[Any]:
        """Every exponential is needed until the last result."""
        ys = [jg.exp(x) for x in xs]
        total = sum(ys[k] * ys[-k] for k in range(len(ys)))
        return [(y * total).sum() if k % 2 else y / total for k, y in enumerate(ys)]

    xs = [jg.tensor(np.ones((300, 200))) for _ in range(12)]

    for usage in assert_fits_all(compile_for(capability, values_and_sums, *xs), capability):
        assert 1 <= sum(used.blocks == 1 for used in usage) <= 2


def assert_fits_all(codes: list[CudaCode], capability: Capability) -> list[list[Usage]]:
    """The kernels fit on all architectures that their text is for; gives what they need on each."""
    return [assert_fits(codes, name) for name, of in ARCHITECTURES.items() if of == capability]


def assert_fits(codes: list[CudaCode], architecture: str) -> list[Usage]:
    """The kernels keep everything in registers, and not in many; gives what they need."""
    found = assemble(codes, architecture)
    for code, usage in zip(codes, found, strict=True):
        most = MAX_REGISTERS if ".minnctapersm 2" in code.ptx and usage.blocks == 2 else 2 * MAX_REGISTERS
        assert not usage.spilled and not usage.local and usage.registers <= most, f"{usage}\n{code.source.text}"
    return found


@pytest.mark.numba
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_functions_of_users_call_this_packages_mathematics(dtype: str, compile_for: Any) -> None:
    @elementwise
    def mixed(x: Any, y: Any) -> Any:
        while x > y:
            x = math.log(x) + math.tanh(y) - math.erf(x)
        return math.exp(x) * math.atan2(x, y) + math.floor(y) + math.sqrt(abs(x)) + math.pow(y, x)

    codes = compile_for(HOPPER, mixed, normal(64, 256, dtype=dtype), normal(64, 256, dtype=dtype))
    assert all(".extern" not in code.ptx for code in codes)


@pytest.mark.numba
def test_functions_of_users_that_gpus_do_not_have_are_named(compile_for: Any) -> None:
    @elementwise
    def gamma(x: Any) -> Any:
        while x > 9.0:
            x = x - 1.0
        return math.lgamma(x)

    with pytest.raises(BackendError, match=r"@elementwise gamma: .* calls lgamma"):
        compile_for(HOPPER, gamma, normal(64, 256, dtype="f8"))


@needs_ptxas
def test_many_sums_of_float64_do_not_spill(compile_for: Any) -> None:
    """32 sums beside 38 arrays: with a run for each, this kernel had 24 bytes more than there are registers."""

    def function(x: Any, a: Any) -> Any:
        parts = windows(x[::-1, ::2], 1)
        return sum((jg.tanh(w * a) * (k[0] + 0.5)).sum() + (w * a * a * k[1]).sum() for k, w in parts.items())

    codes = compile_for(HOPPER, jg.value_and_grad(function, argnums=(0, 1)), normal(9, 16, dtype="f8"), jg.tensor(0.7))
    assert all(usage.local == usage.spilled == 0 for usage in assemble(codes, "sm_90"))
