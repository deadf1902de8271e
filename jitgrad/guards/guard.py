"""Guards: generated code that compares the environment of a trace on every call."""

from __future__ import annotations

import enum
import sys
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from keyword import iskeyword
from math import copysign, isnan
from operator import is_
from types import CellType, FunctionType, MethodType, SimpleNamespace
from typing import Any

import numpy as np

from jitgrad.core.aval import Aval
from jitgrad.core.errors import GuardError
from jitgrad.core.origin import Origin
from jitgrad.core.tensor import Tensor
from jitgrad.guards.object_state import MISSING, instance_dict, is_heap_type, slots_of
from jitgrad.guards.plain_items import plain_items
from jitgrad.guards.varying_arrays import note_change

NOWHERE = Origin()
_LONGEST = 500  # characters of a path

SCALARS = (bool, int, str, bytes, type(None), np.dtype, range, type(Ellipsis))
IMMUTABLE = (*SCALARS, float, complex, np.generic)


@dataclass(frozen=True, slots=True)
class Path:
    """The user's expression for a value: ``label`` says what its first name is."""

    label: str
    text: str

    def attr(self, name: str) -> Path:
        return Path(self.label, f"{self.text}.{name}" if name.isidentifier() else f"{self.text}[{name}]")

    def item(self, key: Any) -> Path:
        if len(self.text) > _LONGEST:  # lists nested a thousand times deep
            return self
        return Path(self.label, f"{self.text}[{_short(key)}]")

    def __str__(self) -> str:
        return f"{self.label} `{self.text}`" if self.label else f"`{self.text}`"


class AttributesPath(Path):
    """The expression of an object's ``__dict__``, whose items are its attributes."""

    def item(self, key: Any) -> Path:
        return Path(self.label, self.text).attr(str(key))


@dataclass(frozen=True, slots=True)
class CheckKind:
    """A way to read: ``suspect`` is Python text, true if ``{h}`` may no longer give ``{e}``.

    ``{k}`` is the key as a literal and ``{name}`` as an identifier. ``read(holder, key)`` gives the
    value itself.
    """

    suspect: str
    read: Callable[[Any, Any], Any]


def hooks_of(tensor: Tensor) -> list[Any] | None:
    """A list of the hooks on a leaf; None if there are none."""
    return list(tensor._hooks) if tensor._hooks else None


_EACH = "(len({h}) != {n} or not all(map(is_, {h}, {e})))"

KINDS: dict[str, CheckKind] = {
    "item": CheckKind("{h}[{k}] is not {e}", lambda h, k: h[k]),
    "cell": CheckKind("{h}.cell_contents is not {e}", lambda h, k: h.cell_contents),
    "attribute": CheckKind("{h}.{name} is not {e}", getattr),
    "absent": CheckKind("{k} in {h}", lambda h, k: h.get(k, MISSING)),
    "hides": CheckKind("{k} in {h}", lambda h, k: h.get(k, MISSING)),  # a class attribute, which was read
    "absent here": CheckKind("{k} in {h}.__dict__", lambda h, k: h.__dict__.get(k, MISSING)),  # of a threading.local
    "hides here": CheckKind("{k} in {h}.__dict__", lambda h, k: h.__dict__.get(k, MISSING)),
    "class": CheckKind("type({h}) is not {e}", lambda h, k: type(h)),
    "class behind": CheckKind("{h}.__class__ is not {e}", lambda h, k: h.__class__),  # a weakref.proxy
    "length": CheckKind("len({h}) != {e}", lambda h, k: len(h)),
    "keys": CheckKind("(*{h},) != {e}", lambda h, k: tuple(h)),
    "unset": CheckKind("hasattr({h}, {k})", lambda h, k: getattr(h, k, MISSING)),
    "items": CheckKind(_EACH, lambda h, k: tuple(h)),
    "values": CheckKind(_EACH.replace("map(is_, {h},", "map(is_, {h}.values(),"), lambda h, k: tuple(h.values())),
    "aval": CheckKind("({h}._aval is not {e} and {h}.aval != {e})", lambda h, k: h.aval),
    "hooks": CheckKind("({h}._hooks or None) != {e}", lambda h, k: hooks_of(h)),
    "layout": CheckKind("({h}.shape, {h}.strides, {h}.dtype) != {e}", lambda h, k: (h.shape, h.strides, h.dtype)),
    "flags": CheckKind("{h}.flags.num != {e}", lambda h, k: h.flags.num),  # of an array
    "content": CheckKind("{h}.tobytes() != {e}", lambda h, k: h.tobytes()),
    "tensor": CheckKind("tensor_bytes({h}) != {e}", lambda h, k: tensor_bytes(h)),
    "elements": CheckKind("not same_elements({h}, {e})", lambda h, k: h),
    "part": CheckKind("{h}[{k}].tobytes() != {e}", lambda h, k: np.asarray(h[k]).tobytes()),
    "contains": CheckKind("({k} in {h}) is not {e}", lambda h, k: k in h),
    "bytes": CheckKind("bytes({h}) != {e}", lambda h, k: bytes(h)),
    "context": CheckKind("{h}.get(MISSING) is not {e}", lambda h, k: h.get(MISSING)),
    "cached": CheckKind("{h}(*{k}[0], **{k}[1]) is not {e}", lambda h, k: h(*k[0], **k[1])),
    "answer": CheckKind("{h}(*{k}) != {e}", lambda h, k: h(*k)),
    "referent": CheckKind("({h}() is not None) is not {e}", lambda h, k: h() is not None),
}


