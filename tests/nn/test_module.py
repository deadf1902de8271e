"""Module: registration, order and names; state; modes; printing; files."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad import nn
from jitgrad.autograd.backward import backward
from jitgrad.autograd.modes import no_grad
from jitgrad.core.errors import ArgumentError, CheckpointError, DtypeError
from jitgrad.core.tensor import Tensor
from jitgrad.ops.inplace import assign
from jitgrad.ops.reduce import sum as sum_


class Block(nn.Module):
    """A module that does not call super().__init__, with a list of parts, a buffer and a shared parameter."""

    def __init__(self) -> None:
        self.scale = nn.Parameter(np.ones(3))
        self.layers = [nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3, bias=False)]
        self.again = self.layers[0]
        self.register_buffer("count", np.zeros(2))
        self.register_buffer("scratch", np.zeros(2), persistent=False)

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x * self.scale


def names(pairs: Any) -> list[str]:
    return [name for name, _ in pairs]


def test_names_and_order() -> None:
    block = Block()

    assert names(block.named_parameters()) == ["scale", "layers.0.weight", "layers.0.bias", "layers.2.weight"]
    assert names(block.named_buffers()) == ["count", "scratch"]
    assert names(block.named_modules()) == ["", "layers.0", "layers.1", "layers.2"]
    assert names(block.named_children()) == ["layers.0", "layers.1", "layers.2", "again"]
    assert sorted(block.state_dict()) == sorted(
        ["scale", "count", "layers.0.weight", "layers.0.bias", "layers.2.weight", "again.weight", "again.bias"]
    )


def test_a_frozen_parameter_stays_one() -> None:
    block = Block()
    block.scale.requires_grad_(False)

    assert "scale" in names(block.named_parameters())
    assert not any(p.requires_grad for p in block.requires_grad_(False).parameters())


def test_replacing_a_parameter_by_something_else_is_an_error() -> None:
    block = Block()
    with pytest.raises(ArgumentError, match=r"Block\.scale is a parameter"):
        block.scale = Tensor(np.ones(3))
    block.scale = nn.Parameter(np.zeros(3))
    del block.scale

    assert "scale" not in names(block.named_parameters())


def test_train_and_eval_reach_all_parts() -> None:
    block = Block()

    assert not any(m.training for m in block.eval().modules())
    assert all(m.training for m in block.train().modules())


def test_zero_grad() -> None:
    block = Block()
    backward(sum_(block(np.ones((2, 3), np.float32))))
    assert all(p.grad is not None for p in block.parameters())

    block.zero_grad()

    assert all(p.grad is None for p in block.parameters())


def test_state_goes_in_place_from_one_module_to_another() -> None:
    a, b = Block(), Block()
    held = list(b.parameters())
    x = np.ones((2, 3), np.float32)

    result = b.load_state_dict(a.state_dict())

    assert result == ([], [])
    assert all(p is q for p, q in zip(held, b.parameters(), strict=True))
    assert b(x).tolist() == a(x).tolist()
    with no_grad():
        assign(a.scale, 5.0)
    assert b.scale.tolist() == [1, 1, 1]


def test_a_state_that_does_not_fit_changes_nothing() -> None:
    a = nn.Linear(2, 3)
    before = a.weight.tolist()
    wrong = {"weight": np.ones((3, 2), np.float32), "bias": np.ones(4, np.float32)}

    with pytest.raises(CheckpointError, match=r"bias: the module has f32\[3\], the state f32\[4\]"):
        a.load_state_dict(wrong)
    with pytest.raises(CheckpointError, match=r"missing: bias; unexpected: extra"):
        a.load_state_dict({"weight": wrong["weight"], "extra": np.ones(1)})
    assert a.weight.tolist() == before

    result = a.load_state_dict({"weight": wrong["weight"], "extra": np.ones(1)}, strict=False)

    assert result == (["bias"], ["extra"])
    assert a.weight.tolist() == np.ones((3, 2)).tolist()


def test_conversion_keeps_the_tensors() -> None:
    block = Block()
    held = list(block.parameters())
    backward(sum_(block(np.ones((2, 3), np.float32))))

    block.double()

    assert all(p is q for p, q in zip(held, block.parameters(), strict=True))
    assert {p.dtype for p in block.parameters()} == {np.dtype(np.float64)}
    assert all(p.grad is not None and p.grad.dtype == np.float64 for p in held)
    assert block(np.ones((2, 3))).dtype == np.float64
    assert block.to(np.float32).scale.dtype == np.float32
    with pytest.raises(ArgumentError, match="floating"):
        block.to(np.int64)


def test_a_copy_is_independent() -> None:
    block = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    twin = copy.deepcopy(block)
    with no_grad():
        assign(twin[0].weight, 0.0)

    assert names(twin.named_parameters()) == names(block.named_parameters())
    assert block[0].weight.tolist() != twin[0].weight.tolist()


def test_printing() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.GELU(), nn.Dropout(0.1)))

    assert repr(model) == (
        "Sequential(\n"
        "  (0): Linear(in_features=2, out_features=3, bias=True)\n"
        "  (1): Sequential(\n"
        "    (0): GELU(approximate='none')\n"
        "    (1): Dropout(p=0.1)\n"
        "  )\n"
        ")"
    )


def test_containers() -> None:
    model = nn.Sequential({"first": nn.Linear(2, 2), "second": nn.ReLU()})
    listed = nn.ModuleList([nn.ReLU(), nn.Tanh()])

    assert names(model.named_parameters()) == ["first.weight", "first.bias"]
    assert [type(m).__name__ for m in listed] == ["ReLU", "Tanh"]
    assert isinstance(model[:1], nn.Sequential) and len(model[:1]) == 1
    assert isinstance(listed[-1], nn.Tanh)
    with pytest.raises(ArgumentError, match="Module"):
        listed.append(3)  # type: ignore[arg-type]
    with pytest.raises(NotImplementedError, match="ModuleList"):
        listed(1)


def test_parameters_are_floats() -> None:
    with pytest.raises(DtypeError):
        nn.Parameter(np.arange(3))


# --- files -------------------------------------------------------------------------------------------------------


def test_a_file_brings_everything_back(tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    a, b = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm2d(4)), nn.Sequential(nn.Linear(3, 2), nn.BatchNorm2d(4))
    nn.save(a, tmp_path / "model.safetensors")

    b.load_state_dict(nn.load(tmp_path / "model.safetensors"))

    assert [p.name for p in tmp_path.iterdir()] == ["model.safetensors"]
    for name, tensor in a.state_dict().items():
        assert b.state_dict()[name].dtype == tensor.dtype
        np.testing.assert_array_equal(b.state_dict()[name].numpy(), tensor.numpy())


@pytest.mark.parametrize("dtype", ["?", "b", "h", "i", "l", "B", "e", "f", "d"])
def test_every_dtype_and_layout_survives_the_file(dtype: str, tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    x = np.arange(12).reshape(3, 4).astype(dtype)
    parts = {"whole": x, "swapped": x.T, "strided": x[::-1, ::2], "scalar": x[0, 1], "none": x[:0]}
    nn.save({name: np.asarray(part) for name, part in parts.items()}, tmp_path / "x")

    found = nn.load(tmp_path / "x")

    for name, part in parts.items():
        assert found[name].dtype == part.dtype and found[name].shape == part.shape
        np.testing.assert_array_equal(found[name].numpy(), part)


def test_files_that_are_no_checkpoints(tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    nn.save({"x": np.ones(100)}, tmp_path / "x")
    (tmp_path / "cut").write_bytes((tmp_path / "x").read_bytes()[:-5])
    (tmp_path / "text").write_text("hello")

    for name in ("cut", "text"):
        with pytest.raises(CheckpointError, match="no complete safetensors file"):
            nn.load(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        nn.load(tmp_path / "missing")
    with pytest.raises(CheckpointError, match="x is of class set"):
        nn.save({"x": {1.0}}, tmp_path / "x")


def test_parameters_are_recognised() -> None:
    layer = nn.Linear(2, 3)

    assert isinstance(layer.weight, nn.Parameter)
    assert not isinstance(layer.weight * 2, nn.Parameter)
    assert not isinstance(jg.ones(2), nn.Parameter)
    assert [p is q for p, q in zip(layer.parameters(recurse=False), layer.parameters(), strict=True)] == [True, True]
    assert list(nn.Sequential(layer).parameters(recurse=False)) == []
    layer.add_module("more", nn.ReLU())
    assert list(layer.children()) == [layer.more]
    layer(jg.ones(2)).sum().backward()
    layer.zero_grad(set_to_none=False)
    assert layer.weight.grad.tolist() == [[0.0, 0.0]] * 3
    layer.zero_grad()
    assert layer.weight.grad is None
    assert layer.half().weight.dtype == jg.float16


@pytest.mark.parametrize("compiled", [False, True])
def test_forward_hooks_see_and_replace(compiled: bool) -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    seen: dict[str, Any] = {}

    def remember(module: Any, args: Any, result: Any) -> None:
        seen["hidden"] = result.detach()

    def call(x: Any) -> Any:
        return model(x)

    call = jg.jit(call) if compiled else call
    x, plain = jg.ones(5, 3), model(jg.ones(5, 3)).tolist()
    first = model[0].register_forward_hook(remember)
    np.testing.assert_allclose(call(x).detach().numpy(), plain, rtol=1e-5)
    np.testing.assert_allclose(seen["hidden"].numpy(), model[0](x).detach().numpy(), rtol=1e-6)

    doubled = model[0].register_forward_pre_hook(lambda module, args: (args[0] * 2.0,))
    shifted = model.register_forward_hook(lambda module, args, result: result + 1.0)
    expected = model[2](jg.relu(model[0](x))) + 1.0
    np.testing.assert_allclose(call(x).detach().numpy(), expected.detach().numpy(), rtol=1e-5)

    for handle in (first, doubled, shifted):
        handle.remove()
    seen.clear()
    np.testing.assert_allclose(call(x).detach().numpy(), plain, rtol=1e-5)
    assert seen == {}


def test_parts_by_their_dotted_names() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.BatchNorm1d(3), nn.ReLU()))
    assert model.get_submodule("1.0") is model[1][0] and model.get_submodule("") is model
    assert model.get_parameter("0.weight") is model[0].weight
    assert model.get_buffer("1.0.running_mean") is model[1][0].running_mean
    with pytest.raises(AttributeError, match=r"Sequential has no parameter '0.weigth' \(did you mean '0.weight'\?\)"):
        model.get_parameter("0.weigth")
    with pytest.raises(AttributeError, match=r"no module '1.7'"):
        model.get_submodule("1.7")


def test_tensors_of_one_module_alone() -> None:
    class Outer(nn.Module):
        def __init__(self) -> None:
            self.inner = nn.BatchNorm1d(3)
            self.scale = nn.Parameter(jg.ones(3))
            self.register_buffer("shift", jg.zeros(3))

    outer = Outer()

    assert [name for name, _ in outer.named_parameters(recurse=False)] == ["scale"]
    assert [name for name, _ in outer.named_parameters("net", False)] == ["net.scale"]  # torch's order of arguments
    assert [name for name, _ in outer.named_buffers(recurse=False)] == ["shift"]
    assert len(list(outer.buffers(recurse=False))) == len(list(outer.parameters(recurse=False))) == 1
    assert len(list(outer.parameters())) == 3


@pytest.mark.parametrize("compiled", [False, True])
def test_data_parallel_is_its_module(compiled: bool) -> None:
    inner = nn.Linear(2, 3)
    model = nn.DataParallel(inner, device_ids=[0])
    call = jg.jit(model) if compiled else model
    x = jg.ones(4, 2)
    np.testing.assert_array_equal(call(x).detach().numpy(), inner(x).detach().numpy())
    assert [*model.state_dict()] == ["module.weight", "module.bias"] and model.module is inner
    assert nn.parallel.DataParallel is nn.DataParallel
