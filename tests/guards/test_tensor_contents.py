"""Python code may ask for integers and bools of a tensor outside: the guard compares them on every call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad import nn
from jitgrad.core.errors import RetraceWarning, TracedValueError

X = np.array([1.0, 2.0, 3.0, 4.0], np.float32)


def compiled(f: Any, **options: Any) -> Any:
    return jg.jit(f, backend="python", **options)


def test_a_mask_outside_selects_until_it_changes() -> None:
    mask = jg.tensor([True, False, True, True])
    f = compiled(lambda x: x[mask].sum())

    assert [f(jg.tensor(X)).item() for _ in range(3)] == [8.0] * 3
    assert f.cache_info().traces == 1
    mask[1] = True
    assert f(jg.tensor(X)).item() == 10.0
    mask.numpy()[0] = False  # no op of jitgrad
    assert f(jg.tensor(X)).item() == 9.0
    mask.fill_(True)
    assert f(jg.tensor(X)).item() == 10.0


def test_a_mask_made_of_tensors_outside() -> None:
    labels, kept = jg.tensor([0, 1, 2, 1]), jg.tensor([True, True, False, False])
    f = compiled(lambda x: (x[(labels == 1) & kept].sum(), x[~kept].sum()))

    assert [y.item() for y in f(jg.tensor(X))] == [2.0, 7.0]
    labels.fill_(1)
    assert [y.item() for y in f(jg.tensor(X))] == [3.0, 7.0]


def test_gradients_through_a_mask_outside() -> None:
    mask = jg.tensor([True, False, True, True])
    f = compiled(jg.grad(lambda x: (x[mask] ** 2).sum()))

    assert f(jg.tensor(X)).tolist() == [2.0, 0.0, 6.0, 8.0]


def test_a_mask_that_is_an_argument_decides_a_length() -> None:
    f = compiled(lambda x, mask: x[mask].sum())
    masks = [[True, False, True, True], [True, True, False, True], [False] * 4, [True] * 4]
    for mask in masks:
        assert f(jg.tensor(X), jg.tensor(mask)).item() == X[mask].sum()


def test_a_mask_computed_from_an_argument_decides_a_length() -> None:
    kept = jg.tensor([True, False, True, True])
    f = compiled(lambda x: x[kept & (x > 1.0)].sum())
    for shift in (0.0, 1.0, -1.0):
        x = X + np.float32(shift)
        assert f(jg.tensor(x)).item() == x[kept.numpy() & (x > 1.0)].sum()


def test_float_contents_of_a_tensor_outside_are_not_known() -> None:
    scale = jg.tensor(2.0)
    with pytest.raises(TracedValueError, match=r"float\(\)"):
        compiled(lambda x: x * float(scale))(jg.tensor(X))


def test_draws_of_a_generator_decide_a_length() -> None:
    one, other = jg.Generator(1), jg.Generator(1)

    def kept(x: Any, generator: Any) -> Any:
        return x[jg.randint(0, 2, (4,), generator=generator) > 0].sum()

    f = compiled(lambda x: kept(x, one))
    for _ in range(8):
        assert f(jg.tensor(X)).item() == kept(jg.tensor(X), other).item()


class Initialised(nn.Module):
    """Sets its bias by the first batch, and has a ring of values: a flag and a position in buffers."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("ready", jg.tensor(0))
        self.register_buffer("ring", jg.zeros(8))
        self.register_buffer("position", jg.zeros(1, dtype=jg.int64))
        self.bias = nn.Parameter(jg.zeros(1))

    def forward(self, x: Any) -> Any:
        at = int(self.position)
        with jg.no_grad():
            if self.ready.item() == 0:
                self.bias.copy_(x.mean().reshape(1))
                self.ready.fill_(1)
            self.ring[at : at + 2] = x[:2]
            self.position[0] = (at + 2) % 8
        return (x - self.bias + self.ring.sum()).sum()


def test_flags_and_positions_in_buffers() -> None:
    module, eager = Initialised(), Initialised()
    f = compiled(module)
    for k in range(12):
        x = jg.tensor(X + k)
        assert f(x).item() == pytest.approx(eager(x).item())

    assert module.ring.tolist() == eager.ring.tolist()
    assert f.cache_info().traces == 5  # the first call, and four positions


def test_the_warning_of_many_traces_names_the_tensor_and_the_line() -> None:
    count = jg.tensor(0)

    def step(x: Any) -> Any:
        count.add_(1)
        return x * 2.0 if count % 100 == 0 else x

    f = compiled(step, check="off")
    with pytest.warns(RetraceWarning, match=r"of closure cell `count`, which Python code asked for \(.*\.py:\d+\)"):
        for _ in range(20):
            f(jg.tensor(X))
    assert count.item() == 20


@pytest.mark.parametrize("nest", [jg.checkpoint, jg.vmap, lambda f: f], ids=["checkpoint", "vmap", "plain"])
def test_a_nested_function_sees_what_the_outer_one_changed(nest: Any) -> None:
    mask = jg.tensor([True, False, True, False])

    def f(x: Any) -> Any:
        mask[1] = True
        return nest(lambda rows: rows[..., mask].sum())(x[None])

    step = compiled(f)
    assert [step(jg.tensor(X)).sum().item() for _ in range(3)] == [6.0] * 3
    assert mask.tolist() == [True, True, True, False]


def test_a_mask_that_is_replaced_is_noticed() -> None:
    class Data:
        mask = jg.tensor([True, False, True, True])

    data = Data()
    f = compiled(lambda x: x[data.mask].sum())
    assert f(jg.tensor(X)).item() == 8.0
    data.mask = jg.tensor([False, False, True, True])
    assert f(jg.tensor(X)).item() == 7.0
