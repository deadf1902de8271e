"""``import jitgrad`` is cheap: compilers and output modules are imported when they are needed."""

from __future__ import annotations

import subprocess
import sys

from jitgrad.on_demand.public_names import PUBLIC_FUNCTIONS, PUBLIC_MODULES

LATER = (
    "numba", "llvmlite", "torch", "jax", "cupy", "rich", "jinja2", "pygments", "sklearn", "scipy", "safetensors", "argparse",
    "email",
)  # fmt: skip
# the rooms of which a program that compiles nothing needs no module
ONLY_FOR_THE_COMPILER = "batching compiler distributions eject func guards inspect jit.decorator runtime scipy testing cli"
NOT_FOR_EAGER = tuple(f"jitgrad.{room}" for room in ONLY_FOR_THE_COMPILER.split())


def modules_after(statement: str) -> set[str]:
    """The modules that a fresh process has loaded after ``statement``, top-level ones and those of jitgrad."""
    code = f"import sys\n{statement}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    names = done.stdout.split()
    return {name.split(".")[0] for name in names} | {name for name in names if name.startswith("jitgrad.")}


def test_import_leaves_the_compiler_alone():
    loaded = modules_after("import jitgrad")

    assert "numpy" in loaded
    assert not loaded & set(LATER)
    assert not [name for name in loaded if name.startswith(NOT_FOR_EAGER)]


def test_what_few_programs_use_is_imported_at_its_first_use():
    loaded = modules_after("import jitgrad as jg\nassert {'scipy', 'special'} <= {*dir(jg)}\njg.special.gammaln(jg.ones(2))")

    assert {"jitgrad.scipy", "jitgrad.scipy.special", "jitgrad.scipy.stats"} <= loaded
    assert "scipy" not in loaded


# what each child of one fresh process does with the names of one module
USE_NAMES = """
import os, sys, traceback
import jitgrad as jg
for names in NAMES:
    if os.fork() == 0:
        try:
            for name in names:
                assert name in dir(jg) and name not in vars(jg)
                first, found = getattr(jg, name), {}
                assert vars(jg)[name] is first
                exec(f"from jitgrad import {name}", found)
                assert found[name] is first
            assert getattr(jg, names[-1]) is first and callable(jg.jit)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
assert not any([os.wait()[1] for _ in NAMES])
"""


def test_every_public_name_is_imported_at_its_first_use():
    """As an attribute and by ``from jitgrad import``, in a process for each module: whatever was imported before."""
    names_of: dict[str, list[str]] = {}
    for name, module in {**PUBLIC_MODULES, **PUBLIC_FUNCTIONS}.items():
        names_of.setdefault(module, []).append(name)

    modules_after(f"NAMES = {[*names_of.values()]}\n{USE_NAMES}")


def test_methods_are_imported_at_their_first_use():
    loaded = modules_after(
        "import jitgrad as jg, sys\nassert 'jitgrad.ops.torch_selections' not in sys.modules\n"
        "assert jg.tensor([2.0, 1.0]).msort().tolist() == [1.0, 2.0]\n"
        "one, places = jg.ones(1), jg.tensor([1])\n"
        "assert jg.jit(lambda x: x.index_reduce(0, places, one, 'amax'))(jg.zeros(2)).tolist() == [0.0, 1.0]\n"
        "x = jg.zeros(2)\nassert x.index_reduce_(0, places, one, 'amax') is x and x.tolist() == [0.0, 1.0]"
    )

    assert "jitgrad.ops.torch_selections" in loaded


def test_modules_are_imported_as_if_nothing_was_running():
    modules_after(
        "import jitgrad as jg\n"
        "with jg.no_grad():\n"
        "    result = jg.vmap(lambda x: jg.distributions.Normal(0.0, x).log_prob(x))(jg.ones(3))\n"
        "assert jg.distributions.Normal(0.0, 1.0).log_prob(jg.ones(())).item() == result[0].item()"
    )


def test_compiled_functions_have_the_methods_that_show_programs():
    modules_after("import jitgrad as jg\nassert hasattr(jg.jit(lambda x: x), 'explain')")


def test_the_first_use_may_be_in_a_compiled_function():
    modules_after(
        "import jitgrad as jg\n"
        "f = jg.jit(lambda x: jg.special.gammaln(x) + jg.scipy.stats.norm.logpdf(x))\n"
        "f(jg.ones(3)), f(jg.ones(3))\n"
        "assert (f.cache_info().traces, f.cache_info().fallbacks) == (1, 0)\n"
        "g = jg.jit(lambda x: jg.vmap(lambda y: jg.distributions.Normal(0.0, 1.0).log_prob(y))(x))\n"
        "g(jg.ones(3)), g(jg.ones(3))\n"
        "assert (g.cache_info().traces, g.cache_info().fallbacks) == (1, 0)"
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
    assert not [name for name in loaded if name.startswith(NOT_FOR_EAGER)]


def test_the_first_compilation_imports_the_compiler():
    loaded = modules_after("import jitgrad as jg\njg.jit(lambda x: jg.tanh(x) * 2.0)(jg.ones(3))")

    assert "llvmlite" in loaded
