"""Random functions over gradients: set, swapped, shared, changed in place, kept, of leaves from outside and of new ones.

They are those of `jitgrad.testing.state_programs` with such statements. What is compared after each call includes which
tensors are one object, and what else changes when results are changed.
"""

from __future__ import annotations

from math import prod
from types import SimpleNamespace
from typing import Any

import numpy as np

from jitgrad.core.aval import Shape
from jitgrad.core.tensor import Tensor
from jitgrad.ops.creation import tensor
from jitgrad.testing.state_programs import StateProgram, Writer, elements_now


class GradientWriter(Writer):
    """Writes functions of which a third of the statements is about the gradients of ``S.w``, ``S.v`` and new leaves."""

    reshapes: bool = False  # which copy or not depending on layouts, which differ between eager and compiled gradients

    def steps(self) -> list[Any]:
        steps = [self.elementwise] * 5 + [self.view] * 3 + [self.change] * 3 + [self.reduction]
        return steps + [self.gradient] * 4 + [self.new_gradient] * 4 + [self.state, self.store]

    def _whole(self) -> str:
        """A value of the shape of the leaves."""
        return str(self.one_of(*[name for name, shape in self.values if shape == self.shape]))

    def gradient(self) -> None:
        p, q = self.one_of(("S.w", "S.v"), ("S.v", "S.w"))
        text = self.one_of(
            f"{p}.grad = None",
            f"{p}.grad = {self._whole()}.detach()",
            f"{p}.grad = {self._whole()}.detach() * 0.5",
            f"if {p}.grad is not None:\n        {p}.grad.mul_(0.5)",
            f"{p}.grad, {q}.grad = {q}.grad, {p}.grad",
            f"({p} * {self._whole()}.detach() * {q}).sum().backward()",
            f"S.kept['g'] = {p}.grad",
            f"{self.one_of('x', 'y')}.detach_()" if self.computed else f"{p}.grad = None",
        )
        self.lines.append(text)

    def new_gradient(self) -> None:
        """A statement whose result is a gradient, or has one."""
        p, kind, name = self.one_of("S.w", "S.v"), int(self.rng.integers(4)), f"t{len(self.lines)}"
        if kind < 2:
            self.lines.append(f"if {p}.grad is None: {p}.grad = jg.zeros({self.shape})")
            self.new(f"{p}.grad" if kind else f"{p}.grad * 1.5", self.shape)
            return
        made, also = f"{self._whole()}.detach()", "requires_grad_()"
        if kind == 2:
            made, also = f"{p} * {made}", "retain_grad()"
        self.lines += [f"{name} = {made}", f"{name}.{also}", f"({name} * {name} * {p}).sum().backward()"]
        self.values.append((name, self.shape))
        if self.rng.random() < 0.4:
            self.new(f"{name}.grad.clone()", self.shape)  # a later pass through what the leaf led to may add to the gradient


class GradientStateProgram(StateProgram):
    """The random function of a seed, eager and compiled, which also agree in objects and memory."""

    writer: type[Writer] = GradientWriter

    def state_of(self, shape: Shape) -> SimpleNamespace:
        state = super().state_of(shape)
        state.v = tensor(np.linspace(2, -1, prod(shape), dtype="f4").reshape(shape), requires_grad=True)
        return state

    def after(self, state: SimpleNamespace, results: dict[str, Any], arguments: list[Tensor]) -> dict[str, Any]:
        seen = {f"after: {name}": value for name, value in _observed(state, results, arguments).items()}
        for k, result in enumerate(results.values()):  # whoever shares memory with a result sees it change
            if isinstance(result._data, np.ndarray) and result._data.flags.writeable and not result.requires_grad:
                result._data[...] += 0.125 * (k + 1)
        if state.w.grad is not None and state.w.grad._data.flags.writeable:
            state.w.grad._data[...] += 0.0625
        return seen | {f"then: {name}": value for name, value in _observed(state, results, arguments).items()}


def _observed(state: SimpleNamespace, results: dict[str, Any], arguments: list[Tensor]) -> dict[str, Any]:
    seen = {name: elements_now(x) for name, x in results.items()}
    seen |= {f"{name}.grad": elements_now(x.grad) for name, x in results.items()}
    seen |= {"w": elements_now(state.w), "v": elements_now(state.v), "buf": elements_now(state.buf)}
    seen |= {"w.grad": elements_now(state.w.grad), "v.grad": elements_now(state.v.grad)}
    seen |= {"kept": [elements_now(x) for _, x in sorted(state.kept.items())], "log": [elements_now(x) for x in state.log]}
    seen |= {"arguments": [elements_now(x) for x in arguments], "wanted": [x.requires_grad for x in arguments]}
    tensors = [state.w.grad, state.v.grad, state.buf, *arguments, *results.values(), *[x for _, x in sorted(state.kept.items())]]
    seen["one object"] = [[x is not None and x is other for x in tensors] for other in tensors]
    return seen
