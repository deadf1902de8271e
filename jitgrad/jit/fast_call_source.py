"""Parts of the generated launch function: how a call's arguments are taken apart, checked and turned into addresses."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache, partial
from itertools import combinations
from typing import Any

import numpy as np
import optree

from jitgrad.compiler.tracer import InputSource
from jitgrad.core import config
from jitgrad.core.aval import Aval
from jitgrad.core.context import current_interpreter, grad_enabled
from jitgrad.core.tensor import Tensor
from jitgrad.eager.buffer_pool import POOL, address_of
from jitgrad.jit.executable import Executable, overlapping
from jitgrad.jit.signature import NAMESPACE, Call, Static, static_key
from jitgrad.runtime.executor.fastcall import data_address

MISS = object()

_SIMPLE = (int, str, bytes, bool, type(None))  # static values that are compared as they are
_ARRAYS = (np.ndarray, np.generic)

FEW = 24  # tensors are handled one by one up to this number, in loops beyond


class NotSupportedError(Exception):
    """This call cannot have a fast path."""


def address(tensor: Tensor) -> int:
    """Where ``tensor``'s data lies, remembered on it; 0 if kernels cannot use it as it lies."""
    data = tensor._data
    if type(data) is np.ndarray and data.flags.c_contiguous and data.flags.aligned:
        tensor._address = address_of(data)
        return tensor._address
    return 0


def same(tensor: Tensor, expected: Aval) -> bool:
    """Whether ``tensor`` looks like ``expected``; if so it shares the Aval, so that the next test is one comparison."""
    aval = tensor.aval
    if aval is expected or (
        aval.shape == expected.shape and aval.dtype == expected.dtype and aval.weak == expected.weak
    ):
        tensor._aval = expected
        return True
    return False


@lru_cache(maxsize=4096)
def interned(aval: Aval) -> Aval:
    """One object for all Avals that are equal: a result then passes the next call's test by identity."""
    return aval


def plain(tensors: Sequence[Any]) -> bool:
    """Whether these are tensors, more than a few, that one loop can check: all with a history, leaves, or no gradient."""
    if len(tensors) <= FEW or any(type(t) is not Tensor for t in tensors):
        return False
    first = tensors[0]
    return all(
        t._requires_grad is first._requires_grad and (t.grad_fn is None) is (first.grad_fn is None) for t in tensors
    )


_ELEMENT = re.compile(r"(\w+)\[(\d+)\]")


def listed(texts: Sequence[str]) -> str:
    """Expressions with commas between; elements of one list that follow each other as a slice of it."""
    parts: list[str] = []
    k = 0
    while k < len(texts):
        end = k + 1
        if (match := _ELEMENT.fullmatch(texts[k])) is not None:
            name, first = match[1], int(match[2])
            while end < len(texts) and texts[end] == f"{name}[{first + end - k}]":
                end += 1
        parts.append(texts[k] if end - k <= FEW else f"*{name}[{first}:{first + end - k}]")
        parts += texts[k + 1 : end] if end - k <= FEW else []
        k = end
    return ", ".join(parts)


