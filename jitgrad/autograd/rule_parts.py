"""What goes into a rule and comes out of it, as text: saved tensors, and gradients with and without masks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from jitgrad.autograd.array_masks import MaskKind, maker, mask_parts, masked_gradient
from jitgrad.autograd.lines import Line, Recorder, Unrecordable
from jitgrad.autograd.masks import MaskedGradient
from jitgrad.core.aval import strong_aval
from jitgrad.core.context import current_interpreter
from jitgrad.core.ir import Value
from jitgrad.core.tensor import Tensor

# of the node, the gradient of its result, and the condition of its mask, if any
ArrayRule = Callable[..., Sequence[Any]]


@contextmanager
def recording(recorder: Recorder) -> Iterator[None]:
    """Within it, ops are recorded."""
    token = current_interpreter.set(recorder)
    try:
        yield
    finally:
        current_interpreter.reset(token)


def rule_head(kind: MaskKind | None) -> str:
    """The head of a rule for gradients under masks of ``kind``."""
    return "rule(node, g)" if kind is None else "rule(node, g, m)"


def arriving(raw: Tensor, kind: MaskKind | None, named: dict[int, str]) -> Any:
    """The gradient that a rule gets, under the names that it has in the text."""
    named[id(raw._data)] = "g"
    if kind is None:
        return raw
    condition = Tensor(Value(strong_aval(kind.shape, np.dtype(np.bool_))))
    named[id(condition._data)] = "m"
    return masked_gradient(raw, condition, kind)


def read_saved(place: str, name: str, changed: str = "node.unpack()") -> list[str]:
    """The lines that read a saved tensor, and check that its memory has not changed; if it has, they do ``changed``."""
    return [f"{name}, memory, version = {place}", f"if memory.version != version: {changed}"]


class Returned:
    """The gradients that a rule returns: tensors, None, and masked ones as their parts."""

    def __init__(self, grads: Sequence[Any]) -> None:
        self.parts: list[Any] = []
        self.tensors: list[Tensor] = []
        for g in grads:
            if isinstance(g, MaskedGradient):
                self.parts.append(mask_parts(g))
                self.tensors += self.parts[-1][:2]
            elif g is None or type(g) is Tensor:
                self.parts.append(g)
                self.tensors += [] if g is None else [g]
            else:
                raise Unrecordable(type(g).__name__)

    def text(self, line: Line) -> str:
        """The tuple of them; what makes masked ones enters the names of ``line``."""
        listed = []
        for k, g in enumerate(self.parts):
            if type(g) is tuple:
                raw, condition, kind = g
                line.names[f"masked{k}"] = maker(kind, raw.aval)
                listed.append(f"masked{k}({line[raw]}, {line[condition]}), ")
            else:
                listed.append("None, " if g is None else f"{line[g]}, ")
        return f"({''.join(listed)})"
