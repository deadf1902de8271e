"""``import jitgrad`` is cheap: compilers and output modules are imported when they are needed."""

from __future__ import annotations

import subprocess
import sys

LATER = (
    "numba", "llvmlite", "torch", "jax", "cupy", "rich", "jinja2", "pygments", "sklearn", "scipy", "safetensors", "argparse",
    "email",
)  # fmt: skip


def modules_after(statement: str) -> set[str]:
    """The modules that a fresh process has loaded after ``statement``, top-level ones and those of jitgrad."""
    code = f"import sys\n{statement}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    names = done.stdout.split()
    return {name.split(".")[0] for name in names} | {name for name in names if name.startswith("jitgrad.")}


def test_import_leaves_the_compiler_alone():
    loaded = modules_after("import jitgrad")

    assert "numpy" in loaded
    assert not loaded & set(LATER)
    assert not [name for name in loaded if name.startswith(("jitgrad.scipy", "jitgrad.eject", "jitgrad.cli", "jitgrad.testing"))]


def test_what_few_programs_use_is_imported_at_its_first_use():
    loaded = modules_after("import jitgrad as jg\nassert {'scipy', 'special'} <= {*dir(jg)}\njg.special.gammaln(jg.ones(2))")

    assert {"jitgrad.scipy", "jitgrad.scipy.special", "jitgrad.scipy.stats"} <= loaded
    assert "scipy" not in loaded


def test_the_first_use_may_be_in_a_compiled_function():
    modules_after(
        "import jitgrad as jg\n"
        "f = jg.jit(lambda x: jg.special.gammaln(x) + jg.scipy.stats.norm.logpdf(x))\n"
        "f(jg.ones(3)), f(jg.ones(3))\n"
        "assert (f.cache_info().traces, f.cache_info().fallbacks) == (1, 0)"
    )


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
