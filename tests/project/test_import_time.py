"""``import jitgrad`` is cheap: compilers and output modules are imported when they are needed."""

from __future__ import annotations

import subprocess
import sys

LATER = ("numba", "llvmlite", "torch", "jax", "cupy", "rich", "jinja2", "pygments", "sklearn", "scipy", "safetensors")


def modules_after(statement: str) -> set[str]:
    """The top-level modules that a fresh process has loaded after ``statement``."""
    code = f"import sys\n{statement}\nprint(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    return set(done.stdout.split())


def test_import_leaves_the_compiler_alone():
    loaded = modules_after("import jitgrad")

    assert "numpy" in loaded
    assert not loaded & set(LATER)


def test_eager_training_leaves_the_compiler_alone():
    loaded = modules_after(
        "import jitgrad as jg\n"
        "x = jg.tensor([1.0, 2.0], requires_grad=True)\n"
        "optimizer = jg.optim.Adam([x], lr=0.1)\n"
        "jg.tanh(x).sum().backward()\n"
        "optimizer.step()"
    )

    assert not loaded & set(LATER)


def test_the_first_compilation_imports_the_compiler():
    loaded = modules_after("import jitgrad as jg\njg.jit(lambda x: jg.tanh(x) * 2.0)(jg.ones(3))")

    assert "llvmlite" in loaded
