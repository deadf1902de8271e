"""Type checkers of other programs see the type of every attribute of a public class."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2] / "jitgrad"
_CLASSES: dict[str, list[ast.ClassDef]] = defaultdict(list)
for _path in sorted(ROOT.rglob("*.py")):
    for _node in ast.parse(_path.read_text()).body:
        if isinstance(_node, ast.ClassDef):
            _CLASSES[_node.name].append(_node)


def test_every_public_attribute_has_a_declared_type() -> None:
    """Checkers other than the project's own need not infer the same type from a value."""
    classes = [c for name, found in _CLASSES.items() if name[0] != "_" for c in found]

    missing = [f"{c.name}.{name}" for c in classes for name in _undeclared(c)]

    assert len(classes) > 300
    assert not missing, f"annotate the first assignment of {', '.join(missing)}"


def _undeclared(c: ast.ClassDef) -> Iterator[str]:
    declared = set(_declared(c))
    for method in c.body:
        if isinstance(method, ast.FunctionDef) and method.args.args:
            parameters = {a.arg for a in (*method.args.args, *method.args.kwonlyargs) if a.annotation is not None}
            if _has_slots(c):  # then checkers take slots without types for the declarations
                parameters = set()
            for name, value in _assigned(method):
                plain = isinstance(value, ast.Name) and value.id in parameters
                if name[0] != "_" and name not in declared and not plain and not _is_literal(value):
                    yield name


def _declared(c: ast.ClassDef) -> Iterator[str]:
    """Attributes of ``c`` and its bases that have an annotation, or are functions."""
    for node in ast.walk(c):
        if isinstance(node, ast.AnnAssign):
            yield _attribute(node.target) or getattr(node.target, "id", "")
        elif isinstance(node, ast.FunctionDef):
            yield node.name
    for base in c.bases:
        for found in _CLASSES.get(ast.unparse(base).split(".")[-1], ()):
            if found is not c:
                yield from _declared(found)


def _assigned(method: ast.FunctionDef) -> Iterator[tuple[str, ast.expr | None]]:
    """The attributes that ``method`` sets, with the value of each, or None if that is only a part of one."""
    for node in ast.walk(method):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                for part in ast.walk(target):
                    if name := _attribute(part):
                        yield name, node.value if part is target else None
        elif isinstance(node, ast.AugAssign) and (name := _attribute(node.target)):
            yield name, None


def _attribute(target: ast.AST) -> str:
    """The name of ``self.name``, if ``target`` sets that."""
    of_self = isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self"
    return target.attr if of_self and not isinstance(target.ctx, ast.Load) else ""


def _is_literal(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and value.value is not None


def _has_slots(c: ast.ClassDef) -> bool:
    return any(isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "__slots__" for n in c.body)
