"""The source of Python functions for a module of its own: with what they read from outside, without what needs jitgrad."""

from __future__ import annotations

import ast
import builtins
import inspect
import keyword
import math
import textwrap
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from types import CodeType, ModuleType
from typing import Any

import numpy as np

from jitgrad.core.errors import EjectError
from jitgrad.core.monoid import Monoid
from jitgrad.core.origin import Origin

_CACHES = frozenset({"cache", "lru_cache", "functools.cache", "functools.lru_cache"})
_BUILTINS = frozenset(dir(builtins))


class FunctionLibrary:
    """Functions, each with its source and all that it reads.

    Attributes:
        reserved: names that they must not have.
        imports: the modules that they read, by the names they have there.
    """

    def __init__(self, reserved: Collection[str], decorator: str = "") -> None:
        self.reserved = reserved
        self.decorator = decorator
        self.imports: dict[str, str] = {}
        self._names: dict[Any, str] = {}
        self._definitions: dict[str, str] = {}

    @property
    def text(self) -> str:
        """The definitions, what is read first."""
        return "".join(self._definitions.values())

    @property
    def names(self) -> Collection[str]:
        """The names that are taken."""
        return self._definitions.keys()

    def name_of(self, function: Callable[..., Any], what: str, base: str = "") -> str:
        """The text that calls ``function``; its source is added now if it is new.

        Raises:
            EjectError: it has no source, or reads what cannot be written down; names ``what`` it is part of.
        """
        if (known := numpy_name_of(function)) is not None:
            return known
        function = inspect.unwrap(function)
        key = getattr(function, "__code__", function), _closure_key(function), id(getattr(function, "__self__", None))
        if key not in self._names:
            monoid = getattr(function, "__self__", None)
            name = self._free_name(_identifier(base or getattr(function, "__name__", "function")))
            self._names[key] = name
            if isinstance(monoid, Monoid):
                self._definitions[name] = _reduction_text(name, monoid)
            elif isinstance(function, partial):
                raise EjectError(f"eject: {what} calls {function!r}, a partial function, which has no source of its own")
            else:
                self._add(name, function, what)
        return self._names[key]

    def _free_name(self, base: str) -> str:
        name, k = base, 2
        while name in self._definitions or name in self._names.values() or name in _BUILTINS or name in self.reserved:
            name, k = f"{base}_{k}", k + 1
        return name

    def _add(self, name: str, function: Callable[..., Any], what: str) -> None:
        tree = definition_tree(function, what)
        tree.name = name
        outside = _outside_values(function)
        renamed: dict[str, str] = {}
        for read in _names_read(tree):
            if read in outside:
                renamed[read] = self._value(read, outside[read], what)
        for part in ast.walk(tree):
            if isinstance(part, ast.Name):
                part.id = renamed.get(part.id, part.id)
        decorator = f"@{self.decorator}\n" if self.decorator else ""
        self._definitions[name] = f"\n\n{decorator}{ast.unparse(tree)}\n"

    def _value(self, name: str, value: Any, what: str) -> str:
        """The text of ``value``, which a function reads from outside under ``name``."""
        if isinstance(value, ModuleType):
            return self._module(name, value, what)
        if isinstance(value, type):
            return self._class(value, what)
        if (known := numpy_name_of(value)) is not None:
            return known
        if callable(value) and not isinstance(value, np.dtype):
            return self.name_of(value, what)
        return self._constant(name, value, what)

    def _module(self, name: str, module: ModuleType, what: str) -> str:
        if module is np:
            return "np"
        if module.__name__.split(".")[0] == "jitgrad":
            raise EjectError(f"eject: {what} reads the module {module.__name__}, and the written module does without jitgrad")
        self.imports[name] = module.__name__
        return name

    def _class(self, cls: type, what: str) -> str:
        if getattr(np, cls.__name__, None) is cls:
            return f"np.{cls.__name__}"
        if issubclass(cls, Exception):
            return next(base.__name__ for base in cls.__mro__ if base.__module__ == "builtins")
        if cls.__module__ == "builtins":
            return cls.__name__
        raise EjectError(f"eject: {what} uses the class {cls.__module__}.{cls.__qualname__}, which cannot be written down")

    def _constant(self, name: str, value: Any, what: str) -> str:
        text = literal_text(value)
        if text is None:
            raise EjectError(
                f"eject: {what} reads {name!r}, a {type(value).__name__}, which cannot be written down. "
                "Numbers, tuples of numbers, dtypes and functions can."
            )
        for known, definition in self._definitions.items():
            if definition == f"\n{known} = {text}\n" and known.startswith(name):
                return known
        known = self._free_name(name)
        self._definitions[known] = f"\n{known} = {text}\n"
        return known


