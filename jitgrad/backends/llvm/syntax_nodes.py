"""The nodes of syntax trees. The standard library's walk takes ten times as long, which compilation is full of."""

from __future__ import annotations

import ast
from collections.abc import Iterable

_LEAVES = frozenset({"ctx", "id", "kind", "op", "ops", "type_comment"})  # fields without nodes, or with contexts and operators
_PARTS: dict[type[ast.AST], tuple[str, ...]] = {ast.Constant: (), ast.Name: ()}  # the other fields


def nodes_in(*trees: ast.AST) -> list[ast.AST]:
    """The nodes of ``trees``, each before those below it, but for the contexts and operators of expressions."""
    nodes = [*trees]
    for node in nodes:
        parts = _PARTS.get(type(node))
        if parts is None:
            parts = _PARTS[type(node)] = tuple(name for name in node._fields if name not in _LEAVES)
        for name in parts:
            part = getattr(node, name, None)
            if type(part) is list:
                nodes += [each for each in part if isinstance(each, ast.AST) and each._fields]
            elif isinstance(part, ast.AST) and part._fields:
                nodes.append(part)
    return nodes


def names_in(nodes: Iterable[ast.AST], context: type[ast.expr_context] = ast.expr_context) -> set[str]:
    """The names among ``nodes`` that are read, written, or either."""
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, context)}


def bound_names(target: ast.expr) -> set[str]:
    """The names that an assignment to ``target`` binds."""
    return {target.id} if type(target) is ast.Name else names_in(nodes_in(target), ast.Store)
