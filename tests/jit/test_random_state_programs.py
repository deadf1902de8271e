"""Random functions over views of views, in-place changes, buffers, generators, dicts and inner @jit functions.

Each runs several times, eagerly and compiled, with state of its own, with gradients inside and from outside.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad.core.errors import AutogradError, TraceError

ROWS, COLUMNS = 4, 6
Shape = tuple[int, ...]


@dataclass
class State:
    """What the functions change besides their arguments."""

    buf: Any = field(default_factory=lambda: jg.tensor(np.arange(24, dtype="f4").reshape(ROWS, COLUMNS) / 10))
    w: Any = field(default_factory=lambda: jg.tensor(np.linspace(-1, 1, 24, dtype="f4").reshape(4, 6), requires_grad=True))
    gen: Any = field(default_factory=lambda: jg.Generator(5))


inner = jg.jit(lambda a, b: jg.tanh(a) + b * 0.5, check="off")


class Writer:
    """Writes a function line by line; ``owned`` are the names that it may change in place."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.lines: list[str] = []
        self.values: list[tuple[str, Shape]] = [("x", (ROWS, COLUMNS)), ("y", (ROWS, COLUMNS))]
        self.owned: list[tuple[str, Shape]] = []

    def one_of(self, *choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def recent(self, values: list[tuple[str, Shape]]) -> tuple[str, Shape]:
        return values[-min(len(values), int(self.rng.geometric(0.3)))]

    def fitting(self, shape: Shape) -> str:
        """A value that broadcasts to ``shape``."""
        found = []
        for name, own in self.values:
            if len(own) <= len(shape) and all(a in (1, b) for a, b in zip(own[::-1], shape[::-1], strict=False)):
                found.append(name)
        return self.one_of(*found) if found else "0.7"

    def new(self, text: str, shape: Shape, owned: bool = True) -> None:
        name = f"t{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        self.values.append((name, shape))
        self.owned += [(name, shape)] if owned else []

    def elementwise(self) -> None:
        name, shape = self.recent(self.values)
        other = self.fitting(shape)
        template = self.one_of(
            "jg.tanh({a}) * {b}", "{a} + {b}", "jg.where({a} > 0, {a}, {b})", "jg.maximum({a}, {b})", "{a} * 0.5",
            "{a} * S.w" if shape == (ROWS, COLUMNS) else "{a} - {b}", "inner({a}, {b})", "{a}.clone()",
            f"{{a}} + S.gen.randn({list(shape)}) * 0.1",
        )  # fmt: skip
        self.new(template.format(a=name, b=other), shape)

    def view(self) -> None:
        name, shape = self.recent(self.values)
        if not shape:
            return
        axis = int(self.rng.integers(len(shape)))
        start = int(self.rng.integers(0, shape[axis] + 1))
        stop = int(self.rng.integers(start, shape[axis] + 1))
        colons = ":, " * axis
        text, new = self.one_of(
            (f"{name}[{colons}{start}:{stop}]", (*shape[:axis], stop - start, *shape[axis + 1 :])),
            (f"{name}[{colons}::-1]", shape),
            (f"jg.expand_dims({name}, {axis})", (*shape[:axis], 1, *shape[axis:])),
            (f"{name}.reshape({int(np.prod(shape))})", (int(np.prod(shape)),)),
            (f"{name}.mT" if len(shape) > 1 else name, (*shape[:-2], *shape[:-3:-1]) if len(shape) > 1 else shape),
        )
        self.new(text, new, owned=any(name == own for own, _ in self.owned))

    def change(self) -> None:
        if not self.owned:
            return
        name, shape = self.recent(self.owned)
        self.lines.append(self.one_of(
            f"{name} += {self.fitting(shape)}", f"{name}[...] = {self.fitting(shape)}", f"{name} *= 0.5",
            f"{name}[0] += {self.fitting(shape[1:])}" if shape and shape[0] else f"{name} -= 0.5",
        ))  # fmt: skip

    def state(self) -> None:
        other = self.one_of("x.detach()", "y", "0.3")
        self.lines.append(self.one_of(
            f"S.buf[...] = S.buf * 0.9 + {other}", "S.buf[1:3] *= 0.5", "S.w.grad = None",
            f"(S.w * {other}).sum().backward()", "((S.w * S.w).sum() * y.sum() * 0.01).backward()",
            "if S.w.grad is not None:\n        with jg.no_grad():\n            S.w -= 0.01 * S.w.grad",
        ))  # fmt: skip

    def reduction(self) -> None:
        name, shape = self.recent(self.values)
        if shape:
            axis = int(self.rng.integers(len(shape)))
            self.new(f"jg.sum({name}, axis={axis}) * 0.3", (*shape[:axis], *shape[axis + 1 :]))

    def entries(self) -> None:
        self.new("y * 0.0", (ROWS, COLUMNS))
        name = self.values[-1][0]
        self.lines.append(f"for key, value in d.items():\n        {name} = {name} * 0.5 + value * len(key)")

    def source(self) -> str:
        steps = [self.elementwise] * 6 + [self.view] * 5 + [self.change] * 5
        steps += [self.state, self.state, self.reduction, self.reduction, self.entries]
        for _ in range(int(self.rng.integers(4, 14))):
            self.one_of(*steps)()
        names = [name for name, _ in self.values]
        chosen = [names[int(k)] for k in self.rng.permutation(len(names))[:3]]
        result = ", ".join(f"'k{9 - k}': {name}" for k, name in enumerate(chosen))
        return "def program(x, y, d):\n    " + "\n    ".join([*self.lines, f"return {{{result}}}", ""])


def function_of(source: str, state: State) -> Callable[..., Any]:
    file = f"<random state program {hash(source)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    names = {"jg": jg, "S": state, "inner": inner}
    exec(compile(source, file, "exec"), names)
    function: Any = names["program"]
    return function  # type: ignore[no-any-return]


def observed(f: Callable[..., Any], state: State, seed: int, outside: bool) -> dict[str, Any]:
    """One call: its results, the gradients, and the state after it."""
    rng = np.random.default_rng(seed)
    x, y, a, b = (jg.tensor(rng.uniform(-1, 1, (ROWS, COLUMNS)).astype("f4")) for _ in range(4))
    x.requires_grad_(outside)
    results = f(x, y, {"b": a, "aa": b} if seed % 2 else {"aa": b, "b": a})
    seen = {name: value.detach().numpy().copy() for name, value in results.items()}
    flowing = [value for value in results.values() if value.requires_grad and value.grad_fn is not None]
    if outside and flowing:
        sum((value * (k + 1.5)).sum() for k, value in enumerate(flowing)).backward()
    after = {"x.grad": x.grad, "w.grad": state.w.grad, "buf": state.buf, "w": state.w, "gen": state.gen.state, "y": y}
    return seen | {name: None if t is None else t.detach().numpy().copy() for name, t in after.items()}


@pytest.mark.parametrize("seed", range(150))
def test_compiled_equals_eager(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITGRAD_BACKEND", "python")
    source, outside = Writer(seed).source(), seed % 2 == 0
    states = State(), State()
    eager = function_of(source, states[0])
    compiled = jg.jit(function_of(source, states[1]), check="off")

    for call in range(3):
        try:
            expected = observed(eager, states[0], seed + call, outside)
            found = observed(compiled, states[1], seed + call, outside)
        except (AutogradError, TraceError) as error:
            pytest.skip(f"refused: {error}")
        for name, value in expected.items():
            assert (value is None) == (found[name] is None), f"{name} of call {call}\n{source}"
            if value is not None:
                np.testing.assert_allclose(found[name], value, 2e-4, 2e-5, err_msg=f"{name} of call {call}\n{source}")
