"""Imports, keywords and signatures of programs for torch that were refused, or meant something else."""

from __future__ import annotations

import copy
import importlib
import io
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import ArgumentError

peer = pytest.importorskip("torch")

IMPORTS = [
    "fft", "linalg", "special", "random", "nn.modules", "nn.modules.utils", "nn.modules.conv", "nn.modules.module",
    "optim.adam", "optim.sgd", "utils.data.sampler", "utils.data.dataset", "utils.data.dataloader", "nn.utils.clip_grad",
    "distributions.studentT",
]  # fmt: skip
KEYWORDS = {
    "layer_norm": lambda torch, x: torch.nn.functional.layer_norm(input=x, normalized_shape=(4,)),
    "normalize": lambda torch, x: torch.nn.functional.normalize(input=x, p=1.0, dim=0),
    "embedding": lambda torch, x: torch.nn.functional.embedding(input=torch.tensor([1, 0]), weight=x),
    "linear": lambda torch, x: torch.nn.functional.linear(input=x, weight=x),
    "cosine_embedding_loss": lambda torch, x: torch.nn.functional.cosine_embedding_loss(
        input1=x, input2=x.flip(0), target=torch.ones(3)
    ),
    "cosine_similarity": lambda torch, x: torch.nn.functional.cosine_similarity(x1=x, x2=x.flip(0), dim=1),
    "threshold": lambda torch, x: torch.nn.functional.threshold(input=x, threshold=0.1, value=2.0),
    "gather": lambda torch, x: torch.gather(input=x, dim=1, index=torch.tensor([[0], [1]])),
    "mul": lambda torch, x: torch.mul(input=x, other=x),
    "matmul": lambda torch, x: torch.matmul(input=x, other=x.T),
    "nanmedian": lambda torch, x: torch.nanmedian(x),
    "nanmedian along": lambda torch, x: x.nanmedian(1).values,
    "cov": lambda torch, x: x.cov(),
    "corrcoef": lambda torch, x: torch.corrcoef(x + torch.eye(3, 4)),
    "logspace": lambda torch, x: torch.logspace(0, 1, 3),
    "lstsq": lambda torch, x: torch.linalg.lstsq(x + torch.eye(3, 4)[:, :4], x[:, :1]).solution.sum() * 0.0,
    "Threshold": lambda torch, x: torch.nn.Threshold(0.1, 20.0, False)(x),
    "LoadResult": lambda torch, x: torch.tensor(len(repr(torch.nn.ReLU().load_state_dict({})))),
}


@pytest.fixture
def torch() -> ModuleType:
    return importlib.import_module("jitgrad.torch")


@pytest.mark.parametrize("name", IMPORTS)
def test_modules_are_where_torch_has_them(name: str, torch: ModuleType):
    importlib.import_module(f"jitgrad.torch.{name}")


def test_names_in_these_modules(torch: ModuleType):
    pair = importlib.import_module("jitgrad.torch.nn.modules.utils")._pair
    batchnorm = importlib.import_module("jitgrad.torch.nn.modules.batchnorm")
    sampler = importlib.import_module("jitgrad.torch.utils.data.sampler")

    assert pair(3) == (3, 3) and pair((1, 2)) == (1, 2)
    assert issubclass(torch.nn.BatchNorm2d, batchnorm._BatchNorm)
    assert sampler.BatchSampler is jg.utils.data.BatchSampler
    assert importlib.import_module("jitgrad.torch.autograd.function").once_differentiable(len) is len


