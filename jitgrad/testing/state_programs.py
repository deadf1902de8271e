"""Random functions over views of views, in-place changes, buffers, generators, dicts and inner functions.

Each is called several times, eagerly and compiled, with state of its own: its results, all state and
all gradients, asked for inside and from outside, must be equal, and so must errors.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from math import prod
from types import SimpleNamespace
from typing import Any

import numpy as np

from jitgrad.core.aval import Shape
from jitgrad.core.errors import AutogradError, GraphFreedError, TraceError
from jitgrad.core.tensor import Tensor
from jitgrad.ops.creation import asarray, tensor, zeros
from jitgrad.ops.random import Generator

SHAPES: tuple[Shape, ...] = ((4, 6), (4, 6), (1, 6), (4, 1), (3, 3), (0, 5), (3, 0))
CALLS = 4
RTOL, ATOL = 2e-4, 2e-5


class Writer:
    """Writes a function line by line; ``owned`` are the names that it may change in place."""

    reshapes: bool = True

    def __init__(self, seed: int) -> None:
        self.rng: np.random.Generator = np.random.default_rng(seed)
        self.shape: Shape = SHAPES[int(self.rng.integers(len(SHAPES)))]
        self.lines: list[str] = []
        self.values: list[tuple[str, Shape]] = [("x", self.shape), ("y", self.shape)]
        self.outside: bool = bool(self.rng.random() < 0.5)
        self.computed: bool = bool(self.rng.random() < 0.5)
        # a leaf that requires grad may not be changed
        self.owned: list[tuple[str, Shape]] = [("x", self.shape), ("y", self.shape)] if self.computed or not self.outside else []

    def one_of(self, *choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def recent(self, values: list[tuple[str, Shape]]) -> tuple[str, Shape]:
        return values[-min(len(values), int(self.rng.geometric(0.3)))]

    def fitting(self, shape: Shape) -> str:
        """A value that broadcasts to ``shape``."""
        names = []
        for name, own in self.values:
            if len(own) <= len(shape) and all(a in (1, b) for a, b in zip(own[::-1], shape[::-1], strict=False)):
                names.append(name)
        return str(self.one_of(*names)) if names else "0.7"

    def new(self, text: str, shape: Shape, owned: bool = True) -> None:
        name = f"t{len(self.lines)}"
        self.write(f"{name} = {text}", 0.05)
        self.values.append((name, shape))
        self.owned += [(name, shape)] if owned else []

    def write(self, line: str, untracked: float) -> None:
        """The line, with the probability ``untracked`` under no_grad."""
        self.lines.append(f"with jg.no_grad():\n        {line}" if self.rng.random() < untracked else line)

    def elementwise(self) -> None:
        name, shape = self.recent(self.values)
        template = self.one_of(
            "jg.tanh({a}) * {b}", "{a} + {b}", "{a} * {b}", "jg.where({a} > 0, {a}, {b})", "jg.maximum({a}, {b})",
            "jg.sin({a}) - {b}", "jg.exp(-jg.abs({a}))", "{a} * 0.5", "inner({a}, {b})", "{a}.clone()",
            "{a} * S.w" if shape == self.shape else "{a} - {b}",
            f"{{a}} + S.gen.{self.one_of('randn', 'rand')}({list(shape)}) * 0.1",
        )  # fmt: skip
        self.new(template.format(a=name, b=self.fitting(shape)), shape)

    def view(self) -> None:
        name, shape = self.recent(self.values)
        if not shape:
            return
        axis = int(self.rng.integers(len(shape)))
        start = int(self.rng.integers(0, shape[axis] + 1))
        stop = int(self.rng.integers(start, shape[axis] + 1))
        step = self.one_of(1, 1, 2)
        colons, size, turned = ":, " * axis, prod(shape), len(shape) > 1
        part = (*shape[:axis], len(range(start, stop, step)), *shape[axis + 1 :])
        text, new = self.one_of(
            (f"{name}[{colons}{start}:{stop}:{step}]", part),
            (f"{name}[{colons}::-1]", shape),
            (f"jg.expand_dims({name}, {axis})", (*shape[:axis], 1, *shape[axis:])),
            (f"{name}[..., None]", (*shape, 1)),
            (f"{name}.detach()", shape),
            (f"{name}.reshape({size})", (size,)) if self.reshapes else (f"{name}[:]", shape),
            (f"{name}[0]", shape[1:]) if shape[0] else (f"{name}[:]", shape),
            (f"{name}.mT" if turned else name, (*shape[:-2], *shape[:-3:-1]) if turned else shape),
        )
        self.new(text, new, owned=any(name == own for own, _ in self.owned))

    def indexed(self) -> None:
        name, shape = self.recent(self.values)
        if shape and shape[0]:
            places = sorted(int(k) for k in self.rng.integers(shape[0], size=3))
            self.new(f"jg.take({name}, jg.tensor({places}), axis=0)", (3, *shape[1:]))

    def change(self) -> None:
        if not self.owned:
            return
        name, shape = self.recent(self.owned)
        other = self.fitting(shape)
        row = self.fitting(shape[1:]) if shape and shape[0] else ""
        line = self.one_of(
            f"{name} += {other}", f"{name}[...] = {other}", f"{name} *= 0.5", f"{name} -= {other}", f"{name} /= 2.0",
            f"{name}.copy_(jg.broadcast_to(jg.asarray({other}, dtype=jg.float32), {shape}))",
            f"{name}[0] += {row}" if row else f"{name} -= 0.5", f"{name}[0] = {row}" if row else f"{name} *= 2.0",
        )  # fmt: skip
        self.write(line, 0.3)

    def state(self) -> None:
        n, m = self.shape
        other, row = self.fitting(self.shape), self.fitting((m,))
        self.lines.append(self.one_of(
            f"S.buf[...] = S.buf * 0.9 + {other}", "S.buf[1:3] *= 0.5", f"S.buf += {other}", "S.count += 1",
            f"S.buf[0] += {row}" if n else "S.buf *= 0.5", "S.w.grad = None", "(S.w * y).sum().backward()",
            f"((S.w * S.w).sum() * {other}.sum() * 0.01).backward()" if other != "0.7" else "S.w.sum().backward()",
            "if S.w.grad is not None:\n        with jg.no_grad():\n            S.w -= 0.01 * S.w.grad",
        ))  # fmt: skip
        if self.rng.random() < 0.4:
            self.new("S.buf", self.shape, owned=False)

    def store(self) -> None:
        name, _ = self.recent(self.values)
        self.lines.append(self.one_of(
            f"S.log.append({name})", f"S.kept['a'] = {name}", f"S.last = ({name}, {name})", f"S.log += [{name}.detach()]",
        ))  # fmt: skip

    def reduction(self) -> None:
        name, shape = self.recent(self.values)
        if shape:
            axis, kept = int(self.rng.integers(len(shape))), bool(self.rng.random() < 0.6)
            rest = (*shape[:axis], *((1,) if kept else ()), *shape[axis + 1 :])
            self.new(f"jg.sum({name}, axis={axis}, keepdims={kept}) * 0.3", rest)

    def entries(self) -> None:
        self.new("y * 0.0", self.shape)
        name = self.values[-1][0]
        self.lines.append(f"for key, value in d.items():\n        {name} = {name} * 0.5 + value * len(key)")

    def steps(self) -> list[Callable[[], None]]:
        """What writes a statement, as often as its kind is to occur."""
        steps = [self.elementwise] * 8 + [self.view] * 5 + [self.change] * 5 + [self.reduction, self.reduction]
        return [*steps, *[self.state] * 3, self.store, self.store, self.entries, self.indexed]

    def source(self) -> str:
        steps = self.steps()
        for _ in range(int(self.rng.integers(4, 14))):
            self.one_of(*steps)()
        names = [name for name, _ in self.values]
        chosen = [names[int(k)] for k in self.rng.permutation(len(names))[:3]]
        result = ", ".join(f"'k{9 - k}': {name}" for k, name in enumerate(chosen))
        return "def program(x, y, d):\n    " + "\n    ".join([*self.lines, f"return {{{result}}}", ""])


def _laid_out(rng: np.random.Generator, shape: Shape) -> Tensor:
    """Random numbers in a random layout."""
    array = rng.uniform(-1, 1, shape).astype("f4")
    layout = int(rng.integers(8))
    if layout == 0:
        return asarray(np.asfortranarray(array))
    if layout == 1:
        return asarray(np.ascontiguousarray(array[:, ::-1])[:, ::-1])
    if layout == 2:
        wide = np.zeros((2 * shape[0], shape[1] + 2), "f4")
        wide[::2, 1:-1] = array
        return asarray(wide[::2, 1:-1])
    return tensor(array.T.copy()).mT if layout == 3 else tensor(array)


class StateProgram:
    """The random function of a seed, eager and compiled by ``jit``, each with state of its own.

    Attributes:
        source: its text.
        outside: whether arguments require grad and ``backward()`` is called on the results.
        computed: whether the arguments are results of other ops, and may be changed in place.
    """

    writer: type[Writer] = Writer

    def __init__(self, seed: int, jit: Callable[..., Callable[..., Any]], names: dict[str, Any]) -> None:
        """``names``: jitgrad itself, as "jg"."""
        writer = self.writer(seed)
        self.seed = seed
        self.source: str = writer.source()
        self.shape: Shape = writer.shape
        self.outside: bool = writer.outside
        self.computed: bool = writer.computed
        self._states = self.state_of(self.shape), self.state_of(self.shape)
        jg = names["jg"]

        def inner(a: Any, b: Any) -> Any:
            return jg.tanh(a) + b * 0.5

        self._eager = self._function({**names, "S": self._states[0], "inner": inner})
        self._compiled = jit(self._function({**names, "S": self._states[1], "inner": jit(inner)}))

    def state_of(self, shape: Shape) -> SimpleNamespace:
        """What the function changes besides its arguments."""
        numbers = np.linspace(-1, 1, prod(shape), dtype="f4").reshape(shape)
        w = tensor(numbers, requires_grad=True)
        return SimpleNamespace(buf=tensor(numbers + 1), count=zeros(()), w=w, gen=Generator(5), log=[], kept={}, last=None)

    def _function(self, names: dict[str, Any]) -> Callable[..., Any]:
        file = f"<random state program {self.seed}>"
        linecache.cache[file] = (len(self.source), None, self.source.splitlines(keepends=True), file)
        exec(compile(self.source, file, "exec"), names)
        function: Callable[..., Any] = names["program"]
        return function

    def difference(self) -> str:
        """What differs in some of the calls: nothing, "" or the start of a message that says why not.

        "refused": the compiler refuses the function. "error": both raise an error of autograd.
        """
        for call in range(CALLS):
            expected, actual = (self._tried(k, call) for k in range(2))
            if isinstance(actual, TraceError):
                return f"refused: {actual}"
            if isinstance(actual, GraphFreedError):  # a call is one node, which is freed even if no op in it keeps anything
                return f"refused: {actual}"
            if isinstance(expected, AutogradError):
                return f"error: {expected}" if self._fails_alike(expected, actual) else f"call {call}: no {expected!r}"
            if isinstance(actual, BaseException) or isinstance(expected, BaseException):
                return f"call {call}: {actual!r} instead of {expected!r}"
            for name, value in expected.items():
                if not _close(actual[name], value):
                    return f"call {call}: {name} is {actual[name]}, not {value}"
        return ""

    def _fails_alike(self, expected: AutogradError, actual: Any) -> bool:
        """A result whose whole graph was freed inside has no history, so that backward leaves it out."""
        return isinstance(actual, AutogradError) or (self.outside and "freed the graph" in str(expected))

    def _tried(self, which: int, call: int) -> Any:
        try:
            return self._observed(which, self.seed + call)
        except Exception as error:
            return error

    def _observed(self, which: int, seed: int) -> dict[str, Any]:
        """One call: its results, the gradients, and the state after it."""
        rng, state = np.random.default_rng(seed), self._states[which]
        x, y, a, b = leaves = [_laid_out(rng, self.shape) for _ in range(4)]
        x.requires_grad_(self.outside)
        if self.computed:
            x, y = x * 1.5, (y * 0.5).mT.mT
        results = (self._eager, self._compiled)[which](x, y, {"b": a, "aa": b} if seed % 2 else {"aa": b, "b": a})
        seen: dict[str, Any] = {name: elements_now(value) for name, value in results.items()}
        flowing = [value for value in results.values() if value.requires_grad and value.grad_fn is not None]
        if self.outside and flowing:
            total: Any = sum((value * (k + 1.5)).sum() for k, value in enumerate(flowing))
            total.backward()
        seen |= {name: elements_now(getattr(state, name)) for name in ("buf", "count", "w")}
        seen |= {"x": elements_now(x), "y": elements_now(y)}
        seen |= {"x.grad": elements_now(leaves[0].grad), "w.grad": elements_now(state.w.grad)}
        seen |= {"gen": elements_now(state.gen.state), "kept": [elements_now(t) for _, t in sorted(state.kept.items())]}
        seen |= {"log": [*map(elements_now, state.log)], "last": [*map(elements_now, state.last or ())]}
        seen["requires grad"] = [t.requires_grad for t in (x, y, state.buf, state.count)]
        return seen | self.after(state, results, [x, y])

    def after(self, state: SimpleNamespace, results: dict[str, Any], arguments: list[Tensor]) -> dict[str, Any]:
        """What else a call leaves behind."""
        return {}


def elements_now(t: Tensor | None) -> Any:
    """The elements of ``t`` as they are now."""
    return None if t is None else t.detach().numpy().copy()


def _close(actual: Any, expected: Any) -> bool:
    if isinstance(expected, list):
        return len(actual) == len(expected) and all(map(_close, actual, expected))
    if not isinstance(expected, np.ndarray):
        return type(actual) is type(expected) and actual == expected
    like = isinstance(actual, np.ndarray) and actual.shape == expected.shape and actual.dtype == expected.dtype
    return like and np.allclose(actual, expected, RTOL, ATOL, equal_nan=True)
