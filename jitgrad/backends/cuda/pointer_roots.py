"""Which parameters of a kernel its source writes through, directly or through pointers made of them, and its scratch."""

from __future__ import annotations

import ast
from collections.abc import Iterator


def pointer_roots(function: ast.FunctionDef) -> dict[str, str]:
    """The parameter that every pointer of a kernel is made of by ``at``, by the pointer's name."""
    roots = {parameter.arg: parameter.arg for parameter in function.args.args}
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id="at"), args=[ast.Name(id=base), _])):
                roots[name] = roots.get(base, base)
    return roots


def written_parameters(function: ast.FunctionDef) -> frozenset[str]:
    """The parameters through which ``function`` writes."""
    roots = pointer_roots(function)
    return frozenset(roots.get(name, name) for name in _stored(function))


def read_parameters(function: ast.FunctionDef) -> frozenset[str]:
    """The parameters through which ``function`` reads."""
    roots = pointer_roots(function)
    return frozenset(roots.get(name, name) for name in _loaded(function))


def scratch_names(function: ast.FunctionDef) -> frozenset[str]:
    """The pointers to scratch, which is in registers if every index is a literal once loops are unrolled."""
    found = set[str]()
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id=called))):
                found |= {name} if called.startswith("scratch_") else set()
    return frozenset(found)


def _stored(function: ast.FunctionDef) -> Iterator[str]:
    for node in ast.walk(function):
        match node:
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store()):
                yield name
            case ast.Call(func=ast.Name(id="copy_vector"), args=[to, _, _]):
                yield _base(to)


def _loaded(function: ast.FunctionDef) -> Iterator[str]:
    for node in ast.walk(function):
        match node:
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Load()):
                yield name
            case ast.Call(func=ast.Name(id="copy_vector"), args=[_, source, _]):
                yield _base(source)


def _base(pointer: ast.expr) -> str:
    """The name in ``p`` or ``at(p, n)``."""
    while isinstance(pointer, ast.Call):
        pointer = pointer.args[0]
    assert isinstance(pointer, ast.Name)
    return pointer.id
