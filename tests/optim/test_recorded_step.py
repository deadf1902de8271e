"""Recorded steps of optimizers: the numbers of the ops, in few calls, and anew when something has changed."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core import dispatch
from jitgrad.core.errors import InPlaceError
from jitgrad.core.tensor import Tensor
from jitgrad.optim.optimizer import Optimizer

SHAPES = ((3, 4), (4,), (), (3, 4), (0, 2))
Params = Sequence[Tensor]
OPTIMIZERS: dict[str, Callable[[Params], Optimizer]] = {
    "SGD": lambda p: jg.optim.SGD(p),
    "SGD nesterov": lambda p: jg.optim.SGD(p, momentum=0.9, nesterov=True, weight_decay=0.1, maximize=True),
    "SGD dampening": lambda p: jg.optim.SGD(p, momentum=0.9, dampening=0.3),
    "Adam": lambda p: jg.optim.Adam(p),
    "Adam amsgrad": lambda p: jg.optim.Adam(p, amsgrad=True, weight_decay=0.1),
    "AdamW": lambda p: jg.optim.AdamW(p),
    "RMSprop": lambda p: jg.optim.RMSprop(p, centered=True, momentum=0.5),
    "Adagrad": lambda p: jg.optim.Adagrad(p),
    "Adadelta": lambda p: jg.optim.Adadelta(p),
    "Adamax": lambda p: jg.optim.Adamax(p),
    "NAdam": lambda p: jg.optim.NAdam(p),
    "RAdam": lambda p: jg.optim.RAdam(p),
    "Rprop": lambda p: jg.optim.Rprop(p),
    "ASGD": lambda p: jg.optim.ASGD(p, t0=2.0, lambd=0.1),
    "Adafactor": lambda p: jg.optim.Adafactor(p, weight_decay=0.1),
    "Muon": lambda p: jg.optim.Muon([x for x in p if x.ndim == 2]),
    "groups": lambda p: jg.optim.Adam(
        [{"params": p[:2]}, {"params": p[2:], "lr": 0.3, "betas": (0.8, 0.9), "weight_decay": 0.1}]
    ),
}


def parameters(dtype: Any = np.float32) -> list[Tensor]:
    return [jg.tensor(np.cos(np.arange(np.prod(s))).reshape(s).astype(dtype), requires_grad=True) for s in SHAPES]


def give_gradients(params: Params, k: int) -> None:
    for j, p in enumerate(params):
        late = j == 3 and k % 2
        values = np.asarray(np.sin(np.arange(p.size) + 3.0 * k + j).reshape(p.shape), p.dtype)
        p.grad = None if late else jg.tensor(values)


def contents(params: Params, optimizer: Optimizer) -> list[bytes]:
    return [t.detach().numpy().tobytes() for t in (*params, *optimizer.state_dict().values())]


def trained(name: str, recorded: bool, dtype: Any = np.float32, change: Callable[[Any], None] = lambda _: None) -> Any:
    params = parameters(dtype)
    optimizer = OPTIMIZERS[name](params)
    if not recorded:
        optimizer._recorded = None
    for k in range(12):
        give_gradients(params, k)
        if k == 6:
            change(optimizer)
        optimizer.step()
    return contents(params, optimizer)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_recorded_steps_have_the_bits_of_the_ops(name: str, dtype: Any) -> None:
    assert trained(name, True, dtype) == trained(name, False, dtype)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_known_step_applies_no_op(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    params = parameters()
    optimizer = OPTIMIZERS[name](params)
    for k in range(6):
        give_gradients(params, k)
        optimizer.step()
    applied: list[str] = []
    monkeypatch.setattr(dispatch, "_apply_planned", lambda op, *_: applied.append(op.name))

    optimizer.step()

    assert applied == []


def change_rate(optimizer: Any) -> None:
    optimizer.lr = 0.7


def change_option(optimizer: Any) -> None:
    optimizer.param_groups[0]["weight_decay"] = 0.25


def add_group(optimizer: Any) -> None:
    p = jg.tensor([1.0, 2.0], requires_grad=True)
    p.grad = jg.tensor([0.5, -0.5])
    optimizer.add_param_group({"params": [p], "lr": 0.2})


def load(optimizer: Any) -> None:
    optimizer.load_state_dict({name: value * 0.5 for name, value in optimizer.state_dict().items()})


@pytest.mark.parametrize("change", [change_rate, change_option, add_group, load])
@pytest.mark.parametrize("name", ["SGD nesterov", "Adam amsgrad"])
def test_changes_between_steps_take_effect(name: str, change: Callable[[Any], None]) -> None:
    found = trained(name, True, change=change)

    assert found == trained(name, False, change=change)
    assert found != trained(name, True)


def test_new_kinds_of_gradients_are_recorded_anew() -> None:
    results = []
    for recorded in (True, False):
        params = parameters()
        optimizer = jg.optim.Adam(params)
        if not recorded:
            optimizer._recorded = None
        for k in range(12):
            give_gradients(params, k)
            if k % 3 == 2:
                assert params[0].grad is not None
                params[0].grad = jg.asarray(np.asfortranarray(params[0].grad.numpy().astype(np.float64)))
            optimizer.step()
        results.append(contents(params, optimizer))
    assert results[0] == results[1]


def test_memory_is_changed_in_place_and_changes_are_counted() -> None:
    params = parameters()
    optimizer = jg.optim.Adam(params)
    memory = [p._data for p in params]
    for k in range(8):
        give_gradients(params, k)
        before = [p._storage.version for p in params]
        optimizer.step()
        changed = [p._storage.version - b for p, b in zip(params, before, strict=True)]
        assert changed == [1, 1, 1, 0 if k % 2 else 1, 1]
    assert all(p._data is m for p, m in zip(params, memory, strict=True))
    assert params[0]._storage.changed_at.file == __file__


def test_stale_graphs_and_read_only_memory_are_errors() -> None:
    x = jg.tensor([1.0, 2.0], requires_grad=True)
    optimizer = jg.optim.SGD([x], lr=0.1)
    for _ in range(6):
        loss = (x * x).sum()
        x.grad = jg.tensor([1.0, 1.0])
        optimizer.step()
        with pytest.raises(InPlaceError, match="changed in place at"):
            loss.backward()
    x._data.flags.writeable = False
    with pytest.raises(InPlaceError, match="read-only"):
        optimizer.step()


class Counting(jg.optim.SGD):
    """A subclass whose update leaves a trace."""

    updates = 0

    def update(self, k: int, p: Tensor, g: Tensor, options: Mapping[str, Any], *common: Tensor) -> None:
        self.updates += 1
        super().update(k, p, g, options, *common)


def test_updates_of_others_are_called_each_time() -> None:
    params = parameters()
    optimizer = Counting(params)
    replaced = jg.optim.SGD(params)
    calls: list[int] = []
    replaced.update = lambda k, *_: calls.append(k)  # type: ignore[method-assign, assignment]
    for _ in range(6):
        give_gradients(params, 0)
        optimizer.step()
        replaced.step()

    assert optimizer.updates == 6 * len(params) == len(calls)


def test_copies_of_an_optimizer_train_their_own_parameters() -> None:
    params = parameters()
    optimizer = jg.optim.Adam(params)
    for k in range(6):
        give_gradients(params, k)
        optimizer.step()
    twins = [copy.deepcopy(optimizer)]
    give_gradients(params, 7)
    for twin in twins:
        give_gradients(twin.params, 7)
        for _ in range(6):
            twin.step()
    for _ in range(6):
        optimizer.step()

    for twin in twins:
        assert contents(twin.params, twin) == contents(params, optimizer)


def test_steps_within_compiled_functions_and_outside() -> None:
    results = []
    for compiled in (False, True):
        x = jg.tensor([1.0, -2.0], requires_grad=True)
        optimizer = jg.optim.Adam([x], lr=0.1)

        def step(x: Tensor = x, optimizer: Any = optimizer) -> Tensor:
            optimizer.zero_grad()
            loss = (x * x).sum()
            loss.backward()
            optimizer.step()
            return loss

        fast = jg.jit(step) if compiled else step
        for k in range(12):
            (fast if k % 4 else step)()
        results.append(x.detach().numpy())
    np.testing.assert_allclose(results[0], results[1], rtol=1e-5)