@pytest.mark.parametrize("name", KEYWORDS)
def test_calls_as_in_torch(name: str, torch: ModuleType):
    values = np.linspace(-1.0, 1.0, 12, dtype=np.float32).reshape(3, 4)
    expected = KEYWORDS[name](peer, peer.tensor(values)).numpy()

    found = KEYWORDS[name](torch, torch.tensor(values)).numpy()

    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_jacobians_at_inputs(torch: ModuleType):
    def derivatives(torch: Any) -> list[Any]:
        of, x = torch.autograd.functional, torch.tensor([1.0, 2.0])
        single = of.jacobian(lambda x: x**2, x), of.hessian(lambda x: (x**3).sum(), x)
        pair = of.jacobian(lambda x, y: x * y, (x, x + 1)), of.hessian(lambda x, y: (x**2 * y).sum(), (x, x))
        return [*single, *pair[0], *pair[1][0], *pair[1][1]]

    for found, expected in zip(derivatives(torch), derivatives(peer), strict=True):
        np.testing.assert_allclose(found.numpy(), expected.numpy())


def test_a_compiled_module_is_the_module(torch: ModuleType):
    module = torch.nn.Linear(2, 3)
    compiled = torch.compile(module, mode="reduce-overhead")
    compiled(torch.ones(1, 2)).sum().backward()
    other = copy.deepcopy(compiled)
    with torch.no_grad():
        other.weight.zero_()

    assert list(compiled.state_dict()) == ["_orig_mod.weight", "_orig_mod.bias"]
    assert module.weight.grad.tolist() == [[1.0, 1.0]] * 3 and compiled.in_features == 2
    assert not module.weight.eq(0.0).any() and other(torch.ones(1, 2)).tolist() == [other.bias.tolist()]
    assert not compiled.eval()._orig_mod.training
    assert torch.compile(lambda x: x + 1.0, fullgraph=True)(torch.ones(1)).tolist() == [2.0]


def test_names_of_scripting(torch: ModuleType):
    @torch.jit.script
    def double(x: Any) -> Any:
        return x * 2.0

    @torch.jit.ignore
    def ignored(x: Any) -> Any:
        return x

    assert double(torch.ones(1)).tolist() == [2.0] and ignored(3) == 3 and not torch.jit.is_scripting()


def test_states_in_open_files_and_under_prefixes(torch: ModuleType):
    module, file = torch.nn.Linear(2, 1), io.BytesIO()
    torch.save({"model": module.state_dict(), "epoch": 3}, file)
    file.seek(0)
    loaded = torch.load(file)
    state = module.state_dict(prefix="head.")

    assert loaded["epoch"] == 3 and loaded["model"]["weight"].tolist() == module.weight.tolist()
    assert list(module.state_dict(destination=state, keep_vars=True)) == ["head.weight", "head.bias", "weight", "bias"]
    assert state["weight"] is module.weight


def test_rows_are_shortened_when_they_are_looked_up(torch: ModuleType):
    def looked_up(torch: Any, wrap: Any) -> list[Any]:
        weight = torch.tensor([[3.0, 4.0], [0.3, 0.4], [6.0, 8.0]])
        layer = torch.nn.Embedding(3, 2, max_norm=1.0, sparse=False)
        with torch.no_grad():
            layer.weight.copy_(weight)
        rows = wrap(lambda k: layer(k) * 2.0)(torch.tensor([1, 0]))
        return [rows.detach().numpy(), layer.weight.detach().numpy()]

    for wrap in (lambda f: f, jg.jit):
        for found, expected in zip(looked_up(torch, wrap), looked_up(peer, lambda f: f), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-6)
    with pytest.raises(ArgumentError, match="scale_grad_by_freq"):
        torch.nn.EmbeddingBag(3, 2, scale_grad_by_freq=True)


def test_a_required_option(torch: ModuleType):
    required = importlib.import_module("jitgrad.torch.optim.optimizer").required
    with pytest.raises(ArgumentError, match="gives no lr"):
        torch.optim.Optimizer([torch.ones(1, requires_grad=True)], {"lr": required})


def test_numbers_drawn_apart(torch: ModuleType):
    torch.manual_seed(3)
    expected = torch.rand(2).tolist()
    torch.manual_seed(3)
    with torch.random.fork_rng():
        torch.rand(5)

    assert torch.rand(2).tolist() == expected
