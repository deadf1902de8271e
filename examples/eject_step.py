"""A training step as plain numba code: ejected, run on NumPy arrays, edited, and loaded back.

    python examples/eject_step.py [FOLDER] [--device cuda]

The step of a small regression with Adam becomes one Python file that imports numba and NumPy alone. The file
trains the model without jitgrad, as far as the numbers go. Then its text is edited twice: an edit that keeps the
results is loaded, and one that changes them is refused. On CUDA the kernels are numba.cuda's.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import jitgrad as jg
from jitgrad import nn, optim


def make_step(width: int, device: str = "cpu") -> Any:
    """A training step of a new model; ``step(x, y)`` changes the model and its optimiser."""
    jg.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, 1)).to(device)
    optimizer = optim.Adam(model.parameters(), lr=0.02)

    @jg.jit
    def step(x: Any, y: Any) -> Any:
        loss = jg.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return step


def main(
    folder: str | None = None, device: str = "cpu", width: int = 16, rows: int = 256, steps: int = 200
) -> list[float]:
    """The losses of ``steps`` steps by the ejected module."""
    jg.manual_seed(1)
    x = jg.rand(rows, 2).to(device)
    y = jg.sin(3.0 * x[:, :1]) * x[:, 1:]
    path = Path(folder or tempfile.mkdtemp()) / "regression_step.py"
    files = make_step(width, device).eject(path, x, y)
    print(path.read_text())

    module = jg.load_ejected(files.path).module  # agrees with what eager execution gave
    state = {name: np.array(value.detach().cpu()) for name, value in files.state.items()}
    arrays = x.cpu().numpy(), y.cpu().numpy()
    losses = [float(np.asarray(module.run(*arrays, **state))) for _ in range(steps)]
    print(f"{steps} steps without jitgrad: loss {losses[0]:.4f} -> {losses[-1]:.4f}")

    text = path.read_text()
    path.write_text(text.replace("prange(", "range("))
    jg.load_ejected(path)
    path.write_text(text.replace("* np.float32(0.9)", "* np.float32(0.8)"))
    try:
        jg.load_ejected(path)
    except jg.errors.EjectedMismatchError as error:
        print(f"refused: {error}")
    else:
        raise AssertionError("an edit that changes the results was loaded")
    return losses


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    main(**vars(parser.parse_args()))