_OF_ITEMS = frozenset(["item", "absent", "hides", "length", "keys", "items", "values", "contains"])


@dataclass(frozen=True, slots=True, eq=False)
class Check:
    """One guarded read: ``key`` of ``holder`` was ``expected``, on the line ``origin``.

    ``identical``: the code compared it with ``is``, so an equal value is not enough.
    """

    kind: str
    holder: Any
    key: Any
    expected: Any
    path: Path
    origin: Origin = NOWHERE
    identical: bool = False

    def read(self) -> Any:
        """The present value; MISSING if there is none."""
        try:
            holder = plain_items(self.holder) if self.kind in _OF_ITEMS else self.holder
            return KINDS[self.kind].read(holder, self.key)
        except (KeyError, IndexError, AttributeError, ValueError, ReferenceError):  # ValueError: an empty cell
            return MISSING

    def reason(self) -> str | None:
        """Why this read would give another value now, or None."""
        now = self.read()
        alike = same_elements if self.kind == "elements" else is_ if self.identical else behaves_alike
        if alike(now, self.expected):
            return None
        where = f" ({self.origin})" if self.origin.line else ""
        if self.kind == "tensor":
            return f"the values of {self.path}, which Python code asked for{where}, changed"
        if self.kind in ("content", "bytes", "part", "elements"):
            if isinstance(self.holder, np.ndarray):
                note_change(self.holder)
            return f"{self.path}{where} changed its contents"
        if self.kind == "length":
            return f"{self.path}{where} has {now} items, had {self.expected}"
        path, old = self.path, self.expected
        if self.kind in ("items", "values") and now is not MISSING:
            if len(now) != len(old):
                return f"{path}{where} has {len(now)} items, had {len(old)}"
            index = next(k for k, pair in enumerate(zip(now, old, strict=True)) if not behaves_alike(*pair))
            keys = self.key if self.kind == "values" else range(len(old))
            path, now, old = path.item(keys[index]), now[index], old[index]
        return f"{path}{where} changed from {describe(old)} to {describe(now)}"


def _short(value: Any) -> str:
    text = repr(value) if issubclass(type(value), (*IMMUTABLE, enum.Enum)) else describe(value)
    return text if len(text) <= 60 else text[:57] + "..."


def describe(value: Any) -> str:
    """``value`` for a message: a number as itself, other values by their kind."""
    if isinstance(value, Tensor):
        return f"a tensor {value.aval}"
    if isinstance(value, np.ndarray):
        return f"an array {value.dtype}[{','.join(map(str, value.shape))}]"
    if isinstance(value, list | dict | set | frozenset | deque):
        return f"a {type(value).__name__} of {len(value)} items"
    if isinstance(value, FunctionType | MethodType | type):
        return value.__qualname__.rpartition("<locals>.")[2]
    if isinstance(value, tuple):
        return f"({', '.join(map(_short, value[:6]))}{', ...' if len(value) > 6 else ''})"
    if value is MISSING or issubclass(type(value), (*IMMUTABLE, enum.Enum)):
        return _short(value)
    return str(value) if isinstance(value, Aval) else f"a {value.__class__.__name__}"


