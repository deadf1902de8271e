"""Random programs of views and in-place changes, as text that torch and jitgrad run alike."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch

VIEWS = (
    "{v}[{i}]", "{v}[:, {j}]", "{v}[{i}:]", "{v}[::2]", "{v}[:, 1:]", "{v}.transpose(0, 1)", "{v}.mT",
    "{v}.reshape(-1)", "{v}.reshape(3, 4)", "{v}.flatten()", "{v}.diagonal()", "{v}.diagonal(1)",
    "{v}.diagonal(0, 1, 0)", "{v}.unsqueeze(0)", "{v}.squeeze()", "{v}[None]", "{v}[..., None]",
    "{v}.transpose(0, 1)[{j}:]", "{v}.swapaxes(0, 1)[::2]", "{v}.movedim(0, 1)", "{v}.chunk(2, 0)[0]",
    "{v}.unbind(1)[{j}]", "{v}[{i}, {j}]", "{v}.narrow(0, {i}, 1)", "{v}.select(1, {j})", "{v}.view_as({v})",
    "{v}.real",
)  # fmt: skip
NEW = ("M.sin({v})", "{v} * {v}", "M.exp({v} * 0.3)", "{v} + 1.0", "{v}.clone()", "{v}.detach()", "{v}[:, [0, 0]]")
CHANGES = (
    "{v} += {u}", "{v} -= {u}", "{v} *= {u}", "{v} **= 2", "{v}.mul_({u})", "{v}.add_({u})", "{v}.copy_({w})",
    "{v}.zero_()", "{v}.fill_(0.3)", "{v}.sin_()", "{v}.tanh_()", "{v}.exp_()", "{v}.neg_()", "{v}.clamp_(-0.5, 0.5)",
    "{v}.lerp_({w}, 0.3)", "{v}.addcmul_({w}, {w})", "{v}[...] = {u}", "{v}[{i}] = {u}", "{v}[{i}] += {u}",
    "{v}[{i}:] = {u}", "{v}[{i}:] *= {u}", "{v}[::2] = {u}", "{v}[:, {j}] = {u}", "{v}[:, {j}] *= {u}",
    "{v}.mT[{j}] = {u}", "{v}[{i}, {j}] = {u}", "{v}[[0, {i}]] = {u}", "{v}[[{i}]] += {u}", "{v}[{v} > 0.3] = 0.1",
    "{v}.masked_fill_({v} > 0.2, 0.25)", "{v}.diagonal().fill_(0.4)",
    "{v}[M.tensor([True, False, True, True])] = {u}", "{v}.index_add_(0, M.tensor([0, {i}]), {w}[:2])",
    "{v}.index_copy_(0, M.tensor([{i}]), {w}[:1])", "{v}.detach().mul_(0.5)", "{v}.detach().add_(1.0)",
    "with M.no_grad(): {v}.mul_(0.5)", "with M.no_grad(): {v}.copy_({v} * 2.0)", "with M.no_grad(): {v}[0] = 0.2",
)  # fmt: skip
OPERANDS = ("{w}", "M.sin({w})", "{w} * 0.7", "{w} * {w}", "0.7", "1.3")


def program(seed: int) -> str:
    """The text of a function ``f(M, x, y)`` of two 4 x 3 tensors and the module; torch runs each of its lines."""
    draw = random.Random(seed)
    known: dict[str, Any] = {"M": torch}
    for name in ("x", "y"):
        known[name] = torch.linspace(-1.0, 1.5, 12, dtype=torch.float64).reshape(4, 3).requires_grad_()
    lines: list[str] = []

    def run(line: str) -> bool:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                exec(line, known)
        except (RuntimeError, IndexError, TypeError, ValueError, UserWarning):
            return False
        lines.append(line)
        return True

    def filled(forms: Sequence[str], names: Sequence[str]) -> str:
        tensors = [name for name in known if isinstance(known[name], torch.Tensor)]
        parts = {"v": draw.choice(names), "w": draw.choice(tensors), "i": draw.randrange(4), "j": draw.randrange(3)}
        return draw.choice(forms).format(u=draw.choice(OPERANDS).format(**parts), **parts)

    for k, form in enumerate(("x * 1.5", "x * y", "M.sin(y)")):
        run(f"t{k} = {form}")
    for _ in range(draw.randint(6, 14)):
        made = [name for name in known if name.startswith("t")]
        forms = draw.choices((VIEWS, NEW, CHANGES), (4, 1, 5))[0]
        run((f"t{len(made)} = " if forms is not CHANGES else "") + filled(forms, made))
    made = [name for name in known if name.startswith("t")]
    total = " + ".join(f"({name} * {name} * {1 + 0.3 * k:.1f}).sum()" for k, name in enumerate(["x", "y", *made]))
    return "def f(M, x, y):\n" + "".join(f"    {line}\n" for line in lines) + f"    return {total}\n"


def compiled_text(text: str) -> Callable[..., Any]:
    """The function of ``text``."""
    names: dict[str, Any] = {}
    exec(compile(text, "<view program>", "exec"), names)
    return names["f"]  # type: ignore[no-any-return]