def definition_tree(function: Callable[..., Any], what: str) -> ast.FunctionDef:
    """The definition of ``function`` without annotations and decorators; a lambda becomes a function."""
    code: CodeType | None = getattr(function, "__code__", None)
    try:
        tree = ast.parse(textwrap.dedent(_readable_source(function)))
    except (OSError, TypeError, SyntaxError):
        where = Origin.of_code_of(function).full()
        raise EjectError(f"eject: {what} calls {function!r} from {where}, whose source cannot be read") from None
    assert code is not None
    first: list[ast.FunctionDef] = [t for t in ast.walk(tree) if isinstance(t, ast.FunctionDef) and t.name == code.co_name]
    if first:
        found = first[0]
        decorators = {ast.unparse(d).split("(")[0] for d in found.decorator_list}
        if bad := sorted(decorators - _CACHES - {"elementwise", "jg.elementwise", "staticmethod"}):
            bad = [d for d in bad if not d.endswith(("elementwise", "njit", "jit", "custom_op", "vectorize"))]
        if bad:
            raise EjectError(f"eject: {what} calls {code.co_name}, which has the decorator {bad[0]}")
    else:
        found = _from_lambda(tree, code, what)
    return _plain(found)


def _readable_source(function: Callable[..., Any]) -> str:
    """The lines of ``function``, made a statement where it stands within one."""
    lines = textwrap.dedent(inspect.getsource(function))
    if _parses(lines):
        return lines
    start = lines.find("lambda")
    stripped = lines[start:].rstrip()
    while stripped:  # a lambda among the arguments of a call
        if _parses(stripped) and isinstance(ast.parse(stripped).body[0], ast.Expr):
            return stripped
        stripped = stripped[:-1].rstrip()
    return lines


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def _from_lambda(tree: ast.Module, code: CodeType, what: str) -> ast.FunctionDef:
    lambdas = [t for t in ast.walk(tree) if isinstance(t, ast.Lambda)]
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    fitting = [t for t in lambdas if _parameter_names(t.args) == names and _code_of(t).co_code == code.co_code] or [
        t for t in lambdas if _parameter_names(t.args) == names
    ]
    if len({ast.unparse(t) for t in fitting}) != 1:
        raise EjectError(f"eject: {what} calls a lambda from {Origin.of_code(code).full()}; give it a name with def")
    body: list[ast.stmt] = [ast.Return(fitting[0].body)]
    made = ast.parse("def function(): pass").body[0]
    assert isinstance(made, ast.FunctionDef)
    made.args, made.body = fitting[0].args, body
    return made


def _code_of(tree: ast.Lambda) -> CodeType:
    module = compile(ast.fix_missing_locations(ast.Expression(tree)), "<lambda>", "eval")
    return next(c for c in module.co_consts if isinstance(c, CodeType))


def _parameter_names(args: ast.arguments) -> tuple[str, ...]:
    return tuple(a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs))


