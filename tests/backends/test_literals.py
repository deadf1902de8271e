"""Float literals in kernels: in the text of the first kernel of a structure, parameters of later ones."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.backends.codegen.source import Emitter, marked
from jitgrad.backends.cpu.backend import CpuTarget
from jitgrad.backends.python import PythonTarget
from jitgrad.backends.targets import TARGETS
from jitgrad.compiler.lowering.kernel_ir import KernelParameter
from jitgrad.core.errors import CodegenError, RetraceWarning
from jitgrad.jit.decorator import JitFunction, jit
from jitgrad.runtime.executor.launch import Launch

SPECIAL = (0.1, 0.25, 0.0, -0.0, np.inf, -np.inf, np.nan, 1e300, 5e-324, -1e-45, 0.1 + 1e-16)


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Backends that have met no structure yet: what a test counts does not depend on the tests before it."""
    monkeypatch.setitem(TARGETS, "cpu", CpuTarget())
    monkeypatch.setitem(TARGETS, "python", PythonTarget())
    monkeypatch.setenv("JITGRAD_BACKEND", "cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RetraceWarning)
        yield


@pytest.fixture(params=["cpu", "python"])
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("JITGRAD_BACKEND", request.param)
    return str(request.param)


def kernels_made(f: JitFunction) -> int:
    info = f.cache_info()
    return info.kernels_compiled + info.kernels_from_disk


def array(*shape: int, dtype: str = "f4") -> jg.Tensor:
    return jg.tensor(np.linspace(-2.0, 2.0, int(np.prod(shape)), dtype=dtype).reshape(shape))


def scaled_rows(x: Any, s: float) -> Any:
    y = x * s
    return y - jg.max(y, axis=-1, keepdims=True)


FORMS: dict[str, Callable[[Any, float], Any]] = {
    "flat": lambda x, s: jg.tanh(x * s) + s,
    "twice in a line": lambda x, s: jg.clip(x, -s, s),
    "an attribute": lambda x, s: jg.leaky_relu(x, s),
    "rows": scaled_rows,
    "reduced": lambda x, s: (x * s).sum(),
    "epilogue": lambda x, s: x.sum() * s,
    "columns of the epilogue": lambda x, s: jg.exp(x).sum(0) * s + s,
    "gradient": lambda x, s: jg.grad(lambda v: (jg.sin(v * s) * s).sum())(x),
}


@pytest.mark.parametrize("values", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_many_values_of_a_static_float_are_two_compiles(values: int) -> None:
    x = array(6)
    f = jit(lambda x, s: jg.tanh(x) * s, check="off", static_argnames="s")
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for k in range(values):
            s = 0.35 + 0.7 * k
            np.testing.assert_allclose(f(x, s=s).numpy(), np.tanh(x.numpy()) * np.float32(s), rtol=1e-6)

    assert f.cache_info().traces == values
    assert kernels_made(f) == 2


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("form", FORMS)
def test_every_value_gives_its_own_result(form: str, dtype: str, backend: str) -> None:
    x = array(5, 7, dtype=dtype)
    f = jit(FORMS[form], check="off", static_argnames="s")
    first = 0
    for k in range(6):
        s = 0.37 + 0.11 * k
        np.testing.assert_allclose(f(x, s=s).numpy(), FORMS[form](x, s).numpy(), rtol=1e-5, atol=1e-5)
        first = first or kernels_made(f)

    assert f.cache_info().traces == 6
    assert kernels_made(f) == 2 * first


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_special_numbers_arrive_bit_for_bit(dtype: str, backend: str) -> None:
    x = array(4, dtype=dtype)
    f = jit(lambda x, s: jg.where(x > 0.0, x, s), check="off", static_argnames="s")
    g = jit(lambda x, s: jg.copysign(x, s) * jg.minimum(jg.abs(x), s), check="off", static_argnames="s")
    for s in (0.7, *SPECIAL):
        for ours in (f, g):
            with np.errstate(all="ignore"):
                found, wanted = ours(x, s=s).numpy(), ours.eager(x, s).numpy()
            np.testing.assert_array_equal(found, wanted)
            np.testing.assert_array_equal(np.signbit(found) | np.isnan(found), np.signbit(wanted) | np.isnan(wanted))
    assert kernels_made(f) <= 3  # where the literals of ``x > 0.0`` and ``s`` are both zero, they are one
    assert kernels_made(g) == 2


def test_equal_literals_of_the_first_kernel_may_differ_in_the_next(backend: str) -> None:
    x = array(9)
    f = jit(lambda x, a, b: jg.exp(x * a) * b, check="off", static_argnames=("a", "b"))
    for a, b in ((0.5, 0.5), (0.25, 0.25), (0.1, 0.7), (0.7, 0.1)):
        np.testing.assert_allclose(f(x, a=a, b=b).numpy(), np.exp(x.numpy() * np.float32(a)) * np.float32(b), rtol=1e-6)
    assert kernels_made(f) == 2


def test_the_first_value_keeps_its_own_kernel(backend: str) -> None:
    s, x = 0.5, array(9)
    f = jit(lambda x: jg.exp(x * s), check="off")
    general = []
    for s in (0.5, 0.25, 0.125):  # noqa: B007  (the closure reads it)
        general += [k.kernel.general for k in f.lookup(x).program.steps if isinstance(k, Launch)]
    g = jit(lambda x: jg.exp(x * 0.5), check="off")

    assert general == [False, True, True]
    assert [k.general for k in g.lookup(x).program.kernels] == [False]
    assert kernels_made(g) == 0


def test_shown_source_is_what_runs_with_the_values_of_this_launch(backend: str) -> None:
    s, x = 0.5, array(9)
    f = jit(lambda x: jg.exp(x * s), check="off")
    texts = []
    for s in (0.5, 0.25, -0.0):  # noqa: B007  (the closure reads it)
        texts += [k.source for k in f.kernels(x)]

    assert "to_f32(0.5)" in texts[0] and "c0" not in texts[0]
    for text, value in zip(texts[1:], ("0.25", "-0.0"), strict=True):
        assert "def kernel(x0, y0, c0, start, stop):" in text
        assert f"c0 = {value}\n" in text and "(a1 * c0)" in text


def test_a_float_argument_is_one_trace_and_one_compile(backend: str) -> None:
    f = jit(lambda x, s: jg.tanh(x) * s, check="off")
    x = array(6)
    for k in range(20):
        np.testing.assert_allclose(f(x, 0.1 * k).numpy(), np.tanh(x.numpy()) * np.float32(0.1 * k), rtol=1e-6)
    assert (f.cache_info().traces, kernels_made(f)) == (1, 1)


def test_a_learning_rate_is_one_trace(backend: str) -> None:
    w = jg.tensor(np.ones(3, "f4"), requires_grad=True)
    optimizer = jg.optim.SGD([w], lr=0.1)

    @jit(check="off")
    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = (w * x).sum()
        loss.backward()
        optimizer.step()
        return loss

    x, counts, expected = array(3), [], np.ones(3, "f4")
    for k in range(20):
        optimizer.lr = 0.01 * k
        step(x)
        expected -= np.float32(0.01 * k) * x.numpy()
        counts.append((step.cache_info().traces, kernels_made(step)))
    np.testing.assert_allclose(w.detach().numpy(), expected, rtol=1e-5)
    assert len(set(counts)) == 1


def test_parameters_of_shapes_keep_their_names() -> None:
    out = Emitter()
    params = (KernelParameter("c0", "i64"), KernelParameter("y0", "f64*"))
    with out.block("def kernel(c0, y0, start, stop):"):
        out.line(f"y0[c0] = {marked('to_f32(0.1)', 'x')} + {marked('to_f64(-INF)', 'y')}", "add")
    source = out.source(params)

    assert source.identity == "def kernel(c0, y0, start, stop):\n    y0[c0] = to_f32(0.1) + to_f64(-INF)\n"
    general = source.generalised
    assert general.identity == "def kernel(c0, y0, c1, c2, start, stop):\n    y0[c0] = c1 + c2\n"
    assert general.params == ("i64", "f64*", "f32", "f64")
    assert np.array(general.args[:1], "i8").view("f4")[0] == np.float32(0.1)
    assert np.array(general.args[1:], "i8").view("f8")[0] == -np.inf
    assert general.text.endswith("# add  c1 = 0.1  c2 = -inf\n")


def test_source_that_does_not_parse_is_refused() -> None:
    out = Emitter()
    with out.block("def kernel(start, stop):"):
        out.line("x = = 1")
    with pytest.raises(CodegenError, match="does not parse"):
        out.source(())
