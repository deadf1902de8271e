"""The fast path of a @jit call: one generated function that checks the arguments, runs the program and wraps results."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import optree

from jitgrad.compiler.gc_paused import gc_paused
from jitgrad.compiler.tracer import InputSource
from jitgrad.core.aval import Aval
from jitgrad.core.origin import Origin
from jitgrad.core.tensor import Tensor
from jitgrad.eager.buffer_pool import SMALL
from jitgrad.jit.executable import Executable
from jitgrad.jit.fast_call_source import FEW, AddressRanges, FastCallWriter, NotSupportedError, interned, listed, meet
from jitgrad.jit.signature import Call
from jitgrad.runtime.executor import thread_pool
from jitgrad.runtime.native_runner import NativeFrame, NativeRunner
from jitgrad.runtime.ownership import invalidate, is_unique_owner

FastCall = Callable[[tuple[Any, ...], dict[str, Any]], Any]

MAX_LEAVES = 400  # arguments outside of long lists; beyond, the text would take longer to compile than it saves


@gc_paused()
def make_fast_call(compiled: Executable, call: Call) -> FastCall | None:
    """A function ``args, kwargs -> result``, or MISS where ``compiled`` does not apply; None if there can be no fast path.

    There is one unless the arguments are very many, or one tensor is at several places of a long list.
    """
    runner = compiled.program.runner
    if not isinstance(runner, NativeRunner):
        return None
    writer = FastCallWriter(compiled, call)
    try:
        return _emit(writer, runner)
    except NotSupportedError:
        return None


def _emit_arguments(w: FastCallWriter) -> None:
    """Code that takes the arguments apart, in the order of `Call.leaves`."""
    args, kwargs = optree.tree_unflatten(w.call.treedef, w.call.leaves)
    w.miss_if("interpreter.get() is not None")
    w.miss_if(f"grad_enabled.get() is not {w.call.key[4]}")
    w.miss_if(f"defaults.float_dtype is not {w.constant('D', w.call.key[5])}")
    w.destructure("args", args)
    w.destructure("kwargs", kwargs)
    if len(w.leaves) - sum(w.lists.values()) > MAX_LEAVES:
        raise NotSupportedError
    w.distinct()


def _emit(w: FastCallWriter, runner: NativeRunner) -> FastCall:
    compiled = w.compiled
    traced, program = compiled.traced, compiled.program
    frames: deque[NativeFrame] = deque([frame := runner.frame()])
    w.names.update(
        frames=frames, new_frame=runner.frame, pool=thread_pool._Current, current_pool=thread_pool.current_pool
    )
    _emit_arguments(w)
    w.names["guard"] = traced.guard.check
    w.miss_if("guard() is not None")
    _emit_grads_present(w)
    pointers = w.pointers = _emit_pointers(w)
    _emit_overlap(w, pointers)
    _emit_taken(w)
    results = _emit_memory(w)
    if frame.count:
        _emit_native_run(w, pointers, results)
    elif program.steps:
        _emit_run(w)
    history = _emit_history(w) if traced.differentiable else {}  # copies what the effects change
    _emit_effects(w)
    _emit_result(w, history)
    text = "def launch(args, kwargs):\n" + "\n".join(w.lines) + "\n"
    exec(compile(text, f"<jitgrad launcher {traced.graph.name}>", "exec"), w.names)
    launch: FastCall = w.names["launch"]
    return launch


def _emit_grads_present(w: FastCallWriter) -> None:
    """A gradient must be there, or be None, as it was while tracing."""
    checks = w.compiled.traced.grads_present
    lifted = [s.key for s, present in checks if s.kind == "tensor" and not present]
    if len(lifted) > FEW:
        # gradients that are there are checked where they are read
        w.miss_if(f"any([t._grad is not None for t in {w.constant('L', tuple(lifted))}])")
    for source, present in checks:
        if source.kind != "tensor" or (not present and len(lifted) <= FEW):
            w.miss_if(f"{w.tensor_text(source)}._grad is {'' if present else 'not '}None")


def _emit_pointers(w: FastCallWriter) -> list[str]:
    """Expressions for the addresses of all inputs, in order; code before them that finds out."""
    traced = w.compiled.traced
    inputs = list(zip(traced.sources, traced.graph.inputs, strict=True))
    bulk: dict[int, str] = {}
    for kind, letter in (("tensor", "b"), ("grad", "d")):
        chosen = [
            (k, s) for k, (s, _) in enumerate(inputs) if s.kind == kind and (kind == "tensor" or s.key.kind == "tensor")
        ]
        if len(chosen) <= FEW:
            continue
        objects = w.constant("L", tuple(s.key if kind == "tensor" else s.key.key for _, s in chosen))
        if kind == "grad":
            looks = w.constant("V", tuple(inputs[k][1].aval for k, _ in chosen))
            w.line(f"gs = [t._grad for t in {objects}]")
            w.miss_if("any([g is None for g in gs])")  # `in` would ask the tensors' ==
            w.miss_if(f"not all([g._aval is v or same(g, v) for g, v in zip(gs, {looks})])")
            objects = "gs"
        w.line(f"{letter} = [t._address or address(t) for t in {objects}]")
        w.miss_if(f"0 in {letter}")
        bulk.update({k: f"{letter}[{j}]" for j, (k, _) in enumerate(chosen)})
    for name in w.lists:
        w.line(f"b{name} = [t._address or address(t) for t in {name}]")
        w.miss_if(f"0 in b{name}")
    for k, (source, _) in enumerate(inputs):
        text = w.leaves[source.key] if source.kind == "argument" else ""
        if text.partition("[")[0] in w.lists:
            bulk[k] = f"b{text}"
        elif source.kind in ("argument", "tensor") and k not in w.compiled.program.read and not w.compiled.written:
            bulk[k] = "0"  # it may lie as it likes: results may be views of it, but nothing is computed from it
    return [bulk.get(k) or w.pointer(k, s, v.aval) for k, (s, v) in enumerate(inputs)]


def _emit_overlap(w: FastCallWriter, pointers: Sequence[str]) -> None:
    """Memory that the program writes must not be seen through an argument too: then the slow path copies."""
    written = w.compiled.written
    graph, sources = w.compiled.traced.graph, w.compiled.traced.sources
    arguments = [j for j, s in enumerate(sources) if s.kind == "argument" and j not in w.numbers]
    if not written or not arguments:
        return
    if len(written) * len(arguments) > FEW and not any(sources[k].kind == "argument" for k in written):
        spans = w.constant("spans", AddressRanges([graph.inputs[k].aval.nbytes for k in written]))
        w.line(f"written = [{', '.join(pointers[k] for k in written)}]")
        for j in arguments:
            w.miss_if(f"{spans}.meet(written, {pointers[j]}, {graph.inputs[j].aval.nbytes})")
        return
    if len(written) * len(sources) > FEW * FEW:
        w.names["meet"] = meet
        sizes = w.constant("N", tuple(v.aval.nbytes for v in graph.inputs))
        places = listed(["0" if k in w.numbers else text for k, text in enumerate(pointers)])  # nothing lies at 0
        w.miss_if(f"meet(({places},), {sizes}, {w.constant('N', written)})")
        return
    for k in written:
        size = graph.inputs[k].aval.nbytes
        for j, source in enumerate(sources):
            if j == k or (source.kind != "argument" and sources[k].kind != "argument") or j in w.numbers:
                continue
            other = graph.inputs[j].aval.nbytes
            w.miss_if(f"-{other} < {pointers[j]} - {pointers[k]} < {size}")


def _emit_taken(w: FastCallWriter) -> None:
    """A result may be written over a donated argument only if nobody else can see it: then the slow path copies."""
    compiled = w.compiled
    if any(r.source is not None and r.source.kind != "argument" for r in compiled.traced.results) and compiled.donated:
        raise NotSupportedError
    if compiled.taken:
        w.names["is_unique_owner"] = is_unique_owner
        texts = [w.leaves[compiled.traced.sources[k].key] for k in compiled.taken]
        w.miss_if(f"not all(map(is_unique_owner, ({listed(texts)},)))")


def _emit_donated(w: FastCallWriter) -> None:
    """After the results have been made: what was donated is gone."""
    if w.compiled.donated:
        texts = [w.leaves[k] for k in w.compiled.donated]
        w.names["invalidate"] = invalidate
        w.line(f"invalidate(({listed(texts)},), {w.constant('G', w.compiled.gone)})")


def _emit_buffers(w: FastCallWriter) -> list[str]:
    """Many result buffers ``o`` in one loop; expressions for their addresses."""
    specs = w.compiled.program.result_specs
    every = w.constant("S", specs)
    if max(prod(shape) * dtype.itemsize for shape, dtype in specs) < SMALL:
        w.line(f"o = [empty(s, d) for s, d in {every}]")
        w.line("q = [*map(data_address, o)]")
    else:
        w.line(f"o, q = zip(*[take(s, d) for s, d in {every}])")
    return ["*q"]


def _emit_memory(w: FastCallWriter) -> list[str]:
    """The arrays that results are written to; expressions for their addresses."""
    program = w.compiled.program
    if len(program.result_specs) > FEW:
        return _emit_buffers(w)
    for k, (shape, dtype) in enumerate(program.result_specs):
        shape_text, dtype_text = w.constant("S", shape), w.constant("D", dtype)
        if prod(shape) * dtype.itemsize < SMALL:
            w.line(f"o{k} = empty({shape_text}, {dtype_text})")
            w.line(f"q{k} = data_address(o{k})")
        else:
            w.line(f"o{k}, q{k} = take({shape_text}, {dtype_text})")
    return [f"q{k}" for k in range(len(program.result_specs))]


def _emit_frame(w: FastCallWriter) -> None:
    """A frame of this call's own, with the arguments that are floats."""
    w.line("try: frame = frames.pop()")
    w.line("except IndexError: frame = new_frame()")
    for k, text in w.numbers.items():
        w.line(f"frame.numbers[{k}] = {text}")


