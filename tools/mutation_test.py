"""Puts single mistakes into passes, lowering and code generation, and counts how many are noticed.

    python tools/mutation_test.py [--mutants 200] [--seed 0]

Each mutant is a copy of the package with one operator, comparison, condition or number changed. It
is killed if some program of the first-call check's tests fails, alarms or does not end in time.
Prints the mutants that survive. Many of these only change speed, or code that no program here reaches:
whoever reads the list decides which show a gap in the tests.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("compiler/passes", "compiler/lowering", "compiler/fusion", "backends/codegen")
SECONDS = 120.0  # of one mutant

PROGRAMS = """
import sys, warnings
warnings.simplefilter("error")
sys.path.append(ROOT)
import numpy as np
import jitgrad as jg
from jitgrad.testing import random_program
from tests.jit.test_ill_conditioned import PROGRAMS, operands

for seed in range(12):
    program = random_program(seed, 14)
    jg.jit(program.function)(*program.operands())
for name in list(PROGRAMS)[::3]:
    def loss(x, y, f=PROGRAMS[name]):
        out = f(x, y)
        return (out * out).sum()
    jg.jit(PROGRAMS[name])(*map(jg.tensor, operands("f4")))
    jg.jit(jg.value_and_grad(loss, argnums=(0, 1)))(*map(jg.tensor, operands("f8")))
"""

OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


def mutants(source: str) -> Iterator[tuple[int, str]]:
    """(line, source) of each mutant of a module."""
    count = sum(1 for _ in _changes(ast.parse(source)))
    for number in range(count):
        tree = ast.parse(source)
        for k, (line, change) in enumerate(_changes(tree)):
            if k == number:
                change()
                yield line, ast.unparse(ast.fix_missing_locations(tree))
                break


def _changes(tree: ast.Module) -> Iterator[tuple[int, Callable[[], None]]]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.BinOp, ast.BoolOp)) and type(node.op) in OPERATORS:
            yield node.lineno, lambda node=node: setattr(node, "op", OPERATORS[type(node.op)]())
        elif isinstance(node, ast.Compare) and type(node.ops[0]) in OPERATORS:
            yield node.lineno, lambda node=node: node.ops.__setitem__(0, OPERATORS[type(node.ops[0])]())
        elif isinstance(node, ast.If):
            yield node.lineno, lambda node=node: setattr(node, "test", ast.UnaryOp(ast.Not(), node.test))
        elif isinstance(node, ast.Constant) and type(node.value) is int:
            yield node.lineno, lambda node=node: setattr(node, "value", node.value + 1)


def is_killed(package: Path, module: str, source: str) -> bool:
    """Whether the programs notice ``source`` in place of ``module``."""
    path = package / module
    right = path.read_text(encoding="utf-8")
    path.write_text(source, encoding="utf-8")
    try:
        with tempfile.TemporaryDirectory() as cache:
            environment = {**os.environ, "PYTHONPATH": str(package.parent), "JITGRAD_CACHE_DIR": cache}
            command = [sys.executable, "-c", PROGRAMS.replace("ROOT", repr(str(ROOT)), 1)]
            done = subprocess.run(
                command, check=False, env=environment, cwd=package.parent, capture_output=True, timeout=SECONDS
            )
        return done.returncode != 0
    except subprocess.TimeoutExpired:
        return True
    finally:
        path.write_text(right, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutants", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    modules = [path.relative_to(ROOT / "jitgrad") for room in ROOMS for path in sorted((ROOT / "jitgrad" / room).glob("*.py"))]
    found = [
        (str(module), line, source)
        for module in modules
        for line, source in mutants((ROOT / "jitgrad" / module).read_text(encoding="utf-8"))
    ]
    chosen = random.Random(options.seed).sample(found, min(options.mutants, len(found)))
    killed = 0
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "jitgrad"
        shutil.copytree(ROOT / "jitgrad", package)
        first = modules[0]
        if is_killed(package, str(first), (package / first).read_text(encoding="utf-8")):
            raise SystemExit("the programs fail without any mistake")
        for module, line, source in chosen:
            if is_killed(package, module, source):
                killed += 1
            else:
                print(f"survived: jitgrad/{module}:{line}", flush=True)
    print(f"{killed} of {len(chosen)} killed, of {len(found)} possible")


if __name__ == "__main__":
    main()
