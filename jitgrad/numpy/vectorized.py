"""NumPy's vectorize: a function of numbers, applied to every element."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any

import numpy as np

from jitgrad.core.context import current_interpreter
from jitgrad.core.errors import ArgumentError, shown
from jitgrad.core.tensor import Tensor
from jitgrad.numpy.arguments import refuse, tensor_of
from jitgrad.numpy.joining import stack
from jitgrad.ops.arithmetic import astype
from jitgrad.ops.movement import broadcast_to, reshape

_MOST_TRACED = 1024  # elements: each has its own copy of the function in a graph, whose passes take their time


class vectorize:
    """``pyfunc``, called once per element of its broadcast operands, with tensors without axes.

    A convenience for functions that decide by values, not for speed, as in NumPy: ``jg.vmap`` and ``jg.elementwise`` run
    on whole arrays. Gradients flow. The dtype is the common one of all results, not that of the first, unless ``otypes``
    names it: one per result, as text such as "d" or as a list.

    Raises:
        ArgumentError: an operand has no elements, or too many for a compiled function.
    """

    def __init__(
        self, pyfunc: Callable[..., Any], otypes: Any = None, doc: str | None = None, excluded: Any = None,
        cache: bool = False, signature: str | None = None,
    ) -> None:  # fmt: skip
        refuse("vectorize", signature=signature)
        self.pyfunc: Callable[..., Any] = pyfunc
        self.otypes: list[np.dtype[Any]] | None = None if otypes is None else [np.dtype(t) for t in otypes]
        self.excluded: frozenset[int | str] = frozenset(excluded or ())
        update_wrapper(self, pyfunc)
        self.__doc__ = doc or pyfunc.__doc__

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        given: dict[int | str, Any] = dict(enumerate(args))
        given.update(keywords)
        operands = {k: tensor_of(x) for k, x in given.items() if k not in self.excluded}
        shape = np.broadcast_shapes(*(x.shape for x in operands.values()))
        size = int(np.prod(shape))
        self._check(size)
        flat = {k: reshape(broadcast_to(x, shape), (size,)) for k, x in operands.items()}
        found = []
        for n in range(size):
            values = {**given, **{k: x[n] for k, x in flat.items()}}
            found.append(self.pyfunc(*[values[k] for k in range(len(args))], **{k: values[k] for k in keywords}))
        if isinstance(found[0], tuple):
            return tuple([self._joined(list(part), k, shape) for k, part in enumerate(zip(*found, strict=True))])
        return self._joined(found, 0, shape)

    def _check(self, size: int) -> None:
        name = shown(getattr(self.pyfunc, "__name__", self.pyfunc))
        if not size:
            raise ArgumentError(f"vectorize of {name}: no elements, so that the function is never called")
        if size > _MOST_TRACED and current_interpreter.get().tracing:
            raise ArgumentError(
                f"vectorize of {name}: {size} elements in a @jit function would be {size} copies of it. Use jg.vmap, or "
                "jg.elementwise, which takes functions of a number with branches"
            )

    def _joined(self, parts: list[Any], k: int, shape: tuple[int, ...]) -> Tensor:
        out: Tensor = reshape(stack([tensor_of(part) for part in parts]), shape)
        return out if self.otypes is None else astype(out, self.otypes[k])