def _emit_native_run(w: FastCallWriter, pointers: Sequence[str], results: Sequence[str]) -> None:
    """A program of native code alone: addresses are written to the frame, and its table is run."""
    words = [*pointers, *results]
    w.names["pack"] = struct.Struct(f"{len(pointers) + len(w.compiled.program.result_specs)}q").pack_into
    _emit_frame(w)
    w.line(f"pack(frame.bases, 0{', ' if words else ''}{listed(words)})")
    w.line("(pool.pool or current_pool()).run(frame.address, frame.count)")
    w.line("frames.append(frame)")


def _emit_run(w: FastCallWriter) -> None:
    """A program with library calls, which take arrays and leave theirs in ``r``."""
    program = w.compiled.program
    made = ["None"] * len(program.plan.made)
    memory = ["*o"] if len(program.result_specs) > FEW else [f"o{k}" for k in range(len(program.result_specs))]
    w.line(f"r = [{', '.join([*memory, *made])}]")
    _emit_frame(w)
    inputs = listed([w.array_text(k, s) for k, s in enumerate(w.compiled.traced.sources)])
    w.line(f"frame.run(({inputs}{',' if inputs else ''}), r)")
    w.line("frames.append(frame)")


def _emit_effects(w: FastCallWriter) -> None:
    """The commit: new data was written in place or is copied, gradients are set."""
    program = w.compiled.program
    changed: list[InputSource] = []
    cleared = [e.target.key for e in w.compiled.traced.effects if e.output is None and e.target.kind == "tensor"]
    if len(cleared) > FEW:
        w.line(f"for t in {w.constant('L', tuple(cleared))}: t._grad = None")
    for effect in w.compiled.traced.effects:
        if effect.kind == "grad":
            if effect.output is None and effect.target.kind == "tensor" and len(cleared) > FEW:
                continue
            new = "None" if effect.output is None else _tensor_text(w, effect.output)
            w.line(f"{w.tensor_text(effect.target)}._grad = {new}")
            continue
        assert effect.output is not None
        place = program.plan.outputs[effect.output]
        if place.location is None or place.location.buffer.role != "input":
            target = w.tensor_text(effect.target)
            data = f"{target}._data" if effect.target.kind != "array" else target
            w.line(f"np.copyto({data}, {_result_texts(w, effect.output)[0]})")
        if effect.target.kind == "tensor" or type(_leaf_of(w, effect.target)) is Tensor:
            changed.append(effect.target)
    _emit_versions(w, changed)


