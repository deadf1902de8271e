"""Puts single mistakes into passes, lowering and code generation, and counts how many are noticed.

    python tools/mutants.py [--mutants 200] [--seed 0] [--rooms compiler/passes ...] [--line FILE:LINE] [--wide]

Each mutant is a copy of the package with one change of one line. It is killed if a program of
`mutant_programs.py` fails or is found wrong by the first-call check, or if one of the tests nearest
to the changed module fails, or if either does not end in time. With --wide, survivors are also given
to all tests of the compiler or the backends, which takes minutes. Survivors are printed with the line.
Some of those only cost speed, or repeat what another line ensures: `EQUIVALENT` lists them, by the
text of the line and of the change, with the reason.
"""

from __future__ import annotations

import argparse
import ast
import copy
import math
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 1800.0  # of the programs, or of the tests; a mutant has some times the processor time they take without any mistake
NEAR_ALL = ("compiler/test_decisions.py", "compiler/test_golden.py")
TESTS = {  # by room: the nearest tests that take seconds
    "compiler/passes": ("compiler/passes", *NEAR_ALL, "compiler/test_fused_reductions.py"),
    "compiler/fusion": ("compiler/fusion", *NEAR_ALL, "compiler/passes/test_insert_copies.py"),
    "compiler/lowering": ("compiler/lowering", *NEAR_ALL, "compiler/test_updates.py"),
    "compiler": (
        *NEAR_ALL, "compiler/test_block_runs.py", "compiler/test_isomorphic.py", "jit/test_int_arguments.py", "jit/test_state.py",
    ),
    "backends/codegen": ("backends/test_python.py", "backends/test_literals.py", "compiler/test_golden.py", "backends/cpu"),
    "backends/cpu": ("backends/cpu", "compiler/test_golden.py"),
    "backends/llvm": ("backends/llvm", "backends/cpu", "runtime/executor/test_tiled_products.py"),
}
WIDE = {"compiler": ("compiler", "jit", "autograd"), "backends": ("backends", "compiler", "ops")}
TIMELESS = ("-n", "2", "--ignore=tests/jit/test_interrupt.py")  # a busy machine must not kill mutants
COMPILED = ("backends/codegen", "backends/cpu", "backends/llvm")  # what the python backend does not use

