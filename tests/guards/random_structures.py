"""Random nested structures, code that reads numbers out of them, and changes of them."""

from __future__ import annotations

import copy
import dataclasses
import functools
import itertools
import operator
from collections import OrderedDict, deque
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np


class Pair(NamedTuple):
    a: Any
    b: Any


@dataclasses.dataclass
class Record:
    a: Any
    b: Any


class Slots:
    __slots__ = ("a", "b")

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b


class Sequence:
    """Gives what a list holds, by Python code."""

    def __init__(self, items: Any) -> None:
        self.items = list(items)

    def __iter__(self) -> Any:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: Any) -> Any:
        return self.items[index]


SEQUENCES: tuple[Any, ...] = (list, tuple, deque, Sequence)
OBJECTS: tuple[Any, ...] = (Pair, Record, Slots, SimpleNamespace)
NAMES = {"itertools": itertools, "operator": operator, "functools": functools, "copy": copy}

# What gives one item of the sequence {c}: expressions, and heads of loops over {v}.
ITEM = (
    "{c}[{k}]", "{c}[-1]", "next(iter({c}))", "tuple({c})[{k}]", "operator.itemgetter({k})({c})", "copy.copy({c})[{k}]",
    "(lambda c: c[{k}])({c})", "list({c})[::-1][0]", "[e for e in {c} if e is not None][{k}]", "(lambda *c: c[{k}])(*{c})",
    "functools.reduce(lambda a, b: b, {c})", "[*{c}, None][{k}]",
)  # fmt: skip
LOOP = (
    "for {v} in {c}:", "for _, {v} in enumerate({c}):", "for {v}, _ in zip({c}, {c}):", "for {v} in reversed(list({c})):",
    "for {v} in [*{c}]:", "for {v} in (e for e in {c}):", "for {v} in itertools.chain({c}, {c}):",
    "for {v} in itertools.islice({c}, 2):", "for {v} in map(lambda e: e, {c}):", "for {v} in filter(lambda e: True, {c}):",
)  # fmt: skip
VALUE = (
    "{c}['k{k}']", "{c}.get('k{k}')", "list({c}.values())[0]", "next(iter({c}.values()))", "dict({c})['k{k}']",
    "{{**{c}}}['k{k}']", "list({c}.items())[0][1]",
)  # fmt: skip
VALUES = (
    "for _, {v} in {c}.items():", "for {v} in {c}.values():", "for _, (_, {v}) in enumerate({c}.items()):",
    "for {v} in map(operator.itemgetter(1), {c}.items()):", "for _, {v} in sorted({c}.items(), key=lambda e: e[0]):",
)  # fmt: skip
FIELD = ("{c}.{n}", "getattr({c}, '{n}')", "operator.attrgetter('{n}')({c})")
NUMBER_OF_ARRAY = ("float({c}[1])", "float({c}.sum())", "sum(float(e) for e in {c})", "float(max({c}))")