def behaves_alike(new: Any, old: Any) -> bool:
    """Whether code that read ``old`` would do the same with ``new``.

    Numbers, strings and containers of them are compared by type and value (NaN equals NaN, 0.0
    differs from -0.0); functions by code, closure and defaults; everything else by identity.
    """
    pending, compared = [(new, old)], set()
    while pending:
        a, b = pending.pop()
        if a is b or (id(a), id(b)) in compared:
            continue
        if type(a) is not type(b):
            return False
        compared.add((id(a), id(b)))
        parts = _parts(a, b)
        if parts is None:
            return False
        pending.extend(parts)
    return True


def _parts(a: Any, b: Any) -> Sequence[tuple[Any, Any]] | None:
    """The pairs of parts that decide whether ``a`` and ``b`` are equal; None: they differ."""
    parts, cls = _own_parts(a, b), type(a)
    if parts is not None and cls.__dictoffset__:  # attributes that a class or a user adds
        parts = (*parts, (instance_dict(a), instance_dict(b)))
    if parts is not None and is_heap_type(cls):
        parts = (*parts, (slots_of(a), slots_of(b)))
    return parts


def _own_parts(a: Any, b: Any) -> Sequence[tuple[Any, Any]] | None:
    if isinstance(a, float):  # np.float64, too
        return () if (a == b and copysign(1, a) == copysign(1, b)) or (isnan(a) and isnan(b)) else None
    if isinstance(a, complex):
        return ((a.real, b.real), (a.imag, b.imag))
    if isinstance(a, np.generic):
        return () if a.dtype == b.dtype and a.tobytes() == b.tobytes() else None
    if isinstance(a, enum.Enum):
        return None
    if isinstance(a, slice | range):
        return ((a.start, b.start), (a.stop, b.stop), (a.step, b.step))
    if isinstance(a, np.dtype):
        return ((dict(a.metadata or {}), dict(b.metadata or {})),) if a == b else None
    if isinstance(a, SCALARS):
        return () if a == b else None
    if isinstance(a, SimpleNamespace) or _is_parsed_arguments(a) or hasattr(type(a), "__dataclass_fields__"):
        return ()
    if isinstance(a, tuple | list | deque | set | frozenset):  # of sets the order, too, in which a loop sees them
        settings = [(a.maxlen, b.maxlen)] if isinstance(a, deque) else []
        return [*settings, *zip(a, b, strict=True)] if len(a) == len(b) else None
    if isinstance(a, dict):
        factories = [(a.default_factory, b.default_factory)] if isinstance(a, defaultdict) else []
        return [(tuple(a), tuple(b)), (tuple(a.values()), tuple(b.values())), *factories]
    return _parts_of_callable(a, b)


def _is_parsed_arguments(a: Any) -> bool:
    """Whether ``a`` is of argparse's `Namespace`, which nothing is before somebody has imported argparse."""
    argparse = sys.modules.get("argparse")
    return argparse is not None and isinstance(a, argparse.Namespace)


def _parts_of_callable(a: Any, b: Any) -> Sequence[tuple[Any, Any]] | None:
    if isinstance(a, MethodType):
        return ((a.__func__, b.__func__), (a.__self__, b.__self__))
    if isinstance(a, partial):
        return ((a.func, b.func), (a.args, b.args), (a.keywords, b.keywords))
    if isinstance(a, FunctionType) and a.__code__ is b.__code__ and a.__globals__ is b.__globals__:
        cells = zip(map(cell_contents, a.__closure__ or ()), map(cell_contents, b.__closure__ or ()), strict=True)
        names = ((a.__name__, b.__name__), (a.__qualname__, b.__qualname__), (a.__doc__, b.__doc__))
        return [*names, (a.__defaults__, b.__defaults__), (a.__kwdefaults__, b.__kwdefaults__), *cells]
    return None


def tensor_bytes(tensor: Tensor) -> bytes | None:
    """The contents of a tensor in the host's memory; None for others, and for one that was donated."""
    data = tensor._data
    return data.tobytes() if isinstance(data, np.ndarray) else None


def same_elements(new: Any, old: np.ndarray[Any, Any]) -> bool:
    """Whether two arrays hold the same bytes; NaN equals NaN."""
    return new.shape == old.shape and new.dtype == old.dtype and bool(np.array_equal(new, old, equal_nan=old.dtype.kind in "fc"))


def cell_contents(cell: CellType) -> Any:
    """The value in a closure cell; MISSING before its variable is assigned."""
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