# (part of the module's path, part of the line, part of the change): why no result can differ
EQUIVALENT: dict[tuple[str, str, str], str] = {
    ("compiler/tuning.py", "", ""): "thresholds decide between programs with the same results",
    ("", " = Load | Compute | Store", ""): "a type alias",
    ("", "Arg = tuple[", ""): "a type alias",
    ("llvm/ast_to_llvm.py", "or node.keywords", ""): "no kernel text has such calls",
    ("", "strict=True", "True becomes False"): "the lengths are equal",
    ("", "tuning.max_", " becomes "): "one more or less at a threshold",
    ("", "tuning.max_", "dropped"): "a larger kernel or program with the same results",
    ("", 'name=names[:60].rstrip("_")', ""): "the name of a kernel",
    ("core/gc_paused.py", "", ""): "when garbage is collected",
    ("fusion/axis_maps.py", "not node.op.renames", "never holds"): "`resolve` gives the same for a value that is not renamed",
    ("fusion/group.py", "op.monoid is not None", "condition 0"): "every reduction has a monoid",
    ("fusion/merge.py", "if not across or not _same_axes", "always holds"): "the general merge finds the same, in more time",
    ("fusion/merge.py", "len(computed_2) == 1 or all(", ""): "a merge at the wrong place is refused again by the schedule",
    ("fusion/merge.py", "return False", "becomes True"): "a merge at the wrong place is refused again by the schedule",
    ("fusion/merge.py", "if key in external_1:", ""): "which axes are paired first: the order of loops",
    ("fusion/merge.py", "plain = node.op.kind", "condition 0"): "the other kinds have no permuted reads",
    ("fusion/merge.py", "return found[:1]", ""): "which of two orders of loops is tried",
    ("fusion/merge.py", "found if across or innermost", ""): "which of two orders of loops is tried",
    ("fusion/schedule.py", "set(range(self.rank + 1))", "1 becomes 2"): "no value asks for a split beyond the last axis",
    ("fusion/schedule.py", "axes == self.everything or not axes", ""): "a split that is fixed earlier than needed: fewer merges",
    ("lowering/kernel_reuse.py", "sorted([outs[k]", "order reversed"): "any order will do, if it is always the same",
    ("lowering/lower.py", "if key in self.row_loads", "never holds"): "an element is loaded twice",
    ("lowering/loop_nest.py", "if step == 1 and (letter", "condition 1"): "stride 1 is a number in the text, no argument",
    ("lowering/sweeps.py", "or v in visited or nest.scope", "condition 1"): "a value is looked at twice",
    ("lowering/sweeps.py", "if v in self.spills or", "condition"): "decides whether an element is computed again or read",
    ("lowering/lower.py", "nbytes = self.schedule.blocks", "1 becomes 2"): "more scratch memory than needed",
    ("passes/batch_products.py", "rows[0].base for b in rows", "0 becomes 1"): "which of the rows the others are compared with",
    ("passes/canonicalize_reductions.py", "elif node.op.kind is Kind.ELEMENTWISE", "always"): "a guess about strides, for speed",
    ("passes/fuse.py", "if root.aval.size > 1", "GtE"): "kernels that share a single number may also be merged",
    ("passes/fuse.py", "new.merged_into is not None", "never holds"): "a merged cluster stays in a table, for nobody",
    ("passes/hoist_small_reductions.py", "if not any(node.op.kind", "always holds"): "a second pass over large values",
    ("passes/insert_copies.py", "order == tuple(range(", "condition 0"): "permutes by the order that is already there",
    ("passes/simplify.py", "isinstance(x, Literal) or out.dtype.kind", "never"): "small powers of integers are products too",
    ("passes/slices.py", "places[0].out.aval.size", "0 becomes 1"): "all have the same shape",
    ("compiler/verify.py", "", ""): "finds mistakes of other passes",
    ("fusion/row_costs.py", "", ""): "decides which kernels are apart, not what they compute",
    ("passes/slices.py", "for n in users", "condition 0"): "others make the whole value as before",
    ("passes/axis_unroller.py", "return monoid is not None", "condition 0"): "every reduction has a monoid",
    ("passes/axis_unroller.py", "return True", "True becomes False"): "the whole is computed, not pieces",
    ("passes/unroll_axes.py", "tuning.min_lanes", ""): "which axes are unrolled",
    ("passes/insert_copies.py", "if node.op.kind is Kind.OPAQUE and not", "and, or"): "a number is in memory earlier than needed",
    ("passes/split_at_joints.py", "c - start for c in places", "a term dropped"): "a box across parts reads them from one array",
    ("passes/fuse.py", "cluster.group is not None", "condition 1"): "what has no group is merged with nothing",
    ("fusion/merge.py", "if len(second.nodes) > 1 or node.op.kind", "always"): "the general merge finds the same, in more time",
    ("fusion/merge.py", "if reduction:", "always"): "the general schedule finds the same, in more time",
    ("fusion/merge.py", "if ours is not None and ours != axes", "condition 1"): "the general merge finds the same, in more time",
    ("fusion/merge.py", "more = sum(key not in", ""): "a kernel of more arrays than the limit, or fewer",
    ("fusion/merge.py", "if our_sizes[a] != their_sizes[b]", "condition 0"): "axes of one dimension are equally long",
    ("fusion/merge.py", "if key in computed_2 and not _unify", "not dropped"): "the schedule refuses what does not fit",
    ("fusion/schedule.py", "if self.epilogue or self.merged", "and, or"): "`place_reduction` has fixed the split",
    ("fusion/group.py", "if node.op is PUT_SLICE", ""): "a text for people",
    ("lowering/layout.py", "buffer.nbytes >= SMALL", ""): "one byte more or less at a threshold",
    ("lowering/aliasing.py", "if source.aval.shape != out.aval.shape", "condition 0"): "equal axis maps have equal shapes",
    ("lowering/aliasing.py", "if read.root is source and", "condition 0"): "less memory is shared",
    ("lowering/loop_nest.py", "len(self.inner_names) == 1", "condition 2"): "the name of another argument with the same number",
    ("lowering/loop_nest.py", "operand.strides[self.outer_axes[-1]] == 1", "NotIn"): "which form of loop runs",
    ("compiler/differentiate.py", "if node.op.kind is Kind.ELEMENTWISE:", "always"): "movement is saved, not repeated",
    ("compiler/runtime_number.py", "if op.kind is not Kind.ELEMENTWISE or", "condition 0"): "other ops have no scalar form",
    ("compiler/block_runs.py", "return self.tuning.block_bytes > 0 and", ""): "which kernels run block by block",
    ("compiler/block_runs.py", "elif not self.members or others.count", ""): "which kernels run block by block",
    ("codegen/scalar.py", "if not dtypes:", "never"): "no op has an operator between constants alone",
    ("cpu/short_rows.py", "reorder=False", "False becomes"): "a lane adds one number at a time: there is no order to change",
    ("cpu/row_loops.py", "sorted({a.dtype.itemsize", "order reversed"): "what is prefetched first",
    ("cpu/row_loops.py", "return [a for a in {s.access", "condition"): "what is prefetched",
    ("llvm/tile_sizes.py", "TILE_ROWS", ""): "how many rows a tile has",
    ("cpu/backend.py", "if not self._functions", "never"): "numba is imported where it is not needed",
    ("cpu/schedule.py", "elif form is KernelForm", ""): "the size of blocks",
    ("cpu/schedule.py", "if short and last == item", "condition"): "which stores go past the caches",
    ("cpu/short_rows.py", "if isinstance(s, Load) and first", "always"): "a tile is filled that is overwritten",
    ("codegen/scalar.py", "floats = [d for d in dtypes", "Eq becomes"): "constants take the dtype of what they meet",
    ("codegen/scalar.py", "if found == wanted or compute_dtype", "exchanged"): "a conversion to the dtype that it has",
    ("codegen/scalar.py", "dtype != np.dtype(np.int64)", "dropped"): "a conversion to the dtype that it has",
    ("codegen/statements.py", "return s.result if s.where", "condition 0"): "elsewhere both dtypes are the same",
}

OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
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
UNREAD = (ast.Raise, ast.Assert, ast.Import, ast.ImportFrom)  # statements without a result
UNREAD_FUNCTIONS = ("__repr__", "__str__", "__post_init__", "verify")


@dataclass(frozen=True)
class Mutant:
    """One change of one module: its number in there, the line, what is changed, and the line's text."""

    module: str
    number: int
    line: int
    change: str
    text: str

    def __str__(self) -> str:
        return f"{self.module}:{self.line}: {self.change}: {self.text}"

    @property
    def reason(self) -> str | None:
        """Why the change makes no difference, if that is known."""
        found = (
            reason
            for (module, line, change), reason in EQUIVALENT.items()
            if module in self.module and line in self.text and change in self.change
        )
        return next(found, None)

    @property
    def room(self) -> str:
        return max((room for room in TESTS if self.module.startswith(room + "/")), key=len)


# --- making mutants ----------------------------------------------------------------------------------

Change = tuple[int, str, Callable[[], None]]


def mutants(module: str) -> list[Mutant]:
    """All mutants of a module."""
    source = _source(module)
    lines = source.splitlines()
    found = enumerate(_changes(ast.parse(source)))
    return [Mutant(module, k, line, change, lines[line - 1].strip()) for k, (line, change, _) in found]


def changed_source(mutant: Mutant) -> str:
    tree = ast.parse(_source(mutant.module))
    *_, apply = list(_changes(tree))[mutant.number]
    apply()
    return ast.unparse(ast.fix_missing_locations(tree))


def _source(module: str) -> str:
    return (ROOT / "jitgrad" / module).read_text(encoding="utf-8")


def _changes(tree: ast.AST) -> Iterator[Change]:
    for node in _executed(tree):
        yield from _of_expression(node)
        yield from _of_condition(node)
        yield from _of_body(node)


