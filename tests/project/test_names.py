"""Every public top-level name of the package has one meaning: no two modules define it."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "jitgrad"

# Names that mean the same thing on two levels, by the folders that may both define them.
FAMILIES = (
    ("ops", "vecmath"),  # a function of tensors, and its definition for the elements of kernels
    ("nn", "ops"),  # a layer, and the record of the op that it applies
    ("__init__.py", "device"),  # of the host, and of the device in the namespace jg.cuda
    ("jit", "on_demand"),  # a public function, and what it does once it is imported
    ("device", "ops"),
    ("amp", "cuda"),  # torch.cuda.amp has the names of torch.amp with other arguments
    ("backends/cpu", "backends/cuda"),  # what each of the two machines has of its own
)
# Namespaces with the names and signatures of another library, whose functions call those of the package.
NAMESPACES = ("nn/functional.py", "numpy/", "scipy/", "torch/", "jax/", "lax/", "hips/", "signal/windows.py",
              "distributions/constraints.py", "backends/cudnn.py", "backends/mps.py",
              "backends/cuda/matmul.py")  # fmt: skip
# Names with two meanings, one of which is public: a schedule of learning rates and the field's word for kernels,
# a slice along an axis and an instruction of kernels.
SHARED = {"Schedule", "select"}
SHARED |= {"Dataset", "Variable", "checkpoint", "spectral_norm", "weight_norm"}  # torch's names


def definitions(path: Path) -> Iterator[str]:
    """The public names that a module defines at its top level; imported names are not among them."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names = [node.name]
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        else:
            names = []
        yield from (name for name in names if not name.startswith("_"))


def modules_by_name() -> dict[str, set[str]]:
    modules: dict[str, set[str]] = defaultdict(set)
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE).as_posix()
        for name in () if place.startswith(NAMESPACES) else definitions(path):
            modules[name].add(place)
    return modules


def is_family(modules: set[str]) -> bool:
    rooms = tuple(sorted(module.split("/")[0] for module in modules))
    folders = tuple(sorted(module.rsplit("/", 1)[0] for module in modules))
    return rooms in FAMILIES or folders in FAMILIES


def test_a_public_name_is_defined_once():
    repeated = {name: modules for name, modules in modules_by_name().items() if len(modules) > 1}

    assert {name: modules for name, modules in repeated.items() if name not in SHARED and not is_family(modules)} == {}
    assert set(repeated) >= SHARED, "remove what has one meaning now"
