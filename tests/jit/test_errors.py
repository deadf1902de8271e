"""Errors of @jit: untraceable functions, failures while tracing, and mismatches in the first-call check."""

from __future__ import annotations

import ast
import math
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.backends.codegen import scalar
from jitgrad.core.context import current_interpreter
from jitgrad.core.errors import (
    EffectWarning,
    FallbackWarning,
    LeakedTracerError,
    MismatchWarning,
    ShapeError,
    TracedValueError,
    UnguardableError,
)
from jitgrad.jit.decorator import jit

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def python_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", "python")


def tensor(*shape: int) -> jg.Tensor:
    return jg.tensor(RNG.normal(size=shape))


def assert_nothing_is_being_traced() -> None:
    assert not current_interpreter.get().tracing
    np.testing.assert_array_equal((jg.ones(2) + 1.0).numpy(), [2.0, 2.0])


# --- values that do not exist while tracing -------------------------------------------------------------------------

ASKS: dict[str, Callable[[Any], Any]] = {
    "float": lambda x: float(x.sum()),
    "square_root": lambda x: math.sqrt(x.sum().item()),
    "tolist": lambda x: x.tolist(),
    "numpy": lambda x: x.numpy(),
    "asarray": lambda x: np.asarray(x),
}
REMEDIES = {
    "float square_root": "Keep the number a tensor",
    "tolist numpy asarray": "Return the tensor and ask for its values after the call",
}


@pytest.mark.parametrize("name", ASKS)
def test_asking_for_a_value_names_the_line_and_a_remedy(name: str) -> None:
    with pytest.raises(TracedValueError) as caught:
        jit(ASKS[name])(tensor(3))

    text = str(caught.value)
    line = ASKS[name].__code__.co_firstlineno
    assert re.search(rf"test_errors\.py:{line}\b", text), text
    assert next(remedy for names, remedy in REMEDIES.items() if name in names.split()) in text
    assert '@jit(fallback="eager")' in text
    assert_nothing_is_being_traced()


@pytest.mark.parametrize("name", ["float", "tolist"])
def test_fallback_warns_once_and_runs_eagerly(name: str) -> None:
    f = jit(ASKS[name], fallback="eager")
    x = tensor(3)

    with pytest.warns(FallbackWarning, match="runs eagerly"):
        f(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found, expected = f(x), ASKS[name](x)
    np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))
    assert f.cache_info().fallbacks == 1