def structure(rng: np.random.Generator, depth: int) -> tuple[Any, Any]:
    """A nested structure and its kind: "number", "array", (kind, size, kind of items) or ("object", kinds of fields)."""
    if depth == 0 or rng.random() < 0.12:
        return float(rng.integers(1, 9)), "number"
    choice = int(rng.integers(4))
    if choice == 0:
        make = OBJECTS[int(rng.integers(len(OBJECTS)))]
        (a, kind_a), (b, kind_b) = structure(rng, depth - 1), structure(rng, depth - 1)
        return make(a=a, b=b), ("object", kind_a, kind_b)
    if choice == 1 and rng.random() < 0.5:
        return rng.integers(1, 9, 3).astype(float), "array"
    size, seed = int(rng.integers(1, 4)), int(rng.integers(1 << 30))
    items, kind = [], None
    for _ in range(size):  # alike, but for their numbers
        item, kind = structure(np.random.default_rng(seed), depth - 1)
        renumber(item, rng)
        items.append(item)
    if choice == 1:
        make = dict if rng.random() < 0.5 else OrderedDict
        return make((f"k{k}", item) for k, item in enumerate(items)), ("dict", size, kind)
    return SEQUENCES[int(rng.integers(len(SEQUENCES)))](items), ("sequence", size, kind)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Each place that can be changed: its holder, and an index, key or name in that."""
    if isinstance(value, Sequence):
        return places(value.items)
    if isinstance(value, list | tuple | deque | np.ndarray):
        parts = [(value, k) for k in range(len(value))]
    elif isinstance(value, dict):
        parts = [(value, key) for key in value]
    elif isinstance(value, Record | Slots | SimpleNamespace):
        parts = [(value, "a"), (value, "b")]
    else:
        return []
    below = [place for part in parts for place in places(content(part))]
    return below if isinstance(value, tuple) else [*parts, *below]


def content(place: tuple[Any, Any]) -> Any:
    holder, key = place
    return getattr(holder, key) if isinstance(holder, Record | Slots | SimpleNamespace) else holder[key]


def fill(place: tuple[Any, Any], value: Any) -> None:
    holder, key = place
    if isinstance(holder, Record | Slots | SimpleNamespace):
        setattr(holder, key, value)
    else:
        holder[key] = value


def renumber(value: Any, rng: np.random.Generator) -> None:
    """Give every number in ``value`` a new value."""
    for place in places(value):
        if isinstance(content(place), float):
            fill(place, float(rng.integers(1, 9)))


def change(root: Any, rng: np.random.Generator) -> None:
    """Change one place: another number, an equal copy, or a copy with other numbers."""
    listed = places(root)
    place = listed[int(rng.integers(len(listed)))]
    old = content(place)
    new = float(rng.integers(10, 99)) if isinstance(old, float) else copy.deepcopy(old)
    if not isinstance(old, float) and rng.random() < 0.5:
        renumber(new, rng)
    fill(place, new)


class Reader:
    """Writes code that reads numbers of a structure into ``s``."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.lines: list[str] = []
        self._names = itertools.count()

    def read(self, text: str, kind: Any, indent: int) -> None:
        if kind == "number":
            self._line(f"s = s * 0.75 + {text}", indent)
            return
        if kind == "array":
            self._line(f"s = s * 0.75 + {self._one_of(NUMBER_OF_ARRAY, c=text)}", indent)
            return
        if self.rng.random() < 0.4:
            name = self._name()
            self._line(f"{name} = {text}", indent)
            text = name
        if kind[0] == "object":
            fields = list(zip("ab", kind[1:], strict=True))
            for name, field in [fields, fields, fields[:1], fields[1:]][int(self.rng.integers(4))]:
                self.read(self._one_of(FIELD, c=text, n=name), field, indent)
            return
        items, loops = (VALUE, VALUES) if kind[0] == "dict" else (ITEM, LOOP)
        if self.rng.random() < 0.5:
            self.read(self._one_of(items, c=text, k=int(self.rng.integers(kind[1]))), kind[2], indent)
        else:
            self._loop(loops, text, kind[2], indent)

    def _loop(self, loops: tuple[str, ...], text: str, kind: Any, indent: int) -> None:
        name, part = self._name(), kind
        target = name
        if kind[0] == "sequence" and self.rng.random() < 0.6:  # unpacked at once
            targets = [self._name() for _ in range(kind[1])]
            name, part, target = targets[int(self.rng.integers(kind[1]))], kind[2], f"({', '.join(targets)},)"
        self._line(self._one_of(loops, c=text, v=target), indent)
        self.read(name, part, indent + 1)

    def _one_of(self, texts: tuple[str, ...], **parts: Any) -> str:
        return texts[int(self.rng.integers(len(texts)))].format(**parts)

    def _name(self) -> str:
        return f"v{next(self._names)}"

    def _line(self, text: str, indent: int) -> None:
        self.lines.append("    " * indent + text)


def program(seed: int) -> tuple[str, Any, Any]:
    """Source code, the function that it defines, and the structure that this reads."""
    rng = np.random.default_rng(seed)
    root, kind = structure(rng, 4)
    while not places(root):
        root, kind = structure(rng, 4)
    reader = Reader(rng)
    text = ("ROOT", "holder.root", "cell")[int(rng.integers(3))]
    for _ in range(2):
        reader.read(text, kind, 2)
    head = ["def make(cell):", "    def f(x):", "        s = 0.5"]
    source = "\n".join([*head, *reader.lines, "        return x * s", "    return f"])
    names = dict(NAMES, ROOT=root, holder=SimpleNamespace(root=root))
    exec(compile(source, f"<structure {seed}>", "exec"), names)
    return source, names["make"](root), root
