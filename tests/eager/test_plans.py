"""Eager ops run by plans: what decides that they do, and that they compute what the interpreter computes."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.aval import Aval
from jitgrad.core.op import REGISTRY, OpDef
from jitgrad.core.origin import Origin
from jitgrad.core.tensor import Tensor
from jitgrad.eager import interpreter
from jitgrad.eager.plans import make_op_plan
from jitgrad.eager.run import run_eagerly
from jitgrad.ops.arithmetic import ADD, MULTIPLY
from jitgrad.testing import sample_operands

PLANNED = [
    op for op in REGISTRY.values() if not op.multiple and not op.moves and op.domain and "index" not in op.domain
]


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> list[OpDef]:
    """The ops that the interpreter, and no plan, ran."""
    ran: list[OpDef] = []
    apply = interpreter.EagerInterpreter.apply

    def noted(self: Any, op: OpDef, operands: Any, attrs: Any) -> Any:
        ran.append(op)
        return apply(self, op, operands, attrs)

    monkeypatch.setattr(interpreter.EagerInterpreter, "apply", noted)
    return ran


def tensor(*shape: int, requires_grad: bool = False) -> Tensor:
    return jg.tensor(np.linspace(0.1, 0.9, int(np.prod(shape))).reshape(shape).astype("f"), requires_grad=requires_grad)


def test_arithmetic_runs_by_plans(interpreted: list[OpDef]) -> None:
    x, y = tensor(3), tensor(2, 3)
    interpreted.clear()

    ((x + y) * 2.0 - 1) / y
    jg.exp(-x).sum()
    (1 - x)[1:] @ x[:2]
    y[0, None, ::-1].reshape(3) + x[1]

    assert [op.name for op in interpreted] == []


def test_a_plan_is_made_once_for_operands_of_equal_avals() -> None:
    ADD.plans.clear()
    for _ in range(5):
        tensor(7, 1) + tensor(1, 5)

    assert len(ADD.plans) == 1
    tensor(7, 1) + tensor(1, 6)
    assert len(ADD.plans) == 2


@pytest.mark.parametrize("op", PLANNED, ids=str)
def test_plans_compute_what_the_interpreter_computes(op: OpDef) -> None:
    operands = [jg.tensor(x) if isinstance(x, np.ndarray) else x for x in sample_operands(op, np.random.default_rng(1))]
    plan = make_op_plan(op, tuple(operands), op.sample_attrs)
    if plan is None:
        pytest.skip("no plan")
    arrays = [x._data if isinstance(x, Tensor) else plan.convert(x) for x in operands]
    avals: list[Aval] = [*plan.avals]

    found = plan.function(*arrays)

    expected = run_eagerly(op, list(arrays), avals, op.sample_attrs)
    assert type(found) is np.ndarray and found.dtype == expected.dtype == plan.out.dtype
    assert found.shape == plan.out.shape
    np.testing.assert_array_equal(found, expected)
    assert found.strides == expected.strides


def test_numbers_are_told_apart() -> None:
    x = jg.tensor(np.zeros(2, np.float32))

    assert not np.signbit((x + 0.0).numpy()).any()
    assert np.signbit((x * -0.0).numpy()).all() and not np.signbit((x * 0.0).numpy()).any()
    i = jg.tensor(np.arange(3))
    assert (i + 1).dtype == np.int64 and (i + 1.0).dtype == np.float64 and (i + True).dtype == np.int64
    assert (x + 2**60).dtype == np.float32
    with pytest.raises(OverflowError, match="does not fit"):
        jg.tensor(np.zeros(2, np.uint8)) + 300
    with pytest.raises(OverflowError, match="does not fit"):
        jg.tensor(np.zeros(2, np.uint8)) + 300


def test_weak_results_stay_weak() -> None:
    x = tensor(2)
    weak = jg.add(1.0, 2.0)
    for _ in range(3):
        assert (x * weak).dtype == np.float32


def test_numpy_does_not_warn_and_its_settings_stay() -> None:
    before = np.geterr()
    x = jg.tensor([1.0, -1.0])
    with np.errstate(all="raise"):
        for _ in range(3):
            assert np.isinf((x / 0.0).numpy()).all()
        with pytest.raises(FloatingPointError):
            np.ones(2) / np.zeros(2)
    assert np.geterr() == before


def test_threads_run_ops_at_the_same_time() -> None:
    """NumPy releases the lock of the interpreter within large ops, and the context of plans is entered by one thread."""
    x, expected, wrong = tensor(200_000), None, []
    expected = (x * x).numpy()

    def work() -> None:
        for _ in range(30):
            if not np.array_equal((x * x).numpy(), expected):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_nodes_know_the_line_of_the_user() -> None:
    x = tensor(3, requires_grad=True)
    first = Origin.capture().line
    results = [
        x + x,
        x * 2.0,
        2.0 * x,
        jg.exp(x),
        x[1:],
        x.sum(),
    ]
    lines = [out.grad_fn.origin.line for out in results]

    assert lines == [first + 2, first + 3, first + 4, first + 5, first + 6, first + 7]
    assert {out.grad_fn.origin.file for out in results} == {__file__}


def test_attributes_of_equal_value_and_different_type_have_different_plans() -> None:
    x = jg.tensor(np.array([-1.0, 1.0]))
    for slope in (1, 1.0, True, 0.0, -0.0):
        assert np.signbit(jg.leaky_relu(x, slope).numpy()[0]) == np.signbit(-1.0 * float(slope))


def test_in_place_changes_are_noticed() -> None:
    x = tensor(3, requires_grad=True)
    y = x * 1.0
    z = y * y
    y += 1.0
    with pytest.raises(RuntimeError, match=r"changed in place at .*test_plans.py:\d+"):
        z.sum().backward()


def test_plans_of_ops_with_numbers_belong_to_their_kind() -> None:
    MULTIPLY.plans.clear()
    x = tensor(3)
    for number in (2, 2.0, 3, 3.0):
        x * number

    assert len(MULTIPLY.plans) == 2
