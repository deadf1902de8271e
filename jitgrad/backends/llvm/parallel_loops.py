"""Finds the loops of a kernel whose iterations write what no other iteration touches, and tells LLVM.

LLVM looks for such loops itself, twice: it compares the accesses before it makes vectors of them, and the vectors again. That
was up to half of the time of its passes, for kernels with many operands. Import this module only when something is
compiled: it imports llvmlite.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from jitgrad.backends.llvm.syntax_nodes import bound_names, names_in, nodes_in

_GROUP = "accesses of parallel loops"
_GROUP_NODE = re.compile(rf'^(!\d+) = !\{{ !"{_GROUP}" \}}$', re.MULTILINE)
_NONTEMPORAL_STORE = "stream"
_LOAD = "load_between"  # of its first operand, at its second
_TABLE = "element_at"  # reads any element of its first operand, which the kernel does not write
_OF_ADDRESSES = frozenset({"at", _LOAD, _TABLE, "prefetch", "prefetch_beside"})  # calls that write nothing to their first operand
_ARGUMENTS_WITH_STEP = 3  # of range

Roots = Mapping[str, str | None]
"""For each name the parameter or scratch memory that it points into; None for numbers."""


@dataclass(frozen=True, slots=True)
class _Element:
    """An element that a loop reads or writes: ``name[index]``, in the memory of ``root``."""

    root: str
    name: str
    index: ast.expr
    written: bool


def parallel_loops(entry: ast.FunctionDef, pointers: Iterable[str]) -> frozenset[ast.For]:
    """The innermost loops of ``entry`` in which no iteration writes an element that another one reads or writes.

    What a kernel writes through one parameter no other one points to. Loops are left out where that is not plain to see, and
    so are all of a kernel with non-temporal stores: LLVM's groups of accesses mark those.

    Args:
        pointers: the parameters that are pointers.
    """
    nodes = nodes_in(entry)
    roots = _roots(nodes, pointers)
    if any(_called(node) == _NONTEMPORAL_STORE for node in nodes):
        return frozenset()
    if _hands_on(nodes_in(*(node.value for node in nodes if isinstance(node, ast.Assign))), roots):
        return frozenset()  # a pointer with a name that is not followed
    return frozenset(node for node in nodes if isinstance(node, ast.For) and _is_parallel(node, roots))


def reads_tables(entry: ast.FunctionDef) -> bool:
    """Whether ``entry`` loads elements from computed positions."""
    return any(_called(node) == _TABLE for node in nodes_in(entry))


def _called(node: ast.AST) -> str | None:
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else None


def _roots(nodes: Iterable[ast.AST], pointers: Iterable[str]) -> Roots:
    roots: dict[str, str | None] = {name: name for name in pointers}
    for node in nodes:
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.For)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for name in {name for target in targets for name in bound_names(target)}:
                root = _root(name, node.value, roots) if isinstance(node, ast.Assign) else None
                roots[name] = root if roots.get(name, root) == root else None
    return roots


def _root(name: str, value: ast.expr, roots: Roots) -> str | None:
    called = _called(value)
    if called is not None and called.startswith("scratch_"):
        return name
    if called == "at":
        assert isinstance(value, ast.Call)
        return roots.get(value.args[0].id) if isinstance(value.args[0], ast.Name) else None
    return None


def _hands_on(nodes: Sequence[ast.AST], roots: Roots) -> bool:
    """Whether a pointer occurs among ``nodes`` other than before ``[``, or as the first operand of such calls."""
    plain = {node.value for node in nodes if isinstance(node, ast.Subscript)}
    plain |= {node.args[0] for node in nodes if isinstance(node, ast.Call) and _called(node) in _OF_ADDRESSES}
    return any(isinstance(node, ast.Name) and roots.get(node.id) is not None and node not in plain for node in nodes)


def _is_parallel(loop: ast.For, roots: Roots) -> bool:
    nodes = nodes_in(*loop.body)
    if any(isinstance(node, (ast.For, ast.While)) for node in nodes) or _hands_on(nodes, roots):
        return False
    elements = list(_elements(nodes, roots))
    variable = loop.target.id if isinstance(loop.target, ast.Name) else ""
    changing = names_in(nodes, ast.Store)
    if variable in changing or not (isinstance(loop.iter, ast.Call) and len(loop.iter.args) < _ARGUMENTS_WITH_STEP):
        return False
    if not all(element is not None and _is_stepwise(element, variable, changing) for element in elements):
        return False
    known = [element for element in elements if element is not None]
    written = {element.root for element in known if element.written}
    places = {(e.root, e.name, ast.dump(e.index)): e for e in known if e.root in written}
    return len(places) == len(written) and all(variable in names_in(nodes_in(e.index)) for e in places.values())


def _elements(nodes: Sequence[ast.AST], roots: Roots) -> Iterator[_Element | None]:
    """The elements that a loop touches; None for one of memory that is not known."""
    for node in nodes:
        if isinstance(node, ast.Subscript):
            pointer, index = node.value, node.slice
        elif isinstance(node, ast.Call) and _called(node) == _LOAD:
            pointer, index = node.args[0], node.args[1]
        else:
            continue
        root = roots.get(pointer.id) if isinstance(pointer, ast.Name) else None
        if root is None or not isinstance(pointer, ast.Name):
            yield None
        else:
            yield _Element(root, pointer.id, index, isinstance(getattr(node, "ctx", None), ast.Store))


def _is_stepwise(element: _Element, variable: str, changing: set[str]) -> bool:
    """Whether each iteration has the next element, or all the same: the index is a sum of ``variable`` and of what stays.

    For other steps LLVM makes loops with checks of their own, which this would change.
    """
    own = [term for term in _terms(element.index) if variable in names_in(nodes_in(term))]
    nodes = nodes_in(element.index)
    calls = any(isinstance(node, (ast.Call, ast.Subscript)) for node in nodes)
    stays = not changing & ({element.name} | names_in(nodes))
    return stays and not calls and (not own or (len(own) == 1 and isinstance(own[0], ast.Name)))


def _terms(index: ast.expr) -> Iterator[ast.expr]:
    match index:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            yield from _terms(left)
            yield from _terms(right)
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            yield from _terms(left)
            yield ast.UnaryOp(ast.USub(), right)
        case _:
            yield index


def access_group(module: Any) -> Any:
    """The metadata of accesses in parallel loops; `with_distinct_group` completes it in the text."""
    return module.add_metadata([_GROUP])


def mark_accesses(blocks: Iterable[Any], group: Any) -> None:
    """Put the accesses of elements in ``blocks`` into ``group``, not those of local variables, which become registers."""
    for instruction in (instruction for block in blocks for instruction in block.instructions):
        if instruction.opname in ("load", "store") and not isinstance(instruction.operands[-1], ir.AllocaInstr):
            instruction.set_metadata("llvm.access.group", group)


def with_distinct_group(text: str) -> str:
    """IR ``text`` whose group is distinct, as LLVM demands, which llvmlite cannot write."""
    return _GROUP_NODE.sub(r"\1 = distinct !{}", text)