class FastCallWriter:
    """Writes the source of the launch function.

    For ``f(x, w)`` with one result it is about::

        def launch(args, kwargs):
            if type(args) is not tuple or len(args) != 2: return MISS
            args_0, args_1, = args
            if type(args_0) is not Tensor or (args_0._aval is not V0 and not same(args_0, V0)) or ...: return MISS
            ...
            p0 = args_0._address or address(args_0)
            ...
            if guard() is not None: return MISS
            frame = frames.pop() if frames else new_frame()
            o0, q0 = take(S0, D0)
            pack(frame.bases_memory, 0, p0, p1, q0)
            run(frame.table_address, frame.table_count)
            frames.append(frame)
            return of_result(o0, R0)
    """

    def __init__(self, compiled: Executable, call: Call) -> None:
        self.compiled = compiled
        self.call = call
        self.lines: list[str] = []
        self.names: dict[str, Any] = {
            "MISS": MISS, "Tensor": Tensor, "same": same, "address": address, "address_of": address_of,
            "ndarray": np.ndarray, "take": POOL.take, "of_result": Tensor.of_result, "grad_enabled": grad_enabled,
            "interpreter": current_interpreter._variable, "defaults": config._Defaults, "np": np,
            "empty": np.empty, "data_address": data_address(), "asarray": np.asarray,
            "static_key": static_key, "flatten": partial(optree.tree_flatten, none_is_leaf=True, namespace=NAMESPACE),
        }  # fmt: skip
        self.leaves: list[str] = []
        self.tensors: list[str] = []
        self.passed: dict[int, str] = {}  # tensors and arrays by id: where each was first passed
        self.pointers: list[str] = []  # expressions for the addresses of the inputs
        self.numbers: dict[int, str] = {}  # inputs that are floats: each frame has memory for them
        self.unpacked: set[str] = set()  # lists whose arrays have a list of their own
        self.lists: dict[str, int] = {}  # lists of tensors that are handled in loops, with their lengths

    def line(self, text: str, depth: int = 1) -> None:
        self.lines.append("    " * depth + text)

    def constant(self, letter: str, value: Any) -> str:
        name = f"{letter}{len(self.names)}"
        self.names[name] = value
        return name

    def miss_if(self, condition: str) -> None:
        self.line(f"if {condition}: return MISS")

    # --- arguments -----------------------------------------------------------------------------------------------

    def destructure(self, name: str, value: Any) -> None:
        """Code that takes ``name`` apart as ``value`` is built, checking every type on the way."""
        kind = type(value)
        if kind in (tuple, list):
            self.miss_if(f"type({name}) is not {kind.__name__} or len({name}) != {len(value)}")
            if plain(value):
                self.line(f"{name} = [*{name}]")  # another thread may change the caller's list
                self.many(name, value)
                return
            parts = [f"{name}_{k}" for k in range(len(value))]
            if parts:
                self.line(f"{', '.join(parts)}, = {name}")
            for part, item in zip(parts, value, strict=True):
                self.destructure(part, item)
        elif kind is dict:
            keys = list(value)
            self.miss_if(f"type({name}) is not dict or len({name}) != {len(keys)}")
            if len(keys) > 1 and (name != "kwargs" or self.call.keyword_order):
                self.miss_if(f"tuple({name}) != {self.constant('K', tuple(keys))}")
            if plain([value[key] for key in keys]):
                self.line(f"try: {name} = [{name}[k] for k in {self.constant('K', tuple(keys))}]")
                self.line("except KeyError: return MISS")
                self.many(name, [value[key] for key in keys])
                return
            for k, key in enumerate(keys):
                text = self.constant("K", key)
                self.miss_if(f"{text} not in {name}")
                self.line(f"{name}_{k} = {name}[{text}]")
                self.destructure(f"{name}_{k}", value[key])
        else:
            leaves, tree = optree.tree_flatten(value, none_is_leaf=True, namespace=NAMESPACE)
            if tree.is_leaf():
                self.leaf(name, value)
                return
            self.miss_if(f"type({name}) is not {self.constant('Y', kind)}")
            self.line(f"{name}, tree = flatten({name})")
            self.miss_if(f"tree != {self.constant('Y', tree)}")
            self.destructure(name, leaves)

    def many(self, name: str, tensors: Sequence[Tensor]) -> None:
        """Code that checks the list ``name`` of tensors like these."""
        if len({id(t) for t in tensors} - self.passed.keys()) < len(tensors):
            raise NotSupportedError
        self.passed.update((id(t), f"{name}[{k}]") for k, t in enumerate(tensors))
        looks = self.constant("V", tuple(interned(t.aval) for t in tensors))
        requires = tensors[0]._requires_grad
        history = f" or t.grad_fn is {'not ' if tensors[0].grad_fn is None else ''}None" if requires else ""
        self.line(f"for t, v in zip({name}, {looks}):")
        condition = f"(t._aval is not v and not same(t, v)) or t._requires_grad is not {requires}{history}"
        self.line(f"if type(t) is not Tensor or {condition}: return MISS", 2)
        self.leaves += [f"{name}[{k}]" for k in range(len(tensors))]
        self.lists[name] = len(tensors)

    def leaf(self, name: str, value: Any) -> None:
        self.leaves.append(name)
        if type(value) is Static and type(value.value) in _SIMPLE:
            value = value.value
        kind = type(value)
        if kind is Static:
            self.miss_if(f"static_key({value.name!r}, {name}) != {self.constant('K', static_key(value.name, value.value))}")
            return
        if kind in (Tensor, np.ndarray):
            if (first := self.passed.setdefault(id(value), name)) is not name:
                self.miss_if(f"{name} is not {first}")
                return
            self.tensors.append(name)
        if kind is Tensor:
            self.tensor(name, value)
        elif kind is float:
            self.miss_if(f"type({name}) is not float")
        elif isinstance(value, np.generic):
            self.miss_if(f"type({name}) is not {self.constant('Y', kind)}")
            self.line(f"{name} = asarray({name})")
        elif kind is np.ndarray:
            shape, dtype = self.constant("S", value.shape), self.constant("D", value.dtype)
            self.miss_if(
                f"type({name}) is not ndarray or {name}.shape != {shape} or {name}.dtype != {dtype} "
                f"or not {name}.flags.c_contiguous or not {name}.flags.aligned"
            )
        elif isinstance(value, (Tensor, np.ndarray)):
            raise NotSupportedError  # of a class of its own, which may look after its data in its own way
        elif value is None or kind not in _SIMPLE:
            self.miss_if(f"{name} is not {self.constant('C', value)}")
        else:
            self.miss_if(f"type({name}) is not {kind.__name__} or {name} != {self.constant('C', value)}")

    def tensor(self, name: str, value: Tensor) -> None:
        """Code that checks what ``name`` looks like, and whether gradients flow to it."""
        looks = self.constant("V", interned(value.aval))
        grad = "not " if value._requires_grad else ""
        self.miss_if(
            f"type({name}) is not Tensor or ({name}._aval is not {looks} and not same({name}, {looks})) "
            f"or {grad}{name}._requires_grad"
        )
        if value._requires_grad:
            self.miss_if(f"{name}.grad_fn is {'not ' if value.grad_fn is None else ''}None")

    def distinct(self) -> None:
        """No other array may be passed twice than were: such calls have a signature of their own."""
        names = self.tensors
        if self.lists:
            ids = [f"id({n})" for n in names] + [f"*map(id, {n})" for n in self.lists]
            self.miss_if(f"len({{{', '.join(ids)}}}) != {len(names) + sum(self.lists.values())}")
        elif 1 < len(names) <= 4:
            self.miss_if(" or ".join(f"{a} is {b}" for a, b in combinations(names, 2)))
        elif len(names) > 4:
            self.miss_if(f"len({{{', '.join(f'id({n})' for n in names)}}}) != {len(names)}")

    # --- the program's inputs ------------------------------------------------------------------------------------

    def tensor_text(self, source: InputSource) -> str:
        """An expression for the object behind ``source``."""
        if source.kind == "argument":
            return str(self.leaves[source.key])
        if source.kind == "grad":
            return f"{self.tensor_text(source.key)}._grad"
        return self.constant("T", source.key)

    def overwritten(self, k: int) -> str:
        """An expression for the array of input ``k``, a donated argument whose memory holds a result now."""
        source = self.compiled.traced.sources[k]
        if k not in self.compiled.taken:
            raise NotSupportedError
        text = self.leaves[source.key]
        name = text.partition("[")[0]
        if name not in self.lists:
            return f"{text}._data"
        if name not in self.unpacked:
            self.unpacked.add(name)
            self.line(f"e{name} = [t._data for t in {name}]")
        return f"e{text}"

    def array_text(self, k: int, source: InputSource) -> str:
        """An expression for the array of input ``k``."""
        if k in self.numbers:
            return f"frame.numbers[{k}, ...]"
        text = self.tensor_text(source)
        leaf = self.call.leaves[source.key] if source.kind == "argument" else None
        return text if source.kind in ("array", "constant") or isinstance(leaf, _ARRAYS) else f"{text}._data"

    def pointer(self, k: int, source: InputSource, aval: Aval) -> str:
        text = self.tensor_text(source)
        name = f"p{k}"
        if source.kind == "argument" and type(self.call.leaves[source.key]) is float:
            self.numbers[k] = text
            return f"frame.numbers_at + {8 * k}"
        if source.kind == "grad":
            self.line(f"g{k} = {text}")
            looks = self.constant("V", aval)
            self.miss_if(f"g{k} is None or (g{k}._aval is not {looks} and not same(g{k}, {looks}))")
            self.line(f"{name} = g{k}._address or address(g{k})")
        elif source.kind in ("array", "constant") or (
            source.kind == "argument" and isinstance(self.call.leaves[source.key], _ARRAYS)
        ):
            self.line(f"{name} = address_of({text})")
            return name
        else:
            self.line(f"{name} = {text}._address or address({text})")
        self.miss_if(f"not {name}")
        return name


def meet(starts: Sequence[int], sizes: Sequence[int], written: Sequence[int]) -> bool:
    """Whether memory at one of the positions ``written`` is at another position, too."""
    return overlapping([(first, first + size) for first, size in zip(starts, sizes, strict=True)], written)


class AddressRanges:
    """Which memory a program overwrites, to be compared with that of its arguments."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = sizes
        # starts, sorted starts, and ends in that order; replaced as one, because several threads may ask
        self.known: tuple[list[int], list[int], list[int]] = ([], [], [])

    def meet(self, written: list[int], first: int, size: int) -> bool:
        """Whether ``size`` bytes from ``first`` on share memory with what is written at ``written``."""
        known, starts, ends = self.known
        if written != known:
            spans = sorted(zip(written, self.sizes, strict=True))
            starts, ends = [a for a, _ in spans], [a + n for a, n in spans]
            self.known = written, starts, ends
        place = bisect_left(starts, first + size)
        return place > 0 and ends[place - 1] > first
