"""A standalone script that runs one compiled function's kernels on the very inputs that showed a problem."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitgrad.runtime.program import Program


def write_repro(path: str, program: Program, inputs: Sequence[np.ndarray[Any, Any]]) -> None:
    """Write a script to ``path`` (and its inputs beside it as ``.npz``) that needs only NumPy.

    It holds the text of the program before and after fusion and the source of every kernel, and loads the inputs.
    """
    data = os.path.splitext(path)[0] + ".npz"
    np.savez(data, **{f"input_{k}": x for k, x in enumerate(inputs)})
    parts = [
        '"""The program as fused, its kernels, and the inputs for which it disagreed with eager."""',
        "import numpy as np",
        f"inputs = np.load({data!r})",
        f"GRAPH = '''\n{program.plan.graph}\n'''",
    ]
    for k, kernel in enumerate(program.kernels):
        parts.append(f"# --- kernel {k}: {kernel.name}\nKERNEL_{k} = '''\n{kernel.source}'''")
    parts.append("print(GRAPH)\nfor name, value in inputs.items():\n    print(name, value.dtype, value.shape, value.ravel()[:4])")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n\n".join(parts) + "\n")
