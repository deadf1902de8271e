"""Common mistakes: each error says what was asked, what was found and what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
import jitgrad.numpy as jnp
from jitgrad import nn, optim
from jitgrad.core import config
from jitgrad.core.errors import ArgumentError, AxisError, CheckpointError, DtypeError, OperandError, ShapeError

X, INTEGERS = jg.ones((2, 3)), jg.tensor([1, 2])


def foreign() -> Any:
    """A value whose class says that it is PyTorch's."""
    return type("Tensor", (), {"__module__": "torch"})()


def changed(x: Any, y: Any) -> None:
    x += y


def stored(x: Any, y: Any) -> None:
    x[0] = y


def parameters() -> Any:
    return nn.Linear(2, 3).parameters()


MISTAKES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "grad of ints": (lambda: jg.grad(jg.sum)(INTEGERS), DtypeError, r"^grad: .*i64\[2\].*astype\(jitgrad.float32\)"),
    "grad of an int": (lambda: jg.grad(lambda x: x * x)(3), DtypeError, r"^grad: .*2\.0 in place of 2"),
    "grad of a vector": (lambda: jg.grad(lambda x: x)(X), RuntimeError, r"^grad: .*one float element; it returned f32\[2,3\]"),
    "argnums": (lambda: jg.grad(jg.sum, argnums=1)(X), ArgumentError, "^grad: argnums=1, .* with 1 arguments, counted from 0"),
    "jacobian of ints": (lambda: jg.jacobian(jg.sum)(INTEGERS), DtypeError, "^jacobian: "),
    "gradient of text": (lambda: jg.ones(2, requires_grad=True).backward("x"), DtypeError, "dtype <U1 is not supported"),
    "axis of mean": (lambda: X.mean(axis=5), AxisError, "^mean: axis 5"),
    "axis of var": (lambda: X.var(axis=5), AxisError, "^var: axis 5"),
    "a 0-d tensor in a loop": (lambda: list(jg.tensor(3.0)), TypeError, r"iteration over a 0-d tensor f32\[\]: .*item\(\)"),
    "a dtype that does not exist": (lambda: jg.ones(3, dtype="float31"), DtypeError, "'float31' is no dtype; bool, int8,.* are"),
    "a number as a dtype": (lambda: X.to(3.5), DtypeError, "^to: 3.5 is no dtype"),
    "a negative size": (lambda: jg.eye(-1), ShapeError, r"^eye: .* negative lengths, got \(-1, -1\)"),
    "a quantile of 50": (lambda: jg.quantile(X, 50), ArgumentError, "^quantile: q must be between 0 and 1 .*got 50"),
    "another library's tensor": (lambda: X + foreign(), OperandError, r"a torch.Tensor: convert it with jitgrad.tensor"),
    "the same on the left": (lambda: foreign() * X, OperandError, r"a torch.Tensor: convert it with jitgrad.tensor"),
    "the same in an op": (lambda: jg.tanh(foreign()), OperandError, r"^tanh: operand of type torch.Tensor"),
    "a larger new value": (
        lambda: changed(jg.ones(3), X), ShapeError, r"in-place change of a tensor f32\[3\].*f32\[2,3\].*x = x \+ y, not"
    ),
    "a float in ints": (lambda: changed(jg.tensor([1]), 1.5), DtypeError, r"cannot cast .* Make a new tensor .*\.astype"),
    "a longer row": (lambda: stored(jg.ones((2, 3)), jg.ones(4)), ShapeError, r"^assignment to a part of f32\[2,3\]: "),
    "features of linear": (lambda: nn.Linear(4, 2)(X), ShapeError, r"^linear: .* x, f32\[2,3\], and of weight, f32\[2,4\]"),
    "channels of batch_norm": (
        lambda: nn.BatchNorm1d(4)(X), ShapeError, r"^batch_norm: f32\[4\].* 3 channels \(axis 1\) of f32\[2,3\]"
    ),
    "grad of a number": (lambda: jg.grad(3), ArgumentError, "^grad: expected a function, got 3"),
    "jacobian of None": (lambda: jg.jacobian(None), ArgumentError, "^jacobian: expected a function, got None"),
    "checkpoint of text": (lambda: jg.checkpoint("f"), ArgumentError, "^checkpoint: expected a function, got 'f'"),
    "a default dtype of ints": (lambda: jg.set_default_dtype("int32"), DtypeError, "^set_default_dtype: .*got 'int32'"),
    "a default dtype that is none": (lambda: jg.set_default_dtype("foo"), DtypeError, "^set_default_dtype: .*got 'foo'"),
    "sharing a number": (lambda: jg.from_dlpack(3), OperandError, "^from_dlpack: int has no __dlpack__"),
    "saving a number": (lambda: nn.save(3, "x"), CheckpointError, "^save: expected a module or a dict of tensors.*got 3"),
    "groups of channels": (lambda: nn.GroupNorm(3, 4), ArgumentError, "^GroupNorm: num_channels=4 does not divide into 3 groups"),
    "a module for parameters": (
        lambda: optim.SGD(nn.Linear(2, 2), lr=0.1), ArgumentError, r"^SGD: .*model.parameters\(\), got .*Linear"
    ),
    "a rate in quotes": (lambda: optim.SGD(parameters(), lr="0.1"), ArgumentError, "^SGD: lr must be a number, got '0.1'"),
    "one beta": (lambda: optim.Adam(parameters(), betas=0.9), ArgumentError, "^Adam: betas must be two numbers"),
    "a schedule of a module": (
        lambda: optim.lr_scheduler.StepLR(nn.Linear(2, 2), 3), ArgumentError, "^StepLR: expected an optimizer .*Linear"
    ),
    "clipping a number": (lambda: nn.utils.clip_grad_norm_(3, 1.0), ArgumentError, r"model.parameters\(\), got 3$"),
    "no state": (lambda: nn.Linear(2, 3).load_state_dict(None), CheckpointError, "expected a dict of tensors, got None"),
    "more state": (
        lambda: nn.Linear(2, 3, bias=False).load_state_dict(nn.Linear(2, 3).state_dict()),
        CheckpointError, "unexpected: bias. strict=False",
    ),
    "batches of nothing": (lambda: jg.utils.data.DataLoader([1], batch_size=0), ArgumentError, "batch_size must be at least 1"),
    "no data set": (lambda: jg.utils.data.DataLoader(3), ArgumentError, r"a data set has len\(\) and dataset\[index\]; int"),
    "a name of numpy": (lambda: jnp.concatenat, AttributeError, "did you mean 'concatenate'"),
    "a name of linalg": (lambda: jnp.linalg.invv, AttributeError, "did you mean 'inv'"),
    "a name of fft": (lambda: jg.fft.ftt, AttributeError, "did you mean 'fft'"),
    "a schedule's name": (lambda: optim.lr_scheduler.StepLr, AttributeError, "did you mean 'StepLR'"),
    "a distribution's name": (lambda: jg.distributions.Norml, AttributeError, "did you mean 'Normal'"),
    "a loader's name": (lambda: jg.utils.data.DataLoadr, AttributeError, "did you mean 'DataLoader'"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_explained(mistake: str) -> None:
    function, error, message = MISTAKES[mistake]
    with pytest.raises(error, match=message):
        function()


def test_files_in_folders_that_do_not_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", "python")
    f = jg.jit(lambda x: x * 2)
    for what, write in {
        "save": lambda: nn.save({"x": X}, tmp_path / "missing" / "x.safetensors"),
        "report": lambda: f.report(tmp_path / "missing" / "x.html", X),
        "eject": lambda: f.eject(tmp_path / "missing" / "x.py", X),
    }.items():
        with pytest.raises(FileNotFoundError, match=f"{what}: there is no folder for x.*create it: .*missing"):
            write()


def test_a_file_of_torch(tmp_path: Path) -> None:
    (tmp_path / "model.pt").write_bytes(b"PK\x03\x04 and more")
    with pytest.raises(CheckpointError, match=r"one of torch\.save: write it with safetensors\.torch\.save_file"):
        nn.load(tmp_path / "model.pt")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("JITGRAD_VERIFY", "3", "expected 0, 1 or 2"),
        ("JITGRAD_LOGS", "trace,kernel", "no topic 'kernel'.*trace, guards, kernels"),
        ("JITGRAD_NUM_THREADS", "all", "expected a positive integer"),
        ("JITGRAD_MAX_PROGRAMS", "1.5", "expected a positive integer"),
    ],
)
def test_environment_variables_name_what_they_take(monkeypatch: pytest.MonkeyPatch, name: str, text: str, message: str) -> None:
    monkeypatch.setenv(name, text)
    with pytest.raises(ArgumentError, match=f"{name}='{text}': .*{message}"):
        config.read(name)


def test_tensors_do_not_answer_for_classes_that_take_them() -> None:
    class Meter:
        def __radd__(self, other: Any) -> str:
            return f"{other.tolist()} m"

    assert X[0] + Meter() == "[1.0, 1.0, 1.0] m"
    with pytest.raises(TypeError, match="unsupported operand"):
        X + SimpleNamespace()
    assert np.array_equal((X + np.ones(3)).numpy(), 2 * np.ones((2, 3)))