def test_a_fallback_is_per_signature() -> None:
    f = jit(lambda x: x * 2.0 if x.ndim == 1 or float(x.sum()) > 0 else x, fallback="eager")

    with pytest.warns(FallbackWarning):
        f(tensor(2, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(tensor(2))
    assert f.cache_info().programs == 1


# --- exceptions and leaks -------------------------------------------------------------------------------------------


def test_an_exception_in_the_function_leaves_nothing_behind() -> None:
    counter = jg.tensor(np.zeros(()))
    fail = True

    def f(x: Any) -> Any:
        counter.add_(1.0)
        y = x * 2.0
        if fail:
            raise KeyError("mine")
        return y

    g = jit(f)
    with pytest.raises(KeyError, match="mine"):
        g(tensor(3))

    assert float(counter) == 0.0, "the in-place change was only recorded"
    assert_nothing_is_being_traced()
    fail = False
    x = tensor(3)
    np.testing.assert_array_equal(g(x).numpy(), x.numpy() * 2)
    assert float(counter) == 1.0


def test_errors_of_ops_are_those_of_eager() -> None:
    with pytest.raises(ShapeError, match="add"):
        jit(lambda x, y: x + y)(tensor(3), tensor(2))
    assert_nothing_is_being_traced()


def test_a_tensor_that_escapes_from_the_trace_is_an_error_where_it_is_used() -> None:
    escaped: list[Any] = []

    def f(x: Any) -> Any:
        y = x * 2.0
        escaped.insert(0, y)
        return y

    with pytest.raises((LeakedTracerError, UnguardableError)):
        jit(f, check="off")(tensor(3))
        escaped[-1] + 1.0
    assert_nothing_is_being_traced()


@pytest.mark.parametrize("change", ["append", "insert", "array"])
def test_changing_containers_that_are_read_is_refused_and_undone(change: str) -> None:
    seen, counts, array = list[int](), [0], np.zeros(1)

    def by_append(x: Any) -> Any:
        seen.append(1)
        return x * len(seen)

    def by_insert(x: Any) -> Any:
        counts.insert(0, counts[0] + 1)
        return x * counts[0]

    def by_array(x: Any) -> Any:
        array[0] += 1
        return x * array[0]

    with pytest.raises(UnguardableError):
        jit({"append": by_append, "insert": by_insert, "array": by_array}[change])(tensor(3))
    assert (seen, counts, array[0]) == ([], [0], 0.0)


@pytest.mark.parametrize("check", ["first", "off"])
def test_a_change_of_what_is_not_read_happens_once_with_a_warning(check: str) -> None:
    history: list[Any] = []

    def f(x: Any) -> Any:
        history.append(["called"])
        return x * 2.0

    compiled = jit(f, check=check)
    with pytest.warns(EffectWarning, match=r"closure cell `history` \(test_errors.py:\d+\)"):
        compiled(tensor(3))
    compiled(tensor(3))
    assert history == [["called"]]


@pytest.mark.parametrize("check", ["first", "off"])
def test_a_mask_made_on_first_use(check: str) -> None:
    class Layer:
        mask: Any = None

        def __call__(self, x: Any) -> Any:
            if self.mask is None:
                self.mask = np.array([1.0, 0.0, 2.0])
            return x * self.mask

    layer = Layer()
    compiled = jit(layer, check=check)
    for k in range(4):
        x = tensor(3) * k
        np.testing.assert_array_equal(compiled(x).numpy(), (x * np.array([1.0, 0.0, 2.0])).numpy())
    assert compiled.cache_info().traces == 2


def test_arguments_that_are_nothing_for_a_program() -> None:
    with pytest.raises(ValueError, match=r"test_errors.py:\d+: argument 1 is a bytearray, .*a tuple"):
        jit(lambda x, s: x)(tensor(1), bytearray(2))


# --- threads --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["python", pytest.param("cpu", marks=pytest.mark.numba)])
def test_threads_call_one_function_at_once(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", backend)
    f = jit(jg.value_and_grad(lambda x, w: (jg.tanh(x * w) ** 2).sum(axis=1).sum()))
    xs = [tensor(4 + k % 3, 5) for k in range(6)]
    w = tensor(5)
    expected = [f.eager(x, w) for x in xs]
    problems: list[Any] = []
    barrier = threading.Barrier(6)

    def work(k: int) -> None:
        try:
            barrier.wait(30)
            for _ in range(20):
                loss, grad = f(xs[k], w)
                np.testing.assert_allclose(loss.numpy(), expected[k][0].numpy(), rtol=1e-9)
                np.testing.assert_allclose(grad.numpy(), expected[k][1].numpy(), rtol=1e-9)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not problems, problems[0]
    assert f.cache_info().traces == 3


# --- the check of the first call ------------------------------------------------------------------------------------


@pytest.fixture
def wrong_tanh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Code generation that writes sin for tanh; what it rendered before, or renders here, is forgotten."""
    right = scalar.parsed_scalar

    def parsed(text: str) -> ast.expr:
        return right(text.replace("tanh", "sin"))

    monkeypatch.setattr(scalar, "parsed_scalar", parsed)
    scalar._template.cache_clear()
    yield
    scalar._template.cache_clear()


@pytest.mark.usefixtures("wrong_tanh")
def test_the_check_catches_a_wrong_kernel_and_gives_the_eager_result() -> None:
    f = jit(lambda x: jg.tanh(x) * 3.5 + 0.125)
    x = jg.tensor(np.linspace(-2.0, 2.0, 7))

    with pytest.warns(MismatchWarning, match="disagrees with eager") as caught:
        first = f(x)
    np.testing.assert_array_equal(first.numpy(), np.tanh(x.numpy()) * 3.5 + 0.125)
    np.testing.assert_array_equal(f(x).numpy(), first.numpy())
    assert f.cache_info().fallbacks == 1

    path = re.search(r"(/\S+jitgrad_repro\S+\.py)", str(caught[0].message))
    assert path is not None
    text = Path(path[1]).read_text(encoding="utf-8")
    compile(text, path[1], "exec")
    assert "tanh" in text
    for file in Path(path[1]).parent.glob(Path(path[1]).stem + "*"):
        file.unlink()


@pytest.mark.usefixtures("wrong_tanh")
def test_a_wrong_kernel_in_a_training_step_does_not_touch_the_state() -> None:
    def train(compiled: bool) -> np.ndarray[Any, Any]:
        w = jg.tensor(np.linspace(-1.0, 1.0, 4)).requires_grad_()
        optimizer = jg.optim.Adam([w], lr=0.1)

        def step(x: Any) -> Any:
            optimizer.zero_grad()
            loss = (jg.tanh(w * x) ** 2).sum()
            loss.backward()
            optimizer.step()
            return loss

        run = jit(step) if compiled else step
        for k in range(5):
            run(jg.tensor(np.arange(4.0) + k))
        return w.detach().numpy()

    with pytest.warns(MismatchWarning):
        found = train(True)
    np.testing.assert_array_equal(found, train(False))


@pytest.mark.usefixtures("wrong_tanh")
def test_without_the_check_the_wrong_kernel_is_wrong() -> None:
    """So the tests above do test the check."""
    x = jg.tensor(np.linspace(-2.0, 2.0, 7))

    np.testing.assert_allclose(jit(lambda x: jg.tanh(x) * 3.25, check="off")(x).numpy(), np.sin(x.numpy()) * 3.25)


def test_the_check_sees_a_graph_that_is_not_the_function() -> None:
    """A wrong trace is wrong in float64 as well: the distance of eager from it must not widen the budget."""
    drift = iter([0.0, 1.0])  # the second run is the eager one; all runs of the graph give the same
    odd = jg.custom_op(forward=lambda x: x + next(drift, 0.0), vjp=lambda g, out, x: (g,), abstract=lambda x: x)

    with pytest.warns(MismatchWarning):
        jit(lambda x: odd(x) * 2.0)(tensor(3))


def test_always_checks_every_call(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []
    count = jg.custom_op(forward=lambda x: runs.append(1) or x * 1.0, vjp=lambda g, out, x: (g,), abstract=lambda x: x)
    f = jit(lambda x: count(x) + 1.0)
    monkeypatch.setenv("JITGRAD_CHECK", "always")
    per_call = []
    for _ in range(3):
        before = len(runs)
        f(jg.ones(2))
        per_call.append(len(runs) - before)

    assert min(per_call) >= 2
