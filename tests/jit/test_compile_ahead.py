"""f.compile(...): compiling for shapes and dtypes, before there is any data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import ArgumentError, DtypeError, OperandError, ShapeError
from jitgrad.jit.decorator import JitFunction, jit


def counts(f: JitFunction) -> tuple[int, int, int]:
    info = f.cache_info()
    return info.traces, info.programs, info.kernels_compiled + info.kernels_from_disk


@pytest.mark.parametrize("backend", ["python", "cpu"])
def test_the_next_call_compiles_nothing(backend: str) -> None:
    @jit(backend=backend)
    def f(x: Any, y: Any) -> Any:
        return jg.tanh(x) * y + 1.0

    explanation = f.compile(jg.ShapeDtypeStruct((3, 4), jg.float32), jg.ShapeDtypeStruct(4, np.float32))  # type: ignore[attr-defined]
    before = counts(f)
    x, y = jg.randn(3, 4), jg.randn(4)
    result = f(x, y)

    assert "tanh" in str(explanation)
    assert counts(f) == before and before[:2] == (1, 1)
    np.testing.assert_allclose(result.numpy(), np.tanh(x.numpy()) * y.numpy() + 1, rtol=1e-6)


def test_arguments_may_be_containers_with_data_and_without() -> None:
    @jit(static_argnames=("power",), backend="python")
    def f(batch: Any, scale: Any, power: int) -> Any:
        return {"out": (batch["x"] * scale[0]) ** power}

    spec = jg.ShapeDtypeStruct((5,), "float64")
    f.compile({"x": spec}, [jg.tensor(2.0)], power=3)  # type: ignore[attr-defined]
    before = counts(f)

    assert f({"x": jg.ones(5, dtype="float64")}, [jg.tensor(2.0)], power=3)["out"].tolist() == [8.0] * 5
    assert counts(f) == before


def test_a_training_step_changes_nothing_while_it_is_compiled() -> None:
    model = jg.nn.Linear(4, 2)
    optimizer = jg.optim.Adam(model.parameters())
    start = model.weight.detach().numpy().copy()

    @jit(backend="python")
    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    step.compile(jg.ShapeDtypeStruct((8, 4)))  # type: ignore[attr-defined]
    before = counts(step)
    assert (model.weight.detach().numpy() == start).all()
    step(jg.randn(8, 4))
    assert counts(step) == before and (model.weight.detach().numpy() != start).any()


def test_gradients_through_the_result_are_compiled_too() -> None:
    f = jit(lambda x: jg.sin(x) * x, backend="python")
    f.compile(jg.ShapeDtypeStruct((6,), "float64", requires_grad=True))
    before = counts(f)
    data = np.linspace(0, 1, 6)
    x = jg.tensor(data, requires_grad=True)
    f(x).sum().backward()

    np.testing.assert_allclose(x.grad.numpy(), np.cos(data) * data + np.sin(data))
    assert counts(f) == before


def test_kernels_and_explanations_need_no_data_either() -> None:
    f = jit(lambda x: jg.exp(x) * 2.0, backend="python")
    spec = jg.ShapeDtypeStruct((6,))

    assert "exp" in f.kernels(spec)[0].source and "exp" in str(f.explain(spec)) and "exp" in str(f.graph(spec))
    assert f.cache_info().calls == 0


def test_another_shape_is_compiled_when_it_comes() -> None:
    f = jit(lambda x: x * 2.0, backend="python")
    f.compile(jg.ShapeDtypeStruct((6,)))
    f(jg.ones(7))

    assert f.cache_info().traces == 2


@pytest.mark.parametrize("method", ["compile", "explain", "kernels", "graph"])
def test_missing_arguments_are_an_error_that_says_what_to_give(method: str) -> None:
    f = jit(lambda x, y: x * y)

    with pytest.raises(ArgumentError, match=r"depends on its arguments: give those of a call.*missing a required argument: 'x'"):
        getattr(f, method)()


def test_wrong_descriptions_are_errors() -> None:
    with pytest.raises(ShapeError, match="not negative"):
        jg.ShapeDtypeStruct((3, -1))
    with pytest.raises(DtypeError, match="not supported"):
        jg.ShapeDtypeStruct((3,), "clongdouble")
    with pytest.raises(OperandError, match="ShapeDtypeStruct"):
        jit(jg.exp)(jg.ShapeDtypeStruct((3,)))