class Guard:
    """All checks of one trace, as one generated function.

    ``check()`` returns None if nothing has changed, else a reason. For a global and a closure cell
    it is::

        def check():
            try:
                if (
                    H0['scale'] is not E0
                    or H1.cell_contents is not E1
                ):
                    return explain()
            except Exception:
                return explain()
            return None

    Checks of one attribute of many tensors are one comparison of lists, because text for each takes
    long to compile.

    ``explain`` compares by value. It remembers equal values that are not identical, so that the
    next call is fast.
    """

    __slots__ = ("_namespace", "check", "checks", "source")

    check: Callable[[], str | None]

    def __init__(self, checks: Sequence[Check]) -> None:
        self.checks: tuple[Check, ...] = tuple(checks)
        self._namespace: dict[str, Any] = {
            "explain": self.explain, "is_": is_, "MISSING": MISSING, "same_elements": same_elements,
            "tensor_bytes": tensor_bytes,
        }  # fmt: skip
        self.source: str = self._emit()
        exec(compile(self.source, "<jitgrad guard>", "exec"), self._namespace)
        self.check = self._namespace["check"]

    def _emit(self) -> str:
        names: dict[tuple[int, bool], str] = {}
        tests: list[str] = []
        slots: dict[str, list[Check]] = {}
        for k, check in enumerate(self.checks):
            self._namespace[f"E{k}"] = check.expected
            if (slot := _slot(check)) is not None:
                slots.setdefault(slot, []).append(check)
                continue
            holder = names.setdefault((id(check.holder), check.kind in _OF_ITEMS), f"H{len(names)}")
            self._namespace[holder] = plain_items(check.holder) if check.kind in _OF_ITEMS else check.holder
            tests.append(_suspect(check, holder, f"E{k}", self._namespace))
        for slot, checks in slots.items():
            self._namespace[f"H{slot}"] = [check.holder for check in checks]
            self._namespace[f"E{slot}"] = [check.expected for check in checks]
            read = _READS_OF_SLOTS.get(slot, f"h.{slot}")
            tests.append(f"[{read} for h in H{slot}] != E{slot}")
        if not tests:
            return "def check():\n    return None\n"
        condition = "\n            or ".join(tests)
        return (
            f"def check():\n    try:\n        if (\n            {condition}\n        ):\n            return explain()\n"
            "    except Exception:\n        return explain()\n    return None\n"
        )

    def explain(self) -> str | None:
        """The first reason not to reuse the trace, comparing by value, or None."""
        for k, check in enumerate(self.checks):
            now = check.read()
            if now is self._namespace[f"E{k}"]:
                continue
            reason = check.reason()
            if reason is not None:
                return reason
            if _may_replace(now, check):
                self._namespace[f"E{k}"] = now
        return None


_SLOTS = {"aval": "_aval", "hooks": "_hooks"}  # by the kind of check
_READS_OF_SLOTS = {"_aval": "h._aval or h.aval", "_hooks": "h._hooks or None"}


def _slot(check: Check) -> str | None:
    """The attribute of a tensor that ``check`` compares; for these, equality is enough."""
    if check.kind in _SLOTS:
        return _SLOTS[check.kind]
    flag = check.kind == "attribute" and check.key == "_requires_grad" and isinstance(check.holder, Tensor)
    return "_requires_grad" if flag else None


def _may_replace(now: Any, check: Check) -> bool:
    """Whether the equal value ``now`` can be expected next: no other check reads its parts."""
    if check.kind in ("items", "values", "keys"):
        pairs = zip(now, check.expected, strict=True)
        return all(a is b or isinstance(a, IMMUTABLE) for a, b in pairs)
    return isinstance(now, IMMUTABLE)


def _suspect(check: Check, holder: str, expected: str, namespace: dict[str, Any]) -> str:
    kind = KINDS[check.kind]
    count = len(check.expected) if check.kind in ("items", "values") else 0
    key = repr(check.key)
    if check.kind in ("item", "absent", "contains", "part", "cached", "answer") and type(check.key) not in (str, int):
        key = f"K{expected[1:]}"
        namespace[key] = check.key
    if check.kind == "attribute" and (not check.key.isidentifier() or iskeyword(check.key)):
        raise GuardError(f"{check.path}: {check.key!r} is no attribute name")
    return kind.suspect.format(h=holder, k=key, name=check.key, e=expected, n=count)
