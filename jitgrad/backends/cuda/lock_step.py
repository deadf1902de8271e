"""Interprets kernel source for all threads of some blocks at once."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jitgrad.backends.cuda import emulator_functions as functions
from jitgrad.backends.cuda.emulator_memory import (
    EmulatedPointer,
    KernelFault,
    Lanes,
    PrivateRegion,
    SharedRegion,
    Threads,
)
from jitgrad.backends.cuda.schedule import WARP

ThreadMask = Lanes | None  # the threads that run a statement; None: all


@dataclass(slots=True)
class EmulatedScope:
    """The variables of a function that runs, and the threads that have returned from it."""

    names: dict[str, Any] = field(default_factory=dict)
    returned: ThreadMask = None
    result: Any = None


class LockStep:
    """Runs functions for ``blocks`` blocks from block ``first`` on.

    Attributes:
        line: the line of the kernel that runs.
    """

    def __init__(self, first: int, blocks: int, threads: int, names: Mapping[str, Any]) -> None:
        self.count: int = blocks * threads
        self.blocks = blocks
        self.block_threads = threads
        lanes = np.arange(self.count)
        self.thread: Lanes = lanes % threads
        block = first + lanes // threads
        self.threads: Threads = Threads(block, first * threads + lanes, np.zeros(self.count, np.int64))
        self.names = names
        self.scopes: list[EmulatedScope] = []
        self.regions: dict[ast.Call, SharedRegion | PrivateRegion] = {}
        self.line: int = 0

    @property
    def scope(self) -> EmulatedScope:
        return self.scopes[-1]

    def run(self, kernel: ast.FunctionDef, values: Mapping[str, Any]) -> None:
        """Run the kernel on these arguments."""
        self.scopes.append(EmulatedScope(dict(values)))
        self.statements(kernel.body, None)

    def call_function(self, function: ast.FunctionDef, operands: Sequence[Any], mask: ThreadMask) -> Any:
        names = dict(zip([p.arg for p in function.args.args], operands, strict=True))
        self.scopes.append(EmulatedScope(names))
        self.statements(function.body, mask)
        return self.scopes.pop().result

    # --- statements ------------------------------------------------------------------------------------------------

    def statements(self, nodes: Sequence[ast.stmt], mask: ThreadMask) -> None:
        for node in nodes:
            remaining = mask
            if self.scope.returned is not None:
                remaining = ~self.scope.returned if mask is None else mask & ~self.scope.returned
                if not remaining.any():
                    return
            if len(self.scopes) == 1:
                self.line = node.lineno
            self.statement(node, remaining)

    def statement(self, node: ast.stmt, mask: ThreadMask) -> None:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self.assign(name, self.value(value, mask), mask)
            case ast.Assign(targets=[ast.Subscript() as place], value=value):
                self.store(place, self.value(value, mask), mask)
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=parts)):
                for target, value in zip(targets, [self.value(part, mask) for part in parts], strict=True):
                    self.assign(target.id, value, mask)  # type: ignore[attr-defined]
            case ast.For():
                self.repeat(node, mask)
            case ast.If():
                self.choose(node, mask)
            case ast.Expr(value=ast.Call() as call):
                self.call(call, mask)
            case ast.Return(value=value) if value is not None:
                self.leave(self.value(value, mask), mask)
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                pass
            case _:
                raise KernelFault(f"{ast.unparse(node)!r} is not part of kernel source")

    def assign(self, name: str, value: Any, mask: ThreadMask) -> None:
        self.scope.names[name] = self.merged(self.scope.names.get(name), value, mask)

    def merged(self, old: Any, value: Any, mask: ThreadMask) -> Any:
        """``value`` for the threads of ``mask``, ``old`` for the others."""
        if isinstance(value, EmulatedPointer):
            same = isinstance(old, EmulatedPointer) and old.region is value.region
            place = self.merged(old.place, value.place, mask) if same else value.place
            return EmulatedPointer(value.region, place, value.address)
        if old is not None and functions.number_dtype(old) != functions.number_dtype(value):
            widened = functions.number_dtype(old) == np.int64 and functions.number_dtype(value).kind in "iub"
            if not widened:
                raise KernelFault(f"the variable is {functions.number_dtype(old)}, found {functions.number_dtype(value)}")
            value = functions.as_dtype(value, np.dtype(np.int64))
        if mask is None or (functions.is_literal(value) and functions.is_literal(old) and value == old):
            return value
        return np.where(mask, value, np.zeros((), functions.number_dtype(value)) if old is None else old)

    def leave(self, value: Any, mask: ThreadMask) -> None:
        """``return value``."""
        scope = self.scope
        scope.result = self.merged(scope.result, value, mask)
        everyone = np.ones(self.count, np.bool_) if mask is None else mask
        scope.returned = everyone if scope.returned is None else scope.returned | everyone

    def choose(self, node: ast.If, mask: ThreadMask) -> None:
        condition = self.value(node.test, mask)
        if isinstance(condition, (bool, np.bool_)):
            self.statements(node.body if condition else node.orelse, mask)
            return
        for branch, body in ((condition, node.body), (~condition, node.orelse)):
            taken = branch if mask is None else mask & branch
            if body and taken.any():
                self.statements(body, None if taken.all() else taken)

    def repeat(self, node: ast.For, mask: ThreadMask) -> None:
        match node:
            case ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"), args=args)):
                bounds = [self.value(arg, mask) for arg in args]
            case _:
                raise KernelFault(f"{ast.unparse(node)!r} is not part of kernel source")
        start, stop, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1) if len(bounds) == 2 else bounds
        if functions.is_literal(start) and functions.is_literal(stop):
            for k in range(start, stop, step):
                self.scope.names[name] = k
                self.statements(node.body, mask)
            return
        index = np.broadcast_to(np.asarray(start, np.int64), (self.count,))
        live = index < stop if mask is None else mask & (index < stop)
        while live.any():
            self.assign(name, index, live)
            self.statements(node.body, None if live.all() else live)
            index = index + step
            live = live & (index < stop)

    # --- values ----------------------------------------------------------------------------------------------------

    def value(self, node: ast.expr, mask: ThreadMask) -> Any:
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                if name not in self.scope.names and name not in self.names:
                    raise KernelFault(f"{name} is not defined")
                return self.scope.names[name] if name in self.scope.names else self.names[name]
            case ast.BinOp(left=left, op=op, right=right):
                return functions.apply_binary(op, self.value(left, mask), self.value(right, mask))
            case ast.Call():
                return self.call(node, mask)
            case ast.Subscript():
                return self.load(node, mask)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return np.logical_not(self.value(operand, mask))
            case ast.UnaryOp(op=op, operand=operand):
                return functions.apply_unary(op, self.value(operand, mask))
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return functions.apply_comparison(op, self.value(left, mask), self.value(right, mask))
            case ast.BoolOp(op=op, values=parts):
                values = [self.value(part, mask) for part in parts]
                combine = np.logical_and if isinstance(op, ast.And) else np.logical_or
                return combine.reduce(np.broadcast_arrays(*values), axis=0) if len(values) > 1 else values[0]
        raise KernelFault(f"{ast.unparse(node)!r} is not part of kernel source")

    def call(self, node: ast.Call, mask: ThreadMask) -> Any:
        assert isinstance(node.func, ast.Name)
        name = node.func.id
        if (own := getattr(self, f"on_{name}", None)) is not None:
            return own(node, mask)
        if name.startswith(("shared_", "scratch_")):
            return self.memory(node, name)
        function = self.names.get(name)
        operands = [self.value(arg, mask) for arg in node.args]
        if isinstance(function, ast.FunctionDef):
            return self.call_function(function, operands, mask)
        if function is None:
            raise KernelFault(f"calls {name}, which is not defined")
        return function(*operands)

    # --- memory ----------------------------------------------------------------------------------------------------

    def memory(self, node: ast.Call, name: str) -> EmulatedPointer:
        """The memory of a block or of a thread, made when the call is first reached."""
        where, kind = name.split("_")
        (count,) = (int(arg.value) for arg in node.args if isinstance(arg, ast.Constant))  # type: ignore[arg-type]
        dtype = functions.DTYPE_BY_NAME[kind]
        if where == "scratch":
            region = self.regions.setdefault(node, PrivateRegion(count, dtype, "a thread's scratch"))
            return EmulatedPointer(region, 0)
        if node not in self.regions:
            elements = np.zeros(self.blocks * count, dtype)
            self.regions[node] = SharedRegion(elements, "shared memory", tracked=True, fresh=True, written=True)
        first = (self.threads.block - self.threads.block[0]) * count
        return EmulatedPointer(self.regions[node], first)

    def places(self, place: Any) -> Lanes:
        """An index for each thread."""
        return np.broadcast_to(np.asarray(place, np.int64), (self.count,))

    def load(self, node: ast.Subscript, mask: ThreadMask) -> Any:
        pointer, index = self.value(node.value, mask), self.value(node.slice, mask)
        return self.element(pointer, functions.apply_binary(ast.Add(), pointer.place, index), mask)

    def element(self, pointer: EmulatedPointer, place: Any, mask: ThreadMask) -> Any:
        if isinstance(pointer.region, PrivateRegion):
            return pointer.region.load(self.private(place))
        return pointer.region.load(self.places(place), mask, self.threads)

    def private(self, place: Any) -> int:
        if not functions.is_literal(place):
            raise KernelFault("an index into a thread's scratch differs between threads: it cannot be in registers")
        return int(place)

    def store(self, node: ast.Subscript, value: Any, mask: ThreadMask) -> None:
        pointer, index = self.value(node.value, mask), self.value(node.slice, mask)
        self.store_element(pointer, functions.apply_binary(ast.Add(), pointer.place, index), value, mask)

    def store_element(self, pointer: EmulatedPointer, place: Any, value: Any, mask: ThreadMask) -> None:
        region = pointer.region
        dtype = region.dtype if isinstance(region, PrivateRegion) else region.elements.dtype
        found = functions.number_dtype(value)
        if found != dtype and dtype.kind in "iu" and found.kind in "iu":
            value = functions.as_dtype(value, dtype)  # integers are cut to the size of the element
        values = np.broadcast_to(np.asarray(value), (self.count,))
        if isinstance(region, PrivateRegion):
            region.store(self.private(place), values, mask)
        else:
            region.store(self.places(place), values, mask, self.threads)

    # --- functions that only CUDA has ------------------------------------------------------------------------------

    def on_threads(self, node: ast.Call, mask: ThreadMask) -> None:
        count = self.value(node.args[0], mask)
        if count != self.block_threads:
            raise KernelFault(f"runs in blocks of {count} threads, launched with {self.block_threads}")

    def on_thread(self, node: ast.Call, mask: ThreadMask) -> Lanes:
        return self.thread

    def on_block(self, node: ast.Call, mask: ThreadMask) -> Lanes:
        return self.threads.block

    def on_barrier(self, node: ast.Call, mask: ThreadMask) -> None:
        reached = self.all_or_none(mask, self.block_threads, "a barrier", "block")
        self.threads.epochs[:] += reached

    def on_shuffle_xor(self, node: ast.Call, mask: ThreadMask) -> Any:
        value, distance = (self.value(arg, mask) for arg in node.args)
        self.all_or_none(mask, WARP, "a shuffle", "warp")
        return np.broadcast_to(np.asarray(value), (self.count,))[np.arange(self.count) ^ distance]

    def all_or_none(self, mask: ThreadMask, threads: int, what: str, group: str) -> Lanes:
        """For each thread, whether its group takes part: all threads of a group do, or none."""
        if mask is None:
            return np.ones(self.count, np.bool_)
        groups = mask.reshape(-1, threads)
        whole = groups.all(1)
        if (groups.any(1) & ~whole).any():
            raise KernelFault(f"not all threads of a {group} reach {what}")
        return np.repeat(whole, threads)

    def on_at(self, node: ast.Call, mask: ThreadMask) -> EmulatedPointer:
        pointer, index = (self.value(arg, mask) for arg in node.args)
        return EmulatedPointer(pointer.region, functions.apply_binary(ast.Add(), pointer.place, index), pointer.address)

    def on_is_aligned(self, node: ast.Call, mask: ThreadMask) -> Any:
        pointer, count = (self.value(arg, mask) for arg in node.args)
        return (pointer.address + pointer.place * self.itemsize(pointer)) % count == 0

    def itemsize(self, pointer: EmulatedPointer) -> int:
        region = pointer.region
        return int((region.dtype if isinstance(region, PrivateRegion) else region.elements.dtype).itemsize)

    def on_copy_vector(self, node: ast.Call, mask: ThreadMask) -> None:
        to, source, count = (self.value(arg, mask) for arg in node.args)
        size = count * self.itemsize(to)
        for pointer in (to, source):
            unaligned = np.broadcast_to((pointer.address + pointer.place * self.itemsize(pointer)) % size != 0, (self.count,))
            if (unaligned if mask is None else unaligned & mask).any():
                raise KernelFault(f"a vector of {size} bytes is not at a multiple of its size")
        found = [self.element(source, source.place + k, mask) for k in range(count)]
        for k, value in enumerate(found):
            self.store_element(to, to.place + k, value, mask)
