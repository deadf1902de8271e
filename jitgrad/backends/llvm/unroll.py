"""The interleave count of a loop of kernel source, from an estimate of its latency and its
throughput.

A CPU looks some 200 instructions ahead. If the operations on one vector wait for each other, only
several vectors at once keep its units busy. Each takes registers, and with more than 16 live values
some are spilled to memory.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from jitgrad.backends.llvm.syntax_nodes import nodes_in

# Measured on a 16-register AVX2 machine with gelu forward and backward: 1, 2, 3, 4 vectors take
# 5.1, 4.1, 4.6, 3.1 ms.
USUAL = 4
# Eight at a time take 0.6 to 0.8 of that for chains of 16 or more additions and multiplications, or
# of two or more exponentials; where work is short, or much of it is independent, up to 1.4.
DEEP = 8
LONG_WAIT = 140  # cycles
WAIT_BY_WORK = 4.0
MUCH_WORK = 128.0  # cycles; doubling a loop as long as that takes time to compile
# Two at a time where one vector alone keeps the units busy and fills the registers: many statements, and hardly a function,
# whose operations wait for each other. On a 16-register AVX2 machine products of quaternions, inverses of 3 x 3 matrices, a
# lattice Boltzmann step and particles take 0.84 to 0.99 of the time of four, and LLVM 0.25 to 0.7. Kernels of exponentials
# and logarithms take 1.1 to 1.4, however many they are. With 32 registers this was not measured.
TWO_VECTORS = 2
MANY_STATEMENTS = 64
STATEMENTS_BY_FUNCTION = 32

# The variables of loops over both edges of a row, and over the elements of one: few, with masked loads.
EDGES = ("e", "w")

Cost = tuple[float, float]  # cycles of latency, cycles in which a unit is busy

_STEP: Cost = (4.0, 0.5)
_DIVISION: Cost = (11.0, 4.0)
_FUNCTION: Cost = (45.0, 10.0)
_FREE: Cost = (0.0, 0.0)
_ROOTS = frozenset({"sqrt", "rsqrt", "reciprocal"})
_STEPS = frozenset(
    "select fmax fmin min max fma reassoc_add reassoc_mul rint floor ceil trunc fabs abs copysign sign signbit isnan isinf "
    "isfinite "
    "minimum maximum left_shift right_shift".split()
)
_CASTS = ("to_", "as_")
_ADDRESSES = frozenset({"freeze", "at", "element_at", "load_between", "prefetch", "prefetch_beside", "range"})


def unroll_factor(tree: ast.Module, many_registers: bool = True) -> dict[ast.For, int]:
    """The interleave count of every ``for`` loop of kernel source.

    ``many_registers``: whether the CPU has more than 16 for vectors.
    """
    statements = list(_statements([tree]))
    loops = [s for s in statements if isinstance(s, ast.For)]
    edges = {s for s in loops if isinstance(s.target, ast.Name) and s.target.id in EDGES}
    usual = bool(edges) or any(isinstance(s, ast.While) for s in statements)  # rows in tiles: their loops are short
    return {s: 1 if s in edges else USUAL if usual else _vectors(s, many_registers) for s in loops}


def _vectors(loop: ast.For, many_registers: bool) -> int:
    if any(isinstance(s, (ast.For, ast.While)) for s in _statements(loop.body)):
        return USUAL
    ready: dict[str, float] = {}
    work = longest = 0.0
    for statement in loop.body:
        if isinstance(statement, ast.Assign):
            wait, busy = _cost(statement.value, ready)
            work += busy
            longest = max(longest, wait)
            ready.update({target.id: wait for target in statement.targets if isinstance(target, ast.Name)})
    if WAIT_BY_WORK * work < longest:
        return DEEP if longest > LONG_WAIT and work <= MUCH_WORK else USUAL
    return USUAL if many_registers or not _is_long_without_functions(loop) else TWO_VECTORS


def _is_long_without_functions(loop: ast.For) -> bool:
    calls = [node for node in nodes_in(*loop.body) if isinstance(node, ast.Call)]
    functions = sum(_own_cost(node) == _FUNCTION for node in calls)
    return len(loop.body) >= max(MANY_STATEMENTS, STATEMENTS_BY_FUNCTION * functions)


def _statements(block: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """The statements of ``block``, and of the blocks inside them."""
    for statement in block:
        yield statement
        yield from _statements(getattr(statement, "body", ()))
        yield from _statements(getattr(statement, "orelse", ()))


def _cost(node: ast.expr, ready: dict[str, float]) -> Cost:
    """The latency of an expression, from the start of the iteration, and its work."""
    if isinstance(node, ast.Name):
        return ready.get(node.id, 0.0), 0.0
    before = work = 0.0
    for part in _operands(node):
        wait, busy = _cost(part, ready)
        before, work = max(before, wait), work + busy
    own = _own_cost(node)
    return before + own[0], work + own[1]


def _operands(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.Call):
        yield from node.args
    elif not isinstance(node, ast.Subscript):  # an address is known early
        yield from (part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr))


def _own_cost(node: ast.expr) -> Cost:
    if isinstance(node, ast.BinOp):
        return _DIVISION if isinstance(node.op, (ast.Div, ast.FloorDiv, ast.Mod)) else _STEP
    if isinstance(node, (ast.Compare, ast.UnaryOp, ast.BoolOp)):
        return (1.0, 0.5)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return _FREE
    name = node.func.id
    if name.startswith(_CASTS) or name in _ADDRESSES:
        return _FREE
    if name in _ROOTS:
        return _DIVISION
    return _STEP if name in _STEPS else _FUNCTION