def _emit_versions(w: FastCallWriter, changed: Sequence[InputSource]) -> None:
    """Count the change of every tensor; only who asked for its storage can have noted its version."""
    lifted = tuple(s.key for s in changed if s.kind == "tensor")
    others = [w.tensor_text(s) for s in changed if s.kind != "tensor"]
    if not changed:
        return
    tensors = w.constant("L", lifted) if lifted else "()"
    more = f" + ({', '.join(others)},)" if others else ""
    w.line(f"for t in {tensors}{more}:")
    origin = w.constant("W", Origin.of_code_of(w.compiled.function))
    w.line(f"if (m := t._memory) is not None: m.version += 1; m.changed_at = {origin}", 2)


def _leaf_of(w: FastCallWriter, source: InputSource) -> Any:
    return w.call.leaves[source.key] if source.kind == "argument" else source.key


def _result_texts(w: FastCallWriter, output: int) -> tuple[str, str]:
    """Expressions for the array of output ``output`` and for its address, "0" where kernels cannot use it as it lies."""
    program = w.compiled.program
    place = program.plan.outputs[output]
    many = len(program.result_specs) > FEW
    if place.location is not None:
        slot = program.slots[place.location.buffer]
        if place.location.buffer.role == "input":
            return w.overwritten(slot), w.pointers[slot]
        number = slot - len(program.plan.inputs)
        whole = place.location.is_contiguous(place.aval.shape)
        if number < len(program.result_specs) and whole and program.result_specs[number][0] == place.aval.shape:
            return (f"o[{number}]", f"q[{number}]") if many else (f"o{number}", f"q{number}")
    view = w.constant("view", program.output_views[output])
    results = "o" if many else f"({''.join(f'o{k}, ' for k in range(len(program.result_specs)))})"
    return f"{view}((), {'r' if program.plan.made else results})", "0"


