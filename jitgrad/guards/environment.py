"""What a trace read and changed outside the function: its guard, its changes, their undoing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import replace
from types import CellType, FunctionType, MethodType
from typing import Any
from weakref import proxy

import numpy as np

from jitgrad.core.context import TEXT_OF_TRACED, state_changes
from jitgrad.core.errors import JitgradError, UnguardableError
from jitgrad.core.origin import Origin
from jitgrad.core.tensor import Tensor
from jitgrad.core.traced_constants import fill_constant
from jitgrad.guards.array_reads import MAX_COMPARED_BYTES, ArrayRead
from jitgrad.guards.contents import Contents
from jitgrad.guards.frames import Observer
from jitgrad.guards.guard import NOWHERE, Check, Guard, Path, describe, tensor_bytes
from jitgrad.guards.object_state import MISSING, instance_dict, key_name, title
from jitgrad.guards.observed_files import is_observed
from jitgrad.guards.reads import HELD, Reads, TraceStopped, Write
from jitgrad.guards.varying_arrays import has_changed
from jitgrad.guards.writes import (
    HeldPlace,
    RepeatedStore,
    can_be_held,
    has_traced_text,
    is_constant,
    is_plain_number,
    is_unchanged,
    place_content,
    refill_bytes,
    replaced_places,
    share_containers,
    store_of,
    tensors_in,
    undo,
)

MAX_ARRAY_BYTES = 64 * 1024  # compared on every call: 64 kB take about 3 us
TEXT_STORED = "the text of a tensor has no elements in a trace: store or return the tensor, and make its text after the call"
TEXT_IN_ERROR = "@jit runs the function on tensors without elements: `.eager(...)` of the @jit function raises this with them"


class Environment:
    """A record of what a function reads and writes outside itself while it runs once.

    Run the function in ``observed()``, ask for ``changes``, then make the ``guard``. The record
    holds strong references to all recorded objects, so that no identity can be reused.
    """

    def __init__(self, function: Callable[..., Any], static_values: Mapping[str, Any] | None = None) -> None:
        inner = getattr(function, "__func__", getattr(function, "func", function))
        self._reads = Reads(str(getattr(inner, "__module__", "")), MAX_ARRAY_BYTES)
        self._observer = Observer(self._reads)
        name = title(function) if hasattr(function, "__qualname__") else type(function).__name__
        if isinstance(function, MethodType):
            code = getattr(function.__func__, "__code__", None)
            first = code.co_varnames[0] if code is not None and code.co_varnames else "self"
            self._reads.external(function.__self__, Path("", first))
        self._reads.external(function, Path("", name))
        for key, value in (static_values or {}).items():
            self._reads.external(value, Path("argument", key))
        code = getattr(inner, "__code__", None)
        if code is not None and not is_observed(code.co_filename):  # such as the step of an optimizer
            for value in (getattr(function, "__self__", None), *(static_values or {}).values()):
                self._observer.contents.everything(value, Origin.of_code(code), attributes=True, operands=True)

    def run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """The result of the function, observed. Raises UnguardableError for a read that no guard can watch."""
        token = state_changes.set(lambda: self._reads.changes + len(self._reads.prints))
        try:
            with self._observer:
                result = function(*args, **kwargs)
        except (Exception, TraceStopped) as error:
            self._raise_errors()
            if TEXT_OF_TRACED in str(error) and not isinstance(error, JitgradError):
                error.add_note(TEXT_IN_ERROR)
            raise
        finally:
            state_changes.reset(token)
        self._observer.contents.everything(result, Origin.of_code_of(function), operands=True)
        self._raise_errors()
        self._reads.checks = _single_places(self._reads.checks, self._reads.writes.values())
        return result

    def tensors(self) -> dict[str, Tensor]:
        """The tensors that the function read, by the expression that leads to them."""
        named: dict[str, Tensor] = {}
        for path, tensor in self._reads.tensors.values():
            name, count = path.text, 2
            # one name in two modules or functions
            while named.setdefault(name, tensor) is not tensor:
                name, count = f"{path.text}#{count}", count + 1
        return named

    def compared(self) -> tuple[Tensor, ...]:
        """The tensors that the function compared by identity with others, which may have been arguments."""
        return tuple([t for t in self._reads.compared.values() if id(t) in self._reads.tensors])

    def guard(self, lifted: Iterable[np.ndarray[Any, Any]] = ()) -> Guard:
        """The guard of a trace. The program reads the arrays ``lifted`` on every call.

        Raises:
            UnguardableError: if an array that Python code read is too large to be compared on every
                call.
        """
        inputs = {id(array) for array in lifted}
        checks = self._checks()
        checks = [_of_referent(c) if id(c.holder) in self._reads.referents else c for c in checks]
        checks += [check for write in self._reads.writes.values() for check in _checks_before(write)]
        for read in self._reads.arrays.values():
            if read.compared or (read.used and id(read.array) not in inputs):
                checks.append(_content_check(read))
        return Guard(checks)

    def existed(self, x: Any) -> bool:
        """Whether ``x``, of which the function got hold, is known to be older than its run."""
        if isinstance(x, CellType):
            functions = [f for f, _ in self._reads.externals() if isinstance(f, FunctionType)]
            return any(x is cell for f in functions for cell in f.__closure__ or ())
        return self._reads.path_of(x) is not None

    def can_rely_on(self, array: np.ndarray[Any, Any]) -> bool:
        """Whether a guard can watch the contents of ``array``, or the trace made it."""
        chain = _bases(array)
        reads = self._reads_of(chain)
        made_here = not reads and chain[-1].base is None
        return made_here or bool(reads and all(r.content is not None and not has_changed(r.array) for r in reads))

    def rely_on(self, source: np.ndarray[Any, Any] | Tensor, origin: Origin = NOWHERE) -> None:
        """The program is right only for the present contents of ``source``."""
        if isinstance(source, Tensor):
            path, _ = self._reads.tensors.get(id(source), (Path("", "a tensor"), source))
            self._reads.check("tensor", source, None, tensor_bytes(source), path, origin)
            return
        for read in self._reads_of(_bases(source)):
            read.compare()

    def _reads_of(self, arrays: Iterable[np.ndarray[Any, Any]]) -> list[ArrayRead]:
        return [self._reads.arrays[id(array)] for array in arrays if id(array) in self._reads.arrays]

    def _checks(self) -> list[Check]:
        identical = self._reads.identical
        imports = [_check_of_import(name, origin) for name, origin in self._reads.imports.items()]
        return imports + [replace(c, identical=True) if id(c.expected) in identical else c for c in self._reads.checks]

    # --- what the trace changed -------------------------------------------------------------------

    def hold(self, place: HeldPlace, traced: Any) -> None:
        """``place`` holds ``traced`` tensors or a number, which stand for others in each call."""
        self._reads.write(place.kind, place.holder, place.key, traced, place.path, NOWHERE, HELD)

    def replaced(self) -> list[HeldPlace]:
        """The places in which the function replaced a tensor or a number that it had read."""
        reordered = {id(w.holder) for w in self._reads.writes.values() if w.kind == "container" and not w.operations <= {"[]="}}
        return replaced_places([c for c in self._checks() if id(c.holder) not in reordered], can_be_held)

    def changes(self) -> list[str]:
        """Changes of Python state that a compiled program would not make, and must not miss.

        Values that fill an empty place (a cache, a mask made on first use) are no such changes: the
        guard notices them, and the next call is traced anew. Neither are writes to what the function
        does not read (see `effects`), and those that each call makes (see `stores`), if the guard
        compares what was there before and that is no number (which `replaced` gives).
        """
        reasons: dict[str, str] = {}
        stored_again = {s.identity for s in self.stores()}
        for check in self._reads.checks:
            reason, now = check.reason(), check.read()
            repeated = not _places(check).isdisjoint(stored_again)
            repeated = repeated or _refilled(check, stored_again)
            guarded = repeated and is_constant(check.expected) and not (is_plain_number(check.expected) and is_plain_number(now))
            filled = (repeated or not tensors_in(now)) and _fills(check)
            if reason is not None and not guarded and not filled:
                reasons.setdefault(check.path.text, _consequence(check, now, reason))
        for write in self._reads.writes.values():
            if has_traced_text(place_content(write.kind, write.holder, write.key)):
                reasons.setdefault(write.path.text, f"{write.path}{_place(write)}: {TEXT_STORED}")
            if write.identity in stored_again:
                continue
            if write.read and not is_unchanged(write):
                reasons.setdefault(write.path.text, _consequence(_check_of(write), None, f"{write.path}{_place(write)} changed"))
            for stored in _new_tensors(write):
                reasons.setdefault(write.path.text, _consequence(_check_of(write), stored, ""))
        for read in self._reads.arrays.values():
            if read.has_changed:
                reasons[read.path.text] = f"{read.path} changed its contents: make it a tensor and assign in place"
        return list(reasons.values())

    def writes(self) -> list[Write]:
        """All changes of Python state outside the function."""
        return [w for w in self._reads.writes.values() if not is_unchanged(w)]

    def stores(self) -> list[RepeatedStore]:
        """The changes of Python state that each call makes again, such as those that store tensors."""
        writes = self._reads.writes.values()
        stores = [s for w in writes if (s := store_of(w)) is not None and not (s.tensors and is_unchanged(w))]
        return [s for s in stores if not s.tensors] if share_containers(stores, self._reads) else stores

    def changes_more(self) -> bool:
        """Whether the function changes Python state in ways that calls do not make again."""
        stored_again = {s.identity for s in self.stores()}
        return any(w.identity not in stored_again for w in self.writes())

    def effects(self) -> list[str]:
        """The changes of what the function does not read, which happen only while tracing."""
        known = {place for check in self._reads.checks for place in _places(check)}
        known |= {s.identity for s in self.stores()}
        unread = [f"{w.path}{_place(w)}" for w in self.writes() if w.identity not in known]
        return [*unread, *self._reads.prints]

    def restore(self) -> None:
        """Undo the changes of Python state."""
        for write in reversed(self._reads.writes.values()):
            undo(write)
        for read in self._reads.arrays.values():
            read.restore()
        for check in self._reads.checks:
            if check.kind == "bytes" and check.reason() is not None:
                refill_bytes(check.holder, check.expected)
            if check.kind == "hooks" and check.reason() is not None:
                check.holder._hooks[:] = check.expected or ()

    def fill_cached(self) -> None:
        """Tensors that the trace left in caches of C code get their contents, unless these depend on its inputs."""
        for check in self._reads.checks:
            if check.kind == "cached":
                for tensor in tensors_in(check.expected):
                    fill_constant(tensor)

    def forget(self) -> None:
        """Let go of all recorded objects: the record is part of cycles, and may be the last to hold what is referenced weakly."""
        self._reads.forget()
        self._observer.contents = Contents(self._reads)

    def _raise_errors(self) -> None:
        if self._reads.errors:
            origin, message = self._reads.errors[0]
            raise UnguardableError(f"{origin.full()}: {message}")


def _bases(array: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    """``array``, the array of which it is a view, and so on."""
    chain = [array]
    while isinstance(base := chain[-1].base, np.ndarray):
        chain.append(base)
    return chain


def _of_referent(check: Check) -> Check:
    """``check``, but its guard does not keep alive what a weak reference led to."""
    return replace(check, holder=proxy(check.holder), kind="class behind" if check.kind == "class" else check.kind)


def _content_check(read: ArrayRead) -> Check:
    if read.content is not None:
        return Check("content", read.array, None, read.content, read.path, read.origin)
    if read.array.nbytes > MAX_COMPARED_BYTES:
        raise UnguardableError(
            f"{read.origin.full()}: {read.path} is {describe(read.array)}, too large to be compared on every call, and the "
            "function read it as Python does (not as an operand of jitgrad): pass it as an argument"
        )
    elements = read.array.copy() if read.before is None else read.before
    return Check("elements", read.array, None, elements, read.path, read.origin)


def _checks_before(write: Write) -> list[Check]:
    """Checks that a container which was changed, and read after that, holds what it held before the function."""
    if write.kind != "container" or not write.read or isinstance(write.old, bytearray):
        return []
    holder, place = write.holder, (write.path, write.origin)
    if not isinstance(holder, dict):
        return [Check("items", holder, None, tuple(write.old), *place)]
    keys = tuple(write.old)
    return [Check("keys", holder, None, keys, *place), Check("values", holder, keys, tuple(write.old.values()), *place)]


def _consequence(check: Check, now: Any, reason: str) -> str:
    where = f" ({check.origin})" if check.origin.line else ""
    if check.kind == "hooks":
        return f"{reason}: call register_hook before the @jit function, or remove() the hook before that returns"
    if isinstance(now, Tensor):
        verb = "replaced" if isinstance(check.expected, Tensor) else "stored"
        return f"{check.path}{where}: Tensor {verb}; assign in place (`{check.path.text}[...] = ...`) or return it"
    remedy = "return the value, or keep it in a tensor updated in place"
    if check.path.label == "class attribute" and is_plain_number(now):
        remedy = "keep the number in an attribute of the object, which each call changes, or return it"
    return f"{reason}; this happens only while tracing: {remedy}"


def _single_places(checks: Iterable[Check], writes: Iterable[Write]) -> list[Check]:
    """``checks``, with one for each place of a dict of which all values were read, and a place was written after that.

    So the attributes that a module changes are judged apart from those that it keeps.
    """
    written, single = {id(w.holder) for w in writes if w.kind != "container"}, list[Check]()
    for check in checks:
        if check.kind == "values" and id(check.holder) in written:
            places = zip(check.key, check.expected, strict=True)
            single += [replace(check, kind="item", key=k, expected=x, path=check.path.item(k)) for k, x in places]
        else:
            single.append(check)
    return single


def _check_of_import(name: str, origin: Origin) -> Check:
    """The module that an import statement gave; of one that failed, that there still is none."""
    module = sys.modules.get(name, MISSING)
    return Check("absent" if module is MISSING else "item", sys.modules, name, module, Path("module", name), origin)


def _check_of(write: Write) -> Check:
    return Check("item", {}, None, write.old, write.path, write.origin)


def _place(write: Write) -> str:
    return f" ({write.origin})" if write.origin.line else ""


def _places(check: Check) -> set[tuple[int, Hashable]]:
    """The place of a check as writes name it: by the object, or by the dict of its attributes."""
    return {(id(part), key_name(check.key)) for part in (check.holder, instance_dict(check.holder))}


def _refilled(check: Check, stored_again: Collection[tuple[int, Hashable]]) -> bool:
    """Whether each call fills the dict that was empty, such as an optimizer's state of a parameter."""
    empty = check.kind == "length" and check.expected == 0 and isinstance(check.holder, dict)
    return empty and all((id(check.holder), key_name(key)) in stored_again for key in check.holder)


def _fills(check: Check) -> bool:
    """Whether the place of ``check`` was empty."""
    if check.kind == "hooks":
        return False
    if check.kind == "length":
        return check.expected == 0 and isinstance(check.holder, dict)
    if check.kind == "context":  # a context variable: nothing tells the trace's value from one that was there
        return False
    hides = check.kind in ("hides", "hides here")
    return check.kind in ("absent", "unset") or check.expected is None or (check.expected is MISSING and not hides)


def _new_tensors(write: Write) -> list[Tensor]:
    """The tensors that a write stored."""
    before = {id(x) for x in tensors_in(write.old)}
    return [x for x in tensors_in(place_content(write.kind, write.holder, write.key)) if id(x) not in before]