def _executed(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that decide results: no annotations, decorators, error messages or texts for people."""
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params", "bases"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, UNREAD):
                continue
            if isinstance(child, ast.FunctionDef) and child.name in UNREAD_FUNCTIONS:
                continue
            yield from _executed(child)


def _of_expression(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.BinOp):
        if (other := OPERATORS.get(type(node.op))) is not None:
            yield node.lineno, f"{type(node.op).__name__} becomes {other.__name__}", lambda: setattr(node, "op", other())
        if isinstance(node.op, (ast.Sub, ast.FloorDiv, ast.Mod)):
            yield node.lineno, "operands swapped", lambda: _swap(node, "left", "right")
        if isinstance(node.op, (ast.Add, ast.Sub, ast.BitOr)):
            yield node.lineno, "a term dropped", lambda: _become(node, node.left)
    elif isinstance(node, ast.Constant) and type(node.value) in (int, bool):
        other_value = (not node.value) if type(node.value) is bool else node.value + 1
        yield node.lineno, f"{node.value} becomes {other_value}", lambda: setattr(node, "value", other_value)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id in ("reversed", "sorted"):
            yield node.lineno, f"without {node.func.id}", lambda: setattr(node, "func", ast.Name("list", ast.Load()))
            yield node.lineno, "order reversed", lambda: _become(node, ast.Call(ast.Name("reversed"), [_list_of(node)], []))
        if node.func.id in ("all", "any", "max", "min"):
            other_name = {"all": "any", "any": "all", "max": "min", "min": "max"}[node.func.id]
            yield node.lineno, f"{node.func.id} becomes {other_name}", lambda: setattr(node, "func", ast.Name(other_name))


def _of_condition(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.Compare) and (other := OPERATORS.get(type(node.ops[0]))) is not None:
        yield node.lineno, f"{type(node.ops[0]).__name__} becomes {other.__name__}", lambda: node.ops.__setitem__(0, other())
    elif isinstance(node, ast.BoolOp):
        yield node.lineno, "and, or exchanged", lambda: setattr(node, "op", OPERATORS[type(node.op)]())
        for k in range(len(node.values)):
            yield node.lineno, f"condition {k} dropped", lambda k=k: node.values.pop(k)
    elif isinstance(node, ast.IfExp):
        yield node.lineno, "choices exchanged", lambda: _swap(node, "body", "orelse")
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.lineno, "not dropped", lambda: _become(node, node.operand)


def _of_body(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.If) and not isinstance(node.body[0], UNREAD):
        yield node.lineno, "condition never holds", lambda: setattr(node, "test", ast.Constant(False))
        if not node.orelse:
            yield node.lineno, "condition always holds", lambda: setattr(node, "test", ast.Constant(True))
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield node.lineno, "statement dropped", lambda: _become(node, ast.Expr(ast.Constant(None)))


def _swap(node: ast.AST, a: str, b: str) -> None:
    x, y = getattr(node, a), getattr(node, b)
    setattr(node, a, y)
    setattr(node, b, x)


def _list_of(node: ast.Call) -> ast.expr:
    whole = ast.Call(copy.deepcopy(node.func), [*node.args], [*node.keywords])
    return ast.Call(ast.Name("list", ast.Load()), [whole], [])


def _become(node: ast.AST, other: ast.AST) -> None:
    fields = {name: value for name, value in ast.iter_fields(other)}
    node.__class__ = other.__class__  # type: ignore[assignment]
    node.__dict__ = {**fields, "lineno": node.lineno, "col_offset": 0, "end_lineno": node.lineno, "end_col_offset": 0}


# --- killing them ------------------------------------------------------------------------------------


class Scratch:
    """A copy of the package and its tests, in which one module at a time is wrong."""

    def __init__(self, folder: Path, wide: bool) -> None:
        self.folder = folder
        self.wide = wide
        self.limits: dict[tuple[str, ...], int] = {}  # seconds of processor time of each command
        for name in ("jitgrad", "tests", "tools"):
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", folder)

    def killer(self, mutant: Mutant) -> str:
        """What notices ``mutant``: "check" or "tests"; "": nothing."""
        path = self.folder / "jitgrad" / mutant.module
        right = path.read_text(encoding="utf-8")
        path.write_text(changed_source(mutant), encoding="utf-8")
        try:
            return self.what_fails(mutant.room, self.wide and not mutant.reason)
        finally:
            path.write_text(right, encoding="utf-8")

    def what_fails(self, room: str, wide: bool = False) -> str:
        for backend in ("python", "cpu")[: 1 + (room in COMPILED)]:
            if not self._passes("tools/mutant_programs.py", backend):
                return "check"
        near, more = TESTS[room], WIDE[room.split("/", maxsplit=1)[0]]
        return "" if self._tests_pass(near) and (not wide or self._tests_pass(more, *TIMELESS)) else "tests"

    def _tests_pass(self, names: Sequence[str], *options: str) -> bool:
        tests = [f"tests/{name}" for name in names]
        return self._passes("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *options, *tests)

    def _passes(self, *command: str) -> bool:
        with tempfile.TemporaryDirectory() as cache:
            environment = {
                **os.environ,
                "PYTHONPATH": str(self.folder),
                "PYTHONDONTWRITEBYTECODE": "1",
                "JITGRAD_CACHE_DIR": cache,
                "JITGRAD_VERIFY": "2",
                "TMPDIR": cache,
            }
            start = _processor_seconds()
            limit = self.limits.get(command)
            try:
                done = subprocess.run(
                    [sys.executable, *command],
                    check=False,
                    env=environment,
                    cwd=self.folder,
                    capture_output=True,
                    timeout=SECONDS,
                    preexec_fn=None if limit is None else lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit)),
                )
            except subprocess.TimeoutExpired:
                return False
        self.limits.setdefault(command, 30 + 4 * (_processor_seconds() - start))
        return done.returncode == 0


def _processor_seconds() -> int:
    """Of all processes that were started and have ended: a busy machine must not kill mutants."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return math.ceil(used.ru_utime + used.ru_stime)


def _chosen(options: argparse.Namespace) -> list[Mutant]:
    """The mutants to try: about as many of each room."""
    chosen: list[Mutant] = []
    for number, room in enumerate(options.rooms):
        modules = sorted(path.relative_to(ROOT / "jitgrad") for path in (ROOT / "jitgrad" / room).glob("*.py"))
        found = [mutant for module in modules for mutant in mutants(str(module))]
        if options.line:
            chosen += [m for m in found if f"{m.module}:{m.line}" == options.line]
            continue
        share = options.mutants * (number + 1) // len(options.rooms) - options.mutants * number // len(options.rooms)
        chosen += random.Random(options.seed).sample(found, min(share, len(found)))
    return chosen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutants", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rooms", nargs="+", default=list(TESTS), choices=list(TESTS))
    parser.add_argument("--line", help="all mutants of one line, as compiler/fusion/merge.py:120")
    parser.add_argument("--wide", action="store_true", help="give survivors to many more tests")
    options = parser.parse_args()
    counts = {"check": 0, "tests": 0, "equivalent": 0, "": 0}
    with tempfile.TemporaryDirectory() as folder:
        scratch = Scratch(Path(folder), options.wide)
        for room in options.rooms:
            if failing := scratch.what_fails(room):
                raise SystemExit(f"the {failing} of {room} fail without any mistake")
        for mutant in _chosen(options):
            by = scratch.killer(mutant) or ("equivalent" if mutant.reason else "")
            counts[by] += 1
            if by in ("", "equivalent"):
                print(f"{by or 'survived'}: {mutant}", flush=True)
    killed, wrong = counts["check"] + counts["tests"], sum(counts.values()) - counts["equivalent"]
    print(
        f"{killed} of {wrong} killed ({100 * killed / wrong:.1f} %): {counts['check']} by the check, "
        f"{counts['tests']} by tests; {counts['equivalent']} more change no result"
    )


if __name__ == "__main__":
    main()