def _plain(tree: ast.FunctionDef) -> ast.FunctionDef:
    """``tree`` without decorators and annotations."""
    for part in ast.walk(tree):
        if isinstance(part, ast.FunctionDef):
            part.returns, part.decorator_list = None, []
        elif isinstance(part, ast.arg):
            part.annotation = None
    return _DropAnnotations().visit(tree)  # type: ignore[no-any-return]


class _DropAnnotations(ast.NodeTransformer):
    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt | None:
        if node.value is None:
            return None
        return ast.copy_location(ast.Assign([node.target], node.value), node)


def _names_read(tree: ast.FunctionDef) -> Iterator[str]:
    assigned = {a.arg for part in ast.walk(tree) if isinstance(part, ast.arguments) for a in _all_args(part)}
    assigned |= {p.id for p in ast.walk(tree) if isinstance(p, ast.Name) and isinstance(p.ctx, ast.Store)}
    read = [p.id for p in ast.walk(tree) if isinstance(p, ast.Name) and isinstance(p.ctx, ast.Load)]
    yield from (name for name in dict.fromkeys(read) if name not in assigned)


def _all_args(args: ast.arguments) -> list[ast.arg]:
    more = [a for a in (args.vararg, args.kwarg) if a is not None]
    return [*args.posonlyargs, *args.args, *args.kwonlyargs, *more]


def _outside_values(function: Callable[..., Any]) -> Mapping[str, Any]:
    """What ``function`` can read from outside, by name."""
    code, cells = getattr(function, "__code__", None), getattr(function, "__closure__", None) or ()
    free = dict(zip(code.co_freevars if code is not None else (), (c.cell_contents for c in cells), strict=False))
    return {**getattr(function, "__globals__", {}), **free}


def _closure_key(function: Callable[..., Any]) -> tuple[int, ...]:
    return tuple(id(c.cell_contents) for c in getattr(function, "__closure__", None) or ())


def _identifier(name: str) -> str:
    cleaned = "".join(c if c.isalnum() or c == "_" else "_" for c in name).strip("_")
    fits = cleaned.isidentifier() and not keyword.iskeyword(cleaned)
    return cleaned if fits else f"function_{cleaned}".rstrip("_")


def numpy_name_of(x: Any) -> str | None:
    """``np.sort`` for a function that NumPy has under its name; ``math.exp`` likewise."""
    name = getattr(x, "__name__", None)
    if not isinstance(name, str) or isinstance(x, ModuleType):
        return None
    for module, text in ((np, "np"), (np.linalg, "np.linalg"), (np.add, "np.add"), (math, "math")):
        if getattr(module, name, None) is x:
            return f"{text}.{name}"
    return name if getattr(builtins, name, None) is x else None


def literal_text(value: Any) -> str | None:
    """The text of ``value``; None if it has none."""
    if value is None or isinstance(value, (bool, int, str, slice, type(...))):
        return "..." if value is ... else repr(value)
    if isinstance(value, np.dtype):
        return f"np.dtype({value.str!r})"
    if isinstance(value, np.generic):
        return f"np.{value.dtype.name}({literal_text(value.item())})" if value.dtype.kind != "b" else f"np.bool_({value})"
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else f"float({str(value)!r})"
    if isinstance(value, (tuple, list)):
        parts = [literal_text(x) for x in value]
        if any(p is None for p in parts):
            return None
        inner = ", ".join(p for p in parts if p is not None)
        return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' if len(parts) == 1 else ''})"
    return numpy_name_of(value)


def _reduction_text(name: str, monoid: Monoid) -> str:
    reduce = f"np.{monoid.step}.reduce"
    if not monoid.on_floats:
        return f"\n\ndef {name}(x, *, axis):\n    return {reduce}(x, axis=axis)\n"
    return f'''

def {name}(x, *, axis):
    """float16 is reduced in float32 and rounded once."""
    if x.dtype == np.float16:
        return {reduce}(x, axis=axis, dtype=np.float32).astype(np.float16)
    return {reduce}(x, axis=axis)
'''
