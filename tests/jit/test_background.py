"""jit(background=True): a function runs eagerly until a thread has compiled its program."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import jitgrad as jg
from jitgrad.backends.targets import TARGETS
from jitgrad.core.errors import ArgumentError, BackendError, TracedValueError
from jitgrad.jit import background
from jitgrad.jit.decorator import JitFunction, jit


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Compilation in the background waits for this event."""
    event = threading.Event()
    ready = background._ready

    def wait(compile: Callable[[], Any]) -> Any:
        assert event.wait(60)
        return ready(compile)

    monkeypatch.setattr(background, "_ready", wait)
    yield event
    event.set()


def finished(f: JitFunction) -> None:
    """Wait for the programs of ``f``, as time does."""
    for future in f._pending._futures.values():
        future.exception(60)


def in_background(**options: Any) -> Any:
    return jit(background=True, backend="python", **options)


def test_calls_are_eager_until_the_program_is_there(held: threading.Event) -> None:
    f = in_background()(lambda x: jg.tanh(x) * 2.0)
    runs, eager = [], f.eager
    x = jg.randn(5)
    f(x)
    f.eager = lambda x: runs.append(x) or eager(x)
    early = [f(x) for _ in range(2)]
    assert len(runs) == 2 and f.cache_info().background == 3 and f.cache_info().programs == 0

    held.set()
    finished(f)
    late = [f(x) for _ in range(3)]

    # the next call checks the program against an eager run; those after it run the program alone
    assert len(runs) == 3 and f.cache_info().background == 3 and f.cache_info().programs == 1
    for y in early + late:
        assert y.tolist() == pytest.approx(early[0].tolist())


def test_training_is_the_same_with_and_without(held: threading.Event) -> None:
    def trained(**options: Any) -> list[float]:
        jg.manual_seed(0)
        model = jg.nn.Sequential(jg.nn.Linear(3, 4), jg.nn.Tanh(), jg.nn.Dropout(0.2), jg.nn.Linear(4, 1))
        optimizer = jg.optim.Adam(model.parameters(), lr=0.05)

        @jit(backend="python", **options)
        def step(x: Any) -> Any:
            optimizer.zero_grad()
            loss = (model(x) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss

        x = jg.tensor([[0.1, 0.2, 0.3], [0.4, -0.5, 0.6]])
        losses = [float(step(x).item()) for _ in range(4)]
        held.set()
        finished(step)
        return losses + [float(step(x).item()) for _ in range(6)]

    assert trained(background=True) == pytest.approx(trained(), rel=1e-5)


def test_gradients_through_the_result_are_compiled_in_the_background_too() -> None:
    f = in_background()(lambda x: jg.sin(x) * x)
    x = jg.tensor([0.5, 1.5], dtype="float64", requires_grad=True)
    f(x).sum().backward()
    finished(f)
    programs = f.cache_info().programs
    f(x).sum().backward()
    f(x).sum().backward()

    assert f.cache_info().programs == programs == 2
    assert x.grad.tolist() == pytest.approx([3 * (jg.cos(v) * v + jg.sin(v)).item() for v in x.detach()])


def test_a_change_while_it_compiles_leads_to_another_program(held: threading.Event) -> None:
    scale = {"by": 2.0}
    f = in_background()(lambda x: x * scale["by"])
    x = jg.ones(3)

    assert f(x).tolist() == [2.0] * 3
    scale["by"] = 3.0
    assert f(x).tolist() == [3.0] * 3
    held.set()
    finished(f)
    assert f(x).tolist() == [3.0] * 3  # the program for 2 is there, and does not fit
    finished(f)
    assert [f(x).tolist() for _ in range(3)] == [[3.0] * 3] * 3
    scale["by"] = 2.0
    before = f.cache_info().background
    assert f(x).tolist() == [2.0] * 3 and f.cache_info().background == before


def test_compile_waits_for_what_is_under_way(held: threading.Event) -> None:
    f = in_background()(lambda x: jg.exp(x))
    x = jg.ones(3)
    f(x)
    threading.Timer(0.05, held.set).start()
    f.compile(x)
    f(x)

    assert f.cache_info().traces == 1 and f.cache_info().background == 1


def test_errors_of_tracing_come_at_once_and_those_of_compiling_at_a_later_call(monkeypatch: pytest.MonkeyPatch) -> None:
    branch = in_background()(lambda x: x if float(x.sum()) > 0 else -x)
    with pytest.raises(TracedValueError):
        branch(jg.ones(3))

    def fail(*_: Any) -> Any:
        raise BackendError("no memory for machine code")

    f = in_background()(lambda x: jg.exp(x))
    with monkeypatch.context() as patched:
        patched.setattr(type(TARGETS["python"]), "compile", fail)
        f(jg.ones(3))
        finished(f)
        with pytest.raises(BackendError, match="machine code"):
            f(jg.ones(3))
    f(jg.ones(3))
    finished(f)
    f(jg.ones(3))
    assert f.cache_info().programs == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("pause", [0.0, 0.01, 0.03])
def test_a_child_that_was_forked_meanwhile_compiles_itself(pause: float) -> None:
    f = jit(lambda x: jg.tanh(x) + jg.exp(x * pause), background=True, backend="cpu")
    x = jg.ones(4)
    expected = pytest.approx(f(x).tolist())
    time.sleep(pause)
    if not (child := os.fork()):
        signal.alarm(60)
        f.compile(x)
        os._exit(0 if [f(x).tolist() for _ in range(3)] == [expected] * 3 else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finished(f)
    assert f(x).tolist() == expected


def test_the_option_is_a_bool() -> None:
    with pytest.raises(ArgumentError, match=r"background='thread'.*True or False"):
        jit(lambda x: x, background="thread")
