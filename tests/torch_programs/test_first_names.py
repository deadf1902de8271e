"""Names and habits of PyTorch programs that were missing: each computes what torch computes."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad import nn
from jitgrad.core.errors import ArgumentError, AutogradError, ShapeError

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("shape", [(3, 3), (2, 5), (5, 2), (7, 3), (2, 2, 2)])
@pytest.mark.parametrize("wrap", [False, True])
def test_fill_diagonal(shape: tuple[int, ...], wrap: bool) -> None:
    x = np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
    expected = torch.tensor(x).fill_diagonal_(-1.0, wrap).numpy()

    def filled(x: Any) -> Any:
        y = x * 1.0
        assert y.fill_diagonal_(-1.0, wrap) is y
        return y

    for function in (filled, jg.jit(filled)):
        np.testing.assert_array_equal(function(jg.tensor(x)).numpy(), expected)
    gradient = jg.jit(jg.grad(lambda x: filled(x).sum()))(jg.tensor(x)).numpy()
    np.testing.assert_array_equal(gradient, expected != -1.0)


def test_fill_diagonal_of_other_shapes_is_refused() -> None:
    with pytest.raises(ShapeError, match="expected a matrix"):
        jg.ones(3).fill_diagonal_(0.0)
    with pytest.raises(ShapeError, match="axes of one length"):
        jg.ones((2, 3, 2)).fill_diagonal_(0.0)


def test_where_of_a_condition_alone() -> None:
    x = np.array([[0.0, 2.0], [3.0, 0.0]])
    for found, expected in zip(jg.where(jg.tensor(x)), torch.where(torch.tensor(x)), strict=True):
        np.testing.assert_array_equal(found.numpy(), expected.numpy())
    np.testing.assert_array_equal(jg.jit(lambda x: jg.where(x)[0])(jg.tensor(x)).numpy(), torch.where(torch.tensor(x))[0])


def test_only_inputs() -> None:
    x = jg.tensor([2.0], requires_grad=True)
    (g,) = jg.autograd.grad((x * x).sum(), x, only_inputs=True)
    assert g.tolist() == [4.0]
    with pytest.raises(ArgumentError, match="call backward"):
        jg.autograd.grad((x * x).sum(), x, only_inputs=False)


def test_a_parameter_that_is_frozen_from_the_start_is_saved() -> None:
    class Margin(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.margin = nn.Parameter(jg.tensor([1.0]), requires_grad=False)
            self.weight = nn.Parameter(jg.ones(2))

    module = Margin()
    assert list(module.state_dict()) == ["margin", "weight"]
    assert isinstance(module.margin, nn.Parameter)
    assert not isinstance(jg.ones(2), nn.Parameter)
    assert [p.requires_grad for p in module.parameters()] == [False, True]
    module.load_state_dict({"margin": jg.tensor([3.0]), "weight": jg.zeros(2)})
    assert module.margin.item() == 3.0


def lion(library: Any) -> Any:
    """X. Chen et al., "Symbolic Discovery of Optimization Algorithms", NeurIPS 2023, written as for torch."""

    class Lion(library.optim.Optimizer):
        def __init__(self, params: Any, lr: float = 1e-2, betas: Any = (0.9, 0.99), weight_decay: float = 0.0) -> None:
            super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

        @library.no_grad()
        def step(self, closure: Any = None) -> None:
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    state = self.state[p]
                    if len(state) == 0:
                        state["step"] = 0
                        state["average"] = library.zeros_like(p)
                    state["step"] += 1
                    keep, keep_average = group["betas"]
                    p.mul_(1 - group["lr"] * group["weight_decay"])
                    p.add_((state["average"] * keep + p.grad * (1 - keep)).sign() * -group["lr"] / state["step"])
                    state["average"].mul_(keep_average).add_(p.grad, alpha=1 - keep_average)

    return Lion


def trained(library: Any, wrap: Any) -> list[Any]:
    a, b = (library.tensor(np.arange(1.0, 1.0 + n), requires_grad=True) for n in (3, 2))
    optimizer = lion(library)([{"params": [a], "weight_decay": 0.1}, {"params": [b], "lr": 0.05}], lr=0.02)
    schedule = library.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = ((a * x).sum() - (b * b).sum()) ** 2
        loss.backward()
        optimizer.step()
        return loss

    step, losses = wrap(step), []
    for k in range(5):
        losses.append(step(library.tensor([0.1 * k, 1.0, -0.3], dtype=library.float64)).item())
        schedule.step()
    assert optimizer.state[a]["step"] == 5
    return [losses, a.tolist(), b.tolist(), optimizer.state[b]["average"].tolist()]


def test_the_state_of_such_an_optimizer_is_saved() -> None:
    def make() -> tuple[Any, Any, Any]:
        w = jg.tensor([1.0, 2.0], requires_grad=True)
        optimizer = lion(jg)([w])

        def step(x: Any) -> None:
            optimizer.zero_grad()
            (w * x).sum().backward()
            optimizer.step()

        return w, optimizer, jg.jit(step)

    w, optimizer, step = make()
    step(jg.tensor([1.0, -1.0])), step(jg.tensor([-3.0, 1.0]))
    other_w, other, other_step = make()
    with jg.no_grad():
        other_w.copy_(w)
    other.load_state_dict(optimizer.state_dict())
    step(jg.tensor([0.1, 0.0])), other_step(jg.tensor([0.1, 0.0]))
    assert other_w.tolist() == w.tolist()
    assert other.state[other_w]["step"] == 3
    other.load_state_dict(make()[1].state_dict())
    assert other.state[other_w] == {}


@pytest.mark.parametrize("wrap", [lambda f: f, jg.jit], ids=["eager", "compiled"])
def test_an_optimizer_written_as_for_torch(wrap: Any) -> None:
    for found, expected in zip(trained(jg, wrap), trained(torch, lambda f: f), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["FloatTensor", "DoubleTensor", "LongTensor", "IntTensor", "ByteTensor", "BoolTensor"])
def test_constructors_by_type(name: str) -> None:
    for data in ([[1, 0], [3, 4]], range(3), [], np.arange(3.0)):
        found, expected = getattr(jg, name)(data), getattr(torch, name)(list(data))
        np.testing.assert_array_equal(found.numpy(), expected.numpy())
        assert found.dtype == expected.numpy().dtype
    assert getattr(jg, name)(2, 3).shape == (2, 3)


def test_a_tensor_of_a_list_has_the_default_dtype() -> None:
    assert (jg.Tensor([1, 2]).dtype, jg.Tensor([[1.5]]).tolist()) == (jg.float32, [[1.5]])
    assert jg.jit(lambda x: x / jg.Tensor([2.0]), backend="python")(jg.ones(1)).tolist() == [0.5]
    assert [jg.Tensor(*lengths).shape for lengths in ((3,), (2, 3), (2, 3, 4, 5), ())] == [(3,), (2, 3), (2, 3, 4, 5), (0,)]
    assert jg.jit(lambda x: x + jg.Tensor(2, 3).fill_(2.0), backend="python")(jg.ones(3)).tolist() == [[3.0] * 3] * 2
    array = np.arange(3)
    kept = jg.Tensor(array)  # NumPy's meaning, as the guide says
    assert kept.dtype == np.int64 and np.shares_memory(kept.numpy(), array)
    with pytest.raises(ArgumentError, match=r"the lengths of axes"):
        jg.Tensor("text")  # type: ignore[arg-type]


def test_variables_are_detached() -> None:
    x = jg.ones(2, requires_grad=True) * 2
    y = jg.autograd.Variable(x, requires_grad=True)
    assert y.is_leaf and y.requires_grad and y.tolist() == [2.0, 2.0]
    assert not jg.autograd.Variable(x).requires_grad


def test_rows_of_searchsorted_and_operands_of_einsum_in_a_list() -> None:
    rows = np.sort(np.random.default_rng(0).integers(0, 6, (2, 3, 5)).astype(np.float32), -1)
    values = np.array([[[0.0, 3.0, np.nan]] * 3] * 2, np.float32)
    for right in (False, True):
        expected = torch.searchsorted(torch.tensor(rows), torch.tensor(values), right=right)
        found = jg.searchsorted(jg.tensor(rows), jg.tensor(values), right=right)
        np.testing.assert_array_equal(found.numpy(), expected.numpy())
    with pytest.raises(ShapeError, match="axes other than the last"):
        jg.searchsorted(jg.tensor(rows), jg.ones(2))
    assert jg.einsum("i,i->", [jg.ones(3), jg.ones(3)]).item() == 3.0


@pytest.mark.parametrize("name", ["LambdaLR", "StepLR", "CosineAnnealingLR", "ExponentialLR"])
def test_schedules_take_the_last_epoch(name: str) -> None:
    arguments: dict[str, tuple[Any, ...]] = {
        "LambdaLR": (lambda n: 0.9**n, -1), "StepLR": (2, 0.5, -1), "CosineAnnealingLR": (4, 0.1, -1), "ExponentialLR": (0.5, -1)
    }  # fmt: skip
    rates: list[float] = []
    for library in (jg, torch):
        optimizer = library.optim.SGD([library.ones(2, requires_grad=True)], lr=0.5)
        for group in optimizer.param_groups:
            group.setdefault("initial_lr", 0.5)
        make = getattr(library.optim.lr_scheduler, name)
        first = make(optimizer, *arguments[name])
        optimizer.step(), first.step()
        rates.append(first.get_last_lr()[0])
        again = make(optimizer, *arguments[name][:-1], last_epoch=2)
        optimizer.step(), again.step()
        rates += [again.get_last_lr()[0], again.last_epoch]
    np.testing.assert_allclose(rates[:3], rates[3:], rtol=1e-6)


def test_groups_of_parameters_carry_more_than_options() -> None:
    optimizer = jg.optim.SGD([{"params": [jg.ones(1, requires_grad=True)], "lr_scale": 0.5, "name": "head"}], lr=1.0)
    assert (optimizer.param_groups[0]["lr_scale"], optimizer.param_groups[0]["name"]) == (0.5, "head")
    with pytest.raises(ArgumentError, match="did you mean 'weight_decay'"):
        jg.optim.SGD([{"params": [jg.ones(1, requires_grad=True)], "weight_decya": 0.5}], lr=1.0)


def test_lists_of_parameters_keep_frozen_ones() -> None:
    module = nn.ParameterList([nn.Parameter(jg.ones(1))])
    module.extend([nn.Parameter(jg.zeros(1), requires_grad=False)])
    module[0] = nn.Parameter(jg.ones(2))
    assert [p.requires_grad for p in module] == [True, False]
    assert list(module.state_dict()) == ["0", "1"] and module[0].shape == (2,)


class Halved(jg.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x / 2


WRONG: dict[str, tuple[Any, str]] = {
    "optimizer of a module": (lambda m: jg.optim.Adam(m, lr=0.1), r"Adam: .*model\.parameters\(\), got a value of class Linear"),
    "clipping a module": (lambda m: nn.utils.clip_grad_norm_(m, 1.0), r"such as model\.parameters\(\), got Linear"),
    "schedule of a module": (lambda m: jg.optim.lr_scheduler.StepLR(m, 2), r"StepLR: expected an optimizer .*, got Linear"),
    "groups that do not divide": (lambda m: nn.GroupNorm(3, 4), r"num_channels=4 does not divide into 3 groups"),
    "instance of a function": (lambda m: Halved()(jg.ones(2)), r"'Halved' has no instances: call Halved\.apply"),
    "lengths that increase": (
        lambda m: nn.utils.rnn.pack_padded_sequence(jg.ones((2, 5, 3)), jg.tensor([3, 5]), batch_first=True),
        r"lengths \[3, 5\] must lie in 1 to 5, the longest first",
    ),
    "lengths beyond the tensor": (
        lambda m: nn.utils.rnn.pack_padded_sequence(jg.ones((2, 5, 3)), jg.tensor([7, 5]), batch_first=True),
        r"lengths \[7, 5\] must lie in 1 to 5",
    ),
}


@pytest.mark.parametrize("call", WRONG)
def test_slips_are_errors_that_say_what_to_do(call: str) -> None:
    function, message = WRONG[call]
    with pytest.raises((ArgumentError, AutogradError), match=message):
        function(nn.Linear(2, 2))


def test_what_programs_set_at_their_beginning():
    cudnn = importlib.import_module("jitgrad.backends.cudnn")
    cudnn.benchmark = jg.backends.cudnn.deterministic = True
    jg.backends.cuda.matmul.allow_tf32 = True
    jg.set_float32_matmul_precision("high")
    jg.use_deterministic_algorithms(True, warn_only=True)
    device = "cuda" if jg.cuda.is_available() else "mps" if jg.backends.mps.is_available() else "cpu"
    jg.cuda.manual_seed_all(0)
    jg.cuda.empty_cache()

    assert cudnn is jg.backends.cudnn and device in ("cpu", "cuda")
    with pytest.raises(ArgumentError, match="highest, high or medium"):
        jg.set_float32_matmul_precision("low")
