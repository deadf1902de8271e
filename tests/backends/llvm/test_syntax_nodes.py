"""A walk over syntax trees that is faster than the standard library's."""

from __future__ import annotations

import ast

from jitgrad.backends.llvm.syntax_nodes import names_in, nodes_in

SOURCE = "def f(x, n):\n    for i in range(n):\n        y = x[i] + (-1.0 if i > 2 else g(x, i)[0])\n        x[i], y = y, 3\n"


def test_nodes_are_those_of_the_standard_walk_in_its_order() -> None:
    tree = ast.parse(SOURCE)

    assert nodes_in(tree) == [node for node in ast.walk(tree) if node._fields]


def test_names_by_what_is_done_with_them() -> None:
    nodes = nodes_in(ast.parse(SOURCE))

    assert names_in(nodes, ast.Store) == {"i", "y"}
    assert names_in(nodes, ast.Load) == {"range", "n", "x", "i", "g", "y"}
    assert names_in(nodes) == {"range", "n", "x", "i", "g", "y"}
