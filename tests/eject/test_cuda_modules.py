"""Ejected CUDA modules: each runs in numba's simulator, and numba compiles its kernels to PTX. No GPU is needed."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import optree
import pytest

import jitgrad as jg
from jitgrad import nn, optim
from jitgrad.backends.cuda_target.emulated_device import emulated_device
from jitgrad.core.dispatch import apply_op
from jitgrad.core.errors import JitgradError
from jitgrad.jit.load_ejected import EjectedFunction
from jitgrad.testing import random_program
from jitgrad.testing.samples import sample_operands
from tests.eject.ejecting import integers, tensor
from tests.eject.test_modules import layer
from tests.eject.test_programs import with_gradients
from tests.eject.test_registry import OPS
from tests.eject.test_steps import STEPS

RUNNER = Path(__file__).with_name("run_cuda_modules.py")
SHAPES = [(5, 34), (2, 2, 40), (7, 3), (2, 2, 9, 4), (300,), (1,), (0, 40), (40, 0), ()]
FORMS = [(5, 34), (7, 3), (300,), ()]  # rows, short rows, one line, one number; simulating each takes a second


@pytest.fixture(autouse=True)
def device() -> Iterator[None]:
    with emulated_device():
        yield


def on_device(tree: Any) -> Any:
    return optree.tree_map(lambda x: x.to("cuda") if isinstance(x, jg.Tensor) else x, tree)


def run(how: str, folder: Path) -> str:
    """What the modules of ``folder`` do wrong; "" for nothing."""
    root = str(Path(jg.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": root, "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, str(RUNNER), how, str(folder)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return result.stdout + (result.stderr if result.returncode else "")


def eject_steps(folder: Path, names: Any = STEPS) -> None:
    for k, name in enumerate(names):
        function, args = STEPS[name]
        jg.jit(function).eject(folder / f"step_{k}.py", *on_device(args))


def test_steps(tmp_path: Path) -> None:
    eject_steps(tmp_path)
    assert run("simulate", tmp_path) == ""


def test_ops(tmp_path: Path) -> None:
    count = 0
    for k, op in enumerate(OPS):
        for dtype in ("f4", "f8" if k % 2 else "f2", "i4"):
            xs = [jg.tensor(x).to("cuda") for x in sample_operands(op, np.random.default_rng(0), (3, 4), dtype)]
            try:
                jg.jit(lambda *xs, op=op: apply_op(op, *xs, **op.sample_attrs)).eject(tmp_path / f"op_{op}_{dtype}.py", *xs)
                count += 1
            except JitgradError:
                continue  # the op takes no such dtype
    assert count > 2 * len(OPS)
    assert run("simulate", tmp_path) == ""


def test_random_programs(tmp_path: Path) -> None:
    for seed in range(12):
        program = random_program(seed, 6)
        operands = [jg.tensor(x).to("cuda") for x in program.operands()]
        jg.jit(with_gradients(program)).eject(tmp_path / f"program_{seed}.py", *operands)
    assert run("simulate", tmp_path) == ""


def reductions(x: Any) -> Any:
    """Sums and extrema over rows, columns and all, of floats and of integers, and what reads them."""
    y = jg.tanh(x) * 0.5
    first, last = (0, -1) if x.ndim else (None, None)
    whole = (x * 4.0).astype("i4")
    largest = y.max(last) if x.size else y.sum(last)
    centred = y - y.mean(last, keepdims=True)
    some = [centred / (1.0 + (centred**2).sum(last, keepdims=True)), y.sum(first), whole.sum(first), (whole > 1).any(last)]
    return *some, largest, y.sum(), whole.sum(), jg.logsumexp(y, last), (y * y.sum()).sum(first), (x > 0).all()


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2"])
def test_reductions_of_all_shapes(dtype: str, tmp_path: Path) -> None:
    for k, shape in enumerate(SHAPES if dtype == "f4" else FORMS):
        x = jg.tensor(np.random.default_rng(k).normal(size=shape).astype(dtype)).to("cuda")
        jg.jit(reductions).eject(tmp_path / f"shape_{k}.py", x)
        if dtype == "f4" and shape in FORMS[:3]:
            jg.jit(reductions).eject(tmp_path / f"mirrored_{k}.py", jg.flip(x))
    assert run("simulate", tmp_path) == ""


def mlp_with_adam_and_dropout() -> tuple[Any, ...]:
    model = nn.Sequential(nn.Linear(6, 9), nn.Dropout(0.5), nn.GELU(), nn.LayerNorm(9), nn.Linear(9, 3)).to("cuda")
    optimizer = optim.Adam(model.parameters(), lr=0.01)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    return step, tensor(5, 6), tensor(5, 3)


def gru_with_momentum() -> tuple[Any, ...]:
    cell, head = nn.GRUCell(4, 5).to("cuda"), nn.Linear(5, 2).to("cuda")
    optimizer = optim.SGD([*cell.parameters(), *head.parameters()], lr=0.02, momentum=0.9)

    def step(xs: Any, y: Any) -> Any:
        h = jg.zeros((3, 5), device="cuda")
        for t in range(3):
            h = cell(xs[t], h)
        loss = jg.cross_entropy(head(h), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return step, tensor(3, 3, 4), integers(2, 3)


@pytest.mark.parametrize("make", [mlp_with_adam_and_dropout, gru_with_momentum])
def test_training_steps(make: Callable[[], Any], tmp_path: Path) -> None:
    jg.manual_seed(0)
    step, *args = make()
    jg.jit(step).eject(tmp_path / "step.py", *on_device(args))
    assert run("simulate", tmp_path) == ""


@pytest.mark.numba
def test_numba_compiles_the_kernels_to_ptx(tmp_path: Path) -> None:
    pytest.importorskip("nvidia.cuda_nvcc", reason="libnvvm is not installed")
    eject_steps(tmp_path, ["reductions", "float16", "elementwise function with a loop", "casts", "bools", "mirrored"])
    for name in ("floor", "nextafter", "fmod", "copysign", "gammaln", "philox_bits", "trunc", "round"):
        op = next(op for op in OPS if op.name == name)
        xs = [jg.tensor(x).to("cuda") for x in sample_operands(op, np.random.default_rng(0), (3, 4), "f4")]
        jg.jit(lambda *xs, op=op: apply_op(op, *xs, **op.sample_attrs)).eject(tmp_path / f"op_{name}.py", *xs)
    assert run("compile", tmp_path) == ""


FAULTS = {
    "a wrong step": ("cuda.threadIdx.x, n, cuda.blockDim.x", "cuda.threadIdx.x + 1, n, cuda.blockDim.x"),
    "every thread adds": ("if cuda.threadIdx.x == 0:", "if True:"),
    "a block's part is left out": ("for k in range(blocks):", "for k in range(blocks - 1):"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_simulator_finds(fault: str, tmp_path: Path) -> None:
    def program(x: Any) -> Any:
        y = x - x.mean(-1, keepdims=True)
        return (y.sum(-1) ** 2).sum() + y.max(-1).sum(), y * 2.0

    files = jg.jit(program).eject(tmp_path / "program.py", jg.tensor(np.arange(240.0).reshape(6, 40) % 7).to("cuda"))
    right = Path(files.path).read_text()
    wrong = right.replace(*FAULTS[fault])
    assert wrong != right, right
    Path(files.path).write_text(wrong)
    assert "result" in run("simulate", tmp_path)


def test_text_of_a_layer(golden: Any, tmp_path: Path) -> None:
    x, w, b = (jg.ones(shape, device="cuda") for shape in ((6, 50), (50, 70), (70,)))
    text = Path(jg.jit(layer).eject(tmp_path / "layer.py", x, w, b).path).read_text()
    assert text[text.index("@cuda.jit") : text.index("def flat_array")] + text[text.index("def run") :] == golden


def test_a_module_says_which_array_it_takes(tmp_path: Path) -> None:
    jg.jit(layer).eject(tmp_path / "layer.py", *(jg.ones(s, device="cuda") for s in ((6, 50), (50, 7), (7,))))
    script = "import numpy as np, layer; layer.run(np.ones((6, 51), 'f4'), np.ones((50, 7), 'f4'), np.ones(7, 'f4'))"
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": str(tmp_path)}
    result = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert "x is float32[6, 51]; this module is for float32[6, 50]" in result.stderr


def test_results_on_the_device_become_tensors_there() -> None:
    """A module returns arrays of numba.cuda, and the arrays that it was given."""
    given, other = jg.ones(3, device="cuda"), jg.full((2,), 5.0, device="cuda")
    foreign = types.SimpleNamespace(__cuda_array_interface__=other.__cuda_array_interface__)
    about = {"name": "f", "gradients": {}, "changed_arguments": [], "changed_state": [], "differentiable": False}
    loaded = EjectedFunction(types.SimpleNamespace(run=lambda x: (x, foreign)), about, "f.py")  # type: ignore[arg-type]
    same, new = loaded(given)
    assert same is given
    assert new.device == "cuda"
    np.testing.assert_array_equal(new.cpu().numpy(), [5.0, 5.0])
