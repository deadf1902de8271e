"""A compiled function is never stale: a change between two calls is noticed, or the first call is refused."""

from __future__ import annotations

import dataclasses
import decimal
import gc
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import EffectWarning, TraceError
from tests.guards.changes import (
    arrays,
    classes,
    containers,
    descriptors,
    functions,
    indirect,
    libraries,
    library_objects,
    nested,
    nested_calls,
    nested_classes,
    numpy_classes,
    objects,
    ordinary_code,
    ordinary_libraries,
    ordinary_state,
    questions,
    replaced,
    views,
)

X = np.array([1.0, 2.0, 3.0])
TABLES = (
    arrays, classes, containers, descriptors, functions, indirect, libraries, library_objects, nested, nested_calls,
    nested_classes, numpy_classes, objects, questions, replaced, views,
)  # fmt: skip
CHANGES = {
    f"{table.__name__.rpartition('.')[2]} {name}": make for table in TABLES for name, make in table.CASES.items()
}
ORDINARY = {**ordinary_code.CASES, **ordinary_state.CASES, **ordinary_libraries.CASES}

# what no guard can compare, or happens on every call anew
REFUSED = set(
    """
    clock clock_branch count ctypes ctypes_array ctypes_field datetime_now environ iterator list_as_counter mp_value
    np_load np_random path_exists path_read pathlib_exists random rng warn_filter_getrecursion
    """.split()
)
# caches that the first call fills: one more trace
FILLS = {"lazy_mask", "lazy_tensor_mask", "memo", "memo_setdefault", "memo_defaultdict", "timer_dict"}


@pytest.fixture(autouse=True)
def _python_backend(monkeypatch):
    monkeypatch.setenv("JITGRAD_BACKEND", "python")


@pytest.fixture
def kept_state(monkeypatch):
    """Undoes what changes do to modules that others use."""
    import builtins
    import math

    monkeypatch.setattr(builtins, "sum", sum)
    for name in ("jitgrad_test_module", "jitgrad_missing_module"):
        monkeypatch.setitem(sys.modules, name, None)
        del sys.modules[name]
    monkeypatch.setattr(math, "sqrt", math.sqrt)
    monkeypatch.setattr(np, "cbrt", np.cbrt)
    monkeypatch.setattr(jg, "exp", jg.exp)
    monkeypatch.setattr(jg.nn.Tanh, "forward", jg.nn.Tanh.forward)
    monkeypatch.setattr(jg.Tensor, "tanh", jg.Tensor.tanh)
    threads, interval, threshold = jg.get_num_threads(), sys.getswitchinterval(), gc.get_threshold()
    functions.__dict__.pop("abs", None)
    with np.printoptions(), np.errstate(), decimal.localcontext():
        yield
    jg.set_num_threads(threads)
    sys.setswitchinterval(interval)
    gc.set_threshold(*threshold)


def assert_same(found: Any, expected: Any) -> None:
    found, expected = ([t] if isinstance(t, jg.Tensor) else t for t in (found, expected))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-12)


@pytest.mark.filterwarnings("ignore::jitgrad.core.errors.EffectWarning")
@pytest.mark.parametrize("name", CHANGES)
def test_a_change_between_calls(name, kept_state):
    function, change = CHANGES[name]()
    compiled, refused = jg.jit(function), name.partition(" ")[2] in REFUSED
    if refused:
        with pytest.raises(TraceError, match=r"outside|argument|global|return the value|random functions"):
            compiled(jg.tensor(X))
        return
    for _ in range(3):
        compiled(jg.tensor(X))
    change()
    assert_same(compiled(jg.tensor(X)), function(jg.tensor(X)))


@pytest.mark.filterwarnings("ignore::jitgrad.core.errors.EffectWarning")
@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_code_compiles(name, capsys):
    function = ORDINARY[name]()
    compiled = jg.jit(function)
    for k in range(4):
        assert_same(compiled(jg.tensor(X + k)), function(jg.tensor(X + k)))

    assert compiled.cache_info().traces == 1 + (name in FILLS)
    assert compiled.cache_info().fallbacks == 0


@dataclasses.dataclass(frozen=True)
class Config:
    rate: float = 2.0
    size: tuple[int, ...] = (1, 2)


@pytest.mark.parametrize("make", [Config, SimpleNamespace], ids=["frozen dataclass", "namespace"])
@pytest.mark.parametrize("place", ["global", "attribute", "argument"])
def test_an_equal_record_made_anew_is_no_change(place, make, monkeypatch):
    holder = SimpleNamespace(config=None)
    functions = {
        "global": lambda x, _config: x * config.rate,
        "attribute": lambda x, _config: x * holder.config.rate,
        "argument": lambda x, config: x * config.rate,
    }
    compiled = jg.jit(functions[place])
    for rate in (2.0, 2.0, 2.0, 3.0):
        monkeypatch.setattr(sys.modules[__name__], "config", make(rate=rate))
        holder.config = make(rate=rate)
        argument = make(rate=rate) if place == "argument" else 1
        assert_same(compiled(jg.tensor(X), argument), jg.tensor(X * rate))

    float_argument = place == "argument" and make is SimpleNamespace  # taken apart like a dict
    assert compiled.cache_info().traces == (1 if float_argument else 2)


config: Any = None


def test_a_timer_warns_once_that_it_runs_only_while_tracing():
    compiled = jg.jit(ORDINARY["timer_list"]())
    with pytest.warns(EffectWarning, match=r"closure cell `times` \(ordinary_code.py:\d+\)"):
        compiled(jg.tensor(X))
    compiled(jg.tensor(X))


@pytest.mark.parametrize("nested", [False, True])
def test_a_layer_that_gets_another_class_computes_what_that_does(nested: bool) -> None:
    class Doubled(jg.nn.Linear):
        def forward(self, x: Any) -> Any:
            return super().forward(x) * 2.0

    layer = jg.nn.Linear(2, 3)
    model = jg.nn.Sequential(layer) if nested else layer
    f, x = jg.jit(lambda x: model(x).sum(), backend="python"), jg.ones((1, 2))
    before = f(x).item()
    layer.__class__ = Doubled
    assert f(x).item() == pytest.approx(2.0 * before)
    layer.__class__ = jg.nn.Linear
    assert f(x).item() == before
