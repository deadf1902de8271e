"""``import jitgrad.torch as torch``: calls that NumPy understands differently mean what torch means, eager and compiled."""

from __future__ import annotations

import importlib
import sys
import warnings
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import jitgrad as jg

X = np.array([[3.0, 1.0, 2.0], [2.0, 5.0, 5.0]])
CALLS = {
    "max": lambda torch, x: torch.max(x, 1),
    "max of all": lambda torch, x: torch.max(x),
    "max of two": lambda torch, x: torch.max(x, x * x - 4.0),
    "max with keepdim by position": lambda torch, x: torch.max(x, 1, True),
    "min by keyword": lambda torch, x: torch.min(input=x, dim=0),
    "x.max": lambda torch, x: x.max(1)[1],
    "x.min": lambda torch, x: x.min(-1)[0],
    "x.max of another": lambda torch, x: x.max(x * 0.5 + 1.0),
    "median": lambda torch, x: torch.median(x),
    "median along": lambda torch, x: x.median(0),
    "sort": lambda torch, x: torch.sort(x, 1, True),
    "x.sort": lambda torch, x: x.sort(),
    "var": lambda torch, x: (torch.var(x), torch.var(x, 1), torch.var(x, 1, False), torch.var(x, False)),
    "std": lambda torch, x: (torch.std(x), x.std(), x.std(0), x.std(1, True, True), x.std(1, correction=0)),
    "x.var": lambda torch, x: (x.var(), x.var(dim=1, unbiased=False), x.var((0, 1), keepdim=True)),
    "split": lambda torch, x: torch.split(x, 2, 1),
    "x.split": lambda torch, x: (*x.split(1), *x.split([1, 2], dim=-1)),
    "squeeze": lambda torch, x: torch.squeeze(x.unsqueeze(0), 1) + torch.squeeze(x.unsqueeze(0)),
    "repeat": lambda torch, x: (x.repeat(2, 1), x.repeat(1, 2, 2), x[0].repeat(2), x.repeat((2, 2))),
    "meshgrid": lambda torch, x: torch.meshgrid(x[0], x[1], indexing="ij"),
}
LOOKS = {
    "equal": lambda torch, x: (torch.equal(x, x + 0.0), x.equal(x + 1.0), torch.equal(x, x[0])),
    "nonzero": lambda torch, x: (torch.nonzero(x - 1.0), (x - 1.0).nonzero(), *torch.nonzero(x - 1.0, as_tuple=True)),
}


@pytest.fixture
def torch_names() -> ModuleType:
    return importlib.import_module("jitgrad.torch")


def arrays(result: Any) -> list[np.ndarray[Any, Any]]:
    parts = result if isinstance(result, tuple) else (result,)
    return [np.asarray(p.detach() if hasattr(p, "detach") else p) for p in parts]


def value_and_gradient(torch: Any, call: Any, wrap: Any) -> list[np.ndarray[Any, Any]]:
    x = torch.tensor(X.copy(), requires_grad=True)
    result = wrap(lambda x: call(torch, x))(x)
    values = arrays(result)
    floats = [p for p in (result if isinstance(result, tuple) else (result,)) if p.dtype == torch.float64]
    if floats:
        sum((p * p).sum() for p in floats).backward()
        values.append(np.asarray(x.grad))
    return values


@pytest.mark.peers
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", CALLS)
def test_a_call_means_what_torch_means(name: str, compiled: bool, torch_names: ModuleType) -> None:
    torch = pytest.importorskip("torch")
    expected = value_and_gradient(torch, CALLS[name], lambda f: f)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = value_and_gradient(torch_names, CALLS[name], jg.jit if compiled else lambda f: f)
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.peers
@pytest.mark.parametrize("name", LOOKS)
def test_a_look_at_elements_is_torchs(name: str, torch_names: ModuleType) -> None:
    torch = pytest.importorskip("torch")
    for ours, theirs in zip(LOOKS[name](torch_names, torch_names.tensor(X)), LOOKS[name](torch, torch.tensor(X)), strict=True):
        np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))


def test_the_pair_unpacks(torch_names: ModuleType) -> None:
    _, predicted = torch_names.max(jg.tensor(X), 1)
    _, again = jg.tensor(X).max(1)
    assert predicted.tolist() == again.tolist() == [0, 1]


def test_functions_of_jitgrad_keep_numpys_meaning(torch_names: ModuleType) -> None:
    x = jg.tensor(X)
    assert jg.max(x, 1).tolist() == [3.0, 5.0]
    assert jg.numpy.std(x).item() == np.std(X)
    assert len(jg.split(x, 2)) == 2


def test_what_was_compiled_before_the_import_is_traced_anew() -> None:
    spread = jg.jit(lambda x: x.std())
    x = jg.tensor(X)
    with pytest.warns(jg.errors.MeaningWarning):
        before = spread(x).item()
    assert spread(x).item() == before == np.std(X)
    importlib.import_module("jitgrad.torch")
    assert spread(x).item() == pytest.approx(np.std(X, ddof=1))
    assert spread.cache_info().traces == 2


def test_modules_are_those_of_jitgrad(torch_names: ModuleType) -> None:
    names = ["nn", "nn.functional", "nn.utils.rnn", "optim.lr_scheduler", "utils.data", "autograd", "distributions", "func"]
    for name in names:
        own = importlib.import_module(f"jitgrad.{name}")
        assert importlib.import_module(f"jitgrad.torch.{name}") is own
        assert own.__spec__ is not None and own.__spec__.name == f"jitgrad.{name}"
    assert torch_names.nn is jg.nn
    assert torch_names.Tensor is jg.Tensor
    assert torch_names.func.vmap is jg.vmap
    assert not hasattr(torch_names, "sparse")
    with pytest.raises(ModuleNotFoundError, match=r"jitgrad\.torch\.nonsense"):
        importlib.import_module("jitgrad.torch.nonsense")


def test_bfloat16_can_be_named_but_no_tensor_has_it(torch_names: ModuleType) -> None:
    x = jg.ones(2)
    with torch_names.autocast("cpu", dtype=torch_names.bfloat16):
        assert (x + 1.0).dtype == jg.float32
    for use in (lambda: x.to(torch_names.bfloat16), lambda: torch_names.zeros(2, dtype=torch_names.bfloat16)):
        with pytest.raises(jg.errors.DtypeError, match=r"torch\.bfloat16 is no dtype here .*use torch\.float32"):
            use()


def test_jitgrad_alone_does_not_import_it() -> None:
    assert "jitgrad.torch" not in sys.modules
    assert jg.tensor(X).max(1).tolist() == [3.0, 5.0]
