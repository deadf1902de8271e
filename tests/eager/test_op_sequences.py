"""Functions of a few ops by the plans of these: what decides that there is a sequence, and that nobody can tell."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.aval import Aval
from jitgrad.core.context import current_interpreter
from jitgrad.core.tensor import Tensor
from jitgrad.eager import numpy_errors, op_sequences
from jitgrad.eager.op_sequences import OpSequence, op_sequence
from jitgrad.ops.operand import ValuesAndIndices

Call = Callable[..., Any]
# name -> the shapes of floating operands, and the function of these as tensors
SEQUENCES: dict[str, tuple[list[tuple[int, ...]], Call]] = {
    "concat": ([(3, 4), (3, 4)], lambda x, y: jg.concat([x, y])),
    "concat of tuples": ([(3, 4), (3, 2)], lambda x, y: jg.concat((x, y), axis=1)),
    "stack": ([(3, 4), (3, 4)], lambda x, y: jg.stack([x, y], 1)),
    "hstack": ([(3,), (4,)], lambda x, y: jg.hstack([x, y])),
    "vstack": ([(3,), (3,)], lambda x, y: jg.vstack([x, y])),
    "column_stack": ([(3,), (3, 2)], lambda x, y: jg.column_stack([x, y])),
    "topk": ([(3, 7)], lambda x: jg.topk(x, 2)),
    "topk of the smallest": ([(3, 7)], lambda x: jg.topk(x, 2, axis=0, largest=False)),
    "sort": ([(3, 7)], lambda x: jg.sort(x, dim=1)),
    "sort of NumPy": ([(3, 7)], lambda x: jg.sort(x, 0)),
    "kthvalue": ([(3, 7)], lambda x: jg.kthvalue(x, 3)),
    "cummax": ([(3, 7)], lambda x: jg.cummax(x, 1)),
    "cummin": ([(7,)], lambda x: jg.cummin(x, 0)),
    "median": ([(3, 7)], lambda x: jg.median(x, dim=1)),
    "nanmedian": ([(3, 7)], lambda x: jg.nanmedian(x, dim=0)),
    "meshgrid": ([(3,), (4,)], lambda x, y: jg.meshgrid(x, y)),
    "cartesian_prod": ([(3,), (4,)], lambda x, y: jg.cartesian_prod(x, y)),
    "select": ([(3, 4)], lambda x: jg.select(x, 1, -1)),
    "mv": ([(3, 4), (4,)], lambda x, y: jg.mv(x, y)),
    "bmm": ([(2, 3, 4), (2, 4, 2)], lambda x, y: jg.bmm(x, y)),
    "aminmax": ([(3, 4)], lambda x: jg.aminmax(x)),
    "index_add": ([(3, 4), (2, 4)], lambda x, y: jg.index_add(x, 0, jg.tensor([2, 0]), y)),
    "scatter_add": ([(3, 4), (3, 5)], lambda x, y: x.scatter_add(1, jg.tensor([[0, 0], [3, 1]]), y)),
    "searchsorted": ([(4,)], lambda x: jg.searchsorted(jg.asarray(np.arange(4.0)), x)),
}


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[OpSequence]:
    """The sequences that run."""
    found: list[OpSequence] = []
    run = OpSequence.run

    def noted(self: OpSequence, tensors: list[Tensor]) -> Any:
        result = run(self, tensors)
        if result is not None:
            found.append(self)
        return result

    monkeypatch.setattr(OpSequence, "run", noted)
    return found


def leaves(name: str, dtype: Any, grad: bool = True) -> list[Tensor]:
    arrays = [np.sin(np.arange(np.prod(shape)) * 1.7 + k).reshape(shape) for k, shape in enumerate(SEQUENCES[name][0])]
    return [jg.tensor(x.astype(dtype), requires_grad=grad) for x in arrays]


def parts_of(result: Any) -> list[Tensor]:
    return [result] if isinstance(result, Tensor) else list(result)


def outcome(name: str, dtype: Any, grad: bool = True) -> list[Any]:
    """The type of the result, and the bits of its parts and of the gradients."""
    xs = leaves(name, dtype, grad)
    result = SEQUENCES[name][1](*xs)
    parts = parts_of(result)
    total = sum((y * (k + 1.5)).sum() for k, y in enumerate(parts) if y.requires_grad)
    if isinstance(total, Tensor):
        total.backward()
    gradients = [b"" if x.grad is None else x.grad.numpy().tobytes() for x in xs]
    return [type(result), *[(y.aval, y.requires_grad, y.detach().numpy().tobytes()) for y in parts], gradients]


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", SEQUENCES)
def test_results_and_gradients_are_those_of_the_function(
    name: str, dtype: Any, grad: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(op_sequences, "_add_key", lambda *_: False)
        expected = outcome(name, dtype, grad)

    assert [outcome(name, dtype, grad) for _ in range(4)] == [expected] * 4


@pytest.mark.parametrize("name", SEQUENCES)
def test_a_call_that_comes_back_is_a_sequence(name: str, runs: list[OpSequence]) -> None:
    for _ in range(3):
        outcome(name, np.float32, grad=False)

    assert runs


@pytest.mark.parametrize("dtype", [np.float64, np.float16])
def test_limits_on_gradients_are_two_sequences_for_any_number_of_them(dtype: Any, runs: list[OpSequence]) -> None:
    results = []
    for _ in range(4):
        weights = [jg.zeros(n + 1, dtype=dtype, requires_grad=True) for n in range(9)]
        for w in weights:
            w.grad = jg.ones_like(w)
        runs.clear()
        total = jg.nn.utils.clip_grad_norm_(weights, 1.5)
        results.append([x.numpy().tobytes() for x in (total, *[w.grad for w in weights])])
    assert len(runs) == 2
    assert all(sequence.line for sequence in runs)
    assert results == results[:1] * 4


def test_nodes_have_the_line_of_the_caller(runs: list[OpSequence]) -> None:
    x = jg.tensor([3.0, 1.0, 2.0], requires_grad=True)
    for _ in range(3):
        values = jg.topk(x, 2).values
    assert runs

    assert "test_op_sequences" in str(values.grad_fn.origin)


def test_views_among_the_results_share_memory() -> None:
    x = jg.tensor(np.arange(6.0).reshape(2, 3))
    for _ in range(4):
        row = jg.select(x, 0, 1)
    row.zero_()

    assert x.tolist() == [[0.0, 1.0, 2.0], [0.0, 0.0, 0.0]]


def test_errors_are_those_of_the_function() -> None:
    x = jg.ones(3)
    for _ in range(4):
        jg.concat([x, x])
    for _ in range(4):
        with pytest.raises(ValueError, match="axis 1"):
            jg.concat([x, x], 1)
        with pytest.raises(ValueError, match="k=4"):
            jg.topk(x, 4)


def test_numbers_that_are_equal_and_of_other_types_are_other_calls() -> None:
    @op_sequence
    def scaled(x: Tensor, by: Any) -> Tensor:
        return x * by

    x = jg.tensor([1, 2])

    results = [scaled(x, by).dtype.kind for by in (2, 2, 2, 2.0, 2.0, 2.0)]

    assert results == ["i", "i", "i", "f", "f", "f"]


def test_zeros_of_either_sign_are_other_calls() -> None:
    @op_sequence
    def sign(x: Tensor, by: Any) -> Tensor:
        return jg.copysign(x, by)

    x = jg.tensor([1.0])

    assert [sign(x, by).item() for by in (0.0, 0.0, 0.0, -0.0, -0.0, -0.0)] == [1.0] * 3 + [-1.0] * 3


def test_the_default_dtype_decides() -> None:
    @op_sequence
    def halves(x: Tensor) -> Tensor:
        return jg.astype(x, jg.get_default_dtype()) * 0.5

    x = jg.tensor([1, 2])
    for _ in range(3):
        halves(x)
    jg.set_default_dtype("float64")
    try:
        assert halves(x).dtype == np.float64
    finally:
        jg.set_default_dtype("float32")


def test_a_function_that_looks_at_data_or_makes_tensors_has_none(runs: list[OpSequence]) -> None:
    @op_sequence
    def doubled_if_positive(x: Tensor) -> Tensor:
        return x * 2 if x.sum() > 0 else x

    @op_sequence
    def beside_a_constant(x: Tensor) -> Tensor:
        return x * jg.tensor([1.0, 2.0])

    for _ in range(4):
        assert doubled_if_positive(jg.tensor([1.0, 1.0])).tolist() == [2.0, 2.0]
        assert doubled_if_positive(jg.tensor([-1.0, -1.0])).tolist() == [-1.0, -1.0]
        assert beside_a_constant(jg.tensor([3.0, 4.0])).tolist() == [3.0, 8.0]
    assert not runs


def test_many_ops_with_a_gradient_are_left_to_compositions(runs: list[OpSequence]) -> None:
    @op_sequence
    def tenfold(x: Tensor) -> Tensor:
        return sum((x for _ in range(9)), x)

    x = jg.tensor([1.0, 2.0], requires_grad=True)
    for _ in range(4):
        tenfold(x)
    assert not runs

    with jg.no_grad():
        assert tenfold(x).tolist() == [10.0, 20.0]
    assert runs


def test_a_sequence_keeps_the_avals_of_its_key_alive() -> None:
    """A new aval with the id of an old one would find the ops of other shapes."""

    @op_sequence
    def reversed_rows(x: Tensor) -> Tensor:
        return jg.flip(x * 1.0, 0)

    x = jg.tensor([[1.0], [2.0]])
    x._aval = Aval((2, 1), np.dtype(np.float32))  # not the one that arrays of this shape share
    for _ in range(3):
        reversed_rows(x)
    known = next(c.cell_contents for c in reversed_rows.__closure__ if isinstance(c.cell_contents, dict))
    made = [(key, found) for key, found in known.items() if isinstance(found, OpSequence)]

    assert [id(aval) for _, found in made for aval in found.avals] == [key[2] for key, _ in made]


def test_two_threads_do_not_wait_for_each_other() -> None:
    x = jg.tensor([3.0, 1.0, 2.0])
    for _ in range(3):
        jg.topk(x, 2)
    inside = threading.Event()
    done = threading.Event()

    def occupy() -> None:
        def wait() -> np.ndarray[Any, Any]:
            inside.set()
            done.wait(10)
            return np.zeros(1)

        numpy_errors.run_quietly(wait)

    thread = threading.Thread(target=occupy)
    thread.start()
    inside.wait(10)
    try:
        pair = jg.topk(x, 2)
    finally:
        done.set()
        thread.join()

    assert type(pair) is ValuesAndIndices
    assert pair.indices.tolist() == [0, 2]


def test_within_a_trace_the_function_runs(runs: list[OpSequence]) -> None:
    x = jg.tensor([3.0, 1.0, 2.0])
    for _ in range(3):
        jg.topk(x, 2)
    runs.clear()

    found = jg.jit(lambda x: jg.topk(x, 2).values)(x)

    assert found.tolist() == [3.0, 2.0]
    assert current_interpreter.other() is None