def _aval_of(w: FastCallWriter, output: int, weak: bool) -> Aval:
    place = w.compiled.program.plan.outputs[output]
    return interned(Aval(place.aval.shape, place.aval.dtype, weak))


def _tensor_text(w: FastCallWriter, output: int, weak: bool = False) -> str:
    array, address = _result_texts(w, output)
    return f"of_result({array}, {w.constant('R', _aval_of(w, output, weak))}, {address})"


def _emit_history(w: FastCallWriter) -> dict[int, str]:
    """The outputs as tensors that the tape knows; their names by output."""
    compiled = w.compiled
    traced, count = compiled.traced, len(compiled.traced.graph.outputs)
    made = {k: f"u{k}" for k in range(count)}
    for k, name in made.items():
        w.line(f"{name} = {_tensor_text(w, k)}")
    operands = listed([w.tensor_text(s) for s in traced.sources])
    saved = listed([_result_texts(w, count + k)[0] for k in range(compiled.op.split.saved)])
    w.names["attach"] = compiled.op.attach
    w.line(f"attach(({operands}{',' if operands else ''}), ({', '.join(made.values())},), [{saved}])")
    return made


def _emit_many(w: FastCallWriter) -> dict[int, str]:
    """Many new tensors in one loop: their names by output."""
    found = {r.output: r.weak for r in w.compiled.traced.results if r.kind == "new"}
    if len(found) <= FEW:
        return {}
    looks = w.constant("R", tuple(_aval_of(w, output, weak) for output, weak in found.items()))
    arrays, addresses = (listed(texts) for texts in zip(*[_result_texts(w, output) for output in found], strict=True))
    w.line(f"t = [*map(of_result, ({arrays},), {looks}, ({addresses},))]")
    return {output: f"t[{k}]" for k, output in enumerate(found)}


def _emit_result(w: FastCallWriter, history: dict[int, str]) -> None:
    traced = w.compiled.traced
    names = []
    made = history or _emit_many(w)
    for k, r in enumerate(traced.results):
        if r.kind == "static":
            names.append(w.constant("C", r.value))
        elif r.kind == "source":
            assert r.source is not None
            names.append(w.tensor_text(r.source))
        elif r.kind == "view":
            assert r.source is not None and r.view is not None
            names.append(f"{w.constant('W', r.view.of)}({w.tensor_text(r.source)})")
        else:
            if r.output not in made:
                made[r.output] = f"t{k}"
                w.line(f"t{k} = {_tensor_text(w, r.output, r.weak)}")
            names.append(made[r.output])
    _emit_donated(w)
    plain = _tree_text(w, optree.tree_unflatten(traced.treedef, names))
    w.line(f"return {plain}" if plain else f"return {w.constant('T', traced.treedef.unflatten)}([{listed(names)}])")


def _tree_text(w: FastCallWriter, tree: Any) -> str:
    """An expression that builds a result of tuples, lists and dicts, whose leaves are expressions; "" for one of others."""
    kind = type(tree)
    if kind is str:
        return str(tree)
    if kind not in (tuple, list, dict):
        return ""
    parts = [_tree_text(w, x) for x in (tree.values() if kind is dict else tree)]
    if "" in parts:
        return ""
    if kind is dict:
        return "{" + ", ".join(f"{w.constant('K', k)}: {text}" for k, text in zip(tree, parts, strict=True)) + "}"
    inner = listed(parts)
    return f"({inner}{',' if inner else ''})" if kind is tuple else f"[{inner}]"
