"""Names outside a code object that its instructions read and write: the static half of guards."""

from __future__ import annotations

import dis
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import CodeType
from typing import Literal

Aliases = Mapping[str, "Chain"]

_SILENT = frozenset(
    [
        "CACHE", "EXTENDED_ARG", "NOP", "RESUME", "PUSH_NULL", "PRECALL", "COPY_FREE_VARS", "MAKE_CELL",
        "KW_NAMES", "NOT_TAKEN",
    ]
)  # fmt: skip
_ATTRIBUTE = frozenset(("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "LOAD_SUPER_METHOD"))
_GLOBAL = frozenset(("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"))
_CALL = frozenset(("CALL", "PRECALL", "CALL_FUNCTION", "CALL_KW"))
_BY_NAME = frozenset(("getattr", "hasattr", "setattr", "delattr"))
_INTROSPECTION = frozenset(
    [
        "vars", "dir", "attrgetter", "methodcaller", "asdict", "astuple", "fields", "deepcopy",
        "AttributeError", "__dict__", "__slots__", "__getattribute__", "__getattr__",
    ]
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Chain:
    """``root.attr.attr``: an outside name in a line, with the attributes loaded from it."""

    kind: Literal["global", "free", "import"]
    root: str
    attrs: tuple[str, ...] = ()
    line: int = 0

    def __str__(self) -> str:
        return ".".join((self.root, *self.attrs))


@dataclass(slots=True)
class CodeFacts:
    """The reads and writes of one code object, and its nested code (with inherited imports).

    ``loads`` and ``stores`` map attribute names to the first line that mentions them. ``probes``
    holds attributes that may be absent (``hasattr``). ``global_updates`` and ``free_updates`` hold
    the stores of ``+=`` and its kind, which may assign the same object. ``introspects``: the code
    may read attributes that it does not name. ``compares``: the code may call ``__eq__`` of an object.
    """

    chains: list[Chain] = field(default_factory=list)
    loads: dict[str, int] = field(default_factory=dict)
    stores: dict[str, int] = field(default_factory=dict)
    probes: dict[str, int] = field(default_factory=dict)
    global_stores: dict[str, int] = field(default_factory=dict)
    free_stores: dict[str, int] = field(default_factory=dict)
    global_updates: dict[str, int] = field(default_factory=dict)
    free_updates: dict[str, int] = field(default_factory=dict)
    introspects: bool = False
    compares: bool = False
    children: list[tuple[CodeType, Aliases]] = field(default_factory=list)


def read_code(code: CodeType, aliases: Aliases | None = None) -> CodeFacts:
    """The facts about ``code`` (do not change them); ``aliases``: imports of the outer code."""
    return _Scan(code, aliases).run() if aliases else _read_alone(code)


@lru_cache(maxsize=4096)  # the same functions are read for every new shape
def _read_alone(code: CodeType) -> CodeFacts:
    return _Scan(code, {}).run()


class _Scan:
    """One pass over the instructions of a code object."""

    def __init__(self, code: CodeType, aliases: Aliases) -> None:
        self.code = code
        self.facts = CodeFacts()
        self.aliases = {name: chain for name, chain in aliases.items() if name in code.co_freevars}
        self.chain: Chain | None = None  # continued by the next LOAD_ATTR
        self.module: Chain | None = None  # source of the next IMPORT_FROM
        self.imported: Chain | None = None  # named by the next STORE
        self.line = code.co_firstlineno
        self.instructions = [i for i in dis.get_instructions(code) if i.opname not in _SILENT or i.opname == "PRECALL"]

    def run(self) -> CodeFacts:
        for k, instruction in enumerate(self.instructions):
            if instruction.positions is not None and instruction.positions.lineno is not None:
                self.line = instruction.positions.lineno
            if instruction.opname not in _SILENT:
                self.step(k, instruction)
        self.end_chain()
        self.facts.introspects |= not _INTROSPECTION.isdisjoint(self.facts.loads)
        for constant in self.code.co_consts:
            if isinstance(constant, CodeType):
                self.facts.children.append((constant, self.aliases))
        return self.facts

    def step(self, k: int, instruction: dis.Instruction) -> None:
        name, value = instruction.opname, instruction.argval
        if name in _ATTRIBUTE:
            self.facts.loads.setdefault(value, self.line)
            if self.chain is not None:
                self.chain = replace(self.chain, attrs=(*self.chain.attrs, value))
            return
        self.end_chain()
        if name in _GLOBAL:
            self.load_global(k, value)
        elif name in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            stores = self.facts.global_updates if self.is_update(k) else self.facts.global_stores
            stores.setdefault(value, self.line)
        elif name in ("STORE_ATTR", "DELETE_ATTR"):
            self.facts.stores.setdefault(value, self.line)
        elif name.startswith("IMPORT_"):
            self.load_import(k, name, value)
        elif name == "SWAP" and self.imported is not None:
            self.module = self.imported  # ``import a.b.c as d`` walks down from a
        elif name.startswith(("STORE_", "DELETE_")):
            self.store(k, name, value)
        elif name.startswith("LOAD_"):
            self.load(instruction)
        elif name in ("COMPARE_OP", "CONTAINS_OP"):
            self.facts.compares |= name == "CONTAINS_OP" or self.instructions[k - 1].opname != "LOAD_CONST"
        elif name == "MATCH_CLASS":  # takes attributes that __match_args__ names
            self.facts.introspects = True

    def end_chain(self) -> None:
        if self.chain is not None:
            self.facts.chains.append(self.chain)
            self.chain = None

    def load_global(self, k: int, name: str) -> None:
        if name in self.aliases:  # a class body or module-level code that imported it
            self.chain = replace(self.aliases[name], line=self.line)
            return
        self.chain = Chain("global", name, (), self.line)
        if name in _BY_NAME:
            attribute = self.constant_name(k)
            into = self.facts.stores if name in ("setattr", "delattr") else self.facts.loads
            if attribute is None:
                self.facts.introspects = True
            else:
                into.setdefault(attribute, self.line)
                self.facts.probes.setdefault(attribute, self.line)
        self.facts.introspects |= name in _INTROSPECTION

    def constant_name(self, k: int) -> str | None:
        """The second argument of the call of instruction ``k``'s name, if a string constant."""
        depth, name = 0, None
        for here in self.instructions[k + 1 :]:
            if name is not None and here.opname in _CALL and depth in (2, 3):
                return name
            depth += dis.stack_effect(here.opcode, here.arg, jump=False)
            if name is None and depth == 2 and here.opname == "LOAD_CONST" and isinstance(here.argval, str):
                name = here.argval
            elif depth < 1 or (depth >= 2) == (name is None) or (name is not None and depth == 2):
                return None  # the second argument is computed
        return None

    def load_import(self, k: int, opname: str, name: str) -> None:
        if opname == "IMPORT_NAME":
            level, names = self.instructions[k - 2].argval, self.instructions[k - 1].argval
            # ``import a.b`` binds a; ``from a.b import c`` takes c from a.b
            root = name if names else name.partition(".")[0]
            dots = "." * level if isinstance(level, int) else ""
            self.module = Chain("import", dots + root, (), self.line)
            self.imported = self.module
        elif self.module is not None:  # IMPORT_FROM
            self.imported = replace(self.module, attrs=(*self.module.attrs, name))

    def is_update(self, k: int) -> bool:
        """Whether instruction ``k`` stores the result of ``+=`` or another in-place operator."""
        before = self.instructions[k - 1]
        return before.opname == "BINARY_OP" and before.argrepr.endswith("=")

    def store(self, k: int, opname: str, value: object) -> None:
        name = value if isinstance(value, str) else ""
        if opname.endswith("_DEREF") and name in self.code.co_freevars and name not in self.aliases:
            stores = self.facts.free_updates if self.is_update(k) else self.facts.free_stores
            stores.setdefault(name, self.line)
        if self.imported is not None and name:
            self.aliases[name] = self.imported
            self.imported = None
        if opname == "STORE_FAST_LOAD_FAST" and isinstance(value, tuple):
            self.start_local(value[-1])

    def load(self, instruction: dis.Instruction) -> None:
        """Start a chain at an imported local or a cell of an outer function."""
        names = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
        if instruction.opname == "LOAD_CONST":
            return
        for name in names:
            self.end_chain()
            if name in self.aliases:
                self.start_local(name)
            elif isinstance(name, str) and name in self.code.co_freevars:
                self.chain = Chain("free", name, (), self.line)

    def start_local(self, name: str) -> None:
        if name in self.aliases:
            self.chain = replace(self.aliases[name], line=self.line)
