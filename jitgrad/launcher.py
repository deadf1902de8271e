"""The fast path of a @jit call: one generated function that checks the arguments, runs the program and wraps results."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Sequence
from itertools import combinations
from math import prod
from typing import Any

import numpy as np
import optree

from jitgrad import config
from jitgrad.aval import Aval
from jitgrad.compiled import Compiled
from jitgrad.compiler.trace import Source
from jitgrad.origin import Origin
from jitgrad.runtime import team
from jitgrad.runtime.builtin import data_address
from jitgrad.runtime.pool import POOL, SMALL, address_of
from jitgrad.runtime.program import NativeFrame
from jitgrad.scope import current_interpreter, grad_enabled
from jitgrad.signature import Call
from jitgrad.tensor import Tensor

MISS = object()
MAX_LEAVES = 4000  # beyond, the generated text would take longer to compile than it saves


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
    if aval is expected or (aval.shape == expected.shape and aval.dtype == expected.dtype and aval.weak == expected.weak):
        tensor._aval = expected
        return True
    return False


class _Writer:
    """Writes the source of the launch function.

    For ``f(x, w)`` with one result it is about::

        def launch(args):
            if len(args) != 2: return MISS
            a0, a1 = args
            if type(a0) is not Tensor or (a0._aval is not V0 and not same(a0, V0)) or a0._requires_grad: return MISS
            ...
            p0 = a0._address or address(a0)
            ...
            if guard() is not None: return MISS
            frame = frames.pop() if frames else new_frame()
            o0, q0 = take(S0, D0)
            pack(frame.bases_memory, 0, p0, p1, q0)
            run(frame.table_address, frame.table_count)
            frames.append(frame)
            return of_result(o0, R0)
    """

    def __init__(self, compiled: Compiled, call: Call) -> None:
        self.compiled = compiled
        self.call = call
        self.lines: list[str] = []
        self.names: dict[str, Any] = {
            "MISS": MISS, "Tensor": Tensor, "same": same, "address": address, "address_of": address_of,
            "ndarray": np.ndarray, "take": POOL.take, "of_result": Tensor.of_result, "grad_enabled": grad_enabled,
            "interpreter": current_interpreter._variable, "defaults": config._Defaults, "np": np,
            "empty": np.empty, "data_address": data_address(),
        }  # fmt: skip
        self.leaves: list[str] = []
        self.tensors: list[str] = []

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
            parts = [f"{name}_{k}" for k in range(len(value))]
            self.miss_if(f"type({name}) is not {kind.__name__} or len({name}) != {len(value)}")
            if parts:
                self.line(f"{', '.join(parts)}, = {name}")
            for part, item in zip(parts, value, strict=True):
                self.destructure(part, item)
        elif kind is dict:
            keys = sorted(value)
            self.miss_if(f"type({name}) is not dict or len({name}) != {len(keys)}")
            for k, key in enumerate(keys):
                text = self.constant("K", key)
                self.miss_if(f"{text} not in {name}")
                self.line(f"{name}_{k} = {name}[{text}]")
                self.destructure(f"{name}_{k}", value[key])
        else:
            self.leaf(name, value)

    def leaf(self, name: str, value: Any) -> None:
        self.leaves.append(name)
        if type(value) is Tensor:
            looks = self.constant("V", value.aval)
            grad = "not " if value._requires_grad else ""
            self.miss_if(
                f"type({name}) is not Tensor or ({name}._aval is not {looks} and not same({name}, {looks})) "
                f"or {grad}{name}._requires_grad"
            )
            self.tensors.append(name)
        elif type(value) is float:
            self.miss_if(f"type({name}) is not float")
        elif type(value) is np.ndarray:
            shape, dtype = self.constant("S", value.shape), self.constant("D", value.dtype)
            self.miss_if(
                f"type({name}) is not ndarray or {name}.shape != {shape} or {name}.dtype != {dtype} "
                f"or not {name}.flags.c_contiguous or not {name}.flags.aligned"
            )
            self.tensors.append(name)
        elif isinstance(value, (int, str, bytes, bool, type(None))):
            self.miss_if(f"type({name}) is not {type(value).__name__} or {name} != {self.constant('C', value)}" if value is not None else f"{name} is not None")
        else:
            raise _NotSupportedError

    def distinct(self) -> None:
        """No array may be passed twice: such calls have a signature of their own."""
        names = self.tensors
        if 1 < len(names) <= 4:
            self.miss_if(" or ".join(f"{a} is {b}" for a, b in combinations(names, 2)))
        elif len(names) > 4:
            self.miss_if(f"len({{{', '.join(f'id({n})' for n in names)}}}) != {len(names)}")

    # --- the program's inputs ------------------------------------------------------------------------------------

    def tensor_text(self, source: Source) -> str:
        """An expression for the object behind ``source``."""
        if source.kind == "argument":
            return self.leaves[source.key]
        if source.kind == "grad":
            return f"{self.tensor_text(source.key)}._grad"
        return self.constant("T", source.key)

    def pointer(self, k: int, source: Source, aval: Aval) -> str:
        text = self.tensor_text(source)
        name = f"p{k}"
        if source.kind == "argument" and type(self.call.leaves[source.key]) is float:
            cell = self.constant("F", np.zeros((), np.float64))
            self.line(f"{cell}[()] = {text}")
            return str(address_of(self.names[cell]))
        if source.kind == "grad":
            self.line(f"g{k} = {text}")
            looks = self.constant("V", aval)
            self.miss_if(f"g{k} is None or (g{k}._aval is not {looks} and not same(g{k}, {looks}))")
            self.line(f"{name} = g{k}._address or address(g{k})")
        elif source.kind in ("array", "constant") or (
            source.kind == "argument" and type(self.call.leaves[source.key]) is np.ndarray
        ):
            self.line(f"{name} = address_of({text})")
            return name
        else:
            self.line(f"{name} = {text}._address or address({text})")
        self.miss_if(f"not {name}")
        return name


class _NotSupportedError(Exception):
    """This call cannot have a fast path."""


def make_launcher(compiled: Compiled, call: Call, args: tuple[Any, ...]) -> Callable[[tuple[Any, ...]], Any] | None:
    """A function ``args -> result``, or MISS where ``compiled`` does not apply; None if there can be no fast path.

    There is one for programs of native code alone whose arguments are tensors, arrays, numbers, and lists, tuples and
    dicts of them, and which are not differentiable from outside.
    """
    program = compiled.program
    if not program.backend.native or compiled.traced.differentiable or len(call.leaves) > MAX_LEAVES:
        return None
    if call.key[3] or len(compiled.traced.sources) > MAX_LEAVES:
        return None
    frame = NativeFrame(program)
    if not frame.count:
        return None
    writer = _Writer(compiled, call)
    try:
        return _emit(writer, args, frame)
    except _NotSupportedError:
        return None


def _emit(w: _Writer, args: tuple[Any, ...], frame: NativeFrame) -> Callable[[tuple[Any, ...]], Any]:
    compiled = w.compiled
    traced, program = compiled.traced, compiled.program
    frames: deque[NativeFrame] = deque([frame])
    w.names.update(frames=frames, new_frame=lambda: NativeFrame(program), team=team._Current, current_team=team.current_team)
    w.line(f"if len(args) != {len(args)} or interpreter.get() is not None: return MISS")
    w.line(f"if grad_enabled.get() is not {call_grad(w.call)} or defaults.float_dtype is not {w.constant('D', w.call.key[5])}: return MISS")
    for k, value in enumerate(args):
        w.line(f"a{k} = args[{k}]")
        w.destructure(f"a{k}", value)
    w.distinct()
    w.names["guard"] = traced.guard.check
    w.miss_if("guard() is not None")
    for source, present in traced.grads_present:
        w.miss_if(f"{w.tensor_text(source)}._grad is {'' if present else 'not '}None")
    values = traced.graph.inputs
    pointers = [w.pointer(k, s, v.aval) for k, (s, v) in enumerate(zip(traced.sources, values, strict=True))]
    _emit_overlap(w, pointers)
    _emit_run(w, pointers)
    _emit_effects(w)
    _emit_result(w)
    text = "def launch(args):\n" + "\n".join(w.lines) + "\n"
    exec(compile(text, f"<jitgrad launcher {traced.graph.name}>", "exec"), w.names)
    launch: Callable[[tuple[Any, ...]], Any] = w.names["launch"]
    return launch


def call_grad(call: Call) -> bool:
    return bool(call.key[4])


def _emit_overlap(w: _Writer, pointers: Sequence[str]) -> None:
    """Memory that the program writes must not be seen through an argument too: then the slow path copies."""
    written = w.compiled.overwritten
    if not written:
        return
    graph, sources = w.compiled.traced.graph, w.compiled.traced.sources
    for k in written:
        size = graph.inputs[k].aval.nbytes
        for j, source in enumerate(sources):
            if j == k or (source.kind != "argument" and sources[k].kind != "argument") or not pointers[j].startswith("p"):
                continue
            other = graph.inputs[j].aval.nbytes
            w.miss_if(f"-{other} < {pointers[j]} - {pointers[k]} < {size}")


def _emit_run(w: _Writer, pointers: Sequence[str]) -> None:
    program = w.compiled.program
    results = []
    for k, (shape, dtype) in enumerate(program.result_specs):
        shape_text, dtype_text = w.constant("S", shape), w.constant("D", dtype)
        if prod(shape) * dtype.itemsize < SMALL:
            w.line(f"o{k} = empty({shape_text}, {dtype_text})")
            results.append(f"data_address(o{k})")
        else:
            w.line(f"o{k}, q{k} = take({shape_text}, {dtype_text})")
            results.append(f"q{k}")
    words = [*pointers, *results]
    w.names["pack"] = struct.Struct(f"{len(words)}q").pack_into
    w.line("try: frame = frames.pop()")
    w.line("except IndexError: frame = new_frame()")
    w.line(f"pack(frame.bases, 0{''.join(', ' + x for x in words)})")
    w.line("(team.team or current_team()).run(frame.address, frame.count)")
    w.line("frames.append(frame)")


def _emit_effects(w: _Writer) -> None:
    """The commit: new data was written in place or is copied, gradients are set."""
    program = w.compiled.program
    for effect in w.compiled.traced.effects:
        target = w.tensor_text(effect.target)
        if effect.kind == "grad":
            new = "None" if effect.output is None else _tensor_text(w, effect.output)
            w.line(f"{target}._grad = {new}")
            continue
        assert effect.output is not None
        place = program.plan.outputs[effect.output]
        if place.location is None or place.location.buffer.role != "input":
            data = f"{target}._data" if effect.target.kind != "array" else target
            w.line(f"np.copyto({data}, {_array_text(w, effect.output)})")
        if effect.target.kind == "tensor" or type(_leaf_of(w, effect.target)) is Tensor:
            # only who asked for the storage can have noted its version
            origin = w.constant("W", Origin.of_code_of(w.compiled.function))
            w.line(f"if (memory := {target}._memory) is not None: memory.version += 1; memory.changed_at = {origin}")


def _leaf_of(w: _Writer, source: Source) -> Any:
    return w.call.leaves[source.key] if source.kind == "argument" else source.key


def _array_text(w: _Writer, output: int) -> str:
    """An expression for the array of output ``output``."""
    program = w.compiled.program
    place = program.plan.outputs[output]
    if place.location is not None and place.location.buffer.role != "input":
        number = program.plan.results.index(place.location.buffer)
        if program.result_specs[number][0] == place.aval.shape and place.location.is_contiguous(place.aval.shape):
            return f"o{number}"
    view = w.constant("view", program.output_views[output])
    results = "".join(f"o{k}, " for k in range(len(program.result_specs)))
    return f"{view}((), ({results}))"


def _tensor_text(w: _Writer, output: int, weak: bool = False) -> str:
    place = w.compiled.program.plan.outputs[output]
    if place.location is not None and place.location.buffer.role == "input":
        raise _NotSupportedError
    aval = Aval(place.aval.shape, place.aval.dtype, weak)
    return f"of_result({_array_text(w, output)}, {w.constant('R', aval)})"


def _emit_result(w: _Writer) -> None:
    traced = w.compiled.traced
    names = []
    made: dict[int, str] = {}
    for k, r in enumerate(traced.results):
        if r.kind == "static":
            names.append(w.constant("C", r.value))
        elif r.kind == "source":
            assert r.source is not None
            names.append(w.tensor_text(r.source))
        else:
            if r.output not in made:
                made[r.output] = f"t{k}"
                w.line(f"t{k} = {_tensor_text(w, r.output, r.weak)}")
            names.append(made[r.output])
    tree = optree.tree_unflatten(traced.treedef, names)
    w.line(f"return {_tree_text(w, tree)}")


def _tree_text(w: _Writer, tree: Any) -> str:
    """An expression that builds the result: leaves are expressions already."""
    kind = type(tree)
    if kind is str:
        return tree  # type: ignore[no-any-return]
    if kind in (tuple, list):
        inner = ", ".join(_tree_text(w, x) for x in tree)
        return f"({inner}{',' if len(tree) == 1 else ''})" if kind is tuple else f"[{inner}]"
    if kind is dict:
        return "{" + ", ".join(f"{w.constant('K', k)}: {_tree_text(w, v)}" for k, v in tree.items()) + "}"
    raise _NotSupportedError
