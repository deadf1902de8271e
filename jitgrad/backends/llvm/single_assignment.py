"""Finds the variables of kernel source that need no memory: each is the value of one assignment."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence

from jitgrad.backends.llvm.syntax_nodes import bound_names, names_in, nodes_in


def single_assignments(function: ast.FunctionDef) -> frozenset[str]:
    """The names that ``function`` binds once, and reads only where that assignment has run.

    A name that is bound in a block is read in the rest of that block, and in the blocks inside it.
    """
    return _Bindings(function).single()


class _Bindings:
    """How often names are bound, and which are read where the assignment may not have run."""

    def __init__(self, function: ast.FunctionDef) -> None:
        self.counts: Counter[str] = Counter()
        self.visible: set[str] = set()
        self.read_outside: set[str] = set()
        for parameter in function.args.args:
            self._bind(parameter.arg)
        self._block(function.body)

    def single(self) -> frozenset[str]:
        return frozenset(name for name, count in self.counts.items() if count == 1 and name not in self.read_outside)

    def _bind(self, name: str) -> None:
        self.counts[name] += 1
        self.visible.add(name)

    def _block(self, statements: Sequence[ast.stmt], *bound: str) -> None:
        """One block, at whose start ``bound`` get values; what it binds is not visible after it."""
        before = set(self.visible)
        for name in bound:
            self._bind(name)
        for statement in statements:
            self._statement(statement)
        self.visible = before

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.For(target=ast.Name(id=name), iter=bounds, body=body):
                self._read(bounds)
                self._block(body, name)
            case ast.If(test=test, body=body, orelse=orelse) | ast.While(test=test, body=body, orelse=orelse):
                self._read(test)
                self._block(body)
                self._block(orelse)
            case ast.AugAssign(target=changed):
                self._read(node)
                self._bind_all(changed, 2)  # it is bound before
            case ast.Assign(targets=targets, value=value):
                self._read(value)
                for target in targets:
                    if type(target) is not ast.Name:
                        self._read(target)
                    self._bind_all(target, 1)
            case _:
                self._read(node)

    def _bind_all(self, target: ast.expr, count: int) -> None:
        for name in bound_names(target):
            for _ in range(count):
                self._bind(name)

    def _read(self, node: ast.AST) -> None:
        self.read_outside |= names_in(nodes_in(node), ast.Load) - self.visible
